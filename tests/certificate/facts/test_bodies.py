"""Code of a loop's body is executed as often as its pragma counts: what follows of that, and what does not."""

import json
import re
from functools import cache
from types import SimpleNamespace

import pytest

from tests.certificate.forgeries import sealed
from tests.support import image_of, images_dir
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.facts.asserted import Extent, is_next_inside, loop_behind, read_asserted
from wcet_probe.certificate.facts.bodies import Bodies
from wcet_probe.certificate.kernel.records import loops_of, read_records
from wcet_probe.cli import main
from wcet_probe.errors import VerificationError
from wcet_probe.evidence.checking import check_file_result

SOURCE = """\
volatile unsigned o;
unsigned words[8] = {3, 1, 4, 0, 5};
#define LAST(x) if (words[x] == 9) break

void once(unsigned n)
{
    _Pragma("loopbound min 1 max 3")
    for (unsigned i = 0; i < n; i++) {
        o = i;
        o = n;
        o = i ^ n;
    }
}

void inside(unsigned n)
{
    _Pragma("loopbound min 0 max 2")
    for (unsigned i = 0; i < n; i++) {
        _Pragma("loopbound min 0 max 3")
        for (unsigned j = 0; j <= n; j++)
            o = j;
    }
}

void folded(unsigned n)
{
    unsigned i = n;
    _Pragma("loopbound min 0 max 3")
    while ((o = words[i++]) !=
           0)
        ;
}

void left(unsigned key)
{
    _Pragma("loopbound min 0 max 3")
    for (unsigned i = 0; i != key; i++) {
        o = key;
        if (words[i] == key)
            break;
    }
}

void by_macro(unsigned key)
{
    _Pragma("loopbound min 0 max 3")
    for (unsigned i = 0; i != key; i++) {
        o = key + 1;
        LAST(i);
    }
}

void behind(unsigned n)
{
    unsigned i = 0;
    _Pragma("loopbound min 0 max 3")
    while (i != n)
        o = i++;
    o = n + 1;
}

void once_each(unsigned n)
{
    _Pragma("loopbound min 0 max 3")
    for (unsigned i = 0; i < n; i++)
        do {
            o = n + 2;
        } while (0);
}

void deeper(unsigned n)
{
    _Pragma("loopbound min 0 max 2")
    for (unsigned i = 0; i < n; i++) {
        _Pragma("loopbound min 0 max 3")
        for (unsigned j = 0; j <= n; j++) {
            _Pragma("loopbound min 0 max 4")
            for (unsigned k = 0; k <= n; k++)
                o = k;
        }
    }
}

void other(unsigned n);

void calling(unsigned n)
{
    _Pragma("loopbound min 0 max 3")
    for (unsigned i = 0; i < n; i++) {
        o = n + 4;
        other(i);
        o = n + 5;
    }
}

__attribute__((noinline)) void other(unsigned n)
{
    o = n + 6;
}

void skipped(unsigned n)
{
    _Pragma("loopbound min 0 max 4")
    for (unsigned i = 0; i < n; i++)
        if (words[i] & 1)
            o = i + 3;
}

void loads(unsigned n)
{
    unsigned sum = 0;
    _Pragma("loopbound min 0 max 4")
    for (unsigned i = 0; i < n; i++)
        sum ^= words[i & 7];
    o = sum;
}

void chosen(unsigned n)
{
    _Pragma("loopbound min 0 max 3")
    for (unsigned i = 0; i < n; i++) {
        switch (words[i & 7]) {
        case 1:
            other(i);
            break;
        case 2:
            other(n);
            break;
        }
        _Pragma("loopbound min 0 max 3")
        for (unsigned j = 0; j != n; j++)
            if (words[j & 7] == i)
                break;
        o = i + 9;
    }
}

void chosen_or_left(unsigned n)
{
    _Pragma("loopbound min 0 max 3")
    for (unsigned i = 0; i < n; i++) {
        switch (words[i & 7]) {
        case 1:
            other(i);
            break;
        }
        if (words[i & 7] == n)
            break;
        o = i + 10;
    }
}

void left_by_else(unsigned n)
{
    _Pragma("loopbound min 0 max 3")
    for (unsigned i = 0; i < n; i++)
        if (o = n + 11,
            words[i & 7] != n)
            o = i;
        else
            break;
}
"""
PRAGMA = 7
OPEN = {"constraints in instructions", "constraints in cycles"}


@cache
def image():
    return image_of(SOURCE, load_target("cortex-m4"), ".c")


@cache
def proved(entry):
    """The bound of ``entry``, the code of its nodes, and the lines that an instruction has."""
    folder = images_dir() / "bodies"
    folder.mkdir(exist_ok=True)
    (folder / "guest.c").write_text(SOURCE)
    (folder / "bodies.elf").write_bytes(image().elf)
    with pytest.MonkeyPatch.context() as patch:
        printed = []
        patch.setattr("wcet_probe.cli.streams.print_json", printed.append)
        words = ["bound", str(folder / "bodies.elf"), "--entry", entry, "--source", str(folder), "--json", "-q"]
        assert main(words) == 0
    return json.loads(json.dumps(printed[0]))


