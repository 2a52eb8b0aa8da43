"""An image as C: its p-code block by block in one function, with what the observer counts in line.

What a replay never calls is a second function, compiled apart. Registers of the guest are local variables. A block adds
its instructions and cycles as constants; an access and a fetch do what `emu/native/translated.h` says. The engine's
callbacks count by effective addresses that the decoder gives, and so do instructions with several accesses here; one
with a single access takes the address that its p-code computes.

What is not translated is left to the engine: instructions that cannot be lifted or charged, floating point, system
registers. Control that comes to one leaves the translated code there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from wcet_probe.analyzer.pcode.lift import Lifter, code_reader
from wcet_probe.analyzer.pcode.operations import LiftedInstruction, PcodeOp, Varnode
from wcet_probe.analyzer.pcode.semantics import NO_EFFECT
from wcet_probe.build.program import Program
from wcet_probe.compiled.blocks import Block, Flow, direct_targets, flow, units
from wcet_probe.compiled.expressions import TYPES, Storage, Untranslatable
from wcet_probe.compiled.liveness import Registers, live_flags
from wcet_probe.compiled.statement import Charged, Setting, Statement, crossing, relative, varnodes, without
from wcet_probe.emu.compiled import Detail
from wcet_probe.emu.guest_registers import register_names
from wcet_probe.emu.layout import HARNESS_ADDRESS, HARNESS_BYTES, RETURN_ADDRESS
from wcet_probe.errors import BuildError, DecodeError
from wcet_probe.model.instruction import Instruction
from wcet_probe.model.target import CacheConfig, MemoryRange, Replacement

_WORD_BYTES = 4
_TEMPORARIES = (
    *("pc", "tb", "isamodeswitch", "mult_addr", "mult_dat8", "mult_dat16"),
    *("shift_carry", "tmpng", "tmpzr", "tmpcy", "tmpov", "r2save"),
)
"""Registers of SLEIGH that no core has, or that only branches read: who reads one has written it."""
_STABLE = frozenset({Replacement.FIFO, Replacement.RANDOM, Replacement.ROUND_ROBIN})
"""Policies under which a hit changes nothing."""
_MONITORED = frozenset({"load_exclusive", "store_exclusive", "clear_exclusive", "load_reserve", "store_conditional"})
_REPLACEMENT = {each: f"WP_{each.name}" for each in Replacement}


@dataclass(frozen=True, slots=True)
class Text:
    """C that is compiled apart, and whether a replay runs any of it."""

    code: str
    is_replayed: bool


@dataclass(frozen=True, slots=True)
class Translation:
    """C texts that are compiled apart and linked, and which instructions they leave to the engine."""

    texts: tuple[Text, ...]
    translated: int
    left_out: Mapping[int, str]


def translate(program: Program, detail: Detail) -> Translation:
    """The image of ``program`` as C, which counts as ``detail`` says.

    Raises:
        BuildError: the image sets a flag that translated code cannot hand over to the engine, and others read it.
    """
    return _Translator(program, detail).translation()


class _Translator:
    def __init__(self, program: Program, detail: Detail) -> None:
        image, target, instructions = program.image, program.target, program.instructions
        self._image, self._target, self._detail, self._tells = image, target, detail.counted, detail.tells
        self._first_address = instructions[0].address
        self._charged = {i.address: Charged(i, cost) for i, cost in zip(instructions, program.costs, strict=True)}
        self._lifter = Lifter(target.pcode_language, target.isa, code_reader(image.segments))
        self._left_out: dict[int, str] = {}
        registers = self._lifter.registers
        kept = {name: registers[name] for name in register_names(target.isa)}
        self._sticky = [registers[name] for name in ("xer_so", "xer_ov") if name in registers]
        temporary = [registers[name] for name in _TEMPORARIES if name in registers]
        self._temporary_bytes = {(v.offset + i) for v in temporary for i in range(v.size_bytes)}
        self._kept_bytes = {(v.offset + i): v.offset for v in kept.values() for i in range(v.size_bytes)}
        self._harness = self._harness_of_image()
        unknown = Storage("g", (), big_endian=self._lifter.big_endian)
        code = self._code_of_image()
        content = next((bytes(s.data) for s in image.segments if s.executable), b"")
        self._setting = Setting(
            self._lifter, target, self._detail, self._harness, code, unknown, {}, None, content=content
        )
        lifted = [one for i in instructions if (one := self._lifted(i)) is not None]
        used = [v for one in lifted for v in varnodes(one.ops, "register")]
        self._registers = Storage("g", [*kept.values(), *used], big_endian=self._lifter.big_endian)
        self._slots = {self._registers.container(v): slot for slot, v in enumerate(kept.values())}
        self._flow: Flow = flow(image, lifted)
        flags = frozenset(low for low in self._slots if self._registers.containers[low] == 1)
        live = live_flags(self._flow, Registers(self._registers.container, frozenset(self._slots), flags))
        dead = {address: flags - read for address, read in live.items()}
        self._setting = replace(self._setting, registers=self._registers, slots=self._slots, flow=self._flow, dead=dead)

    def _lifted(self, instruction: Instruction) -> LiftedInstruction | None:
        """The p-code of an instruction, or None where it is left to the engine, and it is written down why."""
        address = instruction.address
        if instruction.problem:
            self._left_out[address] = instruction.problem
            return None
        if instruction.jumps_to_itself:
            self._left_out[address] = "it jumps to itself, which the engine's observer ends"
            return None
        try:
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
        if self._charged[one.address].instruction.timing_class in _MONITORED:
            raise Untranslatable("an exclusive access, whose alignment and monitor the engine knows")
        if len(self._charged[one.address].instruction.accesses) > 1:
            raise Untranslatable("accesses of different kinds")
        for op in one.ops:
            for varnode in op.inputs:
                self._check_varnode(varnode)
                if not written.issuperset(self._own_bytes(varnode)):
                    raise Untranslatable("a temporary of another instruction")
            if op.output is not None:
                self._check_varnode(op.output)
                written |= self._own_bytes(op.output)
            if op.output in self._sticky:
                raise BuildError(f"the instruction at {one.address:#010x} sets the summary overflow of PowerPC.")
            self._check_flow(one, op)
        Statement(self._setting, None, one, self._charged[one.address]).check()

    def _own_bytes(self, varnode: Varnode) -> set[tuple[str, int]]:
        """The bytes of ``varnode`` that belong to its instruction alone."""
        found = range(varnode.offset, varnode.offset + varnode.size_bytes)
        if varnode.space == "register":
            return {(varnode.space, byte) for byte in found if byte not in self._kept_bytes}
        return {(varnode.space, byte) for byte in found} if varnode.space == "unique" else set()

    def _check_flow(self, one: LiftedInstruction, op: PcodeOp) -> None:
        if op.opcode in ("BRANCH", "CBRANCH") and op.inputs[0].space == "const" and relative(op) <= 0:
            raise Untranslatable("a loop inside of it")
        is_known = op.opcode != "CALLOTHER" or op.user_op in NO_EFFECT or op.user_op == "setISAMode"
        if op.opcode == "TRAP" or not is_known:
            raise Untranslatable(op.user_op or op.opcode)
        if op.opcode == "CALLIND" and one.address in self._harness:
            raise Untranslatable("an indirect call of the harness")

    def _harness_of_image(self) -> MemoryRange:
        harness = next((s for s in self._image.functions if s.name == "wp_replay"), None)
        return MemoryRange(harness.address, harness.size_bytes) if harness else MemoryRange(0, 0)

    def _code_of_image(self) -> MemoryRange:
        """The region of the guest's memory that is named code."""
        segment = next((s for s in self._image.segments if s.executable), None)
        return MemoryRange(segment.address, segment.size_bytes) if segment else MemoryRange(0, 0)

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
        parts = units(self._flow, self._harness.base_address if self._harness.size_bytes else None)
        head, include = [*self._head()], '#include "translated.h"'
        texts = [
            [*head, f"#define WP_UNIT {number}", include, *self._function(number, part.blocks)]
            for number, part in enumerate(parts)
        ]
        texts[0] += [*self._tables(), *_driver([part.blocks for part in parts])]
        translated = sum(len(block.instructions) for block in self._flow.blocks)
        joined = (Text("\n".join(lines) + "\n", part.is_replayed) for lines, part in zip(texts, parts, strict=True))
        return Translation(tuple(joined), translated, self._left_out)

    def _head(self) -> Iterable[str]:
        target, layout = self._target, self._target.memory_map
        static = next((s for s in self._image.segments if not s.executable), None)
        use_static = static is not None and static.address % _WORD_BYTES == 0
        code = self._code_of_image()
        use_code = code.base_address % _WORD_BYTES == 0
        defined: dict[str, object] = {
            "WP_EXPORT": '__attribute__((visibility("default")))',
            "WP_BIG_ENDIAN": int(self._lifter.big_endian),
            "WP_DATA": int(self._detail is Detail.DATA),
            "WP_FETCH": int(self._detail is not Detail.NOTHING and self._fetch_cache is not None),
            "WP_TELLS": int(self._tells),
            "WP_OBSERVED": int(self._detail is not Detail.NOTHING),
            "WP_BLOCKS": max(1, len(self._flow.blocks)),
            "WP_HEAP_BASE": f"{layout.heap_address:#x}u",
            "WP_STACK_BASE": f"{layout.stack.base_address:#x}u",
            "WP_STACK_BYTES": f"{layout.stack.size_bytes:#x}u",
            "WP_STATIC_BASE": f"{static.address if static and use_static else 0:#x}u",
            "WP_STATIC_BYTES": static.size_bytes if static and use_static else 0,
            "WP_CODE_BASE": f"{code.base_address if use_code else 0:#x}u",
            "WP_CODE_BYTES": code.size_bytes if use_code else 0,
            "WP_OPERATIONS_BASE": f"{HARNESS_ADDRESS:#x}u",
            "WP_OPERATIONS_BYTES": f"{HARNESS_BYTES:#x}u",
        }
        regions = [
            f"((first) <= {r.extent.end_address - 1:#x}u && (last) >= {r.extent.base_address:#x}u)"
            for r in target.memory.regions
        ]
        defined["WP_IS_UNCACHED(first, last)"] = f"({' || '.join(regions) or '0'})"
        stack = layout.stack
        of_stack = [r.extent for r in target.memory.regions if _overlap(r.extent, stack)]
        is_uncached = len(of_stack) == 1 and stack.base_address in of_stack[0] and stack.end_address - 1 in of_stack[0]
        defined["WP_STACK_IS_UNCACHED"] = int(is_uncached)
        defined["WP_UNIFIED"] = int(target.unified_cache)
        for name, cache in (("FETCH", self._fetch_cache), ("DATA", target.dcache)):
            defined |= _geometry(name, cache)
        return (f"#define {name} {value}" for name, value in defined.items())

    @property
    def _fetch_cache(self) -> CacheConfig | None:
        return self._target.dcache if self._target.unified_cache else self._target.icache

    def _tables(self) -> Iterable[str]:
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

    def _function(self, number: int, blocks: Sequence[Block]) -> Iterable[str]:
        here = frozenset(block.address for block in blocks)
        self._setting = replace(self._setting, here=here)
        variables = self._registers.containers.items()
        yield f"WP_SHARED void wp_unit_{number}(struct wp_frame *const frame)\n{{\n    WP_BEGIN"
        for low, size in variables:
            slot = self._slots.get(low)
            value = f"({TYPES[size]})frame->registers[{slot}]" if slot is not None else "0"
            yield f"    {TYPES[size]} {self._registers.variable(low)} = {value};"
        yield "    goto dispatch;"
        for block, following in pairwise((*blocks, None)):
            if block is None:
                continue
            yield from self._block(block)
            if following is None or following.address != block.end_address:
                known = block.end_address in self._flow.by_address
                dead = without(self._setting, block.end_address)
                yield f"    {{ {dead} pc = {block.end_address:#x}u; goto {'elsewhere' if known else 'at_block'}; }}"
        yield f"dispatch:\n    if (pc != {RETURN_ADDRESS:#x}u && WP_UNLIKELY(instructions >= limit)) goto paused;"
        yield "    switch (pc) {"
        for address in sorted((self._flow.dispatched | self._called_from_elsewhere(here)) & here):
            yield f"    case {address:#x}u: goto B{address:x};"
        yield f"    case {RETURN_ADDRESS:#x}u: why = WP_LEFT_RETURNED; goto left;"
        yield "    default: goto elsewhere;\n    }"
        yield "    WP_END"
        for low in self._slots:
            yield f"    frame->registers[{self._slots[low]}] = {self._registers.variable(low)};"
        yield "}"

    def _called_from_elsewhere(self, here: Collection[int]) -> set[int]:
        """Where blocks that are compiled apart go without a look at a register."""
        others = (block for block in self._flow.blocks if block.address not in here)
        return {target for block in others for target in (*direct_targets(block), block.end_address)}

    def _block(self, block: Block) -> Iterable[str]:
        address, charged = block.address, [self._charged[i.address] for i in block.instructions]
        yield f"B{address:x}:;"
        if address in self._flow.pauses:
            yield f"    WP_PAUSE({address:#x}u, {without(self._setting, address)});"
        if address in self._harness and address != self._harness.base_address and self._detail is not Detail.NOTHING:
            yield f"    if (follows) {{ {crossing(self._setting, address)} }}"
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
            yield f"    /* {one.address:x} */ {Statement(self._setting, block, one, each).text()}"


