"""Lines that must be in the cache where no credit is left, and lines that are modified already: held, and forged.

Tests: certificate.caches.residents, certificate.caches.modified.
"""

import random
from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.certificate.caches.test_caches import added, dropped, edited
from tests.certificate.caches.test_residents import step
from tests.certificate.forgeries import sealed, solved_again
from tests.certificate.kernel.test_code import document_of as guest_document
from tests.certificate.specimens import specimen
from tests.support import assembler, cache_config, guest_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.caches.modified import Content
from wcet_probe.certificate.caches.residents import (
    NOTHING,
    Bound,
    Residents,
    YoungerSet,
    is_resident,
)
from wcet_probe.certificate.caches.steps import Spot
from wcet_probe.certificate.check import check_bound
from wcet_probe.certificate.machines.machine import Machine
from wcet_probe.certificate.names.names import Passage
from wcet_probe.certificate.values.congruences import Congruence
from wcet_probe.certificate.values.numbers import ANY, LINK, Value
from wcet_probe.certificate.values.state import State
from wcet_probe.emu.cache import CacheSimulation
from wcet_probe.errors import VerificationError
from wcet_probe.model.instruction import Access, AccessKind, Instruction
from wcet_probe.model.scenario import InitialCache
from wcet_probe.model.target import Replacement

LIST = ("list", "mpc603e", "f")


def rewritten(change):
    document, binary = specimen(*LIST)
    texts = list(document["bound"]["certificates"])
    texts[1] = "\n".join(change(texts[1].split("\n")))
    return sealed({**document, "bound": {**document["bound"], "certificates": texts}}), binary


def open_lines(document, binary):
    return [one.check for one in check_bound(document, binary).findings if one.verdict != "ok"]


def test_the_first_round_hits_and_the_second_store_modifies_nothing():
    document, binary = specimen(*LIST)
    assert open_lines(document, binary) == []
    text = document["bound"]["certificates"][1]
    assert "\nmodified f+0x10 s3 0 1\n" in text, "the second store finds the line modified"
    assert "\nheld miss:2.0:scope f+0x2c s36 1 0:0\n" in text, "the loop is entered without credit"
    assert {"dual miss:2.0:scope 33", "dual write-backs:modified 33"} <= set(text.split("\n"))


FORGERIES = {
    "a modified line at the entry": (added("modified f+0x0 s3 0 1"), "where the call begins"),
    "a modified line that may not be there": (dropped(r"^must data f\+0x10 s3 "), "may not be there"),
    "a line that was only read": (added("modified f+0x38 s2 0 1"), "need not be"),
    "another granule of a modified line": (edited(r"^(modified f\+0x10 s3) 0 1$", r"\1 4 1"), "need not be"),
    "a modified line twice": (added("modified f+0x10 s3 0 1"), "told twice"),
    "a modified line of no node": (added("modified f+0x1 s3 0 1"), "of no node"),
    "a balance of no granule": (edited(r"^(held \S+ f\+0x2c s36 1) .*$", r"\1"), "is no record"),
    "a line that need not be there": (dropped(r"^must data f\+0x24 s2 "), "need not be|to be left of miss:2.0:scope"),
    "all credits where a line is there": (edited(r"^(held \S+ f\+0x2c) s36 .*$", r"\1 full"), "to be left of"),
    "another granule of a line that is there": (edited(r"^(held .* s36 1) 0:0$", r"\1 4:0"), "to be left of"),
    "a larger granule": (edited(r"^(held .* s36) 1 0:0$", r"\1 4 0:0"), "to be left of"),
    "a younger line whose address is no number": (
        edited(r"^(must data .*)$", r"\1 0xzz"),
        "the younger line 0xzz is none",
    ),
    "so where misses are left": (edited(r"^(held .* s36 1 0:0)$", r"\1,0xzz"), "the younger line 0xzz is none"),
    "a second granule": (edited(r"^(held .* s36 1) 0:0$", r"\1 0:0 32:0"), "to be left of"),
}


