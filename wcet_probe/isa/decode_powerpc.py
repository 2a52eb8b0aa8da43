"""Meaning of a PowerPC instruction, read from its encoding (PowerPC UISA/VEA, 32-bit implementations).

The disassembler gives the text and the word that this is an instruction; opcodes, registers and addresses are read
from the encoding, whose few formats put each field at one place. Forms with OE set, which compilers do not emit, are
unknown to Capstone and hence refused.
"""

from __future__ import annotations

from typing import NamedTuple

from wcet_probe.isa.decode_record import Record, signed
from wcet_probe.model.instruction import Access, AccessKind, Control, Instruction

_LOAD, _STORE = AccessKind.LOAD, AccessKind.STORE
_LINE_BYTES = 32


class _Plain(NamedTuple):
    """An instruction without memory access.

    ``reads`` and ``writes`` name fields of the encoding: ``d`` bits 6-10, ``a`` 11-15 (``0``: the same, but r0 reads
    as zero), ``b`` 16-20; in capitals floating-point registers, ``C`` bits 21-25.
    """

    timing_class: str
    reads: str = ""
    writes: str = ""


class _Memory(NamedTuple):
    """A load or store of ``bytes_each`` bytes; ``update`` writes the address back to rA."""

    timing_class: str
    kind: AccessKind
    bytes_each: int
    update: bool = False
    data: str = "r"


def _float_memory(code: int) -> _Memory:
    """Loads and stores of a floating-point register: bit 2 store, bit 1 double, bit 0 with update."""
    name, kind = ("float_store", _STORE) if code & 4 else ("float_load", _LOAD)
    size = 8 if code & 2 else 4
    return _Memory(f"{name}{'_double' if size == 8 else ''}", kind, size, update=bool(code & 1), data="f")


def _accesses(first: int, step: int) -> dict[int, _Memory]:
    """Loads and stores of an integer register, by their codes: each without update, then with it.

    Of words, bytes and halfwords, which are loaded with zeros or with their sign.
    """
    kinds = ("load", 4), ("load", 1), ("store", 4), ("store", 1), ("load", 2), ("load", 2), ("store", 2)
    both = ((name, size, update) for name, size in kinds for update in (False, True))
    return {
        first + step * number: _Memory(name, _LOAD if name == "load" else _STORE, size, update=update)
        for number, (name, size, update) in enumerate(both)
    }


_PRIMARY: dict[int, _Plain | _Memory] = {
    3: _Plain("trap", "a"),
    7: _Plain("multiply_immediate", "a", "d"),
    8: _Plain("integer", "a", "d"),
    10: _Plain("compare", "a"),
    11: _Plain("compare", "a"),
    12: _Plain("integer", "a", "d"),
    13: _Plain("integer", "a", "d"),
    14: _Plain("integer", "0", "d"),
    15: _Plain("integer", "0", "d"),
    17: _Plain("system"),
    20: _Plain("integer", "da", "a"),
    21: _Plain("integer", "d", "a"),
    23: _Plain("integer", "db", "a"),
    **dict.fromkeys(range(24, 30), _Plain("integer", "d", "a")),
    **_accesses(32, 1),
    46: _Memory("load_multiple", _LOAD, 4),
    47: _Memory("store_multiple", _STORE, 4),
    **{48 + code: _float_memory(code) for code in range(8)},
}
_SUBTRACT_ADD = {8: "ab", 10: "ab", 40: "ab", 104: "a", 136: "ab", 138: "ab", 200: "a", 202: "a", 232: "a", 234: "a",
                 266: "ab"}  # fmt: skip
_LOGICAL = {24: "db", 26: "d", 28: "db", 60: "db", 124: "db", 284: "db", 316: "db", 412: "db", 444: "db", 476: "db",
            536: "db", 792: "db", 824: "d", 922: "d", 954: "d"}  # fmt: skip
