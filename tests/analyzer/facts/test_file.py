"""Reading facts, and binding them and the pragmas to the loops of real images."""

import re
from pathlib import Path

import pytest

from tests.analyzer.natural_loops import TARGETS, program, sites_of
from tests.support import image_of
from wcet_probe.analyzer.facts.binding import Analysed, bound_facts, check_place, code_sha256, parameter_values
from wcet_probe.analyzer.facts.file import parse_facts
from wcet_probe.analyzer.facts.language import Place
from wcet_probe.analyzer.facts.source_match import index_sources
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import UsageError
from wcet_probe.isa.decode import decode

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
    assert parameter_values(facts, {"H": 64, "minimum_block": 24}) == {"H": 64, "minimum_block": 24, "M": 24, "N": 3}


LOOP = f'[[loop]]\nfunction = "f"\nline = 3\nmax = 1\n{REASON}\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[loop]", r"facts.toml is no TOML \("),
        ("[[lop]]", "unknown key 'lop': did you mean 'loop'"),
        ("[loop]", r"key loop is no array of tables; write \[\[loop\]\]"),
        (LOOP + "maximum = 2", r"facts.toml:1: \[\[loop\]\] key maximum: unknown key 'maximum'"),
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
        (FULL.replace('["one", "two"]', "[]"), r"key targets: cannot be \[\]"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(text, message):
    with pytest.raises(UsageError, match=message) as caught:
        parse_facts("facts.toml", text)
    assert "\n" not in str(caught.value)


def test_no_absolute_path_gets_into_a_fact():
    assert parse_facts("/home/somebody/facts.toml", LOOP).loops[0].where == "facts.toml:1"


def test_a_parameter_is_declared_once():
    with pytest.raises(UsageError, match="key M: is a parameter of the run"):
        parameter_values(parse_facts("facts.toml", "[parameters]\nM = 1"), {"M": 2})


# ------------------------------------------------------------------------------------------------------------- binding

SOURCE = """\
struct node { struct node *next; unsigned size; };
extern struct node *volatile head;
struct node *volatile head;
volatile unsigned sink;

static inline struct node *find(unsigned size)
{
    struct node *node = head;
    /* loop: scan */
    while (node && node->size < size)
        node = node->next;
    return node;
}

unsigned twice(unsigned count)
{
    unsigned found = 0;
    _Pragma("loopbound min 1 max 9")
    do { /* loop: outer */
        struct node *node = find(count);
        if (node) {
            /* point: hit */
            sink = node->size;
            found++;
        }
    } while (--count);
    return found;
}

void other(unsigned count)
{
    while (count--)
        sink = count;
}

void once(void)
{
    for (unsigned i = 0; i < 1; i++) /* loop: removed */
        sink = i;
}
"""


class Guest:
    def __init__(self, target, source=SOURCE, functions=("twice",)):
        self.image = image_of(source, load_target(target), ".c")
        self.index = index_sources({"guest.c": source})
        sites = sites_of(self.image, decode(self.image), frozenset(functions))
        self.analysed = Analysed(self.image, frozenset(functions), sites)

    def bind(self, text, **parameters):
        return bound_facts(parse_facts("facts.toml", text), self.index, self.analysed, parameters)

    def fact(self, place, rest, function="find", sha256=None):
        sha256 = sha256 or self.index.function(function).sha256
        return f'[[loop]]\nfunction = "{function}"\n{place}\n{rest}\n{REASON}\nsha256 = "{sha256}"\n'


@pytest.fixture(scope="module", params=TARGETS)
def guest(request):
    return Guest(request.param)


def test_a_fact_reaches_the_inlined_loop_and_a_pragma_its_own(guest):
    fact, pragma = guest.bind(guest.fact('label = "scan"', 'max = "H // 8"\ntotal = "H"\nwithin = "twice:outer"'), H=80)
    assert (fact.function, fact.source.function, fact.origin, fact.where) == ("twice", "find", "fact", "facts.toml:1")
    assert (fact.max_expression, fact.because) == ("H // 8", "it is so")
    assert (fact.max_header, fact.total, fact.total_for_each_entry) == (11, 80, 1)
    assert fact.within == (pragma.header_address,)
    assert (pragma.origin, pragma.where, pragma.source.label) == ("pragma", "guest.c:18", "outer")
    assert pragma.max_header == 9  # the test of do … while is behind its body


def test_a_loop_by_line_is_the_loop_by_label(guest):
    rest = "max = 4"
    assert guest.bind(guest.fact("line = 10", rest)) == guest.bind(guest.fact('label = "scan"', rest))


def test_at_an_offset_the_numbers_are_the_headers(guest):
    site = next(site for site in guest.analysed.sites if site.outer is not None)
    text = guest.fact(f"offset = {site.offset:#x}", "max = 5\ntotal = 7", "twice", code_sha256(guest.image, "twice"))
    fact = next(each for each in guest.bind(text) if each.origin == "fact")
    assert (fact.header_address, fact.max_header) == (site.header_address, 5)
    assert (fact.total, fact.total_for_each_entry, fact.source) == (7, 0, None)


def test_a_fact_about_code_that_is_not_analysed_says_nothing(guest):
    assert {fact.origin for fact in guest.bind(guest.fact("line = 32", "max = 5", "other"))} == {"pragma"}


@pytest.mark.parametrize(
    ("place", "rest", "function", "message"),
    [
        ('label = "scam"', "max = 1", "find", r"facts.toml:1: find has no loop at label 'scam'.*lines: 10 \(scan\)"),
        ("line = 11", "max = 1", "find", "find has no loop at line 11"),
        ('label = "scan"', 'max = "K"', "find", "unknown parameter 'K'"),
        ('label = "scan"', 'max = "-1"', "find", "'-1' is -1; a count is at least 0"),
        ('label = "scan"', "max = 1\nmin = 2", "find", "key min: 2 is above max, 1"),
        ('label = "scan"', 'total = 1\nwithin = "twice:inner"', "find", "twice has no loop at label 'inner'"),
    ],
)
def test_a_fact_about_nothing_is_an_error(place, rest, function, message):
    guest = Guest("cortex-m4")
    with pytest.raises(UsageError, match=message):
        guest.bind(guest.fact(place, rest, function))


def test_an_offset_without_loop_is_an_error():
    guest = Guest("cortex-m4")
    with pytest.raises(UsageError, match=r"no loop of the binary comes from twice\+0x2; .*The loops are: twice\+0x"):
        guest.bind(guest.fact("offset = 2", "max = 5", "twice", code_sha256(guest.image, "twice")))


def test_a_loop_that_the_compiler_may_remove_is_no_error():
    guest = Guest("cortex-m4", functions=("once",))
    fact = guest.fact('label = "removed"', "max = 1", "once")
    with pytest.raises(UsageError, match=r"no loop of the binary comes from .* say optional = true"):
        guest.bind(fact)
    assert guest.bind(fact.replace("max = 1", "max = 1\noptional = true")) == ()


def test_drift_names_both_hashes_and_the_remedy():
    guest = Guest("cortex-m4")
    current = guest.index.function("find").sha256
    with pytest.raises(UsageError, match=f"find has changed .*{ZEROS}.*{current}.*review the fact and put the new"):
        guest.bind(guest.fact('label = "scan"', "max = 1", sha256=ZEROS))
    with pytest.raises(UsageError, match=f'no hash of find; add sha256 = "{current}"'):
        guest.bind(re.sub("sha256.*", "", guest.fact('label = "scan"', "max = 1")))


def test_places(guest):
    twice = guest.index.function("twice").sha256
    (line,) = {
        guest.image.lines.find(each.base_address)
        for each in check_place("facts.toml:1", Place("twice", name="hit"), twice, guest.index, guest.analysed)
    }
    assert line == ("guest.c", 23)
    assert check_place("x", Place("other"), guest.index.function("other").sha256, guest.index, guest.analysed) == ()
    with pytest.raises(UsageError, match="unknown point 'hut'"):
        check_place("x", Place("twice", name="hut"), twice, guest.index, guest.analysed)
    with pytest.raises(UsageError, match="line 9 of twice lies outside of it"):
        check_place("x", Place("twice", line=9), twice, guest.index, guest.analysed)


@pytest.mark.parametrize("target", TARGETS)
def test_a_source_loop_that_became_two_nested_ones_is_bounded_as_one(target):
    built = program("btree-best-fit", target)
    index = index_sources(dict(built.allocator.sources))
    functions = frozenset({"btree_best_fit_malloc"})
    sites = sites_of(built.image, built.instructions, functions)
    (loop,) = index.loops("find")
    sha256 = index.function("find").sha256
    text = f'[[loop]]\nfunction = "find"\nline = {loop.first_line}\nmax = 9\n{REASON}\nsha256 = "{sha256}"'
    outer, inner, both = sorted(
        bound_facts(parse_facts("facts.toml", text), index, Analysed(built.image, functions, sites), {}),
        key=lambda fact: (fact.header_address, fact.total is not None),
    )
    assert outer.max_header == inner.max_header == both.total == 10
    assert (both.header_address, both.within, both.total_for_each_entry) == (
        inner.header_address,
        (outer.header_address,),
        0,
    )


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
