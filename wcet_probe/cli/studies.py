"""``wcet-probe growth``, ``matrix`` and ``search``: one question asked many times."""

# ruff: noqa: PLC0415  (engines are imported when they are needed)

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wcet_probe.cli import completion, streams
from wcet_probe.cli.configured import DEFAULT_HEAP_BYTES, configured_target, naming_compiler
from wcet_probe.cli.run import DEFAULT_COMPILER, parameter_value
from wcet_probe.config import cache_dir, load_config
from wcet_probe.errors import ExitCode, UsageError, unknown_name
from wcet_probe.model.scenario import OperationKind
from wcet_probe.output_files import write_whole
from wcet_probe.progress import Progress, counted
from wcet_probe.sizes import parse_size

if TYPE_CHECKING:
    from wcet_probe.answer.studies.search import SearchRequest
    from wcet_probe.answer.witness.bench import ProbeRequest

_STARTS = ("random", "constructed")

_COMMON = (
    click.option("--target", metavar="NAME", help="Core.  [default: cortex-m4]", shell_complete=completion.targets),
    click.option("--cc", "compiler", metavar="COMMAND", help="Compiler.  [default: zig]"),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON document."),
    click.option("-q", "--quiet", is_flag=True, help="Show no progress."),
    click.option("-v", "--verbose", is_flag=True, help="Tell each step on stderr, and the traceback of an error."),
)
_PARAMETERS = (
    click.option("--param", "values", multiple=True, type=parameter_value, metavar="NAME=N", help="Build parameter."),
    click.option("--preset", metavar="NAME", help="Parameter values of the literature, such as p02."),
)

_scenario = click.option(
    "--scenario",
    default="worst-alloc",
    show_default=True,
    metavar="NAME",
    help="State and call.",
    shell_complete=completion.scenarios,
)


def _options(*groups: tuple[Callable[..., Any], ...]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed([option for group in groups for option in group]):
            function = option(function)
        return function

    return decorate


@click.command()
@click.argument("allocator", metavar="ALLOCATOR", shell_complete=completion.allocators)
@_scenario
@click.option("--heap", "heaps", multiple=True, type=parse_size, metavar="SIZE", help="Repeatable.  [16KiB … 4MiB]")
@_options(_COMMON, _PARAMETERS)
def growth(*, allocator: str, scenario: str, heaps: tuple[int, ...], **common: Any) -> int:  # noqa: ANN401
    """Run the worst state over heap sizes, and hold its growth against the claimed complexity."""
    from wcet_probe.answer.studies.sweep import DEFAULT_HEAPS_BYTES, grow
    from wcet_probe.reports.screens.studies import growth_document, render_growth

    request = _request(allocator, scenario, DEFAULT_HEAP_BYTES, common)
    with _progress(common) as tell:
        sizes = heaps or DEFAULT_HEAPS_BYTES
        found = grow(request, sizes, counted(tell, len({*sizes})))
    if common["as_json"]:
        streams.print_json(growth_document(request, found))
    else:
        render_growth(request, found, streams.result_console())
    return ExitCode.OK


@click.command()
@click.option(
    "--allocator",
    "names",
    multiple=True,
    metavar="NAME",
    help="Repeatable.  [default: all]",
    shell_complete=completion.allocators,
)
@_scenario
@click.option("--heap", "heap_bytes", type=parse_size, default="4MiB", show_default=True, metavar="SIZE")
@_options(_COMMON)
def matrix(*, names: tuple[str, ...], scenario: str, heap_bytes: int, **common: Any) -> int:  # noqa: ANN401
    """Measure each allocator in its own worst state and in those of the others."""
    from wcet_probe.answer.studies.sweep import matrix as measure
    from wcet_probe.catalog.lookup import allocator_names
    from wcet_probe.reports.screens.studies import matrix_document, render_matrix
    from wcet_probe.scenarios.lookup import describe, scenario_names

    describe(scenario)
    chosen = names or tuple(name for name in allocator_names() if scenario in scenario_names(name))
    requests = [_request(name, scenario, heap_bytes, common) for name in chosen]
    with _progress(common) as tell:
        cells = measure(requests, counted(tell, len(requests) ** 2))
    if common["as_json"]:
        streams.print_json(matrix_document(requests[0], cells))
    else:
        render_matrix(requests[0], cells, streams.result_console())
    return ExitCode.OK


_SEARCHED_HEAP_BYTES = 4 << 10


@click.command()
@click.argument("allocator", metavar="ALLOCATOR", shell_complete=completion.allocators)
@click.option("--operation", default="malloc", show_default=True, metavar="malloc|free", help="What becomes dear.")
@click.option("--heap", "heap_bytes", type=parse_size, metavar="SIZE", help="Size of the heap.  [default: 4KiB]")
@click.option("--evaluations", default=2000, show_default=True, metavar="N", help="Sequences to run.")
@click.option(
    "--start",
    default="random",
    show_default=True,
    metavar="random|constructed",
    help="From random sequences, or from the constructed worst states, each run held against bound and facts.",
)
@click.option(
    "--unit", metavar="instructions|cycles", help="What is compared, from constructed states.  [default: instructions]"
)
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, metavar="N", help="Seed of the search.")
@click.option(
    "--save", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write what was found to FILE."
)
@click.option("--keep", is_flag=True, help="Keep a dearer state beside one's own allocator: a candidate from then on.")
@_options(_COMMON, _PARAMETERS)
def search(
    *,
    allocator: str,
    operation: str,
    heap_bytes: int | None,
    evaluations: int,
    seed: int,
    start: str,
    unit: str | None,
    save: Path | None,
    keep: bool,
    **common: Any,  # noqa: ANN401
) -> int:
    """Look for a sequence of operations that is dearer than every known worst state.

    Exit code 5 if one is found; 0 of an allocator of one's own, whose generic states claim nothing.
    """
    from wcet_probe.answer.studies.adversary import file_of
    from wcet_probe.answer.studies.search import SearchRequest, case_text
    from wcet_probe.answer.studies.search import search as look
    from wcet_probe.build.linked_program import linked_heap_bytes
    from wcet_probe.reports.screens.studies import render_search, search_document

    kinds = {kind.value: kind for kind in OperationKind}
    if operation not in kinds:
        raise unknown_name("operation", operation, kinds)
    asked = _request(allocator, "worst-alloc", heap_bytes or 0, common)
    request = SearchRequest(
        allocator=asked.allocator,
        target=asked.target,
        kind=kinds[operation],
        heap_bytes=heap_bytes or linked_heap_bytes(asked.allocator) or _SEARCHED_HEAP_BYTES,
        evaluations=evaluations,
        seed=seed,
        compiler=asked.compiler,
        cache_dir=asked.cache_dir,
    )
    if start not in _STARTS:
        raise unknown_name("start", start, _STARTS)
    kept = _kept_states(allocator) if keep else None
    if start == "constructed":
        return _attack(request, unit, common, save, kept)
    if unit not in (None, "instructions"):
        raise UsageError(f"a search from random sequences compares instructions; for {unit} add --start constructed.")
    with _progress(common) as tell:
        result = look(request, tell)
    if save:
        write_whole(save, case_text(result))
    file = _keep(kept, *file_of(result)) if kept and result.beaten else None
    if common["as_json"]:
        streams.print_json(search_document(result, file))
    else:
        render_search(result, streams.result_console(), file)
    return _refuted(request, is_beaten=result.beaten)


