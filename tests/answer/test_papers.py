"""The papers reproduced: what a table holds, what a claim is, and that it can come out either way."""

from fractions import Fraction

import pytest

from tests.support import images_dir
from wcet_probe.answer.papers import PAPERS
from wcet_probe.answer.papers.exhibit import Laboratory, Worst, ordered, rounded
from wcet_probe.catalog.lookup import allocator_names, load_target


def test_the_order_of_numbers_is_a_claim_that_names_what_breaks_it():
    assert ordered("rising", {"a": 1, "b": 2, "c": 1000}).holds
    broken = ordered("rising", {"a": 1, "b": Fraction(5, 2), "c": 2})
    assert not broken.holds
    assert broken.why.startswith("b 2.50 ≥ c 2")


@pytest.mark.parametrize(
    ("value", "places", "text"),
    [
        (Fraction(1, 3), 2, "0.33"),
        (Fraction(-1, 2), 1, "-0.5"),
        (Fraction(5), 1, "5.0"),
        (Fraction(1999, 2000), 3, "1.000"),
    ],
)
def test_decimals(value, places, text):
    assert rounded(value, places) == text


class Invented(Laboratory):
    """A laboratory that finds what a test says."""

    def worst(self, name, role, heap_bytes=4 << 20):
        base = {"first-fit": 10**6, "best-fit": 11 * 10**5, "half-fit": 60, "tlsf": 72}.get(name, 500)
        counts = base * heap_bytes // (4 << 20) if "fit" in name and base > 1000 else base
        return Worst(f"worst-{role}", "invented", counts, 2 * counts)


def laboratory(kind=Laboratory, preset="p02", target="cortex-m4"):
    return kind(preset, load_target(target), True, "zig", images_dir())


def test_claims_are_checked_on_what_is_found():
    found = PAPERS["C06"].exhibits["T3"](laboratory(Invented, "c06"))
    claims = {shape.name: shape for shape in found.shapes}
    order = next(shape for name, shape in claims.items() if name.startswith("instructions: HF"))
    assert not order.holds
    assert "BB 500 ≥ AVL 500" in order.why
    assert next(shape for name, shape in claims.items() if name.startswith("TLSF is 20 %")).holds
    assert next(shape for name, shape in claims.items() if name.startswith("HF and TLSF do not")).holds


def test_every_allocator_of_a_paper_is_ours_and_every_exhibit_is_named_as_in_the_paper():
    assert set(PAPERS) >= {"P02", "C06", "M06"}
    for paper in PAPERS.values():
        assert all(name[0] in "TF" and name[1:].isdigit() for name in paper.exhibits)
    table = PAPERS["P02"].exhibits["T1"](laboratory())
    assert {row[0].split(" ")[0] for row in table.rows} <= set(allocator_names())
    assert all(row[0].endswith("(p02)") for row in table.rows)


def test_theory_of_fragmentation():
    rows = PAPERS["C06"].exhibits["T2"](laboratory()).rows
    assert rows[0] == ("m = 1,024", "10.83", "1,022", 11)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cortex-m4", "mpc603e"])
@pytest.mark.parametrize("paper", ["P02", "C06", "M06"])
def test_all_tables_and_figures_regenerate(paper, target):
    measured = laboratory(preset=paper.lower(), target=target)
    for name, exhibit in PAPERS[paper].exhibits.items():
        found = exhibit(measured)
        assert found.name == name
        assert found.rows
        assert all(len(row) == len(found.header) for row in found.rows)
