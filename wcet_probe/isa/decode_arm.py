"""Meaning of a disassembled ARM or Thumb-2 instruction: timing class, control flow, accesses, registers."""

from __future__ import annotations

from collections.abc import Iterator

from wcet_probe.isa.arm_accesses import arm_accesses, thumb_accesses
from wcet_probe.isa.decode_record import Record
from wcet_probe.isa.decode_vfp import TIMING_CLASSES as FLOAT_CLASSES
from wcet_probe.isa.decode_vfp import Float, interpret_float
from wcet_probe.model.instruction import Access, Control, Instruction
from wcet_probe.model.target import Isa

_PC = "r15"
_ALWAYS = 14

_NAMES = {
    "alu": "adc add addw adr and asr bic cmn cmp eor lsl lsr mov movs movt movw mvn neg orn orr ror rrx rsb rsc sbc "
    "sub subs subw teq tst sxtb sxth uxtb uxth rev rev16 revsh rbit",
    "multiply": "mul mla mls",
    "multiply_long": "smull umull smlal umlal",
    "multiply_halfword": "smulbb smulbt smultb smultt smlabb smlabt smlatb smlatt smulwb smulwt smlawb smlawt",
    "multiply_long_halfword": "smlalbb smlalbt smlaltb smlaltt",
    "saturating": "qadd qsub qdadd qdsub",
    "saturate": "ssat usat ssat16 usat16",
    "simd": "sadd16 sadd8 sasx ssax ssub16 ssub8 uadd16 uadd8 uasx usax usub16 usub8 shadd16 shadd8 shasx shsax "
    "shsub16 shsub8 uhadd16 uhadd8 uhasx uhsax uhsub16 uhsub8 qadd16 qadd8 qasx qsax qsub16 qsub8 uqadd16 uqadd8 "
    "uqasx uqsax uqsub16 uqsub8 usad8 usada8 sel pkhbt pkhtb sxtab sxtab16 sxtah sxtb16 uxtab uxtab16 uxtah uxtb16 "
    "smlad smladx smlald smlaldx smlsd smlsdx smlsld smlsldx smmla smmlar smmls smmlsr smmul smmulr smuad smuadx "
    "smusd smusdx umaal",
    "divide": "sdiv udiv",
    "count_leading_zeros": "clz",
    "bit_field": "bfc bfi sbfx ubfx",
    "load_word": "ldr ldrt",
    "load_narrow": "ldrb ldrbt ldrh ldrht ldrsb ldrsbt ldrsh ldrsht",
    "load_double": "ldrd",
    "load_multiple": "ldm ldmda ldmdb ldmib pop",
    "load_exclusive": "ldrex ldrexb ldrexh lda ldab ldah ldaex ldaexb ldaexh",
    "store": "str strt strb strbt strh strht",
    "store_double": "strd",
    "store_multiple": "stm stmda stmdb stmib push",
    "store_exclusive": "strex strexb strexh stl stlb stlh stlex stlexb stlexh",
    "swap": "swp",
    "swap_narrow": "swpb",
    "clear_exclusive": "clrex",
    "branch": "b",
    "compare_branch": "cbz cbnz",
    "call": "bl blx blxns",
    "branch_indirect": "bx bxns",
    "table_branch": "tbb tbh",
    "it": "it",
    "hint": "nop yield sev pld pldw pli dbg",
    "wait": "wfe wfi",
    "interrupt_mask": "cps",
    "status_read": "mrs",
    "status_write": "msr",
    "barrier": "dmb dsb isb",
    "supervisor_call": "svc",
    "secure_gateway": "sg",
    "test_target": "tt ttt tta ttat",
    "breakpoint": "bkpt",
    "undefined": "udf",
    "coprocessor": "cdp cdp2 mcr mcr2 mcrr mcrr2 mrc mrc2 mrrc mrrc2",
}
_CLASS_OF = {name: timing_class for timing_class, names in _NAMES.items() for name in names.split()}
_SHIFTS = frozenset({"asr", "lsl", "lsr", "ror", "rrx", "rev", "rev16", "revsh", "rbit", "sbfx", "ubfx"})
_HINTS = ("nop", "yield", "wfe", "wfi", "sev")
_COMPARES = frozenset({"cmn", "cmp", "teq", "tst"})
_UPDATES_DESTINATION = frozenset({"movt", "bfc", "bfi", "smlal", "umlal", "umaal", "smlalbb", "smlalbt", "smlaltb",
                                  "smlaltt", "smlald", "smlaldx", "smlsld", "smlsldx"})  # fmt: skip
