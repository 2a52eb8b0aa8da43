"""``wcet-probe facts``: the facts that a bound still needs, all at once; and hashes of facts brought up to date."""

# ruff: noqa: PLC0415  (the analyzer is imported when it is needed)

from __future__ import annotations

import shlex
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wcet_probe.catalog.cache_option import apply_cache_option
from wcet_probe.cli import completion, streams
from wcet_probe.cli.configured import configured_target, default_heap_bytes
from wcet_probe.cli.run import DEFAULT_COMPILER, parameter_value
from wcet_probe.config import Config, cache_dir, load_config
from wcet_probe.errors import UsageError, unknown_name
from wcet_probe.sizes import parse_size

if TYPE_CHECKING:
    from wcet_probe.analyzer.request import BoundRequest
    from wcet_probe.answer.facts.fact_table import FactRow
    from wcet_probe.answer.facts.proved_facts import ProvedFacts
    from wcet_probe.build.program import Program
    from wcet_probe.cache_sets.certificate_files import CertificateFiles
    from wcet_probe.model.allocator import Allocator
    from wcet_probe.model.target import Target
    from wcet_probe.progress import Progress

EPILOG = """\b
Examples:
  wcet-probe facts firmware.elf --entry control_step >facts.toml
  wcet-probe facts firmware.elf --entry control_step --facts facts.toml --bless
  wcet-probe facts ./my-pool --entry malloc --heap 16KiB
  wcet-probe facts first-fit --prove --target mpc603e
  wcet-probe facts all --prove --target mpc603e
  wcet-probe facts cama --prove --deduce --target mpc603e
  wcet-probe facts half-fit --prove --deduce --target mpc603e --certificate FILE
  wcet-probe facts half-fit --prove --deduce --target mpc603e --check FILE

\b
Exit codes: 0 told, or brought up to date, 1 failure, 2 bad usage or input
"""
_ALL = "all"
_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command(epilog=EPILOG)
@click.argument("what", metavar="FILE.elf|ALLOCATOR|all", shell_complete=completion.allocators)
@click.option("--entry", metavar="FUNCTION", help="The function; malloc or free of an ALLOCATOR.")
@click.option("--target", metavar="NAME", help="Core.  [default: cortex-m4]", shell_complete=completion.targets)
@click.option("--facts", "files", multiple=True, type=click.Path(path_type=Path), metavar="FILE", help="Known facts.")
@click.option("--source", multiple=True, type=_FOLDER, metavar="DIR", help="Sources; repeatable.")
@click.option(
    "--param", "values", multiple=True, type=parameter_value, metavar="NAME=N", help="Parameter of the facts."
)
@click.option("--cache", "caches", multiple=True, metavar="SPEC", help="Change the caches, as of a run; repeatable.")
@click.option("--heap", "heap_bytes", type=parse_size, metavar="SIZE", help="Of an ALLOCATOR.  [default: 4MiB]")
@click.option("--bless", is_flag=True, help="Show what changed since FILE was written, and put today's hashes in.")
@click.option("--prove", is_flag=True, help="Of an ALLOCATOR: which alignments that its facts assert are proved.")
@click.option(
    "--certificate",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="With --prove: write what 'wcet-probe verify' can check by induction; with --deduce: for --check.",
)
@click.option(
    "--check",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="With --deduce: go by the answers in such a certificate, and ask a solver all of them.",
)
@click.option("--solver", type=click.Choice(("z3", "cvc5")), help="That --check asks.  [default: z3]")
@click.option("--deduce", is_flag=True, help="With --prove: of cama or half-fit by a solver, in minutes. Needs z3.")
@click.option(
    "--smt-lib",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="With --deduce: write what was shown, as scripts for any SMT solver.",
)
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@click.option("-v", "--verbose", is_flag=True, help="Tell each step on stderr, and the traceback of an error.")
def facts(
    *,
    what: str,
    entry: str | None,
    target: str | None,
    files: tuple[Path, ...],
    source: tuple[Path, ...],
    values: tuple[tuple[str, int], ...],
    caches: tuple[str, ...],
    heap_bytes: int | None,
    bless: bool,
    prove: bool,
    certificate: Path | None,
    check: Path | None,
    solver: str | None,
    deduce: bool,
    smt_lib: Path | None,
    quiet: bool,
    verbose: bool,
) -> None:
    """Print the facts that a bound of FUNCTION still needs, all at once, as a file to be filled in.

    An ALLOCATOR is named as elsewhere, one's own by the path of its folder; its own facts are known.

    Each open loop, call and recursion has the lines that are accepted, with the hash, and the text of its function.
    Then come ranges of arguments and alignments of pointers that would help, found by trial.

    With --bless: the one FILE of --facts is brought up to date where functions have changed, after it was shown how.

    With --prove and --deduce: the facts of cama and half-fit are held against what a solver shows of all operations.

    With --prove: tell of each alignment that the ALLOCATOR's facts assert whether it follows from what its operations
    store, under which lemmas, and where it does not; of all allocators, a table of all facts about pointers and words.
    With --certificate: write the invariants as well, for 'wcet-probe verify' to test without the analyzer; with
    --deduce: the claims and answers, for --check.
    """
    from wcet_probe.answer.firmware.firmware import FirmwareRequest, read_firmware

    config = load_config(Path.cwd())
    core = reduce(apply_cache_option, caches, configured_target(target, config))
    if deduce and not prove:
        raise UsageError("--deduce shows what --prove asks for; give both.")
    of_deduction = _files(what, (certificate, check, smt_lib), solver, prove=prove and not caches, deduce=deduce)
    if prove:
        left_out = entry, *files, *source, bless
        with streams.progress(quiet=quiet, verbose=verbose) as tell:
            if what == _ALL:
                text = _table((*left_out, *values), core, config, heap_bytes, tell, deduce=deduce)
            else:
                written = certificate, smt_lib, of_deduction
                text = _prove(what, left_out, dict(values), core, config, heap_bytes, tell, written, deduce=deduce)
        click.echo(text, nl=False)
        return
    if entry is None:
        raise UsageError("missing option '--entry'; name the function, or ask for --prove of an allocator.")
    with streams.progress(quiet=quiet, verbose=verbose) as tell:
        if _is_allocator(what):
            if files or bless or source:
                raise UsageError(f"{what} has its facts beside its manifest; leave --facts, --bless and --source out.")
            from wcet_probe.catalog.lookup import load_allocator

            allocator = load_allocator(f"{what}/" if Path(what).is_dir() else what, dict(values))
            asked = _of_allocator(allocator, entry, core, config, heap_bytes)
        else:
            roots = source or (Path(what).parent, Path.cwd())
            asked = read_firmware(FirmwareRequest(Path(what), entry, core, files, roots, dict(values)), tell).asked
        text = "" if bless else _missing(asked, tell)
    if bless:
        _bless(asked, files)
    else:
        click.echo(text, nl=False)