@pytest.mark.parametrize(("forge", "reason"), FORGERIES.values(), ids=FORGERIES)
def test_a_forged_record_is_refused(forge, reason):
    document, binary = rewritten(forge)
    with pytest.raises(VerificationError, match=reason):
        check_bound(document, binary)


@pytest.mark.parametrize(
    "forge",
    [dropped("^modified "), dropped("^held miss:2.0:scope "), edited(r"^(held \S+ \S+) s36 (.*)$", r"\1 s2 \2")],
    ids=["modified", "balance", "balance of another line that is there"],
)
def test_a_premise_that_is_left_out_is_not_checked(forge):
    document, binary = rewritten(forge)
    assert open_lines(document, binary) == ["limits of misses in cycles"]


def lowered(name, change):
    """The bound with a limit that allows less."""

    def changed(problem, derivations, followed):
        limits = tuple(change(one) if one.name == name else one for one in problem.constraints)
        return replace(problem, constraints=limits), derivations, followed

    return solved_again(specimen(*LIST)[0], changed), specimen(*LIST)[1]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("write-backs:modified", lambda one: replace(one, constant=one.constant - 1)),
        ("write-backs:modified", lambda one: replace(one, coefficients={"write-backs": 1})),
        ("miss:2.0:scope", lambda one: replace(one, coefficients={"miss:2.0": 1})),
    ],
)
def test_a_limit_that_allows_less_is_not_ok(name, change):
    document, binary = lowered(name, change)
    assert document["bound"]["cycles"] < specimen(*LIST)[0]["bound"]["cycles"]
    try:
        found = open_lines(document, binary)
    except VerificationError:
        return
    assert found == ["limits of misses in cycles"]


def test_no_second_line_is_paid_for_where_one_must_be_there():
    """Of a line that is there no credit is taken, and of no other one: it would be the second of one credit."""
    residents = Residents(cache_config(sets=8, ways=4, line_bytes=16), {"s1": Congruence(4, 0)}, {}.get)
    must, said = {Spot("s1", 0, 4): YoungerSet(frozenset({"s2"}), 0)}, Bound("s1", 4, {0: YoungerSet(frozenset(), 1)})
    assert is_resident(residents, must, said)
    assert residents.paid(said, step(spot=Spot("s1", 0, 4)), 1) is not None
    for offset in (4, 16, 64):
        assert residents.paid(said, step(spot=Spot("s1", offset, 4)), 1) is None
    assert not is_resident(residents, must, Bound("s1", 4, {0: NOTHING})), "another line was accessed since"
    assert not is_resident(residents, must, Bound("s1", 8, {0: said.spent[0]})), "less is known of the line"
    assert not is_resident(residents, must, Bound("s1", 4, {0: said.spent[0], 4: None}))
    assert not is_resident(residents, must, Bound("s2", 4, said.spent))


