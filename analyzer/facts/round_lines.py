"""Whether each round of a binary loop has code of the source loop that it was taken for, and none of one around it.

Compilers let a loop inside go back to the header of the loop around, or a loop around into one inside, and most lines
may still speak for one of the two. The ways through the binary loop tell: a way from the header back to it on which
nothing is of the source loop may be a round of a loop inside; code of a loop around, of another round of that.

Words: line table, inlined call, header (docs/explanation/glossary.md).

*Soundness:* necessary conditions only, see `source_match.match_loop`; the line table says what is whose.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from wcet_probe.analyzer.facts.inlined_lines import Inlining, Line
from wcet_probe.analyzer.facts.source_index import SourceIndex
from wcet_probe.analyzer.facts.source_parts import SourceLoop, encloses


@dataclass(frozen=True, slots=True)
class LoopWays:
    """The blocks of a binary loop in its own function, those of the loops in it too.

    Attributes:
        header: where the header starts.
        blocks: the addresses of each block's instructions, by its start.
        following: the blocks of the loop to which control goes from each, calls passed over.
        tests: the instructions after which there are two ways.
    """

    header: int
    blocks: Mapping[int, tuple[int, ...]]
    following: Mapping[int, frozenset[int]]
    tests: frozenset[int] = frozenset()

    def has_round_without(self, addresses: Collection[int]) -> bool:
        """Whether a way leads from the header back to it past none of the instructions at ``addresses``.

        Soundness: exact.
        """
        barred = {start for start, inside in self.blocks.items() if not set(addresses).isdisjoint(inside)}
        todo, seen = [self.header], set[int]()
        while todo:
            start = todo.pop()
            if start in barred:
                continue
            following = self.following.get(start, frozenset())
            if self.header in following:
                return True
            todo += following - seen
            seen |= following
        return False


def is_around_each_round(found: SourceLoop, ways: LoopWays, inlining: Inlining, index: SourceIndex) -> bool:
    """Whether each way through the binary loop has code of ``found``, and none is a round of a loop around it.

    Single instructions of a loop around may have come from there, as constants and addresses do. But no test has, nor
    a whole block that not each way passes. And code that GCC has made of two places has the line of one: of its code
    only tests count for ``found``.

    Raises:
        ImageError: damaged debug information.

    Soundness: as said of the module.
    """
    lines = {at: list(_lines(at, inlining)) for inside in ways.blocks.values() for at in inside}
    own = {at for at, said in lines.items() if any(_is_in(line, found) for line in said)}
    around = _around(found, [lines[at] for at in own], index)
    strange = {at for at in lines.keys() - own if any(_is_in(line, loop) for line in lines[at] for loop in around)}
    blocks = [at for at in ways.blocks.values() if own.isdisjoint(at) and not strange.isdisjoint(at)]
    if strange & ways.tests or any(map(ways.has_round_without, blocks)):
        return False
    told = own if inlining.is_of_clang(ways.header) else own & ways.tests
    return not ways.has_round_without({at for at in told if _innermost(lines[at], index) == [found]})


def may_be_entered_in_its_test(found: SourceLoop, ways: LoopWays, inlining: Inlining) -> bool:
    """Whether the header of a binary loop may be executed once more for each entry than ``found`` is tested.

    A part of the test that holds for all rounds, or for none, is executed in front of the loop only, and may share its
    branch with the part that is executed in each round; so where a way has no code but that of the head of ``found``.

    Raises:
        ImageError: damaged debug information.

    Soundness: as said of the module.
    """
    if not found.has_parts:
        return False
    lines = {at: list(_lines(at, inlining)) for inside in ways.blocks.values() for at in inside}
    body = {
        at
        for at, said in lines.items()
        for line in [one for one in said if _is_in(one, found)][:1]
        if line[1] not in found.header_lines
    }
    return ways.has_round_without(body)


def _around(found: SourceLoop, lines: Iterable[Sequence[Line]], index: SourceIndex) -> set[SourceLoop]:
    """The loops around ``found``, and those around the calls by which its code, with ``lines``, was inlined."""
    around = {loop for loop in index.files[found.file].loops if loop != found and encloses(loop, found)}
    for said in lines:
        place = next(number for number, line in enumerate(said) if _is_in(line, found))
        around |= {
            loop
            for file, line in said[place + 1 :]
            if file in index.files
            for loop in index.files[file].loops
            if line in loop and loop != found
        }
    return around


def _is_in(place: Line, loop: SourceLoop) -> bool:
    return place[0] == loop.file and place[1] in loop


def _innermost(lines: Sequence[Line], index: SourceIndex) -> list[SourceLoop]:
    return next((loops for line in lines if (loops := index.loops_at(*line))), [])


def _lines(address: int, inlining: Inlining) -> Iterator[Line]:
    """The line of an instruction and those of the calls that have brought it, the innermost first; none without a line.

    Where only the calls are known, the code may be of a loop in what was called.
    """
    line = inlining.image.lines.find(address)
    if line is not None and line[1]:
        yield line
        yield from reversed(list(inlining.calls(address)))
