"""The checker accepts what was proved and refuses each kind of damage."""

import copy
import json
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analyzer.flow_problems import NESTED_DERIVATIONS, SHA, nested, nested_bound, random_problem
from tests.examples import examples
from wcet_probe.analyzer.ipet.certificate import LoopDerivation, certificate
from wcet_probe.analyzer.ipet.flow_system import Constraint, flow_system, solve
from wcet_probe.certificate.kernel.verify import bound_digest, check_certificate, verify_result
from wcet_probe.certificate.results.given import given_documents
from wcet_probe.errors import AnalysisError, VerificationError

TOTAL = Constraint("total", {"b-g": 1}, "<=", 20)
TOTAL_DERIVATION = LoopDerivation("inner", "total", "fact", 20, expression="5 * n // 2", parameters={"n": 8})


def prove(flow, derivations):
    return certificate(flow, solve(flow_system(flow)), derivations)


TEXT = prove(nested(10, 4, [TOTAL]), (*NESTED_DERIVATIONS, TOTAL_DERIVATION))
CYCLES = prove(replace(nested(10, 4), unit="cycles"), NESTED_DERIVATIONS)


def sealed(document):
    document["bound"]["digest"] = bound_digest(document["bound"])
    return document


def result():
    loops = [{"name": d.loop, "max": d.max_header, "origin": d.origin, "line": 7} for d in NESTED_DERIVATIONS]
    bound = {
        "entry": "f",
        "instructions": nested_bound(10, 4),
        "cycles": nested_bound(10, 4),
        "certificates": [prove(nested(10, 4), NESTED_DERIVATIONS), CYCLES],
        "loops": loops,
        "worst_path": [{"address": 0x8000, "count": 1}],
    }
    return sealed({"image": {"sha256": SHA}, "target": "core", "bound": bound})


def test_what_was_proved_is_accepted():
    checked = check_certificate(TEXT)
    assert (checked.entry_function, checked.image_sha256, checked.target, checked.unit) == (
        "f",
        SHA,
        "core",
        "instructions",
    )
    assert checked.bound == solve(flow_system(nested(10, 4, [TOTAL]))).certified
    assert checked.given == ()
    assert [one.bound for one in verify_result(result())] == [nested_bound(10, 4)] * 2


def test_a_constraint_without_derivation_is_given():
    text = prove(nested(10, 4, [TOTAL]), NESTED_DERIVATIONS)
    assert check_certificate(text).given == ("total",)


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 20), st.integers(0, 2))
def test_every_certificate_that_is_made_is_accepted(seed, size, constraints):
    flow = random_problem(seed, size, 1000, constraints)
    derivations = [
        LoopDerivation(
            loop.name, f"loop:{loop.name}", "pragma", loop.max_back_edges + 1, expression=str(loop.max_back_edges + 1)
        )
        for loop in flow.loops
    ]
    try:
        solution = solve(flow_system(flow))
    except AnalysisError:
        return
    assert check_certificate(certificate(flow, solution, derivations)).bound == solution.certified


NUMBER = re.compile(r"(?<![\w-])(?:0x[0-9a-f]+|-?[0-9]+)(?![\w-])")


def kinds_that_survive(text, change):
    """Kinds and places of numbers that can be changed without being noticed."""
    survivors = set()
    for match in NUMBER.finditer(text):
        damaged = text[: match.start()] + change(match[0]) + text[match.end() :]
        try:
            check_certificate(damaged)
        except VerificationError:
            continue
        line = text[text.rfind("\n", 0, match.start()) + 1 : text.find("\n", match.start())]
        field = re.findall(r'"(\w+)": $', text[: match.start()][-30:])
        survivors.add((line.split(" ")[0], line.split(" ")[1] if not field else field[0]))
    return survivors


def step(by):
    return lambda number: hex(int(number, 16) + by) if number.startswith("0x") else str(int(number) + by)


def test_any_number_that_changes_by_one_is_noticed_but_for_what_is_given():
    """What nobody can know without the image: its hash, addresses, what blocks off the worst path cost.

    Of a counter, the end of an interval on which the bound does not depend may be anything that leaves the interval.
    """
    nodes = {("node", node.name) for node in nested(1, 1).nodes}
    free = {("image", SHA), ("derivation", "initial_high"), ("derivation", "limit_low"), ("edge", "h-x")}
    free |= {("exit", name) for name in nested(1, 1).exits}
    assert kinds_that_survive(TEXT, step(1)) <= nodes | free
    assert kinds_that_survive(TEXT, step(-1)) <= nodes | free


