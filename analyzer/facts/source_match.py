"""Which source loop a binary loop comes from, by the line table.

Compilers attribute the back branch to the line of the loop statement or of its condition, and the instructions of an
inlined callee to the callee's lines; so the source loop may stand in another function than the binary loop. A match
has to be unambiguous: where latch and body disagree there is none. Where a loop inside is already that source loop,
there is one only if everything in the outer loop says so: compilers make two nested loops of one with a ``continue``.
They also make loops of single statements, which may stand in a source loop, and are none of the source.
Where the lines say nothing, those of the calls that are inlined there do.

Words: line table, inlined call, loop forest (docs/explanation/glossary.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from wcet_probe.analyzer.facts.inlined_lines import Inlining
from wcet_probe.analyzer.facts.inlined_recursion import ends_each_round, has_loop_of_its_own
from wcet_probe.analyzer.facts.merged_functions import may_be_another
from wcet_probe.analyzer.facts.round_lines import LoopWays, is_around_each_round
from wcet_probe.analyzer.facts.source_index import SourceIndex
from wcet_probe.analyzer.facts.source_parts import SourceFunction, SourceLoop, encloses

_NONE: frozenset[SourceLoop] = frozenset()


@dataclass(frozen=True, slots=True)
class LoopSite:
    """A natural loop of the binary.

    Attributes:
        function: symbol of the binary function.
        header_address: where its header starts.
        offset: the same in bytes from the function's start.
        latch_lines: file and line of the last instruction of each latch.
        own_lines: file and line of each instruction of the loop that is in no loop inside of it.
        outer: header address of the next loop around it in the same function, or None.
        latches, own: the addresses of these instructions.
        header_line: file and line of the header's first instruction.
        inlining: the inlined calls of the code, where they are known.
        test_lines: of ``own_lines`` those of instructions after which there are two ways.
        has_calls: whether its own code calls functions.
        calls: where calls are in the analysed code, by file, line and name of the function.
        ways: the ways through the loop, where they are known.
        entered: where its function is called or jumped to in the analysed code; None of what has no line.
    """

    function: str
    header_address: int
    offset: int
    latch_lines: tuple[tuple[str, int], ...]
    own_lines: tuple[tuple[str, int], ...]
    outer: int | None = None
    latches: tuple[int, ...] = ()
    own: tuple[int, ...] = ()
    header_line: tuple[str, int] | None = None
    inlining: Inlining | None = field(default=None, compare=False, repr=False)
    test_lines: tuple[tuple[str, int], ...] = ()
    has_calls: bool = False
    calls: Mapping[tuple[str, int, str], Sequence[int]] = field(default_factory=dict, compare=False, repr=False)
    ways: LoopWays | None = field(default=None, compare=False, repr=False)
    entered: frozenset[tuple[str, int] | None] = field(default=frozenset(), compare=False, repr=False)

    def is_inlined(self, address: int) -> bool:
        """Whether the code at ``address`` is that of an inlined call.

        Raises:
            ImageError: damaged debug information.
        """
        return self.inlining is not None and any(self.inlining.calls(address))


def ancestors(address: int, outers: Mapping[int, int | None]) -> list[int]:
    """The headers around ``address``, the nearest first; ``outers`` holds the next one around each.

    Soundness: exact.
    """
    found: list[int] = []
    outer = outers[address]
    while outer is not None:
        found.append(outer)
        outer = outers[outer]
    return found


def match_loops(sites: Sequence[LoopSite], index: SourceIndex) -> Mapping[int, SourceLoop | None]:
    """The source loop of each site, by header address; inner loops first, as they claim theirs.

    Soundness: see `match_loop`.
    """
    outers = {site.header_address: site.outer for site in sites}
    claimed: dict[int, set[SourceLoop]] = {address: set() for address in outers}
    result: dict[int, SourceLoop | None] = {}
    at_latch = {site.header_address: _with_head(site.latch_lines, index) for site in sites}
    for site in sorted(sites, key=lambda site: -len(ancestors(site.header_address, outers))):
        address = site.header_address
        known = frozenset(claimed[address])
        found = match_loop(site, index, known)
        inner = _tested_inside(site, found, index, known) if found else set[SourceLoop]()
        is_tested = found in _with_head(site.test_lines, index)
        if inner and not (is_tested and all(found not in at_latch[each] for each in ancestors(address, outers))):
            found = None
        own = {found} if found else inner or _strayed(site, index, known)
        own = own or {loop for at in site.latch_lines for loop in index.loops_at(*at)}
        result[address] = found
        for ancestor in ancestors(address, outers):
            claimed[ancestor] |= own
    for site in sites:
        around = ancestors(site.header_address, outers)
        if len(_lines(site)) == 1 and any(
            loop == result[site.header_address]
            for other in sites
            if other.header_address in around
            for at in other.latch_lines
            for loop in index.loops_at(*at)
        ):
            result[site.header_address] = None  # a statement on the line of the loop around it may have made it
    alone = [
        site.header_address
        for site in sites
        for inside in ([one for one in sites if site.header_address in ancestors(one.header_address, outers)],)
        if _may_be_around(site, inside, result, outers, index)
        or _may_be_activations(site, inside, result, index)
        or _has_other_rounds(site, result, index)
        or _may_be_of_another(site, result, index)
    ]
    return result | dict.fromkeys(alone, None)


def _may_be_around(
    site: LoopSite,
    inside: Sequence[LoopSite],
    result: Mapping[int, SourceLoop | None],
    outers: Mapping[int, int | None],
    index: SourceIndex,
) -> bool:
    """Whether the rounds of a binary loop may be those of a source loop around the one found for it, too.

    So if code of the loop around is in this one, or in a binary loop inside, which may go on in its rounds where its
    test is known to hold: a compiler rotates it so that the first round of the loop inside stands at its end. Or if the
    loop around has no binary loop of its own around this one, and its rounds may leave no code: two loops that share
    their header are one in the binary, and a back branch threaded to a ``break`` of the loop inside leaves no line of
    the loop around. So if a binary loop inside was found for the same source loop, or if no latch has a line, too.
    Nor is it clear where rounds of a loop inside, which has no binary loop of its own, may be rounds of this one.
    """
    found = result[site.header_address]
    if found is None:
        return False
    at_heads = (loop for at in site.own_lines for loop in index.loops_at(*at) if at[1] in loop.header_lines)
    if len(site.latches) > 1 and any(loop != found and encloses(loop, found) for loop in at_heads):
        return True  # one of its latches may be that of a loop around, which goes on to the head inside at once
    above = [result[address] for address in ancestors(site.header_address, outers)]
    bodies = {loop for at in site.own_lines for loop in index.loops_at(*at) if at[1] not in loop.header_lines}
    if any(loop in above and loop != found and encloses(loop, found) for loop in bodies):
        return True
    if any(loop != found and encloses(loop, found) for one in inside if (loop := result[one.header_address])):
        return True
    held = [result[one.header_address] for one in inside]
    lines = [(index.files[file].loops, line) for file, line in site.own_lines if file in index.files]
    within = {loop for loops, line in lines for loop in loops if line in loop} - {found, *above, *held}
    gone = [loop for loop in within if not encloses(loop, found) and _may_leave_nothing(loop)]
    # Where each way back is a test of the loop found, one inside has been unrolled; else its rounds may be rounds here.
    is_own = all(at in site.test_lines and at[1] in found.header_lines for at in site.latch_lines)
    if len(gone) > held.count(None) and not (is_own and len(site.latch_lines) == len(site.latches)):
        return True
    own = {at for at in site.own_lines if found in index.loops_at(*at)}
    around = {
        loop
        for loop in (*index.loops(found.function, found.file), *around_calls(site, own, index))
        if loop != found and (encloses(loop, found) or loop.function != found.function) and loop not in above
    }
    may_be_gone = any(map(_may_leave_nothing, around))
    is_twice = any(found == result[one.header_address] for one in inside)
    here = {loop for at in (*site.latch_lines, *site.own_lines) for loop in index.loops_at(*at)}
    is_unclear = may_be_gone or is_twice or not site.latch_lines or not around.isdisjoint(here)
    return is_unclear and len(around) > above.count(None)


def _has_other_rounds(site: LoopSite, result: Mapping[int, SourceLoop | None], index: SourceIndex) -> bool:
    """Whether the ways through a binary loop tell that a round may be none of the source loop found for it."""
    found = result[site.header_address]
    if found is None or site.ways is None or site.inlining is None:
        return False
    return not is_around_each_round(found, site.ways, site.inlining, index)


def _may_be_of_another(site: LoopSite, result: Mapping[int, SourceLoop | None], index: SourceIndex) -> bool:
    """Whether GCC may have made the loop of one in an equal function, too, see `merged_functions`."""
    if result[site.header_address] is None or site.inlining is None or site.inlining.is_of_clang(site.header_address):
        return False
    inlined = {call for at in site.own for call in site.inlining.callees(at)}

    def has_loop(function: SourceFunction) -> bool:
        return any(index.loops(one.name, one.file) for one in index.inside(function.name))

    return may_be_another(site.function, site.entered, inlined, index, site.inlining.image, has_loop)


def _may_leave_nothing(loop: SourceLoop) -> bool:
    """Whether rounds of a loop may be executed without code of it: not so of one that tests its own counter in each."""
    return not any(counter.is_tested for counter in loop.counters)


def _may_be_activations(
    site: LoopSite, inside: Sequence[LoopSite], result: Mapping[int, SourceLoop | None], index: SourceIndex
) -> bool:
    """Whether the rounds of a binary loop may be activations of a function that calls itself at its end, too.

    Such a call goes back to where the function begins, and may leave no line. So each call of itself has to be one in
    the binary, too; or the calls in front of all loops are outside of the binary loop, and there are some. Of another
    function, which was inlined there, it has to be one in any case, or all of its rounds are those of a loop inside.
    """
    found = result[site.header_address]
    if found is None:
        return False
    others = _others(site, found, index)
    unclear = [one for one in others if not calls_itself_by_calls_only(site, one.name, one.file, index)]
    if unclear:
        if site.ways is None or site.inlining is None or not ends_each_round(found, site.ways, site.own, site.inlining):
            return True
        code = [{*one.own, *one.latches} for one in inside]
        if not all(has_loop_of_its_own(one, code, site.inlining, index) for one in unclear):
            return True
    if calls_itself_by_calls_only(site, found.function, found.file, index):
        return False
    calls = _calls_of(found.function, found.file, index)
    first = min(one.first_line for one in index.loops(found.function, found.file) if encloses(one, found))
    before = {one for one in site.calls.keys() & calls if one[1] < first}
    return not before or any((file, line) in site.own_lines for file, line, _ in before)


def _others(site: LoopSite, found: SourceLoop, index: SourceIndex) -> list[SourceFunction]:
    """The functions but that of ``found`` of which code is in a binary loop."""
    lines = [one for one in _lines(site) if one[0] in index.files]
    functions = {one for file, line in lines for one in index.files[file].functions if _is_within(line, one)}
    return [one for one in functions if (one.name, one.file) != (found.function, found.file)]


def _is_within(line: int, function: SourceFunction) -> bool:
    return function.first_line <= line <= function.last_line


def calls_itself_by_calls_only(site: LoopSite, function: str, file: str, index: SourceIndex) -> bool:
    """Whether all calls of ``function`` by itself, if it has any, are calls in the binary as well, and none is a jump.

    *Soundness:* none is claimed. A line has its call, or it has none; calls in code that was inlined count for none, as
    what is a call there may be a jump where it is not.
    """
    if not index.calls_itself(function):
        return True
    again = {one for one in _calls_of(function, file, index) if one[2] == function}
    is_call = all(any(not site.is_inlined(at) for at in site.calls.get(one, ())) for one in again)
    return bool(again) and is_call and not index.calls_itself(function, directly=False)


def _calls_of(function: str, file: str, index: SourceIndex) -> set[tuple[str, int, str]]:
    """File, line and name of the function of each call that the text of ``function`` has."""
    source = index.files[file]
    own = [one for one in source.functions if one.name == function]
    return {(file, line, name) for name, line in source.calls for one in own if one.first_line <= line <= one.last_line}


def around_calls(site: LoopSite, lines: Collection[tuple[str, int]], index: SourceIndex) -> frozenset[SourceLoop]:
    """The loops around the calls by which the code of ``lines`` in a binary loop was inlined.

    Raises:
        ImageError: damaged debug information.

    Soundness: as of `match_loop`.
    """
    if site.inlining is None:
        return _NONE
    table = site.inlining.image.lines
    own = (at for at in site.own if table.find(at) in lines)
    calls = {call for at in own for call in site.inlining.calls(at)}
    around = ((index.files[file].loops, line) for file, line in calls if file in index.files)
    return frozenset(loop for loops, line in around for loop in loops if line in loop)


def _lines(site: LoopSite) -> set[tuple[str, int]]:
    return {(file, line) for file, line in (*site.latch_lines, *site.own_lines) if line}


def _is_one_statement(site: LoopSite, index: SourceIndex) -> bool:
    """Whether all code of a loop is of one line that is no loop's head: a copy of a structure, an atomic operation."""
    lines = _lines(site)
    heads = {(loop.file, line) for at in lines for loop in index.loops_at(*at) for line in loop.header_lines}
    return len(lines) == 1 and not lines & heads


