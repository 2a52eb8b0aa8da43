"""Calls that are not expanded: bounds stay above every run, and what a callee may change is not taken for known."""

import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.random_programs import arguments, source
from tests.support import TARGETS, assembler, guest_of
from wcet_probe.analyzer import resolved_values
from wcet_probe.analyzer.bound import prove
from wcet_probe.analyzer.call_summaries import CallSummaries, LostStackPointerError, merged_loops
from wcet_probe.analyzer.facts.binding import code_sha256
from wcet_probe.analyzer.facts.file import parse_facts
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.graph import expansion, supergraph
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.analyzer.values.execution.call_effects import CallKey, UnsummarisedError
from wcet_probe.analyzer.values.properties.recursion import UnboundedRecursionError
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.build.image import require_symbol
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import AnalysisError, EmulationError
from wcet_probe.model.proof import LoopBound
from wcet_probe.model.scenario import InitialCache


def bound_of(guest, entry="f"):
    request = (guest.image, guest.target, guest.instructions, guest.costs, entry, Facts(), {}, {})
    return prove(BoundRequest(*request, summaries=True))


@pytest.fixture(name="summarised")
def _summarised(monkeypatch):
    """Every function that is called is analysed once, however small the program is."""

    def all_of_them(graph_of, entry, refused, most, *others):
        unbounded, given, counted, _ = others
        assert most >= 0
        assert not given
        assert not counted
        calls = expansion._calls(graph_of, entry)
        recursive = {one for one in calls if one in expansion._reached(calls, calls[one])}
        return frozenset(calls.keys() - recursive - {entry, *refused, *unbounded})

    monkeypatch.setattr(supergraph, "to_summarise", all_of_them)


CALLS = """typedef unsigned u; volatile u in = 1; u a = 5, b = 9;
__attribute__((noinline)) u f0(u x) { if (in) return x + a; return x ^ b; }
"""


def chain(depth):
    """Calls in loops: 3 ** depth of them."""
    return CALLS + "".join(
        f"__attribute__((noinline)) u f{k}(u x)"
        f"{{ u r = x; for (u i = 0; i < 3; i++) r += f{k - 1}(r + i); return r; }}\n"
        for k in range(1, depth + 1)
    )


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.usefixtures("summarised")
def test_a_bound_with_summaries_is_that_of_expanded_calls_where_nothing_depends_on_the_caller(target):
    guest = guest_of(chain(3), load_target(target), ".c")
    proved = bound_of(guest, "f3")
    expanded = prove(BoundRequest(guest.image, guest.target, guest.instructions, guest.costs, "f3", Facts(), {}, {}))
    assert proved.summarised
    assert not expanded.summarised
    assert proved.instructions == expanded.instructions
    assert proved.cycles >= expanded.cycles
    with guest.machine() as machine:
        assert machine.count("f3", (7,)) <= proved.instructions


SWITCH = """typedef unsigned u; volatile u out;
__attribute__((noinline)) u f0(u x)
{ switch (x) { case 0: out = 7; return 3; case 1: out = x * 5; return x + 9; case 2: return out;
  case 3: out = 1; out = 2; return 4; case 4: out = x; return 11; case 5: out = x * 77; return 5; default: return 1; } }
__attribute__((noinline)) u f1(u x) { return f0(x) + f0(x + 1); }
u f(u x) { return f1(x) + f1(x * 3) + f0(2); }
"""


@pytest.mark.usefixtures("summarised")
def test_callees_with_switches_are_summarised_before_the_targets_of_all_branches_are_known(monkeypatch):
    guest = guest_of(SWITCH, load_target("cortex-m4"), ".c")
    graphs, analyse = [], resolved_values.analyze_with_counters

    def noted(image, lifter, graph, *others, **told):
        graphs.append(graph)
        return analyse(image, lifter, graph, *others, **told)

    monkeypatch.setattr(resolved_values, "analyze_with_counters", noted)
    proved = bound_of(guest)
    switch = require_symbol(guest.image, "f0").address
    callers = [graph for graph in graphs if graph.entry.name != "f0"]
    assert any(graph.unresolved for graph in graphs)  # f0 has a table, whose targets were looked for
    assert {graph.entry.name for graph in callers} == {"f", "f1"}
    for graph in callers:
        assert switch in graph.summarised
        assert all(point.function.address != switch for point in graph.points)
    assert {"f0", "f1"} <= set(proved.summarised)
    with guest.machine() as machine:
        assert max(machine.count("f", (x,)) for x in range(8)) <= proved.instructions


