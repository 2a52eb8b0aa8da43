"""Code that the checker must follow: calls, saved registers of either file, tables, counters on the stack.

Tests: certificate.kernel.coverage, certificate.kernel.charge, certificate.check.
"""

import json
from dataclasses import replace
from itertools import pairwise
from unittest.mock import patch

import pytest

from tests.certificate.forgeries import problem_of, sealed, solved_again
from tests.support import TARGETS, assembler, guest_of
from wcet_probe.analyzer import prepared
from wcet_probe.analyzer.bound import prove
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.ipet.certificate import certificate
from wcet_probe.analyzer.ipet.flow_system import flow_system, solve
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.check import check_bound
from wcet_probe.certificate.facts.asserted import Asserted
from wcet_probe.certificate.facts.findings import Binary
from wcet_probe.certificate.kernel.charge import edge_cost
from wcet_probe.errors import VerificationError
from wcet_probe.model.scenario import InitialCache
from wcet_probe.reports.formats.bound_document import bound_section

CODE = {
    "calls": "int g(int a) { return a * 3; }\nint f(int a) { return g(a) + g(a + 1); }",
    "saved registers": """
        __attribute__((noinline)) int g(int *p, int n) { return p[n & 3] + n; }
        int f(int n) { int a[4] = {1, 2, 3, n}; int s = 0; for (int i = 0; i < 9; i++) s += g(a, i); return s; }
    """,
    "a table": """
        int f(int n) { switch (n) { case 0: return 7; case 1: return 9; case 2: return n * 5; case 3: return 1;
        case 4: return n ^ 77; case 5: return n << 3; case 6: return 12; default: return 0; } }
    """,
    "a counter on the stack": """
        int f(void) { volatile int k; int s = 0; for (k = 0; k < 10; k++) s += 2; return s; }
    """,
    "nested loops": """
        unsigned g[64];
        unsigned f(void) { unsigned s = 0; for (int i = 0; i < 8; i++) for (int j = 0; j < 8; j++) s += g[8 * i + j];
        return s; }
    """,
    "a start below 0": """
        volatile int port;
        int f(int n) { int s = 0; for (int i = 0; i < 10; i++) for (int j = 0; j < 12; j += 3) s += port * n;
        return s; }
    """,
    "a way out by predicates": """
        int g[32]; volatile int port;
        int f(int n) { for (int i = 0; i < 32; i++) if (g[i] == n) return i * port; return -1; }
    """,
    "a carry out": """
        volatile int port;
        int f(int n) { int i, s = 0; if (n > 0) { port = 1; i = 2; } else { port = 2; i = 25; }
        do s += port; while (++i < 40); return s; }
    """,
    "a number masked out of a word of the stack": """
        volatile int port;
        int f(int n) { int a[8]; for (int i = 0; i < 8; i++) a[i] = 4; a[n & 7] = 25; int m = a[2] & 31, s = 0;
        for (int i = 0; i < m; i++) s += port; return s; }
    """,
    "a static word": """
        volatile int port; volatile int b[32];
        int f(int n) { b[3] = 2; b[n & 31] = 30; int m = b[3], s = 0; for (int i = 0; i < 40 && i < m; i++) s += port;
        return s; }
    """,
    "a table of signed numbers": """
        volatile int port; const signed char starts[4] = {-30, 5, 2, 9};
        int f(int n) { int s = 0; for (int i = starts[n & 3]; i < 10; i++) s += port; return s; }
    """,
    "compared before it is changed": """
        volatile int port;
        int f(unsigned n) { int s = 0; n |= 1; while (n > 1) { n >>= 2; s += port; } return s; }
    """,
    "steps by a register": """
        volatile int port;
        int f(void) { unsigned size = 16, o = 0; int s = 0; __asm__ volatile("" : "+r"(size));
        do { s += port; o += size; } while (o + size < 512); return s; }
    """,
    "a device register": "int f(int n) { *(volatile int *)0x40021000 = n; return n + 1; }",
    "loads by an index beside a frame that holds a stack address": """
        int g[64]; __attribute__((noinline)) int h(int n) { return n * 3; }
        int f(int n) { int s = h(n); for (int i = 0; i < 64; i++) s += g[i]; return s + h(s); }
    """,
    "bits": "int f(unsigned n) { int k = 0; n &= 0xFFF; while (n) { k += n & 1; n >>= 1; } return k; }",
}