def match_loop(site: LoopSite, index: SourceIndex, claimed: frozenset[SourceLoop] = _NONE) -> SourceLoop | None:
    """The source loop that ``site`` comes from, or None where that is not clear.

    The latches' lines say it, unless most of the loop's own lines belong to a loop that is not inside of that one; if
    the latches say nothing, those own lines do. If that is not clear, either, code of inlined functions counts for the
    lines of their calls (`_match_seen_from_callers`). A loop that the compiler has made of one statement has none.

    Parameters:
        claimed: the source loops of the binary loops inside of the site, or what they may come from.

    Raises:
        ImageError: damaged debug information.

    Soundness: heuristic, because the line table is; therefore what comes from a match counts as an assumption, and the
    observer counts the binary loop that it was applied to.
    """
    if _is_one_statement(site, index):
        return None
    found = _match(site, index, claimed) or _match_seen_from_callers(site, index, claimed)
    return None if found and _are_two(site, index, found, claimed) else found


def _are_two(site: LoopSite, index: SourceIndex, found: SourceLoop, claimed: frozenset[SourceLoop]) -> bool:
    """Whether a loop inside ``found``, which is no binary loop by itself, has the same header and may have a latch.

    Then the header is executed in the iterations of both, and neither's count holds of it.
    """
    if len(site.latches) < 2 or site.header_line is None:
        return False
    inside = {one for one in index.loops_at(*site.header_line) if one != found and encloses(found, one)} - claimed
    is_told = len(site.latch_lines) == len(site.latches)
    return bool(inside) and not (is_told and all(inside.isdisjoint(index.loops_at(*at)) for at in site.latch_lines))


