"""``wcet-probe replay``, which counts a workload operation by operation, and ``wcet-probe plot``, which draws."""

# ruff: noqa: PLC0415  (engines and renderers are imported when they are needed)

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from wcet_probe.cli import completion, streams
from wcet_probe.cli.configured import configured_target, naming_compiler
from wcet_probe.cli.run import DEFAULT_COMPILER, DEFAULT_HEAP_BYTES, parameter_value
from wcet_probe.config import cache_dir, load_config
from wcet_probe.errors import ExitCode, UsageError, unknown_name
from wcet_probe.sizes import parse_size

Document = dict[str, Any]

_READABLE = ("wcet-probe-result", "wcet-probe-results", "wcet-probe-bound", "wcet-probe-growth", "wcet-probe-replay")


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of picture: the function of ``reports.pictures``, what it takes, and in words; the title for a replay."""

    name: str
    takes: str
    needs: str
    title: str = ""


_REPLAY = "what wcet-probe replay --json printed"
_KINDS = (
    _Kind("bound-against-observed", "results", "results of a run or a bound"),
    _Kind("wcet-against-heap", "results", "results of several heaps, of --why, or of growth"),
    _Kind("heat-strip", "result", "the result of a run on a target with caches"),
    _Kind("call-graph", "result", "a result whose bound has its graph"),
    _Kind("control-flow-graph", "result", "a result whose bound has its graph"),
    _Kind("gap-bars", "result", "a result of --why that has slack"),
    _Kind("instructions-by-operation", "replay", _REPLAY, "Instructions by operation"),
    _Kind("histogram", "replay", _REPLAY, "Instructions of an operation"),
)
PLOT_EPILOG = f"""\b
Kinds, and what they need:
{chr(10).join(f"  {kind.name:<26} {kind.needs}" for kind in _KINDS)}

\b
Examples:
  wcet-probe plot tlsf.json cama.json --kind bound-against-observed -o a.svg
  wcet-probe plot cama.json --kind control-flow-graph --function grow -o b.svg

\b
Exit codes: 0 drawn, 1 failure, 2 bad usage, or a document without what the
  picture shows
"""
REPLAY_EPILOG = """\b
Examples:
  wcet-probe replay tlsf --seed 7
  wcet-probe replay tlsf --scenario worst-alloc --operations 100 --json

\b
Exit codes: 0 replayed, 1 failure of a build or the engine, 2 bad usage or
  input
"""


@click.command(epilog=PLOT_EPILOG)
@click.argument("files", nargs=-1, required=True, metavar="RESULT.json...", type=click.Path(path_type=Path))
@click.option("--kind", "name", required=True, metavar="KIND", help="What to draw, see below.")
@click.option("--function", metavar="NAME", help="Of control-flow-graph: the one to draw, instead of what fits.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="SVG to write.  [default: stdout]"
)
def plot(*, files: tuple[Path, ...], name: str, function: str | None, output: Path | None) -> int:
    """Draw results as one SVG, without the analyzer and without the emulator.

    RESULT.json is what --json printed.
    """
    kinds = {kind.name: kind for kind in _KINDS}
    if name not in kinds:
        raise unknown_name("kind of picture", name, kinds)
    if function and name != "control-flow-graph":
        raise UsageError("--function goes with --kind control-flow-graph; leave it out.")
    svg = _drawn(kinds[name], [_document(file) for file in files], function)
    if svg is None:
        shown = f"{function} is none of its functions, or " if function else ""
        raise UsageError(f"nothing to draw: {shown}{name} needs {kinds[name].needs}.")
    if output:
        from wcet_probe.output_files import write_whole

        write_whole(output, svg)
    else:
        click.echo(svg.encode(), nl=False)
    return ExitCode.OK


@click.command(epilog=REPLAY_EPILOG)
@click.argument("allocator", metavar="ALLOCATOR", shell_complete=completion.allocators)
@click.option(
    "--scenario",
    default="random",
    show_default=True,
    metavar="NAME",
    help="Whose operations.",
    shell_complete=completion.scenarios,
)
@click.option("--operations", type=int, metavar="N", help="Only the first N.  [default: all]")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, metavar="N", help="Seed of scenario random.")
@click.option("--target", metavar="NAME", help="Core.  [default: cortex-m4]", shell_complete=completion.targets)
@click.option("--heap", "heap_bytes", type=parse_size, metavar="SIZE", help="Size of the heap.  [default: 4MiB]")
@click.option("--param", "values", multiple=True, type=parameter_value, metavar="NAME=N", help="Build parameter.")
@click.option("--preset", metavar="NAME", help="Parameter values of the literature, such as p02.")
@click.option("--cc", "compiler", metavar="COMMAND", help="Compiler.  [default: zig]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@click.option("-v", "--verbose", is_flag=True, help="Tell each step on stderr, and the traceback of an error.")
def replay(
    *,
    allocator: str,
    scenario: str,
    operations: int | None,
    seed: int,
    target: str | None,
    heap_bytes: int | None,
    values: tuple[tuple[str, int], ...],
    preset: str | None,
    compiler: str | None,
    as_json: bool,
    quiet: bool,
    verbose: bool,
) -> int:
    """Count a workload operation by operation: the set-up of a scenario, then its measured call."""
    from wcet_probe.answer.probe import ProbeRequest
    from wcet_probe.answer.replay import replay as run
    from wcet_probe.catalog.lookup import load_allocator
    from wcet_probe.reports.screens.replay import render_replay, replay_document

    config = load_config(Path.cwd())
    request = ProbeRequest(
        allocator=load_allocator(allocator, dict(values), preset),
        target=configured_target(target, config),
        scenario=scenario,
        heap_bytes=heap_bytes or config.heap_bytes or DEFAULT_HEAP_BYTES,
        seed=seed,
        initial_cache=None,
        compiler=compiler or config.cc or DEFAULT_COMPILER,
        cross_check=False,
        cache_dir=cache_dir(config),
    )
    with streams.progress(quiet=quiet, verbose=verbose) as tell, naming_compiler(compiler, config):
        found = run(request, operations, tell)
    if as_json:
        streams.print_json(replay_document(request, found))
    else:
        render_replay(request, found, streams.result_console())
    return ExitCode.OK


def _drawn(kind: _Kind, documents: Sequence[Document], function: str | None) -> str | None:
    from wcet_probe.reports import pictures
    from wcet_probe.reports.screens.replay import replay_samples

    draw: Callable[..., str | None] = getattr(pictures, kind.name.replace("-", "_"))
    if kind.takes == "results":
        return draw([one for one in documents if one["format"] != "wcet-probe-replay"])
    single = [one for document in documents for one in _single(document)]
    if len(single) != 1:
        raise UsageError(f"{kind.name} shows one document, not {len(single)}; give one RESULT.json with one result.")
    is_replay = single[0]["format"] == "wcet-probe-replay"
    if is_replay is not (kind.takes == "replay"):
        return None
    if is_replay:
        return draw(replay_samples(single[0]), f"{kind.title}: {pictures.name_of(single[0])}")
    return draw(single[0], function) if kind.name == "control-flow-graph" else draw(single[0])


def _single(document: Document) -> Iterable[Document]:
    return document["results"] if document["format"] == "wcet-probe-results" else (document,)


def _document(file: Path) -> Document:
    try:
        document = json.loads(file.read_bytes())
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}; name a file that you can read.") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{file} is no JSON; give it what --json printed.") from error
    if isinstance(document, dict) and document.get("format") in _READABLE and document.get("version") == 1:
        return document
    raise UsageError(f"{file} is no document that can be drawn; give it what a run, growth or replay --json printed.")