def _overlap(one: MemoryRange, other: MemoryRange) -> bool:
    return one.base_address < other.end_address and other.base_address < one.end_address


def _geometry(name: str, cache: CacheConfig | None) -> dict[str, object]:
    prefix = f"WP_{name}_"
    if cache is None:
        none = {"WAYS": 0, "SETS": 1, "LINE": 4, "REPLACEMENT": "WP_LRU", "REPLACEMENT_IS_STABLE": 0}
        return {prefix + name: value for name, value in {**none, "WRITE_BACK": 1, "WRITE_ALLOCATE": 1}.items()}
    return {
        prefix + "WAYS": cache.ways,
        prefix + "SETS": cache.sets,
        prefix + "LINE": cache.line_bytes,
        prefix + "REPLACEMENT": _REPLACEMENT[cache.replacement],
        prefix + "REPLACEMENT_IS_STABLE": int(cache.replacement in _STABLE),
        prefix + "WRITE_BACK": int(cache.write_back),
        prefix + "WRITE_ALLOCATE": int(cache.write_allocate),
    }


def _fetches(cache: CacheConfig, first: int, behind: int) -> Iterable[str]:
    """Fetches of the lines that hold code from ``first`` to below ``behind``."""
    for line in range(first // cache.line_bytes, (behind - 1) // cache.line_bytes + 1) if behind > first else ():
        yield f"    WP_FETCH_LINE_OF({line:#x}u);"


def _driver(parts: Sequence[Sequence[Block]]) -> Iterable[str]:
    """From which addresses on blocks belong to which part."""
    owners = sorted((block.address, number) for number, part in enumerate(parts) for block in part)
    starts = [row for before, row in pairwise([(0, -1), *owners]) if row[1] != before[1]] or [(0, 0)]
    yield f"static const uint32_t wp_starts[] = {{{', '.join(f'{address:#x}u' for address, _ in starts)}}};"
    yield f"static const uint32_t wp_owners[] = {{{', '.join(str(number) for _, number in starts)}}};"
    names = [f"wp_unit_{number}" for number in range(len(parts))]
    yield from (f"WP_SHARED void {name}(struct wp_frame *frame);" for name in names)
    yield f"static void (*const wp_units[])(struct wp_frame *frame) = {{{', '.join(names)}}};"
    yield "WP_DRIVER"