_EXTENDED: dict[int, _Plain | _Memory] = {
    **{code: _Plain("integer", fields, "d") for code, fields in _SUBTRACT_ADD.items()},
    **{code: _Plain("integer", fields, "a") for code, fields in _LOGICAL.items()},
    235: _Plain("multiply_low", "ab", "d"),
    75: _Plain("multiply_high", "ab", "d"),
    11: _Plain("multiply_high_unsigned", "ab", "d"),
    **dict.fromkeys((459, 491), _Plain("divide", "ab", "d")),
    0: _Plain("compare", "ab"),
    32: _Plain("compare", "ab"),
    4: _Plain("trap", "ab"),
    19: _Plain("move_from_condition", "", "d"),
    144: _Plain("move_to_condition", "d"),
    83: _Plain("move_from_machine_state", "", "d"),
    146: _Plain("move_to_machine_state", "d"),
    131: _Plain("write_external_enable", "d"),
    163: _Plain("write_external_enable"),
    339: _Plain("move_from_special", "", "d"),
    371: _Plain("move_from_special", "", "d"),
    467: _Plain("move_to_special", "d"),
    598: _Plain("synchronize"),
    854: _Plain("enforce_order"),
    **dict.fromkeys((246, 278), _Plain("cache_hint", "0b")),
    **dict.fromkeys((54, 86, 470, 758, 982), _Plain("cache_management", "0b")),
    **_accesses(23, 32),
    534: _Memory("load", _LOAD, 4),
    662: _Memory("store", _STORE, 4),
    790: _Memory("load", _LOAD, 2),
    918: _Memory("store", _STORE, 2),
    20: _Memory("load_reserve", _LOAD, 4),
    150: _Memory("store_conditional", _STORE, 4),
    597: _Memory("load_string", _LOAD, 1),
    725: _Memory("store_string", _STORE, 1),
    1014: _Memory("cache_zero", _STORE, _LINE_BYTES),
    **{535 + 32 * code: _float_memory(code) for code in range(8)},
    983: _Memory("float_store", _STORE, 4, data="f"),
}
_FLOAT_FIVE_BITS = {
    **dict.fromkeys((20, 21), _Plain("float_add", "AB", "D")),
    25: _Plain("float_multiply", "AC", "D"),
    18: _Plain("float_divide", "AB", "D"),
    **dict.fromkeys(range(28, 32), _Plain("float_multiply_add", "ACB", "D")),
}
_FLOAT_SINGLE = {**_FLOAT_FIVE_BITS, 24: _Plain("float_estimate", "B", "D")}
"""Primary opcode 59, by bits 26-30."""
_FLOAT_DOUBLE = {
    **{code: row._replace(timing_class=f"{row.timing_class}_double") for code, row in _FLOAT_FIVE_BITS.items()},
    23: _Plain("float_move", "ABC", "D"),
    26: _Plain("float_estimate", "B", "D"),
}
"""Primary opcode 63, by bits 26-30."""
_FLOAT = {
    **dict.fromkeys((0, 32), _Plain("float_compare", "AB")),
    **dict.fromkeys((12, 14, 15), _Plain("float_convert", "B", "D")),
    **dict.fromkeys((40, 72, 136, 264), _Plain("float_move", "B", "D")),
    583: _Plain("float_status", "", "D"),
    711: _Plain("float_status", "B"),
    **dict.fromkeys((38, 64, 70, 134), _Plain("float_status")),
}
"""Primary opcode 63, by bits 21-30."""
_CONDITION_LOGICAL = frozenset({33, 129, 193, 225, 257, 289, 417, 449})
_SPECIAL = {8: "lr", 9: "ctr"}
_HARMLESS_SPECIAL = frozenset({1, 8, 9, 256, *range(272, 280), 512})
"""Special registers that may be written: XER, LR, CTR, USPRG0, SPRG0 to 7, SPEFSCR. Of the others some turn caches or
translation off, or invalidate what is in them."""
_ALWAYS_RECORDS = frozenset({13, 28, 29})  # addic., andi., andis.
_MAY_RECORD = frozenset({20, 21, 23, 31})
_ROWS = (*_PRIMARY.values(), *_EXTENDED.values(), *_FLOAT_SINGLE.values(), *_FLOAT_DOUBLE.values(), *_FLOAT.values())
TIMING_CLASSES = frozenset(row.timing_class for row in _ROWS).union(
    ("branch", "branch_conditional", "branch_indirect", "call", "condition_logical", "instruction_synchronize")
)
"""All timing classes of PowerPC."""