def tree(depth):
    """Two calls in each function: 2 ** depth contexts."""
    return CALLS + "".join(
        f"__attribute__((noinline)) u f{k}(u x) {{ u r = f{k - 1}(x + {k}); if (in) r += f{k - 1}(r); return r; }}\n"
        for k in range(1, depth + 1)
    )


def test_a_tree_of_ten_calls_is_bounded():
    guest = guest_of(tree(10), load_target("cortex-m4"), ".c")
    proved = bound_of(guest, "f10")
    assert proved.summarised
    assert proved.blocks < 2_000
    with guest.machine() as machine:
        observed = machine.count("f10", (7,))
    assert observed <= proved.instructions <= 1.1 * observed


def key_of_pointers(*registers):
    pointers = frozenset(registers)
    return CallKey(64, pointers, escapes=False, is_aligned=True, below=pointers)


def test_what_keeps_calls_from_being_summarised_is_named_where_all_expanded_are_too_many(monkeypatch):
    """A call through a pointer has every function above it expanded: its targets are what is missing."""
    monkeypatch.setattr(supergraph, "MOST_POINTS", 300)
    monkeypatch.setattr(resolved_values, "MOST_EXPANDED", 100)
    hooked = tree(7).replace("if (in) return x + a;", "if (in) hook(); return x + a;", 1)
    guest = guest_of(f"void (*volatile hook)(void); void g(void) {{}}\n{hooked}", load_target("cortex-m4"), ".c")
    with pytest.raises(AnalysisError, match=r"f7 has more than 300 basic blocks .* as at f0") as caught:
        bound_of(guest, "f7")
    (site,) = caught.value.sites
    f0 = guest.image.function_at(site)
    fact = f'[[calls]]\nfunction = "f0"\noffset = {site - f0.address:#x}\ntargets = ["g"]\nbecause = "a test"\n'
    told = parse_facts(Path("facts.toml"), f'{fact}sha256 = "{code_sha256(guest.image, "f0")}"\n')
    request = (guest.image, guest.target, guest.instructions, guest.costs, "f7", told, {}, {})
    assert prove(BoundRequest(*request, summaries=True)).summarised


LOST = {
    "f": "push {r7, lr}\n sub sp, #8\n add r7, sp, #0\n bl g\n mov sp, r7\n bl h\n mov sp, r7\n bl k\n"
    "adds r7, #8\n mov sp, r7\n pop {r7, pc}",
    "g": "push {r7, lr}\n sub sp, #16\n add r7, sp, #0\n movs r3, #1\n adds r2, r7, r0\n strb r3, [r2]\n"
    "adds r7, #16\n mov sp, r7\n pop {r7, pc}",
    "h": "adds r0, #1\n bx lr",
    "k": "adds r0, #2\n bx lr",
}


@pytest.mark.usefixtures("summarised")
def test_a_trial_ends_where_the_stack_pointer_of_a_call_is_lost(monkeypatch):
    """No further call is expanded for that, as a proof follows that keeps it: where saved registers stay."""
    guest = guest_of(assembler(LOST, load_target("cortex-m4")), load_target("cortex-m4"))
    request = (guest.image, guest.target, guest.instructions, guest.costs, "f", Facts(), {}, {})
    asked = BoundRequest(*request, summaries=True)
    analyses, analyse = [], resolved_values.analyze_with_counters

    def counted(*rest, **told):
        analyses.append(rest[2].entry.name)
        return analyse(*rest, **told)

    monkeypatch.setattr(resolved_values, "analyze_with_counters", counted)
    with pytest.raises(AnalysisError, match="is not known to be one of its function"):
        prove(asked)
    whole = analyses.count("f")
    analyses.clear()
    with pytest.raises(LostStackPointerError, match="may be no multiple of 8"):
        prove(replace(asked, is_trial=True))
    assert analyses.count("f") < whole
    proved = prove(replace(asked, keeps_saved=True))
    assert "saved-registers" in [one.id for one in proved.assumptions]
    assert proved.instructions == 24  # 11, 9, 2 and 2


