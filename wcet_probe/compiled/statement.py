"""One instruction as a statement of C: what it does, and what the observer counts of it.

An instruction that fails, because the guest must not make its access, is undone and left to the engine, which makes the
same mistake again and tells of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from wcet_probe.analyzer.pcode.lift import Lifter
from wcet_probe.analyzer.pcode.operations import LiftedInstruction, PcodeOp, Varnode
from wcet_probe.analyzer.pcode.semantics import signed
from wcet_probe.compiled.blocks import Block, Flow
from wcet_probe.compiled.expressions import TYPES, Storage, Untranslatable, constant, expression
from wcet_probe.compiled.spans import Span, span_of
from wcet_probe.emu.compiled import Detail
from wcet_probe.emu.layout import RETURN_ADDRESS
from wcet_probe.model.instruction import Access, AccessKind, Control, Instruction, InstructionCost, Shift
from wcet_probe.model.target import Isa, MemoryRange, Target

_ALWAYS = 14
_WORD_BYTES = 4
_MOST_COMPARED = 6
"""Return sites that a return is compared with before it looks for others."""


@dataclass(frozen=True, slots=True)
class Charged:
    """A decoded instruction and what it costs."""

    instruction: Instruction
    cost: InstructionCost

    @property
    def is_predicated(self) -> bool:
        """Whether it may be skipped."""
        return self.instruction.condition != _ALWAYS or self.instruction.in_it_block

    @property
    def least_cycles(self) -> int:
        """What its block charges."""
        return self.cost.skipped_cycles if self.is_predicated else self.cost.executed_cycles

    @property
    def extra_cycles(self) -> int:
        """What is added where it is not skipped."""
        return self.cost.executed_cycles - self.cost.skipped_cycles if self.is_predicated else 0

    @property
    def taken_cycles(self) -> int:
        """What is added where it branches to another place than the next instruction."""
        return self.cost.taken_cycles if self.instruction.control is Control.CONDITIONAL_BRANCH else 0


@dataclass(frozen=True, slots=True)
class Setting:
    """What the statements of an image have in common.

    Attributes:
        lifter, target, detail: as of the translation.
        harness: addresses of the replay loop.
        code: addresses of the segment with the first instruction.
        registers: the variables of the guest's registers.
        slots: place in the frame of each container of registers that the engine knows.
        flow: the blocks; None while it is not known yet which instructions have a statement.
        here: addresses of the blocks that are compiled together with the statement's.
        content: what the bytes at ``code`` are, which no guest may write.
        dead: containers of the flags that nobody reads any more, before each instruction, by its address.
    """

    lifter: Lifter
    target: Target
    detail: Detail
    harness: MemoryRange
    code: MemoryRange
    registers: Storage
    slots: Mapping[int, int]
    flow: Flow | None
    here: frozenset[int] = frozenset()
    content: bytes = b""
    dead: Mapping[int, frozenset[int]] = field(default_factory=dict)

    @property
    def stack_pointer(self) -> Varnode:
        """The stack pointer."""
        return self.lifter.registers[self.target.isa.stack_pointer]

    @property
    def first(self) -> Varnode:
        """The register of the first argument and of the result."""
        return self.lifter.registers["r3" if self.target.isa is Isa.POWERPC else "r0"]


class Statement:
    """One instruction in C."""

    def __init__(self, setting: Setting, block: Block | None, one: LiftedInstruction, charged: Charged) -> None:
        self._of, self._block, self._one, self._each = setting, block, one, charged
        self._next = one.address + one.size_bytes
        self._memory = [k for k, op in enumerate(one.ops) if _accesses(op)]
        accesses = self._each.instruction.accesses
        self._access: Access | None = accesses[0] if accesses else None
        self._several = len(self._memory) > 1 or (self._access is not None and self._access.count > 1)
        self._charged_at: int | None = None
        skips = [self._inner(k, op) for k, op in enumerate(one.ops) if self._is_skip(op)]
        self._span = span_of(one.ops, frozenset(skips)) if self._several else None
        self._counts_data = setting.detail is Detail.DATA

    def check(self) -> None:
        """Refuse what has no statement, before there are variables for all registers.

        Raises:
            Untranslatable: why.
        """
        self._registers = Storage("g", varnodes(self._one.ops, "register"), big_endian=self._of.lifter.big_endian)
        self._check_accesses()
        self._text(check=True)

    def text(self) -> str:
        """The statement."""
        self._registers = self._of.registers
        return self._text(check=False)

    def _text(self, *, check: bool) -> str:
        one, of = self._one, self._of
        self._unique = Storage("u", varnodes(one.ops, "unique"), big_endian=of.lifter.big_endian)
        lines = [
            f"{TYPES[size]} {self._unique.variable(low)} = 0;"
            for low, size in self._unique.containers.items()
            if size or self._refuse("a temporary of odd size")
        ]
        lines += self._kept_copies(check=check)
        labels = {self._inner(k, op) for k, op in enumerate(one.ops) if self._is_skip(op)}
        skips = [k for k, op in enumerate(one.ops) if op.opcode == "CBRANCH" and self._is_skip(op)]
        charge = self._each.extra_cycles if self._counts_data else 0
        conditional = [k for k, op in enumerate(one.ops) if op.opcode == "CBRANCH"]
        if self._each.is_predicated and not conditional:
            raise Untranslatable("a condition that its p-code does not have")
        extra_at = skips[0] if skips else None
        self._charged_at = extra_at if charge else None
        for k, op in enumerate(one.ops):
            if k in labels:
                lines.append(f"I{one.address:x}_{k}:;")
            lines.append(self._operation(k, op, f"cycles += {charge}; " if charge and extra_at is None else ""))
            if charge and k == extra_at:
                lines.append(f"cycles += {charge};")
        is_in_it_block = self._each.instruction.in_it_block  # the engine does not tell of what is skipped there
        lowest = "" if self._is_left_at_its_end() and is_in_it_block else self._lowest("")
        end = f"I{one.address:x}_{len(one.ops)}:;" if len(one.ops) in labels else ""
        lines += [lowest, end] if is_in_it_block else [end, lowest]
        return "{ " + " ".join(line for line in lines if line) + " }"

    def _is_skip(self, op: PcodeOp) -> bool:
        """Whether a branch stays inside the instruction, or guards it and goes to the next one."""
        return _is_inner(op) or (op.opcode == "CBRANCH" and op.inputs[0].offset == self._next)

    def _inner(self, k: int, op: PcodeOp) -> int:
        """Index of the operation to which such a branch at index ``k`` goes."""
        return k + relative(op) if _is_inner(op) else len(self._one.ops)

    def _refuse(self, why: str) -> bool:
        raise Untranslatable(why)

    def _check_accesses(self) -> None:
        """What the decoder says of accesses and what the p-code does must be about the same."""
        if bool(self._access) != bool(self._memory):
            self._refuse("decoder and lifter disagree on its accesses")
        if self._access is None:
            return
        if not self._several and _bytes_of(self._one.ops[self._memory[0]]) != self._access.bytes_each:
            self._refuse("decoder and lifter disagree on the size of its access")
        if not self._several and self._access.kind is AccessKind.LOAD_STORE:
            self._refuse("decoder and lifter disagree on the kind of its access")

    def _is_left_at_its_end(self) -> bool:
        return bool(self._one.ops) and self._one.ops[-1].opcode in ("BRANCH", "CALL", "RETURN", "BRANCHIND", "CALLIND")

    def _written(self, behind: int) -> list[int]:
        """Containers of registers that operations before the one of index ``behind`` write and the engine knows."""
        slots = self._of.slots
        found = [
            self._registers.container(op.output)
            for op in self._one.ops[:behind]
            if op.output is not None and op.output.space == "register"
        ]
        return [low for low in dict.fromkeys(found) if low in slots]

    def _kept_copies(self, *, check: bool) -> list[str]:
        """Registers as they were before the instruction: to undo it, and for its effective addresses."""
        if check:
            return []
        checked = [self._span.first] if self._span else [*self._memory]
        ops = self._one.ops
        checked += [k for k, op in enumerate(ops) if op.user_op == "setISAMode" or self._clears_stack_pointer(op)]
        last = max(checked, default=0)
        registers = self._registers
        lines = [
            f"const {TYPES[registers.containers[low]]} k{low:x} = {registers.variable(low)};"
            for low in self._written(last)
        ]
        if self._counts_data and self._several and self._access is not None:
            lines.append(f"const uint32_t at = {self._effective_address(self._access)};")
        return lines

    def _effective_address(self, access: Access) -> str:
        lifter = self._of.lifter
        text = f"{access.displacement & 0xFFFFFFFF:#x}u"
        if access.base:
            text = f"{self._registers.read(lifter.registers[access.base])} + {text}"
        if access.index:
            value, bits = self._registers.read(lifter.registers[access.index]), access.shift_bits
            match access.shift:
                case Shift.LSL:
                    index = f"{value} << {bits}"
                case Shift.LSR:
                    index = f"{value} >> {bits}" if bits < 32 else "0u"
                case Shift.ASR:
                    index = f"(uint32_t)((int32_t){value} >> {min(bits, 31)})"
                case Shift.ROR:
                    index = f"({value} >> {bits} | {value} << {32 - bits})" if bits else value
                case _:  # Shift.RRX
                    index = f"({value} >> 1 | (uint32_t){self._registers.read(lifter.registers['cy'])} << 31)"
            text = f"{text} {'-' if access.subtract_index else '+'} ({index})"
        return f"({text}) & {access.align_mask:#x}u"

    def _undo(self, behind: int, why: str = "inside") -> str:
        dead = self._of.dead.get(self._one.address, frozenset())
        kept = [low for low in self._written(behind) if low not in dead]
        restored = " ".join(f"{self._registers.variable(low)} = k{low:x};" for low in kept)
        restored += without(self._of, self._one.address)
        if self._charged_at is not None and self._charged_at < behind:
            restored += f" cycles -= {self._each.extra_cycles};"
        if self._block is not None:
            restored += f" WP_WAS_IN({self._block.number});"
        return f"{{ {restored} pc = {self._one.address:#x}u; goto {why}; }}"

    def _likely(self) -> str:
        """Where the access goes most likely."""
        harness = self._of.harness
        if self._access is not None and self._access.base == self._of.target.isa.stack_pointer:
            return "WP_STACK"
        if self._one.address in harness:
            return "WP_OPERATIONS"
        if self._access is not None and self._access.base is None and self._access.index is None:
            return "WP_CODE" if self._access.displacement & 0xFFFFFFFF in self._of.code else "WP_STATIC"
        return "WP_HEAP"

    def _read(self, varnode: Varnode) -> str:
        match varnode.space:
            case "const":
                return constant(varnode)
            case "register":
                return self._registers.read(varnode)
            case "unique":
                return self._unique.read(varnode)
        raise Untranslatable(f"a value in {varnode.space}")

    def _write(self, varnode: Varnode, value: str) -> str:
        return (self._registers if varnode.space == "register" else self._unique).write(varnode, value)

    def _before(self, k: int, address: str, size_bytes: int) -> str:
        """What stands before the access of operation ``k``."""
        if not self._several or k != self._memory[0]:
            return ""
        head = self._observe(k) if self._counts_data else ""
        if self._access is not None and self._access.kind is AccessKind.LOAD_STORE:
            head = f"if (WP_UNLIKELY({address} & {size_bytes - 1}u)) {self._undo(k)} {head}"  # the engine refuses it
        return head

    def _made(self, macro: str, bits: int, address: str, value: str, undo: str) -> str:
        """An access of up to a word, by a macro of translated.h."""
        noted = int(not self._several)
        return f"{macro}({bits}, {self._one.address:#x}u, {address}, {self._likely()}, {noted}, {value}, {undo});"

    def _wide(self, k: int, address: str, size_bytes: int, undo: str, *, is_store: bool) -> str:
        """A pointer to where an access of more than a word goes."""
        counter = "stores" if is_store else "loads"
        return (
            f"uint8_t *const p{k} = wp_access(frame, &fixed, {self._one.address:#x}u, {address}, {size_bytes}, "
            f"{int(is_store)}, {self._likely()}, {int(not self._several)}, watches, &{counter}, &region_{counter}); "
            f"if (WP_UNLIKELY(!p{k})) {undo} "
        )

    def _load(self, k: int, address: str, size_bytes: int) -> tuple[str, str]:
        """Statements that load a value, and the value."""
        bits = 8 * size_bytes
        if self._span is not None:
            return "", f"WP_LOAD({bits}, all + {self._span.offsets[k]})"
        head, undo = self._before(k, address, size_bytes), self._undo_access(k)
        if size_bytes > _WORD_BYTES:
            return head + self._wide(k, address, size_bytes, undo, is_store=False), f"WP_LOAD({bits}, p{k})"
        return f"{head}{TYPES[size_bytes]} v{k}; {self._made('WP_MAKE_LOAD', bits, address, f'v{k}', undo)} ", f"v{k}"

    def _store(self, k: int, address: str, size_bytes: int, value: str) -> str:
        """Statements that store a value."""
        bits = 8 * size_bytes
        if self._span is not None:
            return f"WP_STORE({bits}, all + {self._span.offsets[k]}, {value});"
        head, undo = self._before(k, address, size_bytes), self._undo_access(k)
        if size_bytes > _WORD_BYTES:
            return f"{head}{self._wide(k, address, size_bytes, undo, is_store=True)}WP_STORE({bits}, p{k}, {value});"
        return head + self._made("WP_MAKE_STORE", bits, address, value, undo)

    def _undo_access(self, k: int) -> str:
        """What happens where the guest may not make the access of operation ``k``."""
        return self._undo(k, "disagreed" if self._several and self._counts_data else "inside")

    def _check_span(self, k: int, span: Span, address: str) -> str:
        """One check for all accesses of the instruction, before the first of them; where it fails, none was made."""
        at = f"(uint32_t)({address} - {span.below & 0xFFFFFFFF:#x}u)"
        head = self._observe(k) if self._counts_data else ""
        return (
            f"uint8_t *const all = wp_access(frame, &fixed, {self._one.address:#x}u, {at}, {span.size_bytes}, "
            f"{int(self._one.ops[k].opcode == 'STORE')}, {self._likely()}, 0, watches, &loads, &region_loads); "
            f"if (WP_UNLIKELY(!all)) {self._undo(k)} {head}"
        )

    def _observe(self, k: int) -> str:
        """Several accesses are counted together before the first of them, by the decoder's account of them."""
        access, undo, pc = self._access, self._undo(k), f"{self._one.address:#x}u"
        if access is None:
            raise Untranslatable("decoder and lifter disagree on its accesses")
        is_store = access.kind is not AccessKind.LOAD
        if access.bytes_each == _WORD_BYTES and access.kind is not AccessKind.LOAD_STORE:
            likely = "WP_STACK" if self._likely() == "WP_STACK" else "WP_HEAP"
            counter = "stores" if is_store else "loads"
            return (
                f"const int noted = wp_words(frame, &fixed, {pc}, at, {access.count}, {int(is_store)}, "
                f"{likely}, watches); if (WP_UNLIKELY(noted < 0)) {undo} "
                f"*(WP_IS_OF_REGION({likely}) ? &region_{counter} : &{counter}) += noted; "
            )
        kinds = {AccessKind.LOAD: "WP_MAY_LOAD", AccessKind.STORE: "WP_MAY_STORE"}
        kind = kinds.get(access.kind, "WP_MAY_LOAD | WP_MAY_STORE")
        return f"if (WP_UNLIKELY(!wp_others(frame, {pc}, at, {access.count}, {access.bytes_each} | {kind}))) {undo} "

    def _lowest(self, unless: str) -> str:
        instruction = self._each.instruction
        name = self._of.target.isa.stack_pointer
        if not self._counts_data or name not in instruction.writes:
            return ""
        value = self._read(self._of.lifter.registers[name])
        return f"{unless}if ({value} < lowest) lowest = {value};"

    def _jump(self, target: int) -> str:
        taken = self._each.taken_cycles if target != self._next else 0
        counted = f"cycles += {taken}; " if taken and self._of.detail is not Detail.NOTHING else ""
        return counted + self._lowest("") + self._go(target)

    def _indirect(self, op: PcodeOp) -> str:
        mask = " & ~1u" if self._of.target.isa is Isa.THUMB else ""
        lines = [f"pc = {self._read(op.inputs[0])}{mask};"]
        if self._each.taken_cycles and self._of.detail is not Detail.NOTHING:
            lines.append(f"if (pc != {self._next:#x}u) cycles += {self._each.taken_cycles};")
        lines.append(self._lowest(f"if (pc != {RETURN_ADDRESS:#x}u) "))
        of_function = self._of.flow.returns_of(self._one.address) if self._of.flow else ()
        near = [site for site in of_function if site in self._of.here]
        sites = near[:_MOST_COMPARED] if op.opcode == "RETURN" else ()
        lines += [f"if (pc == {site:#x}u) goto B{site:x};" for site in sites]
        return " ".join(line for line in [*lines, "goto dispatch;"] if line)

    def _operation(self, k: int, op: PcodeOp, on_taken: str) -> str:
        if op.opcode in ("LOAD", "STORE"):
            return self._memory_access(k, op)
        if op.opcode in ("BRANCH", "CBRANCH", "CALL"):
            return self._branch(k, op, on_taken)
        if op.opcode in ("RETURN", "BRANCHIND", "CALLIND"):
            return self._indirect(op)
        if op.opcode != "CALLOTHER":
            return self._aligned_stack_pointer(k) if self._clears_stack_pointer(op) else self._assignment(k, op)
        if op.user_op != "setISAMode":
            return ""
        mode = self._read(self._of.lifter.registers["tb"])
        return f"if (WP_UNLIKELY({mode} != {int(self._of.target.isa is Isa.THUMB)})) {self._undo(k)}"

    def _clears_stack_pointer(self, op: PcodeOp) -> bool:
        """Whether ``op`` clears the lowest bits of Thumb's stack pointer, which the engine has and the core has not."""
        pointer, lowest = self._of.stack_pointer, Varnode("const", 0xFFFFFFFC, 4)
        is_cleared = op.opcode == "INT_AND" and op.output == pointer and op.inputs == (pointer, lowest)
        return is_cleared and self._of.target.isa is Isa.THUMB

    def _aligned_stack_pointer(self, k: int) -> str:
        """The engine goes on where they are not clear anyway."""
        if self._memory:
            raise Untranslatable("a stack pointer from memory, which may not be aligned")
        return f"if (WP_UNLIKELY({self._read(self._of.stack_pointer)} & 3u)) {self._undo(k)}"

    def _memory_access(self, k: int, op: PcodeOp) -> str:
        address = self._read(op.inputs[0])
        check = self._check_span(k, self._span, address) if self._span and k == self._span.first else ""
        if op.opcode == "STORE":
            return f"{check}{{ {self._store(k, address, op.inputs[1].size_bytes, self._read(op.inputs[1]))} }}"
        if op.output is None:
            raise Untranslatable(op.opcode)
        size_bytes = op.output.size_bytes
        literal = self._literal(op.inputs[0], size_bytes)
        if literal is not None and not self._counts_data:
            return self._write(op.output, literal)
        loading, value = self._load(k, address, size_bytes)
        return f"{check}{{ {loading}{self._write(op.output, literal or value)} }}"

    def _literal(self, there: Varnode, size_bytes: int) -> str | None:
        """What a load finds that names a place in the code, which nobody changes; None: it is another load."""
        code, lifter = self._of.code, self._of.lifter
        start = there.offset - code.base_address
        if there.space not in ("const", "ram") or self._several or not 0 <= start <= len(self._of.content) - size_bytes:
            return None
        found = self._of.content[start : start + size_bytes]
        value = int.from_bytes(found, "big" if lifter.big_endian else "little")
        return constant(Varnode("const", value, size_bytes))

    def _branch(self, k: int, op: PcodeOp, on_taken: str) -> str:
        condition = f"if ({self._read(op.inputs[1])}) " if op.opcode == "CBRANCH" else ""
        if self._is_skip(op):
            return f"{condition}goto I{self._one.address:x}_{self._inner(k, op)};"
        jump = self._jump(op.inputs[0].offset)
        return f"{condition}{{ {on_taken}{jump} }}" if condition else jump

    def _assignment(self, k: int, op: PcodeOp) -> str:
        """An operation without effects; where an operand lies in memory, a copy from there or to there."""
        if op.output is None:
            raise Untranslatable(op.opcode)
        in_memory = [v for v in op.inputs if v.space == "ram"]
        if op.output.space == "ram":
            if in_memory or op.opcode != "COPY":
                raise Untranslatable("operands in memory")
            value = self._read(op.inputs[0])
            return f"{{ {self._store(k, f'{op.output.offset:#x}u', op.output.size_bytes, value)} }}"
        if not in_memory:
            return self._write(op.output, expression(op, self._read))
        if len(in_memory) > 1:
            raise Untranslatable("operands in memory")
        (there,) = in_memory
        literal = self._literal(there, there.size_bytes)
        if literal is not None and not self._counts_data:
            return self._write(op.output, expression(op, lambda v: literal if v is there else self._read(v)))
        loading, loaded = self._load(k, f"{there.offset:#x}u", there.size_bytes)
        value = expression(op, lambda v: literal or loaded if v is there else self._read(v))
        return f"{{ {loading}{self._write(op.output, value)} }}"

    def _go(self, target: int) -> str:
        """Control goes to ``target``."""
        flow, of = self._of.flow, self._of
        if flow is None or self._block is None or target not in flow.by_address:
            return f"{{ pc = {target:#x}u; goto at_block; }}"
        leaves = self._block.address in of.harness and target not in of.harness
        away = f"{{ {without(of, target)} pc = {target:#x}u; goto elsewhere; }}"
        jump = f"goto B{target:x};" if target in of.here else away
        if leaves and of.detail is not Detail.NOTHING:
            return f"{{ if (follows) {{ {crossing(of, target)} }} {jump} }}"
        return jump


