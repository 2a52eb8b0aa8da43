"""Ordinary kernels: the proved bound beside the longest run, in instructions; a table in Markdown.

Run it from the project's folder with ``python -m bench.kernels``; it is the table of ``docs/explanation/bounds.md``.
"""

from __future__ import annotations

from statistics import median

from tests.kernel_suite import KERNELS, bound, worst_instructions
from tests.support import TARGETS


def main() -> None:
    """Print the table and the median ratio."""
    print("| kernel | target | bound | observed | ratio |\n|---|---|--:|--:|--:|")
    ratios = []
    for kernel in KERNELS:
        for target in TARGETS:
            proved, observed = bound(kernel, target).instructions, worst_instructions(kernel, target)
            if kernel.is_worst:
                ratios.append(proved / observed)
            mark = "" if kernel.is_worst else "*"
            print(f"| {kernel.name}{mark} | {target} | {proved:,} | {observed:,} | {proved / observed:.3f} |")
    print(f"\nMedian ratio of the kernels without a star: {median(ratios):.3f}")


if __name__ == "__main__":
    main()