def _prove(  # noqa: PLR0917  an allocator and what it is asked on
    what: str,
    left_out: tuple[object, ...],
    values: dict[str, int],
    core: Target,
    config: Config,
    heap: int | None,
    tell: Progress,
    written: tuple[Path | None, Path | None, CertificateFiles],
    *,
    deduce: bool,
) -> str:
    from wcet_probe.answer.facts.proved_facts import proved_facts, proved_facts_text
    from wcet_probe.build.program import load_program
    from wcet_probe.catalog.lookup import load_allocator

    if any(left_out) or not _is_allocator(what):
        raise UsageError("--prove asks of an allocator's own facts; leave --entry, --facts, --source and --bless out.")
    allocator = load_allocator(f"{what}/" if Path(what).is_dir() else what, values)
    heap_bytes = heap or default_heap_bytes(allocator, config)
    program = load_program(allocator, core, config.cc or DEFAULT_COMPILER, cache_dir(config), heap_bytes)
    certificate, smt_lib, files = written
    found = _deduced(program, heap_bytes, tell, files, smt_lib) if deduce else proved_facts(program, heap_bytes)
    text = proved_facts_text(program, found)
    if certificate is None or deduce:
        return text
    click.echo(text, nl=False)
    return _certified(program, heap_bytes, certificate, tell)


def _certified(program: Program, heap_bytes: int, file: Path, tell: Progress) -> str:
    """Write the module certificate of ``program`` into ``file``, its image beside, and say what it is of."""
    from wcet_probe.answer.bounds.module_certificate import module_certificate
    from wcet_probe.output_files import write_whole
    from wcet_probe.reports.formats.bound_document import tool_section
    from wcet_probe.reports.formats.document import dumps

    document = {**module_certificate(program, heap_bytes, tell), "tool": tool_section()}
    image = file.with_name(f"{file.name}.elf")
    write_whole(image, program.image.elf)
    write_whole(file, dumps(document))
    facts = ", ".join(one["where"] for one in document["facts"]) or "no fact"
    command = shlex.join(["wcet-probe", "verify", str(file), "--image", str(image)])
    return f"certificate {file}: alignments of {facts}\nit is checked by: {command}\n"