def crossing(setting: Setting, address: int) -> str:
    """Control comes to ``address`` and crosses the border of the harness."""
    stack_pointer, first = map(setting.registers.read, (setting.stack_pointer, setting.first))
    return f"WP_CROSS({address:#x}u, {stack_pointer}, {first});"


def without(setting: Setting, address: int) -> str:
    """Flags that nobody reads from ``address`` on are given up, so that they need not be computed for an exit there."""
    return " ".join(f"{setting.registers.variable(low)} = 0;" for low in sorted(setting.dead.get(address, ())))


def varnodes(ops: Iterable[PcodeOp], space: str) -> list[Varnode]:
    """Operands of ``ops`` in a space."""
    return [v for op in ops for v in (op.output, *op.inputs) if v is not None and v.space == space]


def relative(op: PcodeOp) -> int:
    """How far a branch inside an instruction goes, in operations."""
    target = op.inputs[0]
    return signed(8 * target.size_bytes, target.offset)


def _is_inner(op: PcodeOp) -> bool:
    return op.opcode in ("BRANCH", "CBRANCH") and op.inputs[0].space == "const"


def _accesses(op: PcodeOp) -> bool:
    if op.opcode in ("LOAD", "STORE"):
        return True
    if op.opcode in ("BRANCH", "CBRANCH", "CALL"):
        return False
    return any(v is not None and v.space == "ram" for v in (op.output, *op.inputs))


def _bytes_of(op: PcodeOp) -> int:
    if op.opcode == "STORE":
        return op.inputs[1].size_bytes
    if op.opcode == "LOAD" and op.output is not None:
        return op.output.size_bytes
    return next(v.size_bytes for v in (op.output, *op.inputs) if v is not None and v.space == "ram")
