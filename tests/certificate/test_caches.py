"""What certificates say of caches is tested: hits, ages, limits of misses, write-backs, and what they rest on.

Tests: certificate.cached, certificate.misses, certificate.residents, certificate.steps.
"""

import copy
import re
from dataclasses import replace
from functools import cache

import pytest

from tests.certificate.forgeries import sealed, solved_again
from tests.support import cache_config, images_dir
from wcet_probe.analyzer.bound import prove
from wcet_probe.analyzer.ipet.joined_lines import joined
from wcet_probe.answer.proving import operation_request
from wcet_probe.build.program import load_program
from wcet_probe.catalog.cache_option import apply_cache_option
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.certificate.check import check_bound
from wcet_probe.certificate.congruences import UNALIGNED, Congruence
from wcet_probe.certificate.names import Address, Passage
from wcet_probe.certificate.numbers import TOP, number
from wcet_probe.certificate.residents import FULL, NOTHING, Bound, Residents, YoungerSet, lasting_ways, must_holds
from wcet_probe.certificate.steps import Spot, Step, _lines, told_apart
from wcet_probe.certificate.verify import bound_digest
from wcet_probe.emu.cache import CacheSimulation
from wcet_probe.errors import VerificationError
from wcet_probe.evidence.checking import allocator_binary
from wcet_probe.model.scenario import InitialCache
from wcet_probe.model.target import Replacement
from wcet_probe.reports.formats.bound_document import bound_section

HEAP_BYTES = 5000
FULL_ONES = (
    ("first-fit", "mpc603e", "malloc"),
    ("first-fit", "cortex-m7", "free"),
    ("tlsf", "arm926ej-s", "free"),
    ("tlsf", "mpc603e", "free"),
    ("kingsley", "cortex-m7", "malloc"),
    ("half-fit", "mpc603e", "malloc"),
)


@cache
def program(allocator, target):
    """Facts that count lines are left out: the checker does not follow them, and says so."""
    found = load_allocator(allocator, {})
    facts = tuple((name, re.sub(r"(?m)^lines(_per_set)? = .*\n", "", text)) for name, text in found.facts)
    return load_program(replace(found, facts=facts), load_target(target), "zig", images_dir())


def document_of(bound, image):
    section = bound_section(bound)
    section["digest"] = bound_digest(section)
    return {"image": {"sha256": image.sha256}, "bound": section}


@cache
def proved(allocator, target, role):
    own = program(allocator, target)
    return document_of(prove(operation_request(own, role, HEAP_BYTES)), own.image)


def check(document, allocator, target, binary=None):
    return check_bound(document, binary or allocator_binary(program(allocator, target), HEAP_BYTES))


def rewritten(document, change):
    """``document`` with the lines of the certificate in cycles changed, and sealed."""
    document = copy.deepcopy(document)
    lines = change(document["bound"]["certificates"][1].split("\n"))
    document["bound"]["certificates"][1] = "\n".join(lines)
    return sealed(document)


@pytest.mark.parametrize(("allocator", "target", "role"), FULL_ONES)
def test_cycles_are_checked_in_full(allocator, target, role):
    found = check(proved(allocator, target, role), allocator, target)
    assert found.is_full, [one for one in found.findings if one.verdict != "ok"]


def test_what_is_left_is_named_by_its_lemma():
    own = "tlsf", "mpc603e"
    name, held = "miss:21.0:scope", re.compile("held miss:21.0:scope ")
    document = rewritten(proved(*own, "free"), lambda lines: [line for line in lines if not held.match(line)])
    found = {one.check: one for one in check(document, *own).findings}
    assert f"a line in its scope (1, {name})" in found["limits of misses in cycles"].found

    assert found["limits of misses in cycles"].verdict == "not checked"


def test_that_a_bound_rests_on_a_counter_for_each_set_must_be_listed():
    own = program("kingsley", "arm926ej-s")
    own = replace(own, target=apply_cache_option(own.target, "d:policy=fifo"))
    document = document_of(prove(operation_request(own, "free", HEAP_BYTES)), own.image)
    binary = allocator_binary(own, HEAP_BYTES)
    check(document, "kingsley", "arm926ej-s", binary)
    listed = document["bound"]["assumptions"]
    document["bound"]["assumptions"] = [one for one in listed if one["id"] != "fifo-replacement"]
    with pytest.raises(VerificationError, match="fifo-replacement is used and not listed"):
        check(sealed(document), "kingsley", "arm926ej-s", binary)


