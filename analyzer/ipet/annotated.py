"""What a certificate says of caches: names of values, lines that are resident, and which misses are counted where.

The relations that the cache analysis knows are those of its terms. The checker is told less: where a node begins, that
a place holds a symbol and some bytes more. These names are found here, by executing each node as the checker does: a
value number for each class of places that hold the same but for a constant on each edge. So are the lines that are
resident, by the checker's own transfer functions. From the analysis comes only by which event each miss is counted.

*Soundness:* none is claimed. The checker tests the result, and says what it could not follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from wcet_probe.analyzer.ipet.balances import left_of
from wcet_probe.analyzer.ipet.flow_system import FlowProblem, Solution
from wcet_probe.analyzer.ipet.modified_lines import modified_lines
from wcet_probe.analyzer.ipet.shown import with_shown
from wcet_probe.analyzer.ipet.wanted import wanted_lines
from wcet_probe.certificate.annotations import Annotations
from wcet_probe.certificate.charge import node_cost
from wcet_probe.certificate.congruences import UNALIGNED, Congruence
from wcet_probe.certificate.coverage import Code, Coverage, cover
from wcet_probe.certificate.machine import Place
from wcet_probe.certificate.misses import FETCH, Caches, LinearConstraint, Side, caches_of, paying
from wcet_probe.certificate.numbers import TOP, Value
from wcet_probe.certificate.records import Edge, Graph
from wcet_probe.certificate.residents import Must, joined_must, must_holds
from wcet_probe.certificate.steps import Step
from wcet_probe.certificate.symbols import Claim, Names, Pointers, Traced, Tracer
from wcet_probe.errors import VerificationError
from wcet_probe.model.instruction import InstructionCost
from wcet_probe.model.target import Target

_MOST_ROUNDS = 12
_FRESH = "@"

Invariants = Mapping[str, Mapping[Place, Value]]


class _Numbering:
    """Symbols for values, by the places that hold them where nodes begin."""

    def __init__(
        self, code: Code, graph: Graph, invariants: Invariants, coverage: Coverage, asserted: Pointers
    ) -> None:
        self._code, self._graph, self._invariants, self._coverage, self._asserted = (
            code,
            graph,
            invariants,
            coverage,
            asserted,
        )
        self._order = _order(graph)
        self._claims: dict[str, dict[Place, Claim]] = {node: {} for node in graph.nodes}
        self._homes: dict[str, tuple[str, str, Congruence]] = {}
        self._arriving: dict[str, list[Edge]] = {node: [] for node in graph.nodes}
        for edge in graph.edges:
            if edge.name in coverage.taken:
                self._arriving[edge.target].append(edge)
        self._names: dict[tuple[str, str], str] = {}
        self._values: dict[str, dict[Place, Value]] = {}
        self._classes: dict[str, dict[str, Congruence]] = {}

    def run(self) -> Names:
        """The names, when nothing changes any more."""
        entry = self._graph.entry
        self._claims[entry] = {
            place: Claim(self._symbol("at", entry, str(place)), 0) for place in self._places(entry)
        }  # fmt: skip
        for _ in range(_MOST_ROUNDS * 4):
            before = {node: dict(claims) for node, claims in self._claims.items()}
            for node in self._order:
                self._visit(node)
            if before == self._claims:
                break
        else:
            self._claims = {node: {} for node in self._graph.nodes}
        live = _live(self._graph, self._coverage)
        self._claims = {
            node: {place: claim for place, claim in claims.items() if isinstance(place, int) or place in live[node]}
            for node, claims in self._claims.items()
        }
        self._find_classes()
        return Names(self._claims, self._kept_homes(), self._asserted)

    def _places(self, node: str) -> list[Place]:
        known = self._invariants[node]
        found: list[Place] = []
        for place in dict.fromkeys((*self._code.isa.REGISTERS, *known)):
            value = known.get(place, TOP if isinstance(place, str) else None)
            if value is not None and value.is_number and not value.is_constant:
                found.append(place)
        return found

    def _symbol(self, way: str, node: str, key: str) -> str:
        name = self._names.setdefault((f"{way} {node}", key), f"s{len(self._names)}")
        self._homes.setdefault(name, (way, node, UNALIGNED))
        return name

    def _visit(self, node: str) -> None:
        """Name what ``node`` begins with, by what arrives, and see what leaves it."""
        arriving = [edge for edge in self._arriving[node] if edge.name in self._values]
        if node != self._graph.entry and arriving:
            self._claims[node] = self._numbered(node, arriving)
        tracer = Tracer(self._code, self._graph, self._invariants, self._coverage, self._as_names())
        traced = tracer.trace(node)
        for edge in self._graph.leading[node]:
            states = traced.leaving.get(edge.name, ())
            if states and edge.name in self._coverage.taken:
                places = self._places(edge.target)
                first = {place: states[0].read(place) for place in places}
                self._values[edge.name] = {
                    place: value for place, value in first.items()
                    if value.is_constant and (value.base.startswith(_FRESH) or value.is_number)
                    and all(state.read(place) == value for state in states)
                }  # fmt: skip

    def _as_names(self) -> Names:
        return Names(self._claims, self._homes, self._asserted)

    def _numbered(self, node: str, arriving: Sequence[Edge]) -> dict[Place, Claim]:
        """A symbol for each class of places that hold the same value, but for a constant, on every edge."""
        leaders: dict[object, tuple[Place, int]] = {}
        claims: dict[Place, Claim] = {}
        for place in self._places(node):
            values = [self._values[edge.name].get(place) for edge in arriving]
            if any(value is None for value in values):
                continue
            known = [value for value in values if value is not None]
            lasting = self._lasting(node, arriving, known)
            if lasting is not None:
                claims[place] = lasting
                continue
            key = tuple((value.base, value.low - known[0].low) for value in known)
            if any(value.is_number for value in known):
                key = tuple((value.base, value.low) for value in known)
            leader, offset = leaders.setdefault(key, (place, known[0].low))
            claims[place] = Claim(self._symbol("at", node, str(leader)), known[0].low - offset)
        return claims

    def _lasting(self, node: str, arriving: Sequence[Edge], known: Sequence[Value]) -> Claim | None:
        """The symbol that a place holds on every edge, if it means the same behind them."""
        found: set[Claim] = set()
        for edge, value in zip(arriving, known, strict=True):
            base = value.base.removeprefix(_FRESH)
            if value.is_number:
                return None
            if base in self._homes:
                way, home, _ = self._homes[base]
                if (way == "at" and home == node) or (way == "behind" and home == edge.source):
                    return None
                found.add(Claim(base, value.low))
            else:
                found.add(Claim(self._symbol("behind", edge.source, base), value.low))
        return next(iter(found)) if len(found) == 1 else None

    def _find_classes(self) -> None:
        """What each symbol is known modulo: the most that holds wherever it begins anew."""
        guess: dict[str, Congruence | None] = dict.fromkeys(self._homes)
        for _ in range(_MOST_ROUNDS):
            self._homes = {
                symbol: (way, node, guess[symbol] or Congruence(1 << 12, 0))
                for symbol, (way, node, _) in self._homes.items()
            }
            new: dict[str, Congruence | None] = dict.fromkeys(self._homes)
            tracer = Tracer(self._code, self._graph, self._invariants, self._coverage, self._as_names())
            for node in self._order:
                traced = tracer.trace(node)
                for edge in self._graph.leading[node]:
                    self._meet(edge, traced, new)
            for place, (symbol, _) in self._claims[self._graph.entry].items():
                self._add(new, symbol, tracer.at_entry(place))
            if new == guess:
                break
            guess = new
        else:
            guess = dict.fromkeys(self._homes, UNALIGNED)
        self._homes = {s: (way, node, guess[s] or UNALIGNED) for s, (way, node, _) in self._homes.items()}

    def _meet(self, edge: Edge, traced: Traced, new: dict[str, Congruence | None]) -> None:
        begins = self._as_names().begins(edge)
        for place, (symbol, offset) in self._claims[edge.target].items():
            if symbol not in begins or edge.name not in self._coverage.taken:
                continue
            for state in traced.leaving.get(edge.name, ()):
                value = state.read(place)
                if value.is_number:
                    own = Congruence(1 << 12, (value.low - offset) % (1 << 12))
                else:
                    own = traced.alignments.get(value.base, UNALIGNED).moved(value.low - offset)
                self._add(new, symbol, own)

    @staticmethod
    def _add(new: dict[str, Congruence | None], symbol: str, own: Congruence) -> None:
        old = new[symbol]
        if old is not None:
            modulus = min(own.modulus, old.modulus)
            difference = (own.residue - old.residue) % modulus
            own = own.coarser(min(modulus, difference & -difference or modulus))
        new[symbol] = own

    def _kept_homes(self) -> dict[str, tuple[str, str, Congruence]]:
        used = {claim.symbol for claims in self._claims.values() for claim in claims.values()}
        return {symbol: home for symbol, home in self._homes.items() if symbol in used}


def _live(graph: Graph, coverage: Coverage) -> dict[str, set[str]]:
    """The registers that are read from where each node begins, before they are written: others need no name."""
    read: dict[str, set[str]] = {}
    written: dict[str, set[str]] = {}
    for node in graph.nodes:
        own, gone = read.setdefault(node, set()), written.setdefault(node, set())
        for one in coverage.instructions[node]:
            own |= one.reads - gone
            if one.condition == 14 and not one.in_it_block:
                gone |= one.writes | one.loaded
    arriving: dict[str, list[str]] = {node: [] for node in graph.nodes}
    for edge in graph.edges:
        arriving[edge.target].append(edge.source)
    waiting = list(graph.nodes)
    while waiting:
        node = waiting.pop()
        for source in arriving[node]:
            more = read[node] - written[source] - read[source]
            if more:
                read[source] |= more
                waiting.append(source)
    return read


def _order(graph: Graph) -> list[str]:
    """The nodes, each before its successors as far as can be."""
    seen, found = {graph.entry}, list[str]()
    stack = [(graph.entry, iter(graph.leading[graph.entry]))]
    while stack:
        node, edges = stack[-1]
        target = next((edge.target for edge in edges if edge.target not in seen), None)
        if target is None:
            found.append(node)
            stack.pop()
        else:
            seen.add(target)
            stack.append((target, iter(graph.leading[target])))
    return found[::-1]


def find_caches(
    code: Code,
    graph: Graph,
    invariants: Invariants,
    coverage: Coverage,
    *,
    target: Target,
    asserted: Pointers,
    crosses_no_line: Callable[[int], bool],
) -> Iterator[tuple[Names, Caches]]:
    """Names of values, and the accesses of the graph by them; then with what accesses have shown of names, if anything.

    Args:
        code: the image.
        graph: of the flow problem.
        invariants: of its nodes.
        coverage: of the graph, by the checker.
        target: a core with caches.
        asserted: what facts say that numbers are multiples of, if they are loaded and added to addresses.
        crosses_no_line: whether an assumption says so of the accesses of the instruction at an address.

    Raises:
        VerificationError: the names do not hold.

    *Soundness:* none is claimed.
    """
    names = _Numbering(code, graph, invariants, coverage, asserted).run()
    tracer = Tracer(code, graph, invariants, coverage, names)
    yield names, caches_of(target, graph, coverage, tracer, crosses_no_line)
    names = with_shown(code, graph, invariants, coverage, names)
    if names.shown:
        tracer = Tracer(code, graph, invariants, coverage, names)
        yield names, caches_of(target, graph, coverage, tracer, crosses_no_line)


def resident(caches: Caches, side: Side) -> dict[str, Must]:
    """The lines that must be in a cache where nodes begin: the greatest fixpoint, as the checker sees it.

    *Soundness:* none is claimed.
    """
    states: dict[str, Must] = {caches.graph.entry: {}}
    order, kept = _order(caches.graph), wanted_lines(caches, side)
    waiting = [caches.graph.entry]
    place = {node: number for number, node in enumerate(order)}
    while waiting:
        waiting.sort(key=place.__getitem__, reverse=True)
        node = waiting.pop()
        after = caches.behind(side, node, states[node])
        for edge in caches.graph.leading[node]:
            if edge.name in caches.passages:
                new = kept(edge.target, side.residents.along(after, caches.passages[edge.name]))
                old = states.get(edge.target)
                if old is not None and must_holds(new, old):
                    continue
                states[edge.target] = new if old is None else joined_must(side.residents, old, new)
                if edge.target not in waiting:
                    waiting.append(edge.target)
    return {node: must for node, must in states.items() if must}


@dataclass(frozen=True, slots=True)
class CountedMisses:
    """By which event, or by which edges, the analysis counts misses.

    Attributes:
        fetches: by node and the number of the fetch in it.
        data: by node, for each access in order the address of its instruction (None: a fetch), and the event or None.
        paid: edges by name, each of which pays for a miss.
    """

    fetches: Mapping[str, Mapping[int, str]]
    data: Mapping[str, Sequence[tuple[int | None, str | None]]]
    paid: Mapping[str, tuple[str, ...]]


def cache_annotations(
    problem: FlowProblem,
    solution: Solution,
    graph: Graph,
    code: Code,
    *,
    costs: Mapping[int, InstructionCost],
    target: Target,
    invariants: Invariants,
    arguments: Mapping[Place, Value],
    asserted: Pointers,
    counted: CountedMisses,
    crosses_no_line: Callable[[int], bool],
) -> Annotations:
    """What the certificate in cycles says of caches.

    Args:
        problem: the flow problem in cycles.
        solution: of it; what has no multiplier needs no proof.
        graph: of the problem.
        code: the image.
        costs: of its instructions.
        target: a core with caches.
        invariants: of the nodes.
        arguments: what facts say of registers at entry.
        asserted: see `find_caches`.
        counted: by what misses are counted.
        crosses_no_line: see `find_caches`.

    *Soundness:* none is claimed.
    """
    nothing = Annotations(Names({}, {}, asserted), unchecked=frozenset(graph.nodes))
    best = nothing
    try:
        coverage = cover(code, graph, invariants, arguments)
        for names, caches in find_caches(
            code, graph, invariants, coverage, target=target, asserted=asserted, crosses_no_line=crosses_no_line
        ):
            found = _annotated(problem, solution, names, caches, coverage, costs=costs, counted=counted)
            if best is nothing or len(found.unchecked) < len(best.unchecked):
                best = found
            if not best.unchecked:  # what accesses have shown is told where something is not followed without it
                break
    except VerificationError:
        pass
    return best


def _annotated(
    problem: FlowProblem,
    solution: Solution,
    names: Names,
    caches: Caches,
    coverage: Coverage,
    *,
    costs: Mapping[int, InstructionCost],
    counted: CountedMisses,
) -> Annotations:
    """What is said of caches by ``names``, and the nodes that charge less than the checker then asks for."""
    graph, order = caches.graph, _order(caches.graph)
    auxiliaries = {auxiliary.name for auxiliary in problem.auxiliaries}
    known = auxiliaries | counted.paid.keys()
    misses = {
        node: {key: name for key, name in own.items() if name in known}
        for node, own in _misses(caches, counted).items()
    }
    must = {side.name: resident(caches, side) for side in caches.sides}
    found = Annotations(names, misses, counted.paid, must)
    constraints = [
        LinearConstraint(
            one.name,
            {name: factor for name, factor in one.coefficients.items() if factor and name in auxiliaries},
            {name: -factor for name, factor in one.coefficients.items() if factor and name not in auxiliaries},
            one.constant,
        )
        for one in problem.constraints
        if solution.dual.get(one.name) and not auxiliaries.isdisjoint(one.coefficients)
    ]
    if any("write-backs" in one.events for one in constraints):
        found = replace(found, modified=modified_lines(caches, found, order))
    for constraint in paying(found).values():
        if not _holds(caches, constraint, found, order):
            kept = {node: {k: n for k, n in own.items() if n != constraint.name} for node, own in found.misses.items()}
            paid = {name: edges for name, edges in found.paid.items() if name != constraint.name}
            found = replace(found, misses=kept, paid=paid)
    held = {}
    for constraint in (*constraints, *paying(found).values()):
        left = left_of(caches, constraint, found, order)
        if left and caches.is_limited(constraint, replace(found, held={constraint.name: left})):
            held[constraint.name] = left
    found = replace(found, held=held)
    needed = {node: caches.needed(node, found) for node in graph.nodes}
    least = {node: node_cost(coverage.instructions[node], costs, caches.target, "cycles") for node in graph.nodes}
    unchecked = {node for node, (_, cost) in graph.nodes.items() if cost < least[node] + needed[node].cycles}
    gone = [(edge.source, edge.cost) for edge in graph.edges if edge.name in coverage.gone]
    for node, cost in (*gone, *graph.exits.items()):
        if needed[node].leaving_cycles > cost:
            unchecked.add(node)
    return replace(found, unchecked=frozenset(unchecked))


def _holds(caches: Caches, constraint: LinearConstraint, annotations: Annotations, order: Sequence[str]) -> bool:
    left = left_of(caches, constraint, annotations, order)
    return caches.is_limited(constraint, replace(annotations, held={constraint.name: left}))


def _misses(caches: Caches, counted: CountedMisses) -> dict[str, dict[tuple[int, int], str]]:
    """By what the misses of the checker's steps are counted."""
    found: dict[str, dict[tuple[int, int], str]] = {}
    for side in caches.sides:
        for node, steps in side.steps.items():
            own = found.setdefault(node, {})
            if side.name == FETCH:
                names = counted.fetches.get(node, {})
                own |= {step.key: names[number] for number, step in enumerate(steps) if number in names}
                continue
            data = counted.data.get(node, ())
            fetched = [name for address, name in data if address is None]
            own |= _paired([step for step in steps if step.is_fetch], fetched)
            for address in dict.fromkeys(address for address, _ in data if address is not None):
                named = [name for one, name in data if one == address]
                mine = [step for step in steps if step.instruction_address == address and not step.is_fetch]
                own |= _paired(mine, named)
    return {node: own for node, own in found.items() if own}


def _paired(steps: Sequence[Step], names: Sequence[str | None]) -> dict[tuple[int, int], str]:
    if len(steps) != len(names):
        return {}
    return {step.key: name for step, name in zip(steps, names, strict=True) if name is not None and step.fills}
