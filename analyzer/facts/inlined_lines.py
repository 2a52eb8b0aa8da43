"""The lines of a loop's code as the functions around it see them: those of the calls whose callees are inlined there.

A loop whose body is an inlined function has few lines of its own, or none: the debug information says at which line the
call of each piece of code stands, so that it can be looked at from the function in which the loop is written.

Words: inlined call, line table (docs/explanation/glossary.md).

*Soundness:* none is claimed: like the line table, this decides which source loop a fact is taken to speak of.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from wcet_probe.build.compilers import functions_of_clang
from wcet_probe.build.image import inlined_calls
from wcet_probe.model.image import Image, InlinedCall

Line = tuple[str, int]
"""File and line."""


@dataclass(frozen=True, slots=True)
class LoopLines:
    """File and line of the last instruction of each latch, and of each instruction of a loop and of no loop inside.

    ``direct`` are those of code that no call has brought; none where the whole loop is in a call.
    """

    latch: tuple[Line, ...]
    own: tuple[Line, ...]
    direct: frozenset[Line]


@dataclass(slots=True)
class Inlining:
    """The inlined calls of ``functions`` of a binary, and who compiled them; read when they are first asked for."""

    image: Image
    functions: Collection[str]
    _starts: list[int] = field(default_factory=list)
    _chains: list[tuple[InlinedCall, ...]] = field(default_factory=list)
    _of_clang: list[frozenset[int]] = field(default_factory=list)

    def seen_from_callers(self, latches: Iterable[int], own: Iterable[int]) -> Iterator[LoopLines]:
        """The lines of a loop's code, by address, from the innermost function that all of it is in, and from outside.

        Raises:
            ImageError: damaged debug information.
        """
        last, all_own = sorted(latches), sorted(own)
        chains = [self._chain(address) for address in (*last, *all_own)]
        shared = sum(1 for _ in takewhile(lambda calls: len(set(calls)) == 1, zip(*chains, strict=False)))
        for depth in range(shared, -1, -1):
            if any(len(chain) > depth for chain in chains):
                direct = [address for address in all_own if len(self._chain(address)) == depth]
                lines = (tuple(self._lines(addresses, depth)) for addresses in (last, all_own, direct))
                latch, every, directly = lines
                yield LoopLines(latch, every, frozenset(directly))

    def calls(self, address: int) -> Iterator[Line]:
        """The lines of the inlined calls around ``address``, the outermost first.

        Raises:
            ImageError: damaged debug information.
        """
        yield from ((one.file, one.line) for one in self._chain(address))

    def callees(self, address: int) -> Iterator[tuple[str, Line]]:
        """The functions that were inlined around ``address``, and the lines of the calls, the outermost first.

        Raises:
            ImageError: damaged debug information.
        """
        yield from ((one.function, (one.file, one.line)) for one in self._chain(address))

    def is_of_clang(self, address: int) -> bool:
        """Whether Clang has compiled the function at ``address``, as the debug information says.

        Raises:
            ImageError: damaged debug information.
        """
        if not self._of_clang:
            self._of_clang.append(functions_of_clang(self.image))
        function = self.image.function_at(address)
        return function is not None and function.address & ~1 in self._of_clang[0]

    def _lines(self, addresses: Sequence[int], depth: int) -> Iterator[Line]:
        for address in addresses:
            chain = self._chain(address)
            if len(chain) > depth:
                line: Line | None = (chain[depth].file, chain[depth].line)
            else:
                line = self.image.lines.find(address)
            if line is not None and line[1]:
                yield line

    def _chain(self, address: int) -> tuple[InlinedCall, ...]:
        """The inlined calls around ``address``, the outermost first."""
        if not self._starts:
            self._read()
        return self._chains[bisect_right(self._starts, address) - 1]

    def _read(self) -> None:
        calls = inlined_calls(self.image, self.functions)
        pieces = [(one, part.base_address, part.base_address + part.size_bytes) for one in calls for part in one.code]
        self._starts = sorted({0, *(start for _, start, _ in pieces), *(end for *_, end in pieces)})
        self._chains = [()] * len(self._starts)
        for one, start, end in pieces:  # outer ones come first
            for row in range(bisect_left(self._starts, start), bisect_left(self._starts, end)):
                self._chains[row] = (*self._chains[row], one)