def checked(document):
    data = json.dumps(document).encode()
    return check_file_result(document, data, image().elf, source_dirs=[images_dir() / "bodies"])[0]


def not_checked(document):
    return {one.check for one in checked(document).findings if one.verdict != "ok"}


def node_on(entry, line):
    """The node that stores, or loads, on a line of ``entry`` that has these words."""
    code = checked(proved(entry)).code
    found = [
        node
        for node, own in code.items()
        if any(one.accesses and image().lines.find(one.address) == ("guest.c", line_of(line)) for one in own)
    ]
    assert found
    return found[-1]


def line_of(words):
    return SOURCE.split("\n").index(words) + 1


@cache
def rules(entry):
    """What the checker knows of bodies where it checks the true bound of ``entry``; its graph; loops, outer first."""
    found = []

    def kept(*given, **told):
        found.append(Bodies(*given, **told))
        return found[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wcet_probe.certificate.check.Bodies", kept)
        graph = checked(proved(entry)).graph
    loops = {loop.name: loop for loop in loops_of(read_records(proved(entry)["bound"]["certificates"][0]))}
    told = sorted(proved(entry)["bound"]["loops"], key=lambda one: int(one["where"].partition(":")[2]))
    return found[0], graph, [(one["where"], loops[one["name"]]) for one in told]


def follows(entry, node, most, edges=None):
    """By what ``edges``, or those into ``node``, are taken ``most`` times for each time that the first loop is entered.

    The assumption names the place, as it would if the prover had found it.
    """
    bodies, graph, ((where, loop), *_) = rules(entry)
    factors = dict.fromkeys(edges or [edge.name for edge in graph.edges if edge.target == node], 1)
    for name in loop.entering:
        factors[name] = factors.get(name, 0) - most
    place = image().location(graph.nodes[node][0])
    text = f"the code at {place} is executed in iterations of the loop at {where} only, as the line table says"
    return bodies.follows(factors, {f"body {where}": text})


@pytest.mark.parametrize("entry", ["once", "inside"])
def test_what_the_prover_says_of_bodies_is_checked_in_full(entry):
    texts = proved(entry)["bound"]["certificates"]
    assert all(re.search(r"^dual body:\d+ ", text, re.MULTILINE) for text in texts)
    assert not not_checked(proved(entry))


@pytest.mark.parametrize("words", ["        o = i;", "        o = n;", "        o = i ^ n;"])
def test_a_store_of_the_body_is_executed_in_each_iteration_and_not_once_more(words):
    node = node_on("once", words)
    assert follows("once", node, 3) == [f"body guest.c:{PRAGMA}", f"pragma guest.c:{PRAGMA}"]
    assert follows("once", node, 4)
    assert follows("once", node, 2) is None


def test_a_break_of_a_switch_or_a_loop_in_the_body_ends_no_iteration():
    node = node_on("chosen", "        o = i + 9;")
    assert follows("chosen", node, 3)
    assert follows("chosen", node, 2) is None


@pytest.mark.parametrize(
    ("loop", "is_whole"),
    [
        ("for (;;) {\n switch (n) { default: break; }\n}", True),
        ("do {\n do break; while (n);\n} while (n);", True),
        ("for (;;) {\n switch (n) { default: return; }\n}", False),
        ("for (;;) {\n switch (n) { default: ; }\n break;\n}", False),
        ("switch (n) { default: for (;;) {\n break;\n} }", False),
        ("for (;;) for (;;) {\n break;\n}", False),
    ],
)
def test_whose_break_it_is_the_text_tells_of_loops_that_begin_a_line(loop, is_whole):
    asserted = read_asserted([], {"guest.c": f"void f(unsigned n)\n{{\n{loop}\n}}\n"})
    extent = loop_behind(asserted, "guest.c", 3)
    assert Bodies._is_whole(SimpleNamespace(_asserted=asserted), extent) is is_whole


def test_a_loop_next_inside_is_entered_in_each_iteration_and_not_once_more():
    """What enters it is limited; how often it goes round, its own pragma says."""
    inner = rules("inside")[2][1][1]
    assert follows("inside", inner.header, 2, inner.entering)
    assert follows("inside", inner.header, 1, inner.entering) is None
    assert follows("inside", inner.header, 2, inner.back) is None


FORGED = {
    "the head stores, on its first line": ("folded", "    while ((o = words[i++]) !=", 3),
    "whether an iteration is counted that a break ends no pragma says": ("left", "        o = key;", 3),
    "a macro breaks": ("by_macro", "        o = key + 1;", 3),
    "it is behind the loop": ("behind", "    o = n + 1;", 3),
    "it is of a loop inside": ("inside", "            o = j;", 2),
    "it is of a loop inside that the binary has not": ("once_each", "            o = n + 2;", 3),
    "it may be skipped": ("skipped", "            o = i + 3;", 4),
    "a break behind a switch ends it": ("chosen_or_left", "        o = i + 10;", 3),
    "a break behind an else ends it": ("left_by_else", "        if (o = n + 11,", 3),
    "it loads": ("loads", "        sum ^= words[i & 7];", 4),
}


@pytest.mark.parametrize("why", FORGED)
def test_of_what_is_not_surely_of_a_body_nothing_follows(why):
    entry, line, most = FORGED[why]
    assert follows(entry, node_on(entry, line), most) is None


@pytest.mark.parametrize(
    ("other", "words"), [(None, "used and not listed|no assumption says which"), ("f+0x0", "does not speak of")]
)
def test_the_assumption_is_listed_and_names_the_place(other, words):
    document = json.loads(json.dumps(proved("once")))
    (own,) = (one for one in document["bound"]["assumptions"] if one["id"].startswith("body "))
    if other is None:
        document["bound"]["assumptions"].remove(own)
    else:
        own["statement"] = re.sub("^the code at .* is executed", f"the code at {other} is executed", own["statement"])
    with pytest.raises(VerificationError, match=words):
        checked(sealed(document))


def test_code_that_may_be_of_several_places_with_the_line_of_one_is_not_followed(monkeypatch):
    """As optimised code of GCC is."""
    monkeypatch.setattr("wcet_probe.evidence.firmware.unshared_of", lambda *_: frozenset())
    assert not_checked(proved("once")) == OPEN


RULE = "wcet_probe.certificate.facts.bodies."


@pytest.mark.parametrize(("entry", "words"), [("inside", "            o = j;"), ("behind", "    o = n + 1;")])
def test_lines_alone_do_not_tell_that_code_is_executed_once_in_a_round(entry, words, monkeypatch):
    """Whatever loop of the source owns them: the binary comes back, as in a copy of words, or it is behind."""
    outer = loop_behind(read_asserted([], {"guest.c": SOURCE}), "guest.c", line_of(f"void {entry}(unsigned n)"))
    monkeypatch.setattr(f"{RULE}loops_owning", lambda *_: [outer])
    assert follows(entry, node_on(entry, words), 3) is None


def test_what_is_executed_in_another_call_is_not_of_the_body(monkeypatch):
    """The head of the loop could call its own function; and names of nodes alone do not tell calls apart."""
    assert not not_checked(proved("calling"))
    assert follows("calling", node_on("calling", "        o = n + 5;"), 3)
    loops = loop_behind(read_asserted([], {"guest.c": SOURCE}), "guest.c", line_of("void calling(unsigned n)"))
    monkeypatch.setattr(f"{RULE}loops_owning", lambda *_: [loops])
    there = node_on("calling", "    o = n + 6;")
    assert follows("calling", there, 3) is None
    monkeypatch.setattr(f"{RULE}keeps_contexts", lambda *_: False)
    rules.cache_clear()
    assert follows("calling", node_on("calling", "        o = n + 5;"), 3) is None
    rules.cache_clear()


def test_what_would_take_too_long_does_not_follow(monkeypatch):
    monkeypatch.setattr(f"{RULE}_MOST_STEPS", 0)
    rules.cache_clear()
    assert follows("once", node_on("once", "        o = n;"), 3) is None
    rules.cache_clear()


@pytest.mark.parametrize("trusted", ["_is_of_next", "_come_back"])
def test_a_loop_further_inside_is_not_entered_once_an_iteration(trusted, monkeypatch):
    """Neither by the sources nor by the binary, whichever of the two were wrong."""
    loops = [loop for _, loop in rules("deeper")[2]]
    assert follows("deeper", loops[1].header, 2, loops[1].entering)
    monkeypatch.setattr(f"{RULE}Bodies.{trusted}", lambda *_: trusted == "_is_of_next")
    assert follows("deeper", loops[2].header, 2, loops[2].entering) is None


def test_a_loop_that_stands_between_two_makes_the_inner_one_not_next():
    asserted = read_asserted([], {"guest.c": SOURCE})
    lines = [line_of("void deeper(unsigned n)") + below for below in (2, 4, 6)]
    outer, between, inner = (loop_behind(asserted, "guest.c", line) for line in lines)
    assert is_next_inside(asserted, between, outer)
    assert is_next_inside(asserted, inner, between)
    assert not is_next_inside(asserted, inner, outer)
    assert not is_next_inside(asserted, outer, inner)
    assert not is_next_inside(asserted, outer, outer)


def test_nothing_follows_of_a_loop_with_what_may_hide_another_one(monkeypatch):
    hidden = Extent("guest.c", 11, 11, has_test=True)
    monkeypatch.setattr(f"{RULE}hidden_loops", lambda *_: [hidden])
    assert follows("once", node_on("once", "        o = n;"), 3) is None
