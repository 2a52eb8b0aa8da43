"""Code that the checker must follow: calls, saved registers of either file, tables, counters on the stack."""

import json
from itertools import pairwise
from unittest.mock import patch

import pytest

from tests.certificate.forgeries import solved_again
from tests.support import TARGETS, assembler, guest_of
from wcet_probe.analyzer import prepared
from wcet_probe.analyzer.bound import prove
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.prepared import BoundRequest
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.asserted import Asserted
from wcet_probe.certificate.charge import edge_cost
from wcet_probe.certificate.check import Binary, check_bound
from wcet_probe.errors import VerificationError
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
    "bits": "int f(unsigned n) { int k = 0; n &= 0xFFF; while (n) { k += n & 1; n >>= 1; } return k; }",
}


NOT_SEEN = {("bits", "arm926ej-s")}
"""There the old value is compared behind the shift: that the new one is not 0 takes a relation."""


@pytest.mark.covering
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CODE)
def test_instructions_are_checked_in_full(name, target):
    open_ones = not_checked(guest_of(CODE[name], load_target(target), ".c"))
    assert open_ones - {"costs in cycles", "limits of misses in cycles"} == (
        {"loop bounds"} if (name, target) in NOT_SEEN else set()
    )


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
        assert len(others) < len(followed) or not followed
        return problem, derivations, [*others, f"invariant {node} r12 number 5 0 0"] if followed else []

    document, binary = document_of(on)
    check_bound(document, binary)
    with pytest.raises(VerificationError, match="what is said of r12"):
        check_bound(solved_again(document, change), binary)