def test_a_recursion_that_keeps_calls_from_being_summarised_is_named(monkeypatch):
    monkeypatch.setattr(supergraph, "MOST_POINTS", 300)
    monkeypatch.setattr(resolved_values, "MOST_EXPANDED", 100)
    calling = tree(7).replace("if (in) return x + a;", "if (in) return f0(f0(x + in) + in);", 1)
    guest = guest_of(calling, load_target("cortex-m4"), ".c")
    with pytest.raises(UnboundedRecursionError, match="calls f0 recursively"):
        bound_of(guest, "f7")


@pytest.mark.parametrize("fails", ["nothing", "shared", "everything"])
def test_later_keys_of_a_function_share_a_summary(fails):
    """It is one for a caller of which less is known; where there is none, the key has its own."""
    registers = [Location("register", 4 * number, 4) for number in range(4)]
    keys = [key_of_pointers(*registers[:1], one) for one in registers]
    proved = []

    def prove_one(key):
        proved.append(key)
        if fails == "everything" or (fails == "shared" and len(key.pointers) > 2):
            raise AnalysisError("nothing can be proved.")
        return SimpleNamespace(pointers=key.pointers, key=key, open_loops=(), deciding=frozenset(range(16)))

    summaries = CallSummaries(prove_one)
    if fails == "everything":
        for key in keys[:2]:
            with pytest.raises(UnsummarisedError):
                summaries.summary(key)
        assert proved == keys[:1]
        return
    answers = [summaries.summary(key) for key in keys]
    assert [one.key for one in answers[:2]] == keys[:2]
    if fails == "nothing":
        assert [len(one.pointers) for one in answers] == [1, 2, 3, 4]
    else:
        assert [one.key for one in answers] == keys
    assert all(answer.pointers >= key.pointers for key, answer in zip(keys, answers, strict=True))
    assert [summaries.summary(key) for key in keys] == answers
    other = keys[3]._replace(escapes=True)
    assert summaries.summary(other).key == other


def test_keys_that_differ_in_nothing_that_takes_part_share_a_summary():
    registers = [Location("register", 4 * number, 4) for number in range(4)]
    keys = [key_of_pointers(one) for one in registers]
    proved = []

    def prove_one(key):
        proved.append(key)
        return SimpleNamespace(key=key, open_loops=(), deciding=frozenset(range(4, 8)))

    summaries = CallSummaries(prove_one)
    assert [summaries.summary(key).key for key in keys] == [keys[0], keys[1], keys[0], keys[0]]
    assert proved == keys[:2]


OVERWRITING = """typedef unsigned u; u shared = 3; u *kept;
__attribute__((noinline)) void set(u *p, u v) { *p = v; }
__attribute__((noinline)) void set_shared(u v) { shared = v; }
__attribute__((noinline)) void keep(u *p) { kept = p; }
__attribute__((noinline)) void set_kept(u v) { *kept = v; }
u by_pointer(u v) { volatile u n = 2; u r = 0; set((u *)&n, v); for (u i = 0, m = n; i < m; i++) r += n; return r; }
u by_static(u v)
{ u r = 0; shared = 2; set_shared(v); for (u i = 0; i < shared; i++) { r += i; __asm__(""); } return r; }
u by_escape(u v)
{ volatile u n = 2; u r = 0; keep((u *)&n); set_kept(v); for (u i = 0, m = n; i < m; i++) r += n; return r; }
"""


@pytest.mark.covering
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("entry", ["by_pointer", "by_static", "by_escape"])
@pytest.mark.usefixtures("summarised")
def test_what_a_callee_may_write_is_not_known_behind_the_call(target, entry):
    """The loop runs as often as the callee says: two rounds is what was there before."""
    guest = guest_of(OVERWRITING, load_target(target), ".c")
    with guest.machine() as machine:
        observed = machine.count(entry, (500,))
    try:
        proved = bound_of(guest, entry).instructions
    except AnalysisError:
        return
    assert proved >= observed


