"""Sets that are apart: where accesses go by the numbers that their addresses are sums of, and by what facts tell.

Tests: certificate.caches.residents, certificate.caches.steps, certificate.caches.misses, certificate.names.symbols.
"""

import json
import random
import re
from dataclasses import replace
from functools import cache

import pytest

from tests.analyzer.ipet.hand_made import TARGET, covered, graph_of
from tests.certificate.caches.test_residents import step
from tests.certificate.forgeries import sealed
from tests.support import cache_config, images_dir
from wcet_probe.analyzer.bound import prove
from wcet_probe.analyzer.ipet.numbering import Numbering
from wcet_probe.answer.bounds.proving import operation_request
from wcet_probe.build.program import load_program
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.certificate.caches.misses import DATA, caches_of
from wcet_probe.certificate.caches.residents import Residents, YoungerSet, sets_of_bases
from wcet_probe.certificate.caches.steps import Spot, _data, _sets, _Told
from wcet_probe.certificate.check import check_bound
from wcet_probe.certificate.names.names import Address, Names, Objects, Passage, PointerFact, Pointers
from wcet_probe.certificate.names.symbols import Tracer, speaking
from wcet_probe.certificate.values.congruences import UNALIGNED, Congruence
from wcet_probe.certificate.values.numbers import TOP, WORD, Value, number
from wcet_probe.emu.cache import CacheSimulation
from wcet_probe.errors import VerificationError
from wcet_probe.evidence.checking import allocator_binary
from wcet_probe.model.instruction import Instruction
from wcet_probe.model.scenario import InitialCache
from wcet_probe.model.target import Replacement
from wcet_probe.reports.formats.bound_document import bound_section

HEAP_BYTES = 5000


def named(name, sets):
    return replace(step(spot=Spot(name, 0, 16)), sets=sets)


@pytest.mark.covering
@pytest.mark.parametrize("replacement", Replacement)
def test_lines_stay_while_others_are_in_other_sets(replacement):
    """Against the simulation, from any content: names whose lines are in a few sets, and lines that are known."""
    draw, kept = random.Random(11), 0
    config = cache_config(sets=8, ways=2, line_bytes=16, replacement=replacement)
    for _ in range(300):
        simulation = CacheSimulation(config, InitialCache.DIRTY)
        told = {f"s{each}": frozenset(draw.sample(range(8), draw.randrange(1, 6))) for each in range(4)}
        where = {name: 8 * draw.randrange(9) + draw.choice(sorted(sets)) for name, sets in told.items()}
        told["s3"] = draw.choice((told["s3"], None))
        steps, lines = [], []
        for _ in range(9):
            name, line = draw.choice(sorted(told)), draw.randrange(24)
            is_named = draw.random() < 0.7
            own = named(name, told[name]) if is_named else replace(step(line), sets=frozenset({line % 8}))
            steps.append(own)
            lines.append(where[name] if is_named else line)
        sets = sets_of_bases(steps)
        assert "s3" not in sets or told["s3"] is not None
        residents, plain = Residents(config, {}, {}.get, sets), Residents(config, {}, {}.get)
        must, less = {}, {}
        for own, line in zip(steps, lines, strict=True):
            is_hit = simulation.access(line * 16, is_write=False)
            assert is_hit or own.spot not in must
            kept += own.spot in must and own.spot not in less
            must, less = residents.touched(must, own), plain.touched(less, replace(own, sets=None))
    assert kept > 50


def test_a_base_is_in_the_sets_of_all_steps_by_it():
    steps = [named("s1", frozenset({1})), named("s1^2", frozenset({2})), named("s2", frozenset({3})), named("s4", None)]
    assert sets_of_bases([*steps, named("s4", frozenset({1}))]) == {"s1": {1, 2}, "s2": {3}}


