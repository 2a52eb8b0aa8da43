"""Facts about points of code that GCC has optimised: one piece of it may be of several places of the source.

Tests: analyzer.facts.flow, analyzer.facts.restrictions.
"""

import pytest

from tests.analyzer.facts.test_flow import hashed, with_facts
from tests.analyzer.facts.test_merged_functions import NEEDS_GCC
from tests.path_check import attack, check_emulated
from tests.path_check import proved as proved_of
from tests.random_campaign import built
from wcet_probe.analyzer.facts.file import parse_facts

JOINED_STORES = """\
volatile unsigned sink;
unsigned table[16];
void entry(unsigned n)
{
    for (unsigned i = 0; i < 16; i++) {
        if (i == n)
            /* point: once */
            table[i] = 5;
        else
            table[i] = n;
    }
}
"""
ONE_OF_THREE = """\
unsigned table[16];
volatile unsigned sink;
void entry(unsigned n)
{
    table[0] = n;
    for (unsigned i = 0; i < 16; i++) {
        sink = i;
        if (table[i] == n + 1)
            /* point: once */
            table[0] = i;
        sink = table[0];
    }
}
"""
ONCE = """
[[flow]]
function = "entry"
sum = { "point once" = 1 }
max = 1
because = "one round is number n"
"""


@NEEDS_GCC
@pytest.mark.parametrize("target", ["cortex-m4", "arm926ej-s"])
@pytest.mark.parametrize("optimisation", ["-O0", "-O1", "-Os"])
@pytest.mark.parametrize("source", [JOINED_STORES, ONE_OF_THREE], ids=["two stores", "a store before"])
def test_a_store_that_gcc_executes_on_all_ways_counts_only_without_optimisation(target, optimisation, source):
    """GCC makes one store of those of both ways, with the line of one: one round was all there was."""
    guest = built(target, "arm-none-eabi-gcc", optimisation, source)
    own = proved_of(guest, "entry", parse_facts("facts.toml", hashed(ONCE, source)), {"guest.c": source})
    check_emulated(own, 3)
    assert attack(own, 3) <= own.bound.instructions
    assert len(own.bound.flow_claims) == (optimisation == "-O0")


CALLED_ONCE = """\
volatile unsigned sink;
__attribute__((noinline)) static void report(unsigned k) { sink = k; }
void entry(unsigned n)
{
    for (unsigned i = 0; i < 16; i++)
        if (i == n)
            /* point: once */
            report(i);
}
"""
NEVER = """
[[infeasible]]
function = "entry"
point = "once"
because = "no round is number n"
"""


@pytest.mark.parametrize("fact", [ONCE, NEVER], ids=["flow", "infeasible"])
def test_of_code_that_may_be_of_several_places_only_a_call_that_is_nowhere_else_counts(fact, monkeypatch):
    monkeypatch.setattr("wcet_probe.analyzer.facts.flow.unshared_functions", lambda _: frozenset())
    monkeypatch.setattr("wcet_probe.analyzer.facts.restrictions.functions_of_clang", lambda _: frozenset())
    assert len(with_facts(CALLED_ONCE, "cortex-m4", fact).bound.flow_claims) == 1
    other = "        if (i == n + 7) {\n sink = 9;\n report(i);\n sink = 8;\n } else if (i"
    twice = CALLED_ONCE.replace("        if (i", other)
    (idle,) = with_facts(twice, "cortex-m4", fact).bound.idle_facts
    assert "code of several places" in idle.why
