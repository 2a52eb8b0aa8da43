"""Bounds in cycles against emulated runs, with caches of every policy and whatever they hold."""

from dataclasses import replace
from functools import cache

import pytest

from tests.path_check import proved
from tests.support import cache_config, guest_on, image_of
from wcet_probe.answer.witness.contradiction import check_counts
from wcet_probe.catalog.lookup import load_target
from wcet_probe.emu.machine import Machine
from wcet_probe.model.scenario import InitialCache
from wcet_probe.model.target import Replacement

SOURCE = """typedef unsigned u; u a[64], b[64]; volatile unsigned char c[64];
u copy(u n) { n &= 63; for (u i = 0; i < n; i++) a[i] = b[63 - i] + c[i]; return n; }
u mixed(u n) {
  u s = 0;
  for (u i = 0; i < 20; i++) { if (n >> i & 1) s += a[i * 3]; else c[i * 2] = s; s = s * 5 + 1; }
  return s * (n | 1); }
u branches(u n) {
  u s = 1;
  for (u i = 0; i < 32; i++) { s ^= n; if (s & 1) s >>= 1; else if (s & 2) s += 7; else b[i] = s; } return s; }
"""
ARGUMENTS = (0, 1, 63, 0x55555555, 0xFFFFFFFF)
POLICIES = [
    (replacement, back, allocate) for replacement in Replacement for back in (True, False) for allocate in (True, False)
]


@cache
def image(target):
    return image_of(SOURCE, load_target(target), ".c")


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", ["arm926ej-s", "mpc603e"])
@pytest.mark.parametrize(("replacement", "write_back", "write_allocate"), POLICIES)
def test_no_run_takes_more_cycles(target, replacement, write_back, write_allocate):
    caches = [
        cache_config(sets=2, replacement=replacement, write_back=back, write_allocate=allocate)
        for back, allocate in ((True, True), (write_back, write_allocate))
    ]
    on = guest_on(image(target), replace(load_target(target), icache=caches[0], dcache=caches[1]))
    for entry in ("copy", "mixed", "branches"):
        bound = proved(on, entry).bound
        with Machine(on.image, on.target, on.instructions, on.costs, 4096) as machine:
            for argument in ARGUMENTS:
                for initial in InitialCache:
                    check_counts(bound, machine.measure(entry, (argument,), initial), f"{entry}({argument})")


@pytest.mark.parametrize("target", ["cortex-m4"])
def test_no_run_without_caches_takes_more_cycles(target):
    on = guest_on(image(target), load_target(target))
    for entry in ("copy", "mixed", "branches"):
        bound = proved(on, entry).bound
        with on.machine() as machine:
            for argument in ARGUMENTS:
                check_counts(bound, machine.measure(entry, (argument,), InitialCache.COLD), f"{entry}({argument})")