def test_costs_on_the_worst_path_are_noticed():
    for name, address, cost in re.findall(r"^node ([^x]\S*) (\S+) (\S+)$", TEXT, re.MULTILINE):
        for by in (1, -1):
            with pytest.raises(VerificationError):
                check_certificate(
                    TEXT.replace(f"node {name} {address} {cost}", f"node {name} {address} {int(cost) + by}")
                )


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("certificate 1", "certificate 2", "line 1"),
        ("\nunit instructions", "", "head"),
        ("unit instructions", "unit instructions\nunit instructions", "head"),
        ("edge a-h a h 0", "edge a-h a h 00", "no record"),
        ("edge a-h a h 0", "edge a-h a x 0", "not those into its header"),
        ("edge a-h a h 0", "edge a-h a nowhere 0", "no node"),
        ("exit x 0\n", "exit x 0\nexit x 0\n", "told twice"),
        ("edge h-x h x 0\n", "edge h-x h x 0\nedge h-x h x 0\n", "told twice"),
        ("loop outer 10 a-h | l-h", "loop outer 10 l-h | a-h", "enters it"),
        ("loop outer 10 a-h | l-h", "loop outer 11 a-h | l-h", "is not"),
        ("constraint total <= 20 1 b-g", "constraint total <= 20 1 b-z", "unknown edge"),
        ("constraint total", "constraint enter", "one name"),
        ("dual total ", "dual nothing ", "no constraint"),
        ("dual total ", "dual total -", "negative"),
        ("dual total ", "dual total 2", "bound is"),
        ("count b-g 20", "count b-g 21", "the counts"),
        ('"origin": "proved"', '"origin": "guess"', "nobody"),
        ('"step": 1', '"step": 0', "unknown"),
        ('"step": 1', '"step": -1', "runs away"),
        ('"comparison": "<"', '"comparison": "~"', "runs away"),
        ('"comparison": "<"', '"comparison": "<="', "not bounded by 12"),
        ("ceil_log2(n) + 1", "ceil_log2(0 * n)", "no value"),
        ("ceil_log2(n) + 1", "n.bit_length()", "no value"),
        ("ceil_log2(n) + 1", "4 + m", "no value"),
        ("ceil_log2(n) + 1", "9 / 2", "no value"),
        ("ceil_log2(n) + 1", "n // 0", "no value"),
        ('"parameters": {"n": 8}', '"parameters": {"n": 9}', "two values"),
        ('"offset": 1', '"offset": 3', "offset"),
        ('"loop": "outer"', '"loop": "inner"', "is about"),
    ],
)
def test_damage_is_refused_with_a_reason(old, new, reason):
    assert old in TEXT
    with pytest.raises(VerificationError, match=reason):
        check_certificate(TEXT.replace(old, new, 1))


@pytest.mark.parametrize("line", range(len(TEXT.splitlines())))
def test_no_line_can_be_left_out_but_what_is_given(line):
    lines = TEXT.splitlines(keepends=True)
    text = "".join(lines[:line] + lines[line + 1 :])
    if '"constraint": "total"' in lines[line]:
        assert check_certificate(text).given == ("total",)
    elif lines[line].startswith(("edge h-x", "exit x", "edge b-early", "exit early")):
        pass  # another graph, which is what the certificate takes as given
    else:
        with pytest.raises(VerificationError):
            check_certificate(text)


@pytest.mark.parametrize(
    ("counter", "header"),
    [
        ((0, 0, 1, 10, 10, "<"), 11),
        ((1, 1, 1, 10, 10, "<"), 10),
        ((0, 3, 4, 0, 10, "<="), 4),
        ((10, 10, -1, 0, 0, ">"), 11),
        ((10, 12, -3, 0, 1, ">="), 6),
        ((0, 0, 4, 16, 16, "!="), 5),
        ((0, 2, 1, 5, 9, "!="), 10),
        ((9, 9, -3, 0, 0, "!="), 4),
        ((20, 20, 1, 5, 9, "<"), 1),
    ],
)
def test_counters_are_counted(counter, header):
    low, high, by, least, most, comparison = counter
    compare = {"<": int.__lt__, "<=": int.__le__, ">": int.__gt__, ">=": int.__ge__, "!=": int.__ne__}[comparison]

    def run(value, limit):
        rounds = 1
        while compare(value, limit):
            value, rounds = value + by, rounds + 1
        return rounds

    assert max(run(i, n) for i in range(low, high + 1) for n in range(least, most + 1)) == header
    derivation = LoopDerivation("outer", "loop:outer", "proved", header, low, high, by, least, most, comparison)
    text = prove(nested(header - 1, 4), (derivation, NESTED_DERIVATIONS[1]))
    assert check_certificate(text).loops[0]["max_header"] == header


