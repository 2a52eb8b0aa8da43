"""All facts that a bound still needs, at once: each open loop, call and recursion, with the lines that are accepted.

What stands in the way is told for trial, one after the other: a loop runs once, a call goes to some function that
returns, a recursion is two deep. So everything behind it comes to light. What is told for trial goes into no answer.
Then arguments are given a range and pointers an alignment, also for trial, to see what a fact about them would help.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from wcet_probe.analyzer.bound import prepare, prove
from wcet_probe.analyzer.call_summaries import has_summaries
from wcet_probe.analyzer.facts.binding import code_sha256
from wcet_probe.analyzer.facts.call_fields import field_sites
from wcet_probe.analyzer.facts.expressions import parse
from wcet_probe.analyzer.facts.language import (
    CallsFact,
    Facts,
    LoopFact,
    Place,
    PointerFact,
    RecursionFact,
    ThroughFact,
)
from wcet_probe.analyzer.facts.source_index import index_sources
from wcet_probe.analyzer.facts.source_match import match_loops
from wcet_probe.analyzer.graph.supergraph import TooManyPointsError
from wcet_probe.analyzer.prepared import Bounded, Prepared
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.analyzer.values.analysis import TooMuchWorkError
from wcet_probe.analyzer.values.remembered import RememberedValues, remember
from wcet_probe.answer.facts.loop_totals import ASKED, total_effects
from wcet_probe.answer.facts.member_facts import member_fact
from wcet_probe.answer.facts.pointer_candidates import held_word, pointees
from wcet_probe.answer.facts.read_arguments import read_arguments
from wcet_probe.answer.facts.source_lines import source_lines, why_no_loop
from wcet_probe.build.debug_types import held_functions
from wcet_probe.errors import AnalysisError, UsageError
from wcet_probe.model.proof import FactCandidate

_TRIAL = "told for trial"
_NOT_LOOKED_AT = "not looked at, as it would take too long: ask again with these facts"
_MOST_ROUNDS = 64
_MOST_VISITS = 12_000
"""Blocks that are executed to find what else is missing where a bound was asked for: some 20 CPU seconds."""
_MOST_VISITS_OF_FACTS = 2 * _MOST_VISITS
"""The same where the facts are asked for: with those that it finds, the question is asked again."""
_MOST_STAND_INS = 6
_SEVERAL = 2
_EXCERPT_INSTRUCTIONS = 6
_MOST_TRIED = 2_000
"""Blocks up to which ranges of arguments are tried, which takes a proof for each."""
_TRIAL_MOST = 16
"""The range that an argument is given for trial: what it bounds then, some range bounds."""
_ALIGNMENTS = (4, 8)
_RECURSION = re.compile(r"(.+?)\+0x[0-9a-f]+.* calls (\S+) recursively")
_LOCATION = re.compile(r"(.+?)\+0x([0-9a-f]+)")


@dataclass(frozen=True, slots=True)
class OpenFact:
    """A fact that is missing: what of, the lines of its table, the function's text, and the line that it is about.

    ``code`` is what is there in instructions, where no text is. ``total`` tells what the sum of all rounds would help.
    """

    title: str
    lines: tuple[str, ...]
    source: tuple[str, ...] = ()
    line: str = ""
    code: tuple[str, ...] = ()
    total: str = ""


@dataclass(frozen=True, slots=True)
class Skeleton:
    """What is missing of the facts about ``entry``.

    Attributes:
        missing: the facts without which there is no bound, or one by the width of a type only.
        candidates: facts that make another one unnecessary, or the bound in cycles smaller.
        stopped: why what comes behind it was not looked at, or empty.
    """

    entry: str
    missing: tuple[OpenFact, ...]
    candidates: tuple[FactCandidate, ...]
    stopped: str = ""


@dataclass(slots=True)
class _Trial:
    """A question with what was told for trial so far, and what that showed to be missing."""

    asked: BoundRequest
    remembered: RememberedValues
    told: Facts = field(default_factory=Facts)
    missing: list[OpenFact] = field(default_factory=list)
    open_loops: dict[int, LoopFact] = field(default_factory=dict)
    by_type: dict[int, LoopFact] = field(default_factory=dict)
    tables: dict[tuple[str, ...], tuple[str, list[LoopFact]]] = field(default_factory=dict)
    stopped: str = ""
    bounded: Bounded | None = None
    found: AnalysisError | Prepared | None = None
    stand_in: str = ""

    def prepared(self, progress: Callable[[str], None]) -> Prepared:
        """What is prepared of the question as it stands; what was ``found`` of it already is not looked for again.

        Raises:
            AnalysisError: what is to be executed is not known.
        """
        found, self.found = self.found, None
        if isinstance(found, AnalysisError):
            raise found
        return found or prepare(self.request(), progress, self.remembered)

    def request(self, told: Facts | None = None) -> BoundRequest:
        return replace(self.asked, facts=_joined(self.asked.facts, told or self.told))


def fact_skeleton(asked: BoundRequest, progress: Callable[[str], None] = lambda _: None) -> Skeleton:
    """What is missing of the facts of ``asked``.

    Raises:
        UsageError: there is no such function, or a fact that is there is wrong.
    """
    known = remember(asked.image, asked.target)
    known.left = _MOST_VISITS_OF_FACTS
    trial = _looked(_Trial(asked, known), progress)
    known.left = None
    candidates = [*_argument_candidates(trial, progress)]
    totals = dict(_totals(trial, progress))
    candidates += pointer_candidates(_closed(trial), progress, has_trials=bool(trial.missing))
    candidates += pointees(asked) if trial.missing else ()
    missing = tuple(replace(one, total=totals.get(one.lines, "")) for one in trial.missing)
    return Skeleton(asked.entry, missing, tuple(candidates), trial.stopped)


def _looked(trial: _Trial, progress: Callable[[str], None]) -> _Trial:
    trial.remembered.is_search = True
    try:
        for _ in range(_MOST_ROUNDS):
            if trial.stopped or not _round(trial, progress):
                break
    except TooMuchWorkError:
        trial.stopped = _NOT_LOOKED_AT
    return trial


def with_all_missing(
    asked: BoundRequest,
    error: AnalysisError,
    progress: Callable[[str], None] = lambda _: None,
    remembered: RememberedValues | None = None,
) -> AnalysisError:
    """``error``, for which ``asked`` has no bound, with all facts that are missing and not only those in the way first.

    What is ``remembered`` of the proof that failed is not analysed again. Of a graph that is too large nothing more is
    looked for, which would take as long again for each round.

    Raises:
        UsageError: a fact that is there is wrong.
    """
    if isinstance(error, TooManyPointsError) or not (error.headers or error.sites or _RECURSION.match(str(error))):
        return error
    progress("looking for all that is missing")
    known = remembered or remember(asked.image, asked.target)
    known.left = _MOST_VISITS
    # A loop may be open where the question was asked, and not where its function is expanded.
    trial = _looked(_Trial(asked, known, found=None if error.headers else error), progress)
    if len(trial.missing) < _SEVERAL and trial.stopped != _NOT_LOOKED_AT:
        return error
    lines = [f"  {one.title}: {_in_a_line(one.lines)}" for one in trial.missing]
    lines += [f"  and what comes behind: {trial.stopped}"] if trial.stopped else []
    head = f"{error}\n{len(trial.missing)} fact{'s are' if len(trial.missing) > 1 else ' is'} missing:"
    return AnalysisError("\n".join((head, *lines)), error.headers, error.sites)


def _in_a_line(table: Sequence[str]) -> str:
    """The table of a fact, shortened: what is to be answered is a question mark."""
    kept = (line for line in table if not line.startswith(("because", "sha256")))
    head, *keys = (line.replace('"?"', "?") for line in kept)
    return f"{head} {', '.join(keys)}"


def pointer_candidates(
    asked: BoundRequest | None, progress: Callable[[str], None] = lambda _: None, *, has_trials: bool = False
) -> Iterator[FactCandidate]:
    """Alignments of pointers that would make the bound in cycles of ``asked`` smaller, where anything rests on them.

    Where that would take too long to try, they are named with that. ``has_trials``: ``asked`` has answers for trial.
    """
    if (
        asked is None
        or not (asked.target.dcache or asked.target.unaligned)
        or any(not fact.functions for fact in asked.facts.pointers)
    ):
        return
    progress("trying alignments of pointers")
    # A fact about pointers asks for calls that are expanded: of others it is not the alignment that helps.
    expanded, known = replace(asked, summaries=False), remember(asked.image, asked.target)
    known.left = _MOST_VISITS
    before, tried = None, " of a trial, with one round for each loop above," if has_trials else ""
    try:
        before = prove(expanded, remembered=known).cycles
        for alignment in _ALIGNMENTS:
            fact = PointerFact(_TRIAL, {}, parse(str(alignment)), None, None, because=_TRIAL)
            told = replace(expanded, facts=_joined(asked.facts, Facts(pointers=(fact,))))
            after = prove(told, remembered=known).cycles
            if after < before:
                yield FactCandidate(
                    _aligned(alignment), f"the bound in cycles{tried} goes from {before:,} to {after:,}"
                )
            before = min(before, after)
    except TooMuchWorkError:
        yield FactCandidate(_aligned(_ALIGNMENTS[0]), "not tried: with each call expanded it would take too long")
    except AnalysisError:
        if before is not None:
            raise


def _aligned(alignment: int) -> tuple[str, ...]:
    return "[[pointer]]", f"multiple_of = {alignment}", 'because = "?"'


def _joined(one: Facts, other: Facts) -> Facts:
    return replace(
        one,
        loops=(*one.loops, *other.loops),
        arguments=(*one.arguments, *other.arguments),
        recursions=(*one.recursions, *other.recursions),
        calls=(*one.calls, *other.calls),
        through=(*one.through, *other.through),
        pointers=(*one.pointers, *other.pointers),
    )


def _closed(trial: _Trial) -> BoundRequest | None:
    """The question with all that is missing told for trial; None where that is not known."""
    return None if trial.stopped or trial.bounded is None else trial.request()


# --------------------------------------------------------------------------------------------------------- what is open


def _round(trial: _Trial, progress: Callable[[str], None]) -> bool:
    """Look once, and tell for trial what is missing; whether something was."""
    try:
        prepared = trial.prepared(progress)
    except AnalysisError as error:
        return _call_or_recursion(trial, error)
    try:
        trial.bounded = prepared.bounded(trial.asked.parameters)
    except AnalysisError as error:
        fresh = [header for header in error.headers if header not in trial.open_loops]
        trial.open_loops |= _add_loops(trial, prepared, fresh)
        trial.stopped = "" if fresh else str(error)
        return bool(fresh)
    by_type = [found for one in trial.bounded.loops.by_type if (found := _address(trial, one.location)) is not None]
    fresh = [header for header in dict.fromkeys(by_type) if header not in trial.by_type | trial.open_loops]
    trial.by_type |= _add_loops(trial, prepared, fresh)
    return bool(fresh)


def _address(trial: _Trial, location: str) -> int | None:
    found = _LOCATION.match(location)
    function = next((f for f in trial.asked.image.functions if found and f.name == found[1]), None)
    return function.address + int(found[2], 16) if found and function else None


def _add_loops(trial: _Trial, prepared: Prepared, headers: Sequence[int]) -> dict[int, LoopFact]:
    """Note the loops as missing, and tell for trial that each runs once."""
    every = prepared.sites()
    sites = {site.header_address: site for site in every}
    matches = match_loops(every, prepared.index)
    image, told = trial.asked.image, dict[int, LoopFact]()
    for header in headers:
        site, loop = sites[header], matches[header]
        place = Place(site.function, offset=site.offset)
        sha256 = code_sha256(image, site.function)
        told[header] = LoopFact(_TRIAL, place, parse("1"), None, None, None, _TRIAL, sha256, optional=True)
        where = f"the loop at {image.location(header)}"
        lines: tuple[str, ...]
        text: tuple[str, ...]
        if loop is None or not loop.function:
            lines = (f'function = "{site.function}"', f"offset = {site.offset:#x}")
            cause = "its function's source is not understood" if loop else why_no_loop(trial.asked, header)
            title, text = f"{where}: {cause}", ()
        else:
            lines, sha256, text = source_lines(trial.asked, prepared, loop)
            title = f"{where}, {loop}"
        table = ("[[loop]]", *lines, 'max = "?"', 'because = "?"', f'sha256 = "{sha256}"')
        head = trial.asked.sources[loop.file].splitlines()[loop.header_lines[0] - 1].strip() if loop else ""
        trial.tables.setdefault(table, (where, []))[1].append(told[header])
        code = () if text else _code(trial.asked, header)
        if not _is_told(trial, table, where):
            trial.missing.append(OpenFact(title, table, text, head, code))
    trial.told = replace(trial.told, loops=(*trial.told.loops, *told.values()))
    return told


def _is_told(trial: _Trial, table: tuple[str, ...], where: str) -> bool:
    """Whether the very fact is noted as missing already, for another copy of its loop; then it is of this one, too."""
    for number, one in enumerate(trial.missing):
        if one.lines == table:
            head, _, rest = one.title.rpartition(", ")
            trial.missing[number] = replace(one, title=f"{head} and {where.removeprefix('the loop at ')}, {rest}")
            return True
    return False


def _code(asked: BoundRequest, address: int) -> tuple[str, ...]:
    """The first instructions at ``address``, with their source lines as far as these are known."""
    first = bisect_left(asked.instructions, address, key=lambda one: one.address)
    found = asked.instructions[first : first + _EXCERPT_INSTRUCTIONS]
    return tuple(f"{one.address:#010x}  {one.text}" for one in found)


def _call_or_recursion(trial: _Trial, error: AnalysisError) -> bool:
    """Note the indirect branches and calls, or the recursion, that ``error`` is about, and tell something for trial."""
    if error.sites:
        return _calls(trial, error.sites, str(error))
    if found := _RECURSION.match(str(error)):
        return _recursion(trial, found[2], str(error))
    trial.stopped = str(error)
    return False


def _calls(trial: _Trial, sites: Sequence[int], message: str) -> bool:
    image = trial.asked.image
    places: list[tuple[Place, str]] = []
    members = field_sites(image, trial.asked.instructions, trial.asked.sources)
    by_field = _through_fields(trial, sites, members)
    for site in sites:
        if site in by_field:
            continue
        function = image.function_at(site)
        if function is None:
            trial.stopped = message
            return False
        sha256 = code_sha256(image, function.name)
        places.append((Place(function.name, offset=site - function.address), sha256))
        lines = (f'function = "{function.name}"', f"offset = {site - function.address:#x}", 'targets = ["?"]')
        title = f"the targets of the indirect branch or call at {image.location(site)} are not known"
        table: tuple[str, ...] = ("[[calls]]", *lines, 'because = "?"', f'sha256 = "{sha256}"')
        if read := held_word(image, site, message):
            title, table = f"{title}: {read[0]}", read[1]
        elif len(members.get(site, ())) == 1:
            title, table = member_fact(image, members, site)
        if all(one.lines != table for one in trial.missing):
            trial.missing.append(OpenFact(title, table, code=_code(trial.asked, site)[:1]))
    return not places or _with_stand_in(trial, places, message)


def _recursion(trial: _Trial, name: str, message: str) -> bool:
    place = Place(name, offset=0)
    if any(fact.place.function == name for fact in trial.told.recursions):
        trial.stopped = message
        return False
    code = code_sha256(trial.asked.image, name)
    where: tuple[str, ...] = ()
    try:
        sha256 = index_sources(trial.asked.sources).function(name).sha256
    except UsageError:  # no source, or several of that name
        where, sha256 = ("offset = 0",), code
    table = ("[[recursion]]", f'function = "{name}"', *where, 'max_depth = "?"', 'because = "?"')
    trial.missing.append(OpenFact(message.partition(": ")[0], (*table, f'sha256 = "{sha256}"')))
    fact = RecursionFact(_TRIAL, place, parse("2"), None, _TRIAL, code)
    trial.told = replace(trial.told, recursions=(*trial.told.recursions, fact))
    return True


def _through_fields(trial: _Trial, sites: Sequence[int], members: Mapping[int, tuple[str, ...]]) -> set[int]:
    """Those of ``sites`` that call through one member of a structure, of which the image's objects hold functions.

    Each member is noted as missing, and told for trial to go to what the objects hold there as the file has them.
    """
    asked, found = trial.asked, set[int]()
    for site in sites:
        own = members.get(site, ())
        held = held_functions(asked.image, own[0]) if len(own) == 1 else ()
        if not held:
            continue
        found.add(site)
        if any(one.through == own[0] for one in trial.told.through):
            continue
        trial.missing.append(OpenFact(*member_fact(asked.image, members, site)))
        fact = ThroughFact(_TRIAL, own[0], tuple(dict.fromkeys(function for _, function in held)), _TRIAL)
        trial.told = replace(trial.told, through=(*trial.told.through, fact))
    return found


def _with_stand_in(trial: _Trial, places: Sequence[tuple[Place, str]], message: str) -> bool:
    """Have the calls at ``places`` go to a small function that returns, if one of the smallest does."""
    small = sorted((f for f in trial.asked.image.functions if f.size_bytes), key=lambda f: (f.size_bytes, f.name))
    stand_ins = sorted(small[:_MOST_STAND_INS], key=lambda f: f.name != trial.stand_in)
    # What the file has in members may be too much to look at: then they, too, go to the small function.
    for function, is_small in ((function, is_small) for function in stand_ins for is_small in (False, True)):
        if is_small and not trial.told.through:
            continue
        facts = tuple(CallsFact(_TRIAL, place, (function.name,), _TRIAL, sha256) for place, sha256 in places)
        told = replace(trial.told, calls=(*trial.told.calls, *facts))
        if is_small:
            told = replace(told, through=tuple(replace(one, targets=(function.name,)) for one in told.through))
        try:
            trial.found = prepare(trial.request(told), remembered=trial.remembered)
        except AnalysisError as error:
            if str(error) == message or not (error.sites or _RECURSION.match(str(error))):
                continue
            trial.found = error
        trial.told, trial.stand_in = told, function.name
        return True
    trial.stopped = f"{message} (no small function of the image can stand in for it)"
    return False


# ------------------------------------------------------------------------------------------------------------ arguments


def _argument_candidates(trial: _Trial, progress: Callable[[str], None]) -> Iterator[FactCandidate]:
    """Arguments whose range bounds loops that are open."""
    values = trial.bounded.prepared.values if trial.bounded else None
    if trial.stopped or values is None or has_summaries(values) or len(values.states) > _MOST_TRIED:
        return
    known = {fact.index for fact in trial.asked.facts.arguments if fact.function == trial.asked.entry}
    for read in read_arguments(values, trial.asked.image, trial.remembered.lifter, trial.asked.entry):
        if (index := read.index) in known:
            continue
        progress(f"trying a range of argument {index}")
        fact = replace(read, where=_TRIAL, maximum=parse(str(_TRIAL_MOST)), because=_TRIAL)
        closed = set[int]()
        for asked, others in ((trial.by_type, trial.open_loops), (trial.open_loops, trial.by_type)):
            # Loops without any bound hide those that are bounded by a type only, so each kind is tried by itself.
            told = replace(trial.told, loops=tuple(others.values()), arguments=(fact,))
            left = _open_loops(trial, told) if asked else None
            closed |= asked.keys() - left if left is not None else set()
        if closed:
            names = ", ".join(trial.asked.image.location(address) for address in sorted(closed))
            lines = ("[[argument]]", f'function = "{trial.asked.entry}"', f"index = {index}", "min = 0", 'max = "?"')
            yield FactCandidate((*lines, 'because = "?"'), f"its range bounds the loop at {names}")


def _totals(trial: _Trial, progress: Callable[[str], None]) -> Iterator[tuple[tuple[str, ...], str]]:
    """The lines of facts about open loops of which the sum of all rounds would help, and what it would."""
    values, closed = trial.bounded.prepared.values if trial.bounded else None, _closed(trial)
    if closed is not None and values is not None and len(values.states) <= _MOST_TRIED:
        yield from total_effects(closed, trial.tables, trial.remembered, progress)


def _open_loops(trial: _Trial, told: Facts) -> set[int] | None:
    """The loops that are open with ``told``; None where the analysis does not come so far."""
    try:
        bounded = prepare(trial.request(told)).bounded(trial.asked.parameters)
    except AnalysisError as error:
        return set(error.headers) or None
    return {found for one in bounded.loops.by_type if (found := _address(trial, one.location)) is not None}


# ----------------------------------------------------------------------------------------------------------------- text

EXCERPT = "#| "
"""What stands before each line of a function that a fact was written for."""


def skeleton_text(skeleton: Skeleton, target: str) -> str:
    """``skeleton`` as a file of facts to be filled in: what is a question mark is refused until it is answered."""
    head = f"# Facts about {skeleton.entry} for {target}: put an answer for each question mark, and say why it holds.\n"
    parts = [head]
    if skeleton.stopped:
        parts.append(f"# Not all was looked at: {skeleton.stopped}\n")
    shown = set[tuple[str, ...]]()
    for one in skeleton.missing:
        about = [f"# {one.title}", *(f"#     {line}" for line in (one.line, *one.code) if line)]
        source = one.source if one.source not in shown else ()
        shown.add(one.source)
        excerpt = [f"{EXCERPT}{line}".rstrip() for line in source]
        parts.append("\n".join([*about, *excerpt, *_asked_lines(one)]) + "\n")
    if skeleton.candidates:
        parts.append("# What would help; take away the # where it is true.\n")
    parts += [
        "\n".join([f"# {one.effect}", *(f"# {line}" for line in one.lines)]) + "\n" for one in skeleton.candidates
    ]
    if not skeleton.missing and not skeleton.stopped:
        parts.append("# Nothing is missing.\n")
    return "\n".join(parts)


def _asked_lines(fact: OpenFact) -> Iterator[str]:
    """The lines of its table. A total is a comment in there, so that without its # it is of this loop."""
    for line in fact.lines:
        yield line
        if line == ASKED and fact.total:
            yield f"# It is entered more than once; all rounds in one call, beside max or in its place: {fact.total}"
            yield "# " + line.replace("max", "total")
