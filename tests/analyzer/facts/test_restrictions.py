"""Pragmas ``marker`` and ``flowrestriction``, on code of the packaged Clang, held against executions."""

import re
from functools import cache

import pytest

from tests.path_check import attack, check_emulated, proved
from tests.support import TARGETS, guest_of
from wcet_probe.analyzer.bound import prove
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.catalog.lookup import load_target

SOURCE = """\
volatile unsigned sink;
volatile unsigned total;
unsigned lengths[8] = {5, 0, 1, 3, 1, 2, 0, 0};
unsigned widths[8] = {5, 5, 5, 5, 5, 5, 5, 5};

static __attribute__((noinline)) void emit(unsigned n) { sink = n; sink = n + 1; sink = n + 2; }

unsigned triangle(unsigned n)
{
    _Pragma("marker outside")
    sink = n;
    _Pragma("loopbound min 0 max 8")
    for (unsigned i = 0; i < n; i++)
        _Pragma("loopbound min 0 max 8")
        for (unsigned j = 0; j < i; j++) {
            _Pragma("marker inside")
            emit(j);
        }
    _Pragma("flowrestriction 1*inside <= 28*outside")
    return n;
}

unsigned calls(unsigned rows)
{
    _Pragma("marker begin")
    sink = rows;
    _Pragma("loopbound min 0 max 8")
    for (unsigned r = 0; r < rows; r++)
        _Pragma("loopbound min 0 max 5")
        for (unsigned i = 0; i < lengths[r]; i++)
            emit(i);
    _Pragma("flowrestriction 2*emit <= 24*begin")
    return rows;
}

static __attribute__((noinline)) unsigned emitted(unsigned row)
{
    _Pragma("loopbound min 0 max 8")
    for (unsigned i = 0; i < widths[row]; i++)
        emit(i);
    return row;
}

unsigned summed(unsigned rows)
{
    _Pragma("loopbound min 0 max 8")
    for (unsigned r = 0; r < rows; r++) {
        _Pragma("marker row")
        total += emitted(r);
    }
    _Pragma("flowrestriction 1*emit <= 5*row")
    return rows;
}

unsigned unclear(unsigned n)
{
    unsigned sum = 0;
    _Pragma("loopbound min 0 max 9")
    for (unsigned i = 0; i < n; i++) {
        _Pragma("marker computed")
        sum += i * n;
    }
    sink = sum;
    _Pragma("flowrestriction 1*computed <= 9*unclear")
    if (n & 1) {
        _Pragma("marker tested")
        if (n & 4) {
            sink = n;
            emit(n);
        }
        sink = 4;
    }
    _Pragma("flowrestriction 1*tested <= 1*unclear")
    _Pragma("flowrestriction 1*emit <= 3*tested_often")
    for (unsigned i = 0; i < (n & 7); i++) {
        _Pragma("marker tested_often")
        emit(n);
    }
    _Pragma("flowrestriction 1*emit <= 3*nowhere")
    _Pragma("flowrestriction 1*emit is 3*begin")
    emit(sum);
    return sum;
}

static inline void note(unsigned n)
{
    _Pragma("marker noted")
    sink = n;
    _Pragma("flowrestriction 1*emit <= 1*noted")
}

unsigned copied(unsigned n)
{
    note(n);
    emit(n);
    note(n + 1);
    return n;
}
"""


@cache
def guest(target):
    return guest_of(SOURCE, load_target(target), ".c")


@cache
def proof(target, entry, source=SOURCE):
    return proved(guest(target), entry, sources={"guest.c": source})


