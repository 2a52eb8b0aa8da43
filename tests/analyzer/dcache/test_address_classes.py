"""Residue classes of addresses against the addresses themselves, and against what facts say."""

from __future__ import annotations

import pytest

from tests.end_to_end.test_cache_soundness import analysed
from tests.support import assembler, guest_of
from wcet_probe.analyzer.dcache.address_classes import AddressClasses
from wcet_probe.analyzer.dcache.asserted_alignment import asserted_of
from wcet_probe.analyzer.domains.congruences import Congruence
from wcet_probe.analyzer.facts.memory import PointerFacts, Pointers
from wcet_probe.analyzer.values.properties.congruences import Congruences
from wcet_probe.catalog.lookup import load_target

CASES = {
    "an argument": ("ldr r0, [r0, #2]", 1, Congruence(1, 0)),
    "an argument of which a fact speaks": ("ldr r0, [r0, #2]", 8, Congruence(8, 2)),
    "a multiple": ("lsls r0, r0, #2\nldr r0, [r0, #1]", 8, Congruence(4, 1)),
    "the stack": ("ldr r0, [sp, #6]", 1, Congruence(8, 6)),
    "the stack and an index": ("and r1, r1, #6\nadd r1, sp\nldr r0, [r1, #1]", 1, Congruence(2, 1)),
    "two arguments": ("ldr r0, [r0, r1, lsl #1]", 8, Congruence(2, 0)),
}


@pytest.mark.parametrize("case", CASES)
def test_the_class_of_an_address(case):
    body, multiple_of, expected = CASES[case]
    target = load_target("cortex-m4")
    prepared = analysed(guest_of(assembler({"f": f"{body}\nbx lr"}, target), target), "f").prepared
    classes = AddressClasses(Congruences(prepared.values, 32), PointerFacts(Pointers(multiple_of, where="f:1"), {}), 32)
    (access,) = prepared.values.accesses[0]
    asserted = asserted_of(access, classes.pointers)
    assert classes.of_address(access, asserted) == expected
    observable = classes.observable(access)
    assert all(
        one % expected.modulus == expected.residue for one in (observable.low, observable.low + observable.stride)
    )
    assert classes.fact_of(access) == ("f:1" if asserted else "")