def _refuted(request: SearchRequest, *, is_beaten: bool) -> ExitCode:
    """A constructed worst state that is beaten is refuted; generic states claim to be no worst ones."""
    return ExitCode.CONTRADICTION if is_beaten and request.allocator.own is None else ExitCode.OK


def _attack(
    request: SearchRequest, unit: str | None, common: dict[str, Any], save: Path | None, kept: Path | None
) -> int:
    from wcet_probe.answer.studies.adversary import Unit, attack
    from wcet_probe.reports.screens.studies import attack_document, render_attack

    units = {one.value: one for one in Unit}
    if (unit or "instructions") not in units:
        raise unknown_name("unit", unit or "", units)
    with _progress(common) as tell:
        result = attack(request, units[unit or "instructions"], progress=tell)
    if save and result.beaten:
        write_whole(save, result.text)
    file = _keep(kept, result.file_name, result.text) if kept and result.beaten else None
    if common["as_json"]:
        streams.print_json(attack_document(result, file))
    else:
        render_attack(result, streams.result_console(), file)
    return _refuted(request, is_beaten=result.beaten)


def _kept_states(allocator: str) -> Path:
    """The folder of the states that are kept of an allocator of one's own.

    Raises:
        UsageError: the allocator is one of the package.
    """
    from wcet_probe.catalog.lookup import own_folder
    from wcet_probe.catalog.own_allocator import FOUND

    folder = own_folder(allocator)
    if folder is None:
        message = (
            f"{allocator} is an allocator of the package, whose files are not changed; leave --keep out, and write "
            "the state to a file with --save FILE."
        )
        raise UsageError(message)
    return folder / FOUND


def _keep(folder: Path, file_name: str, text: str) -> str:
    """Write a found state into ``folder``; its path from the manifest."""
    write_whole(folder / file_name, text)
    return f"{folder.name}/{file_name}"


@contextmanager
def _progress(common: dict[str, Any]) -> Iterator[Progress]:
    with (
        streams.progress(quiet=common["quiet"], verbose=common["verbose"]) as tell,
        naming_compiler(common["compiler"], load_config(Path.cwd())),
    ):
        yield tell


def _request(allocator: str, scenario: str, heap_bytes: int, common: dict[str, Any]) -> ProbeRequest:
    from wcet_probe.answer.witness.bench import ProbeRequest
    from wcet_probe.catalog.lookup import load_allocator

    config = load_config(Path.cwd())
    return ProbeRequest(
        allocator=load_allocator(allocator, dict(common.get("values", ())), common.get("preset")),
        target=configured_target(common["target"], config),
        scenario=scenario,
        heap_bytes=heap_bytes,
        seed=0,
        initial_cache=None,
        compiler=common["compiler"] or config.cc or DEFAULT_COMPILER,
        cross_check=False,
        cache_dir=cache_dir(config),
    )
