"""An image as C: its p-code block by block in one function, with what the observer counts in line.

Registers of the guest are local variables. A block adds its instructions and cycles as constants; an access and a fetch
do what `emu/native/translated.h` says. The engine's callbacks count by effective addresses that the decoder gives, and
so do instructions with several accesses here; one with a single access takes the address that its p-code computes.

What is not translated is left to the engine: instructions that cannot be lifted or charged, floating point, system
registers. Control that comes to one leaves the translated code there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from wcet_probe.analyzer.pcode.lift import LiftedInstruction, Lifter, PcodeOp, Varnode, code_reader
from wcet_probe.analyzer.pcode.semantics import NO_EFFECT, signed
from wcet_probe.compiled.blocks import Block, Flow, flow
from wcet_probe.compiled.expressions import TYPES, Storage, Untranslatable, constant, expression
from wcet_probe.emu.compiled import Detail
from wcet_probe.emu.guest_registers import register_names
from wcet_probe.emu.machine import HARNESS_ADDRESS, HARNESS_BYTES, RETURN_ADDRESS
from wcet_probe.errors import DecodeError
from wcet_probe.model.image import Image
from wcet_probe.model.instruction import Access, AccessKind, Control, Instruction, InstructionCost, Shift
from wcet_probe.model.target import CacheConfig, Isa, MemoryRange, Replacement, Target

_ALWAYS = 14
_WORD_BYTES = 4
_TEMPORARIES = (
    *("pc", "tb", "isamodeswitch", "mult_addr", "mult_dat8", "mult_dat16"),
    *("shift_carry", "tmpng", "tmpzr", "tmpcy", "tmpov", "r2save"),
)
"""Registers of SLEIGH that no core has, or that only branches read: each is written by the instruction that reads it."""
_STABLE = frozenset({Replacement.FIFO, Replacement.RANDOM, Replacement.ROUND_ROBIN})
"""Policies under which a hit changes nothing."""
_REPLACEMENT = {each: f"WP_{each.name}" for each in Replacement}


@dataclass(frozen=True, slots=True)
class Translation:
    """C text, and how many instructions it leaves to the engine."""

    text: str
    translated: int
    left_out: Mapping[int, str]


def translate(
    image: Image, target: Target, instructions: Sequence[Instruction], costs: Sequence[InstructionCost], detail: Detail
) -> Translation:
    """``image`` as C for ``target``, which counts as ``detail`` says.

    Parameters:
        image: with the function ``wp_replay``, or without.
        target: whose caches and memory the code simulates.
        instructions: decoded, in address order.
        costs: cycles of each.
        detail: what is counted.
    """
    return _Translator(image, target, instructions, costs, detail).translation()


@dataclass(frozen=True, slots=True)
class _Charged:
    """A decoded instruction and what it costs."""

    instruction: Instruction
    cost: InstructionCost

    @property
    def is_predicated(self) -> bool:
        return self.instruction.condition != _ALWAYS or self.instruction.in_it_block

    @property
    def least_cycles(self) -> int:
        return self.cost.skipped_cycles if self.is_predicated else self.cost.executed_cycles

    @property
    def extra_cycles(self) -> int:
        return self.cost.executed_cycles - self.cost.skipped_cycles if self.is_predicated else 0

    @property
    def taken_cycles(self) -> int:
        return self.cost.taken_cycles if self.instruction.control is Control.CONDITIONAL_BRANCH else 0


class _Translator:
    def __init__(
        self,
        image: Image,
        target: Target,
        instructions: Sequence[Instruction],
        costs: Sequence[InstructionCost],
        detail: Detail,
    ) -> None:
        self._image, self._target, self._detail = image, target, detail
        self._first_address = instructions[0].address
        self._charged = {i.address: _Charged(i, cost) for i, cost in zip(instructions, costs, strict=True)}
        self._lifter = Lifter(target.pcode_language, target.isa, code_reader(image.segments))
        self._left_out: dict[int, str] = {}
        registers = self._lifter.registers
        kept = {name: registers[name] for name in register_names(target.isa)}
        temporary = [registers[name] for name in _TEMPORARIES if name in registers]
        self._temporary_bytes = {(v.offset + i) for v in temporary for i in range(v.size_bytes)}
        self._kept_bytes = {(v.offset + i): v.offset for v in kept.values() for i in range(v.size_bytes)}
        lifted = [one for i in instructions if (one := self._lifted(i)) is not None]
        varnodes = [v for one in lifted for v in _varnodes(one.ops, "register")]
        self._registers = Storage("g", [*kept.values(), *varnodes], big_endian=self._lifter.big_endian)
        self._slots = {self._registers.container(v): slot for slot, v in enumerate(kept.values())}
        harness = next((s for s in image.functions if s.name == "wp_replay"), None)
        self._harness = MemoryRange(harness.address, harness.size_bytes) if harness else MemoryRange(0, 0)
        self._flow: Flow = flow(image, lifted)
        self._stack_pointer = registers["r1" if target.isa is Isa.POWERPC else "r13"]
        self._first = registers["r3" if target.isa is Isa.POWERPC else "r0"]

    def _lifted(self, instruction: Instruction) -> LiftedInstruction | None:
        """The p-code of an instruction, or None where it is left to the engine, and it is written down why."""
        address = instruction.address
        try:
            if instruction.problem:
                raise Untranslatable(instruction.problem)
            one = self._lifter.lift(address)
            self._check(one)
        except (DecodeError, Untranslatable) as error:
            self._left_out[address] = str(error)
            return None
        return one

    def _check(self, one: LiftedInstruction) -> None:
        written: set[tuple[str, int]] = set()
        if one.size_bytes != self._charged[one.address].instruction.size_bytes:
            raise Untranslatable("decoder and lifter disagree on its size")
        if len(self._charged[one.address].instruction.accesses) > 1:
            raise Untranslatable("accesses of different kinds")
        for op in one.ops:
            for varnode in op.inputs:
                self._check_varnode(varnode)
                for byte in range(varnode.offset, varnode.offset + varnode.size_bytes):
                    is_own = varnode.space == "unique" or (
                        varnode.space == "register" and byte not in self._kept_bytes
                    )
                    if is_own and (varnode.space, byte) not in written:
                        raise Untranslatable("a temporary of another instruction")
            if op.output is not None:
                self._check_varnode(op.output)
                output = op.output
                written |= {(output.space, output.offset + i) for i in range(output.size_bytes)}
            if op.opcode in ("BRANCH", "CBRANCH") and op.inputs[0].space == "const" and _relative(op) <= 0:
                raise Untranslatable("a loop inside of it")
            if op.opcode == "TRAP" or (
                op.opcode == "CALLOTHER" and op.user_op not in NO_EFFECT and op.user_op != "setISAMode"
            ):
                raise Untranslatable(op.user_op or op.opcode)
            if op.opcode == "CALLIND" and one.address in self._harness_of_image():
                raise Untranslatable("an indirect call of the harness")
        _Body(self, None, one).text(check=True)

    def _harness_of_image(self) -> MemoryRange:
        harness = next((s for s in self._image.functions if s.name == "wp_replay"), None)
        return MemoryRange(harness.address, harness.size_bytes) if harness else MemoryRange(0, 0)

    def _check_varnode(self, varnode: Varnode) -> None:
        if varnode.size_bytes not in TYPES:
            raise Untranslatable(f"a value of {varnode.size_bytes} bytes")
        if varnode.space != "register":
            return
        owners = {self._kept_bytes.get(varnode.offset + i) for i in range(varnode.size_bytes)}
        is_kept = len(owners) == 1 and None not in owners
        if not is_kept and any(varnode.offset + i not in self._temporary_bytes for i in range(varnode.size_bytes)):
            raise Untranslatable("a register that the engine keeps")

    # ------------------------------------------------------------------------------------------------------ the text

    def translation(self) -> Translation:
        text = "\n".join([*self._head(), '#include "translated.h"', *self._tables(), *self._function()]) + "\n"
        translated = sum(len(block.instructions) for block in self._flow.blocks)
        return Translation(text, translated, self._left_out)

    def _head(self) -> Iterable[str]:
        target, layout = self._target, self._target.memory_map
        static = next((s for s in self._image.segments if not s.executable), None)
        use_static = static is not None and static.address % _WORD_BYTES == 0
        defined: dict[str, object] = {
            "WP_BIG_ENDIAN": int(self._lifter.big_endian),
            "WP_DATA": int(self._detail is Detail.DATA),
            "WP_FETCH": int(self._detail is not Detail.NOTHING and self._fetch_cache is not None),
            "WP_OBSERVED": int(self._detail is not Detail.NOTHING),
            "WP_HEAP_BASE": f"{layout.heap_address:#x}u",
            "WP_STACK_BASE": f"{layout.stack.base_address:#x}u",
            "WP_STACK_BYTES": f"{layout.stack.size_bytes:#x}u",
            "WP_STATIC_BASE": f"{static.address if static and use_static else 0:#x}u",
            "WP_STATIC_BYTES": static.size_bytes if static and use_static else 0,
            "WP_OPERATIONS_BASE": f"{HARNESS_ADDRESS:#x}u",
            "WP_OPERATIONS_BYTES": f"{HARNESS_BYTES:#x}u",
        }
        regions = [f"((address) - {r.extent.base_address:#x}u < {r.extent.size_bytes:#x}u)" for r in target.memory.regions]
        defined["WP_IS_UNCACHED(address)"] = f"({' || '.join(regions) or '0'})"
        for name, cache in (("FETCH", self._fetch_cache), ("DATA", target.dcache)):
            defined |= _geometry(name, cache)
        return (f"#define {name} {value}" for name, value in defined.items())

    @property
    def _fetch_cache(self) -> CacheConfig | None:
        return self._target.dcache if self._target.unified_cache else self._target.icache

    def _tables(self) -> Iterable[str]:
        yield "#define WP_EXPORT __attribute__((visibility(\"default\")))"
        rows = ", ".join(
            f"{{{self._row(b.address)}, {self._row(b.end_address)}, {self._fetches(b)}}}" for b in self._flow.blocks
        )
        yield f"WP_EXPORT const struct wp_block wp_translated_blocks[] = {{{rows or '{0, 0, 0}'}}};"
        yield f"WP_EXPORT const uint32_t wp_translated_block_count = {len(self._flow.blocks)};"

    def _row(self, address: int) -> int:
        return (address - self._first_address) // 2

    def _fetches(self, block: Block) -> int:
        cache = self._fetch_cache
        if cache is None:
            return 0
        return sum(
            (i.address + i.size_bytes - 1) // cache.line_bytes - i.address // cache.line_bytes + 1
            for i in block.instructions
        )

    def _function(self) -> Iterable[str]:
        variables = self._registers.containers.items()
        yield _ENTER
        for low, size in variables:
            slot = self._slots.get(low)
            value = f"({TYPES[size]})frame->registers[{slot}]" if slot is not None else "0"
            yield f"    {TYPES[size]} {self._registers.variable(low)} = {value};"
        yield "    goto dispatch;"
        behind = None
        for block in self._flow.blocks:
            if behind is not None and behind != block.address:
                yield f"    {{ pc = {behind:#x}u; goto at_block; }}"
            yield from self._block(block)
            behind = block.end_address
        if behind is not None:
            yield f"    {{ pc = {behind:#x}u; goto at_block; }}"
        yield "dispatch:\n    switch (pc) {"
        for address in sorted(self._flow.dispatched):
            yield f"    case {address:#x}u: goto B{address:x};"
        yield f"    case {RETURN_ADDRESS:#x}u: why = WP_LEFT_RETURNED; goto left;"
        yield "    default: goto at_block;\n    }"
        yield _LEAVE
        for low in self._slots:
            yield f"    frame->registers[{self._slots[low]}] = {self._registers.variable(low)};"
        yield "}"

    def _block(self, block: Block) -> Iterable[str]:
        address, charged = block.address, [self._charged[i.address] for i in block.instructions]
        yield f"B{address:x}:;"
        if address in self._flow.pauses:
            yield f"    WP_PAUSE({address:#x}u);"
        if address in self._harness and address != self._harness.base_address and self._detail is not Detail.NOTHING:
            yield f"    if (follows) {{ {self._cross(address)} }}"
        cycles = sum(each.least_cycles for each in charged)
        yield f"    WP_BLOCK({block.number}, {len(block.instructions)}, {cycles});"
        cache = self._fetch_cache if self._detail is not Detail.NOTHING else None
        is_waiting = cache is not None and self._target.unified_cache and self._detail is Detail.DATA
        fetched = address
        last = block.instructions[-1]
        if cache and not is_waiting:
            yield from _fetches(cache, fetched, block.end_address)
        for one, each in zip(block.instructions, charged, strict=True):
            behind = block.end_address if one is last else one.address + one.size_bytes
            if cache and is_waiting and (each.instruction.accesses or one is last):
                yield from _fetches(cache, fetched, behind)
                fetched = behind
            yield f"    /* {one.address:x} */ {_Body(self, block, one).text()}"

    def _cross(self, address: int) -> str:
        stack_pointer, first = self._registers.read(self._stack_pointer), self._registers.read(self._first)
        return f"WP_CROSS({address:#x}u, {stack_pointer}, {first});"

    def jump(self, block: Block | None, target: int) -> str:
        """Control goes to ``target`` from ``block``."""
        if block is None or target not in self._flow.by_address:
            return f"{{ pc = {target:#x}u; goto at_block; }}"
        leaves = block.address in self._harness and target not in self._harness
        if leaves and self._detail is not Detail.NOTHING:
            return f"{{ if (follows) {{ {self._cross(target)} }} goto B{target:x}; }}"
        return f"goto B{target:x};"


class _Body:
    """One instruction in C."""

    def __init__(self, translator: _Translator, block: Block | None, one: LiftedInstruction) -> None:
        self._of, self._block, self._one = translator, block, one
        self._each = translator._charged[one.address]  # noqa: SLF001  (both are of this module)
        self._next = one.address + one.size_bytes
        self._memory = [k for k, op in enumerate(one.ops) if _accesses(op)]
        accesses = self._each.instruction.accesses
        self._access: Access | None = accesses[0] if accesses else None
        self._several = len(self._memory) > 1 or (self._access is not None and self._access.count > 1)
        self._counts_data = translator._detail is Detail.DATA  # noqa: SLF001

    def text(self, *, check: bool = False) -> str:
        """The statement; to ``check`` it, before there are variables for registers, is to see whether there is one."""
        one, of = self._one, self._of
        self._unique = Storage("u", _varnodes(one.ops, "unique"), big_endian=of._lifter.big_endian)  # noqa: SLF001
        if check:
            self._registers = Storage(
                "g", _varnodes(one.ops, "register"), big_endian=of._lifter.big_endian  # noqa: SLF001
            )
        else:
            self._registers = of._registers  # noqa: SLF001
        if check:
            self._check_accesses()
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
        return k + _relative(op) if _is_inner(op) else len(self._one.ops)

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
        slots = self._of._slots if hasattr(self._of, "_slots") else {}  # noqa: SLF001
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
        last = max([k for k, op in enumerate(self._one.ops) if _accesses(op) or op.user_op == "setISAMode"], default=0)
        registers = self._registers
        lines = [
            f"const {TYPES[registers.containers[low]]} k{low:x} = {registers.variable(low)};"
            for low in self._written(last)
        ]
        if self._counts_data and self._several and self._access is not None:
            lines.append(f"const uint32_t at = {self._effective_address(self._access)};")
        return lines

    def _effective_address(self, access: Access) -> str:
        lifter = self._of._lifter  # noqa: SLF001
        text = f"{access.displacement & 0xFFFFFFFF:#x}u"
        if access.base:
            text = f"{self._registers.read(lifter.registers[access.base])} + {text}"
        if access.index:
            value, bits = self._registers.read(lifter.registers[access.index]), access.shift_bits
            match access.shift:
                case Shift.LSL:
                    index = f"{value} << {bits}"
                case Shift.LSR:
                    index = f"{value} >> {bits}" if bits < 32 else "0u"  # noqa: PLR2004
                case Shift.ASR:
                    index = f"(uint32_t)((int32_t){value} >> {min(bits, 31)})"
                case Shift.ROR:
                    index = f"({value} >> {bits} | {value} << {32 - bits})" if bits else value
                case Shift.RRX:
                    index = f"({value} >> 1 | (uint32_t){self._registers.read(lifter.registers['cy'])} << 31)"
            text = f"{text} {'-' if access.subtract_index else '+'} ({index})"
        return f"({text}) & {access.align_mask:#x}u"

    def _undo(self, behind: int, why: str = "inside") -> str:
        restored = " ".join(f"{self._registers.variable(low)} = k{low:x};" for low in self._written(behind))
        return f"{{ {restored} pc = {self._one.address:#x}u; goto {why}; }}"

    def _likely(self) -> str:
        """Where the access goes most likely."""
        harness, stack_pointer = self._of._harness_of_image(), self._of._target.isa  # noqa: SLF001
        name = "r1" if stack_pointer is Isa.POWERPC else "r13"
        if self._access is not None and self._access.base == name:
            return "WP_STACK"
        if self._one.address in harness:
            return "WP_OPERATIONS"
        if self._access is not None and self._access.base is None and self._access.index is None:
            return "WP_STATIC"
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

    def _pointer(self, k: int, address: str, size_bytes: int, *, is_store: bool) -> str:
        noted = not self._several
        undo = self._undo(k, "inside" if noted or not self._counts_data else "disagreed")
        counter = "stores" if is_store else "loads"
        head = self._observe(k) if self._several and self._counts_data and k == self._memory[0] else ""
        return (
            f"{head}uint8_t *const p{k} = wp_access(frame, &fixed, {self._one.address:#x}u, {address}, {size_bytes}, "
            f"{int(is_store)}, {self._likely()}, {int(noted)}, watches, &{counter}); "
            f"if (WP_UNLIKELY(!p{k})) {undo} "
        )

    def _observe(self, k: int) -> str:
        """Several accesses are counted together before the first of them, by the decoder's account of them."""
        access, undo, pc = self._access, self._undo(k), f"{self._one.address:#x}u"
        if access is None:
            raise Untranslatable("decoder and lifter disagree on its accesses")
        is_store = access.kind is not AccessKind.LOAD
        if access.bytes_each == _WORD_BYTES and access.kind is not AccessKind.LOAD_STORE:
            counter = "stores" if is_store else "loads"
            return (
                f"const int noted = wp_words(frame, &fixed, {pc}, at, {access.count}, {int(is_store)}, "
                f"{'WP_STACK' if self._likely() == 'WP_STACK' else 'WP_HEAP'}, watches); "
                f"if (WP_UNLIKELY(noted < 0)) {undo} {counter} += noted; "
            )
        kinds = {AccessKind.LOAD: "WP_MAY_LOAD", AccessKind.STORE: "WP_MAY_STORE"}
        kind = kinds.get(access.kind, "WP_MAY_LOAD | WP_MAY_STORE")
        return (
            f"if (WP_UNLIKELY(!frame->accesses(frame, {pc}, at, {access.count}, {access.bytes_each} | {kind}))) {undo} "
        )

    def _lowest(self, unless: str) -> str:
        instruction = self._each.instruction
        name = "r1" if self._of._target.isa is Isa.POWERPC else "r13"  # noqa: SLF001
        if not self._counts_data or name not in instruction.writes:
            return ""
        value = self._read(self._of._lifter.registers[name])  # noqa: SLF001
        return f"{unless}if ({value} < lowest) lowest = {value};"

    def _jump(self, target: int) -> str:
        taken = self._each.taken_cycles if target != self._next else 0
        counted = f"cycles += {taken}; " if taken and self._of._detail is not Detail.NOTHING else ""  # noqa: SLF001
        return counted + self._lowest("") + self._of.jump(self._block, target)

    def _indirect(self, op: PcodeOp) -> str:
        mask = " & ~1u" if self._of._target.isa is Isa.THUMB else ""  # noqa: SLF001
        lines = [f"pc = {self._read(op.inputs[0])}{mask};"]
        if self._each.taken_cycles and self._of._detail is not Detail.NOTHING:  # noqa: SLF001
            lines.append(f"if (pc != {self._next:#x}u) cycles += {self._each.taken_cycles};")
        lines.append(self._lowest(f"if (pc != {RETURN_ADDRESS:#x}u) "))
        of_function = self._of._flow.returns_of(self._one.address) if self._block else ()  # noqa: SLF001
        for site in of_function[:_MOST_COMPARED] if op.opcode == "RETURN" else ():
            lines.append(f"if (pc == {site:#x}u) goto B{site:x};")
        return " ".join(line for line in [*lines, "goto dispatch;"] if line)

    def _operation(self, k: int, op: PcodeOp, on_taken: str) -> str:
        match op.opcode:
            case "LOAD":
                if op.output is None:
                    raise Untranslatable(op.opcode)
                size = op.output.size_bytes
                pointer = self._pointer(k, self._read(op.inputs[0]), size, is_store=False)
                return f"{{ {pointer}{self._write(op.output, f'WP_LOAD({8 * size}, p{k})')} }}"
            case "STORE":
                size = op.inputs[1].size_bytes
                pointer = self._pointer(k, self._read(op.inputs[0]), size, is_store=True)
                return f"{{ {pointer}WP_STORE({8 * size}, p{k}, {self._read(op.inputs[1])}); }}"
            case "BRANCH" | "CALL" if op.opcode == "CALL" or not _is_inner(op):
                return self._jump(op.inputs[0].offset)
            case "BRANCH":
                return f"goto I{self._one.address:x}_{self._inner(k, op)};"
            case "CBRANCH":
                condition = self._read(op.inputs[1])
                if self._is_skip(op):
                    return f"if ({condition}) goto I{self._one.address:x}_{self._inner(k, op)};"
                return f"if ({condition}) {{ {on_taken}{self._jump(op.inputs[0].offset)} }}"
            case "RETURN" | "BRANCHIND" | "CALLIND":
                return self._indirect(op)
            case "CALLOTHER":
                if op.user_op != "setISAMode":
                    return ""
                mode = self._read(self._of._lifter.registers["tb"])  # noqa: SLF001
                expected = int(self._of._target.isa is Isa.THUMB)  # noqa: SLF001
                return f"if (WP_UNLIKELY({mode} != {expected})) {self._undo(k)}"
        return self._assignment(k, op)

    def _assignment(self, k: int, op: PcodeOp) -> str:
        """An operation without effects; where an operand lies in memory, a copy from there or to there."""
        if op.output is None:
            raise Untranslatable(op.opcode)
        in_memory = [v for v in op.inputs if v.space == "ram"]
        if op.output.space == "ram":
            if in_memory or op.opcode != "COPY":
                raise Untranslatable("operands in memory")
            size = op.output.size_bytes
            pointer = self._pointer(k, f"{op.output.offset:#x}u", size, is_store=True)
            return f"{{ {pointer}WP_STORE({8 * size}, p{k}, {self._read(op.inputs[0])}); }}"
        if not in_memory:
            return self._write(op.output, expression(op, self._read))
        if len(in_memory) > 1:
            raise Untranslatable("operands in memory")
        (there,) = in_memory
        pointer = self._pointer(k, f"{there.offset:#x}u", there.size_bytes, is_store=False)
        loaded = f"WP_LOAD({8 * there.size_bytes}, p{k})"
        value = expression(op, lambda v: loaded if v is there else self._read(v))
        return f"{{ {pointer}{self._write(op.output, value)} }}"


