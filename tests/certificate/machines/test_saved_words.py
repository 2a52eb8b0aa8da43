"""Words that registers are saved in, as the checker finds and follows them, and certificates that are forged there."""

from __future__ import annotations

import json
import random
import re
from types import SimpleNamespace

import pytest

from tests.answer.witness.test_saved_registers import SHAPES, random_program, shape
from tests.certificate.forgeries import sealed, solved_again
from tests.certificate.kernel.test_return_addresses import ASSUMED, LONG, UNKNOWN, kept_at
from tests.certificate.kernel.test_unpredictable import forged_graph
from tests.support import TARGETS, assembler, guest_of
from wcet_probe.analyzer.bound import prove
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.graph.supergraph import build_supergraph
from wcet_probe.analyzer.pcode.lift import image_lifter
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.analyzer.values.execution import saved_words
from wcet_probe.build.image import require_symbol
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.check import check_bound
from wcet_probe.certificate.facts.asserted import Asserted
from wcet_probe.certificate.facts.findings import Binary
from wcet_probe.certificate.machines.machine import Machine, Outcome
from wcet_probe.certificate.machines.saved_words import saving_stores
from wcet_probe.certificate.values.numbers import TOP, Value, number
from wcet_probe.certificate.values.state import SAVED, State
from wcet_probe.errors import VerificationError
from wcet_probe.reports.formats.bound_document import bound_section


def proved(bodies, target="cortex-m4"):
    """A proof of ``f`` that may rest on saved-registers, and what it is checked against."""
    core = load_target(target)
    on = guest_of(assembler(bodies, core), core)
    request = BoundRequest(on.image, on.target, on.instructions, on.costs, "f", Facts(), {}, {}, keeps_saved=True)
    section = json.loads(json.dumps(bound_section(prove(request))))
    document = {"image": {"sha256": on.image.sha256}, "target": target, "bound": section}
    return sealed(document), Binary(on.image, on.instructions, on.costs, on.target, Asserted(), {})


def without(document):
    """``document`` that does not list the assumption."""
    bound = document["bound"]
    listed = [one for one in bound["assumptions"] if one["id"] != "saved-registers"]
    assert len(listed) == len(bound["assumptions"]) - 1
    return sealed({**document, "bound": {**bound, "assumptions": listed}})


@pytest.mark.parametrize("target", SHAPES)
def test_a_bound_that_rests_on_it_is_checked_in_full_and_refused_without_it(target):
    document, binary = proved(shape(target), target)
    assert {one.verdict for one in check_bound(document, binary).findings} == {"ok"}
    with pytest.raises(VerificationError, match="saved-registers is used and not listed"):
        check_bound(without(document), binary)


@pytest.mark.parametrize("seed", range(3))
def test_proofs_of_random_programs_are_checked(seed):
    document, binary = proved(random_program(random.Random(seed)))
    assert {one.verdict for one in check_bound(document, binary).findings} == {"ok"}


def forged(change):
    document, binary = proved(shape("cortex-m4"))

    def changed(problem, derivations, followed):
        return problem, derivations, change(list(followed)) if problem.unit == "instructions" else followed

    return check_bound(solved_again(document, changed), binary)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("invariant f+0xa saved:-16 number 3 0 0", "what is said of .* does not follow"),
        ("invariant f+0x0 saved:-8 number 3 0 0", "what is said of .* is not known of the caller"),
        ("invariant f+0xa saved:-16 any 0 1 4294967295", "nothing is said of saved:-16"),
        ("invariant f+0xa saved:-8 number 3 0 0", "a record of kind invariant is told twice"),
        ("name f+0xa saved:-8 s1 0", "is no record"),
    ],
)
def test_what_nobody_saved_is_refused(line, why):
    with pytest.raises(VerificationError, match=why):
        forged(lambda followed: [*followed, line])


def test_a_word_that_a_callee_gave_up_is_saved_no_more():
    """Behind the call the words of ``g`` lie below the stack pointer."""
    with pytest.raises(VerificationError, match="does not follow"):
        forged(lambda followed: [*followed, "invariant f+0xa saved:-20 number 134217738 1 4"])


PUSHED_AGAIN = f"""push {{r4, lr}}
 movs r4, #3
 cmp r1, #0
 beq 1f
 nop
1: push {{r4}}
 mov r2, sp
 strb r3, [r2, r0]
 ldr r4, [sp]
 cmp r4, #3
 bne 2f
 add sp, #4
 pop {{r4, pc}}
2: {LONG}add sp, #4
 pop {{r4, pc}}
"""


def test_where_a_function_begins_no_name_of_an_edge_tells():
    """A word that code pushes for itself was taken for a saved one, behind an edge with the name of a call."""
    nodes = {"g": ("g", 0, 4), "g+8": ("g", 8, 1), "g+10": ("g", 10, 6), "g+22": ("g", 22, 2)}
    edges = {"a:jump": ("g", "g+10"), "a:fall": ("g", "g+8"), "b:call": ("g+8", "g+10"), "c:fall": ("g+10", "g+22")}
    below = "r13 stack 4294967288 0 0|r14 link 0 0 0|stack:-4 link 0 0 0|r4 number 3 0 0"
    said = [*kept_at("g"), *kept_at("g+8", "g+10", places=below)]
    said += kept_at("g+22", places=f"r13 stack 4294967284 0 0|r14 link 0 0 0|r2 {UNKNOWN}")
    with pytest.raises(VerificationError, match="the graph lacks the edge"):
        forged_graph(PUSHED_AGAIN, nodes, edges, ["g+22"], said, assumed=ASSUMED | {"saved-registers"})


