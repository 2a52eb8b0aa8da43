"""Memory that is known at entry bounds what reads it, unless the call may write it; runs compare it."""

import json
import re

import pytest

from tests.support import image_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.cli import main

SOURCE = """\
unsigned count = 12;
unsigned written = 5;
unsigned made;
unsigned lengths[4] = {3, 0, 2, 1};
unsigned char small[6] = {9, 1, 1, 1, 1, 2};
unsigned *cursor = lengths;
volatile unsigned sink;

void init(void) { made = 7; }

unsigned known(void)
{
    unsigned s = 0;
    for (unsigned i = 0; i < count; i++)
        s += sink;
    for (unsigned r = 0; r < 4; r++)
        for (unsigned i = 0; i < lengths[r]; i++)
            s += sink;
    for (unsigned i = 0; i < small[5]; i++)
        s += sink;
    return s;
}

unsigned changed(void)
{
    unsigned s = 0;
    for (unsigned i = 0; i < written; i++)
        s += sink;
    written = 1000 + s;
    return s;
}

unsigned anywhere(unsigned *where)
{
    unsigned s = 0;
    *where = 1;
    for (unsigned i = 0; i < count; i++)
        s += sink;
    return s;
}

unsigned prepared(void)
{
    unsigned s = 0;
    for (unsigned i = 0; i < made; i++)
        s += sink;
    return s;
}

__attribute__((noinline)) static void depth(unsigned n)
{
    if (n)
        depth(lengths[n & 3]);
    sink = n;
}

void recursive(unsigned n) { depth(n); }

unsigned never(void)
{
    unsigned s = 0;
    for (unsigned r = 0; r < 6; r++)
        if (small[r] == 5)
            for (unsigned i = sink; i != 1; i = i & 1 ? 3 * i + 1 : i / 2)
                s += sink;
    return s;
}

__attribute__((noinline)) static unsigned copied(const unsigned char *from, unsigned length)
{
    unsigned s = 0;
    if ((unsigned)from & 3)
        for (unsigned i = sink; i != 1; i = i & 1 ? 3 * i + 1 : i / 2)
            s += sink;
    for (unsigned i = 0; i < length; i++)
        s += from[i];
    return s;
}

unsigned aligned(void)
{
    unsigned words[12], s = 0;
    for (unsigned i = 0; i < count; i++)
        words[i] = sink;
    for (unsigned i = 0; i < 4; i++)
        s += copied((unsigned char *)(lengths[i] ? words + lengths[i] : lengths), 4 * lengths[i]);
    return s;
}

unsigned pointed(void)
{
    unsigned s = 0;
    *cursor = 4;
    for (unsigned i = 0; i < count; i++)
        s += sink;
    for (unsigned i = 0; i < lengths[0]; i++)
        s += sink;
    return s;
}
"""


@pytest.fixture(scope="module", params=["cortex-m4", "mpc603e"])
def made(request, tmp_path_factory):
    home = tmp_path_factory.mktemp("initial")
    (home / "firmware.elf").write_bytes(image_of(SOURCE, load_target(request.param), ".c").elf)
    return home, request.param


@pytest.fixture
def ask(made, capsys, monkeypatch):
    monkeypatch.chdir(made[0])

    def call(entry, *options):
        code = main(["bound", "firmware.elf", "--entry", entry, "--target", made[1], "-q", "--json", *options])
        captured = capsys.readouterr()
        return code, json.loads(captured.out) if captured.out else {}, captured.err

    return call


def test_what_the_call_does_not_write_bounds_its_loops_and_is_held_against_a_run(ask):
    assert ask("known")[0] == 4
    code, document, _ = ask("known", "--initial-data", "--run", "known()")
    assert code == 0
    observed = document["observed"]["instructions"]
    assert observed <= document["bound"]["instructions"] <= 1.3 * observed
    (told,) = [one for one in document["bound"]["assumptions"] if one["id"] == "initial-data"]
    assert told["executions"] == 1
    assert re.match(r"memory holds at entry what the file says, .*: \d+ bytes in \d+ range", told["statement"])


def test_what_a_store_of_unknown_address_may_hit_is_not_known_behind_it(ask):
    # It is given an address that may be that of count.
    assert ask("anywhere", "--initial-data")[0] == 4


