"""``wcet-probe ALLOCATOR``: one answer for each combination of target and heap."""

# ruff: noqa: PLC0415  (engines are imported when they are needed: `wcet-probe tlsf --help` starts in a blink)

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial, reduce
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wcet_probe.catalog.cache_option import apply_cache_option
from wcet_probe.cli import completion, streams
from wcet_probe.cli.configured import configured_target, default_heap_bytes, naming_compiler
from wcet_probe.config import cache_dir, load_config
from wcet_probe.errors import AnalysisError, ExitCode, UsageError, unknown_name
from wcet_probe.model.report import Report, Verdict
from wcet_probe.model.scenario import InitialCache
from wcet_probe.progress import Progress
from wcet_probe.sizes import format_size, parse_size

if TYPE_CHECKING:
    from wcet_probe.answer.bounds.gap import Account
    from wcet_probe.answer.witness.bench import ProbeRequest
    from wcet_probe.answer.witness.probe import Proving
    from wcet_probe.model.allocator import Allocator

DEFAULT_SCENARIO = "worst-alloc"
DEFAULT_COMPILER = "zig"
PROVE_ANEW_VARIABLE = "WCET_PROBE_PROVE_ANEW"

EXIT_CODES = {
    Verdict.OBSERVED: ExitCode.OK,
    Verdict.BOUNDED: ExitCode.OK,
    Verdict.BOUNDED_BY_TYPE: ExitCode.NO_BOUND,
    Verdict.OVER_BUDGET: ExitCode.OVER_BUDGET,
    Verdict.UNBOUNDED: ExitCode.NO_BOUND,
    Verdict.CONTRADICTED: ExitCode.CONTRADICTION,
}
EPILOG = """\b
Caches: --cache [i:|d:|both:]KEY=VALUE[,KEY=VALUE...] or --cache [i:|d:]none
  size=16KiB sets=128 ways=4 line=32  size = sets x ways x line: three fix the
                   fourth; of what is not given, the target's line, then ways,
                   then size are kept. A new cache needs size, ways and line.
  policy=lru|fifo|plru|random|round-robin  seed=N
  write=back|through  allocate=yes|no  (data cache only)

\b
Examples:
  wcet-probe tlsf --scenario worst-free --heap 64K --heap 4M
  wcet-probe tlsf --why
  wcet-probe tlsf --target mpc603e --cache d:size=8K,policy=fifo --json

\b
Exit codes: 0 bounded or, with --no-bound, observed, 1 failure, 2 bad usage
  or input, 3 over budget, 4 no bound established, 5 contradiction,
  130 interrupted, 141 the reader of the output went away
"""


def _initial_cache(name: str) -> InitialCache:
    known = {content.value: content for content in InitialCache}
    if name not in known:
        raise unknown_name("initial cache", name, known)
    return known[name]


def parameter_value(text: str) -> tuple[str, int]:
    """Name and value of a build parameter, from ``NAME=NUMBER``."""
    name, _, value = text.partition("=")
    try:
        return name, int(value)
    except ValueError:
        raise UsageError(f"parameter {text!r} is not NAME=NUMBER: see wcet-probe show ALLOCATOR for both.") from None