@pytest.mark.usefixtures("summarised")
def test_a_register_that_is_not_given_back_is_not_known_behind_the_call():
    target = load_target("cortex-m4")
    loop = "push {r4, lr}\n movs r4, #3\n bl g\n1: subs r4, #1\n bne 1b\n pop {r4, pc}"
    given_back = assembler({"f": loop, "g": "push {r4, lr}\n movs r4, #99\n pop {r4, pc}"}, target)
    guest = guest_of(given_back, target)
    with guest.machine() as machine:
        assert bound_of(guest).instructions == machine.count("f", ())
    changed = guest_of(assembler({"f": loop, "g": "movs r4, #99\n bx lr"}, target), target)
    with changed.machine() as machine:
        assert bound_of(changed).instructions >= machine.count("f", ())


@pytest.mark.usefixtures("summarised")
def test_a_callee_that_does_not_give_back_the_stack_pointer_is_expanded():
    target = load_target("cortex-m4")
    bodies = {"f": "push {r4, lr}\n bl g\n add sp, #8\n pop {r4, pc}", "g": "sub sp, #8\n bx lr"}
    guest = guest_of(assembler(bodies, target), target)
    proved = bound_of(guest)
    assert not proved.summarised
    with guest.machine() as machine:
        assert proved.instructions == machine.count("f", ())


@pytest.mark.usefixtures("summarised")
def test_a_callee_whose_frame_may_not_be_aligned_is_expanded():
    """What it finds in the low bits of its stack pointer is not what the calling convention says."""
    target = load_target("cortex-m4")
    low_bits = "mov r0, sp\n ands r0, #7\n adds r0, #1\n1: subs r0, #1\n bne 1b\n bx lr"
    guest = guest_of(assembler({"f": "push {lr}\n bl g\n pop {pc}", "g": low_bits}, target), target)
    proved = bound_of(guest)
    assert not proved.summarised
    with guest.machine() as machine:
        assert proved.instructions == machine.count("f", ())


@pytest.mark.usefixtures("summarised")
def test_a_callee_that_returns_behind_its_return_address_is_no_summary():
    """What stands behind the call is skipped, and a hundred rounds follow."""
    target = load_target("cortex-m4")
    skipped = "push {r4, lr}\n movs r4, #100\n bl g\n movs r4, #3\n movs r4, #3\n1: subs r4, #1\n bne 1b\n pop {r4, pc}"
    guest = guest_of(assembler({"f": skipped, "g": "adds lr, lr, #4\n bx lr"}, target), target)
    proved = bound_of(guest)
    assert not proved.summarised
    with guest.machine() as machine:
        assert proved.instructions == machine.count("f", ())


@pytest.mark.usefixtures("summarised")
def test_a_callee_that_surely_stores_to_a_segment_that_is_not_writable_leaves_no_bound():
    """Two rounds were proved, and a hundred follow: who has a summary does not see the callee's stores."""
    target = load_target("cortex-m4")
    rounds = "movw r3, #:lower16:rounds\n movt r3, #:upper16:rounds\n"
    bodies = {
        "f": f"push {{r4, lr}}\n bl g\n {rounds} ldr r2, [r3]\n1: subs r2, #1\n bne 1b\n pop {{r4, pc}}",
        "g": f"{rounds} movs r1, #100\n str r1, [r3]\n bx lr",
    }
    constant = ".pushsection .rodata\n.balign 4\n.type rounds, %object\nrounds: .word 2\n.popsection\n"
    guest = guest_of(assembler(bodies, target) + constant, target)
    with pytest.raises(AnalysisError, match=r"^g\+0x[0-9a-f]+ stores to .*, in a segment that is not writable"):
        bound_of(guest)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.usefixtures("summarised")
def test_loops_and_assumptions_of_callees_are_told(target):
    text = CALLS + (
        "__attribute__((noinline)) u g(u x) { if (x == 77) for (;;) in = x; u r = 0;"
        " for (u i = 0; i < 9; i++) r += in; return r; }\nu f(u x) { return g(x) + g(x + 1); }\n"
    )
    guest = guest_of(text, load_target(target), ".c")
    proved = bound_of(guest)
    assert proved.summarised == ("g",)
    assert [loop.function for loop in proved.loops] == ["g"]
    assert "call-returns" in {one.id for one in proved.assumptions}
    with guest.machine() as machine:
        assert machine.count("f", (3,)) <= proved.instructions