# -------------------------------------------------------------------------------------------------------- forgeries


def one_of(lines, pattern):
    return next(number for number, line in enumerate(lines) if re.search(pattern, line))


def dropped(pattern):
    def change(lines):
        number = one_of(lines, pattern)
        return lines[:number] + lines[number + 1 :]

    return change


def edited(pattern, instead):
    def change(lines):
        number = one_of(lines, pattern)
        return [*lines[:number], re.sub(pattern, instead, lines[number]), *lines[number + 1 :]]

    return change


def added(line):
    return lambda lines: [*lines[:-1], line, ""]


FORGERIES = {
    "a hit that is none": (dropped("^miss .* miss:"), "with its misses, not"),
    "a line that nobody loaded": (added("must data first_fit_malloc+0x1c number 4194304 32 0"), "need not be"),
    "a line at the entry": (added("must fetch first_fit_malloc+0x0 number 1048576 32 0"), "where the call begins"),
    "an age lowered": (edited(r"^(must data \S+ \S+ \S+ \S+) 0 \S.*$", r"\1 0"), "need not be"),
    "a balance that is full": (edited(r"^(held \S+:call \S+) (?!full).*$", r"\1 full"), "to be left of"),
    "a balance that nobody filled": (added("held miss:1.-1:scope first_fit_malloc+0x1c full"), "to be left of"),
    "a name of another place": (edited(r"^(name \S+x40 r5 s\d+) 0$", r"\1 4"), "is not s"),
    "a class too fine": (edited(r"^(symbol s\d+ at \S+) [48] 0$", r"\1 64 0"), "is not known to be"),
    "a miss of no access": (added("miss first_fit_malloc+0x0 0x2 100 write-backs"), "is of no access"),
    "a miss counted as a write-back": (edited("^(miss .*) miss:.*$", r"\1 write-backs"), "counted as write-backs"),
    "a miss counted nowhere": (edited("^(miss .*) miss:.*$", r"\1 nowhere"), "counted nowhere"),
    "a granule that is none": (edited(r"^(must data \S+ \S+ \S+) \d+ (.*)$", r"\1 1000000000 \2"), "no granule has"),
    "an edge that pays and does not": (added("paid paid:1 first_fit_malloc+0x2c>"), "is none"),
}


@pytest.mark.parametrize(("forge", "reason"), FORGERIES.values(), ids=FORGERIES)
def test_a_forged_annotation_is_refused(forge, reason):
    document = rewritten(proved("first-fit", "mpc603e", "malloc"), forge)
    with pytest.raises(VerificationError, match=reason):
        check(document, "first-fit", "mpc603e")


def without_balances(lines):
    return [line for line in lines if not line.startswith("held ")]


def test_a_premise_that_is_removed_is_not_checked():
    document = rewritten(proved("first-fit", "mpc603e", "malloc"), without_balances)
    found = {one.check: one.verdict for one in check(document, "first-fit", "mpc603e").findings}
    assert found["limits of misses in cycles"] == "not checked"


def test_a_node_that_is_called_unchecked_is_not_ok():
    node = "unchecked first_fit_malloc+0x2c"
    document = rewritten(proved("first-fit", "mpc603e", "malloc"), added(node))
    found = {one.check: one.verdict for one in check(document, "first-fit", "mpc603e").findings}
    assert found["costs in cycles"] == found["limits of misses in cycles"] == "not checked"


def in_cycles(change):
    def both(problem, derivations, followed):
        return (change(problem) if problem.unit == "cycles" else problem), derivations, followed

    return both


def free_write_backs(problem):
    events = tuple(replace(one, cost=0) if one.name == "write-backs" else one for one in problem.auxiliaries)
    return replace(problem, auxiliaries=events)


def free_misses(problem):
    events = tuple(
        replace(one, cost=one.cost - 1) if one.name.startswith("fetch") else one for one in problem.auxiliaries
    )
    return replace(problem, auxiliaries=events)


