"""Calls through members of structures: one fact for all of them, which runs contradict where it is false."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import image_of
from wcet_probe.analyzer.facts import call_fields
from wcet_probe.analyzer.facts.call_fields import field_sites, targets_through_fields
from wcet_probe.analyzer.facts.file import parse_facts
from wcet_probe.catalog.lookup import load_target
from wcet_probe.cli.app import main
from wcet_probe.errors import ExitCode, UsageError
from wcet_probe.isa.decode import decode

SOURCE = """\
struct disk { int block; int (*read)(int); int (*sync)(void); };
struct other { int block; int (*read)(int); };
struct box { int (*first)(int); struct disk disk; };
volatile int v;
int disk_read(int n) { return n + v; }
int slow_read(int n) { for (int i = 0; i < 9; i++) n ^= v; return n; }
int disk_sync(void) { return v; }
struct disk disk = { 512, disk_read, disk_sync };
struct box box;
__attribute__((noinline)) int fill(struct disk *d, int n)
{
    int sum = d->read(n);
    return sum + (*d->read)(n + sum);
}
int tail(struct disk *d) { v = 1; return d->sync(); }
int inner(struct box *b) { return b->disk.read(3) + 1; }
int both(struct other *o) { return o->read(1) + 1; }
void set(void) { disk.read = slow_read; }
int good(void) { return fill(&disk, 1); }
int bad(void) { set(); return fill(&disk, 1); }
"""
CORES = ("cortex-m4", "arm926ej-s", "mpc603e")
READ = '[[calls]]\nthrough = "disk.read"\ntargets = ["disk_read"]\nbecause = "there is one disk"\n'
SOURCES = {"guest.c": SOURCE}


@pytest.fixture(scope="module", params=CORES)
def image(request):
    return image_of(SOURCE, load_target(request.param), ".c")


def by_function(image, sites):
    found = {}
    for site, one in sites.items():
        found.setdefault(image.function_at(site).name, []).append(one)
    return found


KEPT = """\
struct queue { int length; int (*done)(struct queue *); int (*full)(struct queue *); };
volatile int lock;
int tested(struct queue *q) { if (q->done != 0) return q->done(q) + 1; return lock; }
int kept(struct queue *q)
{
    lock = 1;
    int (*full)(struct queue *) = q->full;
    lock = 0;
    if (full)
        return (*full)(q) + 1;
    return 0;
}
__attribute__((noinline)) void unlock(void) { lock = 0; lock = 0; }
int behind(struct queue *q)
{
    int (*full)(struct queue *);
    full = q->full;
    unlock();
    if (full != 0)
        return (full)(q) + 1;
    return 0;
}
int set(struct queue *q, int (*other)(struct queue *))
{
    int (*full)(struct queue *);
    full = other;
    lock = 0;
    if (full)
        return (full)(q) + 1;
    return 0;
}
int either(struct queue *q, struct queue *p)
{
    int (*full)(struct queue *);
    full = q->full;
    if (p->length)
        full = p->done;
    return full(q) + 1;
}
"""


@pytest.mark.parametrize("target", CORES)
def test_a_variable_that_is_set_to_a_member_and_called_behind_a_test_is_a_call_through_the_member(target):
    guest = image_of(KEPT, load_target(target), ".c")
    found = by_function(guest, field_sites(guest, decode(guest), {"guest.c": KEPT}))
    assert found == {"tested": [("queue.done",)], "kept": [("queue.full",)], "behind": [("queue.full",)]}


def test_a_member_whose_name_is_another_functions_for_users_is_a_member_in_its_own_file(image):
    users = {"users.h": "#define sync disk_sync_of_users\n#define sync _checked_sync\n"}
    assert by_function(image, field_sites(image, decode(image), SOURCES | users))["tail"] == [("disk.sync",)]
    for text in ("#define sync read\n", "#define sync(x) x\n", "#define sync first ? a : b\n"):
        assert "tail" not in by_function(image, field_sites(image, decode(image), SOURCES | {"users.h": text}))


def test_calls_are_bound_to_the_member_by_its_place_and_its_name_in_the_source(image):
    found = by_function(image, field_sites(image, decode(image), SOURCES))
    assert found["fill"] == [("disk.read", "other.read")] * 2  # the two are at one place, and have one name
    assert found["tail"] == [("disk.sync",)]
    assert found["inner"] == [("disk.read", "other.read")]  # and so they are wherever the call finds them
    assert found["both"] == [("disk.read", "other.read")]
    assert field_sites(image, decode(image), {}) == {}
    assert field_sites(image, decode(image), {"guest.c": SOURCE.replace("d->read", "CALL")}).keys() < set(
        field_sites(image, decode(image), SOURCES)
    )


def test_a_call_that_may_be_through_either_of_two_members_waits_for_facts_about_both(image):
    def targets(text):
        return by_function(image, targets_through_fields(parse_facts("f.toml", text), image, decode(image), SOURCES))

    read, slow = (image.symbols[name].address for name in ("disk_read", "slow_read"))
    assert targets(READ) == {}
    both = targets(READ + READ.replace("disk.read", "other.read").replace('"disk_read"', '"slow_read"'))
    assert both == {name: [tuple(sorted((read, slow)))] * 2 for name in ("fill",)} | {
        "inner": [tuple(sorted((read, slow)))],
        "both": [tuple(sorted((read, slow)))],
    }


@pytest.mark.parametrize(
    ("through", "message"),
    [("disk.raed", "'disk.read'"), ("disk.block", "pointer to a function in a structure"), ("box.first", "no call is")],
)
def test_a_member_that_nobody_calls_through_is_refused(image, through, message):
    facts = parse_facts("f.toml", READ.replace("disk.read", through))
    with pytest.raises(UsageError, match=message):
        targets_through_fields(facts, image, decode(image), SOURCES)


def test_without_debug_information_a_member_is_refused_with_what_to_do():
    """It was said that known are none."""
    plain = image_of("int v;\nint f(void) { return v; }", load_target("cortex-m4"), ".c")
    with pytest.raises(UsageError, match="compile with -g"):
        targets_through_fields(parse_facts("f.toml", READ), plain, decode(plain), SOURCES)


OTHER = """
struct kit { int n; int (*const *ways)(int); };
#define WAY(k, n) k->ways[1](n)
static inline int twice(int n) { return 2 * n; }
int nested(struct disk *d, struct kit *k, int n) { return d->read(k->ways[1](n)) + 1; }
int local(struct disk *d, struct kit *k, int n) { int (*way)(int) = k->ways[1];
    return d->read(way(n)) + 1; }
