"""A concrete p-code interpreter: the independent oracle for what a call executes, loads and stores.

It shares no code with the emulator: the machine code is lifted by SLEIGH, and each p-code operation is a closure on
plain buffers. The abstract transfer functions are tested against it.

Words: P-code, test oracle (docs/explanation/glossary.md).

*Soundness:* one core, no interrupts, no self-modifying code (code comes from the lifter's reader), no alignment or
permission faults except stores to read-only regions; registers that the caller does not give are 0; what is assumed of
the lifter and of divisions by zero stands in `analyzer.pcode.lift` and `semantics`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from operator import attrgetter
from typing import Literal, NamedTuple

from wcet_probe.analyzer.pcode.lift import Lifter
from wcet_probe.analyzer.pcode.operations import LiftedInstruction, PcodeOp, Varnode
from wcet_probe.analyzer.pcode.semantics import NO_EFFECT, Semantics, UndefinedResultError, operation, signed
from wcet_probe.analyzer.pcode.status_registers import INTERRUPT_MASK, PROCESS_STACK
from wcet_probe.errors import EmulationError, UnknownOperationError
from wcet_probe.model.target import Isa


class DataAccess(NamedTuple):
    """One data access: a register of a load/store multiple is one, an unaligned access is one.

    ``step`` is the index in the path of the execution that made it, ``value`` what was loaded, if that is known.
    """

    step: int
    instruction_address: int
    address: int
    size_bytes: int
    is_store: bool
    value: int | None = None


@dataclass(frozen=True, slots=True)
class Interpretation:
    """What a call did.

    Attributes:
        path: addresses of the executed instructions in order. An instruction whose condition fails is one of them,
            and so is a Thumb IT instruction.
        accesses: data accesses in order; a load whose condition fails makes none.
        registers: the registers ``r0`` … at the end, unsigned.
        result: the return value (``r0`` on ARM, ``r3`` on PowerPC), unsigned.
        memory: content of each region at the end, by its base address.
    """

    path: tuple[int, ...] = field(repr=False)
    accesses: tuple[DataAccess, ...] = field(repr=False)
    registers: Mapping[str, int]
    result: int
    memory: Mapping[int, bytes] = field(repr=False)

    @property
    def instructions(self) -> int:
        """Number of executed instructions."""
        return len(self.path)

    @property
    def stores(self) -> int:
        """Number of data accesses that store."""
        return sum(access.is_store for access in self.accesses)

    @property
    def loads(self) -> int:
        """Number of data accesses that load."""
        return len(self.accesses) - self.stores


def interpret_call(
    lifter: Lifter,
    memory: Mapping[int, bytes | bytearray],
    registers: Mapping[str, int],
    *,
    entry_address: int,
    return_address: int,
    step_limit: int,
    visit: Callable[[int, Callable[[str], int]], None] | None = None,
) -> Interpretation:
    """Run the function at ``entry_address`` until it returns.

    Args:
        lifter: lifter of the image.
        memory: regions of data memory by base address, which must not overlap and are not changed; ``bytes`` are
            read-only. Static data and literal pools of the image are among them, its code need not be.
        registers: initial values by canonical name (``r0`` …; the stack pointer is ``r13`` on ARM, ``r1`` on PowerPC)
            or lower-case SLEIGH name; the link register is set here.
        entry_address: where to start, without Thumb bit.
        return_address: where the call returns to, without Thumb bit; no code need be there.
        step_limit: most instructions to execute.
        visit: is told of each instruction before it runs: its address, and a function from a register's name to its
            value.

    Raises:
        EmulationError: an access outside the regions or a store to a read-only one, a change of instruction set, or
            more than ``step_limit`` steps.
        UnknownOperationError: an operation that is not known (floating point, system instructions).
        DecodeError: what is to be executed cannot be lifted.
    """
    machine = _Machine(lifter, memory)
    for name, value in registers.items():
        machine.write_register(name, value)
    machine.write_register("lr", return_address | (lifter.isa is Isa.THUMB))
    steps: dict[int, Callable[[], None]] = {}
    path: list[int] = []
    pc = entry_address
    while pc != return_address:
        if len(path) == step_limit:
            raise EmulationError(
                f"the call at {entry_address:#010x} did not return within {step_limit} instructions: "
                "it hangs, or the limit is too low."
            )
        step = steps.get(pc)
        if step is None:
            step = steps[pc] = machine.compile(lifter.lift(pc))
        machine.pc, machine.step = pc, len(path)
        path.append(pc)
        if visit is not None:
            visit(pc, machine.read_register)
        step()
        pc = machine.next_pc
    numbers = range(32 if lifter.isa is Isa.POWERPC else 15)
    final = {f"r{number}": machine.read_register(f"r{number}") for number in numbers}
    return Interpretation(
        path=tuple(path),
        accesses=tuple(machine.accesses),
        registers=final,
        result=final["r3" if lifter.isa is Isa.POWERPC else "r0"],
        memory={base: bytes(region) for base, region in machine.regions},
    )


class _Machine:
    """Guest state, and the compiler of lifted instructions to closures that change it."""

    def __init__(self, lifter: Lifter, memory: Mapping[int, bytes | bytearray]) -> None:
        self.pc = 0
        self.step = 0
        self.next_pc = 0
        self.accesses: list[DataAccess] = []
        self.regions = [(base, data if isinstance(data, bytes) else data[:]) for base, data in sorted(memory.items())]
        for (base, region), (following, _) in pairwise(self.regions):
            if base + len(region) > following:
                raise EmulationError(f"the memory regions at {base:#010x} and {following:#010x} overlap.")
        self._bases = [base for base, _ in self.regions]
        self._order: Literal["big", "little"] = "big" if lifter.big_endian else "little"
        self._isa = lifter.isa
        self._registers = lifter.registers
        self._spaces = {"register": bytearray(), "unique": bytearray()}

    def read_register(self, name: str) -> int:
        return self._reader(self._registers[name])()

    def write_register(self, name: str, value: int) -> None:
        if name not in self._registers:
            raise EmulationError(f"there is no register {name!r}: give it by its canonical name, as r0.")
        register = self._registers[name]
        self._writer(register)(value & (1 << 8 * register.size_bytes) - 1)

    def compile(self, instruction: LiftedInstruction) -> Callable[[], None]:
        """A function that executes ``instruction`` at ``pc`` and leaves the next address in ``next_pc``."""
        end = len(instruction.ops)
        ops = [self._operation(op, index, end) for index, op in enumerate(instruction.ops)]
        following = instruction.address + instruction.size_bytes

        def step() -> None:
            self.next_pc = following
            index = 0
            while index < end:
                jump = ops[index]()
                index = index + 1 if jump is None else jump

        sizes = _access_sizes(instruction)
        if len(sizes) < 2:
            return step

        def ordered_step() -> None:
            first = len(self.accesses)
            step()
            parts = sorted(self.accesses[first:], key=attrgetter("address"))
            if parts and self._isa is Isa.POWERPC and set(sizes) == {1}:
                parts = [parts[0]._replace(size_bytes=len(parts), value=None)]
            self.accesses[first:] = parts

        return ordered_step

    def _operation(self, op: PcodeOp, index: int, end: int) -> Callable[[], int | None]:
        """A function that executes ``op`` and returns the index of the operation to go to, or None for the next."""
        match op.opcode:
            case "BRANCH" | "CALL":
                return self._jump(op.inputs[0], index, end)
            case "CBRANCH":
                jump = self._jump(op.inputs[0], index, end)
                condition = self._reader(op.inputs[1])
                return lambda: jump() if condition() else None
            case "BRANCHIND" | "CALLIND" | "RETURN":
                return self._indirect_jump(self._reader(op.inputs[0]), end)
            case "STORE":
                pointer, value = map(self._reader, op.inputs)
                size_bytes = op.inputs[1].size_bytes
                return lambda: self._store(pointer(), size_bytes, value())
            case "CALLOTHER":
                return self._user_operation(op)
        return self._assignment(op, op.opcode)

    def _user_operation(self, op: PcodeOp) -> Callable[[], None]:
        if op.user_op in NO_EFFECT or op.user_op in {INTERRUPT_MASK, PROCESS_STACK}:
            return lambda: None
        if op.user_op == "setISAMode":
            return self._check_instruction_set
        if op.user_op.endswith("Saturate"):
            return self._assignment(op, op.user_op)
        return lambda: self._refuse(op.user_op)

    def _assignment(self, op: PcodeOp, name: str) -> Callable[[], None]:
        if op.output is None:
            return lambda: self._refuse(name)
        write, size_bytes = self._writer(op.output), op.output.size_bytes
        first, *rest = map(self._reader, op.inputs)
        function = operation(name, tuple(varnode.size_bytes for varnode in op.inputs), size_bytes)
        if name == "COPY":
            return lambda: write(first())
        if name == "LOAD":
            return lambda: write(self._load(first(), size_bytes))
        if function is None:
            return lambda: self._refuse(name)
        if not rest:
            return lambda: write(function(first()))
        (second,) = rest
        return lambda: write(_or_dividend(function, first(), second()))

    def _jump(self, target: Varnode, index: int, end: int) -> Callable[[], int]:
        """A jump within the instruction (``const``) or to another one."""
        if target.space == "const":
            to = index + signed(8 * target.size_bytes, target.offset)
            return lambda: to

        def jump() -> int:
            self.next_pc = target.offset
            return end

        return jump

    def _indirect_jump(self, target: Callable[[], int], end: int) -> Callable[[], int]:
        mask = -2 if self._isa is Isa.THUMB else -1

        def jump() -> int:
            self.next_pc = target() & mask
            return end

        return jump

    def _check_instruction_set(self) -> None:
        if self.read_register("tb") != (self._isa is Isa.THUMB):
            raise EmulationError(
                f"the branch at {self.pc:#010x} changes between ARM and Thumb: build the image for one of them."
            )

    def _refuse(self, name: str) -> None:
        raise UnknownOperationError(
            f"the p-code interpreter does not know {name} of the instruction at {self.pc:#010x}: "
            "leave out --cross-check, or measure code without floating point and system instructions."
        )

    def _reader(self, varnode: Varnode) -> Callable[[], int]:
        start, size_bytes = varnode.offset, varnode.size_bytes
        if varnode.space == "const":
            return lambda: start
        if varnode.space == "ram":
            return lambda: self._load(start, size_bytes)
        space, end = self._space(varnode)
        order, from_bytes = self._order, int.from_bytes
        if size_bytes == 1:
            return lambda: space[start]
        return lambda: from_bytes(space[start:end], order)

    def _writer(self, varnode: Varnode) -> Callable[[int], None]:
        start, size_bytes = varnode.offset, varnode.size_bytes
        if varnode.space == "ram":
            return lambda value: self._store(start, size_bytes, value)
        space, end = self._space(varnode)
        order = self._order

        def write(value: int) -> None:
            space[start:end] = value.to_bytes(size_bytes, order)

        return write

    def _space(self, varnode: Varnode) -> tuple[bytearray, int]:
        """The buffer that holds ``varnode``, made large enough, and where the varnode ends in it."""
        space, end = self._spaces[varnode.space], varnode.offset + varnode.size_bytes
        if end > len(space):
            space.extend(bytes(end))  # twice as long at least: temporaries go on for hundreds of kilobytes
        return space, end

    def _load(self, address: int, size_bytes: int) -> int:
        region, offset = self._locate(address, size_bytes, is_store=False)
        value = int.from_bytes(region[offset : offset + size_bytes], self._order)
        self.accesses[-1] = self.accesses[-1]._replace(value=value)
        return value

    def _store(self, address: int, size_bytes: int, value: int) -> None:
        region, offset = self._locate(address, size_bytes, is_store=True)
        if isinstance(region, bytes):
            raise EmulationError(f"the instruction at {self.pc:#010x} stores to read-only memory at {address:#010x}.")
        region[offset : offset + size_bytes] = value.to_bytes(size_bytes, self._order)

    def _locate(self, address: int, size_bytes: int, *, is_store: bool) -> tuple[bytes | bytearray, int]:
        """Record an access; the region that holds it and the offset there."""
        base, region = self.regions[bisect_right(self._bases, address) - 1] if self.regions else (0, b"")
        offset = address - base
        if offset < 0 or offset + size_bytes > len(region):
            raise EmulationError(
                f"the instruction at {self.pc:#010x} {'stores' if is_store else 'loads'} {size_bytes} bytes at "
                f"{address:#010x}, outside the memory of the call."
            )
        self.accesses.append(DataAccess(self.step, self.pc, address, size_bytes, is_store))
        return region, offset


def _access_sizes(instruction: LiftedInstruction) -> list[int]:
    """Sizes in bytes of the accesses in the p-code of ``instruction``.

    Where there are several, the core makes them in ascending order of address, and SLEIGH not always does. Several
    single bytes are SLEIGH's account of one access: PowerPC's ``lwbrx``, ``lhbrx``, ``stwbrx``, ``sthbrx``.
    """
    sizes = [op.inputs[1].size_bytes for op in instruction.ops if op.opcode == "STORE"]
    sizes += [op.output.size_bytes for op in instruction.ops if op.opcode == "LOAD" and op.output]
    return sizes


def _or_dividend(function: Semantics, a: int, b: int) -> int:
    """What ``function`` gives; where that is undefined, the dividend ``a``, as the engine does."""
    try:
        return function(a, b)
    except UndefinedResultError:
        return a
