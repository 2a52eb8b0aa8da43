"""Accesses over two lines of the cache: what is charged of them, what is assumed, and that runs are held against it."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.end_to_end.test_cache_soundness import NOTHING_TOLD, analysed, with_cache
from tests.support import assembler, guest_of
from wcet_probe.analyzer.access_bound import most_accesses
from wcet_probe.analyzer.bound import prove
from wcet_probe.analyzer.dcache.symbolic_blocks import SymbolicBlocks
from wcet_probe.analyzer.facts.memory import PointerFacts, Pointers
from wcet_probe.analyzer.pcode.interpreter import DataAccess
from wcet_probe.analyzer.prepared import Prepared
from wcet_probe.answer.witness.contradiction import check_accesses
from wcet_probe.catalog.lookup import load_target
from wcet_probe.cli import main
from wcet_probe.errors import ContradictionError
from wcet_probe.model.proof import AccessRange
from wcet_probe.model.scenario import InitialCache
from wcet_probe.model.target import Basis, MemoryRange, Sourced, UncachedRegion

PACKED = """
typedef unsigned u;
typedef struct __attribute__((packed)) { unsigned char kind; u time; unsigned short level; u value; } Sample;
Sample ring[8] __attribute__((aligned(64)));
u plain[32] __attribute__((aligned(64)));
__attribute__((noinline)) u across(void)
{
    u sum = ring[2].time + ring[2].value;
    ring[5].value = sum;
    return sum + ring[5].time + ring[0].level;
}
__attribute__((noinline)) u table(void)
{
    u sum = 0;
    for (u i = 0; i < 8; i++) { sum += ring[i].value; ring[i].time = sum; }
    return sum;
}
__attribute__((noinline)) u on_stack(u n)
{
    volatile Sample own[4];
    own[1].value = n; own[2].time = n; own[2].value = n; own[3].time = n;
    return own[2].value + own[2].time + own[1].value;
}
__attribute__((noinline)) u through(Sample *one) { return one->time + one->value; }
"""
"""Of the words that ``across`` accesses those at bytes 29 and 62 go on in the next line of 32 bytes."""


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", ["mpc603e", "cortex-m7", "cortex-r5"])
def test_no_bound_of_packed_data_is_below_what_the_machine_takes(target, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    guest = guest_of(PACKED, load_target(target), ".c")
    (tmp_path / "packed.elf").write_bytes(guest.image.elf)
    ring = guest.address("ring")
    calls = {"across": [()], "table": [()], "on_stack": [(7,)]} | {"through": [(ring + 11 * n,) for n in range(8)]}
    for entry, arguments in calls.items():
        assert main(["bound", "packed.elf", "--entry", entry, "--target", target, "--json"]) == 0
        bound = json.loads(capsys.readouterr().out)["bound"]
        with guest.machine() as machine:
            found = [machine.measure(entry, words, start) for words in arguments for start in InitialCache]
        assert max(one.cycles for one in found) <= bound["cycles"], entry
        assert "alignment" not in {one["id"] for one in bound["assumptions"]}
        if entry == "across":
            assert max(one.dcache.misses for one in found) == 3
            assert max(one.cycles for one in found) == bound["cycles"]


DATA = ".data\n.balign 64\n.globl buf\nbuf: .space 256\n"
SPANS = {
    "a word of static data": ("lis 9, buf@ha\nlwz 3, buf@l+28(9)", 1, ""),
    "a word across a line": ("lis 9, buf@ha\nlwz 3, buf@l+30(9)", 2, ""),
    "a word that lies badly within a line": ("lis 9, buf@ha\nlwz 3, buf@l+26(9)", 1, ""),
    "a byte": ("lbz 3, 3(4)", 1, ""),
    "a word of the stack": ("lwz 3, 12(1)", 1, ""),
    "a word of the stack that may be across a line": ("lwz 3, 6(1)", 2, ""),
    "a word of the stack that lies badly": ("lwz 3, 2(1)", 1, ""),
    "a word at an unknown address": ("lwz 3, 8(4)", 1, "f+0x0"),
    "a halfword at an unknown address": ("lhz 3, 6(4)", 1, "f+0x0"),
    "a word beside an unknown address": ("lwz 3, 6(4)", 2, ""),
    "a word of a table with any index": ("slwi 5, 5, 2\nlis 9, buf@ha\naddi 9, 9, buf@l\nlwzx 3, 9, 5", 1, ""),
    "a word of a table of halfwords": ("andi. 5, 5, 62\nlis 9, buf@ha\naddi 9, 9, buf@l\nlwzx 3, 9, 5", 2, ""),
    "a word of a part of such a table": ("andi. 5, 5, 14\nlis 9, buf@ha\naddi 9, 9, buf@l\nlwzx 3, 9, 5", 1, ""),
    "several words at an unknown address": ("lmw 30, 4(4)", 2, "f+0x0"),
    "several words beside one": ("lmw 30, 2(4)", 4, ""),
}


def prepared_of(body: str) -> Prepared:
    target = load_target("mpc603e")
    return analysed(guest_of(assembler({"f": f"{body}\nblr"}, target) + DATA, target), "f").prepared


def lines_of(prepared: Prepared, asserted: Pointers) -> SymbolicBlocks:
    config = prepared.request.target.dcache
    assert config is not None
    return SymbolicBlocks(prepared.values, config, PointerFacts(asserted, {}))


@pytest.mark.parametrize("case", SPANS)
def test_each_access_is_cut_into_as_many_pieces_as_it_may_go_to_lines(case):
    body, pieces, assumed = SPANS[case]
    prepared = prepared_of(body)
    lines = lines_of(prepared, Pointers())
    assert len(list(lines.accesses(0))) == pieces
    asserted = [one.statement for one in prove(prepared.request).assumptions if one.id == "alignment"]
    assert asserted == ([f"no data access crosses a cache line at {assumed}"] if assumed else [])


@pytest.mark.parametrize(
    ("asserted", "body", "pieces", "assumed"),
    [
        (4, "lwz 3, 8(4)", 1, False),
        (2, "lwz 3, 8(4)", 1, True),
        (4, "lwz 3, 6(4)", 2, False),
        (8, "lwz 3, 2(4)", 1, False),
    ],
)
def test_facts_tell_which_accesses_cross_a_line(asserted, body, pieces, assumed):
    lines = lines_of(prepared_of(body), Pointers(asserted))
    assert (len(list(lines.accesses(0))), bool(lines.assumed)) == (pieces, assumed)


def test_a_line_is_touched_by_the_rest_of_an_access_whatever_facts_say_of_its_beginning():
    """A fact tells the set of an address, 30 bytes beyond which an access goes on in the next set."""
    prepared = prepared_of("lwz 3, 30(4)")
    lines = lines_of(prepared, Pointers(32, frozenset({5})))
    first, rest = lines.accesses(0)
    (whole,) = prepared.values.accesses[0]
    assert [lines.places.sets_of(one) for one in (first, rest, whole)] == [{5}, None, {5, 6}]


def test_an_access_to_two_lines_counts_in_the_sets_of_both():
    request = prepared_of("lis 9, buf@ha\nlwz 3, buf@l+30(9)").request
    counts = most_accesses(request)
    first = request.image.symbols["buf"].address // 32 % 128
    assert {number for number, count in enumerate(counts.by_set) if count} == {first, first + 1}


@pytest.mark.parametrize("write", ["back", "through"])
@pytest.mark.parametrize("allocate", ["yes", "no"])
@pytest.mark.parametrize("policy", ["lru", "fifo", "plru", "random", "round-robin"])
def test_a_store_to_two_lines_is_charged_for_both_with_every_policy(policy, allocate, write):
    target = load_target("mpc603e")
    body = "lis 9, buf@ha\nstw 3, buf@l+30(9)\nlwz 4, buf@l+94(9)\nstw 3, buf@l+30(9)\nblr"
    guest = guest_of(assembler({"f": body}, target) + DATA, target)
    cache = f"d:sets=2,ways=2,line=32,policy={policy},write={write},allocate={allocate}"
    one, tiny = analysed(guest, "f"), with_cache(target, cache)
    with one.machine(tiny) as machine:
        found = [machine.measure("f", (1,), start).cycles for start in InitialCache]
    assert max(found) <= one.bound(tiny, NOTHING_TOLD)


REFRESHED = """
lwz 4, buf@l+64(9)
lwz 5, buf@l+128(9)
lwz 6, buf@l+62(9)
lwz 7, buf@l+192(9)
"""
"""Four lines of one set with two ways: the third access ends in the first one's line, which is thus still there."""


