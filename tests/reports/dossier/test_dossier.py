"""The dossier as a tree: its sections, what they claim, and that they claim nothing that a document does not prove."""

import copy
import re

import pytest

from tests.certificate.forgeries import sealed
from tests.results import result as real_result
from wcet_probe.errors import VerificationError
from wcet_probe.reports.dossier.blocks import Blank, Code, KeyValues, Paragraph, Section, Table
from wcet_probe.reports.dossier.dossier import build_dossier
from wcet_probe.reports.dossier.numbered import numbered

SIXTEEN = [
    "Identification",
    "Item under analysis",
    "Claim",
    "Target configuration",
    "Assumptions and restrictions",
    "Flow facts",
    "Method",
    "Results",
    "Certificate and checker's verdict",
    "Witness and gap",
    "Validation of this version",
    "Sensitivity",
    "Traceability",
    "Tool qualification data",
    "Change impact",
    "Sign-off",
]
LATER_KEYS = ("request", "command", "allocator_manifest", "target_configuration", "listing", "source_lines", "gap")
LATER_BOUND_KEYS = ("graph", "flow_claims", "worst_path_cycles")


def result(allocator, target="cortex-m4", scenario="worst-alloc", *, prove=True):
    return real_result(allocator, target, scenario, prove=prove)


def all_sections(parts):
    for part in parts:
        yield part
        yield from all_sections(part.sections)


def texts(part):
    """All texts of a section or dossier."""
    for section in all_sections(part.sections if not isinstance(part, Section) else [part]):
        yield section.title
        for block in section.blocks:
            match block:
                case Paragraph(text, _) | Blank(text) | Code(_, text):
                    yield text
                case KeyValues(rows):
                    yield from (cell for row in rows for cell in row)
                case Table(caption, header, rows, _):
                    yield from (caption, *header, *(cell for row in rows for cell in row))


def section(dossier, title):
    return next(one for one in all_sections(dossier.sections) if one.title == title)


def tables(part, title):
    return [
        block
        for one in all_sections([part])
        for block in one.blocks
        if isinstance(block, Table) and title in block.caption
    ]


def test_one_item_has_the_sixteen_sections():
    dossier = build_dossier([result("tlsf")])
    assert [one.title for one in dossier.sections] == SIXTEEN
    numbered(dossier)  # anchors are unique, tables rectangular


def test_several_items_have_an_overview_and_a_part_each():
    documents = [result("tlsf"), result("tlsf", scenario="worst-free"), result("fast-fit"), result("tlsf", "mpc603e")]
    dossier = build_dossier(documents)
    titles = [one.title for one in dossier.sections]
    assert titles[:5] == ["Identification", "Overview", "tlsf on cortex-m4", "fast-fit on cortex-m4", "tlsf on mpc603e"]
    (overview,) = tables(section(dossier, "Overview"), "All results")
    assert [row[0] for row in overview.rows] == ["tlsf on cortex-m4"] * 2 + titles[3:5]
    assert len(section(dossier, "Target configuration").sections) == 2
    everything = {one.title for one in all_sections(dossier.sections)}
    assert everything >= set(SIXTEEN)
    numbered(dossier)


def test_the_claim_is_the_bound_of_the_document():
    found = result("tlsf")
    claim = section(build_dossier([found]), "Claim")
    lead = next(block.text for block in claim.blocks if isinstance(block, Paragraph) and block.style == "lead")
    assert (
        f"takes more than {found['bound']['instructions']:,} instructions or {found['bound']['cycles']:,} cycles"
        in lead
    )
    assert f"under assumptions A-01 to A-{len(found['bound']['assumptions']):02}. Of this bound: " in lead


