"""The causes that pages give of claims that do not hold are measured by a command, and are as the pages say."""

import re

from bench.causes import CAUSES, bands, small_blocks
from tests.support import images_dir
from wcet_probe.answer.papers.points import Settings
from wcet_probe.catalog.lookup import load_target

SETTINGS = Settings(load_target("cortex-m4"), "zig", images_dir())


def test_each_cause_says_of_which_paper_it_is():
    assert all(re.match("(P02|C06|M06|L11|H11): ", cause.__doc__ or "") for cause in CAUSES.values())


def test_dlmalloc27_frees_fastest_where_all_blocks_wait_in_its_fast_bins():
    lines = list(small_blocks(SETTINGS, allocations=400))
    means = {line.split(":")[0]: float(re.search(r"free ([\d.]+)", line).group(1)) for line in lines}
    assert len(means) == 6
    assert min(means, key=means.get) == "dlmalloc27"


def test_a_split_costs_tlsf_more_than_a_whole_block_of_the_same_kind():
    found = {line.split(":")[0]: line for line in bands(SETTINGS, allocations=1200)}
    calls, least = (
        {kind: int(re.search(pattern, line).group(1).replace(",", "")) for kind, line in found.items()}
        for pattern in (r": ([\d,]+) calls", r", (\d+) to")
    )
    assert 1200 <= sum(calls.values()) < 1220
    assert least["small, whole"] < least["small, split"]
