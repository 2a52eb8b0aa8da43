"""Source loops of which one loop of the binary is made: how often its header is executed in the iterations of all.

A compiler may let the back branches of two loops, one in the other, go to one place, rotate the outer one so that the
first round of the inner one stands at its end, or leave nothing of the outer one's test. Then neither loop's count is
one of the binary loop (`source_match`), but the iterations of all of them together are: between two executions of an
instruction some loop of the source begins an iteration.

Words: loop bound, line table, inlined call (docs/explanation/glossary.md).

*Soundness:* all code of the binary loop, that of the loops in it too, is of one source loop, and each source loop
around that one is a binary loop around this one. So from an entry to the next the binary loop stays within one
execution of the source loop, whose iterations, and those of all loops inside, are as many as the products of their
pragmas. So they are in an entry of a binary loop around that was found to be that very source loop: it, too, stays
within one execution, or its own pragma would not hold of it; where a function calls itself it may be one of another
call. A loop inside that tests its own counter in each round, and has left no code of that, has been unrolled as a
whole: its rounds are no rounds here. That the line table tells all this is assumed, and each run counts the binary
loop. A loop that a compiler has made of one statement begins no iteration; it calls nothing, and has no line of a
loop's head.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from wcet_probe.analyzer.facts.source_index import SourceIndex
from wcet_probe.analyzer.facts.source_match import (
    LoopSite,
    ancestors,
    around_calls,
    calls_itself_by_calls_only,
)
from wcet_probe.analyzer.facts.source_parts import SourceFunction, SourceLoop, encloses


@dataclass(frozen=True, slots=True)
class JoinedLoops:
    """What is known of a binary loop whose rounds are iterations of several source loops.

    Attributes:
        around: the source loop that all of them are in.
        loops: all of them, in the order of the text.
        most: how often the header is executed in one execution of ``around``, at most.
        within: header of the outermost binary loop around that is ``around``, or made of it, or of this one.
    """

    around: SourceLoop
    loops: tuple[SourceLoop, ...]
    most: int
    within: int


def joined_loops(
    sites: Sequence[LoopSite], index: SourceIndex, matches: Mapping[int, SourceLoop | None]
) -> Mapping[int, JoinedLoops]:
    """What is known of those of ``sites`` that have no source loop of their own, by header address.

    Args:
        sites: all loops of the binary.
        index: the sources.
        matches: the source loop of each, see `source_match.match_loops`.

    Raises:
        ImageError: damaged debug information.

    *Soundness:* as said of the module.
    """
    outers = {site.header_address: site.outer for site in sites}
    made_of = {
        site.header_address: around
        for site in sites
        if matches[site.header_address] is None and (around := _made_of(site, sites, index, matches, outers))
    }
    found: dict[int, JoinedLoops] = {}
    for address, around in made_of.items():
        loops = tuple(one for one in index.loops(around.function, around.file) if encloses(around, one))
        lines = _lines_of(address, sites, outers)
        own = [one for one in loops if one == around or not _is_unrolled(one, lines)]
        chains = [[one for one in loops if encloses(one, each)] for each in own]
        if any(one.pragma is None for one in loops):
            continue
        alone = not index.calls_itself(around.function)
        same = [
            one
            for one in ancestors(address, outers)
            if made_of.get(one) == around or (alone and matches[one] == around)
        ]
        most = sum(prod(map(_begun, chain)) for chain in chains)
        found[address] = JoinedLoops(around, loops, most, (same or [address])[-1])
    return found


def _lines_of(
    address: int, sites: Sequence[LoopSite], outers: Mapping[int, int | None]
) -> frozenset[tuple[str, int] | None]:
    """The lines of all code of a binary loop, and of the loops in it; None, or line 0, of code without one."""
    parts = [one for one in sites if address in (one.header_address, *ancestors(one.header_address, outers))]
    lines = {line for part in parts for line in (*part.own_lines, *part.latch_lines)}
    missing = {None for part in parts if len(part.own_lines) != len(part.own)}
    return frozenset[tuple[str, int] | None]({*lines, *missing})


def _is_unrolled(loop: SourceLoop, lines: frozenset[tuple[str, int] | None]) -> bool:
    """Whether none of ``lines`` is of the head of a loop that changes and tests its counter there in each round."""
    if not any(counter.is_tested for counter in loop.counters) or any(not line or not line[1] for line in lines):
        return False
    return not any((loop.file, line) in lines for line in loop.header_lines)


def _begun(loop: SourceLoop) -> int:
    """Most iterations that begin in an execution of ``loop``, with one that ends in its test or by a ``break``."""
    most = loop.pragma[1] if loop.pragma is not None else 0
    return most + int(loop.test_first or loop.left_inside)


def _made_of(
    site: LoopSite,
    sites: Sequence[LoopSite],
    index: SourceIndex,
    matches: Mapping[int, SourceLoop | None],
    outers: Mapping[int, int | None],
) -> SourceLoop | None:
    """The source loop in one execution of which the binary loop stays, or None where that is not clear."""
    lines = {line for line in _lines_of(site.header_address, sites, outers) if line and line[1]}
    function = _function_of(site, lines, index)
    if function is None or len(site.latch_lines) != len(site.latches):
        return None
    direct = {line for file, line in lines if file == function.file and _is_in(line, function)}
    loops = index.loops(function.name, function.file)
    inside = [loop for loop in loops if direct and all(line in loop for line in direct)]
    above = {matches[address] for address in ancestors(site.header_address, outers)}
    if not above.issuperset(around_calls(site, frozenset((function.file, line) for line in direct), index)):
        return None
    # Of those that hold all of it the innermost, and each around that has no binary loop of its own around this one.
    chain = sorted(inside, key=lambda loop: loop.last_line - loop.first_line)
    around = next((loop for loop in reversed(chain) if loop not in above), chain[0] if chain else None)
    if around is None or len({(loop.first_line, loop.last_line) for loop in chain}) != len(chain):
        return None
    heads = {line for loop in loops if encloses(around, loop) for line in loop.header_lines}
    has_heads = any(file == function.file and line in heads for file, line in site.own_lines)
    return around if has_heads or site.has_calls else None


def _function_of(site: LoopSite, lines: Collection[tuple[str, int]], index: SourceIndex) -> SourceFunction | None:
    """The one function with loops that has all ``lines``, but for those of functions without; that of the site by name.

    None where it is not the site's own and nobody tells by which calls it was inlined, or where a call of itself may be
    none in the binary: one at its own end may have become a round of the loop, and need not have left a line.
    """
    others = {line for line in lines if not _is_straight(*line, index)}
    functions = [one for source in index.files.values() for one in source.functions]
    found = [one for one in functions if any(file == one.file and _is_in(line, one) for file, line in others or lines)]
    name = site.function.partition(".")[0]
    if len(found) != 1 or sum(one.name == found[0].name for one in functions) != 1:
        return None
    (function,) = found
    if not all(file == function.file and _is_in(line, function) for file, line in others):
        return None
    is_known = function.name == name or site.inlining is not None
    return function if is_known and calls_itself_by_calls_only(site, function.name, function.file, index) else None


def _is_in(line: int, function: SourceFunction) -> bool:
    return function.first_line <= line <= function.last_line


def _is_straight(file: str, line: int, index: SourceIndex) -> bool:
    """Whether a line is of a known function without loops, which does not call itself."""
    functions = index.files[file].functions if file in index.files else ()
    own = [one for one in functions if _is_in(line, one)]
    if len(own) != 1 or index.may_call_itself(file, line):
        return False
    return not index.loops(own[0].name, file)