def cheaper_nodes(problem):
    return replace(problem, nodes=tuple(replace(one, cost=max(0, one.cost - 33)) for one in problem.nodes))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (free_write_backs, "write-backs are not charged"),
        (free_misses, "a miss of fetch:.* costs at least"),
        (cheaper_nodes, "costs at least"),
    ],
)
def test_a_cheaper_problem_is_refused(change, reason):
    document = solved_again(proved("first-fit", "mpc603e", "malloc"), in_cycles(change))
    with pytest.raises(VerificationError, match=reason):
        check(document, "first-fit", "mpc603e")


def tightened(pattern):
    """Fewer credits for what the events of a limit cost: a stay, or an execution, left out."""

    def change(problem):
        constraints = []
        for one in problem.constraints:
            if re.fullmatch(pattern, one.name):
                given = [name for name, factor in one.coefficients.items() if factor < 0]
                kept = {k: v for k, v in one.coefficients.items() if k not in given[:1]}
                constraints.append(replace(one, coefficients=kept, constant=one.constant if given else 0))
            else:
                constraints.append(one)
        return replace(problem, constraints=tuple(constraints))

    return change


@pytest.mark.parametrize("pattern", [r"miss:.*", r"fetch:.*:call", r"write-backs:misses"])
def test_a_limit_with_too_few_credits_is_not_ok(pattern):
    document = solved_again(proved("first-fit", "mpc603e", "malloc"), in_cycles(tightened(pattern)))
    try:
        found = check(document, "first-fit", "mpc603e")
    except VerificationError:
        return
    assert not found.is_full


def fewer_modified(problem):
    constraints = tuple(
        replace(one, constant=one.constant - 1) if one.name == "write-backs:modified" else one
        for one in problem.constraints
    )
    return replace(problem, constraints=constraints)


def test_a_cache_with_fewer_modified_lines_than_lines_is_not_ok():
    own = program("first-fit", "mpc603e")
    document = document_of(prove(operation_request(own, "malloc", 8192)), own.image)
    binary = allocator_binary(own, 8192)
    assert "\ndual write-backs:modified " in document["bound"]["certificates"][1]
    assert check_bound(document, binary).is_full
    forged = check_bound(solved_again(document, in_cycles(fewer_modified)), binary)
    assert [one.check for one in forged.findings if one.verdict != "ok"] == ["limits of misses in cycles"]


@pytest.mark.parametrize(("cache", "sets"), [("icache", 1), ("dcache", 4)])
def test_a_proof_for_more_ways_and_sets_is_refused(cache, sets):
    """Ways and sets raised, as a bug of the analyzer would: what stays in the larger cache is evicted from the real.

    The loops' code fits into an instruction cache of four lines: there the bound is the same, and true.
    """
    own = program("btree-best-fit", "mpc603e")
    config = getattr(own.target, cache)
    small = replace(own.target, **{cache: replace(config, sets=sets, ways=1)})
    bound = prove(operation_request(own, "malloc", HEAP_BYTES))
    binary = replace(allocator_binary(own, HEAP_BYTES), target=small)
    with pytest.raises(VerificationError):
        check_bound(document_of(bound, own.image), binary)


@cache
def of_unknown_alignment():
    """Free of djgpp-quarters without the fact that its pointers are aligned: the document, and its binary."""
    own = load_program(
        replace(load_allocator("djgpp-quarters", {}), facts=()), load_target("cortex-m7"), "zig", images_dir()
    )
    return document_of(prove(operation_request(own, "free", HEAP_BYTES)), own.image), allocator_binary(own, HEAP_BYTES)


def test_alignment_that_is_assumed_and_not_listed_is_refused():
    document, binary = of_unknown_alignment()
    check_bound(document, binary)
    without = copy.deepcopy(document)
    kept = [one for one in without["bound"]["assumptions"] if one["id"] != "alignment"]
    assert len(kept) < len(without["bound"]["assumptions"])
    without["bound"]["assumptions"] = kept
    with pytest.raises(VerificationError, match="costs at least"):
        check_bound(sealed(without), binary)


