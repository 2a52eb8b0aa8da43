"""Functions of which GCC has made one: loops and calls of the one that is kept are those of the others, too."""

import re
import shutil

import pytest

from tests.path_check import check_emulated
from tests.path_check import proved as proved_of
from tests.random_campaign import built
from wcet_probe.analyzer.facts.file import parse_facts
from wcet_probe.analyzer.facts.source_index import index_sources
from wcet_probe.errors import AnalysisError, UsageError

LOOPS = """\
volatile unsigned sink;
__attribute__((noinline)) static void few(unsigned bits)
{
    for (; bits; bits >>= 1) /* loop: of-few */
        sink = bits;
}
__attribute__((noinline)) static void many(unsigned bits)
{
    for (; bits; bits >>= 1) /* loop: of-many */
        sink = bits;
}
void entry(unsigned bits)
{
    few(bits & 7);
    many(bits);
}
"""
INLINED = LOOPS.replace("__attribute__((noinline)) static", "static inline").replace(
    "    few(bits & 7);", "    few(bits & 7);\n    sink = 5;\n    few(bits & 3);\n    many(bits + 1);"
)
TOLD = """
[[loop]]
function = "few"
label = "of-few"
max = 3
because = "few bits are given"
HASH-few

[[loop]]
function = "many"
label = "of-many"
max = 32
optional = true
because = "a word has so many bits"
HASH-many
"""
CALLS = """\
volatile unsigned sink;
__attribute__((noinline)) static void less(unsigned k) { sink = k; }
__attribute__((noinline)) static void more(unsigned k) { sink = k; sink = k; sink = k; sink = k; sink = k; sink = k; }
void (*volatile first)(unsigned) = less;
void (*volatile second)(unsigned) = more;
__attribute__((noinline)) static void low(void (*handler)(unsigned), unsigned k)
{
    sink = 3; handler(k); sink = 5;
}
__attribute__((noinline)) static void high(void (*handler)(unsigned), unsigned k)
{
    sink = 3; handler(k); sink = 5;
}
void entry(unsigned k)
{
    low(first, k);
    high(second, k);
}
"""
TARGETS_TOLD = """
[[calls]]
function = "low"
line = 8
targets = ["less"]
because = "first is less"
HASH-low

[[calls]]
function = "high"
line = 12
targets = ["more"]
because = "second is more"
HASH-high
"""
NEEDS_GCC = pytest.mark.skipif(shutil.which("arm-none-eabi-gcc") is None, reason="needs arm-none-eabi-gcc")


def proved(source: str, facts: str, optimisation: str, compiler: str = "arm-none-eabi-gcc"):
    index = index_sources({"guest.c": source})
    text = re.sub("HASH-([a-z]+)", lambda found: f'sha256 = "{index.function(found[1]).sha256}"', facts)
    guest = built("cortex-m4", compiler, optimisation, source)
    return proved_of(guest, "entry", parse_facts("facts.toml", text), {"guest.c": source})


@NEEDS_GCC
@pytest.mark.parametrize(
    ("source", "optimisation"), [(LOOPS, "-O2"), (LOOPS, "-Os"), (INLINED, "-Os")], ids=["-O2", "-Os", "inlined"]
)
def test_a_loop_of_equal_functions_has_no_fact_of_one(source, optimisation):
    """34 instructions were proved, of three iterations each, and 118 run."""
    with pytest.raises((AnalysisError, UsageError), match=r"no loop of the binary comes|no bound for the loop"):
        proved(source, TOLD, optimisation)


@NEEDS_GCC
def test_functions_that_are_both_there_have_their_own_facts():
    check_emulated(proved(LOOPS, TOLD, "-O0"), 0xFFFFFFFF)


@NEEDS_GCC
def test_a_call_of_equal_functions_has_no_targets_of_one():
    """36 instructions were proved, of two calls of the shorter target, and 41 run."""
    check_emulated(proved(CALLS, TARGETS_TOLD, "-O0"), 3)
    with pytest.raises(AnalysisError, match="not known"):
        proved(CALLS, TARGETS_TOLD, "-O2")


ADDRESS = LOOPS.replace("void entry", "void (*volatile kept)(unsigned) = many;\nvoid entry").replace("many(b", "kept(b")


@NEEDS_GCC
def test_of_functions_whose_addresses_are_taken_any_may_be_meant():
    facts = TOLD + '[[calls]]\nfunction = "entry"\nline = 16\ntargets = ["many"]\nbecause = "so"\nHASH-entry\n'
    with pytest.raises((AnalysisError, UsageError)):
        proved(ADDRESS, facts, "-Os")
