"""Certificates of the callees of a bound that are not expanded, those of inner ones first, and for which calls.

A callee is certified for calls where no register holds a stack address, and for more where one is called for more.

Words: certificate, summary (docs/explanation/glossary.md).

*Soundness:* none is claimed; the checker tests what they say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from wcet_probe.analyzer.call_summaries import CallSummary
from wcet_probe.analyzer.callee_table import CalledFor, UnmetError
from wcet_probe.analyzer.values.execution.call_effects import CallKey
from wcet_probe.certificate.kernel.coverage import Code
from wcet_probe.certificate.kernel.records import demand
from wcet_probe.errors import VerificationError

_MOST_ROUNDS = 12


def with_callees(
    code: Code,
    summaries: Mapping[CallKey, CallSummary],
    stack_pointer: str,
    use: Callable[[Code], tuple[str, str]],
    *,
    is_separate: bool,
) -> tuple[tuple[str, str], tuple[tuple[str, str], ...]]:
    """What ``use`` makes of ``code`` with the callees of ``summaries``, and their certificates, inner ones first.

    Args:
        code: the image.
        summaries: of all calls that are not expanded.
        stack_pointer: that register.
        use: makes the certificates of the bound; it raises `UnmetError` where a callee is certified for too little.
        is_separate: whether *stack-separation* is among the assumptions of the bound.

    Raises:
        VerificationError: the checker does not follow all of it.
    """
    order = _in_order(summaries)
    unknown: dict[int, frozenset[str]] = {}
    for _ in range(_MOST_ROUNDS):
        try:
            known, texts, is_listed = code, list[tuple[str, str]](), True
            for address, summary in order:
                if summary.certify is None:
                    raise VerificationError("a callee has no certificate.")
                one = summary.certify(known, CalledFor(unknown.get(address, frozenset()), is_separate))
                known = replace(known, callees={**known.callees, address: one.callee})
                texts.append(one.texts)
                is_listed &= is_separate or not one.is_separate
            own = use(known)
            demand(is_listed, "a callee rests on stack-separation, which is not listed")
            return own, tuple(texts)
        except UnmetError as error:
            if any(stack_pointer in registers for registers in error.registers.values()):
                break
            unknown |= {at: own | unknown.get(at, frozenset()) for at, own in error.registers.items()}
    raise VerificationError("callees are called with what nobody knows.")


def _in_order(summaries: Mapping[CallKey, CallSummary]) -> list[tuple[int, CallSummary]]:
    """Of each callee the cheapest summary, behind those of its own callees.

    Raises:
        VerificationError: none is the cheapest in both units, or a callee calls itself.
    """
    chosen: dict[int, CallSummary] = {}
    for key, summary in summaries.items():
        least = chosen.setdefault(key.target, summary)
        if all(summary.most[unit] <= most for unit, most in least.most.items()):
            chosen[key.target] = summary
    for key, summary in summaries.items():
        if any(most < chosen[key.target].most[unit] for unit, most in summary.most.items()):
            raise VerificationError("no summary of a callee is the cheapest.")
    found: dict[int, CallSummary] = {}
    while len(found) < len(chosen):
        ready = [at for at, one in chosen.items() if at not in found and _targets(one.inner) <= found.keys()]
        if not ready:
            raise VerificationError("a callee calls itself.")
        found |= {at: chosen[at] for at in ready}
    return list(found.items())


def _targets(keys: Iterable[CallKey]) -> set[int]:
    return {key.target for key in keys}