def test_alignment_of_another_place_is_refused():
    document, binary = of_unknown_alignment()
    document = copy.deepcopy(document)
    (listed,) = (one for one in document["bound"]["assumptions"] if one["id"] == "alignment")
    listed["statement"] = "no data access crosses a cache line at nowhere+0x0"
    with pytest.raises(VerificationError, match="costs at least"):
        check_bound(sealed(document), binary)


def test_a_fact_about_another_function_is_refused():
    binary = allocator_binary(program("first-fit", "mpc603e"), HEAP_BYTES)
    facts = [
        replace(one, content={**one.content, "sha256": "0" * 64}) if "sha256" in one.content else one
        for one in binary.asserted.facts
    ]
    asserted = replace(binary.asserted, facts=tuple(facts))
    with pytest.raises(VerificationError, match="is another one than the fact"):
        check(proved("first-fit", "mpc603e", "malloc"), "", "", replace(binary, asserted=asserted))


# ------------------------------------------------------------------------------------------------------ transfer


def step(line=None, *, spot=None, is_store=False, is_certain=True):
    if line is not None:
        spot = Spot("number", line * 16, 16)
    lines = frozenset({line}) if line is not None else None
    return Step(
        0, 0, spot, lines, is_fetch=False, is_store=is_store, fills=True, is_certain=is_certain, is_leaving=False
    )  # fmt: skip


@pytest.mark.covering
@pytest.mark.parametrize("replacement", Replacement)
@pytest.mark.parametrize("seed", range(8))
def test_lines_that_must_be_in_the_cache_are(replacement, seed):
    """Against the simulation, from any content: what must be in the cache is hit."""
    import random

    draw = random.Random(seed)
    config = cache_config(sets=4, ways=4, line_bytes=16, replacement=replacement)
    residents, simulation = Residents(config, {}, {}.get), CacheSimulation(config, InitialCache.DIRTY)
    must, hits = {}, 0
    for _ in range(600):
        line = draw.randrange(20)
        is_hit = simulation.access(line * 16, is_write=draw.random() < 0.3)
        own = step(line)
        if own.spot in must:
            assert is_hit
            hits += 1
        must = residents.touched(must, own)
    assert hits > 5


@pytest.mark.covering
@pytest.mark.parametrize("replacement", Replacement)
@pytest.mark.parametrize("are_placed", [False, True])
def test_lines_in_ranges_that_are_apart_stay(replacement, *, are_placed):
    """Against the simulation: names of which only a few lines are known, and each is one of them in the whole node.

    What is known tells each access to a name, or places that hold some of them where the node begins.
    """
    import random

    draw, kept = random.Random(6), 0
    config = cache_config(sets=4, ways=2, line_bytes=16, replacement=replacement)
    residents, simulation = Residents(config, {}, {}.get), CacheSimulation(config, InitialCache.DIRTY)
    for _ in range(400):
        ranges = {f"s{number}": draw.sample(range(20), draw.randrange(1, 4)) for number in range(4)}
        where = {name: draw.choice(lines) for name, lines in ranges.items()}
        names = [draw.choice(sorted(ranges)) for _ in range(6)]
        told = {name: None if are_placed and draw.random() < 0.4 else frozenset(own) for name, own in ranges.items()}
        placed = [(Spot(name, 0, 16), frozenset(own)) for name, own in ranges.items() if are_placed]
        steps = [
            replace(step(spot=Spot(name, 0, 16)), lines=told[name], is_certain=draw.random() < 0.9) for name in names
        ]
        must, plain = {}, {}
        for name, own, bare in zip(names, told_apart(steps, config, placed), steps, strict=True):
            is_hit = (own.is_certain or draw.random() < 0.5) and simulation.access(where[name] * 16, is_write=False)
            assert is_hit or not own.is_certain or own.spot not in must
            kept += own.spot in must and own.spot not in plain
            must, plain = residents.touched(must, own), residents.touched(plain, bare)
    assert kept > 5


