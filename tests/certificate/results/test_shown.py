"""What a result shows of its bound is that of the certificate, of code that functions share as well."""

import pytest

from tests.certificate.forgeries import sealed
from tests.certificate.kernel.test_code import document_of
from tests.support import assembler, guest_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.check import check_bound
from wcet_probe.errors import VerificationError

SHARED = {
    "f": "push {r4, lr}\n bl g\n bl h\n pop {r4, pc}\n",
    "g": "cmp r0, #3\n beq tail\n bx lr\n",
    "h": "cmp r0, #4\n bne tail\n nop\n tail: add r0, r0, #1\n bx lr\n",
}
"""``g`` ends in code of ``h``, as libgcc's multiplication and division of numbers of single precision do."""


def shared():
    """The result of ``f``, its binary, and the rows of the block at ``tail``, one of each function."""
    core = load_target("cortex-m4")
    document, binary = document_of(guest_of(assembler(SHARED, core), core))
    rows = document["bound"]["graph"]["blocks"]
    (twice,) = [two for one in rows if len(two := [other for other in rows if other["address"] == one["address"]]) > 1][
        ::2
    ]
    return document, binary, twice


def test_a_block_that_two_functions_share_has_a_row_for_each():
    document, binary, twice = shared()
    assert {one["function"] for one in twice} == {"g", "h"}
    shown = [one for one in check_bound(document, binary).findings if one.check == "what is shown"]
    assert [one.verdict for one in shown] == ["ok"]


@pytest.mark.parametrize(
    ("worst", "reason"), [(7, "are other ones"), (None, "are other ones"), ("twice", "shown twice")]
)
def test_a_row_of_a_shared_block_that_says_something_else_is_refused(worst, reason):
    document, binary, twice = shared()
    if worst == "twice":
        twice[0]["function"] = twice[1]["function"]
    else:
        twice[0]["worst_executions"] = worst
    with pytest.raises(VerificationError, match=reason):
        check_bound(sealed(document), binary)
