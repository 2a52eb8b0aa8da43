"""Data accesses of ARM and Thumb-2 instructions, read from their encodings (ARM DDI 0406C, chapters A5, A6 and F5).

The disassembler's memory operands are not used: the encoding is the one source for addresses, the mnemonic the one
for timing classes, and the decoder refuses an instruction where the two disagree about whether memory is accessed.
"""

from __future__ import annotations

from wcet_probe.isa.decode_record import Record
from wcet_probe.model.instruction import Access, AccessKind, Shift

_LOAD, _STORE = AccessKind.LOAD, AccessKind.STORE
_SP, _PC = "r13", "r15"
_SHIFTS = (Shift.LSL, Shift.LSR, Shift.ASR, Shift.ROR)

_NARROW_INDEXED = (
    *((_STORE, 4), (_STORE, 2), (_STORE, 1), (_LOAD, 1)),
    *((_LOAD, 4), (_LOAD, 2), (_LOAD, 1), (_LOAD, 2)),
)

_BESIDE_STORES = frozenset({"sg", "tt", "tta", "ttat", "ttt"})
"""Of ARMv8-M: encoded among stores, and none (ARM DDI 0553B, C2.4)."""


def arm_accesses(record: Record) -> tuple[Access, ...]:
    """Accesses of the A32 instruction ``record``; empty where its encoding is none of a load or store."""
    if record.bits(31, 28) == 15:
        return ()
    group = record.bits(27, 25)
    if group == 0b010 or (group == 0b011 and not record.bit(4)):
        return (_arm_word_or_byte(record),)
    if group == 0b100:
        return (_multiple(record),)
    if group == 0b000 and record.bit(7) and record.bit(4):
        return _arm_extra(record)
    return ()


def _kind(record: Record, load_bit: int = 20) -> AccessKind:
    return _LOAD if record.bit(load_bit) else _STORE


def _arm_word_or_byte(record: Record) -> Access:
    """LDR, STR, LDRB, STRB and their T forms: addressing mode 2."""
    kind, size = _kind(record), 1 if record.bit(22) else 4
    if not record.bit(25):
        return _arm_address(record, kind, size, record.bits(11, 0))
    shift, amount = _SHIFTS[record.bits(6, 5)], record.bits(11, 7)
    if shift is Shift.ROR and amount == 0:
        shift, amount = Shift.RRX, 1
    elif shift in (Shift.LSR, Shift.ASR) and amount == 0:
        amount = 32
    return _arm_address(record, kind, size, 0, index=record.register(0), shift=shift, amount=amount)


def _arm_extra(record: Record) -> tuple[Access, ...]:
    """Halfword, signed and double transfers (addressing mode 3), swap and exclusive accesses."""
    operation = record.bits(6, 5)
    if operation == 0:
        return _arm_synchronization(record)
    load = record.bit(20)
    double = not load and operation != 1
    size = 4 if double else 1 if load and operation == 2 else 2
    kind = _LOAD if load or operation == 2 else _STORE
    immediate = record.bit(22)
    offset = record.bits(11, 8) << 4 | record.bits(3, 0) if immediate else 0
    index = None if immediate else record.register(0)
    return (_arm_address(record, kind, size, offset, index=index, count=2 if double else 1),)


def _arm_synchronization(record: Record) -> tuple[Access, ...]:
    """SWP and SWPB; LDREX and STREX with their sizes. Multiplications share the encoding space."""
    base, operation = record.register(16), record.bits(24, 20)
    if operation in (0b10000, 0b10100):
        return (Access(AccessKind.LOAD_STORE, base, 0, 1 if record.bit(22) else 4),)
    if operation >= 0b11000:
        size, count = ((4, 1), (4, 2), (1, 1), (2, 1))[record.bits(22, 21)]
        return (Access(_kind(record), base, 0, size, count),)
    return ()


def _arm_address(
    record: Record,
    kind: AccessKind,
    size: int,
    offset: int,
    *,
    index: str | None = None,
    shift: Shift = Shift.LSL,
    amount: int = 0,
    count: int = 1,
) -> Access:
    """The access of a pre- or post-indexed transfer; a post-indexed one is at its base."""
    base, up, before = record.register(16), record.bit(23), record.bit(24)
    if not before:
        return Access(kind, base, 0, size, count)
    absolute = base == _PC
    displacement = (offset if up else -offset) + (record.address + 8 if absolute else 0)
    subtract = index is not None and not up
    return Access(kind, None if absolute else base, displacement, size, count, index, subtract, shift, amount)