@pytest.mark.parametrize(
    ("base", "other", "is_called"),
    [("s1", "s2", True), ("s2", "s1", False), ("s3", "s1", False), ("s2", "s3", True), ("s1", "s1", True)],
)
def test_a_line_gets_no_name_whose_lines_are_in_fewer_sets(base, other, is_called):
    """Else it would be taken to be in these; of s3 nothing is known."""
    config = cache_config(sets=8, ways=2, line_bytes=16)
    sets = {"s1": frozenset({1}), "s2": frozenset({1, 2})}
    residents = Residents(config, dict.fromkeys(("s1", "s2", "s3"), UNALIGNED), {}.get, sets)
    passage = Passage(frozenset({base}), {base: ((other, 0),)})
    spot = Spot(base, 0, 1)
    assert residents.moved(spot, passage) == [Spot(other, 0, 1)] * is_called
    assert residents.moved(spot, Passage(frozenset(), {})) == [spot]
    younger = residents.substituted(Spot("number", 0, 16), YoungerSet(frozenset({base}), 0), passage)
    assert younger == (YoungerSet(frozenset({other}), 0) if is_called else YoungerSet(frozenset(), 1))


def test_lines_are_counted_in_the_set_where_most_of_them_may_be():
    config = cache_config(sets=8, ways=4, line_bytes=16, replacement=Replacement.LRU)
    sets = {"s1": frozenset({1, 2}), "s2": frozenset({2, 3}), "s3": frozenset({3, 4}), "s5": frozenset({1, 3})}
    residents = Residents(config, {}, {}.get, sets)
    younger = YoungerSet(frozenset({"s1", "s2", "s3", "0x30", "0xb0", "0x90"}), 1)
    assert residents.age(Spot("number", 0x30, 16), younger) == 1 + 3  # s2, s3 and line 11; line 3 is its own
    assert residents.age(Spot("number", 0x10, 16), younger) == 1 + 2  # s1 and line 9
    assert residents.age(Spot("s5", 0, 16), younger) == 1 + 4
    assert residents.age(Spot("s6", 0, 16), younger._replace(names=younger.names | {"s4"})) == 1 + 1 + 4


@pytest.mark.parametrize("seed", range(4))
def test_sets_by_parts_are_those_of_each_sum(seed):
    draw, known = random.Random(seed), 0
    config = cache_config(sets=8, ways=2, line_bytes=16)
    for _ in range(3000):
        parts = []
        for _ in range(draw.randrange(1, 4)):
            stride, steps = draw.choice((0, 4, 16, 64, 128, 256, 4096)), draw.randrange(6)
            low = draw.randrange(-300, 600)
            parts.append((draw.choice((1, 2, -1, 8)), number(low, low + stride * steps, stride if steps else 0)))
        offset, skipped = draw.randrange(-40, 4200), draw.choice((0, 3))
        address = Address(TOP, Value("@t1", offset, offset, 0), UNALIGNED, UNALIGNED, None, tuple(parts))
        sets = _sets(address, skipped, None, config)
        known += sets is not None
        for _ in range(5 if sets is not None else 0):
            words = (times * (one.low + one.stride * draw.randrange(one.size)) for times, one in parts)
            assert (sum(words) + offset + skipped) % WORD // 16 % 8 in sets
    assert known > 300


LOAD = Instruction(0x100, 4, "ldr r0, [r1]", "load")
UNKNOWN = Address(TOP, TOP, UNALIGNED, UNALIGNED)
TABLE = Address(TOP, Value("@t1", 0, 0, 0), UNALIGNED, UNALIGNED, None, ((1, number(0x1008, 0x3008, 128)),))
OBJECTS = Objects("facts:1", 3, 1)


def placed(address, skipped=0, **told):
    """The step of an access of which a fact tells something."""
    config = cache_config(sets=8, ways=2, line_bytes=16)
    return _data(LOAD, 100, address, skipped, config, is_store=False, told=_Told(**told))


def test_a_fact_tells_the_set_of_the_first_byte_alone_and_not_of_the_stack():
    assert placed(UNKNOWN, sets=(1, 2)).sets == {1, 2}
    assert placed(UNKNOWN, sets=range(7, 9)).sets == {7, 0}
    assert placed(UNKNOWN, 3, sets=(1, 2)).sets is None
    assert placed(UNKNOWN, sets=()).sets is None
    assert placed(UNKNOWN._replace(number=number(0x90, 0xAF)), sets=(5,)).sets == {1, 2}
    assert placed(UNKNOWN._replace(number=Value("stack", -8, -8, 0)), sets=(5,)).sets is None


def test_a_fact_counts_no_line_and_names_no_object_of_an_access_whose_set_is_known():
    """Runs count the lines of those alone whose sets no values tell: there may be more of others than the fact says."""
    assert placed(UNKNOWN, objects=OBJECTS).objects == OBJECTS
    assert placed(UNKNOWN, within=(0x2000, 0x2040)).lines == {0x200, 0x201, 0x202, 0x203}
    told = placed(TABLE, objects=OBJECTS, within=(0x2000, 0x2040))
    assert (told.sets, told.objects, told.lines) == ({0}, None, None)