@pytest.mark.covering(1)
@pytest.mark.parametrize(
    ("entry", "longest", "runs", "most_sum"),
    [("triangle", 8, (0, 1, 5), 28), ("calls", 8, (0, 3), 24), ("summed", 8, (0, 3), 40)],
)
@pytest.mark.parametrize("target", TARGETS)
def test_a_restriction_limits_a_sum_and_runs_are_held_against_it(target, entry, longest, runs, most_sum):
    proof_of = proof(target, entry)
    most = max(attack(proof_of, argument) for argument in (longest, *runs))
    check_emulated(proof_of, longest)
    without = proof(target, entry, re.sub(r'_Pragma\("flow.*', "", SOURCE))
    assert most <= proof_of.bound.instructions < without.bound.instructions
    assert proof_of.bound.instructions < 1.5 * most
    bodies = {one.id.removeprefix("body ") for one in proof_of.bound.assumptions if one.id.startswith("body ")}
    (claim,) = [one for one in proof_of.bound.flow_claims if one.where not in bodies]
    assert claim.constant == most_sum
    assert f"pragma {claim.where}" in [one.id for one in proof_of.bound.assumptions]


def test_what_is_not_clear_is_left_out_and_the_answer_says_why():
    whys = " ".join(one.why for one in proof("cortex-m4", "unclear").bound.idle_facts)
    for words in (
        "the statement of marker 'computed' has no calls",
        "the statement of marker 'tested' has no calls",
        r"'tested_often' is executed at most is not clear: no pragma says how often the loop at guest.c:\d+",
        "no marker or function 'nowhere'",
        "is no relation of two sums",
    ):
        assert re.search(words, whys), words
    assert not proof("cortex-m4", "unclear").bound.flow_claims


@pytest.mark.parametrize("target", TARGETS)
def test_a_marker_in_a_function_that_is_inlined_twice_counts_as_often_as_that_is_called(target):
    proof_of = proof(target, "copied")
    assert [one.constant for one in proof_of.bound.flow_claims] == [2]
    attack(proof_of, 3)


COPIES = """volatile unsigned sink, total; unsigned rounds[8] = {10};
static __attribute__((noinline)) void emit(unsigned n) { sink = n; sink = n + 1; sink = n + 2; }
#ifdef __ARM_ARCH_5TEJ__
unsigned __aeabi_uidiv(unsigned a, unsigned b)
{ unsigned q = 0; for (int k = 31; k >= 0; k--) if (a >> k >= b) { a -= b << k; q |= 1u << k; } return q; }
#endif
unsigned f(unsigned x)
{
    unsigned y = sink, t[2] = {%s}, v[2] = {0};
    _Pragma("loopbound min 2 max 2") _Pragma("clang loop unroll(full)")
    for (unsigned i = 0; i < 2; i++) {
        _Pragma("marker round")
        %s
    }
    _Pragma("loopbound min 0 max 100")
    for (unsigned j = 0; j < rounds[0]; j++)
        emit(j);
    _Pragma("flowrestriction 1*emit <= 5*round")
    return v[0] + 3 * v[1];
}
"""


@pytest.mark.parametrize(
    ("target", "numbers", "statement"),
    [
        ("arm926ej-s", "x | 1, 8", "total += y / t[i];"),
        ("arm926ej-s", "x | 1, 8", "v[i] = y / t[i];"),
        *((target, "1, 0", "if (y & t[i])\n            sink = 8;") for target in TARGETS),
    ],
)
def test_a_marker_counts_by_the_source_whatever_a_copy_of_its_statement_is_without(target, numbers, statement):
    # Given: two rounds, of which the second is folded: a division by 8, and a branch that is never taken
    source = COPIES % (numbers, statement)
    proof_of = proved(guest_of(source, load_target(target), ".c"), "f", sources={"guest.c": source})

    # When: ten calls are made, five for each round of the source
    executed = max(attack(proof_of, argument) for argument in (0, 1, 7))

    # Then: they are not limited by the one round that is left
    assert executed <= proof_of.bound.instructions
    assert [one.constant for one in proof_of.bound.flow_claims if "1*emit" in one.statement] == [10]