def test_what_the_call_writes_is_known_until_then_and_a_later_call_contradicts(ask):
    code, document, _ = ask("changed", "--initial-data", "--run", "changed()")
    assert code == 0
    assert document["observed"]["instructions"] == document["bound"]["instructions"]
    # It leaves a thousand for its next call.
    code, _, err = ask("changed", "--initial-data", "--run", "changed(); changed()")
    assert code == 5
    assert "written+" in err


def test_what_is_followed_rests_on_no_fact_about_its_loops(ask, made):
    """A pragma of TACLeBench's sha is false: it took 3 instructions off what is executed."""
    (loop,) = ask("changed", "--initial-data")[1]["bound"]["loops"]
    place = loop["name"].partition("+")[2]
    facts = f'[[loop]]\nfunction = "changed"\noffset = {place}\nmax = 2\nbecause = "false"\n'
    (made[0] / "false.toml").write_text(facts)
    options = "--facts", "false.toml"
    _, _, err = ask("changed", *options)
    (made[0] / "false.toml").write_text(facts + re.search(r'sha256 = "\w+"', err)[0])
    assert ask("changed", *options, "--run", "changed()")[0] == 5
    code, document, _ = ask("changed", "--initial-data", *options, "--run", "changed()")
    assert code == 0
    assert document["observed"]["instructions"] == document["bound"]["instructions"]
    (idle,) = document["bound"]["idle_facts"]
    assert "each step of the function is known" in idle["why"]


def test_a_store_through_a_known_pointer_takes_back_what_it_hits_and_no_more(ask):
    # lengths[0] is 3 at entry, and 4 when it is read.
    code, document, _ = ask("pointed", "--initial-data", "--run", "pointed()")
    assert code == 0
    observed = document["observed"]["instructions"]
    assert observed <= document["bound"]["instructions"] <= 1.1 * observed


def test_low_bits_of_an_address_of_the_stack_are_known(ask):
    """TACLeBench's sha copies from a buffer of the stack in words where its address allows it."""
    code, document, _ = ask("aligned", "--initial-data", "--run", "aligned()")
    assert code == 0
    assert document["observed"]["instructions"] == document["bound"]["instructions"]
    assert "stack-alignment" in {one["id"] for one in document["bound"]["assumptions"]}


def test_what_calls_before_leave_is_known_and_a_run_without_them_contradicts(ask):
    # The file has no rounds at all.
    code, document, _ = ask("prepared", "--initial-data", "--run", "prepared()")
    assert code == 0
    none = document["bound"]["instructions"]
    code, document, _ = ask("prepared", "--initial-data", "--after", "init()", "--run", "init(); prepared()")
    assert code == 0
    assert document["observed"]["instructions"] > none
    code, _, err = ask("prepared", "--initial-data", "--after", "init()", "--run", "prepared()")
    assert code == 5
    assert "made+" in err
    assert "initial-data" in err


def test_without_it_a_bound_is_proved_where_none_is_with_it(ask, made):
    """All calls are expanded with it, so that the number of calls of a recursion says nothing."""
    facts = '[[recursion]]\nfunction = "depth"\noffset = 0\nmax_calls = 9\nbecause = "as lengths are"\n'
    (made[0] / "facts.toml").write_text(facts)
    _, _, err = ask("recursive", "--facts", "facts.toml")
    (made[0] / "facts.toml").write_text(facts + re.search(r'sha256 = "\w+"', err)[0])
    bounds = [ask("recursive", "--facts", "facts.toml", *options)[1]["bound"] for options in ((), ("--initial-data",))]
    assert bounds[0]["instructions"] == bounds[1]["instructions"]
    assert "initial-data" not in {one["id"] for one in bounds[1]["assumptions"]}
    (idle,) = bounds[1]["idle_facts"]
    assert idle["where"] == "--initial-data"
    assert "depth recursively" in idle["why"]
    _, document, _ = ask("recursive", "--initial-data", "--facts", "facts.toml")
    (made[0] / "bound.json").write_text(json.dumps(document))
    assert main(["verify", "bound.json", "--image", "firmware.elf", "--facts", "facts.toml"]) != 1


def test_a_loop_that_is_not_arrived_at_needs_no_bound(ask):
    assert ask("never")[0] == 4
    code, document, _ = ask("never", "--initial-data", "--run", "never()")
    assert code == 0
    assert document["observed"]["instructions"] == document["bound"]["instructions"]


def test_what_calls_before_leave_needs_the_option(ask):
    code, _, err = ask("prepared", "--after", "init()")
    assert (code, "--initial-data" in err) == (2, True)
