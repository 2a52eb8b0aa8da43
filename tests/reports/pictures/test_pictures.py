"""Pictures: well-formed, the same each time, true to the document, nothing written over something else.

Tests: reports.pictures.graphs, reports.pictures.layering, reports.pictures.scales, reports.pictures.svg.
"""

from __future__ import annotations

import json
import re
from itertools import combinations, pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.results import result as real_result
from wcet_probe.cli import main
from wcet_probe.reports.pictures import (
    bound_against_observed,
    call_graph,
    control_flow_graph,
    gap_bars,
    graph_functions,
    heat_rows,
    heat_strip,
    histogram,
    instructions_by_operation,
    wcet_against_heap,
)
from wcet_probe.reports.pictures.layering import arranged, nondecreasing, ranked
from wcet_probe.reports.pictures.scales import scale_for, ticks
from wcet_probe.reports.pictures.svg import text_width, wrap

SVG = "{http://www.w3.org/2000/svg}"


def block(address, function, worst, observed):
    return {
        "address": f"{address:#010x}",
        "end_address": f"{address + 8:#010x}",
        "function": function,
        "worst_executions": worst,
        "observed_executions": observed,
    }


def edge(source, target, kind, worst):
    return {
        "source": f"{source:#010x}",
        "target": f"{target:#010x}",
        "kind": kind,
        "worst_executions": worst,
    }


def step(address, function, cost):
    return {"address": f"{address:#010x}", "function": function, "cost_instructions": cost, "executions": 1}


GRAPH = {
    "blocks": [
        block(0x100, "take", 1, 1),
        block(0x108, "take", 12_345, 10_000),
        block(0x110, "take", 0, 7),
        block(0x118, "take", 1, 1),
        block(0x120, "find<&>", 9, 8),
        block(0x128, "find<&>", 9, 8),
    ],
    "edges": [
        edge(0x100, 0x108, "fall", 1),
        edge(0x100, 0x110, "jump", 0),
        edge(0x108, 0x108, "jump", 12_344),
        edge(0x108, 0x118, "fall", 1),
        edge(0x110, 0x118, "fall", 0),
        edge(0x110, 0x100, "jump", 0),
        edge(0x118, 0x120, "call", 9),
        edge(0x120, 0x128, "fall", 9),
        edge(0x128, 0x118, "return", 9),
    ],
    "calls": [{"caller": "take", "callee": "find<&>"}],
}


def result(**changes):
    found = {
        "format": "wcet-probe-result",
        "version": 1,
        "allocator": "fit & <co>",
        "target": "mpc603e",
        "scenario": "worst-alloc",
        "heap_bytes": 1 << 20,
        "initial_cache": "dirty",
        "parameters": {"m": 32},
        "measured_operation": {"kind": "malloc"},
        "observed": {
            "instructions": 1_048_612,
            "cycles": 10_109_738,
            "touched_sets": {"instruction": [0, 1, 127], "data": [3, 4, 5, 99]},
            "touched_sets_by_region": {"stack": [3], "heap_metadata": [4, 5, 99], "code": []},
        },
        "caches": {"icache": {"sets": 128}, "dcache": {"sets": 512}},
        "bound": {
            "entry": "take",
            "instructions": 1_572_912,
            "cycles": 19_269_089,
            "graph": GRAPH,
            "worst_path": [step(0x108, "take", 1_500_000), step(0x120, "find<&>", 72_912)],
        },
        "slack": {"instructions": 524_300, "cycles": 9_159_351},
        "gap": {
            "instructions": 524_300,
            "above_worst_path": 17,
            "blocks": [
                {"location": f"take+{i:#x} (a.c:{i})", "cause": cause, "instructions": size}
                for i, (cause, size) in enumerate(
                    [
                        *(("more often on the worst path", 100_000 + i) for i in range(6)),
                        ("only observed", -75_732),
                        ("same", 0),
                    ]
                )
            ],
        },
        "formula": {
            "parameter": "H",
            "samples": [{"H": size << 18, "instructions": 393_264 * size} for size in (1, 2, 3)],
        },
    }
    return {**found, **changes}


