"""Cases of which one holds where a loop begins: a counter that is at its end already, and what may not be said.

Tests: certificate.kernel.equalities, certificate.kernel.coverage, analyzer.ipet.cases.
"""

import re
from dataclasses import replace
from unittest.mock import patch

import pytest

from tests.certificate.forgeries import sealed, solved_again
from tests.certificate.kernel.test_code import document_of, not_checked
from tests.support import assembler, guest_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.check import OK, check_bound
from wcet_probe.certificate.kernel.coverage import Said, code_of
from wcet_probe.certificate.kernel.coverage import _covered as covered
from wcet_probe.certificate.kernel.equalities import Case
from wcet_probe.certificate.kernel.records import graph_of, read_records
from wcet_probe.certificate.machines import arm as code_of_isa
from wcet_probe.certificate.machines.machine import Machine
from wcet_probe.certificate.values.numbers import TOP, constant, number
from wcet_probe.certificate.values.state import State
from wcet_probe.errors import VerificationError

LIMITED = {
    "cortex-m4": """
 movs r2, #{least}
 cmp r1, #{most}
 it hi
 {above}
1: cmp r2, r1
 beq 2f
 ldr r3, [r0], #4
 adds r1, #{step}
 cmp r3, #0
 beq 1b
2: bx lr
""",
    "arm926ej-s": """
 mov r2, #{least}
 cmp r1, #{most}
 {above}
1: cmp r2, r1
 beq 2f
 ldr r3, [r0], #4
 add r1, r1, #{step}
 cmp r3, #0
 beq 1b
2: bx lr
""",
}
"""A loop up to the greater of an argument and 2: at once, or three times."""
TRUE = {"least": 2, "most": 2, "above": "movhi r2, r1", "step": 1}


def guest(target="cortex-m4", **changed):
    core = load_target(target)
    return guest_of(assembler({"f": LIMITED[target].format(**TRUE | changed)}, core), core)


@pytest.mark.parametrize("target", LIMITED)
def test_a_counter_that_is_at_its_end_already_or_limited_is_counted(target):
    on = guest(target)
    assert not_checked(on) == set()
    text = document_of(on)[0]["bound"]["certificates"][0]
    found = re.findall(r"^case\S* \S+ (.*)", text, re.MULTILINE)
    assert found == ["0 r2 r1", "1 r2 number 2 0 0", "1 r1 number 0 1 2"]


def forged(change, **changed):
    """What is said of cases changed."""
    document, binary = document_of(guest(**changed))

    def of_lines(problem, derivations, followed):
        header = next(edge.target for edge in problem.edges if edge.name in problem.loops[0].back_edges)
        is_first = any(line.startswith("invariant ") for line in followed)
        return problem, derivations, change(header, problem.entry, followed) if is_first else followed

    return check_bound(sealed(solved_again(document, of_lines)), binary)


def instead(old, new):
    return lambda *given: [re.sub(old, new, line) for line in given[-1]]