_MOST_COMPARED = 6
"""Return sites that a return is compared with before it looks for others."""


def _geometry(name: str, cache: CacheConfig | None) -> dict[str, object]:
    prefix = f"WP_{name}_"
    if cache is None:
        return {prefix + "WAYS": 0, prefix + "SETS": 1, prefix + "LINE": 4, prefix + "REPLACEMENT": "WP_LRU",
                prefix + "REPLACEMENT_IS_STABLE": 0, prefix + "WRITE_BACK": 1}  # fmt: skip
    return {
        prefix + "WAYS": cache.ways,
        prefix + "SETS": cache.sets,
        prefix + "LINE": cache.line_bytes,
        prefix + "REPLACEMENT": _REPLACEMENT[cache.replacement],
        prefix + "REPLACEMENT_IS_STABLE": int(cache.replacement in _STABLE),
        prefix + "WRITE_BACK": int(cache.write_back),
    }


def _fetches(cache: CacheConfig, first: int, behind: int) -> Iterable[str]:
    """Fetches of the lines that hold code from ``first`` to below ``behind``."""
    for line in range(first // cache.line_bytes, (behind - 1) // cache.line_bytes + 1) if behind > first else ():
        yield f"    wp_fetch(frame, &fixed, {line:#x}u);"


def _varnodes(ops: Iterable[PcodeOp], space: str) -> list[Varnode]:
    return [v for op in ops for v in (op.output, *op.inputs) if v is not None and v.space == space]


def _relative(op: PcodeOp) -> int:
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


_ENTER = """\
#define WP_PAUSE(address)                                                                                              \\
    do {                                                                                                               \\
        if (WP_UNLIKELY(instructions >= limit)) {                                                                      \\
            pc = address;                                                                                              \\
            goto paused;                                                                                               \\
        }                                                                                                              \\
    } while (0)
#if WP_OBSERVED
#define WP_COUNT(number, cost) (runs[number]++, cycles += (cost))
#else
#define WP_COUNT(number, cost) (void)0
#endif
#if WP_DATA
#define WP_PATH(number)                                                                                                \\
    do {                                                                                                               \\
        if (WP_UNLIKELY(path_length < frame->path_capacity)) {                                                         \\
            frame->path[2 * path_length] = wp_translated_blocks[number].first_row;                                     \\
            frame->path[2 * path_length + 1] = wp_translated_blocks[number].behind_row;                                \\
        }                                                                                                              \\
        path_length++;                                                                                                 \\
    } while (0)
#else
#define WP_PATH(number) path_length = (uint64_t)frame->path_capacity + 1
#endif
#define WP_BLOCK(number, count, cost)                                                                                  \\
    do {                                                                                                               \\
        if (WP_UNLIKELY(events[number]))                                                                               \\
            wp_slow_event(frame, number, current);                                                                     \\
        current = number;                                                                                              \\
        instructions += count;                                                                                         \\
        WP_COUNT(number, cost);                                                                                        \\
        WP_PATH(number);                                                                                               \\
    } while (0)
#define WP_CROSS(address, stack_pointer_, first_)                                                                      \\
    do {                                                                                                               \\
        frame->instructions = instructions;                                                                            \\
        frame->cycles = cycles;                                                                                        \\
        frame->loads = loads;                                                                                          \\
        frame->stores = stores;                                                                                        \\
        frame->stack_pointer = stack_pointer_;                                                                         \\
        frame->first_register = first_;                                                                                \\
        frame->cross(frame, address);                                                                                  \\
        instructions = cycles = loads = stores = 0;                                                                    \\
        limit = frame->limit;                                                                                          \\
        watches = frame->watches;                                                                                      \\
    } while (0)

WP_EXPORT void wp_translated_run(struct wp_frame *const frame)
{
    struct wp_fixed fixed;
    for (int range = 0; range < WP_FAST_RANGES; range++) {
        fixed.memory[range] = frame->memory[range];
        fixed.marks[range] = frame->marks[range];
    }
    fixed.fetch_lines = frame->fetch_lines;
    fixed.data_lines = frame->data_lines;
    fixed.heap_bytes = frame->heap_bytes;
    int64_t limit = frame->limit, instructions = frame->instructions, cycles = frame->cycles;
    int64_t loads = frame->loads, stores = frame->stores;
    uint64_t path_length = frame->path_length, *const runs = frame->runs;
    const uint8_t *const events = frame->events;
    const uint32_t follows = frame->follows;
    uint32_t pc = frame->pc, why, current = frame->block, lowest = frame->lowest_stack_pointer;
    uint32_t watches = frame->watches;"""

_LEAVE = """\
paused:
    why = WP_LEFT_PAUSED;
    goto left;
disagreed:
    why = WP_LEFT_DISAGREED;
    goto left;
inside:
    why = WP_LEFT_INSIDE;
    goto left;
at_block:
    why = WP_LEFT_AT_BLOCK;
left:
    frame->why = why;
    frame->pc = pc;
    frame->block = current;
    frame->lowest_stack_pointer = lowest;
    frame->instructions = instructions;
    frame->cycles = cycles;
    frame->loads = loads;
    frame->stores = stores;
    frame->path_length = path_length;
    (void)runs, (void)events, (void)follows, (void)watches, (void)limit;"""