SAMPLES = [
    ("free" if number % 3 == 2 else "malloc", 40 + number * number % 977 + 5_000 * (number == 1_204))
    for number in range(2_000)
]
GROWTH = {
    "format": "wcet-probe-growth",
    "allocator": "first-fit",
    "target": "mpc603e",
    "scenario": "worst-alloc",
    "samples": [{"heap_bytes": 1 << shift, "instructions": 1 << (shift - 4)} for shift in range(14, 23, 2)],
}
MANY = [
    result(
        allocator=f"allocator-{number}",
        measured_operation={"kind": kind},
        observed={"instructions": 50 + 7**number, "cycles": 60 + 8**number},
    )
    for number in range(10)
    for kind in ("malloc", "free")
]
PICTURES = {
    "bound-against-observed": lambda: bound_against_observed([result(), result(allocator="x" * 90, bound=None)]),
    "many": lambda: bound_against_observed(MANY),
    "one-unit": lambda: bound_against_observed(MANY, "instructions"),
    "by-operation": lambda: instructions_by_operation(SAMPLES),
    "histogram": lambda: histogram(SAMPLES),
    "histogram-of-one": lambda: histogram([("free", 33)]),
    "against-heap": lambda: wcet_against_heap([result(), GROWTH, *MANY]),
    "linear": lambda: wcet_against_heap([result()]),
    "heat-strip": lambda: heat_strip(result()),
    "heat-rows": lambda: heat_rows("Sets", 2048, [("a", {1, 2}), ("b " * 60, set(range(2048)))], {0, 5, 6, 2047}),
    "call-graph": lambda: call_graph(result()),
    "control-flow": lambda: control_flow_graph(result()),
    "one-function": lambda: control_flow_graph(result(), "find<&>"),
    "gap-bars": lambda: gap_bars(result()),
}


def parsed(svg):
    return ET.fromstring(svg)  # noqa: S314  (drawn by the package)


def texts(svg):
    return list(parsed(svg).iter(f"{SVG}text"))


def box(text):
    """Where the glyphs of a text are, by their estimated width."""
    size, x, y = (float(text.get(name)) for name in ("font-size", "x", "y"))
    width = text_width(text.text, size)
    left = x - width * {"middle": 0.5, "end": 1.0}.get(text.get("text-anchor"), 0.0)
    return left, y - 0.72 * size, left + width, y + 0.1 * size


def overlapping(svg):
    placed = [(box(text), text.text) for text in texts(svg)]
    return [
        (one, other)
        for ((a, b, c, d), one), ((e, f, g, h), other) in combinations(placed, 2)
        if a < g and e < c and b < h and f < d
    ]


def numbers(value):
    """All integers of a document, as they are written in pictures."""
    if isinstance(value, dict):
        return set().union(*map(numbers, value.values()))
    if isinstance(value, (list, tuple)):
        return set().union(*map(numbers, value))
    return {f"{abs(value):,}"} if type(value) is int else set()


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_a_well_formed_image_that_says_what_it_shows(name):
    svg = PICTURES[name]()
    root = parsed(svg)
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img"
    assert root.find(f"{SVG}title").text
    assert root.find(f"{SVG}desc").text
    assert not any(attribute.startswith(("id", "style")) for part in root.iter() for attribute in part.attrib)
    assert "var(" not in svg
    assert "nan" not in svg


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_the_same_each_time(name):
    assert PICTURES[name]() == PICTURES[name]()


@pytest.mark.parametrize("name", PICTURES)
def test_no_text_stands_over_another_or_outside_of_the_paper(name):
    svg = PICTURES[name]()
    assert overlapping(svg) == []
    _, _, width, height = map(float, parsed(svg).get("viewBox").split())
    for text in texts(svg):
        left, top, right, bottom = box(text)
        assert left >= 0, text.text
        assert top >= 0, text.text
        assert right <= width, text.text
        assert bottom <= height, text.text
        assert float(text.get("font-size")) * 720 / width >= 9, text.text


def test_the_estimate_of_overlaps_finds_one():
    svg = heat_rows("Sets", 8, [("row", {1})])
    low = re.sub(r' y="[\d.]+"', ' y="40"', svg)
    assert overlapping(low)


@pytest.mark.parametrize(
    ("name", "documents"),
    [
        ("bound-against-observed", result()),
        ("many", MANY),
        ("gap-bars", result()),
        ("control-flow", result()),
        ("by-operation", [SAMPLES, list(range(2_001))]),
    ],
)
def test_each_number_that_is_said_to_be_of_the_document_is_in_it(name, documents):
    known = numbers(documents)
    said = [text.text for text in texts(PICTURES[name]()) if text.get("class") == "value"]
    assert said
    for words in said:
        if " calls, " not in words:
            assert set(re.findall(r"[\d,]*\d", words)) <= known, words


def test_counts_of_calls_and_functions_are_sums_of_the_document():
    said = [text.text for text in texts(call_graph(result())) if text.get("class") == "value"]
    assert sorted(said) == ["1,500,000 instructions", "72,912 instructions", "9"]