@pytest.mark.parametrize("allocator", ["tlsf", "fast-fit"])
def test_every_assumption_is_numbered_once_and_discharged(allocator):
    found = result(allocator)
    part = section(build_dossier([found]), "Assumptions and restrictions")
    assumed, discharged, _ = (block for block in part.blocks if isinstance(block, Table))
    assert [row[0] for row in assumed.rows] == [f"A-{place:02}" for place in range(1, len(assumed.rows) + 1)]
    said = {(row[1], row[2]) for row in assumed.rows}
    assert said == {(one["id"], one["statement"]) for one in found["bound"]["assumptions"]}
    covered = set()
    for ranges, by, _, consequence in discharged.rows:
        assert by != "—"
        assert consequence != "—"
        for first, last in re.findall(r"A-(\d+)(?: to A-(\d+))?", ranges):
            covered |= set(range(int(first), int(last or first) + 1))
    assert covered == set(range(1, len(assumed.rows) + 1))


def test_every_loop_stands_with_origin_and_largest_observation():
    found = result("fast-fit")
    (table,) = tables(section(build_dossier([found]), "Flow facts"), "Loop bounds")
    assert len(table.rows) == len(found["bound"]["loops"])
    for row, loop in zip(table.rows, found["bound"]["loops"], strict=True):
        assert row[0] == loop["location"]
        assert row[3].startswith(f"{loop['max']:,}")
        assert row[4:] == (f"{loop['observed_max']:,}", f"{loop['max'] - loop['observed_max']:,}")


def test_scenarios_that_share_a_proof_show_the_larger_observation():
    first, second = result("fast-fit"), result("fast-fit", scenario="best-alloc")
    (table,) = tables(section(build_dossier([second, first]), "Flow facts"), "Loop bounds")
    most = [
        max(pair)
        for pair in zip(
            *([loop["observed_max"] for loop in one["bound"]["loops"]] for one in (first, second)), strict=True
        )
    ]
    assert [row[4] for row in table.rows] == [f"{count:,}" for count in most]


def test_the_worst_path_stands_in_source_and_code():
    found = result("tlsf", "mpc603e")
    (code,) = [
        block
        for one in all_sections([section(build_dossier([found], full=True), "Results")])
        for block in one.blocks
        if isinstance(block, Code)
    ]
    executed = [(block["address"], block["end_address"]) for block in found["bound"]["worst_path"]]
    expected = [
        f"{one['address']}  {one['text']}"
        for one in found["listing"]
        if any(a <= one["address"] < e for a, e in executed)
    ]
    assert [line.strip() for line in code.text.splitlines() if line.startswith("    0x")] == expected
    assert "tlsf.c:" in code.text


def test_every_number_of_the_target_has_its_source():
    found = result("tlsf", "mpc603e")
    sources = {
        row[3] for table in tables(section(build_dossier([found]), "Target configuration"), "") for row in table.rows
    }
    timing = found["target_configuration"]["timing"]
    assert all(any(one["source"] in source for source in sources) for one in timing.values())


def test_the_certificates_stand_with_what_the_checker_found():
    found = result("fast-fit")
    (table,) = tables(section(build_dossier([found]), "Certificate and checker's verdict"), "Certificates")
    assert [row[1:3] for row in table.rows] == [
        (unit, f"{found['bound'][unit]:,}") for unit in ("instructions", "cycles")
    ]


@pytest.mark.parametrize("path", ["bound.instructions", "bound.digest", "slack.cycles", "observed.instructions"])
def test_what_is_not_proved_is_not_reported(path):
    found = result("tlsf")
    part, key = path.split(".")
    found[part][key] = "0" * 64 if key == "digest" else found[part][key] + 1
    with pytest.raises(VerificationError, match=r"tlsf on cortex-m4.*not verified"):
        build_dossier([found])


def test_a_document_without_later_keys_is_reported_with_blanks():
    found = result("tlsf", "mpc603e", prove=False)
    for key in LATER_KEYS:
        found.pop(key)
    found["tool"].pop("packages", None)
    found["image"] = {key: found["image"][key] for key in ("sha256", "compiler", "flags")}
    dossier = build_dossier([found])
    assert [one.title for one in dossier.sections] == SIXTEEN
    numbered(dossier)


def test_without_a_bound_nothing_is_claimed():
    dossier = build_dossier([result("tlsf", prove=False)])
    claim = "\n".join(texts(section(dossier, "Claim")))
    assert "no bound is claimed" in claim
    assert "takes more than" not in claim


