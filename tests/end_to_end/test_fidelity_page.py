"""Numbers of docs/explanation/fidelity.md, measured again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support import images_dir
from wcet_probe.answer.witness.bench import ProbeRequest
from wcet_probe.answer.witness.probe import observe
from wcet_probe.catalog.lookup import load_allocator, load_target

PAGE = (Path(__file__).parents[2] / "docs" / "explanation" / "fidelity.md").read_text("utf-8")
ROWS = {
    cells[0]: cells
    for line in PAGE.partition("## What was taken back")[2].partition("## Allocator by allocator")[0].splitlines()
    if len(cells := [cell.strip() for cell in line.strip("|").split("|")]) == 5
}


def most(name: str, target: str, scenario: str, heap_bytes: int, values: dict[str, int] | None = None):
    """Most instructions and most cycles of the known states."""
    asked = ProbeRequest(
        load_allocator(name, values or {}), load_target(target), scenario, heap_bytes, 0, None, "zig",
        cross_check=False, cache_dir=images_dir(),
    )  # fmt: skip
    return {unit: one.value(unit) for unit, one in observe(asked).witnesses.items()}


def number(text: str) -> int:
    return int(text.replace(",", ""))


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["worst-alloc", "worst-free"])
@pytest.mark.parametrize(
    "name", ["buddy-binary", "buddy-fibonacci", "quick-fit", "avl-best-fit", "first-fit", "best-fit", "dlmalloc28"]
)
def test_what_the_table_has_now_is_measured(name, scenario):
    cell = ROWS[name][2 if scenario == "worst-alloc" else 3]
    heap_bytes = 5000 if "at 5,000 bytes" in cell else 64 << 10
    now = re.findall(r"→ ([\d,]+\d)", cell) or re.findall(r"[\d,]+\d", cell.partition(":")[2])
    instructions, cycles = map(number, now)
    assert most(name, "cortex-m4", scenario, heap_bytes)["instructions"] == instructions
    assert most(name, "mpc603e", scenario, heap_bytes)["cycles"] == cycles


def test_what_tlsf_pays_for_a_flag_of_the_block_before():
    (row,) = (line for line in PAGE.splitlines() if "`tells-previous=1` in the presets" in line)
    without, flagged, *cycles = (number(one) for one in re.findall(r"\d+", row.split("|")[-2].replace("cortex-m4", "")))
    free, malloc = cycles[:2], cycles[2:]
    for at, values in enumerate(({}, {"tells-previous": 1})):
        found = most("tlsf", "cortex-m4", "worst-free", 64 << 10, values)
        assert (found["instructions"], found["cycles"]) == ((without, flagged)[at], free[at])
        assert most("tlsf", "cortex-m4", "worst-alloc", 64 << 10, values)["cycles"] == malloc[at]