NAMED = {
    "f": "push {r4, r5, lr}\n mov r4, r0\n movs r5, #3\n1: ldr r1, [r4]\n mov r0, r1\n bl g\n ldr r2, [r4]\n"
    "subs r5, #1\n bne 1b\n pop {r4, r5, pc}",
    "g": "push {r4, r5, lr}\n sub sp, #20\n mov r2, sp\n movs r3, #1\n adds r2, r2, r0\n strb r3, [r2]\n"
    "movs r4, #0\n movs r5, #0\n add sp, #20\n pop {r4, r5, pc}",
}


def test_names_and_pairs_know_what_was_saved():
    """Behind the call the pointer in r4 has the name that it had before it."""
    document, binary = proved(NAMED, "cortex-m7")
    found = {one.verdict for one in check_bound(document, binary).findings if not one.check.startswith("limits of")}
    assert found == {"ok"}
    text = document["bound"]["certificates"][1]
    (before,) = re.findall(r"^name 0x\S+/g\+0x0 r4 (\S+) 0$", text, re.MULTILINE)
    assert f"\nname f+0xe r4 {before} 0\n" in text


STACK = Value("stack", -16, -16, 0)


def machine():
    running = Machine(SimpleNamespace(segments=(), isa="thumb"), saving={8: {0}})
    running.begin(SimpleNamespace(address=8), State({}))
    return running


def saved(address, size=4):
    """What is saved behind a store to ``address`` by an instruction that saves its first register, then by another."""
    running, state = machine(), State({"r13": STACK})
    running.store(Value("stack", -8, -8, 0), 4, number(3, 3, 0), "r7", state)
    running.begin(SimpleNamespace(address=12), State({}))
    running.store(address, size, TOP, object(), state)
    return running, state


@pytest.mark.parametrize(
    ("address", "size", "stays"),
    [
        (Value("stack", -8, -8, 0), 4, False),
        (Value("stack", -5, -5, 0), 1, False),
        (Value("stack", -12, -12, 0), 8, False),
        (Value("stack", -4, -4, 0), 4, True),
        (Value("stack", -12, -4, 4), 4, True),
        (Value("any", 0, 2**32 - 1, 1), 4, True),
    ],
)
def test_a_store_to_a_known_place_changes_what_is_saved_and_no_other(address, size, stays):
    running, state = saved(address, size)
    assert (SAVED - 8 in state.values) == stays
    is_loaded = running.load(Value("stack", -8, -8, 0), 4, state)[0] == number(3, 3, 0)
    assert is_loaded == stays
    assert ("saved-registers" in running.used) == (stays and -8 not in state.values)


def test_who_saves_at_a_place_that_is_not_known_leaves_nothing_saved():
    running, state = saved(Value("stack", -4, -4, 0))
    running.begin(SimpleNamespace(address=8), State({}))
    running.store(Value("stack", -12, -4, 4), 4, TOP, object(), state)
    assert SAVED - 8 not in state.values


@pytest.mark.parametrize(
    ("pointer", "stays"),
    [
        (Value("stack", -8, -8, 0), True),
        (Value("stack", -16, -8, 4), True),
        (Value("stack", -4, -4, 0), False),
        (Value("stack", -16, -4, 4), False),
        (TOP, False),
    ],
)
def test_what_may_be_below_the_stack_pointer_is_saved_no_more(pointer, stays):
    running, state = saved(Value("stack", -4, -4, 0))
    state.write("r13", pointer, object())
    running.released([Outcome("fall", 0, state)], "r13")
    assert (SAVED - 8 in state.values) == stays


C = """
int g(int *a, int n) { int own[8]; for (int i = 0; i < 8; i++) own[i] = a[i] + n; return own[n & 7]; }
int f(int n) { int a[8]; for (int i = 0; i < 8; i++) a[i] = i * n; return g(a, n) + g(a, n + 1); }
int main(int n) { return f(n) + f(n + 3); }
"""


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("target", TARGETS)
def test_prover_and_checker_find_the_same_stores_in_what_a_compiler_makes(target, level):
    on = guest_of(C, load_target(target), ".c", level)
    lifter = image_lifter(on.target.pcode_language, on.target.isa, on.image.segments)
    graph = build_supergraph(on.image, lifter, require_symbol(on.image, "f"), {}, {})
    told: dict[int, set[int]] = {}
    for (address, _), number_of_store in saved_words.saving_stores(graph, lifter).items():
        told.setdefault(address, set()).add(number_of_store)
    checked = saving_stores(on.image, {one.address: one for one in on.instructions})
    assert told or level == "-O2" or target == "mpc603e"  # where Clang saves the address to return to, and no register
    assert {address: set(checked.get(address, ())) for address in told} == told


def test_the_analysis_lists_nothing_where_nothing_is_assumed():
    document, _ = proved(shape("cortex-m4", "strb r3, [sp, #3]"))
    assert "saved:" not in "".join(document["bound"]["certificates"])
    assert "saved-registers" not in {one["id"] for one in document["bound"]["assumptions"]}