def test_a_counter_that_may_step_over_its_limit_is_refused():
    derivation = LoopDerivation("outer", "loop:outer", "proved", 5, 0, 0, 4, 15, 16, "!=")
    with pytest.raises(VerificationError, match="may miss"):
        check_certificate(prove(nested(4, 4), (derivation, NESTED_DERIVATIONS[1])))


def places(value, path=()):
    """Paths to all numbers in a document."""
    if isinstance(value, dict):
        return [place for key, part in value.items() for place in places(part, (*path, key))]
    if isinstance(value, list):
        return [place for index, part in enumerate(value) for place in places(part, (*path, index))]
    return [path] if isinstance(value, int) else []


def changed(place):
    document = copy.deepcopy(result())
    part = document
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] += 1
    return document


@pytest.mark.parametrize("place", places(result()), ids=str)
def test_any_number_of_a_result_that_changes_is_noticed(place):
    with pytest.raises(VerificationError):
        verify_result(changed(place))


UNPROVED = {"line", "address", "count"}


@pytest.mark.parametrize("place", places(result()), ids=str)
def test_a_new_digest_does_not_help_where_the_certificate_speaks(place):
    """Source lines and the worst path are told to people, and no certificate speaks of them."""
    document = sealed(changed(place))
    if place[-1] in UNPROVED:
        verify_result(document)
    else:
        with pytest.raises(VerificationError):
            verify_result(document)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda d: d["image"].update(sha256="6" * 64), "another image"),
        (lambda d: d.update(target="other"), "another target"),
        (lambda d: d["bound"].update(entry="g"), "another entry"),
        (lambda d: d["bound"]["certificates"].pop(), "cycles, not what is proved"),
        (lambda d: d["bound"].update(certificates=[]), "not one certificate"),
        (lambda d: d["bound"].update(certificates=[CYCLES, CYCLES]), "not one certificate"),
        (lambda d: d["bound"].update(certificates=[7]), "malformed"),
        (lambda d: d["bound"]["loops"].pop(), "loops"),
        (lambda d: d["bound"].pop("certificates"), "certificates"),
        (lambda d: d.pop("image"), "image"),
    ],
)
def test_a_result_that_says_something_else_is_refused(change, reason):
    document = result()
    change(document)
    with pytest.raises(VerificationError, match=reason):
        verify_result(sealed(document))


@pytest.mark.parametrize("document", [{}, {"bound": None, "image": None}, {"bound": [], "image": {"sha256": SHA}}])
def test_what_is_no_result_is_refused(document):
    with pytest.raises(VerificationError, match="lacks"):
        verify_result(document)


@pytest.mark.parametrize("missing", ["id", "statement"])
def test_an_assumption_without_its_words_is_refused(missing):
    assumption = {"id": "given f", "statement": f"as the document {SHA} proves"}
    assert given_documents({"bound": {"assumptions": [assumption]}}) == [("f", SHA)]
    with pytest.raises(VerificationError, match="lacks its id or its statement"):
        given_documents({"bound": {"assumptions": [{key: assumption[key] for key in assumption.keys() - {missing}}]}})


def test_a_result_survives_the_way_through_a_file():
    assert verify_result(json.loads(json.dumps(result(), indent=2)))


def test_invariants_are_read_and_must_be_about_nodes_and_have_values():
    line = "invariant b r0 number 4 4 9\n"
    checked = check_certificate(TEXT + line)
    assert checked.bound == check_certificate(TEXT).bound
    for damaged in (line.replace(" b ", " nowhere "), line.replace("9", "4294967295"), line.replace("number", "heap")):
        with pytest.raises(VerificationError):
            check_certificate(TEXT + damaged)