def test_a_bound_of_a_firmware_is_reported_without_witness():
    found = result("tlsf")
    firmware = {key: found[key] for key in ("version", "tool", "target", "bound")}
    firmware |= {"format": "wcet-probe-bound", "image": {"sha256": found["image"]["sha256"]}, "sources": ["tlsf.c"]}
    dossier = build_dossier([firmware])
    assert [one.title for one in dossier.sections] == SIXTEEN
    assert any("Nothing was executed" in text for text in texts(dossier))
    assert f"tlsf_malloc on {found['target']}" in dossier.subtitle
    numbered(dossier)
    numbered(build_dossier([firmware, found]))


def test_the_tree_depends_on_content_alone():
    found = result("fast-fit")
    shuffled = dict(reversed(copy.deepcopy(found).items()))
    assert build_dossier([found]) == build_dossier([shuffled])


def test_change_impact_tells_what_moved_and_what_to_review():
    now, before = result("fast-fit"), result("fast-fit")
    before["bound"]["instructions"] -= 7
    before["image"]["sha256"] = "0" * 64
    before["bound"]["loops"][0]["max"] -= 1
    part = section(build_dossier([now], [before]), "Change impact")
    (moved,) = tables(part, "Numbers that moved")
    assert [row[1:] for row in moved.rows] == [
        ("bound, instructions", f"{before['bound']['instructions']:,}", f"{now['bound']['instructions']:,}", "+7")
    ]
    words = "\n".join(texts(part))
    assert "A bound went up" in words
    assert f"To be reviewed again: loop bound {now['bound']['loops'][0]['location']}" in words
    same = "\n".join(texts(section(build_dossier([now], [now]), "Change impact")))
    assert "No bound went up" in same
    assert "0 of them not the same" in same


def test_what_the_tool_cannot_know_is_a_blank():
    dossier = build_dossier([result("tlsf")])
    signed = section(dossier, "Sign-off")
    assert [type(block) for block in signed.blocks[1:]] == [Blank] * 4
    blanks = [
        block.prompt for one in all_sections(dossier.sections) for block in one.blocks if isinstance(block, Blank)
    ]
    for word in ("date", "Clock", "budget", "requirement", "wait states", "qualification level"):
        assert any(word in prompt for prompt in blanks), word
    assert any("is not qualified" in text for text in texts(dossier))


def test_a_full_report_has_the_certificates():
    found = result("tlsf")
    appendix = section(build_dossier([found], full=True), "Appendix: certificates")
    printed = [block.text for one in all_sections([appendix]) for block in one.blocks if isinstance(block, Code)]
    assert printed == found["bound"]["certificates"]


def test_facts_and_lemmas_stand_with_their_numbers():
    found = result("fast-fit")
    part = section(build_dossier([found]), "Flow facts")
    (reasons,) = tables(part, "Why the declared")
    assert {row[1] for row in reasons.rows} == {loop["because"] for loop in found["bound"]["loops"] if loop["because"]}
    words = "\n".join(texts(part))
    for one in found["bound"]["assumptions"]:
        kind, _, where = one["id"].partition(" ")
        assert kind not in {"fact", "lemma"} or where in words


def test_that_a_result_carries_a_module_certificate_is_told():
    found = result("kingsley")
    assert "module certificate" not in "\n".join(texts(section(build_dossier([found]), "Flow facts")))
    found["bound"]["module"] = {"facts": [{"where": "kingsley/facts.toml:28", "accesses": 6}]}
    words = "\n".join(texts(section(build_dossier([sealed(found)]), "Flow facts")))
    assert "a check against the binary can prove kingsley/facts.toml:28" in words


def test_a_loop_in_several_contexts_stands_once():
    found = result("quick-fit")
    (table, *_) = tables(section(build_dossier([found]), "Flow facts"), "Loop bounds")
    contexts = [int(match[1]) if (match := re.search(r", in (\d+) contexts$", row[0])) else 1 for row in table.rows]
    assert max(contexts) > 1
    assert sum(contexts) == len(found["bound"]["loops"])