def _files(
    what: str, given: tuple[Path | None, Path | None, Path | None], solver: str | None, *, prove: bool, deduce: bool
) -> CertificateFiles:
    """What becomes of the certificate of what is deduced, by the files of a certificate, a check and of scripts."""
    certificate, check, smt_lib = given
    if smt_lib is not None and (not deduce or what == _ALL):
        raise UsageError("--smt-lib writes what --deduce shows of one ALLOCATOR; give both.")
    if certificate is not None and (not prove or what == _ALL):
        raise UsageError("--certificate is of one ALLOCATOR and --prove, without --cache.")
    if check is not None and (not deduce or what == _ALL):
        raise UsageError("--check is of what --deduce shows of one ALLOCATOR; give both.")
    from wcet_probe.cache_sets.certificate_files import certificate_files

    deduced = (_ALL,) if deduce and check is None else ()
    return certificate_files(certificate if deduce else None, check, solver, deduced)[0]


def _deduced(
    program: Program, heap_bytes: int, tell: Progress, files: CertificateFiles, smt_lib: Path | None = None
) -> ProvedFacts:
    from wcet_probe.cache_sets.certificate_files import deduced_by
    from wcet_probe.cache_sets.claimed import claimed
    from wcet_probe.cache_sets.deduced_facts import deduced_facts
    from wcet_probe.cache_sets.question_scripts import ready_for_scripts, write_scripts

    claims = claimed(program.allocator.name)
    if smt_lib is not None:
        ready_for_scripts(smt_lib)
    parts = deduced_by(files, program, partial(claims.deduce, program, tell), tell)
    if smt_lib is not None:
        click.echo(write_scripts(smt_lib, parts), err=True)
    return deduced_facts(program, heap_bytes, parts)


def _table(
    left_out: tuple[object, ...], core: Target, config: Config, heap: int | None, tell: Progress, *, deduce: bool
) -> str:
    """The table of the facts of all allocators that are delivered."""
    from wcet_probe.answer.facts.fact_table import fact_rows
    from wcet_probe.build.program import load_program
    from wcet_probe.cache_sets.certificate_files import NO_FILES
    from wcet_probe.cache_sets.claimed import CLAIMED
    from wcet_probe.catalog.lookup import allocator_names, load_allocator
    from wcet_probe.reports.screens.fact_table import fact_table_text

    if any(left_out):
        raise UsageError("--prove asks of all own facts; leave --entry, --facts, --source, --param and --bless out.")
    if core.dcache is None:
        raise UsageError(
            f"alignments are proved where there is a data cache, and {core.name} has none: --target mpc603e."
        )
    rows: list[FactRow] = []
    for name in allocator_names():
        allocator = load_allocator(name)
        heap_bytes = heap or default_heap_bytes(allocator, config)
        tell(f"proving facts of {name}")
        program = load_program(allocator, core, config.cc or DEFAULT_COMPILER, cache_dir(config), heap_bytes)
        found = _deduced(program, heap_bytes, tell, NO_FILES) if deduce and name in CLAIMED else None
        rows += fact_rows(program, heap_bytes, found)
    return fact_table_text(rows)


def _missing(asked: BoundRequest, tell: Progress) -> str:
    from wcet_probe.answer.facts.fact_skeleton import fact_skeleton, skeleton_text

    return skeleton_text(fact_skeleton(asked, tell), asked.target.name)


def _is_allocator(what: str) -> bool:
    from wcet_probe.catalog.lookup import allocator_names, configured_names

    return Path(what).is_dir() or what in allocator_names() or what in configured_names()


def _of_allocator(
    allocator: Allocator, role: str, core: Target, config: Config, heap_bytes: int | None
) -> BoundRequest:
    from wcet_probe.answer.bounds.proving import operation_request
    from wcet_probe.build.program import load_program

    roles = {"malloc", "free"}
    if role not in roles:
        raise unknown_name(f"entry of {allocator.name}", role, roles)
    heap = heap_bytes or default_heap_bytes(allocator, config)
    program = load_program(allocator, core, config.cc or DEFAULT_COMPILER, cache_dir(config), heap)
    return operation_request(program, role, heap)


def _bless(asked: BoundRequest, files: tuple[Path, ...]) -> None:
    from wcet_probe.answer.facts.fact_blessing import blessed
    from wcet_probe.output_files import write_whole

    if len(files) != 1:
        raise UsageError(f"--bless brings one file of facts up to date, not {len(files)}; name one with --facts.")
    text, changes = blessed(asked, files[0].read_text("utf-8"))
    for change in changes:
        click.echo(f"{change.where}: {change.function} is {change.new}, was {change.old or 'without a hash'}")
        for line in change.difference:
            click.echo(f"  {line}")
    if changes:
        write_whole(files[0], text)
    click.echo(f"{files[0]}: {len(changes)} hashes brought up to date; each says that its fact still holds.")
