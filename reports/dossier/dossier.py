"""The WCET dossier: from result documents to a tree of sections that renderers print. It computes no result.

Its sections are those that a certification file asks for. What belongs to one item (an allocator or function on a
target) is a part of its own where there are several items; what belongs to the tool stands once.
"""

from __future__ import annotations

from collections.abc import Sequence

from wcet_probe.reports.dossier.blocks import Dossier, Section
from wcet_probe.reports.dossier.code_check import code_check_lines
from wcet_probe.reports.dossier.evidence import (
    method_section,
    qualification_section,
    traceability_section,
    validation_section,
)
from wcet_probe.reports.dossier.frame import (
    appendix_section,
    change_section,
    identification_section,
    overview_section,
    report_id,
    sign_off_section,
)
from wcet_probe.reports.dossier.grounds import Numbers, assumptions_section, facts_section, number_assumptions
from wcet_probe.reports.dossier.item import claim_section, item_section, target_section
from wcet_probe.reports.dossier.qualification import load_qualification
from wcet_probe.reports.dossier.results import certificate_section, results_section
from wcet_probe.reports.dossier.subject import Json, Subject, counted, subjects
from wcet_probe.reports.dossier.witness import sensitivity_section, witness_section

_TITLES_SHOWN = 4


def build_dossier(
    documents: Sequence[Json],
    earlier: Sequence[Json] | None = None,
    *,
    full: bool = False,
    not_checked: Sequence[tuple[str, ...] | None] | None = None,
) -> Dossier:
    """The dossier of ``documents``.

    Args:
        documents: of format ``wcet-probe-result`` or ``wcet-probe-bound``, at least one.
        earlier: those of an earlier report, for the change-impact section.
        full: print long tables whole, all code of the worst paths, and the certificates.
        not_checked: of each document, what a check against its code left open; None where there was none.

    Raises:
        VerificationError: a certificate does not prove what its document says.
    """
    data, found = load_qualification(), subjects(documents, not_checked)
    numbers = number_assumptions(found)
    frame = {
        "identification": identification_section(found),
        "target": target_section(found),
        "assumptions": assumptions_section(found, numbers, data),
        "method": method_section(data),
    }
    end = (
        traceability_section(found, data),
        qualification_section(data),
        change_section(found, earlier, full=full),
        sign_off_section(),
        *((appendix_section(found),) if full else ()),
    )
    validation = validation_section(found, data, full=full)
    if len(found) == 1:
        item, claim, facts, results, certificate, witness, sensitivity = _of_subject(found[0], numbers, 1, full=full)
        sections = (
            frame["identification"],
            item,
            claim,
            frame["target"],
            frame["assumptions"],
            facts,
            frame["method"],
            results,
            certificate,
            witness,
            validation,
            sensitivity,
            *end,
        )
    else:
        parts = (_part(subject, numbers, len(found), full=full) for subject in found)
        identification, *rest = frame.values()
        sections = (identification, overview_section(found), *parts, *rest, validation, *end)
    title = "WCET dossier"
    about = counted(len(found), "item") if len(found) > _TITLES_SHOWN else ", ".join(one.title for one in found)
    subtitle = "\n".join((about, f"Report {report_id(found)}", *code_check_lines(found)))
    return Dossier(title, subtitle, sections)


def _of_subject(subject: Subject, numbers: Numbers, among: int, *, full: bool) -> tuple[Section, ...]:
    return (
        item_section(subject, full=full),
        claim_section(subject, numbers, pictured=among == 1),
        facts_section(subject, numbers, full=full),
        results_section(subject, full=full, among=among),
        certificate_section(subject),
        witness_section(subject, full=full),
        sensitivity_section(subject),
    )


def _part(subject: Subject, numbers: Numbers, among: int, *, full: bool) -> Section:
    return Section(subject.title, subject.anchor, (), _of_subject(subject, numbers, among, full=full))
