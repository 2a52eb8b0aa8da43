# SPDX-License-Identifier: 0BSD
"""What a function leaves behind that was checked by itself, for those who call it: derived from its invariants.

Each node is executed on what is said of it, as its bound was checked, where memory may hold stack addresses anywhere.
Which places hold what a register held at entry is followed from there: at a node it is what is so on all edges into it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce

from wcet_probe.certificate.kernel.called import Callee
from wcet_probe.certificate.kernel.coverage import Code, Coverage, edges_taken, run_block
from wcet_probe.certificate.kernel.records import Graph, demand
from wcet_probe.certificate.machines.machine import Machine
from wcet_probe.certificate.values.numbers import ANY, Value, join
from wcet_probe.certificate.values.state import Place, State

_MOST_STORES = 32
_AT_ENTRY = "at entry"
_Kept = Mapping[Place, str]
"""The places that hold what a register held at entry, and which one."""


@dataclass(slots=True)
class NotingMachine(Machine):
    """Notes where stores go besides the own frame, and whether stack addresses are stored in frames."""

    stores: set[tuple[Value, int, bool]] = field(default_factory=set)
    holds: bool = False

    def store(self, address: Value, size_bytes: int, value: Value, name: object, state: State) -> None:
        """As `Machine.store`."""
        if self.is_in_frame(address, size_bytes, state):
            self.holds |= value.may_be_stack
        else:
            self.stores.add((address, size_bytes, value.may_be_stack))
        Machine.store(self, address, size_bytes, value, name, state)

    def use_frames(self, end: int, value: Value, state: State) -> None:
        """As `Machine.use_frames`."""
        self.holds |= value.may_be_stack
        Machine.use_frames(self, end, value, state)


def registers_unknown(said: Mapping[Place, Value]) -> dict[Place, Value]:
    """Of what is ``said`` to hold where a function begins, the registers that may hold anything."""
    return {place: value for place, value in said.items() if isinstance(place, str) and value == ANY}


def callee_of(
    code: Code,
    graph: Graph,
    invariants: Mapping[str, Mapping[Place, Value]],
    coverage: Coverage,
    bounds: Mapping[str, int],
) -> Callee:
    """The callee whose ``graph`` and ``invariants`` were found to hold, wherever stack addresses stand in memory.

    Raises:
        VerificationError: its stack pointer is not surely what it was where it returns.
    """
    machine = NotingMachine(code.image, escapes=True, used=coverage.assumptions, saving=coverage.saving)
    registers = [one for one in code.isa.REGISTERS if one != code.isa.SP]
    kept: dict[str, _Kept] = {graph.entry: {one: one for one in registers}}
    waiting, ends = [graph.entry], dict[str, list[tuple[State, _Kept]]]()
    while waiting:
        node = waiting.pop()
        names: dict[Place, object] = {place: (_AT_ENTRY, register) for place, register in kept[node].items()}
        ends[node] = []
        for outcome in run_block(code, machine, graph, node, State(dict(invariants[node]), names)).outcomes:
            state, found = outcome.state, dict[Place, str]()
            for place, name in state.names.items():
                if isinstance(name, tuple) and name[0] == _AT_ENTRY:
                    found[place] = name[1]
            if outcome.address is None and node in graph.exits:
                ends[node].append((state, found))
            for edge in edges_taken(graph, node, outcome, coverage.gone):
                if edge.name not in coverage.taken:
                    continue
                old = kept.get(edge.target)
                new = found if old is None else {at: one for at, one in old.items() if found.get(at) == one}
                if new != old:
                    kept[edge.target] = new
                    waiting.append(edge.target)
    left = [one for own in ends.values() for one in own]
    name = graph.entry_function
    demand(left, f"nobody knows where {name} returns")
    returned = all(state.read(code.isa.SP) == Value("stack", 0, 0, 0) for state, _ in left)
    demand(returned, f"the stack pointer is not what it was where {name} returns")
    results = {
        register: reduce(join, [state.read(register) for state, _ in left])
        for register in registers
        if any(own.get(register) != register for _, own in left)
    }
    stores = frozenset(machine.stores) if len(machine.stores) <= _MOST_STORES else frozenset({(ANY, 4, True)})
    unknown = frozenset(place for place in registers_unknown(invariants[graph.entry]) if isinstance(place, str))
    address, _ = graph.nodes[graph.entry]
    return Callee(address, bounds, unknown, results, stores, machine.holds, machine.found_escape)