SEEN = """volatile unsigned sink;
static __attribute__((noinline)) void emit(unsigned n) { sink = n; }
__attribute__((noinline)) void work(unsigned n)
{
    _Pragma("marker outside")
    sink = n;
    _Pragma("loopbound min 0 max 100")
    for (unsigned i = 0; i < n; i++) {
        _Pragma("marker inside")
        emit(i);
    }
    _Pragma("flowrestriction 1*inside <= 6*outside")
}
"""
UNSEEN = """__attribute__((noinline)) void over(unsigned n)
{
    for (unsigned i = 0; i < 10; i++)
        work(n & 3);
}
"""
ENTRY = """void over(unsigned n);
void work(unsigned n);
void entry(unsigned n) { over(n); work(1); }
"""


@pytest.mark.parametrize(
    ("entry", "seen", "why"),
    [
        ("over", {"guest.c": SEEN}, "the sources have no functions over|over is not of the sources"),
        ("entry", {"guest.c": SEEN, "entry.c": ENTRY}, "over is not of the sources"),
        ("entry", {"guest.c": SEEN, "entry.c": ENTRY, "other.c": UNSEEN}, "no pragma says .* the loop at other.c:3"),
    ],
)
def test_code_whose_source_is_not_there_may_call_what_has_one(entry, seen, why):
    # Given: ten calls of work, three rounds in each, and a source that is there or not
    text = f'{SEEN}#line 1 "other.c"\n{UNSEEN}#line 1 "entry.c"\n{ENTRY}'
    own = guest_of(text, load_target("cortex-m4"), ".c")

    # When: the pragma speaks of rounds by the executions of a marker
    proof_of = proved(own, entry, sources=seen)

    # Then: how often that is does not follow, and no run is above the bound
    assert proof_of.bound.flow_claims == ()
    assert any(re.search(why, one.why) for one in proof_of.bound.idle_facts)
    assert attack(proof_of, 3) <= proof_of.bound.instructions


APART = """volatile unsigned sink;
static __attribute__((noinline)) void emit(unsigned n) { sink = n; }
__attribute__((noinline)) void tick(unsigned n)
{
    _Pragma("marker outside")
    sink = n;
}
void far(unsigned n);
void entry(unsigned n)
{
    CALLS
    tick(n);
    _Pragma("loopbound min 0 max 100")
    for (unsigned i = 0; i < n; i++)
        emit(i);
    _Pragma("flowrestriction 1*emit <= 2*outside")
}
#line 1 "other.c"
__attribute__((noinline)) void over(unsigned n)
{
    _Pragma("loopbound min 0 max 9")
    for (unsigned i = 0; i < 9; i++)
        tick(n);
}
__attribute__((noinline)) void far(unsigned n)
{
    over(n);
    sink = n;
}
"""


@pytest.mark.parametrize(("calls", "most"), [("far(n);", 10), ("far(n); far(n + 1);", 19)])
def test_a_call_that_is_not_expanded_may_lead_from_code_without_its_source_to_what_has_one(monkeypatch, calls, most):
    # Given: one of the functions whose source is not there, or both, are in calls that are not expanded
    monkeypatch.setattr("wcet_probe.analyzer.resolved_values.MOST_EXPANDED", 12)
    source = APART.replace("CALLS", calls)
    own = guest_of(source, load_target("cortex-m4"), ".c")
    shown, hidden = source.split('#line 1 "other.c"\n')

    def restricted(sources):
        parts = own.image, own.target, own.instructions, own.costs, "entry"
        found = prove(BoundRequest(*parts, Facts(), sources, {}, summaries=True))
        return [one.constant for one in found.flow_claims if "1*emit" in one.statement], found.idle_facts

    assert restricted({"guest.c": shown, "other.c": hidden}) == ([2 * most], ())
    claims, idle = restricted({"guest.c": shown})
    assert not claims
    assert any(re.search("(far|over) is not of the sources", one.why) for one in idle)