@pytest.mark.covering
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CODE)
def test_instructions_are_checked_in_full(name, target):
    open_ones = not_checked(guest_of(CODE[name], load_target(target), ".c"))
    assert open_ones <= {"costs in cycles", "limits of misses in cycles"}


def test_code_whose_frame_holds_a_stack_address_may_load_by_an_index():
    """Each frame of PowerPC does; that loads find none was assumed and not listed, so that a true bound was refused."""
    on = guest_of(CODE["loads by an index beside a frame that holds a stack address"], load_target("mpc603e"), ".c")
    assert "graph" not in not_checked(on)
    assert "stack-separation" in {one["id"] for one in document_of(on)[0]["bound"]["assumptions"]}


def document_of(on):
    """A proof of ``f``, and what it is checked against."""
    bound = prove(BoundRequest(on.image, on.target, on.instructions, on.costs, "f", Facts(), {}, {}))
    section = json.loads(json.dumps(bound_section(bound)))
    document = {"image": {"sha256": on.image.sha256}, "target": on.target.name, "bound": section}
    return document, Binary(on.image, on.instructions, on.costs, on.target, Asserted(), {})


def not_checked(on):
    """What the checker leaves open of a proof of ``f``."""
    return {one.check for one in check_bound(*document_of(on)).findings if one.verdict != "ok"}


JUMPS = {
    "cortex-m4": "ldr r3, =next\n cmp r0, #3\n it eq\n bxeq r3\n.globl next\n.thumb_func\nnext: bx lr",
    "arm926ej-s": "ldr r3, =next\n cmp r0, #3\n bxeq r3\n.globl next\nnext: bx lr",
}


@pytest.mark.parametrize("name", JUMPS)
def test_an_indirect_jump_to_the_next_instruction_is_charged_as_executed_where_it_is_taken(name):
    target = load_target(name)
    guest = guest_of(assembler({"f": JUMPS[name]}, target), target)
    costs = {one.address: cost for one, cost in zip(guest.instructions, guest.costs, strict=True)}
    last, following = next((a, b) for a, b in pairwise(guest.instructions) if a.text.startswith("bxeq"))
    assert edge_cost(last, following.address, costs, "cycles") == 0
    least = edge_cost(last, following.address, costs, "cycles", is_gone=True)
    assert least == costs[last.address].executed_cycles - costs[last.address].skipped_cycles > 0
    with patch.object(prepared, "taken_cycles", return_value=0), pytest.raises(VerificationError, match="at least"):
        not_checked(guest)
    assert "graph" not in not_checked(guest)


ON_A_BRANCH = """
 cmp r0, #0
 beq 1f
1: ite lo
 movlo r2, #1
 movhs r2, #2
 bhs 2f
2: b 3f
3: add r0, r0, r2
 bx lr
"""
UNOPTIMISED = """
    volatile int port;
    int f(int n) { int s = 0; for (int i = 0; i < 9; i++) { if (n > i) s += port; else s -= 2; } return s; }
"""


WHERE_IT_IS = """
 mflr 0
 bcl 20, 31, 1f
1: mflr 9
 mtlr 0
 lwz 3, 2f-1b(9)
 blr
2: .long 5
"""


def test_code_that_asks_where_it_is_calls_nothing():
    """As GCC's position-independent code does; a true bound was refused, as its block ended there for the checker."""
    target = load_target("mpc603e")
    assert not_checked(guest_of(assembler({"f": WHERE_IT_IS}, target), target)) == set()


BY_ITS_ADDRESS = """
 ldr r3, 2f
1: add r3, pc
 mov r2, pc
 str r0, [r3]
 bx lr
 .balign 4
2: .long own - (1b + 4)
 .bss
own: .space 8
 .text
"""


def test_data_that_thumb_code_finds_by_its_own_address_is_known():
    """A store there, as of GCC's position-independent code, was one to anywhere: true bounds were refused."""
    target = load_target("cortex-m4")
    on = guest_of(assembler({"f": BY_ITS_ADDRESS}, target), target)
    assert not_checked(on) == set()
    assert "stack-separation" not in {one["id"] for one in document_of(on)[0]["bound"]["assumptions"]}


BY_HALF_A_WORD = """
 sub sp, #8
 ldr r1, =0x30002; ldr r2, =words
 str r1, [sp, #4]
 ldrh r1, [sp, #4]
 and r1, r1, #3
 str r0, [r2, r1, lsl #2]
 add sp, #8; bx lr
 .ltorg; .comm words, 16, 4
"""


