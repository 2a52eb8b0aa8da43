"""The papers reproduced: what a table holds, what a claim is, and that it can come out either way.

Tests: answer.papers.exhibit, answer.papers.known, answer.papers.laboratory, answer.papers.points.
"""

import re
from fractions import Fraction
from types import SimpleNamespace

import pytest

from tests.support import images_dir
from wcet_probe.answer.papers.exhibit import Exhibit, Shape, bars, ordered, rounded
from wcet_probe.answer.papers.known import PAPERS
from wcet_probe.answer.papers.laboratory import Laboratory, planned_points
from wcet_probe.answer.papers.points import Settings, Worst
from wcet_probe.answer.papers.store import ResultStore
from wcet_probe.answer.workloads.workload_tally import Distribution
from wcet_probe.catalog.lookup import allocator_names, load_target
from wcet_probe.errors import ContradictionError, WcetProbeError
from wcet_probe.model.target import without_caches
from wcet_probe.reports.formats.reproduction import reproduction_document
from wcet_probe.reports.pictures.exhibits import exhibit_picture


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

    def dearest(self, name, role, heap_bytes):
        return self.worst(name, role, heap_bytes)


def laboratory(kind=Laboratory, preset="p02", target="cortex-m4"):
    core = load_target(target) if preset == "h11" else without_caches(load_target(target))
    return kind(preset, True, ResultStore(images_dir() / "papers", Settings(core, "zig", images_dir())))


def test_claims_are_checked_on_what_is_found():
    found = PAPERS["C06"].exhibits["T3"](laboratory(Invented, "c06"))
    claims = {shape.name: shape for shape in found.shapes}
    order = next(shape for name, shape in claims.items() if name.startswith("instructions: HF"))
    assert not order.holds
    assert "BB 500 ≥ AVL 500" in order.why
    assert next(shape for name, shape in claims.items() if name.startswith("TLSF's worst malloc takes 1.20")).holds
    assert next(shape for name, shape in claims.items() if name.startswith("HF and TLSF do not")).holds


def test_quick_fits_hybrid_growth_is_two_claims_each_of_which_can_fail():
    """One that grows with the heap everywhere, as this one does, is no hybrid."""
    found = PAPERS["P02"].exhibits["F4"](laboratory(Linear))
    claims = {shape.name: shape.holds for shape in found.shapes}
    assert claims["quick-fit's grows with the heap in large ones"]
    assert not claims["quick-fit's does not grow in small heaps"]
    constant = PAPERS["P02"].exhibits["F4"](laboratory(Invented))
    assert {shape.name: shape.holds for shape in constant.shapes} == {
        "first-fit's and best-fit's worst allocation grows with the heap": True,
        "a buddy's grows with the logarithm of the heap": True,
        "quick-fit's does not grow in small heaps": True,
        "quick-fit's grows with the heap in large ones": False,
    }


class Linear(Invented):
    """Everything grows with the heap."""

    def worst(self, _name, role, heap_bytes=4 << 20):
        return Worst(f"worst-{role}", "invented", heap_bytes, 2 * heap_bytes)


def test_the_share_of_time_is_of_both_workloads_and_the_bound_is_ours():
    """A call of 72,000 cycles takes half of mpg123's time, and less of the synthetic workload's."""
    found = PAPERS["P02"].exhibits["F3"](Shares("p02", True, laboratory().store))
    assert found.rows[0] == ("mpg123", "first-fit (p02)", *("50.00",) * 4, 72_000, "7.97", "8.03", "99.94")
    assert found.rows[7][:3] == ("mean", "first-fit (p02)", "12.59")
    with pytest.raises(ContradictionError, match="72,000 cycles of malloc were observed, and 71,999 are proved"):
        PAPERS["P02"].exhibits["F3"](Shares("p02", True, laboratory().store, bound=71_999))


class Shares(Laboratory):
    """Every call takes 72,000 cycles, and ``bound`` is proved."""

    def __init__(self, *arguments, bound=72_000):
        super().__init__(*arguments)
        self.bound = bound

    def worst(self, _name, role):
        return Worst(f"worst-{role}", "invented", 1, 72_000)

    def run(self, *_arguments, **_others):
        return SimpleNamespace(distributions={("malloc", "cycles"): Distribution({72_000: 1})})

    def bound_cycles(self, *_arguments):
        return self.bound


def test_every_allocator_of_a_paper_is_ours_and_every_exhibit_is_named_as_in_the_paper():
    assert set(PAPERS) == {"P02", "C06", "M06", "L11", "H11"}
    for paper in PAPERS.values():
        assert all(
            name[0] in "TF" and name[1:].removesuffix("M").removesuffix("S").isdigit() for name in paper.exhibits
        )
    table = PAPERS["P02"].exhibits["T1"](laboratory())
    assert {row[0].split(" ")[0] for row in table.rows} <= set(allocator_names())
    assert all(row[0].endswith("(p02)") for row in table.rows)