def test_a_callee_of_a_callee_is_named_too(monkeypatch):
    """In the caller's graph it is in no context, and so nothing is chosen of it there."""
    text = CALLS + "".join(
        f"__attribute__((noinline)) u {name}(u x) {{ return {callee}(x) + {callee}(x + 1); }}\n"
        for name, callee in (("g", "f0"), ("f", "g"))
    )
    guest = guest_of(text, load_target("cortex-m4"), ".c")
    called = {name: require_symbol(guest.image, callee).address for name, callee in (("g", "f0"), ("f", "g"))}
    names = {require_symbol(guest.image, name).address: frozenset({called[name]}) for name in called}
    monkeypatch.setattr(supergraph, "to_summarise", lambda *asked: names.get(asked[1], frozenset()) - {*asked[2]})
    assert bound_of(guest).summarised == ("f0", "g")


def test_of_several_bounds_of_one_loop_the_greatest_is_told():
    def loop(name, most, total):
        return LoopBound(name, "g", 8, (), "g+0x8", "", 0, most, total, "counter", "", "", "")

    assert merged_loops([loop("a", 9, 9), loop("b", 2, None), loop("a", 4, 30), loop("b", 1, 5)]) == (
        loop("a", 9, 30),
        loop("b", 2, None),
    )


def campaign(target, seed, functions=6, runs=4):
    """Bounds of random programs whose calls are all summarised, above their runs in both units; how many there are."""
    guest, draw, bounded = guest_of(source(seed, functions), load_target(target), ".c"), random.Random(seed), 0
    for number in range(functions):
        try:
            proved = bound_of(guest, f"f{number}")
        except AnalysisError:
            continue
        if any(one.id == "call-returns" for one in proved.assumptions):
            continue  # bounded for the calls that do return, and others hang
        bounded += bool(proved.summarised)
        for _ in range(runs):
            given = arguments(draw)
            with guest.machine(most_instructions=max(100_000, 2 * min(proved.instructions, 10**6))) as machine:
                try:
                    seen = machine.measure(f"f{number}", given, InitialCache.DIRTY)
                except EmulationError:
                    assert proved.instructions > 100_000
                    continue
            assert seen.instructions <= proved.instructions, (target, seed, number, given)
            assert seen.cycles <= proved.cycles, (target, seed, number, given)
    return bounded


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.usefixtures("summarised")
def test_random_programs_stay_within_bounds_with_summaries(target):
    campaign(target, 1, functions=4, runs=2)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 22))
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.usefixtures("summarised")
def test_many_random_programs_stay_within_bounds_with_summaries(target, seed):
    campaign(target, seed)


def test_where_much_was_summarised_already_callees_expand_less(monkeypatch):
    """Summaries in summaries: each function has its own blocks then, and not those of all that it calls."""
    tree = "".join(
        f"__attribute__((noinline)) u f{k}(u x) {{ u r = f{k - 1}(x); if (in) r += f{k - 1}(r); return r; }}\n"
        for k in range(1, 6)
    )
    guest = guest_of(CALLS + tree + "u f(u x) { return f5(x) + f5(x + 1); }\n", load_target("cortex-m4"), ".c")
    monkeypatch.setattr(resolved_values, "MOST_EXPANDED", 1)
    monkeypatch.setattr(expansion, "FEW", 20)
    monkeypatch.setattr(resolved_values, "FEWEST", 1)
    analysed = []
    real = resolved_values.analyze_with_counters

    def counted(*given, **told):
        analysed.append(len(given[2].points))
        return real(*given, **told)

    monkeypatch.setattr(resolved_values, "analyze_with_counters", counted)
    bounds, points = [], []
    for many in (1_000, 0):
        monkeypatch.setattr(resolved_values, "MANY_SUMMARISED", many)
        analysed.clear()
        bounds.append(bound_of(guest))
        points.append(max(analysed))
    assert points[1] < points[0]
    assert set(bounds[0].summarised) < set(bounds[1].summarised)
    with guest.machine() as machine:
        assert machine.count("f", (7,)) <= min(one.instructions for one in bounds)