def interpret(record: Record) -> Instruction:
    """The meaning of ``record``; what it cannot tell is in the instruction's ``problem``."""
    primary, extended = record.bits(31, 26), record.bits(10, 1)
    if primary in (16, 18) or (primary == 19 and extended in (16, 528)):
        return _branch(record, primary, extended)
    row: _Plain | _Memory | None = _EXTENDED.get(extended) if primary == 31 else _PRIMARY.get(primary)
    if primary == 19:
        row = _system_19(extended)
    elif primary in {59, 63}:
        short = _FLOAT_SINGLE if primary == 59 else _FLOAT_DOUBLE
        row = short.get(record.bits(5, 1)) or (_FLOAT.get(extended) if primary == 63 else None)
    if isinstance(row, _Memory):
        return _memory(record, row)
    if row is None:
        return _instruction(record, "unknown", problem=f"{_where(record)}: not supported: timing class unknown")
    reads, writes = _fields(record, row.reads), _fields(record, row.writes)
    special = _SPECIAL.get(record.bits(20, 16), "") if not record.bits(15, 11) else ""
    if special and row.timing_class == "move_from_special":
        reads |= {special}
    if special and row.timing_class == "move_to_special":
        writes |= {special}
    condition_reads, condition_writes = _condition_fields(record, row.timing_class)
    reads, writes = reads | condition_reads, writes | condition_writes
    problem = None
    if row.timing_class == "cache_management":
        problem = f"{_where(record)}: not supported: its effect on the caches is not modelled"
    number = record.bits(15, 11) << 5 | record.bits(20, 16)
    if row.timing_class == "move_to_special" and number not in _HARMLESS_SPECIAL:
        problem = f"{_where(record)}: not supported: what special register {number} changes is not modelled"
    return _instruction(record, row.timing_class, reads=reads, writes=writes, problem=problem)


def _system_19(extended: int) -> _Plain | None:
    """Primary opcode 19: condition register logic, isync, rfi; its branches apart."""
    if extended in _CONDITION_LOGICAL or extended == 0:
        return _Plain("condition_logical")
    return {50: _Plain("system"), 150: _Plain("instruction_synchronize")}.get(extended)


def _condition_fields(record: Record, timing_class: str) -> tuple[frozenset[str], frozenset[str]]:
    """The fields of the condition register that the instruction reads and writes."""
    primary = record.bits(31, 26)
    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    if timing_class == "compare":
        writes = _field(record.bits(25, 23))
    elif timing_class == "condition_logical" and record.bits(10, 1) == 0:
        reads, writes = _field(record.bits(20, 18)), _field(record.bits(25, 23))
    elif timing_class == "condition_logical":
        reads = _field(record.bits(20, 18)) | _field(record.bits(15, 13))
        writes = _field(record.bits(25, 23))
    elif timing_class == "move_from_condition":
        reads = frozenset().union(*map(_field, range(8)))
    elif timing_class == "move_to_condition":
        writes = frozenset().union(*(_field(field) for field in range(8) if record.bit(19 - field)))
    elif timing_class == "float_compare" or (timing_class == "float_status" and record.bits(10, 1) == 64):
        writes = _field(record.bits(25, 23))
    elif timing_class.startswith("float") and primary in {59, 63}:
        writes = _field(1) if record.bit(0) else frozenset()
    elif primary in _ALWAYS_RECORDS or (primary in _MAY_RECORD and record.bit(0)):
        writes = _field(0)
    return reads, writes