def _multiple(record: Record) -> Access:
    """LDM or STM, which A32 and 32-bit Thumb encode alike: the lowest register is at the lowest address."""
    count = record.bits(15, 0).bit_count()
    before, up = record.bit(24), record.bit(23)
    displacement = 4 * before if up else 4 * (not before) - 4 * count
    return Access(_kind(record), record.register(16), displacement, 4, count)


def thumb_accesses(record: Record) -> tuple[Access, ...]:
    """Accesses of the Thumb instruction ``record``; empty where its encoding is none of a load or store."""
    if record.size_bytes == 2:
        access = _narrow(record)
        return (access,) if access else ()
    if record.bits(31, 25) == 0b1110100 and record.name not in _BESIDE_STORES:
        return _wide_multiple_dual_exclusive(record)
    if record.bits(31, 25) == 0b1111100 and (record.bit(20) or not record.bit(24)):
        return _wide_single(record)
    return ()


def _narrow(record: Record) -> Access | None:
    """The 16-bit loads and stores."""
    kind, access = _kind(record, 11), None
    match record.bits(15, 12):
        case 4 if record.bit(11):
            access = Access(_LOAD, None, _literal_base(record) + record.bits(7, 0) * 4, 4)
        case 5:
            kind, size = _NARROW_INDEXED[record.bits(11, 9)]
            access = Access(kind, record.register(3, 3), 0, size, index=record.register(6, 3))
        case (6 | 7 | 8) as group:
            size = {6: 4, 7: 1, 8: 2}[group]
            access = Access(kind, record.register(3, 3), record.bits(10, 6) * size, size)
        case 9:
            access = Access(kind, _SP, record.bits(7, 0) * 4, 4)
        case 11 if record.bits(10, 9) == 0b10:
            count = record.bits(8, 0).bit_count()
            access = Access(kind, _SP, 0 if kind is _LOAD else -4 * count, 4, count)
        case 12:
            access = Access(kind, record.register(8, 3), 0, 4, record.bits(7, 0).bit_count())
    return access


def _wide_multiple_dual_exclusive(record: Record) -> tuple[Access, ...]:
    """32-bit LDM and STM, LDRD and STRD, exclusive and ordered accesses, TBB and TBH."""
    before, up, load, base = record.bit(24), record.bit(23), record.bit(20), record.register(16)
    if not record.bit(22):
        return (_multiple(record),) if before != up else ()
    offset = record.bits(7, 0) * 4
    if before or record.bit(21):
        displacement = 0 if not before else offset if up else -offset
        return (_relative(record, Access(_kind(record), base, displacement, 4, 2)),)
    if not up:
        return (Access(_kind(record), base, offset, 4),)
    operation = record.bits(7, 4)
    if load and operation < 2:
        return (_table(record, base, operation),)
    sizes = {0b0100: (1, 1), 0b0101: (2, 1), 0b0111: (4, 2)}
    sizes |= {ordered | size: (1 << size, 1) for ordered in (0b1000, 0b1100) for size in (0, 1, 2)}
    return (Access(_kind(record), base, 0, *sizes[operation]),) if operation in sizes else ()


def _table(record: Record, base: str, halfwords: int) -> Access:
    """The table entry that TBB or TBH reads; the table of a pc-relative one starts at the next instruction."""
    absolute = base == _PC
    displacement = record.address + 4 if absolute else 0
    index = record.register(0)
    return Access(_LOAD, None if absolute else base, displacement, 1 << halfwords, index=index, shift_bits=halfwords)


def _wide_single(record: Record) -> tuple[Access, ...]:
    """32-bit loads and stores of one register; a byte or halfword load to the pc is a memory hint."""
    load, size_bits, base = record.bit(20), record.bits(22, 21), record.register(16)
    if size_bits == 3 or (load and size_bits != 2 and record.register(12) == _PC):
        return ()
    kind, size = _kind(record), 1 << size_bits
    if base == _PC:
        offset = record.bits(11, 0)
        return (Access(kind, None, _literal_base(record) + (offset if record.bit(23) else -offset), size),)
    if record.bit(23):
        return (Access(kind, base, record.bits(11, 0), size),)
    if record.bit(11):
        offset = record.bits(7, 0) if record.bit(9) else -record.bits(7, 0)
        return (Access(kind, base, offset if record.bit(10) else 0, size),)
    return (Access(kind, base, 0, size, index=record.register(0), shift_bits=record.bits(5, 4)),)


def _literal_base(record: Record) -> int:
    return (record.address + 4) & ~3


def _relative(record: Record, access: Access) -> Access:
    """``access`` with a pc base resolved."""
    if access.base != _PC:
        return access
    return Access(access.kind, None, _literal_base(record) + access.displacement, access.bytes_each, access.count)
