"""Facts and pragmas, bound to the loops and addresses of an image: hashes compared, expressions evaluated.

Words: flow fact, line table (docs/explanation/glossary.md).
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from wcet_probe.analyzer.facts.expressions import Expression, evaluate, symbols
from wcet_probe.analyzer.facts.joined_loops import JoinedLoops, joined_loops
from wcet_probe.analyzer.facts.language import Facts, LoopFact, Place
from wcet_probe.analyzer.facts.round_lines import may_be_entered_in_its_test
from wcet_probe.analyzer.facts.source_index import SourceIndex
from wcet_probe.analyzer.facts.source_match import LoopSite, ancestors, match_loops
from wcet_probe.analyzer.facts.source_parts import SourceLoop
from wcet_probe.build.image import require_symbol
from wcet_probe.errors import UsageError, unknown_name
from wcet_probe.model.image import Image
from wcet_probe.model.target import MemoryRange


@dataclass(frozen=True, slots=True)
class Analysed:
    """The part of an image that is analysed.

    Attributes:
        image: the binary.
        functions: the binary functions that the analysed entry can reach.
        sites: all loops of these functions.
        cut: addresses of the instructions that were taken out, see `never_executed`.
    """

    image: Image
    functions: Collection[str]
    sites: Sequence[LoopSite]
    cut: Collection[int] = ()


@dataclass(frozen=True, slots=True)
class BoundFact:
    """What a fact or pragma says of one binary loop. Where several speak of a loop, each of them holds.

    Attributes:
        function: binary function of the loop.
        header_address: the binary loop.
        source: the source loop, or None for a fact by offset.
        origin: where the claim was made.
        where: file and line of the claim.
        because: why it holds; empty for a pragma.
        maximum, total: the expressions as they are written, or empty.
        max_header: most executions of the header for each entry, or None.
        offset: how many of them come on top of the executions of the body.
        total: most executions of the body in one call of the analysed entry, or for each entry of ``within``; or None.
        total_for_each_entry: how many executions of the header come on top of that for each entry of this loop.
        within: headers of the binary loops for whose entries from outside ``total`` is counted, or empty.
        rounds: of a loop that several of the source have become, in words, what its rounds are; else empty.
    """

    function: str
    header_address: int
    source: SourceLoop | None
    origin: Literal["fact", "pragma"]
    where: str
    because: str
    max_expression: str
    max_header: int | None
    offset: int = 0
    total_expression: str = ""
    total: int | None = None
    total_for_each_entry: int = 0
    within: tuple[int, ...] = ()
    rounds: str = ""


def parameter_values(facts: Facts, given: Mapping[str, int], image: Image) -> Mapping[str, int]:
    """The parameters of the run and those that the facts declare, in the order of the file.

    Raises:
        UsageError: a parameter is declared twice, or its expression has no value or names no symbol of ``image``.

    Soundness: exact.
    """
    values = dict(given)
    for name, expression in facts.parameters.items():
        if name in values:
            raise UsageError(f"{facts.file}: [parameters] key {name}: is a parameter of the run; choose another name.")
        where = f"{facts.file}: [parameters] key {name}"
        try:
            places = {one: require_symbol(image, one).address for one in sorted(symbols(expression))}
            values[name] = evaluate(expression, values, places)
        except UsageError as error:
            raise UsageError(f"{where}: {error}") from error
    return values


def bound_facts(
    facts: Facts,
    index: SourceIndex,
    analysed: Analysed,
    parameters: Mapping[str, int],
) -> tuple[BoundFact, ...]:
    """What the facts and the pragmas say of each site.

    Parameters:
        facts: of the image's sources and functions.
        index: its sources.
        analysed: the code in question.
        parameters: values by name, see `parameter_values`.

    Raises:
        UsageError: a fact speaks of nothing, its function has changed, or its expression has no value.

    Soundness: a source loop whose body runs M times runs the header of its binary loop at most M times where there is
    no test in front of it, else M + 1 times, however the compiler tests it: it may fold the body into the test. Where
    a test of several parts may be entered in its midst it is once more. At an offset the numbers are the header's own.
    That a loop which was matched is the right one is an assumption, see `match_loop`. Of loops that are several of the
    source see `joined_loops`.
    """
    matches = match_loops(analysed.sites, index)
    found: list[BoundFact] = []
    for fact in facts.loops:
        found += _bound(fact, index, analysed, matches, parameters)
    for site in analysed.sites:
        loop = matches[site.header_address]
        if loop is not None and loop.pragma is not None:
            found.append(_of_pragma(site, loop, loop.pragma))
    joined = joined_loops(analysed.sites, index, matches)
    found += [one for site in analysed.sites for one in _of_joined(site, analysed.sites, matches, joined)]
    return tuple(each for fact in found for each in _with_split(fact, analysed, matches))


def _with_split(fact: BoundFact, analysed: Analysed, matches: Mapping[int, SourceLoop | None]) -> Iterator[BoundFact]:
    """The fact; and where its loop is a part of a source loop that became nested loops, what holds for both."""
    yield fact
    outermost = _outermost(fact.header_address, analysed.sites, matches)
    if fact.max_header is not None and fact.source is not None and outermost != fact.header_address:
        yield replace(
            fact,
            max_expression="",
            max_header=None,
            total_expression=fact.max_expression,
            total=fact.max_header,
            total_for_each_entry=0,
            within=(outermost,),
        )


def _outermost(address: int, sites: Sequence[LoopSite], matches: Mapping[int, SourceLoop | None]) -> int:
    """The header of the outermost binary loop around ``address`` that comes from the same source loop."""
    outers = {site.header_address: site.outer for site in sites}
    source = matches[address]
    same = [each for each in ancestors(address, outers) if source is not None and matches[each] == source]
    return same[-1] if same else address


def check_place(
    where: str, place: Place, sha256: str, index: SourceIndex, analysed: Analysed
) -> tuple[MemoryRange, ...]:
    """The code that a fact at ``where`` speaks of, after its hash was compared; empty where none of it is analysed.

    Of a line or a named point it is all code of the line in the analysed functions, of an offset the byte there, of
    a function without any of these its code, inlined or not.

    Raises:
        UsageError: the place does not exist, or the function has changed.

    Soundness: the line table decides which code belongs to a line.
    """
    image, functions = analysed.image, analysed.functions
    compare_hash(where, place, sha256, index, image)
    if place.offset is not None:
        symbol = require_symbol(image, place.function)
        return (MemoryRange(symbol.address + place.offset, 1),) if place.function in functions else ()
    source = index.function(place.function, place.file, place.line)
    lines = range(source.first_line, source.last_line + 1)
    if place.name is not None:
        lines = range(_point(where, place, index), _point(where, place, index) + 1)
    elif place.line is not None:
        if place.line not in lines:
            raise UsageError(
                f"{where}: {place} lies outside of it (lines {lines[0]} to {lines[-1]}); correct the line."
            )
        lines = range(place.line, place.line + 1)
    return tuple(code for (file, line), code in _rows(image, functions) if file == source.file and line in lines)


def code_sha256(image: Image, function: str) -> str:
    """Hex digest of the code bytes of a binary function.

    Raises:
        UsageError: there is no such function, or the symbol table does not tell its size.

    Soundness: exact.
    """
    symbol = require_symbol(image, function)
    for segment in image.segments:
        start = symbol.address - segment.address
        code = segment.data[start : start + symbol.size_bytes] if start >= 0 else b""
        if code and len(code) == symbol.size_bytes:
            return hashlib.sha256(code).hexdigest()
    raise UsageError(f"function {function!r} of the image has no code or no size; name the source function instead.")


def is_analysed(place: Place, index: SourceIndex, analysed: Analysed) -> bool:
    """Whether any code of the function of ``place`` is analysed, inlined or not.

    Raises:
        UsageError: there is no such function.

    Soundness: nothing rests on it; it tells whether a fact that speaks of no code is idle, or of something else.
    """
    if place.offset is not None:
        return place.function in analysed.functions
    source = index.function(place.function, place.file, place.line)
    lines = range(source.first_line, source.last_line + 1)
    return any(file == source.file and line in lines for (file, line), _ in _rows(analysed.image, analysed.functions))


def has_code(loop: SourceLoop, image: Image, functions: Collection[str]) -> bool:
    """Whether a line of ``loop`` has code in one of ``functions``, which may be a copy of it."""
    return any(file == loop.file and line in loop for (file, line), _ in _rows(image, functions))


def _rows(image: Image, functions: Collection[str]) -> Iterator[tuple[tuple[str, int], MemoryRange]]:
    """File and line, and the code, of each row of the line table within ``functions``."""
    table = image.lines
    for first, last, file, line in zip(table.addresses, table.addresses[1:], table.files, table.lines, strict=False):
        symbol = image.function_at(first)
        if line and symbol is not None and symbol.name in functions:
            yield (file, line), MemoryRange(first, last - first)


def _value(where: str, expression: Expression, parameters: Mapping[str, int]) -> int:
    try:
        return evaluate(expression, parameters)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from error


def _count(fact: LoopFact, key: str, expression: Expression | None, parameters: Mapping[str, int]) -> int | None:
    if expression is None:
        return None
    value = _value(f"{fact.where}: [[loop]] key {key}", expression, parameters)
    if value < 0:
        raise UsageError(f"{fact.where}: [[loop]] key {key}: {expression.text!r} is {value}; a count is at least 0.")
    return value


def compare_hash(where: str, place: Place, sha256: str, index: SourceIndex, image: Image) -> None:
    """Refuse a fact at ``where`` about a function that is not the one it was written for.

    Raises:
        UsageError: the function does not exist, or its hash is not ``sha256``; the message tells the hash.

    Soundness: exact; what the function uses is not part of it.
    """
    try:
        if place.offset is None:
            current = index.function(place.function, place.file, place.line).sha256
        else:
            current = code_sha256(image, place.function)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from error
    if not sha256:
        raise UsageError(f'{where}: the fact has no hash of {place.function}; add sha256 = "{current}".')
    if sha256 != current:
        raise UsageError(
            f"{where}: {place.function} has changed since the fact was written (its hash was {sha256}, now it is "
            f"{current}); review the fact and put the new hash in."
        )


def _point(where: str, place: Place, index: SourceIndex) -> int:
    points = {point.name: point.line for point in index.points(place.function, place.file)}
    if place.name not in points:
        known = f"{unknown_name('point', str(place.name), points)}" if points else "it has no named points."
        raise UsageError(f"{where}: {place.function}: {known}")
    return points[place.name]


def source_loop(where: str, place: Place, index: SourceIndex) -> SourceLoop:
    """The one source loop that ``place`` names by label or line, for a fact at ``where``.

    Raises:
        UsageError: there is none, or more than one.
    """
    loops = index.loops(place.function, place.file)
    if place.line is not None:
        found = [loop for loop in loops if place.line in loop.header_lines]
    else:
        found = [loop for loop in loops if loop.label == place.name]
    if len(found) == 1:
        return found[0]
    what = f"line {place.line}" if place.line is not None else f"label {place.name!r}"
    known = ", ".join(f"{loop.first_line}{f' ({loop.label})' if loop.label else ''}" for loop in loops) or "none"
    number = "no loop" if not found else f"{len(found)} loops"
    raise UsageError(f"{where}: {place.function} has {number} at {what}; its loops are at lines: {known}.")


def _bound(
    fact: LoopFact,
    index: SourceIndex,
    analysed: Analysed,
    matches: Mapping[int, SourceLoop | None],
    parameters: Mapping[str, int],
) -> Iterator[BoundFact]:
    """What ``fact`` says of the sites that it speaks of."""
    place, sites = fact.place, analysed.sites
    compare_hash(fact.where, place, fact.sha256, index, analysed.image)
    loop = None if place.offset is not None else source_loop(fact.where, place, index)
    if loop is None:
        found = [site for site in sites if (site.function, site.offset) == (place.function, place.offset)]
        is_analysed = place.function in analysed.functions
    else:
        found = [site for site in sites if matches[site.header_address] == loop]
        is_analysed = has_code(loop, analysed.image, analysed.functions)
    if not found and is_analysed and not fact.optional:
        offsets = ", ".join(f"{site.function}+{site.offset:#x}" for site in sites) or "none"
        raise UsageError(
            f"{fact.where}: no loop of the binary comes from {loop or place}; name it by offset, remove the fact, "
            f"or say optional = true if the compiler may remove the loop. The loops are: {offsets}."
        )
    maximum = _count(fact, "max", fact.maximum, parameters)
    minimum = _count(fact, "min", fact.minimum, parameters)
    total = _count(fact, "total", fact.total, parameters)
    if maximum is not None and minimum is not None and minimum > maximum:
        raise UsageError(f"{fact.where}: [[loop]] key min: {minimum} is above max, {maximum}; correct one of them.")
    within = _within(fact, index, analysed.sites, matches) if found and fact.within else ()
    for site in found:
        more = int(loop is not None and loop.test_first)
        outermost = _outermost(site.header_address, sites, matches)
        partly = _tests_partly(site, loop)
        yield BoundFact(
            function=site.function,
            header_address=site.header_address,
            source=loop,
            origin="fact",
            where=fact.where,
            because=fact.because,
            max_expression=str(fact.maximum or ""),
            max_header=None if maximum is None else maximum + more + partly,
            offset=more + partly,
            total_expression=str(fact.total or ""),
            total=total,
            total_for_each_entry=0 if total is None else max(more, int(outermost != site.header_address)) + partly,
            within=within,
        )


def _tests_partly(site: LoopSite, loop: SourceLoop | None) -> int:
    """How many executions of the header an entry of the binary loop may have besides, with a part of the test only."""
    if loop is None or site.ways is None or site.inlining is None:
        return 0
    return int(may_be_entered_in_its_test(loop, site.ways, site.inlining))


def _within(
    fact: LoopFact, index: SourceIndex, sites: Sequence[LoopSite], matches: Mapping[int, SourceLoop | None]
) -> tuple[int, ...]:
    function, _, label = str(fact.within).rpartition(":")
    place = Place(function or fact.place.function, None if function else fact.place.file, label)
    outer = source_loop(fact.where, place, index)
    found = [address for address, loop in matches.items() if loop == outer]
    if not found:
        raise UsageError(f"{fact.where}: no loop of the binary comes from {outer}; leave out within, or name another.")
    return tuple(sorted({_outermost(address, sites, matches) for address in found}))


def _of_pragma(site: LoopSite, loop: SourceLoop, pragma: tuple[int, int]) -> BoundFact:
    least, most = pragma
    partly = _tests_partly(site, loop)
    where = f"{loop.file}:{loop.pragma_line}"
    if least > most:
        raise UsageError(f"{where}: the pragma's min, {least}, is above its max, {most}; correct one of them.")
    return BoundFact(
        function=site.function,
        header_address=site.header_address,
        source=loop,
        origin="pragma",
        where=where,
        because="",
        max_expression=str(most),
        offset=int(loop.test_first) + partly,
        # Whether the round that a `break` ends is counted, pragmas do not say.
        max_header=most + int(loop.test_first or loop.left_inside) + partly,
    )


def _of_joined(
    site: LoopSite,
    sites: Sequence[LoopSite],
    matches: Mapping[int, SourceLoop | None],
    joined: Mapping[int, JoinedLoops],
) -> Iterator[BoundFact]:
    """What the pragmas of all source loops say of the binary loop that they have become, and of one in that."""
    address = site.header_address
    outers = {one.header_address: one.outer for one in sites}
    same = (one for at in (address, *ancestors(address, outers)) if (one := joined.get(at)) is not None)
    found = joined.get(address) or next((one for one in same if one.around == matches[address]), None)
    if found is None:
        return
    lines = ", ".join(str(loop.pragma_line) for loop in found.loops)
    fact = BoundFact(
        function=site.function,
        header_address=address,
        source=None,
        origin="pragma",
        where=f"{found.around.file}:{found.around.pragma_line}",
        because="",
        max_expression=str(found.most),
        max_header=found.most,
        rounds=(
            f"the rounds of the loop that it bounds are iterations of {found.around} and of the loops inside, of which "
            f"the pragmas at lines {lines} allow {found.most:,}"
        ),
    )
    if address in joined:
        yield fact
    if found.within != address:
        total = replace(fact, max_expression="", max_header=None, total_expression=str(found.most), total=found.most)
        yield replace(total, within=(found.within,))
