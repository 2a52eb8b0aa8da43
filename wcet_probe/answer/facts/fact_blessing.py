"""Bringing the hashes of a file of facts up to date, after showing what has changed of the functions they bind."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from wcet_probe.analyzer.facts.binding import code_sha256
from wcet_probe.analyzer.facts.language import CallsFact, Facts, InfeasibleFact, LoopFact, Place, RecursionFact
from wcet_probe.analyzer.facts.source_index import SourceIndex, index_sources
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.answer.facts.fact_skeleton import EXCERPT
from wcet_probe.errors import UsageError

_TABLE = re.compile(r"\s*\[\[")


@dataclass(frozen=True, slots=True)
class Change:
    """A function that is not the one a fact was written for.

    Attributes:
        where: file and line of the fact.
        function: its name.
        old, new: hashes; ``old`` is empty where there was none.
        difference: lines of a unified difference to the text beside the fact; the whole text where there is none.
    """

    where: str
    function: str
    old: str
    new: str
    difference: tuple[str, ...]


def blessed(asked: BoundRequest, text: str) -> tuple[str, tuple[Change, ...]]:
    """The ``text`` of the one file that the facts of ``asked`` are from, with the hashes of today; and what changed.

    Raises:
        UsageError: a function that a fact speaks of is not there.
    """
    index = index_sources(asked.sources)
    lines, changes = text.splitlines(), []
    for where, place, old in dict.fromkeys(_bound(asked.facts)):
        new, source = _today(asked, index, where, place)
        if new == old:
            continue
        at = _table_line(lines, where, text)
        first, last = _excerpt(lines, at)
        before = [line[len(EXCERPT) :] if line.startswith(EXCERPT) else "" for line in lines[first:last]]
        difference = difflib.unified_diff(before, list(source), "when the fact was written", "now", lineterm="")
        changes.append(Change(where, place.function, old, new, tuple(difference)))
    for change in reversed(changes):
        lines = _rewritten(lines, change, text, asked, index)
    return "\n".join(lines) + "\n", tuple(changes)


def _bound(facts: Facts) -> Iterator[tuple[str, Place, str]]:
    """Each fact's place and hash."""
    placed: list[LoopFact | RecursionFact | CallsFact | InfeasibleFact] = [*facts.loops, *facts.recursions]
    placed += [*facts.calls, *facts.infeasible]
    for fact in placed:
        yield fact.where, fact.place, fact.sha256
    for flow in facts.flows:
        for term in flow.terms:
            yield flow.where, term.place, term.sha256
    for pointer in facts.pointers:
        for name, sha256 in pointer.functions.items():
            yield pointer.where, Place(name), sha256


def _today(asked: BoundRequest, index: SourceIndex, where: str, place: Place) -> tuple[str, tuple[str, ...]]:
    """The hash of the function as it is, and its text, if it is one of a source."""
    try:
        if place.offset is not None:
            return code_sha256(asked.image, place.function), ()
        function = index.function(place.function, place.file, place.line)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from error
    text = asked.sources[function.file].splitlines()[function.first_line - 1 : function.last_line]
    return function.sha256, tuple(f"{EXCERPT}{line}".rstrip()[len(EXCERPT) :] for line in text)


def _table_line(lines: list[str], where: str, text: str) -> int:
    """The index of the line that begins the fact's table; lines before it may have been added since it was read."""
    number = int(where.rpartition(":")[2])
    head = text.splitlines()[number - 1]
    before = sum(_TABLE.match(line) is not None for line in text.splitlines()[:number])
    tables = [at for at, line in enumerate(lines) if _TABLE.match(line)]
    if not _TABLE.match(head) or before > len(tables):
        raise UsageError(f"{where}: no table begins there; put each [[…]] on a line of its own.")
    return tables[before - 1]


def _excerpt(lines: list[str], at: int) -> tuple[int, int]:
    """First line and end of the function's text before the table at ``at``."""
    first = at
    while first and (lines[first - 1].startswith(EXCERPT) or lines[first - 1] == EXCERPT.rstrip()):
        first -= 1
    return first, at


def _rewritten(lines: list[str], change: Change, text: str, asked: BoundRequest, index: SourceIndex) -> list[str]:
    at = _table_line(lines, change.where, text)
    first, _ = _excerpt(lines, at)
    end = next((row for row in range(at + 1, len(lines)) if _TABLE.match(lines[row])), len(lines))
    body = lines[at:end]
    if change.old:
        body = [line.replace(change.old, change.new) for line in body]
    else:
        place = next(row for row, line in enumerate(body) if line.lstrip().startswith("function"))
        body.insert(place + 1, f'sha256 = "{change.new}"')
    excerpt = lines[first:at]
    if excerpt:
        _, source = _today(asked, index, change.where, Place(change.function))
        excerpt = [f"{EXCERPT}{line}".rstrip() for line in source]
    return [*lines[:first], *excerpt, *body, *lines[end:]]
