"""An operation of the native core has the result that `compiled_blocks` gives it, whatever is known of its operands."""

from ctypes import byref, c_uint64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.support import guest_of
from wcet_probe.analyzer.loops import native_code, native_core
from wcet_probe.analyzer.loops.native_code import FUNCTIONS, Operation, UntranslatableError, accesses_of, encoded
from wcet_probe.analyzer.pcode import semantics
from wcet_probe.analyzer.pcode.lift import image_lifter
from wcet_probe.analyzer.pcode.operations import LiftedInstruction, PcodeOp, Varnode
from wcet_probe.analyzer.values.execution.compiled_blocks import CompiledExecution
from wcet_probe.analyzer.values.execution.constant_arithmetic import LINK
from wcet_probe.analyzer.values.execution.constant_execution import ConstantExecution
from wcet_probe.analyzer.values.execution.needed_operations import Needed
from wcet_probe.analyzer.values.states.memory import Memory
from wcet_probe.catalog.lookup import load_target

UNARY = FUNCTIONS[: FUNCTIONS.index("INT_ADD")]
FLAGS = {"BOOL_NEGATE", "BOOL_AND", "BOOL_OR", "BOOL_XOR"}
TESTED = {"INT_EQUAL", "INT_NOTEQUAL", "INT_LESS", "INT_LESSEQUAL", "INT_SLESS", "INT_SLESSEQUAL", "INT_CARRY"} | {
    *("INT_SCARRY", "INT_SBORROW", "SignedDoesSaturate", "UnsignedDoesSaturate", *FLAGS)
}
POINTER = 0x2000_8000


def sizes_of(draw, name):  # noqa: PLR0911  one for each kind
    """Bytes of the operands and of the result."""
    own = 1 if name in FLAGS else draw(st.sampled_from([1, 2, 4, 8] if name != "PIECE" else [1, 2, 4]))
    if name in TESTED:
        return (own, own), 1
    if name in {"INT_ZEXT", "INT_SEXT"}:
        return (own,), draw(st.sampled_from([size for size in (1, 2, 4, 8) if size >= own]))
    if name in {"POPCOUNT", "LZCOUNT"}:
        return (own,), draw(st.sampled_from([1, 2, 4]))
    if name == "PIECE":
        return (own, own), 2 * own
    if name == "SUBPIECE":
        return (own, 4), draw(st.sampled_from([size for size in (1, 2, 4, 8) if size <= own]))
    if name in {"INT_LEFT", "INT_RIGHT", "INT_SRIGHT"}:
        return (own, draw(st.sampled_from([own, 1, 4]))), own
    return (own, own), own


def value_of(draw, size):
    """What may be known of a value."""
    top = 1 << 8 * size
    numbers = st.one_of(
        st.integers(0, top - 1), st.integers(0, 70).map(lambda n: n % top), st.integers(1, 9).map(lambda n: top - n)
    )
    kinds = [numbers, numbers, st.none()]
    if size == 1:
        known = st.integers(1, 254)
        kinds.append(known.flatmap(lambda mask: st.integers(0, 255).map(lambda bits: (mask, bits & mask))))
    if size == 4:
        places = st.one_of(st.integers(-64, 64), st.integers(-(1 << 31), (1 << 31) - 1))
        kinds += [places.map(lambda n: (n,)), places.map(lambda n: (n, 0, -1)), st.just(LINK)]
        kinds.append(st.integers(1, 7).flatmap(lambda mask: st.integers(0, 7).map(lambda bits: (mask, bits & mask))))
    return draw(st.one_of(kinds))


def as_slot(value):
    """Kind and number of a slot."""
    if value is None:
        return native_core.UNKNOWN, 0
    if isinstance(value, int):
        return native_core.NUMBER, value
    if value == LINK:
        return native_core.LINK, 0
    if len(value) == 2:
        return native_core.BITS, value[0] | value[1] << 8
    return native_core.STACK if len(value) == 1 else native_core.LESS_STACK, value[0] % (1 << 32)


def of_slot(library, run, slot):
    """The value in a slot."""
    number = c_uint64()
    kind = library.wp_run_value(run, slot, byref(number))
    word = number.value
    signed = word - (word >> 31 << 32)
    return {
        native_core.NUMBER: word,
        native_core.STACK: (signed,),
        native_core.LESS_STACK: (signed, 0, -1),
        native_core.LINK: LINK,
        native_core.BITS: (word & 0xFF, word >> 8),
        native_core.UNKNOWN: None,
    }[kind]


@pytest.fixture(scope="module")
def execution():
    guest = guest_of("void f(void) {}", load_target("cortex-m4"), ".c")
    lifter = image_lifter(guest.target.pcode_language, guest.target.isa, guest.image.segments)
    return ConstantExecution(Memory(guest.image), lifter)


