"""Each module of the analysis of data caches opens with an example that it works out, and that is run here.

Tests: analyzer.dcache.analysis, analyzer.dcache.misses, analyzer.dcache.scopes, analyzer.dcache.symbolic_blocks.
"""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from dataclasses import dataclass
from functools import cache

import pytest

from tests.end_to_end.test_cache_soundness import analysed, with_cache
from tests.support import guest_of
from wcet_probe.analyzer import dcache
from wcet_probe.analyzer.dcache.access_steps import is_sure, steps_of
from wcet_probe.analyzer.dcache.analysis import RelationalAnalysis, analyze
from wcet_probe.analyzer.dcache.misses import DataMisses, data_misses
from wcet_probe.analyzer.dcache.resident_at_entry import resident_lines
from wcet_probe.analyzer.dcache.scopes import Scopes
from wcet_probe.analyzer.dcache.strided_traversals import StridedTraversals
from wcet_probe.analyzer.dcache.symbolic_blocks import SymbolicBlocks
from wcet_probe.analyzer.facts.memory import PointerFacts, Pointers
from wcet_probe.analyzer.values.result import Values
from wcet_probe.catalog.lookup import load_target

MODULES = sorted(module.name for module in pkgutil.iter_modules(dcache.__path__))


@dataclass(frozen=True)
class Example:
    """What the stages make of the function ``f`` of a C source, on mpc603e with a small cache of data alone."""

    values: Values
    pointers: PointerFacts
    lines: SymbolicBlocks
    traversals: StridedTraversals
    analysis: RelationalAnalysis
    steps: dict[int, tuple]
    named: dict[int, list]
    scopes: Scopes
    data: DataMisses

    def blocks(self):
        """Of each access, in order: load or store, the reference group and the granule."""
        return [
            ("store" if access.is_store else "load", line and (line.group, line.granule))
            for point in sorted(self.values.states)
            for access in self.lines.accesses(point)
            for line in (self.lines.of_access(access),)
        ]

    def verdicts(self):
        """Of each access, in order: what is known of it."""
        return [
            "hit" if one.is_hit else "persistent" if one.is_persistent else "miss"
            for point in sorted(self.values.states)
            for one in self.analysis.verdicts[point]
        ]


@cache
def example(source: str, alignment_bytes: int = 16, spec: str = "d:sets=16,ways=2,line=32,policy=lru") -> Example:
    """``source`` analysed; of pointers it is asserted that they are multiples of ``alignment_bytes``."""
    guest = guest_of(source, load_target("mpc603e"), ".c")
    target = with_cache(guest.target, spec)
    values, pointers = analysed(guest, "f").prepared.values, PointerFacts(Pointers(alignment_bytes), {})
    lines = SymbolicBlocks(values, target.dcache, pointers)
    traversals = StridedTraversals(values, lines, target.dcache)
    steps = {point: tuple(steps_of(values, point, lines, target, traversals)) for point in sorted(values.states)}
    named = {point: [step.line for step in own] for point, own in steps.items()}
    analysis = analyze(values, lines, named, target.dcache, traversals.found)
    sure = {point: {one.line.line for one in own if is_sure(one)} for point, own in steps.items()}
    scopes = Scopes(values, sure, resident_lines(values, named, analysis))
    data = data_misses(values, target, pointers)
    return Example(values, pointers, lines, traversals, analysis, steps, named, scopes, data)


@pytest.mark.parametrize("name", MODULES)
def test_the_example_of_a_module_holds(name):
    module = importlib.import_module(f"{dcache.__name__}.{name}")
    found = doctest.DocTestParser().get_doctest(module.__doc__, {**vars(module), "example": example}, name, None, 0)
    assert found.examples
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(found)
    assert not runner.summarize(verbose=False).failed
