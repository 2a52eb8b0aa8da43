# SPDX-License-Identifier: 0BSD
"""The whole check of a bound about a binary: what is found to hold, what is not checked, or the first thing that fails.

The rules stand in `docs/explanation/certificates.md`. A certificate of anybody may be given: every line of the answer
is *ok*, or says *not checked*, and nothing is taken for checked that was only said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from wcet_probe.certificate.caches.cached import Cached, check_caches, pointers
from wcet_probe.certificate.caches.charged import check_charges
from wcet_probe.certificate.facts.asserted import parameters_of
from wcet_probe.certificate.facts.asserted_arguments import told_at_entry
from wcet_probe.certificate.facts.asserted_calls import told_destinations
from wcet_probe.certificate.facts.asserted_loops import AssertedLoops
from wcet_probe.certificate.facts.assumptions import ALWAYS, check_assumptions
from wcet_probe.certificate.facts.bodies import Bodies
from wcet_probe.certificate.facts.findings import OK, OPEN, Binary, Finding
from wcet_probe.certificate.facts.hashes import check_hashes
from wcet_probe.certificate.facts.sums import Sums
from wcet_probe.certificate.flow.classes import Classes
from wcet_probe.certificate.flow.followed import Followed
from wcet_probe.certificate.flow.pairs import Pair, PairReader, excluded_pairs
from wcet_probe.certificate.flow.rounds import counts, ranges_in_rounds
from wcet_probe.certificate.flow.walk import Covered
from wcet_probe.certificate.kernel.called import Callee
from wcet_probe.certificate.kernel.charge import not_charged
from wcet_probe.certificate.kernel.coverage import Code, Coverage, code_of, cover, decoded, said_of
from wcet_probe.certificate.kernel.left_behind import callee_of, registers_unknown
from wcet_probe.certificate.kernel.loops import Json
from wcet_probe.certificate.kernel.records import (
    Graph,
    LoopRecord,
    Records,
    demand,
    factors_of,
    graph_of,
    loops_of,
    read_records,
    used_constraints,
    well_formed,
)
from wcet_probe.certificate.kernel.shapes import reached_nodes
from wcet_probe.certificate.kernel.unfollowed import not_followed, shortened
from wcet_probe.certificate.kernel.verify import CheckedBound, callees_of, verify_result
from wcet_probe.certificate.machines.saved_words import saving_stores
from wcet_probe.certificate.modules.asserted_proofs import checked_proofs
from wcet_probe.certificate.results.shown import check_shown, executions_of
from wcet_probe.certificate.runs.decided import ANY_DATA, INITIAL_DATA, apart_from_waiting, decided_run, run_of_its_own
from wcet_probe.certificate.runs.run import MOST_INSTRUCTIONS, Ran
from wcet_probe.certificate.trials import Claimed, path_limits, refutation
from wcet_probe.certificate.values.numbers import Value
from wcet_probe.certificate.values.state import Place, is_saved
from wcet_probe.errors import VerificationError
from wcet_probe.model.instruction import Instruction

_KINDS_OF_CONSTRAINTS = re.compile(
    r"(conflict:[0-9]+|fact:[0-9]+|flow:[0-9]+\.[0-9]+|infeasible:[0-9]+|restriction:[0-9]+|rounds:[0-9]+"
    r"|total:.+|never:.+|executed:[0-9]+|body:[0-9]+)"
)


@dataclass(frozen=True, slots=True)
class Checked:
    """A bound that was checked: what it is, all that was found of it, its graph by unit, and the code of each node."""

    bounds: tuple[CheckedBound, ...]
    findings: tuple[Finding, ...]
    graphs: Mapping[str, Graph]
    code: Mapping[str, Sequence[Instruction]]

    @property
    def graph(self) -> Graph:
        """The flow graph; what is of one unit only is not looked at."""
        return next(iter(self.graphs.values()))

    @property
    def is_full(self) -> bool:
        """Whether nothing is left that was not checked."""
        return all(finding.verdict == OK for finding in self.findings)


def check_bound(document: Json, binary: Binary) -> Checked:
    """Check the section ``bound`` of ``document`` against ``binary``.

    Raises:
        VerificationError: something does not hold; one sentence says what.
    """
    bounds = tuple(verify_result(document))
    demand(
        all(one.image_sha256 == binary.image.sha256 for one in bounds), "it is about another image than the given one"
    )
    name = binary.target.name
    demand(all(one.target == name for one in bounds), f"it is about another target than {name}")
    with well_formed("result"):
        return _checked(document, binary, bounds)


def _checked(document: Json, binary: Binary, bounds: tuple[CheckedBound, ...]) -> Checked:
    section, code = document["bound"], code_of(binary.image, binary.instructions)
    callees: list[_Check] = []
    for texts, own in zip(section.get("callees", ()), callees_of(section, bounds), strict=True):
        callees.append(_Check({**section, "certificates": texts}, binary, own, _with(code, callees)))
        callees[-1].check_as_callee(callees[:-1])
    check = _Check(section, binary, bounds, _with(code, callees), callees)
    findings = tuple(check.findings())
    if any(finding.verdict == OPEN for finding in findings):
        check.try_runs()
    return Checked(bounds, findings, check.graphs, check.code_of_nodes)


def _with(code: Code, callees: Sequence[_Check]) -> Code:
    """``code``, of which those ``callees`` are known whose paths are."""
    return replace(code, callees={one.callee.address: one.callee for one in callees if one.callee is not None})


class _Check:
    """One bound under check; the certificates of all units share graph and invariants."""

    def __init__(
        self, section: Json, binary: Binary, bounds: Sequence[CheckedBound], code: Code, callees: Sequence[_Check] = ()
    ) -> None:
        self._section, self._binary, self._bounds, self._callees = section, binary, bounds, callees
        self.records = [read_records(text) for text in section["certificates"]]
        self._graphs = [graph_of(records) for records in self.records]
        graph = self._graphs[0]
        demand(all(one.shape() == graph.shape() for one in self._graphs), "the certificates have different graphs")
        kinds = ("invariant", "flags", "equal", "case", "case-equal")
        is_twice = any(records[kind] for kind in kinds for records in self.records[1:])
        demand(not is_twice, "invariants stand in two certificates")
        self._graph, self._code, self.of = graph, code, graph.entry_function
        self._costs = {one.address: cost for one, cost in zip(binary.instructions, binary.costs, strict=True)}
        self._used: dict[str, None] = dict.fromkeys(ALWAYS)
        self._said = said_of(self.records[0])
        self._invariants = self._said.invariants
        self._parameters: Mapping[str, int] = {}
        self._coverage = Coverage()
        self._pairs, self._excluded = PairReader(graph), set[Pair]()
        self._open_constraints: list[str] = []
        self._cached: Cached | None = None
        self._listed: Mapping[str, str] = {one["id"]: one["statement"] for one in section["assumptions"]}
        names = [one.of for one in callees] if all(one.callee for one in callees) else ()
        self._unfollowed = not_followed(section, binary.image, names, {one.kind for one in binary.asserted.facts})
        self._unfollowed = self._unfollowed or run_of_its_own(self.records)
        self._ran: Ran | None = None
        self.is_callee = False
        self.callee: Callee | None = None

    def findings(self) -> Iterator[Finding]:
        units = ", ".join(f"{one.bound} {one.unit}" for one in self._bounds)
        yield Finding("arithmetic", OK, f"the dual of each linear program proves at most {units}")
        yield self._checked_parameters()
        for callee in self._callees:
            yield callee.found
            self._used |= callee.used
        if INITIAL_DATA in self._listed or self._unfollowed == ANY_DATA:
            self._follow_run()
        if self._ran is not None:
            yield from self._held_against_run(self._ran)
        elif self._unfollowed:
            self._coverage = decoded(self._code, self._graph)
            yield Finding("graph", OPEN, self._unfollowed)
            yield Finding("limits of paths", OPEN, "they rest on the graph")
        else:
            yield self._covered()
        if self._ran is None:
            yield from self._charges()
        if not self._unfollowed:
            yield from self._limited()
        if self._binary.asserted.facts:
            yield self._hashed()
        yield self._assumed()
        yield from self._proved()
        shown = check_shown(self._section, self._graphs, self.records, self._coverage.instructions)
        yield Finding("what is shown", OK, shown)

    def check_as_callee(self, others: Sequence[_Check]) -> None:
        """Check the bound for every call of the function, and what it leaves behind: `callee`, `used`, a line `found`.

        It may call ``others``, which were checked before.

        Raises:
            VerificationError: something does not hold.
        """
        what, self.is_callee, self._unfollowed = f"callee {self.of}", True, ""
        if not all(one.callee for one in others):
            self.found, self.used = Finding(what, OPEN, "calls that are not expanded"), {}
            return
        self._checked_parameters()
        findings = [self._covered(), *self._charges(), *self._limited()]
        bounds = {one.unit: one.bound for one in self._bounds}
        if not self._coverage.open:
            self.callee = callee_of(self._code, self._graph, self._invariants, self._coverage, bounds)
        self.used = {**self._used, **dict.fromkeys(sorted(self._coverage.assumptions))}
        words = ", ".join(f"{bound} {unit}" for unit, bound in bounds.items())
        missing = [f"{one.check}: {one.found}" for one in findings if one.verdict == OPEN]
        whole = f"at most {words}, whoever calls it"
        self.found = Finding(what, OPEN, shortened(missing)) if missing else Finding(what, OK, whole)

    @property
    def graphs(self) -> Mapping[str, Graph]:
        """The flow graph, with the costs of each unit."""
        return {bound.unit: graph for bound, graph in zip(self._bounds, self._graphs, strict=True)}

    @property
    def code_of_nodes(self) -> Mapping[str, Sequence[Instruction]]:
        """Instructions by node."""
        return self._coverage.instructions

    def try_runs(self) -> None:
        """Hold what is not checked against trial runs.

        Raises:
            VerificationError: one contradicts the certificate.
        """
        proved = {one.unit: one.bound for one in self._bounds}
        if self._unfollowed or self._callees or "instructions" not in proved:
            return
        limits = {name: limit for records in self.records for name, limit in path_limits(records)}
        claimed = Claimed(self._graph, self._coverage.instructions, proved["instructions"], limits)
        found = refutation(self._code, claimed, self._binary.target.memory_map.data, self._listed)
        demand(found is None, str(found))

    # ------------------------------------------------------------------------------------------------------ parameters

    def _checked_parameters(self) -> Finding:
        said = dict(self._section["parameters"])
        declared = {name for name, _ in self._binary.asserted.declared}
        given = self._binary.parameters
        own = {name: value for name, value in said.items() if name not in declared} if given is None else dict(given)
        found = parameters_of(self._binary.asserted, own, self._binary.image)
        demand(found == said, "the parameters are not those of the question and of the files of facts")
        self._parameters = found
        note = "as the question and the files of facts give them"
        return Finding("parameters", OK, note if given is not None else "what facts declare; the others were told")

    # ------------------------------------------------------------------------------------------------------------- run

    def _follow_run(self) -> None:
        """Execute the run that memory at entry decides."""
        most = next((one.bound for one in self._bounds if one.unit == "instructions"), MOST_INSTRUCTIONS)
        found = decided_run(self._code, self._binary, self._graph.entry_function, self._listed, self._arguments(), most)
        if isinstance(found, str):
            self._unfollowed += f"; the run is not followed: {found}"
        else:
            self._ran = found

    def _held_against_run(self, ran: Ran) -> Iterator[Finding]:
        """The bound against the run, and the counts of the certificate, which are shown, against what it executes."""
        self._used |= dict.fromkeys(sorted(ran.used | ({INITIAL_DATA} & self._listed.keys())))
        self._coverage = decoded(self._code, self._graph)
        for bound in self._bounds:
            takes = ran.instructions if bound.unit == "instructions" else ran.cycles
            if takes is None:
                yield Finding(
                    f"run in {bound.unit}", OPEN, f"{ran.instructions} instructions; not charged: {ran.untold}"
                )
                continue
            demand(bound.bound >= takes, f"the run takes {takes} {bound.unit}, and the bound is {bound.bound}")
            yield Finding(f"run in {bound.unit}", OK, f"takes {takes} at most, from what is known at entry to its end")
        counts = executions_of(self.records[0], self._graph, self._coverage.instructions)
        words = f"of {len(counts)} instructions as often as the run does"
        is_same = counts == ran.executions
        yield Finding("graph", OK, f"executes each {words}") if is_same else Finding("graph", OPEN, f"not each {words}")

    # -------------------------------------------------------------------------------------------------------- coverage

    def _covered(self) -> Finding:
        is_separate = "stack-separation" in self._listed
        is_said = any(is_saved(place) for values in self._invariants.values() for place in values)
        keeps = is_said or "saved-registers" in self._listed
        saving = saving_stores(self._code.image, self._code.instructions) if keeps else {}
        goes = told_destinations(self._binary.asserted, self._listed, self._code.image)
        known = self._code, self._graph, self._said, self._arguments()
        ends = self._listed.get("call-returns", "")
        try:
            self._coverage = cover(
                *known,
                is_separate=is_separate,
                saving=saving,
                told=goes,
                ends=ends,
                escapes=self.is_callee,
            )
        except VerificationError as error:
            reason = str(error).removeprefix("not verified: ").removesuffix(".")
            demand(is_separate, f"the assumption stack-separation may be used and not listed: without it, {reason}")
            raise
        self._coverage.assumptions |= {"saved-registers"} if is_said else set()
        # The analysis may know where a return or a store goes that is not followed here, and assume nothing.
        returning = [text for outcomes in self._coverage.returning.values() for _, text in outcomes]
        told = {"return-address": returning, "stack-separation": ["that stores through numbers miss the stack"]}
        for one in sorted(told.keys() & self._coverage.assumptions - self._listed.keys()):
            self._coverage.assumptions.discard(one)
            self._coverage.open += told[one]
        count = f"{len(self._graph.nodes)} nodes, {len(self.records[0]['invariant'])} invariants"
        if self._coverage.open:
            return Finding("graph", OPEN, shortened(self._coverage.open))
        return Finding("graph", OK, f"covers the code of the image, by inductive invariants: {count}")

    def _arguments(self) -> dict[Place, Value]:
        """What facts say of registers and words at entry; of a callee, which registers may hold anything."""
        if self.is_callee:
            return registers_unknown(self._invariants[self._graph.entry])
        found: dict[Place, Value] = {}
        binary = self._binary
        for where, place, value in told_at_entry(
            binary.asserted, self._graph.entry_function, binary.image, self._parameters
        ):
            found[place] = value
            self._used[f"fact {where}"] = None
        return found

    # ----------------------------------------------------------------------------------------------------------- costs

    def _charges(self) -> Iterator[Finding]:
        for graph, records, bound in zip(self._graphs, self.records, self._bounds, strict=True):
            yield self._charged(graph, records, bound.unit)

    def _charged(self, graph: Graph, records: Records, unit: str) -> Finding:
        target = self._binary.target
        has_caches = unit == "cycles" and bool(target.icache or target.dcache)
        is_traced = unit == "cycles" and (not self._code.callees if has_caches else bool(target.unaligned))
        cached = self._check_caches(graph, records) if is_traced and not self._unfollowed else None
        skipped = cached.unchecked if cached is not None else frozenset[str]()
        own = apart_from_waiting(target, records) if self._unfollowed else target
        check_charges(self._code, graph, self._coverage, (self._costs, own, unit), cached)
        missing = not_charged(target, unit)
        if self._unfollowed:
            longer = ("unaligned accesses",) if unit == "cycles" and target.unaligned else ()
            waits = ("waiting for memory",) if own is not target else ()
            missing = (*missing, *waits, *(("misses",) if has_caches else ()), *longer, "edges")
        elif self._code.callees and has_caches:
            missing = (*missing, "misses", "calls")
        if missing:
            return Finding(f"costs in {unit}", OPEN, f"instructions are charged; not checked: {' and '.join(missing)}")
        if skipped:
            what = "misses" if has_caches else "unaligned accesses"
            words = f"instructions are charged; not checked: {what} of {shortened(sorted(skipped))}"
            return Finding(f"costs in {unit}", OPEN, words)
        return Finding(f"costs in {unit}", OK, "each node and edge charges what the target's table asks for")

    def _check_caches(self, graph: Graph, records: Records) -> Cached:
        code, target = self._code, self._binary.target
        asserted = pointers(self._binary.asserted, self._parameters, self._binary.image)
        moved = ranges_in_rounds(self._covered_graph, loops_of(records)) if target.dcache else {}
        invariants = {node: {**known, **moved.get(node, {})} for node, known in self._invariants.items()}
        self._cached = check_caches(
            code, graph, records, invariants, self._coverage, target, asserted, self._listed.get("alignment")
        )
        self._used |= dict.fromkeys(sorted(self._cached.assumptions))
        return self._cached

    # ---------------------------------------------------------------------------------------------- loops, constraints

    def _limited(self) -> Iterator[Finding]:
        shown, asserted, open_loops = 0, 0, list[LoopRecord]()
        loops, own, covered = loops_of(self.records[0]), self._binary, self._covered_graph
        # Loops are told by their headers: a second one of the same, entered otherwise, would lend the first its bound.
        demand(len({loop.header for loop in loops}) == len(loops), "two loops of the certificate have one header")
        self._sums = Sums(covered, loops, own.asserted, self._parameters, own.variables, own.unshared)
        self._followed = Followed(covered, loops)
        where = {loop["name"]: loop for loop in self._section["loops"]}
        told = AssertedLoops(own.image, self._graph, own.asserted, self._parameters, self._sums, self._listed)
        derived = [{loop["constraint"]: loop for loop in one.loops} for one in self._bounds]
        demand(all(one == derived[0] for one in derived), "the certificates derive their loop bounds differently")
        for record in loops:
            name, most = record.name, record.most + 1
            loop = derived[0].get(f"loop:{name}")
            demand(loop is not None and name in where, f"the loop {name} has no derivation")
            if loop is not None and loop["origin"] == "proved":
                if not any(found is not None and found <= most for found in counts(covered, record)):
                    open_loops.append(record)
                    continue
                shown += 1
            elif loop is not None:
                told.check(name, loop, where[name]["where"], record.header)
                asserted += 1
            self._followed.bounds[record.header] = most
        lines = self._sums.lines
        self._bodies = Bodies(covered, loops, own.asserted, told.counted, lines=lines, unshared=own.unshared)
        self._used |= told.used
        self._open_constraints += told.open
        for records in self.records[1:]:
            demand(records["loop"] == self.records[0]["loop"], "the certificates bound their loops differently")
        classes = Classes(covered)
        others = [loop.name for loop in open_loops if not (self._followed.ends(loop) or classes.limit(loop))]
        followed = len(open_loops) - len(others)
        rounds = f", {followed} followed round by round" if followed else ""
        if others:
            words = f"that {len(others)} of {shown + len(open_loops)} counted loops end so soon: {shortened(others)}"
            yield Finding("loop bounds", OPEN, words)
        elif shown or followed:
            yield Finding("loop bounds", OK, f"{shown} by counters that the invariants bound{rounds}")
        if asserted:
            yield Finding("asserted loop bounds", OK, f"{asserted} as their facts say, which are assumptions")
        self._excluded = self._excluded_pairs()
        for records, bound in zip(self.records, self._bounds, strict=True):
            yield from self._constrained(records, bound.unit)

    def _constrained(self, records: Records, unit: str) -> Iterator[Finding]:
        events, used = {name for name, _ in records["event"]}, used_constraints(records)
        shown = asserted = followed = 0
        others = list(self._open_constraints) if unit == self._bounds[0].unit else []
        for name, relation, constant, terms in records["constraint"]:
            factors = factors_of(terms)
            if relation == "<=" and int(constant) >= 0 and all(f <= 0 or e in events for e, f in factors.items()):
                continue  # it limits no path, and perhaps events, see `cached`
            is_followed = name.startswith("executed:") and self._followed.limits(factors, int(constant))
            if relation == "<=" and is_followed:
                followed += 1
            elif relation == "<=" and self._pairs.pair_of(factors, int(constant)) in self._excluded:
                shown += 1
            else:
                told = self._follows(name, factors, int(constant)) if relation == "<=" else None
                if told is None:
                    others += [name] * (name in used)
                else:
                    asserted += 1
                    self._used |= dict.fromkeys(told)
        if others:
            words = f"{len(others)} constraints that limit paths: {shortened(others)}"
            yield Finding(f"constraints in {unit}", OPEN, words)
        elif shown or asserted or followed:
            words = f"{shown} pairs of edges exclude each other, {asserted} follow from facts, which are assumptions"
            words += f", {followed} from rounds that were followed" if followed else ""
            yield Finding(f"constraints in {unit}", OK, words)
        target = self._binary.target
        if unit == "cycles" and self._cached is not None and (target.icache or target.dcache):
            cached = self._cached
            if cached.open:
                words = f"{len(cached.shown)} are shown; not checked: {cached.lemmas}"
                yield Finding(f"limits of misses in {unit}", OPEN, words)
            else:
                yield Finding(f"limits of misses in {unit}", OK, f"{len(cached.shown)}, of which lines are resident")

    def _follows(self, name: str, factors: Mapping[str, int], constant: int) -> Sequence[str] | None:
        """The assumptions that a constraint follows from; a rule of the analysis, or a fact, makes its kind."""
        demand(_KINDS_OF_CONSTRAINTS.fullmatch(name), f"nothing allows the constraint {name}, which limits paths")
        kind, _, number_of = name.partition(":")
        if kind in {"flow", "infeasible"}:
            count = len(self._binary.asserted.of(kind))
            demand(int(number_of.partition(".")[0]) < count, f"no fact makes the constraint {name}, which limits paths")
        if kind == "fact":
            is_told = self._binary.asserted.of("loop") or any(one.startswith("pragma ") for one in self._listed)
            demand(is_told, f"no fact makes the constraint {name}, which limits paths")
        if kind == "body" and constant >= 0 and not (self._code.callees or self.is_callee):
            return self._bodies.follows(factors, self._listed)
        if kind not in {"fact", "flow", "infeasible"} or self._code.callees or self.is_callee:
            return None  # it may speak of what is executed in a callee, or by its callers
        return self._sums.follows(kind, int(number_of.partition(".")[0]), factors, constant)

    @property
    def _covered_graph(self) -> Covered:
        """The graph, and what was checked of it."""
        return Covered(self._code, self._graph, self._invariants, self._coverage)

    def _excluded_pairs(self) -> set[Pair]:
        """The pairs of edges in constraints that a bound rests on which are shown to exclude each other."""
        rows = {
            (terms, int(constant))
            for records in self.records
            for used in (used_constraints(records),)
            for name, _, constant, terms in records["constraint"]
            if name in used
        }
        asked = (self._pairs.pair_of(factors_of(terms), constant) for terms, constant in sorted(rows))
        pairs = [pair for pair in asked if pair is not None]
        return excluded_pairs(self._covered_graph, pairs)

    # ----------------------------------------------------------------------------------------------------- assumptions

    def _hashed(self) -> Finding:
        """The functions that facts were written for are those of the sources, or of the image."""
        held, missing = check_hashes(self._binary.asserted, self._binary.image)
        if missing:
            return Finding("hashes of facts", OPEN, f"no source of the functions of {shortened(missing)}")
        return Finding("hashes of facts", OK, f"{held} functions are those that facts were written for")

    def _proved(self) -> Iterator[Finding]:
        """Whether the facts are proved that are told to be."""
        reached = reached_nodes(self._graph, self._coverage.taken)
        traced = [self._cached.traced[node] for node in reached] if self._cached is not None else None
        found = checked_proofs(self._section, self._binary, self._graph.entry_function, traced)
        if found is not None:
            yield found

    def _assumed(self) -> Finding:
        every = [records for one in (self, *self._callees) for records in one.records]
        constraints = [name for records in every for name, *_ in records["constraint"]]
        self._used |= dict.fromkeys(sorted(self._coverage.assumptions))
        used = check_assumptions(self._used, self._listed, self._binary.asserted, self._binary.target, constraints)
        if self._unfollowed and self._ran is None:
            return Finding("assumptions", OPEN, f"{len(self._listed)} are listed; that these are all")
        words = f"the {len(used)} that the rules used are among the {len(self._listed)} listed"
        return Finding("assumptions", OK, words)