def test_theory_of_fragmentation():
    rows = PAPERS["C06"].exhibits["T2"](laboratory()).rows
    assert rows[0] == ("m = 1,024", "10.83", "1,022", 11, "1,024")


def test_complexities_are_claims_of_both_operations_and_theory_stands_beside_what_fragments():
    """What grows with the heap everywhere is O(H), and neither O(1) nor O(log H)."""
    found = PAPERS["C06"].exhibits["T1"](laboratory(Linear, "c06"))
    claims = {shape.name: shape for shape in found.shapes}
    assert len(claims) == 2 * 7
    assert [name for name, shape in claims.items() if shape.holds] == [
        f"{name}: malloc is O(H)" for name in ("FF", "BF", "DL")
    ]
    assert claims["DL: free is O(1)"].verdict == "refuted"
    assert claims["TLSF: free is O(1)"].verdict == "does not hold"
    table = PAPERS["C06"].exhibits["T4"](notebook_of(laboratory(preset="c06")))
    by_name = {row[0].split(" ")[0]: row[-3:] for row in table.rows}
    assert by_name["tlsf"] == by_name["half-fit"] == ("-",) * 3
    assert by_name["best-fit"] == ("25300.0", "7892.0", "700.0")
    assert by_name["buddy-binary"] == ("800.0", "635.6", "332.2")


@pytest.mark.parametrize("paper", PAPERS)
def test_what_a_paper_asks_for_is_known_before_anything_is_measured(paper):
    """With invented answers, too, each exhibit is a table with as many cells as titles, and a picture."""
    planned = laboratory(preset=paper.lower())
    points = planned_points(PAPERS[paper].exhibits.values(), planned)
    assert len(points) == len(set(points)) > 3
    assert {point.preset for point in points} == {paper.lower()}
    found = [exhibit(notebook_of(planned)) for exhibit in PAPERS[paper].exhibits.values()]
    document = reproduction_document(PAPERS[paper], "cortex-m4", found, quick=True)
    for exhibit in document["exhibits"]:
        assert exhibit["rows"]
        assert all(len(row) == len(exhibit["header"]) for row in exhibit["rows"])
        picture = exhibit_picture(exhibit, paper)
        assert picture.startswith("<svg")
        assert exhibit["name"] in picture
    assert all({"name", "holds", "why", "verdict"} <= set(shape) for shape in document["shapes"])


def notebook_of(measured):
    """A laboratory that has an answer of ones to each question."""
    found = []
    planned_points([found.append], measured)
    return found[0]


def test_the_verdict_of_a_claim():
    verdicts = [Shape("", holds, "", known_wrong=wrong).verdict for holds in (True, False) for wrong in (True, False)]
    assert verdicts == ["holds", "holds", "refuted", "does not hold"]


def test_what_failed_is_told_and_not_tried_again():
    measured = laboratory(preset="c06")
    (point,) = planned_points([lambda one: one.worst("tlsf", "alloc")], measured)
    measured.failed = {point: "BuildError: no compiler"}
    with pytest.raises(WcetProbeError, match="tlsf: worst alloc, 4,194,304 bytes: no compiler"):
        measured.worst("tlsf", "alloc")


def test_an_allocator_in_the_state_of_another():
    """In its own worst state it costs what its own scenario counts, but for the caches."""
    measured = laboratory(preset="c06")
    for name in ("half-fit", "tlsf"):
        own = measured.worst(name, "alloc", 64 << 10)
        assert measured.in_state_of(name, name, 64 << 10)[0] == own.instructions


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cortex-m4", "mpc603e"])
@pytest.mark.parametrize("paper", PAPERS)
def test_all_tables_and_figures_regenerate(paper, target):
    measured = laboratory(preset=paper.lower(), target=target)
    for name, exhibit in PAPERS[paper].exhibits.items():
        found = exhibit(measured)
        assert found.name == name
        assert found.rows
        assert all(len(row) == len(found.header) for row in found.rows)


def test_bars_below_zero_are_drawn_to_the_left_of_it():
    drawing = bars("per cent", ("a", "b", "c"), {"here": (-9.41, 0.3, 18.85)})
    exhibit = Exhibit("T9", "Reduction", ("", "%"), (("a", 1),), drawing=drawing)
    document = reproduction_document(PAPERS["L11"], "cortex-m4", [exhibit], quick=True)
    picture = exhibit_picture(document["exhibits"][0], "L11") or ""
    found = re.findall(r'<rect[^>]*?height="8"[^>]*>', picture)
    places = [{key: float(value) for key, value in re.findall(r'(x|width)="([-.0-9]+)"', one)} for one in found]
    below, least, most = places[-3:]
    assert "logarithmic" not in picture
    assert below["x"] + below["width"] == pytest.approx(most["x"], abs=0.2)
    assert least["x"] == most["x"]
    assert below["width"] / most["width"] == pytest.approx(9.41 / 18.85, rel=0.02)