@pytest.mark.parametrize(
    ("address", "is_there"),
    [
        (UNKNOWN, True),
        (UNKNOWN._replace(number=number(0x2038, 0x8000)), True),
        (UNKNOWN._replace(number=number(0x2040, 0x8000)), False),
        (UNKNOWN._replace(number=number(0x2021, 0x8021, 32), alignment=Congruence(32, 1)), True),
        (UNKNOWN._replace(alignment=Congruence(128, 96)), False),
    ],
)
def test_a_fact_that_names_an_object_says_nothing_of_an_access_that_cannot_be_in_it(address, is_there):
    assert (placed(address, within=(0x2000, 0x2040)).lines is not None) is is_there


HIDDEN = """
    {first}
    cmp r0, #7
    beq 1f
    nop
1:  {second}
    ldr r3, [r1]
    bx lr
"""


@pytest.mark.parametrize(
    ("first", "second", "is_told"),
    [
        ("movw r1, #0x1000", "nop.w", False),
        ("movw r1, #0x1000", "add.w r1, r1, #64", False),
        ("movw r1, #0x1000", "eor.w r1, r1, #64", False),
        ("ldr.w r1, [r4]", "nop.w", True),
        ("ldr.w r1, [r4]", "eor.w r1, r1, #64", True),
        ("movw r1, #0x1000", "ldr.w r1, [r4]", True),
    ],
)
@pytest.mark.parametrize("has_names", [True, False])
def test_a_fact_tells_no_set_of_an_address_that_invariants_leave_out(first, second, is_told, has_names):
    """Where the code knows it the fact says nothing of it, and no run is held against the fact."""
    nodes = {"f": 0, "between": 8, "behind": 10}
    edges = (("f", "between"), ("f", "behind"), ("between", "behind"))
    code, graph = graph_of(HIDDEN.format(first=first, second=second), nodes, edges, ["behind"])
    invariants, coverage = covered(code, graph)
    pointers = speaking(Pointers((PointerFact((), (4,), sets=(3, 1)),)), code, graph, invariants, coverage)
    names = Numbering(code, graph, invariants, coverage, pointers, with_sums=False).run()
    if not has_names:
        names = Names({node: {} for node in nodes}, {}, pointers)
    tracer = Tracer(code, graph, invariants, coverage, names)
    caches = caches_of(TARGET, graph, coverage, tracer, lambda _: True)
    side = next(side for side in caches.sides if side.name == DATA)
    assert side.steps["behind"][-1].sets == (frozenset({3}) if is_told else None)


@cache
def proved():
    """A bound that rests on sets that facts tell: descriptors of cama are apart from its list of spare ones."""
    program = load_program(load_allocator("cama", {}), load_target("mpc603e"), "zig", images_dir())
    section = bound_section(prove(operation_request(program, "free", HEAP_BYTES)))
    return sealed(json.loads(json.dumps({"image": {"sha256": program.image.sha256}, "bound": section})))


def costs_by(place):
    """What is said of costs where the facts about descriptors tell ``place`` of them."""
    found = load_allocator("cama", {})
    asserted = r'first_set = "area_first_set"\nsets = "area_sets"\n'
    facts = tuple((name, re.sub(asserted, place, text)) for name, text in found.facts)
    program = load_program(replace(found, facts=facts), load_target("mpc603e"), "zig", images_dir())
    checked = check_bound(proved(), allocator_binary(program, HEAP_BYTES)).findings
    return next(one.verdict for one in checked if one.check == "costs in cycles")


def test_lines_stay_by_the_sets_that_the_fact_tells():
    """The list of spare descriptors is in set 0."""
    for first, sets in ((1, 31), (64, 60)):
        assert costs_by(f'first_set = "{first}"\nsets = "{sets}"\n') == "ok"


@pytest.mark.parametrize("place", ["", 'first_set = "0"\nsets = "32"\n', 'first_set = "127"\nsets = "2"\n'])
def test_lines_that_may_be_in_one_set_by_the_fact_may_be_evicted(place):
    with pytest.raises(VerificationError, match="need not be"):
        costs_by(place)