def _match_seen_from_callers(site: LoopSite, index: SourceIndex, claimed: frozenset[SourceLoop]) -> SourceLoop | None:
    """The source loop that the lines of inlined calls tell.

    Only where a latch is on the head of that very loop, or where no line of the code is in any loop, or those that some
    are in are claimed, and several lines of the loop found are there by themselves: code of a caller that has strayed
    into a callee's loop tells nothing.
    """
    if site.inlining is None:
        return None
    lines = {*site.latch_lines, *site.own_lines}
    loops = {loop for line in lines for loop in index.loops_at(*line)}
    for seen in site.inlining.seen_from_callers(site.latches, site.own):
        found = _match(replace(site, latch_lines=seen.latch, own_lines=seen.own), index, claimed)
        heads = {(found.file, line) for line in found.header_lines} if found else set()
        direct = [line for line in seen.direct if found in index.loops_at(*line)]
        others = loops - {loop for line in seen.direct for loop in index.loops_at(*line)}
        if found and heads & {*site.latch_lines}:
            return found
        # A call at a function's own end, which is no loop of the source, may have become one of the binary.
        is_simple = not any(index.may_call_itself(file, line) for file, line in lines - seen.direct)
        if found and is_simple and (not loops or (len(direct) > 1 and others <= claimed)):
            return found
        if any(index.loops_at(*line) for line in {*seen.latch, *seen.own}):
            break  # it is one of this function, and which one is not clear
    return None


