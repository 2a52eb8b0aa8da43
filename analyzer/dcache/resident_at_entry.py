"""Lines that are in the cache when a scope begins, by another name, and are not evicted before the scope is over.

A loop that walks a list loads the address of the next node, and reads the node; in the next round this is the node, by
its new name. Of its accesses there may be one that finds it in the cache on this way, but not on the way into the loop:
so nothing is known of it where the two ways meet. It misses in those scopes only that begin on the latter.

Words: scope, symbolic cache block, must analysis (docs/explanation/glossary.md).

*Soundness:* a line that must be in the cache before an edge is in it behind the edge, by whatever name. From there on
it ages as lines in *must* do (`younger_sets`), apart from what is known on other ways: where these meet, something
is claimed only of the scopes that began with the line in the cache.

On the back edge (from point 3 to point 2) the line of the node is in the cache, and in the next round it is that of the
node before, group 1; the scope of that name begins with it in the cache, if it begins there:

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
>>> resident = resident_lines(turn.values, turn.named, turn.analysis)
>>> [(tuple(line), [(edge.source, edge.target) for edge in edges]) for line, edges in resident.items()]
[((1, 0), [(3, 2)])]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wcet_probe.analyzer.dcache.analysis import RelationalAnalysis
from wcet_probe.analyzer.dcache.symbolic_blocks import SymbolicBlock
from wcet_probe.analyzer.dcache.younger_sets import NOTHING, LineAccess, RelationalCache, YoungerSet, united
from wcet_probe.analyzer.domains.lattice import Joined
from wcet_probe.analyzer.graph.fixpoint import least
from wcet_probe.analyzer.graph.supergraph import Edge
from wcet_probe.analyzer.values.result import Values

_Resident = dict[SymbolicBlock, YoungerSet | None]
"""Of lines that were in the cache when their scope began; None for those that may have been evicted since."""


def resident_lines(
    values: Values, accesses: Mapping[int, Sequence[LineAccess]], analysis: RelationalAnalysis
) -> Mapping[SymbolicBlock, frozenset[Edge]]:
    """By line, the edges behind which a scope of its group begins in which no access to it fills.

    Args:
        values: points and edges.
        accesses: of each point, in order.
        analysis: what must be in the cache.

    *Soundness:* as said of the module.
    """
    begun = {
        edge: {line: younger for line, younger in lines.items() if line.group in analysis.substitution[edge].killed}
        for edge, lines in analysis.substituted.items()
    }
    return at_edges(values, accesses, analysis, begun)


def at_edges(
    values: Values,
    accesses: Mapping[int, Sequence[LineAccess]],
    analysis: RelationalAnalysis,
    begun: Mapping[Edge, Mapping[SymbolicBlock, YoungerSet]],
    filled_ways: int | None = None,
) -> Mapping[SymbolicBlock, frozenset[Edge]]:
    """By line, the edges behind which it is ``begun``, if it is not evicted in the scope before an access needs it.

    These are the accesses that fill; with ``filled_ways``, those that do not, in a first-in first-out set of so many.

    *Soundness:* as said of the module; an access that may find the line evicted speaks against all such edges.
    """
    cache, is_allocated = analysis.cache, filled_ways is not None
    ways = cache.must_ways if filled_ways is None else filled_ways

    def behind(point: int, resident: _Resident) -> _Resident:
        for access in accesses.get(point, ()):
            resident = _touched(resident, access, cache, ways, is_kept=is_allocated)
        return resident

    def along(edge: Edge, resident: _Resident) -> _Resident:
        return {**cache.in_scope(resident, analysis.substitution[edge], ways), **begun[edge]}

    evicted: set[SymbolicBlock] = set()
    nothing: _Resident = {}
    for point, entering in least(values.order, Joined(united), {0: nothing}, behind, along).items():
        resident = entering
        for access in accesses.get(point, ()):
            if access.fills is not is_allocated:
                evicted |= {line for line, younger in resident.items() if line == access.line and younger is None}
            resident = _touched(resident, access, cache, ways, is_kept=is_allocated)
    found: dict[SymbolicBlock, set[Edge]] = {}
    for edge, lines in begun.items():
        for line in lines.keys() - evicted:
            found.setdefault(line, set()).add(edge)
    return {line: frozenset(edges) for line, edges in found.items()}


def _touched(resident: _Resident, access: LineAccess, cache: RelationalCache, ways: int, *, is_kept: bool) -> _Resident:
    """What is known behind ``access``; a line that it finds in the cache is the youngest, unless it ``is_kept``."""
    if not cache.ages(access):
        return resident
    aged = cache.aged(resident, access, ways)
    if access.line is not None and access.is_certain and aged.get(access.line) is not None and not is_kept:
        aged[access.line] = NOTHING
    return aged