def test_a_replay_is_summed_up_as_it_is():
    counts = sorted(count for kind, count in SAMPLES if kind == "malloc")
    said = [text.text for text in texts(histogram(SAMPLES)) if text.get("class") == "value"]
    median = counts[(len(counts) - 1) // 2]
    assert said[0] == f"{len(counts):,} calls, {counts[0]:,} to {counts[-1]:,} instructions, median {median:,}"


def test_what_a_document_does_not_have_is_not_drawn():
    bare = {"format": "wcet-probe-result", "version": 1, "observed": None, "bound": None, "gap": None, "caches": None}
    for draw in (heat_strip, call_graph, control_flow_graph, gap_bars):
        assert draw(bare) is None
        assert draw({}) is None
    assert bound_against_observed([]) is None
    assert bound_against_observed([bare]) is None
    assert wcet_against_heap([result(formula=None)]) is None
    assert histogram([]) is None
    assert instructions_by_operation([]) is None
    assert control_flow_graph(result(), "none") is None
    assert gap_bars(result(gap={"instructions": 0, "above_worst_path": 0, "blocks": []})) is None
    assert call_graph(result(bound={"instructions": 1, "cycles": 1, "graph": None})) is None


def test_a_bound_alone_and_results_within_one_document_are_drawn():
    several = {"format": "wcet-probe-results", "results": [result(), result(target="cortex-m4")]}
    labels = [text.text for text in texts(bound_against_observed([several]))]
    assert "fit & <co> malloc cortex-m4" in labels
    alone = {"format": "wcet-probe-bound", "target": "mpc603e", "bound": result()["bound"]}
    assert "take" in [text.text for text in texts(bound_against_observed([alone]))]


def test_the_worst_path_is_strong_and_not_only_coloured():
    root = parsed(control_flow_graph(result(), "take"))
    frames = [float(r.get("stroke-width")) for r in root.iter(f"{SVG}rect") if r.get("fill") not in {"#ffffff", None}]
    assert sorted(frames) == [0.7, 2.2, 2.2, 2.2]


def test_a_chain_of_blocks_is_one_box_and_a_call_is_named():
    labels = [text.text for text in texts(control_flow_graph(result()))]
    assert "+0x0…+0x8" in labels
    assert "calls find<&>" in labels


def _ladder(count):
    """A function of ``count`` blocks, each with a jump to the last one."""
    addresses = [0x1000 + 8 * number for number in range(count)]
    blocks = [block(address, "long", number % 2, 0) for number, address in enumerate(addresses)]
    falls = [edge(a, b, "fall", 0) for a, b in pairwise(addresses)]
    jumps = [edge(address, addresses[-1], "jump", 0) for address in addresses[:-2]]
    return {"entry": "long", "graph": {"blocks": blocks, "edges": falls + jumps, "calls": []}, "worst_path": []}


@pytest.mark.parametrize("count", [40, 90, 150])
def test_a_graph_of_many_blocks_stays_legible(count):
    svg = control_flow_graph(result(bound=_ladder(count)))
    assert overlapping(svg) == []
    assert parsed(svg).get("viewBox").startswith("0 0 720 ")
    labels = {text.text for text in texts(svg)}
    assert {f"{8 * number:+#x}" for number in range(count)} <= labels


def test_what_is_left_out_is_said():
    svg = control_flow_graph(result(bound=_ladder(301)))
    assert "151 blocks that nothing executes" in parsed(svg).find(f"{SVG}desc").text


def test_functions_are_those_of_the_graph_with_the_entry_first():
    assert graph_functions(result()) == ["take", "find<&>"]


graphs = st.integers(2, 14).flatmap(
    lambda count: st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=30).map(
        lambda pairs: ({f"n{i}": 40.0 + 5 * i for i in range(count)}, [(f"n{a}", f"n{b}") for a, b in pairs])
    )
)


@settings(max_examples=examples(20), deadline=None)
@given(graphs, st.sampled_from([120.0, 300.0, 688.0]))
def test_a_layered_drawing_keeps_nodes_apart_and_routes_from_rank_to_rank(graph, room):
    widths, edges = graph
    layers = arranged(ranked(widths, edges, room))
    rank_of = {name: rank for rank, names in enumerate(layers.ranks) for name in names}
    assert set(widths) <= set(rank_of)
    for names in layers.ranks:
        for left, right in pairwise(names):
            half = (widths.get(left, 0) + widths.get(right, 0)) / 2
            assert layers.middle[right] - layers.middle[left] >= half + 7
    drawn = set()
    for route in layers.routes:
        ranks = [rank_of[name] for name in route.points]
        assert ranks == list(range(ranks[0], ranks[-1] + 1))
        ends = (route.points[-1], route.points[0]) if route.upwards else (route.points[0], route.points[-1])
        assert ends == (route.source, route.target)
        drawn.add(ends)
    assert drawn == {(source, target) for source, target in edges if source != target}


