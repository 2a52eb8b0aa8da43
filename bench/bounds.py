"""How tight the bounds of the allocators are: bound and dearest witness in instructions, and their ratio.

Run with ``python -m bench.bounds [--heap SIZE] [ALLOCATOR ...]``; it is the table of ``docs/explanation/bounds.md``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from platformdirs import user_cache_dir

from wcet_probe.catalog import allocator_names, load_allocator, load_target, target_names
from wcet_probe.errors import WcetProbeError
from wcet_probe.probe import ProbeRequest, observe
from wcet_probe.sizes import parse_size

_SCENARIOS = {"malloc": "worst-alloc", "free": "worst-free"}


def main() -> None:
    """Print a row for each allocator, target and operation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--heap", type=parse_size, default=4 << 20, help="size of the heap, such as 64KiB")
    parser.add_argument("allocators", nargs="*", default=allocator_names())
    options = parser.parse_args()
    print("| allocator | target | operation | bound | witness | ratio |\n|---|---|---|--:|--:|--:|")
    for name in options.allocators:
        for row in _rows(name, options.heap):
            print(f"| {' | '.join(row)} |", flush=True)


def _rows(name: str, heap_bytes: int) -> Iterator[tuple[str, ...]]:
    for target in target_names():
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
            witness = max(candidate.instructions for candidate in report.candidates)
            if report.bound is None:
                yield name, target, role, "none", f"{witness:,}", ""
                continue
            proved = report.bound.instructions
            yield name, target, role, f"{proved:,}", f"{witness:,}", f"{proved / witness:.3f}"


if __name__ == "__main__":
    main()