def _match(site: LoopSite, index: SourceIndex, claimed: frozenset[SourceLoop]) -> SourceLoop | None:
    said = _latch(site, index)
    latch = said - claimed
    votes = _votes(site, index, claimed, heads_only=not latch)
    most = [loop for loop, count in votes.items() if count == max(votes.values())]
    if len(latch) == 1:
        (loop,) = latch
        if _strayed(site, index, claimed):
            return None
        is_told = not most or loop in most or any(encloses(loop, other) for other in most)
        # The line of a latch may be that of a condition in a callee, of whose loop nothing else is left.
        is_clear = all(_is_around(loop, other, site, index) for other in _heads(site, index) - claimed)
        return loop if is_told and is_clear else None
    if latch:
        return None
    around = _around_claimed(site, index, votes, claimed)
    if around:
        return around
    split = [
        loop
        for loop in said
        if len(said) == 1 and loop in votes and all(encloses(loop, one) for one in votes) and _is_all(loop, site, index)
    ]
    if split or len(most) != 1:
        return split[0] if split else None
    is_clear = all(_is_around(most[0], loop, site, index) for loop in {*said, *votes})
    return most[0] if is_clear and most[0] not in claimed else None


def _is_all(loop: SourceLoop, site: LoopSite, index: SourceIndex) -> bool:
    """Whether no line of the site is of the loop's function and outside of it, as what stands in front of it is.

    A loop that calls the function, in which the loop is a loop inside, may go back on its first test.
    """
    own = [one for one in index.files[loop.file].functions if loop.first_line in range(one.first_line, one.last_line)]
    return not any(
        file == loop.file and line not in loop and any(one.first_line <= line <= one.last_line for one in own)
        for file, line in site.own_lines
    )


