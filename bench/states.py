"""Worst states of 4 MiB: CPU seconds of set-up and measurement, on Unicorn alone and as the product does it.

Run it from the project's folder with ``python -m bench.states``; options: ``--target``, ``--scenario``, ``--heap``,
``--allocator`` (all, unless named). Each row is printed as soon as it is known. No bound is proved and no call repeated
in the second engine. The last two columns tell of set-ups whose translation was compiled for them, and the compiler's
seconds: what the product takes where the library is there, and what it would have waited for.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from pathlib import Path

from wcet_probe.answer.witness import probe
from wcet_probe.answer.witness.probe import ProbeRequest, observe
from wcet_probe.build.program import Program
from wcet_probe.catalog.lookup import allocator_names, load_allocator, load_target, target_names
from wcet_probe.compiled.library import compiled_library
from wcet_probe.config import cache_dir, load_config
from wcet_probe.emu.compiled import Translations
from wcet_probe.errors import WcetProbeError
from wcet_probe.model.report import Report
from wcet_probe.sizes import parse_size


def timed(ask: Callable[[], Report]) -> tuple[Report, float, float]:
    """An answer, CPU seconds of this process for it, and of the compilers that it called."""
    start, before = time.process_time(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    found = ask()
    return found, time.process_time() - start, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def row(name: str, target: str, scenario: str, heap_bytes: int) -> str:
    """One allocator on both: operations of the set-up, the measured instructions, seconds."""
    request = ProbeRequest(
        allocator=load_allocator(name),
        target=load_target(target),
        scenario=scenario,
        heap_bytes=heap_bytes,
        seed=1,
        initial_cache=None,
        compiler="zig",
        cross_check=False,
        cache_dir=cache_dir(load_config(Path.cwd())),
    )

    def forced(program: Program, folder: Path) -> Translations:
        return lambda detail, _: compiled_library(program, detail, folder)

    alone, engine, _ = timed(lambda: with_supply(lambda *_: None, request))
    product, seconds, _ = timed(lambda: observe(request))
    there, translated, compiler = timed(lambda: with_supply(forced, request))
    if not product.measurement == alone.measurement == there.measurement:
        raise AssertionError(f"{name}: the engines differ")
    counted = product.measurement.instructions
    times = f"{engine:.2f} | {seconds:.2f} | {translated:.2f} | {compiler:.1f}"
    return f"| {name} | {len(product.plan.trace):,} | {counted:,} | {times} |"


def with_supply(supply: Callable[[Program, Path], Translations | None], request: ProbeRequest) -> Report:
    """An answer for which translations come from ``supply``."""
    own = probe.translations
    try:
        probe.translations = supply
        return observe(request)
    finally:
        probe.translations = own


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", choices=target_names(), default="mpc603e")
    parser.add_argument("--scenario", default="worst-alloc")
    parser.add_argument("--heap", type=parse_size, default=4 << 20)
    parser.add_argument("--allocator", action="append", choices=allocator_names())
    options = parser.parse_args()
    print(
        "| allocator | operations | instructions measured | Unicorn s | product s | translated s | compiler s |",
        flush=True,
    )
    print("|---|--:|--:|--:|--:|--:|--:|", flush=True)
    for name in options.allocator or allocator_names():
        try:
            print(row(name, options.target, options.scenario, options.heap), flush=True)
        except WcetProbeError as error:
            print(f"| {name} | {error} | | | | | |", flush=True)


if __name__ == "__main__":
    main()