int hidden(struct disk *d, struct kit *k, int n) { return d->read(WAY(k, n)) + 1; }
int direct(struct disk *d, int n) { return d->read(twice(n) + disk_sync()) + 1; }
"""


@pytest.mark.parametrize("target", CORES)
def test_a_call_by_a_pointer_that_is_no_member_is_bound_to_none(target):
    """Its target is loaded from as far behind a pointer, and in the line is a call through the member."""
    text = SOURCE + OTHER
    image = image_of(text, load_target(target), ".c")
    found = by_function(image, field_sites(image, decode(image), {"guest.c": text}))
    assert found.keys().isdisjoint({"nested", "local", "hidden"})
    assert "direct" in found or target != "cortex-m4"
    assert found["tail"] == [("disk.sync",)]


ELEMENTS = """\
struct one { int (*read)(int); int (*sync)(void); };
struct two { int a, b; int (*read)(int); };
struct three { int a, b; int (*open)(int); };
volatile int v;
int element(struct one *o) { return o[1].read(1) + v; }
int word(struct two *t) { return t->read(2) + v; }
int opened(struct three *t) { return t->open(2) + v; }
"""
RENAMED = """\
struct four { int (*open)(int), (*b)(void), (*close)(int); };
#define open close
int renamed(struct four *t) { return t->open(2) + v; }
"""


@pytest.mark.parametrize("target", CORES)
def test_how_far_behind_a_pointer_a_member_is_tells_no_member_of_that_name(target):
    """In the second element of an array the one is as far behind as the other: a true fact about
    that was taken for one about this, and left the other function out."""
    image = image_of(ELEMENTS, load_target(target), ".c")
    found = by_function(image, field_sites(image, decode(image), {"guest.c": ELEMENTS}))
    assert found["element"] == [("one.read", "two.read")]
    assert found["opened"] == [("three.open",)]


def test_of_a_name_that_is_a_macros_nobody_knows_which_member_it_is():
    text = ELEMENTS + RENAMED
    image = image_of(text, load_target("cortex-m4"), ".c")
    found = by_function(image, field_sites(image, decode(image), {"guest.c": text}))
    assert found.keys() == {"element", "word"}


@pytest.mark.parametrize("target", CORES)
def test_what_gcc_may_have_made_one_call_of_two_is_through_any_member_at_that_place(target, monkeypatch):
    """GCC -Os gives two calls that end two ways the line of one: of a true fact about that, the other was not seen."""
    image = image_of(ELEMENTS, load_target(target), ".c")
    monkeypatch.setattr(call_fields, "functions_of_clang", lambda _: frozenset())
    call_fields._field_sites.cache_clear()
    found = by_function(image, field_sites(image, decode(image), {"guest.c": ELEMENTS}))
    call_fields._field_sites.cache_clear()
    assert found["opened"] == [("three.open", "two.read")]


# --------------------------------------------------------------------------------------------------------- end to end

ONE = SOURCE.replace("struct other", "struct another").replace("o->read", "o->load").replace(
    "another { int block; int (*read)", "another { int block; int (*load)"
)  # fmt: skip


@pytest.fixture
def tool(tmp_path, monkeypatch, capsys):
    """The tool in a folder with the program."""
    monkeypatch.chdir(tmp_path)
    Path("guest.c").write_text(ONE, "utf-8")
    Path("f.toml").write_text(READ, "utf-8")

    def ask(target, *words):
        Path("f.elf").write_bytes(image_of(ONE, load_target(target), ".c").elf)
        code = main([words[0], "f.elf", "--target", target, *words[1:], "-q"])
        return code, *capsys.readouterr()

    return ask


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", CORES)
def test_one_fact_bounds_all_calls_through_a_member_and_lists_them(tool, target):
    code, text, _ = tool(
        target, "bound", "--entry", "fill", "--facts", "f.toml", "--why", "--fact-effects", "--run", "good()"
    )
    assert code == ExitCode.OK
    assert "without the calls fact f.toml:1" in text
    flat = " ".join(text.split())
    assert "calls through disk.read, which are those at fill+0x" in flat
    assert flat.count("(guest.c:12)") >= 1
    assert "go only to disk_read: there is one disk" in flat


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", CORES)
def test_a_run_that_calls_something_else_contradicts_the_fact(tool, target):
    code, _, error = tool(target, "bound", "--entry", "fill", "--facts", "f.toml", "--run", "bad()")
    assert code == ExitCode.CONTRADICTION
    assert "f.toml:1" in error


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", CORES)
def test_the_missing_facts_name_the_member_once_and_what_the_file_has_in_it(tool, target):
    code, text, _ = tool(target, "facts", "--entry", "fill")
    assert code == ExitCode.OK
    assert text.count("[[calls]]") == 1
    assert 'through = "disk.read"\ntargets = ["?"]' in text
    assert "in the file, disk holds disk_read" in text
    assert '# function = "fill"\n# index = 0\n# points_to = "disk"' in text
    assert "sha256" not in text