def _heads(site: LoopSite, index: SourceIndex) -> set[SourceLoop]:
    """The loops whose heads have code in the site."""
    return _with_head(site.own_lines, index)


def _with_head(lines: Iterable[tuple[str, int]], index: SourceIndex) -> set[SourceLoop]:
    """The loops that have their heads on ``lines``."""
    return {one for file, line in lines for one in index.loops_at(file, line) if line in one.header_lines}


def _tested_inside(
    site: LoopSite, found: SourceLoop, index: SourceIndex, claimed: frozenset[SourceLoop]
) -> set[SourceLoop]:
    """The loops inside of that found for the site that have their tests in it, and are no binary loops by themselves.

    With a test of the loop that was found in it, too, a compiler has unrolled them. Else, or where a binary loop around
    goes back on the head of the one found, a line has strayed: copies in front of a back branch may have that of the
    loop around.
    """
    return {one for one in _with_head(site.test_lines, index) - claimed if one != found and encloses(found, one)}


def _strayed(site: LoopSite, index: SourceIndex, claimed: frozenset[SourceLoop]) -> set[SourceLoop]:
    """The loops that have code here, inside the one that only a line at a latch speaks for; none where it is no such.

    Of the loop around there is no test, and a loop inside is no binary loop by itself: a compiler may go back to what
    stands in front of the loop inside. Or a known condition of the loop around is not tested again, and one inside has
    become a few statements. Which of these it is, no line tells.
    """
    latch = _latch(site, index) - claimed
    if len(latch) != 1:
        return set()
    (loop,) = latch
    inside = {one for one in _votes(site, index, claimed, heads_only=False) if one != loop and encloses(loop, one)}
    at_head = any((loop.file, line) in site.latch_lines for line in loop.header_lines)
    return set() if loop in _heads(site, index) or at_head else inside


def _is_around(found: SourceLoop, other: SourceLoop, site: LoopSite, index: SourceIndex) -> bool:
    """Whether a loop of another function, of which code is in the site, was inlined into that found for it.

    Else the one that was found may be inlined into the other, be no loop any more, and have the more lines here. Of
    loops of one function, see `_may_be_around`.
    """
    if site.inlining is None or (other.file, other.function) == (found.file, found.function):
        return True
    lines = site.inlining.image.lines
    own = (at for at in {*site.own, *site.latches} if other in index.loops_at(*(lines.find(at) or ("", 0))))
    return all(any(file == found.file and line in found for file, line in site.inlining.calls(at)) for at in own)


def _around_claimed(
    site: LoopSite, index: SourceIndex, votes: Mapping[SourceLoop, int], claimed: frozenset[SourceLoop]
) -> SourceLoop | None:
    """The one loop that is not claimed, where all others are, and are inside of it.

    First and last iterations of loops inside may stand outside of them, with more lines than the loop around them has.
    It has to have several, and that of the header: a loop inside that has become two may hold a line of the other.
    """
    free = [loop for loop in votes if loop not in claimed]
    if len(free) != 1 or not all(encloses(free[0], loop) for loop in votes):
        return None
    own = {line for line in site.own_lines if index.loops_at(*line) == free}
    return free[0] if len(own) > 1 and site.header_line in own else None


def _latch(site: LoopSite, index: SourceIndex) -> frozenset[SourceLoop]:
    """The loops that the latches' lines are of; those whose head is on such a line go before the others."""
    choices = [(line, loop) for file, line in site.latch_lines for loop in index.loops_at(file, line)]
    exact = frozenset(loop for line, loop in choices if line in loop.header_lines)
    return exact or frozenset(loop for _, loop in choices)


def _votes(
    site: LoopSite, index: SourceIndex, claimed: frozenset[SourceLoop], *, heads_only: bool
) -> Counter[SourceLoop]:
    """How many own lines each loop has. Of claimed loops neither counts, or, with ``heads_only``, their heads do not.

    Before an inner loop is entered, its head is executed as a part of the outer one.
    """
    votes: Counter[SourceLoop] = Counter()
    for file, line in site.own_lines:
        loops = index.loops_at(file, line)
        if len(loops) == 1 and not (loops[0] in claimed and (not heads_only or line in loops[0].header_lines)):
            votes[loops[0]] += 1
    return votes