_VARIANTS = ("alu_shift_by_register", "alu_to_pc", "multiply_flags", "multiply_long_flags", "load_word_scaled",
             "load_narrow_scaled", "load_pc", "load_pc_scaled", "load_one_multiple", "load_multiple_pc",
             "store_scaled", "store_one_multiple", "branch_conditional")  # fmt: skip
_CONTROL = {
    "branch": Control.BRANCH,
    "branch_conditional": Control.CONDITIONAL_BRANCH,
    "compare_branch": Control.CONDITIONAL_BRANCH,
    "call": Control.CALL,
    **dict.fromkeys(("branch_indirect", "table_branch", "alu_to_pc", "load_pc", "load_pc_scaled", "load_multiple_pc"),
                    Control.INDIRECT),
}  # fmt: skip
_DIRECT = (Control.BRANCH, Control.CONDITIONAL_BRANCH, Control.CALL)
_WITHOUT_RESULT = frozenset({"branch_indirect", "call", "compare_branch", "status_write", "coprocessor", "hint",
                             "supervisor_call", "table_branch", "store", "store_scaled", "store_double",
                             "store_multiple", "store_one_multiple"})  # fmt: skip
_SCALABLE = frozenset({"load_word", "load_narrow", "load_pc", "store"})
_MEMORY = ("load", "store", "swap", "table")
TIMING_CLASSES = frozenset(_NAMES).union(_VARIANTS, FLOAT_CLASSES)
"""All timing classes of ARM and Thumb-2."""


def interpret(record: Record) -> Instruction:
    """The meaning of ``record``; what it cannot tell is in the instruction's ``problem``."""
    if found := interpret_float(record):
        return _float(record, found)
    accesses = thumb_accesses(record) if record.isa is Isa.THUMB else arm_accesses(record)
    condition = _condition(record)
    timing_class = _timing_class(record, condition, accesses)
    control = _CONTROL.get(timing_class, Control.NEXT)
    loaded = _loaded(record, timing_class)
    writes = record.writes | loaded | _written_base(record, accesses) | _moved_from_coprocessor(record)
    branches = control is Control.CONDITIONAL_BRANCH or record.isa is Isa.THUMB
    reason = next(_reasons(record, timing_class, accesses), None) or _unpredictable(control, writes)
    return Instruction(
        address=record.address,
        size_bytes=record.size_bytes,
        text=record.text,
        timing_class=timing_class,
        registers=accesses[0].count if accesses and "multiple" in timing_class else 0,
        condition=_ALWAYS if branches else condition,
        control=control,
        branch_target=record.immediate if control in _DIRECT else None,
        accesses=accesses,
        reads=_reads(record, timing_class, accesses),
        writes=writes,
        loaded=loaded,
        shifted=_reads(record, timing_class, ()) if record.name in _SHIFTS else record.shifted,
        literal=timing_class.startswith("load") and any(access.base is None for access in accesses),
        problem=_problem(record, reason),
    )


def _float(record: Record, found: Float) -> Instruction:
    """The floating-point instruction ``found``."""
    bases = {access.base for access in found.accesses}
    return Instruction(
        address=record.address,
        size_bytes=record.size_bytes,
        text=record.text,
        timing_class=found.timing_class,
        registers=found.words,
        condition=_ALWAYS if record.isa is Isa.THUMB else _condition(record),
        accesses=found.accesses,
        reads=found.reads,
        writes=found.writes,
        loaded=found.writes - bases if found.timing_class.startswith("float_load") else frozenset(),
        literal=any(access.base is None for access in found.accesses),
        problem=_problem(record, _unpredictable(Control.NEXT, found.writes)),
    )


def _unpredictable(control: Control, writes: frozenset[str]) -> str | None:
    """Why nobody knows where control goes behind what is no branch: cores jump, or not."""
    return "writes the program counter" if control is Control.NEXT and _PC in writes else None


def _problem(record: Record, reason: str | None) -> str | None:
    return f"{record.address:#010x}: {record.text}: not supported: {reason}" if reason else None


def _condition(record: Record) -> int:
    """Condition of an A32 instruction or of a Thumb B<cond> (T1, T3); IT blocks are not seen here."""
    if record.isa is Isa.ARM:
        return min(record.bits(31, 28), _ALWAYS)
    if record.name != "b":
        return _ALWAYS
    if record.size_bytes == 2:
        return record.bits(11, 8) if record.bits(15, 12) == 0xD else _ALWAYS
    return _ALWAYS if record.bit(12) else record.bits(25, 22)