@pytest.mark.parametrize("target", ["cortex-m4", "arm926ej-s"])
def test_a_store_of_which_the_analysis_knows_more_leaves_the_graph_not_checked(target):
    """The half is 2, so that nothing was assumed of the store; it is one to four words here, and was refused."""
    core = load_target(target)
    on = guest_of(assembler({"f": BY_HALF_A_WORD}, core), core)
    assert "stack-separation" not in {one["id"] for one in document_of(on)[0]["bound"]["assumptions"]}
    assert not_checked(on) == {"graph"}


SKIPPED = {
    "a load": "cmp r0, r0\n ldrne r1, [sp, #-4]\n bx lr",
    "two stores": "cmp r0, r0\n strdne r2, r3, [sp, #-8]\n bx lr",
    "a return": "push {r4, lr}\n cmp r0, r0\n popne {r4, pc}\n pop {r4, pc}",
}


@pytest.mark.parametrize("name", SKIPPED)
def test_what_is_surely_skipped_waits_for_memory_where_no_data_is_cached(name):
    """Such a bound charged nothing of it, which nobody shows, and was refused."""
    core = replace(load_target("arm926ej-s"), icache=None, dcache=None)
    on = guest_of(assembler({"f": SKIPPED[name]}, core), core)
    assert not_checked(on) <= {"graph"}
    with on.machine() as machine:
        assert machine.measure("f", (1,), InitialCache.DIRTY).cycles <= document_of(on)[0]["bound"]["cycles"]


NEVER_TAKEN = """
 and r2, r1, #7
 cmp r0, #0
 bhs 1f
 adds r3, #1
1: add r0, r2, r2
 bx lr
"""


def test_nothing_needs_to_hold_behind_what_is_never_executed():
    """The analysis follows both ways of the branch, the checker sees that no word is below 0."""
    target = load_target("cortex-m4")
    assert not_checked(guest_of(assembler({"f": NEVER_TAKEN}, target), target)) == set()


def test_a_direct_branch_to_the_next_instruction_falls_into_it():
    """Whether it is taken or not: what holds behind it is what holds on both ways."""
    target = load_target("cortex-m4")
    on = guest_of(assembler({"f": ON_A_BRANCH}, target), target)
    assert not_checked(on) == set()
    document, binary = document_of(on)

    def less(problem, derivations, followed):
        (node,) = problem.nodes
        return replace(problem, nodes=(replace(node, cost=node.cost - 1),)), derivations, followed

    with pytest.raises(VerificationError, match="costs at least"):
        check_bound(solved_again(document, less), binary)


@pytest.mark.parametrize("target", ["cortex-m7", "mpc603e"])
def test_code_that_is_not_optimised_is_checked_in_full(target):
    """A compiler then jumps to what follows. No stray is chosen, as the checker says nothing of what these leave."""
    with patch("wcet_probe.analyzer.prepared.Bounded.relieved", lambda *_: None):
        assert not_checked(guest_of(UNOPTIMISED, load_target(target), ".c", "-O0")) == set()


def test_what_strays_leave_is_not_checked():
    """Some accesses are strays there, so that other lines are kept: fewer cycles, of which the checker is not sure."""
    on = guest_of(UNOPTIMISED, load_target("cortex-m7"), ".c", "-O0")
    with patch("wcet_probe.analyzer.prepared.Bounded.relieved", lambda *_: None):
        without, _ = document_of(on)
    document, binary = document_of(on)
    assert document["bound"]["cycles"] < without["bound"]["cycles"]
    assert {one.check for one in check_bound(document, binary).findings if one.verdict != "ok"} == {
        "limits of misses in cycles"
    }


RELOADED = """
 sub sp, sp, #16
 str r2, [sp, #4]
 cmp r0, #0
 beq 1f
 nop
1: and r1, r1, #3
 ldr r3, [sp, #4]
 str r0, [sp, r1, lsl #2]
 ldr r12, [sp, #4]
 cmp r3, #5
 bne 2f
.globl behind
.thumb_func
behind: cmp r12, #5
 beq 2f
 mul r0, r0, r0
2: add sp, sp, #16
 bx lr
"""