def _field(number: int) -> frozenset[str]:
    return frozenset({f"cr{number}"})


def _branch(record: Record, primary: int, extended: int) -> Instruction:
    """b, bc, bclr and bcctr with their absolute and linking forms.

    One that links to the next instruction calls nothing: position-independent code asks so where it is.
    """
    link, always = record.bit(0), primary == 18 or record.bits(25, 21) & 0x14 == 0x14
    target = None
    if primary != 19:
        width = 26 if primary == 18 else 16
        displacement = signed(record.bits(width - 1, 2) << 2, width)
        target = displacement + (0 if record.bit(1) else record.address) & 0xFFFFFFFF
    if not always:
        control, timing_class = Control.CONDITIONAL_BRANCH, "branch_conditional"
    elif link:
        control, timing_class = Control.BRANCH if target == record.address + 4 else Control.CALL, "call"
    else:
        control = Control.BRANCH if primary != 19 else Control.INDIRECT
        timing_class = "branch" if primary != 19 else "branch_indirect"
    counts = primary != 18 and not record.bit(23)
    register = {16: "lr", 528: "ctr"}[extended] if primary == 19 else ""
    tests = primary != 18 and not record.bit(25)
    return _instruction(
        record,
        timing_class,
        control=control,
        branch_target=target,
        reads=frozenset({register} - {""} | ({"ctr"} if counts else set()))
        | (_field(record.bits(20, 18)) if tests else frozenset()),
        writes=frozenset(({"lr"} if link else set()) | ({"ctr"} if counts else set())),
        problem=f"{_where(record)}: not supported: conditional call" if link and not always else None,
    )


def _memory(record: Record, row: _Memory) -> Instruction:
    """A load or store; rA = 0 stands for zero, not for r0, unless it is updated."""
    indexed = record.bits(31, 26) == 31
    count = registers = 1
    if "multiple" in row.timing_class:
        count = registers = 32 - record.bits(25, 21)
    elif "string" in row.timing_class:
        count = record.bits(15, 11) or 32
        registers = (count + 3) // 4
    base = record.register(16, 5) if record.bits(20, 16) or row.update else None
    has_index = indexed and "string" not in row.timing_class
    index = record.register(11, 5) if has_index else None
    displacement = 0 if indexed else signed(record.bits(15, 0), 16)
    zero_line = row.timing_class == "cache_zero"
    align_mask = 0x100000000 - _LINE_BYTES if zero_line else 0xFFFFFFFF
    access = Access(row.kind, base, displacement, row.bytes_each, count, index, align_mask=align_mask)
    first = record.bits(25, 21)
    data = frozenset() if zero_line else frozenset(f"{row.data}{(first + i) % 32}" for i in range(registers))
    address = frozenset(name for name in (base, index) if name)
    loads = row.kind is _LOAD
    return _instruction(
        record,
        row.timing_class,
        registers=registers if "multiple" in row.timing_class or "string" in row.timing_class else 0,
        accesses=(access,),
        reads=address if loads else address | data,
        writes=(data if loads else frozenset())
        | (frozenset({base}) if row.update and base else frozenset())
        | (_field(0) if row.timing_class == "store_conditional" else frozenset()),
        loaded=data if loads else frozenset(),
    )


def _fields(record: Record, fields: str) -> frozenset[str]:
    """Registers named by the letters of ``fields``."""
    low = {"d": 21, "a": 16, "0": 16, "b": 11, "c": 6}
    return frozenset(
        f"{'f' if letter.isupper() else 'r'}{record.bits(low[letter.lower()] + 4, low[letter.lower()])}"
        for letter in fields
        if letter != "0" or record.bits(20, 16)
    )


def _where(record: Record) -> str:
    return f"{record.address:#010x}: {record.text}"


def _instruction(record: Record, timing_class: str, **properties: object) -> Instruction:
    return Instruction(record.address, 4, record.text, timing_class, **properties)  # type: ignore[arg-type]
