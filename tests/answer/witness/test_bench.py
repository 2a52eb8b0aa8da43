"""What must hold of the block that a measured call of an allocator of one's own serves."""

from __future__ import annotations

import pytest

from tests.answer.studies.test_own_steps import BUMP, HEADER
from tests.catalog.test_own_allocator import request
from wcet_probe.answer.witness.probe import observe
from wcet_probe.errors import StateError

LARGE = "size_t const whole = 8 + (bytes + 7) / 8 * 8;"
WRONG = {
    "blocks that overlap": "if (bytes > 128 && list) return end - 4096 + 8;",
    "blocks not aligned": "if (bytes > 128 && list) return next + 4;",
    "blocks outside the heap": "if (bytes > 128 && list) return end - 8;",
}


def paged(source: str) -> str:
    """``source``, where a large block needs more of the heap than its size says."""
    return source.replace(LARGE, f"{LARGE}\n    if (bytes > 1000 && end - next < 9000) return 0;")


@pytest.mark.parametrize("fact", WRONG)
def test_it_lies_in_the_heap_and_beside_the_others_too(fact, tmp_path):
    """Such a call comes last only, so that the set-up's blocks are right."""
    (tmp_path / "manifest.toml").write_text(HEADER, "utf-8")
    (tmp_path / "bump.c").write_text(BUMP.replace(LARGE, f"{LARGE}\n    {WRONG[fact]}"), "utf-8")
    with pytest.raises(StateError, match=f"gave 0x[0-9a-f]+, with which {fact} is 1, and must be 0"):
        observe(request(f"{tmp_path}/", "checkerboard"))


def test_a_state_whose_block_the_heap_refuses_is_left_out_and_others_are_measured(tmp_path):
    """Large blocks take whole pages, which no number of the manifest says of small ones."""
    (tmp_path / "manifest.toml").write_text(HEADER, "utf-8")
    (tmp_path / "bump.c").write_text(paged(BUMP), "utf-8")
    told: list[str] = []
    report = observe(request(f"{tmp_path}/", "worst-free", 16384), told.append)
    assert report.bound
    assert [one for one in told if one.startswith("left out: the heap refused the block that worst-free")]
    assert not any("of 4096 bytes" in one.variant for one in report.candidates)
    assert any("holes of 100 bytes" in one.variant for one in report.candidates)
    (tmp_path / "bump.c").write_text(BUMP.replace(LARGE, f"{LARGE}\n    return 0;"), "utf-8")
    with pytest.raises(StateError, match="raise overhead_bytes or minimum_block_bytes"):
        observe(request(f"{tmp_path}/", "worst-free", 16384))