ARGUMENT_LOOPS = CALLS + (
    "__attribute__((noinline)) u g(u n) { u r = 0; for (u i = 0; i < n; i++) r += in; return r; }\n"
    "__attribute__((noinline)) u h(u n) { u r = 0; do r += in; while (r & a); return r + g(n) + g(n + 1); }\n"
    "u f(u x) { return g(4) + g(9) + (x ? g(2) : h(3)); }\n"
)


@pytest.mark.parametrize("target", TARGETS)
def test_loops_that_calls_bound_are_expanded_and_named_together_where_that_is_too_much(target, monkeypatch):
    """In a large program no call is expanded to find the bound of a loop: all of them want facts, told at once."""
    guest = guest_of(ARGUMENT_LOOPS, load_target(target), ".c")
    with pytest.raises(AnalysisError, match="no bound for the loop at h") as caught:
        bound_of(guest)
    assert len(caught.value.headers) == 1
    monkeypatch.setattr(expansion, "FEW", 1)
    monkeypatch.setattr(resolved_values, "MOST_EXPANDED", 1)
    with pytest.raises(AnalysisError, match=r"no bound for the loops at g.*, h") as caught:
        bound_of(guest)
    facts = [
        f'[[loop]]\nfunction = "{function.name}"\noffset = {header - function.address:#x}\nmax = {most}\n'
        f'because = "a test"\nsha256 = "{code_sha256(guest.image, function.name)}"\n'
        for header, most in zip(caught.value.headers, (10, 3), strict=True)
        for function in (guest.image.function_at(header),)
    ]
    told = parse_facts(Path("facts.toml"), "\n".join(facts))
    request = (guest.image, guest.target, guest.instructions, guest.costs, "f", told, {}, {})
    proved = prove(BoundRequest(*request, summaries=True))
    assert proved.summarised == ("g",)
    with guest.machine() as machine:
        assert machine.count("f", (1,)) <= proved.instructions


TAKEN_APART = {
    "f": "push {r4, r6, lr}\n sub sp, #12\n mov r6, sp\n movs r0, #3\n str r0, [sp]\n lsl r0, r6, #8\n lsr r0, r0, #8\n"
    "and r0, r0, #255\n lsr r1, r6, #8\n and r1, r1, #255\n lsr r2, r6, #16\n and r2, r2, #255\n lsr r3, r6, #24\n"
    "and r3, r3, #127\n bl put\n ldr r0, [sp]\n1: subs r0, #1\n bne 1b\n add sp, #12\n pop {r4, r6, pc}",
    "put": "lsl r1, r1, #8\n lsl r2, r2, #16\n lsl r3, r3, #24\n orr r0, r0, r1\n orr r0, r0, r2\n orr r0, r0, r3\n"
    "mov r1, #200\n str r1, [r0]\n bx lr",
}
"""The callee puts an address of its caller's frame together again: four registers hold a byte of it each."""
RETURNING_TO_A_REGISTER = {
    "f": "push {r4, lr}\n bl e\n1: subs r0, #1\n bne 1b\n pop {r4, pc}",
    "e": "mov r6, lr\n bl g\n movs r0, #3\n bx r6",
    "g": "movs r0, #200\n mov lr, r6\n bx lr",
}
"""A routine that returns for its caller, whose return address a register holds: there is no frame to pop."""


@pytest.mark.parametrize("bodies", [TAKEN_APART, RETURNING_TO_A_REGISTER], ids=["bytes", "register"])
@pytest.mark.usefixtures("summarised")
def test_what_registers_hold_of_the_caller_is_not_lost_on_a_callee(bodies):
    target = load_target("cortex-m4")
    guest = guest_of(assembler(bodies, target), target)
    with guest.machine() as machine:
        observed = machine.count("f", (1,))
    try:
        proved = bound_of(guest).instructions
    except AnalysisError as error:
        assert "no bound for the loop" in str(error)  # noqa: PT017  either answer is true
        return
    assert proved >= observed > 400
