# SPDX-License-Identifier: 0BSD
"""Bounds of loops that people tell: does the fact or the pragma say that number, and does it speak of that loop."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from wcet_probe.certificate.facts.asserted import (
    Asserted,
    Extent,
    Fact,
    are_told_apart,
    loop_behind,
    loop_extent,
    loops_outside,
    pragma_at,
)
from wcet_probe.certificate.facts.bodies import Counted
from wcet_probe.certificate.facts.iterations import iterations_of_rounds
from wcet_probe.certificate.facts.sums import Sums
from wcet_probe.certificate.kernel.loops import Json
from wcet_probe.certificate.kernel.records import Graph, demand, existing
from wcet_probe.model.image import Image

_IN_ALL = (
    (
        re.compile(r", (?P<called>\w+) is called at most (?P<most>[0-9,]+) times by the source and its pragmas$"),
        "that each round of the loop {name} calls {called}, in all {most} times",
    ),
    (
        re.compile(r"^the rounds of the loop that it bounds are iterations of .+ allow (?P<most>[0-9,]+)$"),
        "that the rounds of the loop {name} are iterations of several loops, {most} in all",
    ),
)
_DIVIDED = re.compile(r"\((.+?)( \+ 1)?\) // ([0-9]+)")
"""A count of a source loop, divided by the iterations that a round of the binary loop is."""


@dataclass(slots=True)
class AssertedLoops:
    """The loops of one graph whose bounds are told.

    Attributes:
        image: the binary.
        graph: of the certificate.
        asserted: the facts.
        parameters: those that they speak of.
        sums: knows the lines of each loop.
        listed: the statements of the assumptions, by id.
        used: the assumptions that were used.
        counted: by header, the loops whose iterations a pragma counts, each of which is a round.
        open: what is not checked, for people.
    """

    image: Image
    graph: Graph
    asserted: Asserted
    parameters: Mapping[str, int]
    sums: Sums
    listed: Mapping[str, str]
    used: dict[str, None] = field(default_factory=dict)
    counted: dict[str, Counted] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)

    def check(self, name: str, loop: Json, where: object, header: str) -> None:
        """The bound of the loop ``name`` is that of the fact at the place that the result names.

        Args:
            name: of the loop.
            loop: its derivation.
            where: file and line.
            header: its node.

        Raises:
            VerificationError: it is not.
        """
        if loop["origin"] == "pragma":
            self._pragma(name, loop, where, header)
            return
        missing = f"no fact stands at {where}, which the loop {name} rests on"
        fact = existing(self.asserted.at(str(where)), missing)
        demand(fact.kind == "loop", missing)
        said = {fact.expression("max"), fact.expression("total")} - {None}
        extent = loop_extent(self.asserted, fact) if fact.content.get("offset") is None else None
        own = self._undivided(loop, where, said, extent, header)
        demand(own in said, f"the fact at {where} does not say {loop['expression']} of the loop {name}")
        demand(dict(loop["parameters"]) == self.parameters, f"the loop {name} is bounded with other parameters")
        self._check_binding(name, fact, loop, header)
        self.used[f"fact {where}"] = None

    def _pragma(self, name: str, loop: Json, where: object, header: str) -> None:
        """A pragma stands in a source, before the loop that it bounds."""
        file, _, line = str(where).rpartition(":")
        self.used[f"pragma {where}"] = None
        if file not in self.asserted.by_line:
            self.open.append(f"that the pragma at {where} bounds the loop {name}: no source")
            return
        for pattern, words in _IN_ALL:  # pragmas of several loops make such a number; only the result says so
            told = pattern.search(self.listed.get(f"rounds {where}", ""))
            if told is not None and told["most"].replace(",", "") == str(loop["expression"]):
                self.used[f"rounds {where}"] = None
                self.open.append(words.format(name=name, **told.groupdict()))
                return
        most = pragma_at(self.asserted, str(where))
        extent = existing(loop_behind(self.asserted, file, int(line)), f"no loop stands behind the pragma at {where}")
        own = self._undivided(loop, where, {most}, extent, header)
        demand(most is not None and own == most, f"no pragma at {where} bounds the loop {name} so")
        before = len(self.open)
        self._check_extent(name, f"the pragma at {where}", extent, loop, header)
        if most is not None and len(self.open) == before and extent.has_test and loop["expression"] == most:
            self.counted[header] = Counted(str(where), extent, int(most))

    def _undivided(
        self, loop: Json, where: object, said: Collection[str | None], extent: Extent | None, header: str
    ) -> str:
        """The count of the source loop, of which a round is several iterations: by a variable that counts them."""
        expression = str(loop["expression"])
        found = _DIVIDED.fullmatch(expression)
        if expression in said or found is None:
            return expression
        said_so = f" is {found[3]} iterations of " in self.listed.get(f"rounds {where}", "")
        demand(said_so, f"no assumption says that a round of the loop {loop['loop']} is {found[3]} iterations")
        self.used[f"rounds {where}"] = None
        least = 1
        if extent is not None and not found[2]:
            sums, record = self.sums, self.sums.loops[header]
            least = iterations_of_rounds(sums.covered, record, extent, self.asserted, sums.variables)
        if least < int(found[3]):
            # Only the result says so: of a number that its author makes up, each bound would follow.
            self.open.append(f"that a round of the loop {loop['loop']} is {found[3]} iterations")
        return found[1]

    def _check_binding(self, name: str, fact: Fact, loop: Json, header: str) -> None:
        """The fact speaks of this loop: by its offset, or by lines of the source loop that it names."""
        function, offset = str(fact.content.get("function")), fact.content.get("offset")
        address, _ = self.graph.nodes[header]
        if offset is not None:
            symbol = self.image.symbols.get(function)
            same = symbol is not None and symbol.address + int(offset) == address
            demand(same, f"the fact at {fact.where} speaks of another loop than {name}")
            return
        extent = loop_extent(self.asserted, fact)
        if extent is None:
            self.open.append(f"that the fact at {fact.where} speaks of the loop {name}: no source")
            return
        self._check_extent(name, f"the fact at {fact.where}", extent, loop, header)

    def _check_extent(self, name: str, asserted: str, extent: Extent, loop: Json, header: str) -> None:
        """A loop has code of the source loop that is told of, and may test once more than that runs.

        Where it has code of another as well that is not within that one, the one that is told of may be unrolled in it.
        Where it only has code of lines that loops within share, of a macro or on one line, it may be one of these.
        """
        lines = self.sums.lines[header]
        demand(any(map(extent.owns, lines)), f"{asserted} speaks of another loop than {name}")
        others = loops_outside(self.asserted, extent, lines)
        if others:
            of = f"{others[0].file}:{others[0].first_line}"
            self.open.append(f"that {asserted} speaks of the loop {name}, which has code of the loop at {of} too")
        if not are_told_apart(self.asserted, extent, lines):
            self.open.append(f"that {asserted} speaks of the loop {name}, and not of one within it on the same line")
        demand(loop["offset"] or not extent.has_test, f"the loop {name} tests once more than {asserted} counts")
