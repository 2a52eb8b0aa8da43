"""Facts and pragmas, bound to the loops of real images."""

import re

import pytest

from tests.analyzer.natural_loops import TARGETS, program, sites_of
from tests.path_check import attack, check_emulated, proved
from tests.support import guest_of, image_of
from wcet_probe.analyzer.facts.binding import Analysed, bound_facts, check_place, code_sha256, parameter_values
from wcet_probe.analyzer.facts.file import parse_facts
from wcet_probe.analyzer.facts.language import Place
from wcet_probe.analyzer.facts.source_index import index_sources
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import UsageError
from wcet_probe.isa.decode import decode

ZEROS = "0" * 64
REASON = 'because = "it is so"'
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


def test_a_parameter_is_declared_once():
    with pytest.raises(UsageError, match="key M: is a parameter of the run"):
        parameter_values(parse_facts("facts.toml", "[parameters]\nM = 1"), {"M": 2}, None)


def test_a_parameter_speaks_of_the_address_of_a_symbol(guest):
    facts = parse_facts("facts.toml", '[parameters]\nplace = "address(sink) + n"\nalignment = "gcd(place - n, 64)"')
    address = guest.image.symbols["sink"].address
    assert parameter_values(facts, {"n": 5}, guest.image) == {
        "n": 5,
        "place": address + 5,
        "alignment": min(64, address & -address),
    }


def test_a_parameter_speaks_of_symbols_of_the_image_only(guest):
    with pytest.raises(UsageError, match=r"\[parameters\] key place: unknown symbol of the image 'sync'.*sink"):
        parameter_values(parse_facts("facts.toml", '[parameters]\nplace = "address(sync)"'), {}, guest.image)


LEFT_INSIDE = """volatile unsigned left = 3, sink;
unsigned f(unsigned n)
{
    _Pragma("loopbound min 3 max 3")
    %s {
        sink = n;
        if (left == 0)
            break;
        left = left - 1;
        sink = 2;
    } %s
    return n;
}
"""


@pytest.mark.parametrize("loop", [("while (1)", ""), ("do", "while (n != 9);")])
@pytest.mark.parametrize("target", TARGETS)
def test_the_round_that_a_break_ends_may_be_one_more_than_a_pragma_counts(target, loop):
    # Given: three rounds to the end, and a fourth one that is left
    source = LEFT_INSIDE % loop
    proof = proved(guest_of(source, load_target(target), ".c"), "f", sources={"guest.c": source})

    # When, Then: its header is executed four times
    assert attack(proof, 5) <= proof.bound.instructions
    check_emulated(proof, 5)
    assert [claim.max_header for claim in proof.bound.loop_claims] == [4]
