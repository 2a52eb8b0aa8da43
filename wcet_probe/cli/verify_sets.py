"""``wcet-probe verify-sets``: does an allocator keep to the cache sets that it specifies."""

# ruff: noqa: PLC0415  (engines and renderers are imported when they are needed)

from __future__ import annotations

from functools import reduce
from pathlib import Path

import click

from wcet_probe.catalog.cache_option import apply_cache_option
from wcet_probe.cli import completion, streams
from wcet_probe.cli.configured import DEFAULT_HEAP_BYTES, configured_target, naming_compiler
from wcet_probe.cli.run import DEFAULT_COMPILER, parameter_value
from wcet_probe.config import cache_dir, load_config
from wcet_probe.errors import UsageError
from wcet_probe.sizes import parse_size

_OPERATIONS = 1_000_000
EPILOG = """\b
Examples:
  wcet-probe verify-sets cama --target mpc603e
  wcet-probe verify-sets tlsf --target mpc603e --operations 20000 --json
  wcet-probe verify-sets cama --target mpc603e --deduce all --smt-lib questions
  wcet-probe verify-sets cama --target mpc603e --deduce all --certificate FILE
  wcet-probe verify-sets cama --target mpc603e --check FILE --solver cvc5

\b
Exit codes: 0 proven, 1 failure of a build or the engine, or a certificate
  that does not check, 2 bad usage or input, 4 not proven, 5 refuted by an observation, 7 proven if lemmas hold
"""


@click.command("verify-sets", epilog=EPILOG)
@click.argument("allocator", metavar="ALLOCATOR", shell_complete=completion.allocators)
@click.option("--target", metavar="NAME", help="Core.  [default: cortex-m4]", shell_complete=completion.targets)
@click.option("--heap", "heap_bytes", type=parse_size, metavar="SIZE", help="Size of the heap.  [default: 4MiB]")
@click.option(
    "--operations",
    type=click.IntRange(0, 1 << 30),
    default=_OPERATIONS,
    show_default=True,
    metavar="N",
    help="Random operations, besides the worst states.",
)
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, metavar="N", help="Seed of the operations.")
@click.option("--no-operations", is_flag=True, help="Prove only; run nothing.")
@click.option(
    "--deduce",
    "deduced",
    multiple=True,
    type=click.Choice(
        ("init", "caller", "free-small", "free-large", "malloc-small", "malloc-large", "malloc-grow", "all")
    ),
    help="Show that an operation, or what the caller writes, keeps CAMA's claims; repeatable. Needs z3.",
)
@click.option(
    "--smt-lib",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="With --deduce: write what was shown, as scripts for any SMT solver.",
)
@click.option(
    "--certificate",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="With --deduce: write what it rests on, for --check.",
)
@click.option(
    "--check",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Deduce by the answers in such a certificate, and ask a solver all of them.",
)
@click.option("--solver", type=click.Choice(("z3", "cvc5")), help="That --check asks.  [default: z3]")
@click.option("--cache", "caches", multiple=True, metavar="SPEC", help="Change the caches, as of a run; repeatable.")
@click.option("--param", "values", multiple=True, type=parameter_value, metavar="NAME=N", help="Build parameter.")
@click.option("--preset", metavar="NAME", help="Parameter values of the literature.")
@click.option("--cc", "compiler", metavar="COMMAND", help="Compiler.  [default: zig]")
@click.option("--svg", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Draw the sets, too.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@click.option("-v", "--verbose", is_flag=True, help="Tell each step on stderr, and the traceback of an error.")
def verify_sets(
    *,
    allocator: str,
    target: str | None,
    heap_bytes: int | None,
    operations: int,
    seed: int,
    no_operations: bool,
    deduced: tuple[str, ...],
    smt_lib: Path | None,
    certificate: Path | None,
    check: Path | None,
    solver: str | None,
    caches: tuple[str, ...],
    values: tuple[tuple[str, int], ...],
    preset: str | None,
    compiler: str | None,
    svg: Path | None,
    as_json: bool,
    quiet: bool,
    verbose: bool,
) -> int:
    """Prove which cache sets malloc and free touch, and hold operations to it.

    For every state of the heap each data access is to be in the sets of static data and descriptors, in the call's own
    block, or on the stack; the number of accesses is to be bounded by a constant. The worst states and random
    operations are then run, and all that they touch is compared.
    """
    from wcet_probe.cache_sets.certificate_files import certificate_files
    from wcet_probe.cache_sets.question_scripts import ready_for_scripts, write_scripts
    from wcet_probe.cache_sets.verdict import SetRequest
    from wcet_probe.cache_sets.verdict import verify_sets as verify
    from wcet_probe.catalog.lookup import load_allocator
    from wcet_probe.reports.screens.verify_sets import render_sets, sets_document, sets_picture

    if smt_lib is not None and not (deduced or check):
        raise UsageError("--smt-lib writes what --deduce shows; give both.")
    files, deduced = certificate_files(certificate, check, solver, deduced)
    config = load_config(Path.cwd())
    request = SetRequest(
        allocator=load_allocator(allocator, dict(values), preset),
        target=reduce(apply_cache_option, caches, configured_target(target, config)),
        heap_bytes=heap_bytes or config.heap_bytes or DEFAULT_HEAP_BYTES,
        operations=None if no_operations else operations,
        seed=seed,
        compiler=compiler or config.cc or DEFAULT_COMPILER,
        cache_dir=cache_dir(config),
        deduced=deduced,
    )
    if smt_lib is not None:
        ready_for_scripts(smt_lib)
    with streams.progress(quiet=quiet, verbose=verbose) as tell, naming_compiler(compiler, config):
        report = verify(request, tell, files)
    if svg:
        from wcet_probe.output_files import write_whole

        write_whole(svg, sets_picture(report))
    if as_json:
        streams.print_json(sets_document(report))
    else:
        render_sets(report, streams.result_console())
    if smt_lib is not None:
        click.echo(write_scripts(smt_lib, report.deduced), err=True)
    return report.exit_code