def executed(operations, values, pointer):
    """What the core leaves in the last of the slots that hold ``values``, and what it rests on."""
    library = native_core.load()
    setup = native_core.SetupLayout(entry=4, stack_pointer=pointer or 0, knows_stack_pointer=pointer is not None)
    run = library.wp_run_open(byref(setup))
    for value in values:
        library.wp_run_slot(run, *as_slot(value))
    code = native_core.CodeLayout(4, 8, 1, len(operations), 1, 0, 0, 1)
    assert library.wp_run_block(run, byref(code), (native_core.OperationLayout * len(operations))(*operations))
    library.wp_run_follow(run, 1)
    counts = native_core.CountsLayout()
    library.wp_run_counts(run, byref(counts))
    found = of_slot(library, run, len(values) - 1)
    library.wp_run_close(run)
    return found, bool(counts.tells_alignment), bool(counts.tells_stack_pointer), counts.stack_reach


def test_each_operation_is_one_of_integers_and_none_is_missing():
    assert set(FUNCTIONS) == set(semantics._SEMANTICS)
    assert all(map(semantics.is_operation, FUNCTIONS))


@pytest.mark.parametrize("name", FUNCTIONS)
@given(data=st.data())
@settings(max_examples=examples(15), deadline=None)
def test_an_operation_has_the_result_of_its_twin(execution, name, data):
    sizes, out = sizes_of(data.draw, name)
    sizes = sizes[:1] if name in UNARY else sizes
    values = [value_of(data.draw, size) for size in sizes]
    if name.endswith("Saturate"):
        values[1] = data.draw(st.integers(0, 31))
    pointer = data.draw(st.sampled_from([None, POINTER]))
    is_user = name.endswith("Saturate")
    inputs = tuple(Varnode("unique", 0x100 * number, size) for number, size in enumerate(sizes, 1))
    op = PcodeOp("CALLOTHER" if is_user else name, Varnode("unique", 0, out), inputs, name if is_user else "")
    twin = CompiledExecution(execution, pointer)
    told = twin.result(twin._op(op), values)
    from_bytes = sizes[-1 if name == "PIECE" else 0]
    one = Operation(FUNCTIONS.index(name), from_bytes, out, 2, 0, len(sizes) - 1)
    both = values if len(values) == 2 else [*values, None]
    found = executed([one, Operation(native_code.FALL)], [*both, None], pointer)
    assert found == (told, twin.tells_alignment, twin.tells_stack_pointer, twin.stack_reach)


def instruction(*ops):
    return LiftedInstruction(0x100, 4, ops)


A, B, FLAG = Varnode("register", 0, 4), Varnode("register", 4, 4), Varnode("unique", 0, 1)
WORD = Varnode("ram", 0x2000, 4)


def test_accesses_are_counted_on_each_way():
    skip = PcodeOp("CBRANCH", None, (Varnode("const", 2, 4), FLAG))
    assert accesses_of(instruction(skip, PcodeOp("LOAD", A, (B,)), PcodeOp("COPY", B, (A,)))) == {0, 1}
    assert accesses_of(instruction(PcodeOp("INT_ADD", WORD, (WORD, A)))) == {2}
    away = PcodeOp("CBRANCH", None, (Varnode("ram", 0x80, 4), FLAG))
    assert accesses_of(instruction(PcodeOp("STORE", None, (A, B)), away)) == {1}


def slots():
    places = {}
    return native_code.Slots(
        of=lambda place: places.setdefault(place, len(places)),
        number=lambda number: 100 + number,
        unknown=99,
        scratch=lambda number: 50 + number,
        part_of=lambda _: None,
        access=lambda *_: 7,
        float_status=(),
        mode=None,
    )


def test_a_temporary_that_may_not_have_been_written_is_forgotten_first():
    skip = PcodeOp("CBRANCH", None, (Varnode("const", 2, 4), A))
    one = instruction(skip, PcodeOp("COPY", FLAG, (Varnode("const", 1, 1),)), PcodeOp("COPY", B, (FLAG,)))
    found = encoded([one], Needed(((0, 1, 2),), ()), slots())
    assert [each.code for each in found[:2]] == [native_code.FORGET, native_code.SKIP]
    assert found[1].place == 3
    without = encoded([instruction(*one.ops[1:])], Needed(((0, 1),), ()), slots())
    assert native_code.FORGET not in [each.code for each in without]


@pytest.mark.parametrize(
    "op",
    [
        PcodeOp("COPY", Varnode("register", 0, 16), (Varnode("register", 16, 16),)),
        PcodeOp("CBRANCH", None, (Varnode("const", (1 << 32) - 1, 4), FLAG)),
        PcodeOp("SEGMENTOP", A, (A, B)),
    ],
    ids=["wide", "back", "unknown"],
)
def test_what_the_core_has_no_operation_for_is_refused(op):
    with pytest.raises(UntranslatableError):
        encoded([instruction(PcodeOp("COPY", FLAG, (FLAG,)), op)], Needed(((0, 1),), ()), slots())