def _timing_class(record: Record, condition: int, accesses: tuple[Access, ...]) -> str:
    """The class of the mnemonic, refined by what the cycle tables tell apart."""
    timing_class = _CLASS_OF.get(_mnemonic(record), "unknown")
    match timing_class:
        case "alu" if record.name not in _COMPARES and _PC in record.operands[:1]:
            timing_class = "alu_to_pc"
        case "alu" if _a32(record, 0b000) and record.bit(4):
            timing_class = "alu_shift_by_register"
        case "multiply" | "multiply_long" if record.sets_flags:
            timing_class += "_flags"
        case "branch" if condition != _ALWAYS:
            timing_class = "branch_conditional"
        case "load_multiple" if _PC in record.operands:
            timing_class = "load_multiple_pc"
        case "load_multiple" | "store_multiple" if accesses and accesses[0].count == 1:
            timing_class = timing_class.replace("_", "_one_")
        case "load_word" if record.operands[0] == _PC:
            timing_class = "load_pc"
    scaled = timing_class in _SCALABLE and _a32(record, 0b011) and record.bits(11, 5) != 0
    scaled |= timing_class in _SCALABLE and any(access.subtract_index for access in accesses)
    return f"{timing_class}_scaled" if scaled else timing_class


def _mnemonic(record: Record) -> str:
    """The mnemonic; hints have a number, PUSH and POP of one register may be encoded as STR and LDR."""
    if record.name == "hint":
        number = record.bits(7, 4) if record.size_bytes == 2 else record.bits(7, 0)
        return _HINTS[number] if number < len(_HINTS) else "hint"
    single = _a32(record, 0b010) or (record.isa is Isa.THUMB and record.bits(31, 25) == 0b1111100)
    return {"pop": "ldr", "push": "str"}.get(record.name, record.name) if single else record.name


def _a32(record: Record, group: int) -> bool:
    """Whether ``record`` is an A32 instruction of the encoding group ``group``."""
    return record.isa is Isa.ARM and record.bits(27, 25) == group


def _loaded(record: Record, timing_class: str) -> frozenset[str]:
    """Registers that a load fills: the first operand, the first two, or the list."""
    if not timing_class.startswith(("load", "swap")):
        return frozenset()
    if "multiple" in timing_class:
        return frozenset(record.operands if record.name == "pop" else record.operands[1:])
    return frozenset(record.operands[: 2 if timing_class == "load_double" else 1])


def _written_base(record: Record, accesses: tuple[Access, ...]) -> frozenset[str]:
    """The base of an access with write-back, which the disassembler sometimes forgets."""
    post_indexed = record.isa is Isa.ARM and record.bits(27, 25) < 0b100 and not record.bit(24)
    return frozenset(access.base for access in accesses if access.base and (post_indexed or "!" in record.text))


def _moved_from_coprocessor(record: Record) -> frozenset[str]:
    """Registers that ``mrc`` and ``mrrc`` fill, which the disassembler calls read."""
    return frozenset(record.operands if record.name.startswith(("mrc", "mrrc")) else ())


def _reads(record: Record, timing_class: str, accesses: tuple[Access, ...]) -> frozenset[str]:
    """All that the disassembler knows, the registers of addresses, and all operands that are more than results."""
    addresses = frozenset(name for access in accesses for name in (access.base, access.index) if name)
    return record.reads | addresses | frozenset(record.operands[_result_count(record, timing_class) :])


def _result_count(record: Record, timing_class: str) -> int:
    """Number of leading operands that the instruction only writes; a load multiple's base is left to its access."""
    if timing_class.startswith("load") and "multiple" in timing_class:
        return len(record.operands)
    if record.name in _COMPARES | _UPDATES_DESTINATION or timing_class in _WITHOUT_RESULT:
        return 0
    return 2 if timing_class.startswith(("multiply_long", "load_double")) else 1


def _reasons(record: Record, timing_class: str, accesses: tuple[Access, ...]) -> Iterator[str]:
    """Why the instruction cannot be followed or charged."""
    if timing_class == "unknown":
        yield "timing class unknown"
    if timing_class.startswith(_MEMORY) != bool(accesses) or any(access.count == 0 for access in accesses):
        yield "memory access unknown"
    if any(_PC in (access.base, access.index) for access in accesses):
        yield "address unpredictable"
    if record.name == "blx" and record.immediate is not None:
        yield "change of the instruction set"
    if record.isa is Isa.ARM and "multiple" in timing_class and record.bits(27, 25) == 0b100 and record.bit(22):
        yield "user registers or return from an exception"
    if timing_class == "alu_to_pc" and record.sets_flags:
        yield "return from an exception"