def test_a_word_that_may_have_been_written_between_two_loads_is_not_the_same():
    """That the first load gave 5 does not make 5 of the second: a run with 7, 1 and 5 multiplies."""
    target = load_target("cortex-m4")
    on = guest_of(assembler({"f": RELOADED}, target), target)
    node = f"f+{(on.address('behind') & ~1) - (on.address('f') & ~1):#x}"

    def change(problem, derivations, followed):
        others = [line for line in followed if not line.startswith(f"invariant {node} r12 ")]
        return problem, derivations, [*others, f"invariant {node} r12 number 5 0 0"] if followed else []

    document, binary = document_of(on)
    check_bound(document, binary)
    with pytest.raises(VerificationError, match="what is said of r12"):
        check_bound(solved_again(document, change), binary)


LIMITS = {
    "up from below 0": ("mvn r3, #2\n1: adds r3, #3\n cmp r3, #9\n blo 1b\n bx lr", 4),
    "up to a carry": ("mvn r3, #9\n1: adds r3, #1\n blo 1b\n bx lr", 10),
    "a predicated way out": (
        "movs r3, #0\n1: adds r3, #1\n cmp r3, #7\n itt eq\n moveq r0, #0\n bxeq lr\n b 1b",
        7,
    ),
    "predicates that are one": (
        "movs r3, #9\n1: subs r3, #1\n ittt eq\n moveq r0, #1\n moveq r1, #2\n bxeq lr\n b 1b",
        9,
    ),
}
"""Loops, and how often their headers are executed."""


@pytest.mark.parametrize(("body", "executions"), LIMITS.values(), ids=LIMITS)
def test_a_loop_is_counted_and_not_one_round_less(body, executions):
    """The checker's own number is the true one: a bound of a round less is not ok, whatever derivation it has."""
    target = load_target("cortex-m4")
    on = guest_of(assembler({"f": body}, target), target)
    document, binary = document_of(on)
    assert "loop bounds" not in {one.check for one in check_bound(document, binary).findings if one.verdict != "ok"}
    (most,) = {loop["max"] for loop in document["bound"]["loops"]}
    assert most == executions

    def less(problem, derivations, followed):
        loops = tuple(replace(one, max_back_edges=one.max_back_edges - 1) for one in problem.loops)
        counter = {"initial_low": 0, "initial_high": executions - 2, "step": -1, "comparison": ">"}
        lower = [replace(one, **counter, max_header=executions - 1) for one in derivations]
        return replace(problem, loops=loops), lower, followed

    forged = solved_again(document, less)
    forged["bound"]["loops"] = [{**loop, "max": executions - 1} for loop in forged["bound"]["loops"]]
    with patch("wcet_probe.certificate.check.check_shown", return_value="nothing"):
        found = {one.check for one in check_bound(sealed(forged), binary).findings if one.verdict != "ok"}
    assert "loop bounds" in found


NAMED_LIKE_A_WAY_OUT = """
 ldr r5, =away
 movs r4, #0
 movs r6, #100
1: bvs 2f
 add r4, r4, #1
 bx r5
.globl away
.thumb_func
away: sub r4, r4, #1
2: subs r6, r6, #1
 bne 1b
 bx lr
"""


def test_no_edge_is_called_like_a_way_out():
    """By that name, what holds where r4 is a step further would be taken for what holds on the edge back."""
    target = load_target("cortex-m4")
    on = guest_of(assembler({"f": NAMED_LIKE_A_WAY_OUT}, target), target)
    document, binary = document_of(on)
    assert check_bound(document, binary).is_full
    jump = next(one.address for one in on.instructions if one.text == "bx r5")

    def renamed(problem, derivations, followed):
        (loop,) = problem.loops
        source = max((node.address, node.name) for node in problem.nodes if node.address <= jump)[1]
        name, old = f"leave:{source}", loop.back_edges[0]
        edges = tuple(replace(edge, name=name) if edge.name == old else edge for edge in problem.edges)
        loops = (replace(loop, back_edges=(name,), max_back_edges=0),)
        counter = {"initial_low": 0, "initial_high": 0, "step": -1, "comparison": ">"}
        return (
            replace(problem, edges=edges, loops=loops),
            [replace(one, **counter, max_header=1) for one in derivations],
            followed,
        )

    forged = solved_again(document, renamed)
    forged["bound"]["loops"] = [{**loop, "max": 1} for loop in forged["bound"]["loops"]]
    with pytest.raises(VerificationError, match="the name of a way out"):
        check_bound(sealed(forged), binary)


TWO_LOOPS = """volatile int port;
int f(int n) { int s = 0;
for (int i = 0; i < 90; i++) s += port;
for (int i = 0; i < 3; i++)
  s ^= port;
return s; }
"""


