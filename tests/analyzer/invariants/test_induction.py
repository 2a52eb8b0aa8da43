"""What memory holds by induction over all operations: which stores a load may see, and small modules."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from tests.analyzer.invariants.small_memory import small_module
from tests.analyzer.invariants.test_contents import stands_for
from tests.analyzer.invariants.test_typed_memory import GIVE, SETUP, TAKE
from tests.analyzer.small_functions import lifter_of
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.invariants.contents import Region, in_arena, number
from wcet_probe.analyzer.invariants.induction import RESULT, Module, _overlap, _sees, _Target, invariants
from wcet_probe.analyzer.invariants.obligations import Lemma
from wcet_probe.analyzer.invariants.operations import operation
from wcet_probe.analyzer.values.properties.own_block import Roles

WAY_BITS = 12
INTERVALS = st.builds(
    lambda low, extent, stride: strided.between(8, low, low + extent, stride),
    st.integers(-20, 20),
    st.integers(0, 20),
    st.sampled_from((1, 2, 4, 8)),
)
SIZES = st.sampled_from((1, 2, 4))


@given(INTERVALS, SIZES, SIZES)
def test_words_overlap_as_their_bytes_do(distances, loaded, stored):
    partly = same = False
    for distance in distances.values():
        at = distance - 256 if distance > 127 else distance
        shared = set(range(at, at + loaded)) & set(range(stored))
        same |= at == 0 and loaded == stored
        partly |= bool(shared) and not (at == 0 and loaded == stored)
    assert _overlap(distances, loaded, stored) is (None if partly else same)


def target(address, size=4, distance=None):
    return _Target(distance, size, address)


def at(low, high=None, stride=4):
    return number(strided.between(32, low, low if high is None else high, stride), WAY_BITS)


def test_a_load_sees_a_store_where_their_addresses_may_be_the_same():
    static, arena = at(0x200000, 0x200010), in_arena(strided.residue_class(WAY_BITS, 0, 8))
    assert _sees(target(static), target(at(0x200008)))
    assert _sees(target(static), target(at(0x200014))) is False
    assert _sees(target(static), target(at(0x20000A))) is None
    assert _sees(target(static), target(arena)) is False
    assert _sees(target(arena), target(in_arena(strided.residue_class(WAY_BITS, 4, 8)))) is False
    assert _sees(target(arena), target(in_arena(strided.residue_class(WAY_BITS, 16, 32)))) is True
    assert _sees(target(arena), target(in_arena(strided.residue_class(WAY_BITS, 2, 8)))) is None
    both, other = (*at(0x200008), *arena), (*at(0x200008), *in_arena(strided.residue_class(WAY_BITS, 4, 8)))
    assert _sees(target(both), target(other)) is True  # the static word, though not the one in the arena
    for load, store in product((-8, 0, 2, 8), repeat=2):
        found = _sees(target(arena, distance=load), target(arena, distance=store))
        assert found is (None if 0 < abs(load - store) < 4 else load == store)
    assert _sees(target(arena, distance=8), target(arena)) is False  # lemma blocks-apart


def module_of(setup=SETUP, take=TAKE, give=GIVE):
    guest, values = small_module({"setup": setup, "take": take, "give": give})
    lifter = lifter_of(guest)
    roles = {"setup": Roles(None, None), "take": Roles(None, "r3"), "give": Roles("r3", None)}
    operations = [operation(name, values[name], guest.image, lifter, roles[name], "r3") for name in roles]
    arena = in_arena(strided.residue_class(WAY_BITS, 0, 8))
    argument = values["setup"].terms.symbol(("in", values["setup"].registers["r3"]), 32)
    module = Module(guest.image, operations, [{argument: arena}, {}, {}], WAY_BITS, first=0)
    return operations, invariants(module)


def test_what_is_returned_and_given_back_is_a_block_or_null():
    operations, found = module_of()
    assert not found.lost
    returned = found.found[1, RESULT]
    assert [part.region for part in returned] == [Region.ARENA]
    assert strided.leq(returned[0].way, strided.residue_class(WAY_BITS, 0, 8))
    given = operations[2].values.terms.symbol(("in", operations[2].values.registers["r3"]), 32)
    null, *blocks = found.found[2, given]
    assert null.is_null
    assert tuple(blocks) == returned


def test_a_number_that_is_counted_up_to_a_limit_stays_below_it():
    counting = "lis 9, head@ha\naddi 9, 9, head@l\nlwz 5, 4(9)\ncmplwi 5, 5\nbge 1f\naddi 5, 5, 1\nstw 5, 4(9)\n1: blr"
    operations, found = module_of(give=counting)
    (load,) = (place for place, one in enumerate(operations[2].moved) if not one.transfer.is_store)
    one = operations[2].moved[load]
    symbol = one.transfer.state.terms.symbol(one.symbol_name, 32)
    word = found.found[2, symbol]
    assert all(stands_for(word, value) for value in range(6))
    assert not any(stands_for(word, value) for value in (6, 7, 100, 1 << 31))


def test_a_store_whose_address_is_not_known_leaves_nothing_known():
    _, found = module_of(give="lwz 5, 0(4)\nmullw 5, 5, 5\nstw 3, 0(5)\nblr")
    assert found.lost
    assert found.first_lost


def test_each_lemma_is_told_with_the_places_that_need_it():
    _, found = module_of()
    assert found.needed.keys() <= set(Lemma)
    assert found.needed[Lemma.OBJECTS]
    assert all(place[0] in {0, 1, 2} for places in found.needed.values() for place in places)