def test_a_granule_is_apart_where_no_two_lines_of_a_set_can_differ():
    config = cache_config(sets=4, ways=2, line_bytes=16, replacement=Replacement.LRU)
    lines = {"s1": {1, 2}, "s2": {2, 5}, "s3": {3}, "s4": None}
    steps = [replace(step(spot=Spot(name, 0, 16)), lines=own and frozenset(own)) for name, own in lines.items()]
    apart = [{spot.base for spot in one.apart} for one in told_apart(steps, config)]
    assert apart == [{"s3"}, {"s3"}, {"s1", "s2"}, set()]
    steps[2] = replace(steps[2], is_certain=False)  # where it is skipped, s3 may be anything
    apart = [{spot.base for spot in one.apart} for one in told_apart(steps, config)]
    assert apart == [set(), set(), {"s1", "s2"}, set()]
    placed = [(Spot("s4", 0, 16), frozenset({7, 8})), (Spot("s5", 0, 16), frozenset({4})), (None, frozenset({4}))]
    apart = [{spot.base for spot in one.apart} for one in told_apart(steps, config, placed)]
    assert apart == [{"s4", "s5"}, {"s4", "s5"}, {"s1", "s2", "s5"}, set()]
    placed = [(Spot("s1", 0, 16), frozenset({1, 5})), (Spot("s5", 0, 16), frozenset())]
    apart = [{spot.base for spot in one.apart} for one in told_apart(steps, config, placed)]
    assert apart == [set(), set(), {"s1", "s2"}, set()]


@pytest.mark.covering
@pytest.mark.parametrize("replacement", Replacement)
@pytest.mark.parametrize("seed", range(8))
def test_misses_of_a_balance_are_no_more_than_its_credits(replacement, seed):
    import random

    draw = random.Random(seed)
    config = cache_config(sets=4, ways=4, line_bytes=16, replacement=replacement)
    residents, simulation = Residents(config, {}, {}.get), CacheSimulation(config, InitialCache.DIRTY)
    for _ in range(300):
        mine = draw.sample(range(12), 2)
        balance, misses = FULL, 0
        for _ in range(draw.randrange(1, 7)):
            line = draw.choice([*mine, draw.randrange(12)])
            is_hit = simulation.access(line * 16, is_write=False)
            if line in mine:
                balance = residents.paid(balance, step(line), 2, by_lines=True)
                misses += not is_hit
            else:
                balance = residents.passed(balance, step(line))
            if balance is None:
                break
            assert misses <= 2


def test_a_line_is_evicted_by_as_many_others_as_there_are_ways():
    config = cache_config(sets=8, ways=2, line_bytes=16, replacement=Replacement.LRU)
    residents = Residents(config, {"s1": Congruence(16, 0), "s2": Congruence(16, 0)}, {}.get)
    must = residents.touched({}, step(spot=Spot("s1", 0, 16)))
    must = residents.touched(must, step(spot=Spot("s2", 0, 16)))
    assert {spot.base for spot in must} == {"s1", "s2"}
    assert {spot.base for spot in residents.touched(must, step())} == {"s2"}


def test_a_pointer_that_steps_on_stands_for_another_line_each_round():
    """A base that is moved by an edge counts as one more line: else a traversal would be one line for ever."""
    config = cache_config(sets=8, ways=4, line_bytes=16, replacement=Replacement.LRU)
    residents = Residents(config, {"s1": Congruence(16, 0), "s2": Congruence(16, 0)}, {}.get)
    passage = Passage(frozenset({"s1"}), {"s1": (("s1", -16),)})
    must = residents.touched({}, step(spot=Spot("s2", 0, 16)))
    for _ in range(lasting_ways(config) - 1):
        must = residents.along(residents.touched(must, step(spot=Spot("s1", 0, 16))), passage)
        assert Spot("s2", 0, 16) in must
    assert Spot("s2", 0, 16) not in residents.touched(must, step(spot=Spot("s1", 0, 16)))


def test_a_symbol_that_begins_anew_takes_its_lines_along_under_new_names_only():
    config = cache_config(sets=8, ways=4, line_bytes=16, replacement=Replacement.LRU)
    residents = Residents(config, {"s1": Congruence(8, 0), "s2": Congruence(8, 0)}, {}.get)
    must = {Spot("s1", 8, 8): NOTHING}
    assert residents.along(must, Passage(frozenset({"s1"}), {})) == {}
    assert residents.along(must, Passage(frozenset({"s1", "s2"}), {"s1": (("s2", -8),)})) == {Spot("s2", 0, 8): NOTHING}


