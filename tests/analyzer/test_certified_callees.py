"""Callees are certified inner ones first, the cheapest summary of each, and again where they are called for more."""

from types import SimpleNamespace

import pytest

from wcet_probe.analyzer.callee_table import CertifiedCallee, UnmetError
from wcet_probe.analyzer.certified_callees import with_callees
from wcet_probe.analyzer.values.execution.call_effects import CallKey
from wcet_probe.certificate.kernel.coverage import Code
from wcet_probe.errors import VerificationError

CODE = Code(None, {})
OUTER, INNER = 0x200, 0x100


def key(target, *, holds=True):
    return CallKey(target, frozenset(), escapes=False, is_aligned=True, below=frozenset(), holds=holds)


def summary(target, *, instructions=9, cycles=9, inner=(), text=None):
    def certify(code, called):
        assert {one.target for one in inner} <= code.callees.keys()
        return CertifiedCallee(SimpleNamespace(address=target, called=called), (text or f"{target:#x}", "cycles"))

    return SimpleNamespace(
        most={"instructions": instructions, "cycles": cycles}, inner=frozenset(inner), certify=certify
    )


def used(summaries, use=lambda code: (", ".join(map(hex, code.callees)), "")):
    return with_callees(CODE, summaries, "r13", use, is_separate=True)


def test_inner_callees_are_certified_before_those_that_call_them():
    own, callees = used({key(OUTER): summary(OUTER, inner=[key(INNER)]), key(INNER): summary(INNER)})
    assert own == ("0x100, 0x200", "")
    assert callees == (("0x100", "cycles"), ("0x200", "cycles"))


def test_of_several_summaries_the_cheapest_is_certified_if_one_is():
    many = {key(INNER): summary(INNER, text="dear"), key(INNER, holds=False): summary(INNER, cycles=7, text="cheap")}
    assert used(many)[1] == (("cheap", "cycles"),)
    many[key(INNER)] = summary(INNER, instructions=8)
    with pytest.raises(VerificationError, match="cheapest"):
        used(many)


def test_callees_of_each_other_are_not_certified():
    with pytest.raises(VerificationError, match="calls itself"):
        used({key(INNER): summary(INNER, inner=[key(OUTER)]), key(OUTER): summary(OUTER, inner=[key(INNER)])})


def test_a_callee_without_certificate_has_none():
    without = summary(INNER)
    without.certify = None
    with pytest.raises(VerificationError, match="no certificate"):
        used({key(INNER): without})


def test_a_callee_is_certified_again_where_it_is_called_for_more():
    def use(code):
        called = code.callees[INNER].called
        assert called.is_separate
        if "r4" not in called.unknown:
            raise UnmetError({INNER: frozenset({"r4"} if "r0" in called.unknown else {"r0"})})
        return ", ".join(sorted(called.unknown)), ""

    assert used({key(INNER): summary(INNER)}, use)[0] == ("r0, r4", "")


def test_for_a_stack_pointer_that_nobody_knows_nothing_is_certified():
    def use(_code):
        raise UnmetError({INNER: frozenset({"r13"})})

    with pytest.raises(VerificationError, match="nobody knows"):
        used({key(INNER): summary(INNER)}, use)
