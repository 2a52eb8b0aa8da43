"""A linked ELF: segments, symbols, source positions, and which compiler it is from."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from wcet_probe.model.target import Isa, MemoryRange


@dataclass(frozen=True, slots=True)
class Segment:
    """A loadable part of an image: ``data`` at ``address``, zero-filled up to ``size_bytes``."""

    address: int
    data: bytes
    size_bytes: int
    writable: bool
    executable: bool


@dataclass(frozen=True, slots=True)
class Symbol:
    """A function or object of an image. ``address`` has no Thumb bit."""

    name: str
    address: int
    size_bytes: int
    is_function: bool


@dataclass(frozen=True, slots=True)
class LineTable:
    """Source positions: row i covers ``[addresses[i], addresses[i+1])``; a row with line 0 covers nothing."""

    addresses: tuple[int, ...] = ()
    files: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()

    def find(self, address: int) -> tuple[str, int] | None:
        """File name and line of ``address``, or None where the table has none."""
        row = bisect_right(self.addresses, address) - 1
        if row < 0 or self.lines[row] == 0:
            return None
        return self.files[row], self.lines[row]


@dataclass(frozen=True, slots=True)
class VariableLocation:
    """Where the value of a source variable is while the code from ``low`` to before ``high`` is executed.

    It is a sum of registers, with factors, and a constant.

    Attributes:
        function: the source function that declares the variable, also where it is inlined.
        name, line: the variable, and the line of its declaration.
        scope: number of the function, or of its inlined copy: each has variables of its own.
        registers: numbers of registers, as the DWARF format counts those of the core, each with its factor.
        unit_bytes: bytes of what a pointer points to; 1 of a number.
    """

    function: str
    name: str
    line: int
    scope: int
    low: int
    high: int
    registers: tuple[tuple[int, Fraction], ...]
    constant: Fraction
    unit_bytes: int = 1


@dataclass(frozen=True, slots=True)
class InlinedCall:
    """A call of the source in whose place the compiler has put the callee's code.

    Attributes:
        function: the source function that is called.
        file, line: where the call stands.
        depth: how many such calls it is inside of.
        code: the callee's code, that of calls in it included.
    """

    function: str
    file: str
    line: int
    depth: int
    code: tuple[MemoryRange, ...]


@dataclass(frozen=True, slots=True)
class BuildAttributes:
    """What an ELF file says of the core that it is built for.

    Attributes:
        core: name of the core, or empty.
        architecture: as :class:`~wcet_probe.model.target.Architecture` names it, or what the file has; empty if the
            file does not say.
        fpu: what its floating-point instructions ask for, in words; empty if it has none.
        fpu_level: generation of the VFP architecture that is asked for; 0: none.
        fpu_double: whether instructions of double precision are among them.
        fpu_wide: whether it asks for 32 double registers, not 16.
        variable_length: whether it has VLE code (PowerPC).
    """

    core: str = ""
    architecture: str = ""
    fpu: str = ""
    fpu_level: int = 0
    fpu_double: bool = False
    fpu_wide: bool = False
    variable_length: bool = False


@dataclass(frozen=True, slots=True)
class Image:
    """A linked ELF: the identity of all that follows.

    Attributes:
        elf: the file's bytes.
        sha256: hex digest of ``elf``.
        isa: instruction set; for ARM the set of the functions without mapping symbols.
        big_endian: byte order of data.
        segments: what is loaded.
        symbols: functions and objects by name.
        functions: functions in address order.
        code: address ranges that hold instructions, in order; on ARM cut by the ``$a/$t/$d`` mapping symbols.
        lines: source positions.
        compiler: identity of the compiler, as it states it.
        flags: the compiler's flags.
    """

    elf: bytes = field(repr=False)
    sha256: str
    isa: Isa
    big_endian: bool
    segments: tuple[Segment, ...] = field(repr=False)
    symbols: Mapping[str, Symbol] = field(repr=False)
    functions: tuple[Symbol, ...] = field(repr=False)
    code: tuple[MemoryRange, ...] = field(repr=False)
    lines: LineTable = field(repr=False)
    compiler: str
    flags: tuple[str, ...]

    def function_at(self, address: int) -> Symbol | None:
        """The function that holds ``address``, or None."""
        row = bisect_right(self.functions, address, key=lambda symbol: symbol.address) - 1
        if row < 0:
            return None
        function = self.functions[row]
        return function if address < function.address + max(1, function.size_bytes) else None

    def place(self, address: int) -> str:
        """``function+0x12``; falls back to the address."""
        function = self.function_at(address)
        return f"{function.name}+{address - function.address:#x}" if function else f"{address:#010x}"

    def location(self, address: int) -> str:
        """``function+0x12 (file.c:34)`` for messages and listings; falls back to the address."""
        where = self.place(address)
        line = self.lines.find(address)
        return f"{where} ({line[0]}:{line[1]})" if line else where
