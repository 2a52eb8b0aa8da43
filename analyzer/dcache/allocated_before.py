"""Lines that are in the cache when a scope begins if they were filled in the one before, by another name.

A loop that puts one node before another writes to the one that it put in the round before. With first-in first-out, a
line that was accessed is in the cache until as many others were filled as there are ways only if the access missed. So
a store that fills nothing is a single write only if the line was not filled in the round before; there it then cost no
fill.

Words: scope, symbolic cache block, line (docs/explanation/glossary.md).

*Soundness:* as said of `younger_sets` of the persistence of first-in first-out. Of a line it is known how many
groups were filled since the first access of the scope that may have filled it; if one of the accesses by that name
missed, no more were filled since. Only lines that were surely accessed count, in a scope that ends at the edge, so that
there is one such scope for each that begins. It has its other name behind an edge as said of `dcache.analysis`, and
ages on.

The store to the node before is a single write only where its line was not filled in the round before, as group 0:

>>> turn = example('''
... struct node { struct node *next, *last; };
... void f(struct node *n) {
...     struct node *before = 0;
...     while (n) {
...         struct node *next = n->next;
...         n->next = before;
...         if (before) before->last = n;
...         before = n; n = next;
...     }
... }''', spec="d:sets=16,ways=4,line=32,policy=fifo,allocate=no")
>>> [(tuple(line), [tuple(one.before) for one in edges.values()])
...  for line, edges in allocated_lines(turn.values, turn.named, turn.analysis).items()]
[((1, 0), [(0, 0)])]
>>> [(one.constant, one.auxiliaries) for one in turn.data.constraints if one.name.endswith("filled")][0]
(0, (('write:1.0@4', 1), ('miss:0.0', 1)))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from wcet_probe.analyzer.dcache.analysis import RelationalAnalysis
from wcet_probe.analyzer.dcache.resident_at_entry import at_edges
from wcet_probe.analyzer.dcache.symbolic_blocks import SymbolicBlock
from wcet_probe.analyzer.dcache.younger_sets import LineAccess, YoungerSet
from wcet_probe.analyzer.domains.lattice import Joined
from wcet_probe.analyzer.graph.fixpoint import least
from wcet_probe.analyzer.graph.supergraph import Edge
from wcet_probe.analyzer.values.result import Values
from wcet_probe.model.target import Replacement

_Sure = Mapping[SymbolicBlock, bool]
"""Lines that were surely accessed in their scope, and whether they were stored to behind all accesses that fill."""


class Allocated(NamedTuple):
    """The name that a line had before its scope began, and whether it is modified if it was filled then."""

    before: SymbolicBlock
    is_modified: bool


def allocated_lines(
    values: Values, accesses: Mapping[int, Sequence[LineAccess]], analysis: RelationalAnalysis
) -> Mapping[SymbolicBlock, Mapping[Edge, Allocated]]:
    """By line, the edges behind which a scope of its group begins in which stores find it if it was filled before.

    Args:
        values: points and edges.
        accesses: of each point, in order.
        analysis: what edges do to names.

    *Soundness:* as said of the module.
    """
    cache = analysis.cache
    if cache.config.replacement is not Replacement.FIFO:
        return {}

    def behind(point: int, sure: _Sure) -> _Sure:
        for access in accesses.get(point, ()):
            sure = _touched(sure, access)
        return sure

    def along(edge: Edge, sure: _Sure) -> _Sure:
        killed = analysis.substitution[edge].killed
        return {line: is_modified for line, is_modified in sure.items() if line.group not in killed}

    nothing: _Sure = {}
    states = least(values.order, Joined(_both), {0: nothing}, behind, along)
    found: dict[SymbolicBlock, dict[Edge, Allocated]] = {}
    for edge in analysis.substitution:
        if edge.source not in states:
            continue
        lines = _begun(edge, accesses.get(edge.source, ()), behind(edge.source, states[edge.source]), analysis)
        if lines:
            # Of each edge apart: what evicts the line of one scope does not speak against the others.
            known = {line: younger for line, (_, younger) in lines.items()}
            only = {one: known if one == edge else {} for one in analysis.substitution}
            for line in at_edges(values, accesses, analysis, only, cache.scope_ways):
                found.setdefault(line, {})[edge] = lines[line][0]
    return found


def _begun(
    edge: Edge, accesses: Sequence[LineAccess], sure: _Sure, analysis: RelationalAnalysis
) -> dict[SymbolicBlock, tuple[Allocated, YoungerSet]]:
    """Of the lines ``sure`` whose scopes end at ``edge``, those with another name behind it, where new ones begin."""
    cache, substitution, state = analysis.cache, analysis.substitution[edge], analysis.states[edge.source]
    for access in accesses:
        state = cache.touch(state, access)
    allocated = {
        line: younger
        for line, younger in state.scope.items()
        if younger is not None and line in sure and line.group in substitution.killed
    }
    found = {}
    for line, (before, known) in analysis.passage.gained(edge, allocated).items():
        younger = cache.substituted(line, known, substitution, cache.scope_ways)
        if line.group in substitution.killed and younger is not None:
            found[line] = Allocated(before, sure[before]), younger
    return found


def _touched(sure: _Sure, access: LineAccess) -> _Sure:
    """What is known behind ``access``."""
    line, stores = access.line, access.modifies and access.is_certain
    if line is None or not (line in sure or (access.fills and access.is_certain)):
        return sure
    return {**sure, line: stores} if access.fills or stores else sure


def _both(a: _Sure, b: _Sure) -> _Sure:
    return {line: is_modified and b[line] for line, is_modified in a.items() if line in b}
