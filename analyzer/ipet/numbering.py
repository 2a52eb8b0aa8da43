"""Names of values in a certificate: symbols, by the places that hold them where nodes begin, and sums of symbols.

Words: value numbering, certificate (docs/explanation/glossary.md).

*Soundness:* none is claimed. The checker tests the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from wcet_probe.analyzer.domains.lattice import Subsets
from wcet_probe.analyzer.ipet.node_flow import NodeFlow
from wcet_probe.certificate.kernel.coverage import Code, Coverage
from wcet_probe.certificate.kernel.records import Edge, Graph, says_nothing
from wcet_probe.certificate.names.names import Claim, Names, Pointers, Traced
from wcet_probe.certificate.names.symbols import Tracer, speaking
from wcet_probe.certificate.values.congruences import BELIEVED, MOST_MODULUS, UNALIGNED, Congruence, either
from wcet_probe.certificate.values.numbers import TOP, Value, bare
from wcet_probe.certificate.values.state import Place, is_saved
from wcet_probe.certificate.values.terms import Form, form_of_name, name_of_sum

_MOST_ROUNDS = 12
_FRESH = "@"

Invariants = Mapping[str, Mapping[Place, Value]]


class Numbering:
    """Symbols for values, by the places that hold them where nodes begin."""

    def __init__(
        self,
        code: Code,
        graph: Graph,
        invariants: Invariants,
        coverage: Coverage,
        asserted: Pointers,
        *,
        with_sums: bool,
    ) -> None:
        self._code, self._graph, self._invariants, self._coverage, self._asserted = (
            code,
            graph,
            invariants,
            coverage,
            speaking(asserted, code, graph, invariants, coverage),
        )
        self._with_sums, self._sums, self._claimed = with_sums, dict[str, Form](), dict[str, None]()
        self._order = NodeFlow(graph, graph.edges).nodes
        self._claims: dict[str, dict[Place, Claim]] = {node: {} for node in graph.nodes}
        self._homes: dict[str, tuple[str, str, Congruence]] = {}
        self._arriving: dict[str, list[Edge]] = {node: [] for node in graph.nodes}
        for edge in graph.edges:
            if edge.name in coverage.taken:
                self._arriving[edge.target].append(edge)
        self._first_guess = BELIEVED if asserted.has_remainders else Congruence(MOST_MODULUS, 0)
        self._names: dict[tuple[str, str], str] = {}
        self._loaded: set[str] = set()  # symbols that begin with no constant on some way
        self._values: dict[str, dict[Place, Value]] = {}
        self._classes: dict[str, dict[str, Congruence]] = {}
        self._followed: dict[str, dict[Place, Claim]] = {}

    def run(self) -> Names:
        """The names, when nothing changes any more.

        Rounds over all nodes and not the fixpoint engine: what a node names depends on the names of all others, as a
        symbol has one meaning wherever it is used, so that there is no state of a node by itself.
        """
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
        self._drop_sums()
        self._find_classes()
        return replace(self._as_names(), homes=self._kept_homes())

    def _places(self, node: str) -> list[Place]:
        known = self._invariants[node]
        found: list[Place] = []
        for place in dict.fromkeys((*self._code.isa.REGISTERS, *(one for one in known if not is_saved(one)))):
            value = known.get(place, TOP if isinstance(place, str) else None)
            is_told = value is not None and (isinstance(place, str) or not says_nothing(place, value))
            if value is not None and is_told and value.is_plain and not value.is_constant:
                found.append(place)
        return found

    def _symbol(self, way: str, node: str, key: str) -> str:
        name = self._names.setdefault((f"{way} {node}", key), f"s{len(self._names)}")
        self._homes.setdefault(name, (way, node, UNALIGNED))
        return name

    def _visit(self, node: str) -> None:
        """Name what ``node`` begins with, by what arrives, if anything does, and see what leaves it."""
        arriving = [edge for edge in self._arriving[node] if edge.name in self._values]
        if node != self._graph.entry:
            if not arriving:
                return
            self._claims[node] = self._numbered(node, arriving)
        if self._followed.get(node) == self._claims[node]:  # the names of what leaves it are made of these alone
            return
        self._followed[node] = self._claims[node]
        tracer = Tracer(self._code, self._graph, self._invariants, self._coverage, self._as_names())
        traced = tracer.trace(node)
        self._sums.update(tracer.terms.linear)
        for edge in self._graph.leading[node]:
            states = traced.leaving.get(edge.name, ())
            if states and edge.name in self._coverage.taken:
                places = self._places(edge.target)
                first = {place: bare(states[0].read(place)) for place in places}
                self._values[edge.name] = {
                    place: value for place, value in first.items()
                    if value.is_constant and (value.base.startswith(_FRESH) or value.base in {"number", "stack"})
                    and all(bare(state.read(place)) == value for state in states)
                }  # fmt: skip

    def _as_names(self) -> Names:
        return Names(self._claims, self._homes, self._asserted, sums=tuple(self._claimed))

    def _numbered(self, node: str, arriving: Sequence[Edge]) -> dict[Place, Claim]:
        """A symbol for each class of places that hold the same value, but for a constant, on every edge."""
        leaders: dict[object, tuple[Place, int]] = {}
        claims: dict[Place, Claim] = {}
        for place in self._places(node):
            values = [self._values[edge.name].get(place) for edge in arriving]
            if any(value is None for value in values):
                continue
            known = [value for value in values if value is not None]
            lasting = self._summed(node, arriving, known) or self._lasting(node, arriving, known)
            if lasting is not None:
                claims[place] = lasting
                continue
            key = tuple((value.base, value.low - known[0].low) for value in known)
            if any(value.is_number for value in known):
                key = tuple((value.base, value.low) for value in known)
            leader, offset = leaders.setdefault(key, (place, known[0].low))
            claims[place] = Claim(self._symbol("at", node, str(leader)), known[0].low - offset)
        return claims

    def _summed(self, node: str, arriving: Sequence[Edge], known: Sequence[Value]) -> Claim | None:
        """The sum of symbols that a place holds on every edge, if all of these mean the same behind them."""
        found = {
            (name_of_sum(self._behind(node, edge, self._sums.get(value.base.removeprefix(_FRESH), {}))), value.low)
            for edge, value in (zip(arriving, known, strict=True) if self._with_sums else ())
        }
        name, low = found.pop() if len(found) == 1 else ("", 0)
        if not name:
            return None
        self._claimed[name] = None
        return Claim(name, low)

    def _behind(self, node: str, edge: Edge, form: Form) -> Form:
        """A sum by the symbols that its parts are behind ``edge``; nothing where one of them is none."""
        found: dict[str, int] = {}
        held = {value.base.removeprefix(_FRESH) for value in self._values[edge.name].values()}
        for part, times in form.items():
            way, home, _ = self._homes.get(part, ("", "", UNALIGNED))
            if (way, home) in {("at", node), ("behind", edge.source)} or (not way and part not in held):
                return {}
            symbol = part if way else self._symbol("behind", edge.source, part)
            found[symbol] = times
        return found

    def _lasting(self, node: str, arriving: Sequence[Edge], known: Sequence[Value]) -> Claim | None:
        """The symbol that a place holds on every edge, if it means the same behind them."""
        found: set[Claim] = set()
        for edge, value in zip(arriving, known, strict=True):
            base = value.base.removeprefix(_FRESH)
            if not value.base.startswith(_FRESH):
                return None
            if base in self._homes:
                way, home, _ = self._homes[base]
                if (way == "at" and home == node) or (way == "behind" and home == edge.source):
                    return None
                found.add(Claim(base, value.low))
            else:
                found.add(Claim(self._symbol("behind", edge.source, base), value.low))
        return next(iter(found)) if len(found) == 1 else None

    def _drop_sums(self) -> None:
        """Keep no sum of a symbol that begins anew on the way to it and is claimed of no place there."""
        names = self._as_names()
        for node in self._graph.nodes:
            claims = self._claims[node]
            named = {claim.symbol for claim in claims.values()}
            begun = {s for edge in self._arriving[node] for s in names.begins(edge)}
            gone = {
                place for place, (name, _) in claims.items()
                if name not in self._homes and not (form_of_name(name).keys() & begun) <= named
            }  # fmt: skip
            self._claims[node] = {place: claim for place, claim in claims.items() if place not in gone}

    def _find_classes(self) -> None:
        """What each symbol is known modulo: the most that holds wherever it begins anew.

        Rounds over all nodes, as in `run`: the unknowns are classes of symbols, which have no place in the graph.
        """
        guess: dict[str, Congruence | None] = dict.fromkeys(self._homes)
        for number_of_round in range(_MOST_ROUNDS):
            self._homes = {
                symbol: (way, node, guess[symbol] or self._first_guess)
                for symbol, (way, node, _) in self._homes.items()
            }
            new: dict[str, Congruence | None] = dict.fromkeys(self._homes)
            tracer = Tracer(self._code, self._graph, self._invariants, self._coverage, self._as_names())
            for node in (one for one in self._order if one in self._followed):
                traced = tracer.trace(node)
                for edge in self._graph.leading[node]:
                    self._meet(edge, tracer, traced, new, is_first=not number_of_round)
            for place, (symbol, _) in self._claims[self._graph.entry].items():
                self._add(new, symbol, tracer.at_entry(place))
            if new == guess:
                break
            guess = new
        else:
            guess = dict.fromkeys(self._homes, UNALIGNED)
        self._homes = {s: (way, node, guess[s] or UNALIGNED) for s, (way, node, _) in self._homes.items()}

    def _meet(
        self, edge: Edge, tracer: Tracer, traced: Traced, new: dict[str, Congruence | None], *, is_first: bool
    ) -> None:
        begins = tracer.names.begins(edge)
        for place, (symbol, offset) in self._claims[edge.target].items():
            if symbol not in begins or symbol not in self._homes or edge.name not in self._coverage.taken:
                continue
            for state in traced.leaving.get(edge.name, ()):
                value = bare(state.read(place))
                if not value.is_number:
                    self._loaded.add(symbol)
                begun = Value(value.base, value.low - offset, value.low - offset, 0)
                own = tracer.brought(begun, traced, edge.target, place)
                if value.is_number and symbol not in self._loaded and not is_first:
                    own = Congruence(MOST_MODULUS, begun.low % MOST_MODULUS)
                self._add(new, symbol, own)

    @staticmethod
    def _add(new: dict[str, Congruence | None], symbol: str, own: Congruence) -> None:
        old = new[symbol]
        new[symbol] = own if old is None else either(own, old)

    def _kept_homes(self) -> dict[str, tuple[str, str, Congruence]]:
        used = {claim.symbol for claims in self._claims.values() for claim in claims.values()}
        used |= {symbol for name in used - self._homes.keys() for symbol in form_of_name(name)}
        return {symbol: home for symbol, home in self._homes.items() if symbol in used}


def _live(graph: Graph, coverage: Coverage) -> Mapping[str, frozenset[str]]:
    """The registers that are read from where each node begins, before they are written: others need no name."""
    read: dict[str, set[str]] = {}
    written: dict[str, set[str]] = {}
    for node in graph.nodes:
        own, gone = read.setdefault(node, set()), written.setdefault(node, set())
        for one in coverage.instructions[node]:
            own |= one.reads - gone
            if one.condition == 14 and not one.in_it_block:
                gone |= one.writes | one.loaded
    before = {node: frozenset(registers) for node, registers in read.items()}
    flow = NodeFlow(graph, graph.edges)
    return flow.least_backwards(Subsets[str](frozenset()), before, lambda edge, live: live - written[edge.source])