def test_tokens_are_not_spent_on_more_lines_than_there_are():
    config = cache_config(sets=8, ways=4, line_bytes=16, replacement=Replacement.LRU)
    residents = Residents(config, {"s1": Congruence(4, 0)}, {}.get)
    balance = residents.paid(FULL, step(spot=Spot("s1", 0, 4)), 1, by_lines=False)
    assert isinstance(balance, Bound)
    assert residents.paid(balance, step(spot=Spot("s1", 4, 4)), 1, by_lines=False) is None, "it may be in the next line"
    assert residents.paid(balance, step(spot=Spot("s1", 0, 4)), 1, by_lines=False) == balance


def test_what_is_said_must_follow():
    spot = Spot("s1", 0, 16)
    residents = Residents(cache_config(sets=8, ways=4), {"s1": Congruence(16, 0)}, {}.get)
    assert must_holds(residents, {spot: NOTHING}, {})
    assert not must_holds(residents, {}, {spot: NOTHING})


def test_others_are_as_many_as_lines_of_one_set():
    """Of lines known by number those of one set count; those of a name, or of the line's own set, may all be there."""
    residents = Residents(cache_config(sets=4, ways=8, line_bytes=16), {}, {}.get)
    numbers = [f"{16 * line:#x}" for line in (0, 1, 2, 3, 4)]
    for spot, most in ((Spot("x", 0, 16), 2), (Spot("number", 160, 16), 1), (Spot("number", 64, 16), 1)):
        for more in ((), ("a",), ("a", "b")):
            known = YoungerSet(frozenset({*numbers, *more}), 1)
            fewest = most + len(more) + 1
            assert residents.is_within(spot, known, YoungerSet(frozenset(), fewest))
            assert not residents.is_within(spot, known, YoungerSet(frozenset(), fewest - 1))
            assert joined(residents, spot, known, YoungerSet(frozenset("cdefgh"), 0)) == YoungerSet(frozenset(), 6)


def test_an_access_to_many_lines_ages_those_of_their_sets_only():
    """What may be to more lines than there are sets may be to any."""
    residents = Residents(cache_config(sets=128, ways=4, line_bytes=32), {}, {}.get)
    line = 1000
    must = {Spot("number", 32 * line, 32): NOTHING}
    for first in (line - 127, line - 100, line, line + 1, line + 2, line + 128):
        for count in (1, 27, 28, 101, 126, 127, 128, 129, 300):
            value = number(32 * first, 32 * (first + count) - 1)
            lines = _lines(Address(value, TOP, UNALIGNED, UNALIGNED), 0, residents.config, None)
            others = {first + one for one in range(count)} - {line}
            may_meet = count > 128 or any((other - line) % 128 == 0 for other in others)
            assert (residents.touched(must, replace(step(), lines=lines)) != must) == may_meet


def test_of_two_granules_in_each_other_the_line_is_one():
    config = cache_config(sets=16, ways=2, line_bytes=32)
    residents = Residents(config, {"s1": Congruence(16, 0)}, {}.get)
    must = {Spot("s1", 16, 16): NOTHING}
    assert all(residents.is_in(must, one) for one in (Spot("s1", 24, 8), Spot("s1", 0, 32)))
    others = Spot("s1", 32, 8), Spot("s2", 24, 8), Spot("s1", 12, 8), None
    assert not any(residents.is_in(must, one) for one in others)


def test_a_granule_that_gets_another_name_is_no_larger_than_it_was():
    """A fact makes the symbol a multiple of 16 for the code of others only: the access was by code that knows 8."""
    config = cache_config(sets=16, ways=2, line_bytes=32)
    residents = Residents(config, {"s1": Congruence(16, 0), "s2": Congruence(16, 0)}, {}.get)
    passage = Passage(frozenset({"s2"}), {"s1": (("s2", 0),)})
    behind = residents.along({Spot("s1", 24, 8): NOTHING}, passage)
    assert behind == {Spot("s1", 24, 8): NOTHING, Spot("s2", 24, 8): NOTHING}