def test_code_of_one_loop_is_not_put_into_another_by_an_edge_that_nobody_takes():
    """Else what a fact says of the second loop could be told of the first."""
    from wcet_probe.certificate.facts.sums import Sums
    from wcet_probe.certificate.flow.walk import Covered
    from wcet_probe.certificate.kernel.coverage import Code, Said, cover
    from wcet_probe.certificate.kernel.records import Edge, LoopRecord, graph_of, invariants_of, read_records

    on = guest_of(TWO_LOOPS, load_target("cortex-m4"), ".c", "-O1")
    records = read_records(document_of(on)[0]["bound"]["certificates"][0])
    graph, code = graph_of(records), Code(on.image, {one.address: one for one in on.instructions})
    name, most, entering, back = records["loop"][0]
    last = max(graph.nodes, key=lambda node: graph.nodes[node][0])
    more = Edge("more", last, name, 0)
    leading = {**graph.leading, last: [*graph.leading[last], more]}
    forged = replace(graph, edges=(*graph.edges, more), leading=leading)
    loops = [LoopRecord(name, name, int(most), entering.split(), [*back.split(), "more"])]
    invariants = invariants_of(records)
    covered = Covered(code, forged, invariants, cover(code, forged, Said(invariants), {}))
    found = Sums(covered, loops, Asserted(), {}).lines[name]
    assert 3 in {line for _, line in found}
    assert not {4, 5, 6} & {line for _, line in found}


FLAGS = """
 cmp r0, #5
 it lo
 movlo r1, #1
 it hs
 movhs r1, #2
 cmp r2, #7
 it lo
 addlo r1, #4
 bx lr
"""


def test_what_one_comparison_told_is_not_told_of_the_next():
    """Four ways through the predicates: r1 is 1, 2, 5 or 6 behind them, and no less is found."""
    from wcet_probe.certificate.kernel.coverage import Code
    from wcet_probe.certificate.machines.machine import Machine
    from wcet_probe.certificate.values.state import State

    target = load_target("cortex-m4")
    on = guest_of(assembler({"f": FLAGS}, target), target)
    code = Code(on.image, {one.address: one for one in on.instructions})
    start, states = on.address("f") & ~1, [State({})]
    for one in [each for each in on.instructions if each.address >= start][:-1]:
        states = [way.state for state in states for way in code.isa.outcomes_of(Machine(on.image), one, state)]
        if one.text.startswith("bx"):
            break
    assert {state.read("r1").low for state in states} == {1, 2, 5, 6}


def test_what_is_said_of_caches_is_held_against_the_certificate_in_cycles():
    """Of two graphs that cost the same the records of the first were looked at, and nobody read those of the other."""
    source = "volatile int far[5120];\nint f(int n) { for (int i = 0; i < 9; i++) n += far[0]; return n ^ far[1024]; }"
    document, binary = document_of(guest_of(source, load_target("mpc603e"), ".c"))
    bound = document["bound"]
    assert check_bound(document, binary).is_full
    (_, _, said), (problem, derivations, of_caches) = map(problem_of, bound["certificates"])
    honest, texts = bound["cycles"], []
    true = replace(problem, unit="instructions"), [*said, *of_caches]
    false = replace(problem, constraints=(), auxiliaries=()), []
    for one, followed in (true, false):
        solution = solve(flow_system(one))
        texts.append(certificate(one, solution, derivations, followed))
        bound[one.unit] = solution.certified
    bound["certificates"] = texts
    assert bound["cycles"] < honest == bound["instructions"]
    with (
        patch("wcet_probe.certificate.check.check_shown", return_value="nothing"),
        pytest.raises(VerificationError, match="write-backs are not charged"),
    ):
        check_bound(sealed(document), binary)


def test_calls_that_are_not_expanded_are_of_code_with_or_without_a_symbol():
    """Of a function that has no symbol the address is its name, and true bounds with such calls were refused."""
    from wcet_probe.certificate.check import not_followed

    image = guest_of("int v = 3;\nint f(int n) { return n + v; }", load_target("mpc603e"), ".c").image
    place = image.symbols["f"].address
    for name in ("f", "f+0x4", f"function_at_{place + 4:#x}"):
        assert name in not_followed({"summarised": [name], "assumptions": []}, image)
    for name in ("g", "v", "g+0x4", "f+0x100000", "function_at_0x0", f"function_at_{image.symbols['v'].address:#x}"):
        with pytest.raises(VerificationError, match="has no function"):
            not_followed({"summarised": [name], "assumptions": []}, image)
