"""Loops that no pragma is found for, bounded by how often the sources call a function in them."""

import pytest

from tests.path_check import attack, proved
from tests.support import guest_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import AnalysisError

NESTED = """\
volatile unsigned sum, next[5] __attribute__((section(".data"))) = {0, 0, 1, 2, 3};
__attribute__((noinline)) void add(unsigned k)
{
    sum += k;
}
void f(void)
{
    add(3);
    _Pragma("loopbound min 3 max 3")
    for (unsigned i = 3; i; i = next[i % 5]) {
        _Pragma("loopbound min 4 max 4")
        for (unsigned k = 4; k; k = next[k % 5]) { WORK
            add(k);
        }
    }
}
"""


def bound_by_calls(source, monkeypatch):
    """The proof where no loop is matched by its lines."""
    nothing = "wcet_probe.analyzer.facts.binding.match_loops"
    monkeypatch.setattr(nothing, lambda sites, _: dict.fromkeys(site.header_address for site in sites))
    monkeypatch.setattr("wcet_probe.analyzer.facts.binding.joined_loops", lambda *_: {})
    text = source.replace("WORK", "")
    return proved(guest_of(text, load_target("cortex-m4"), ".c", "-O2"), "f", sources={"guest.c": text})


def test_calls_of_the_source_bound_the_rounds_that_make_them(monkeypatch):
    """One call in front of the loops, and 3 times 4."""
    proof = bound_by_calls(NESTED, monkeypatch)
    assert {loop.max for loop in proof.bound.loops} == {14}
    told = next(one for one in proof.bound.assumptions if one.id.startswith("rounds "))
    assert (told.id, "add is called at most 13 times" in told.statement) == ("rounds guest.c:2", True)
    attack(proof)


def test_all_calls_together_are_no_more_than_the_source_makes(monkeypatch):
    """Each loop alone may have 14 rounds for each entry."""
    assert bound_by_calls(NESTED, monkeypatch).bound.instructions < 14 * 30


ROUND = '    __asm__ volatile("1: subs %0, %0, #1\\n bne 1b" : "+r"(k) : : "cc", "memory");'


@pytest.mark.parametrize(
    "source",
    [
        NESTED.replace("WORK", "if (next[k])"),
        NESTED.replace("void add", "unsigned add").replace("sum += k;", "return sum += k;"),
        NESTED.replace('    _Pragma("loopbound min 3 max 3")\n', ""),
        NESTED.replace("add(3);", "add(3); if (next[4] > 4) f();"),
        NESTED.replace("void f", "void (*kept)(unsigned) = add;\nvoid f"),
        NESTED.replace("    sum += k;", ROUND),
    ],
    ids=["not in each round", "a value", "no pragma", "recursion", "by its address", "starts with a loop"],
)
def test_calls_that_are_not_clearly_as_many_bound_nothing(source, monkeypatch):
    with pytest.raises(AnalysisError):
        bound_by_calls(source, monkeypatch)


def test_a_function_that_may_be_another_one_bounds_nothing_by_gcc(monkeypatch):
    """GCC makes one function of two that are equal; of one that is not there it may be the other."""
    monkeypatch.setattr("wcet_probe.analyzer.facts.restrictions.functions_of_clang", lambda _: frozenset())
    other = "static void other(unsigned k)\n{\n    sum += k;\n}\nvoid f"
    source = NESTED.replace("void f", other).replace("add(3)", "other(3)")
    with pytest.raises(AnalysisError, match="no bound for the loops"):
        bound_by_calls(source, monkeypatch)
    bound_by_calls(NESTED, monkeypatch)


def test_code_without_a_source_that_calls_the_function_is_asked_for():
    """Calls that are not expanded say where they go: a library may call back what the sources define."""
    guest = guest_of(NESTED.replace("WORK", ""), load_target("cortex-m4"), ".c", "-O2")
    prepared = proved(guest, "f", sources={"guest.c": NESTED.replace("WORK", "")}).stage.prepared
    functions = frozenset({"f"})
    add = guest.image.symbols["add"].address
    assert not prepared._calls_of(functions, told=False)
    assert prepared._calls_of(functions, told=True) == {("f", add)}


@pytest.mark.covering(0)
@pytest.mark.parametrize("source", ["", "add(6);"], ids=["nowhere", "once"])
def test_a_division_that_the_source_defines_is_called_more_often_than_it_says(source):
    """One call bounded four rounds, and with none no path was left."""
    text = NESTED.replace("add(3);", source).replace("WORK", "").replace('_Pragma("loopbound min 3 max 3")', "")
    text = text.replace("add(k);", "sum += sum / next[4];").replace("add", "__aeabi_uidiv")
    text = text.replace('_Pragma("loopbound min 4 max 4")', "")
    with pytest.raises(AnalysisError, match="no bound for the loops"):
        proved(guest_of(text, load_target("arm926ej-s"), ".c", "-O2"), "f", sources={"guest.c": text})


UNROLLED = """\
volatile unsigned sum;
unsigned left = 5;
__attribute__((noinline)) VALUE add(void)
{
    sum += 3;
    RETURN
}
void f(void)
{
    _Pragma("loopbound min 5 max 5")
    _Pragma("clang loop unroll_count(2)")
    while (left-- > 0)
        add();
}
"""


def test_calls_of_an_unrolled_loop_are_no_more_than_the_source_makes():
    """No register holds the counter, so that the pragma is up to two times too much; the calls are told."""
    bounds = {}
    for kind, value in {"void": "", "unsigned": "return 3;"}.items():
        text = UNROLLED.replace("VALUE", kind).replace("RETURN", value)
        proof = proved(guest_of(text, load_target("mpc603e"), ".c", "-O2"), "f", sources={"guest.c": text})
        attack(proof)
        told = {one.id: one.statement for one in proof.bound.assumptions}
        assert "up to 2 times too much" in told["pragma guest.c:10"]
        assert ("rounds guest.c:3" in told) == (kind == "void")
        bounds[kind] = proof.bound.instructions
    assert 2 * bounds["void"] < 1.3 * bounds["unsigned"]