@given(st.lists(st.tuples(st.floats(-1e3, 1e3), st.sampled_from([1.0, 4.0])), min_size=1, max_size=20))
def test_nondecreasing_numbers_are_in_order_and_kept_where_they_were(pairs):
    wished, weights = zip(*pairs, strict=True)
    found = nondecreasing(wished, weights)
    assert all(a <= b + 1e-9 for a, b in pairwise(found))
    assert nondecreasing(sorted(wished), weights) == sorted(wished)


@given(st.lists(st.integers(0, 10**10), min_size=1, max_size=10))
def test_scales_keep_numbers_within_and_ticks_round(values):
    scale = scale_for(values, 100, 500)
    assert all(99.9 <= scale.at(value) <= 500.1 for value in values)
    for tick in ticks(scale):
        assert 99.9 <= scale.at(tick) <= 500.1
        assert str(tick).rstrip("0") in {"", "1", "2", "3", "5"} or not scale.logarithmic


def test_a_character_that_xml_has_no_place_for_does_no_harm():
    parsed(call_graph(result(allocator="a\x00\x1b[1m\ud800]]>")))


@settings(max_examples=examples(15))
@given(st.text(max_size=80), st.floats(20, 300))
def test_wrapped_lines_fit(content, room):
    assert all(text_width(line) <= room for line in wrap(content, room))


@pytest.fixture
def run(capsysbinary, monkeypatch, tmp_path):
    monkeypatch.setenv("WCET_PROBE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        code = main(arguments)
        captured = capsysbinary.readouterr()
        return code, captured.out.decode(), captured.err.decode()

    return call


def test_plot_draws_what_a_replay_printed(run, tmp_path):
    code, out, _ = run("replay", "tlsf", "--operations", "300", "--heap", "64K", "--json")
    assert code == 0
    document = json.loads(out)
    assert document["format"] == "wcet-probe-replay"
    assert {len(column) for column in document["operations"].values()} == {300}
    (tmp_path / "replay.json").write_text(out, "utf-8")
    assert run("plot", "replay.json", "--kind", "histogram", "-o", "h.svg") == (0, "", "")
    parsed((tmp_path / "h.svg").read_text("utf-8"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "h.svg", "replay.json"]
    code, svg, _ = run("plot", "replay.json", "--kind", "instructions-by-operation")
    assert code == 0
    assert "tlsf random on cortex-m4" in svg


def test_a_replay_ends_with_the_measured_operation(run):
    """112 instructions: what the worst state costs, as a run on the same heap says."""
    _, out, _ = run("replay", "tlsf", "--scenario", "worst-alloc", "--heap", "64K", "--json")
    assert json.loads(out)["operations"]["instructions"][-1] == 112


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("plot", "a.json", "--kind", "heat-strp"), "unknown kind of picture 'heat-strp': did you mean 'heat-strip'?"),
        (("plot", "none.json", "--kind", "heat-strip"), "cannot read none.json: No such file or directory; name a"),
        (
            ("plot", "text", "--kind", "heat-strip"),
            "text is no JSON (Expecting value: line 1 column 1 (char 0)); give it what --json printed.",
        ),
        (("plot", "list.json", "--kind", "heat-strip"), "list.json is no document that can be drawn; give it what a"),
        (("plot", "a.json", "--kind", "gap-bars"), "nothing to draw: gap-bars needs a result of --why that has slack."),
        (("plot", "a.json", "--kind", "histogram"), "nothing to draw: histogram needs what wcet-probe replay --json"),
        (("plot", "a.json", "a.json", "--kind", "heat-strip"), "heat-strip shows one document, not 2; give one"),
        (
            ("plot", "a.json", "--kind", "control-flow-graph", "--function", "x"),
            "nothing to draw: x is none of its functions, or control-flow-graph needs a result whose bound has its",
        ),
        (("plot", "a.json", "--kind", "heat-strip", "--function", "x"), "--function goes with --kind control-flow"),
        (("plot", "a.json", "--kind", "heat-strip", "-o", "cache"), "cannot write cache: Is a directory; name a place"),
        (("replay", "tlsf", "--operations", "0"), "invalid value for '--operations': 0 is not in"),
        (("replay", "tlsf", "--scenario", "wurst"), "unknown scenario of tlsf 'wurst': "),
    ],
)
def test_bad_input_is_one_sentence(run, tmp_path, arguments, sentence):
    (tmp_path / "a.json").write_text(json.dumps(real_result("tlsf", heap_bytes=8192)), "utf-8")
    (tmp_path / "text").write_text("no", "utf-8")
    (tmp_path / "cache").mkdir()
    (tmp_path / "list.json").write_text("[1]", "utf-8")
    code, out, err = run(*arguments)
    assert (code, out) == (1 if "-o" in arguments else 2, "")
    assert err.startswith(f"wcet-probe: {sentence}")
    assert err.count("\n") == 1