@pytest.mark.covering
@pytest.mark.parametrize("replacement", Replacement)
@pytest.mark.parametrize("seed", range(4))
def test_lines_that_are_modified_are_written_back(replacement, seed):
    """Against the simulation, from a cold cache: what is modified is so in the cache, on each of two ways."""
    draw, found = random.Random(seed), 0
    config = cache_config(sets=4, ways=4, line_bytes=16, replacement=replacement)
    residents = Residents(config, {}, {}.get)
    for _ in range(60):
        ways = []
        for _ in range(2):
            simulation, known = CacheSimulation(config, InitialCache.COLD), Content({}, frozenset())
            for _ in range(draw.randrange(2, 9)):
                line, is_store, is_taken = draw.randrange(6), draw.random() < 0.4, draw.random() < 0.8
                is_certain = is_taken and draw.random() < 0.9
                if is_taken:
                    simulation.access(line * 16, is_write=is_store)
                known = known.behind(residents, replace(step(line), is_store=is_store, is_certain=is_certain))
            ways.append((simulation, known.along(residents, Passage(frozenset(), {}))))
        both = ways[0][1].modified & ways[1][1].modified
        for simulation, _ in ways:
            for number in range(4):
                own = [spot.offset for spot in both if spot.offset // 16 % 4 == number]
                found += len(own)
                assert all(simulation.access(offset, is_write=False) for offset in own), "they are in the cache"
                before = simulation.writebacks
                for other in range(400 + number, 656, 4):  # so many others of the set evict all of it
                    simulation.access(other * 16, is_write=False)
                assert simulation.writebacks - before >= len(own)
    assert found > 5 or replacement is Replacement.RANDOM


REFRESHED = """
 lis 3, words@ha
 addi 3, 3, words@l
 lwz 5, 0(3)
 lwz 6, 4096(3)
 lwz 6, 8192(3)
 lwz 6, 12288(3)
 {store}
 lwz 6, 16384(3)
 lwz 6, 20480(3)
 lwz 6, 24576(3)
 lwz 5, 0(3)
 blr
 .bss
 .balign 4096
words: .space 32768
 .text
"""


def test_a_store_that_may_not_take_place_keeps_no_line():
    """Of a set of four ways, a line that it would have been to, and three others since: that line may be gone."""
    core = load_target("mpc603e")
    stores, conditional = (
        guest_of(assembler({"f": REFRESHED.format(store=one)}, core), core) for one in ("stw 5, 0(3)", "stwcx. 5, 0, 3")
    )
    document, binary = guest_document(stores)
    assert check_bound(document, binary).is_full

    def change(problem, derivations, followed):
        nodes = tuple(replace(one, cost=one.cost + 20 * (problem.unit == "cycles")) for one in problem.nodes)
        return replace(problem, image_sha256=conditional.image.sha256, nodes=nodes), derivations, followed

    document["image"]["sha256"] = conditional.image.sha256
    binary = replace(binary, image=conditional.image, instructions=conditional.instructions, costs=conditional.costs)
    with pytest.raises(VerificationError, match="with its misses"):
        check_bound(solved_again(document, change), binary)


def test_what_a_store_that_may_not_take_place_replaces_may_be_there_still():
    one = Instruction(
        0, 4, "strex r0, r1, [r13]", "store_exclusive", reads=frozenset({"r1", "r13"}), writes=frozenset({"r0"}),
        accesses=(Access(AccessKind.STORE, "r13", 0, 4),),
    )  # fmt: skip
    state = State({"r13": Value("stack", -8, -8, 0), -8: LINK})
    Machine(SimpleNamespace(segments=())).havoc(one, state)
    assert state.read(-8) == ANY


CLEARED = """
 add 6, 4, 5
 lbz 7, 31(6)
 lbz 0, 0(8)
 lbz 0, 0(9)
 lbz 0, 0(10)
 {store}
 lbz 0, 0(11)
 lbz 0, 0(12)
 lbz 0, 0(7)
 lbz 7, 31(6)
 blr
"""


def test_an_address_that_is_cut_down_is_not_called_by_the_sum_that_it_was():
    """Clearing a line goes to where it begins: the byte 31 behind the sum may be in the next one."""
    core = load_target("mpc603e")
    stores, clears = (
        guest_of(assembler({"f": CLEARED.format(store=one)}, core), core) for one in ("stb 7, 31(6)", "dcbz 4, 5")
    )
    document, binary = guest_document(stores)

    def change(problem, derivations, followed):
        # What was accepted, two fills less than what is asked for now.
        nodes = tuple(replace(one, cost=351 if problem.unit == "cycles" else one.cost) for one in problem.nodes)
        return replace(problem, image_sha256=clears.image.sha256, nodes=nodes), derivations, followed

    document["image"]["sha256"] = clears.image.sha256
    binary = replace(binary, image=clears.image, instructions=clears.instructions, costs=clears.costs)
    with pytest.raises(VerificationError, match="at least 417 cycles with its misses"):
        check_bound(solved_again(document, change), binary)
