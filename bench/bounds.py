"""How tight the bounds of the allocators are: bound and dearest witness, and their ratio, in instructions or in cycles.

Run with ``python -m bench.bounds [--heap SIZE] [--cycles] [ALLOCATOR ...]``; it prints the tables of
``docs/explanation/bounds.md``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from platformdirs import user_cache_dir

from wcet_probe.answer.probe import ProbeRequest, observe
from wcet_probe.catalog.lookup import allocator_names, load_allocator, load_target, target_names
from wcet_probe.errors import WcetProbeError
from wcet_probe.model.report import Report
from wcet_probe.sizes import parse_size

_SCENARIOS = {"malloc": "worst-alloc", "free": "worst-free"}
_CACHED_TARGETS = ("arm926ej-s", "mpc603e")
_TARGETS = ("cortex-m4", *_CACHED_TARGETS)


def main() -> None:
    """Print a row for each allocator, target and operation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--heap", type=parse_size, default=4 << 20, help="size of the heap, such as 64KiB")
    parser.add_argument("--cycles", action="store_true", help="cycles, on the targets with caches")
    parser.add_argument("--target", action="append", choices=target_names(), help="of these targets only")
    parser.add_argument("allocators", nargs="*", default=allocator_names())
    options = parser.parse_args()
    targets = options.target or (_CACHED_TARGETS if options.cycles else _TARGETS)
    print("| allocator | target | operation | bound | witness | ratio |\n|---|---|---|--:|--:|--:|")
    for name in options.allocators:
        for row in _rows(name, targets, options.heap, in_cycles=options.cycles):
            print(f"| {' | '.join(row)} |", flush=True)


def _rows(name: str, targets: Sequence[str], heap_bytes: int, *, in_cycles: bool) -> Iterator[tuple[str, ...]]:
    for target in targets:
        for role, scenario in _SCENARIOS.items():
            request = ProbeRequest(
                allocator=load_allocator(name),
                target=load_target(target),
                scenario=scenario,
                heap_bytes=heap_bytes,
                seed=0,
                initial_cache=None,
                compiler="zig",
                cross_check=False,
                cache_dir=Path(user_cache_dir("wcet-probe")),
                prove=True,
            )
            try:
                report = observe(request)
            except WcetProbeError as error:
                yield name, target, role, "-", "-", str(error)
                continue
            proved, witness = _numbers(report, in_cycles=in_cycles)
            if proved is None:
                yield name, target, role, "none", f"{witness:,}", ""
                continue
            yield name, target, role, f"{proved:,}", f"{witness:,}", f"{proved / witness:.3f}"


def _numbers(report: Report, *, in_cycles: bool) -> tuple[int | None, int]:
    """The bound, None where there is none, and the dearest known call."""
    unit = "cycles" if in_cycles else "instructions"
    return getattr(report.bound, unit, None), report.witnesses[unit].value(unit)


if __name__ == "__main__":
    main()