@click.command(epilog=EPILOG)
@click.option(
    "--scenario",
    default=DEFAULT_SCENARIO,
    show_default=True,
    metavar="NAME",
    help="State and call.",
    shell_complete=completion.scenarios,
)
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="NAME",
    help="Core; repeatable.  [default: cortex-m4]",
    shell_complete=completion.targets,
)
@click.option("--heap", "heaps", multiple=True, type=parse_size, metavar="SIZE", help="Repeatable.  [default: 4MiB]")
@click.option("--cache", "caches", multiple=True, metavar="SPEC", help="Change the caches, see below; repeatable.")
@click.option(
    "--param", "values", multiple=True, type=parameter_value, metavar="NAME=N", help="Build parameter; repeatable."
)
@click.option("--preset", metavar="NAME", help="Parameter values of the literature, such as p02.")
@click.option("--initial-cache", type=_initial_cache, metavar="cold|warm|dirty", help="Caches at entry of the call.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, metavar="N", help="Seed of scenario random.")
@click.option("--cc", "compiler", metavar="COMMAND", help="zig, the packaged one, or e.g. clang-19.  [default: zig]")
@click.option(
    "--prove-anew", is_flag=True, envvar=PROVE_ANEW_VARIABLE, help="Take no bound from the cache: prove it in this run."
)
@click.option("--no-bound", is_flag=True, help="Observe only; prove no upper bound.")
@click.option("--why", is_flag=True, help="The worst path, the gap to the observed one, all assumptions.")
@click.option("--fact-effects", is_flag=True, help="As --why, and the bound without each fact.")
@click.option("--prove-facts", is_flag=True, help="Try to prove alignments of pointers that facts assert.")
@click.option("--deduce", is_flag=True, help="With --prove-facts: of cama or half-fit by a solver. Needs z3.")
@click.option(
    "--cross-check/--no-cross-check", default=None, help="Repeat the call in a second engine, however long it is."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@click.option("-v", "--verbose", is_flag=True, help="Tell each step on stderr, and the traceback of an error.")
@click.pass_context
def run(
    ctx: click.Context,
    *,
    scenario: str,
    targets: tuple[str, ...],
    heaps: tuple[int, ...],
    caches: tuple[str, ...],
    values: tuple[tuple[str, int], ...],
    preset: str | None,
    initial_cache: InitialCache | None,
    seed: int,
    compiler: str | None,
    prove_anew: bool,
    no_bound: bool,
    why: bool,
    fact_effects: bool,
    prove_facts: bool,
    deduce: bool,
    cross_check: bool | None,
    as_json: bool,
    quiet: bool,
    verbose: bool,
) -> int:
    """Prove an upper bound of a call, reach the heap state of a scenario, and count the call from there.

    Several targets or heaps give one answer for each combination, in one table.
    """
    if (why or fact_effects) and no_bound:
        raise UsageError(f"{'--why' if why else '--fact-effects'} explains a bound; leave --no-bound out.")
    if prove_facts and no_bound:
        raise UsageError("--prove-facts proves what a bound rests on; leave --no-bound out.")
    if deduce and not prove_facts:
        raise UsageError("--deduce shows what --prove-facts asks for; give both.")
    from wcet_probe.answer.bounds.bound_store import BoundStore
    from wcet_probe.answer.witness import bench, probe
    from wcet_probe.catalog.lookup import load_allocator

    config = load_config(Path.cwd())
    allocator = load_allocator(ctx.info_name or "", dict(values), preset)
    names: Iterable[str | None] = dict.fromkeys(targets) or (None,)
    cores = [reduce(apply_cache_option, caches, configured_target(name, config)) for name in names]
    sizes = dict.fromkeys(heaps or (default_heap_bytes(allocator, config),))
    is_long = why or fact_effects
    store = None if prove_anew or prove_facts or is_long or as_json else BoundStore(cache_dir(config))
    proving: Proving | None = store
    reports: list[Report] = []
    accounts: list[Account | None] = []
    with streams.progress(quiet=quiet, verbose=verbose) as tell, naming_compiler(compiler, config):
        proving = _claiming(allocator, tell, deduce=deduce) if prove_facts else proving
        asked = [*product(cores, sizes)]
        for done, (core, heap_bytes) in enumerate(asked):
            request = bench.ProbeRequest(
                allocator=allocator,
                target=core,
                scenario=scenario,
                heap_bytes=heap_bytes,
                seed=seed,
                initial_cache=initial_cache,
                compiler=compiler or config.cc or DEFAULT_COMPILER,
                cross_check=cross_check,
                cache_dir=cache_dir(config),
                prove=not no_bound,
                cache_options=caches,
            )
            parts = (done, len(asked)) if len(asked) > 1 else (0, 0)
            told = partial(_tell_about, tell, request, parts)
            reports.append(probe.observe(request, told, proving=proving))
            accounts.append(long_account(request, reports[-1], told, each_fact=fact_effects) if is_long else None)
    _print(reports, accounts, as_json=as_json)
    if store is not None and store.recalled:
        names = " and ".join(dict.fromkeys(store.recalled))
        said = f"the bounds of {names} were proved by an earlier run, of the same image, facts, target and program"
        click.echo(f"wcet-probe: {said}; --prove-anew proves them again.", err=True)
    return max(EXIT_CODES[report.verdict] for report in reports)


def _claiming(allocator: Allocator, tell: Progress, *, deduce: bool) -> Proving:
    """A proof of bounds of ``allocator`` that tries its facts about pointers, by a solver if ``deduce``.

    Raises:
        UsageError: no claims are written for it that a solver could be asked.
    """
    from wcet_probe.answer.facts.proved_assumptions import claiming

    if not deduce:
        from wcet_probe.evidence.checking import proofs_follow

        return claiming(confirmed=proofs_follow)
    from wcet_probe.analyzer.deduction.asked import asking_z3
    from wcet_probe.cache_sets.claimed import claimed
    from wcet_probe.cache_sets.deduced_facts import deduced_facts

    own = claimed(allocator.name)

    return claiming(
        deduced=lambda program, heap_bytes: deduced_facts(program, heap_bytes, own.deduce(program, tell, asking_z3))
    )


def _tell_about(tell: Progress, request: ProbeRequest, parts: tuple[int, int], text: str) -> None:
    tell(f"{request.allocator.name} on {request.target.name}, heap {format_size(request.heap_bytes)}: {text}", *parts)


def long_account(
    request: ProbeRequest, report: Report, tell: Callable[[str], None], *, each_fact: bool = False
) -> Account | None:
    """Where the slack comes from, what the facts do, and the bound as a formula, as --why tells; None without a bound.

    With ``each_fact`` the bound without each fact, too.
    """
    from wcet_probe.answer.bounds.gap import Account, block_gaps
    from wcet_probe.answer.bounds.proving import operation_formula, operation_request
    from wcet_probe.answer.facts.fact_effects import fact_effects
    from wcet_probe.answer.facts.fact_skeleton import pointer_candidates
    from wcet_probe.build.program import load_program
    from wcet_probe.model.proof import Units

    if report.bound is None:
        return None
    program = load_program(report.allocator, report.target, request.compiler, request.cache_dir, request.heap_bytes)
    seen = report.witnesses["instructions"].measurement
    gaps = block_gaps(report.bound, seen, report.image, program.instructions)
    tell("proving bounds of other heap sizes")
    try:
        formula = operation_formula(program, report.plan.measured.kind, report.heap_bytes)
    except (AnalysisError, UsageError):
        formula = None  # what holds for this heap need not be provable for smaller ones
    asked = operation_request(program, report.plan.measured.kind, report.heap_bytes)
    proved = Units(report.bound.instructions, report.bound.cycles)
    effects = fact_effects(asked, proved, each=each_fact, progress=tell)
    return Account(gaps, seen.instructions, formula, effects, tuple(pointer_candidates(asked, tell)))


def _print(reports: Sequence[Report], accounts: Sequence[Account | None], *, as_json: bool) -> None:
    if as_json:
        from wcet_probe.reports.formats.document import document, results_document

        documents = list(map(document, reports, accounts))
        streams.print_json(documents[0] if len(documents) == 1 else results_document(documents))
        return
    from wcet_probe.reports.screens.terminal import render, render_comparison

    console = streams.result_console()
    if len(reports) > 1:
        render_comparison(reports, console)
    for report, account in zip(reports, accounts, strict=True):
        if account is not None and report.bound is not None:
            from wcet_probe.reports.screens.why import render_why

            if len(reports) > 1:
                console.print()
            render_why(report, report.bound, account, console)
        elif len(reports) == 1:
            render(report, console)