@pytest.mark.parametrize("is_cached", [True, False])
@pytest.mark.parametrize(
    "body",
    [
        *(f"{name} 3, buf@l+{offset}(9)" for name in ("lwz", "stw") for offset in (28, 30, 32, 60, 62, 64)),
        6 * REFRESHED,
    ],
)
def test_no_bound_is_below_what_an_access_across_the_border_of_a_region_takes(body, is_cached):
    target = load_target("mpc603e")
    guest = guest_of(assembler({"f": f"lis 9, buf@ha\n{body}\nblr"}, target) + DATA, target)
    near = MemoryRange(guest.address("buf") + 32, 32)
    read, write = (Sourced(cycles, Basis.ASSUMED, "a test") for cycles in (3, 5))
    changed = with_cache(target, "d:sets=2,ways=2,line=32" if is_cached else "d:none")
    changed = replace(changed, memory=replace(changed.memory, regions=(UncachedRegion("near", near, read, write),)))
    one = analysed(guest, "f")
    with one.machine(changed) as machine:
        found = [machine.measure("f", (1,), start).cycles for start in InitialCache]
    assert max(found) <= one.bound(changed, NOTHING_TOLD)


AT = 0x100


@pytest.mark.parametrize(
    ("address", "is_one_line", "sets", "reason"),
    [
        (28, True, None, ""),
        (30, True, None, "across a cache line"),
        (30, False, None, ""),
        (30, False, frozenset({0, 1}), ""),
        (30, False, frozenset({0}), "in a set of the cache"),
    ],
)
def test_accesses_across_a_line_are_held_against_the_proof(address, is_one_line, sets, reason):
    target = load_target("mpc603e")
    image = guest_of(assembler({"f": "blr"}, target), target).image
    allowed = AccessRange(AT, (), False, "number", 0, 1, 99, 4, sets=sets, is_one_line=is_one_line)
    with pytest.raises(ContradictionError, match=reason) if reason else nullcontext():
        check_accesses(
            SimpleNamespace(entry="f", accesses=(allowed,), words=()),
            [DataAccess(0, AT, address, 4, False)],
            image,
            target,
            frames=MemoryRange(4096, 64),
            subject="a test",
        )
