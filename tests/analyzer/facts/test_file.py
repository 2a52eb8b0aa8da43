"""Reading files of facts."""

import re
from pathlib import Path

import pytest

from wcet_probe.analyzer.facts.binding import parameter_values
from wcet_probe.analyzer.facts.file import parse_facts
from wcet_probe.analyzer.facts.language import Place
from wcet_probe.analyzer.facts.source_index import index_sources
from wcet_probe.errors import UsageError

ZEROS = "0" * 64
REASON = 'because = "it is so"'
FULL = f"""
[parameters]
M = "max(16, minimum_block)"
N = 3

[[loop]]
function = "find"
file = "first_fit.c"
label = "scan"
max = "H // (2*M)"
min = 0
total = "N * M"
within = "main:outer"
{REASON}
sha256 = "{ZEROS}"

[[argument]]
function = "malloc"
index = 0
min = 1
max = "H"
{REASON}

[[recursion]]
function = "visit"
max_depth = "ceil_log2(H)"
{REASON}

[[calls]]
function = "dispatch"
line = 7
targets = ["one", "two"]
{REASON}

[[infeasible]]
function = "find"
point = "impossible"
{REASON}

[[flow]]
function = "find"
sum = {{ "point a" = 1, "loop b" = -2 }}
max = 0
{REASON}

[[lemma]]
id = "list-in-arena"
statement = "every node lies in the arena"
{REASON}
check = "heap-walk"
loops = ["find:scan"]
"""


def test_every_kind_of_fact_is_read():
    facts = parse_facts("facts.toml", FULL)
    (loop,), (argument,), (recursion,) = facts.loops, facts.arguments, facts.recursions
    assert (loop.where, loop.place) == ("facts.toml:6", Place("find", "first_fit.c", "scan"))
    assert (str(loop.maximum), str(loop.minimum), str(loop.total)) == ("H // (2*M)", "0", "N * M")
    assert (loop.within, loop.because, loop.sha256) == ("main:outer", "it is so", ZEROS)
    assert (argument.index, argument.register, str(argument.maximum)) == (0, None, "H")
    assert str(recursion.max_depth) == "ceil_log2(H)"
    assert (facts.calls[0].place, facts.calls[0].targets) == (Place("dispatch", line=7), ("one", "two"))
    assert facts.infeasible[0].place == Place("find", name="impossible")
    assert [str(term) for term in facts.flows[0].terms] == ["1 * point a of find", "-2 * loop b of find"]
    assert (facts.lemmas[0].check, facts.lemmas[0].loops) == ("heap-walk", ("find:scan",))
    assert parameter_values(facts, {"H": 64, "minimum_block": 24}, None) == {
        "H": 64,
        "minimum_block": 24,
        "M": 24,
        "N": 3,
    }


LOOP = f'[[loop]]\nfunction = "f"\nline = 3\nmax = 1\n{REASON}\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[loop]", r"facts.toml is no TOML \("),
        ("[[lop]]", "unknown key 'lop': did you mean 'loop'"),
        ("[loop]", r"key loop is no array of tables; write \[\[loop\]\]"),
        (LOOP + "maximum = 2", r"facts.toml:1: \[\[loop\]\] key maximum: unknown key 'maximum'"),
        ("[[pointer]]\nmultiple_of = 4\nown_block = true\n" + REASON, "unknown key 'own_block'"),
        (LOOP + 'label = "x"', "label and line given; give exactly one of label, line, offset"),
        (LOOP.replace("line = 3", ""), "no place given; give exactly one of"),
        (LOOP.replace("line = 3", "line = 0"), "key line: cannot be 0; give a whole number of at least 1"),
        (LOOP.replace("max = 1", "max = 1.5"), "key max: cannot be 1.5; give a whole number or an expression"),
        (LOOP.replace("max = 1", "max = true"), "key max: cannot be True"),
        (LOOP.replace("max = 1", 'max = "H / 2"'), r"key max: in 'H / 2': 'H / 2' cannot be used"),
        (LOOP.replace("max = 1", ""), "key max: is missing; give max or total, or min"),
        (LOOP.replace(REASON, ""), "key because: is missing"),
        (LOOP.replace(REASON, 'because = ""'), "key because: cannot be ''"),
        (LOOP + 'within = "x"', "key within: needs a total"),
        (LOOP + 'sha256 = "abc"', "key sha256: cannot be 'abc'; give 64 hexadecimal digits"),
        (FULL.replace("index = 0", 'index = 0\nregister = "r0"'), "give exactly one of index and register"),
        (
            FULL.replace('"point a"', '"a"'),
            "cannot hold 'a'; name a 'point NAME', a 'branch NAME', a 'then NAME' or a 'loop LABEL'",
        ),
        (FULL.replace("-2 }", "0 }"), "cannot weigh 'loop b' with 0"),
        (FULL.replace("-2 }", '"H /" }'), "key sum: 'H /' is no expression"),
        (FULL.replace("max = 0\n", 'max = 0\nper = "loop"\n'), "key per: cannot be 'loop'; give 'call'"),
        (FULL.replace("max = 0\n", 'max = 0\nsha256 = { find = "abc" }\n'), "key sha256: cannot be 'abc'"),
        (LOOP + 'optional = "yes"', "key optional: cannot be 'yes'; give true or false"),
        (FULL.replace("heap-walk", "heap-wolk"), "unknown check 'heap-wolk': did you mean 'heap-walk'"),
        (FULL.replace('"find:scan"', '"scan"'), "cannot hold 'scan'; name loops as function:label"),
        (FULL.replace("N = 3", "max = 3"), r"\[parameters\] key max: is no name for a parameter"),
        (
            FULL.replace('["one", "two"]', "[]"),
            r"key targets: cannot be \[\]; tell of each call that is never made by \[\[infeasible\]\]",
        ),
        (FULL.replace('["one", "two"]', "[3]"), r"key targets: cannot be \[3\]; give an array of texts"),
        (FULL.replace('["one", "two"]', '"one"'), r"key targets: cannot be 'one'; give an array of texts"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(text, message):
    with pytest.raises(UsageError, match=message) as caught:
        parse_facts("facts.toml", text)
    assert "\n" not in str(caught.value)


def test_no_absolute_path_gets_into_a_fact():
    assert parse_facts("/home/somebody/facts.toml", LOOP).loops[0].where == "facts.toml:1"


def test_the_example_of_the_reference_is_a_file_of_facts():
    text = (Path(__file__).parents[3] / "docs/reference/facts.md").read_text("utf-8")
    blocks = dict(re.findall(r"```(c|toml)\n(.*?)```", text.partition("## Pragmas")[0], re.DOTALL))
    facts, index = parse_facts("facts.toml", blocks["toml"]), index_sources({"heap.c": blocks["c"]})
    labels = {(fact.place.function, fact.place.name) for fact in facts.loops}
    assert labels == {(loop.function, loop.label) for name in ("find", "release_all") for loop in index.loops(name)}
    assert [point.name for point in index.points("release_all")] == [facts.infeasible[0].place.name]
    terms = [term for fact in facts.flows for term in fact.terms]
    hashed = [*facts.loops, *facts.recursions, *facts.calls, *facts.infeasible, *terms]
    assert all(fact.sha256 == index.function(fact.place.function).sha256 for fact in hashed)
    assert blocks["c"].split("\n")[facts.calls[0].place.line - 1].strip() == "handler(node);"
