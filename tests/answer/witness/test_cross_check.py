"""Whatever the second engine counts otherwise is a contradiction."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.answer.false_claims import AFTER_CALL, HEAP_BYTES, LOAD, TARGET, at, heap, proof, register, without
from wcet_probe.answer.witness.cross_check import Call, cross_check
from wcet_probe.build.program import Program
from wcet_probe.errors import ContradictionError
from wcet_probe.model.proof import FlowGraph
from wcet_probe.model.scenario import InitialCache

pytestmark = pytest.mark.usefixtures("each_engine")


@pytest.mark.parametrize(
    "count",
    ["instructions", "loads", "stores", "result", "icache", "dcache", "writebacks", "path", "register", "access"],
)
def test_the_second_engine_disagrees(count):
    guest, bound = proof().guest, proof().bound
    with guest.machine(HEAP_BYTES) as machine:
        call = Call("f", machine.entry_registers((heap(),)), machine.memory.snapshot(), InitialCache.DIRTY)
        seen = machine.measure("f", (heap(),), InitialCache.DIRTY)
    program = Program.__new__(Program)
    for name, value in (("target", TARGET), ("image", guest.image)):
        object.__setattr__(program, name, value)
    assert cross_check(program, bound, call, seen, "a test").returns == 1
    icache, dcache = seen.icache, seen.dcache
    lies = {
        "icache": {"icache": replace(icache, read_misses=icache.read_misses + 1)},
        "dcache": {"dcache": replace(dcache, read_misses=dcache.read_misses + 1)},
        "writebacks": {"dcache": replace(dcache, writebacks=dcache.writebacks + 1)},
    }
    if count == "path":
        bound = replace(bound, graph=FlowGraph(bound.graph.blocks, ()))
    elif count == "register":
        bound = replace(bound, registers=(register(7),), points=((at(AFTER_CALL), ()),))
    elif count == "access":
        bound = without(LOAD)
    else:
        seen = replace(seen, **(lies[count] if count in lies else {count: getattr(seen, count) + 1}))
    with pytest.raises(ContradictionError):
        cross_check(program, bound, call, seen, "a test")