FORGED = {
    "of the entry": (instead(r"^(case\S*) \S+", r"\1 f+0x0"), "at the entry|does not follow"),
    "of the entry, too": (lambda _, e, f: [*f, f"case {e} 0 r1 number 0 0 0"], "at the entry"),
    "without the equal one": (lambda *given: [one for one in given[-1] if "case-equal" not in one], "of cases"),
    "without the limited one": (
        lambda *given: [one for one in given[-1] if not re.match(r"case \S+ 1", one)], "of cases"
    ),
    "one number less": (instead(r"^(case \S+ 1 r1 number 0 1) 2", r"\1 1"), "of cases"),
    "not the first number": (instead(r"^(case \S+ 1 r1 number) 0 1 2", r"\1 1 1 1"), "of cases"),
    "another end": (instead(r"^(case \S+ 1 r2 number) 2", r"\1 3"), "of cases"),
    "another register is equal": (instead("^(case-equal .*) r1", r"\1 r3"), "of cases"),
    "both in one case": (instead(r"^(case\S* \S+) 1", r"\1 0"), "of cases"),
    "told twice": (lambda h, _, f: [*f, f"case {h} 1 r1 number 0 0 0"], "told twice"),
    "equal twice": (lambda h, _, f: [*f, f"case-equal {h} 0 r2 r3"], "told twice"),
    "of itself": (instead("^(case-equal .*) r1", r"\1 r2"), "is equal to one that is equal"),
    "of no node": (lambda *given: [*given[-1], "case nowhere 0 r1 number 0 0 0"], "is of no node"),
    "no value": (instead(r"^(case \S+ 1 r1 number 0 1) 2", r"\1 0"), "are none"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_forged_cases_are_refused(name):
    change, reason = FORGED[name]
    with pytest.raises(VerificationError, match=reason):
        forged(change)


OTHERS = {
    "one more than it": {"above": "addhi r2, r1, #1"},
    "another end": {"least": 4},
    "a greater step": {"step": 2, "least": 4, "most": 0},
}


@pytest.mark.parametrize("name", OTHERS)
def test_cases_of_another_program_are_refused(name):
    """The cases of the true program, and what holds in its loop by them."""
    own = [
        line.removeprefix("case ") for line in
        ("case-equal {0} 0 r2 r1", "case {0} 1 r2 number 2 0 0", "case {0} 1 r1 number 0 1 2")
    ]  # fmt: skip

    def change(header, _, followed):
        kept = [one for one in followed if not one.startswith("case")]
        return [*kept, *(f"{'' if line.startswith('case') else 'case '}{line.format(header)}" for line in own)]

    with pytest.raises(VerificationError, match="of cases"):
        forged(change, **OTHERS[name])


def test_a_case_holds_where_all_of_it_is_known():
    case = Case({"r0": number(0, 3)}, {"r1": "r2"})
    assert case.holds(State({"r0": constant(1)}, {"r1": "r2"}))
    assert not case.holds(State({"r0": constant(1)}))
    assert not case.holds(State({"r0": constant(4)}, {"r1": "r2"}))


@pytest.mark.parametrize("most", [0, 1])
def test_a_loop_is_followed_in_each_case(most):
    """With the first case alone it has no round, and with less of the second one, fewer."""
    document, binary = document_of(guest())

    def fewer(problem, derivations, followed):
        (loop,), (derivation,) = problem.loops, derivations
        derivation = replace(derivation, initial_high=most, max_header=most + 1)
        return replace(problem, loops=(replace(loop, max_back_edges=most),)), [derivation], followed

    lower = solved_again(document, fewer)
    lower["bound"]["loops"] = [{**document["bound"]["loops"][0], "max": most + 1}]
    with patch("wcet_probe.certificate.check.check_shown", return_value="nothing"):
        found = check_bound(sealed(lower), binary).findings
    assert [one.check for one in found if one.verdict != OK] == ["loop bounds"]


def test_code_is_that_of_the_case_that_is_followed_to_its_end():
    """Of a case that cannot be an instruction may have no way on."""
    core = load_target("cortex-m4")
    on = guest_of(assembler({"f": " nop\n bx lr\n"}, core), core)
    document, binary = document_of(on)
    graph = graph_of(read_records(document["bound"]["certificates"][0]))
    code, ways = code_of(binary.image, binary.instructions), code_of_isa.outcomes_of

    def none_of_7(machine, instruction, state):
        return [] if state.read("r5") == constant(7) else ways(machine, instruction, state)

    cases = {graph.entry: [Case({"r5": constant(7)}, {}), Case({"r5": TOP}, {})]}
    said = Said({graph.entry: {}}, {}, {}, cases)
    with patch.object(code_of_isa, "outcomes_of", none_of_7):
        found = covered(code, Machine(binary.image), graph, said, {}, "")
    assert len(found.instructions[graph.entry]) == 2
