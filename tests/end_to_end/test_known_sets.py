"""Objects whose cache sets are known: the scheduler of ``examples/scheduler``, and the counting of `object_lines`."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.support import Guest, cache_config, guest_of, guest_on
from wcet_probe.analyzer.bound import prove
from wcet_probe.analyzer.dcache.object_lines import _ways
from wcet_probe.analyzer.facts.file import parse_facts
from wcet_probe.analyzer.facts.source_index import index_sources
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.build import compilation as build
from wcet_probe.build.image import read_image
from wcet_probe.build.toolchain import PACKAGED, find_toolchain
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.certificate.kernel.verify import check_certificate
from wcet_probe.emu.cache import CacheSimulation
from wcet_probe.errors import UsageError
from wcet_probe.model.scenario import InitialCache
from wcet_probe.model.target import Replacement

EXAMPLE = Path(__file__).parents[2] / "examples" / "scheduler"
TARGET = load_target("mpc603e")
HEAP_BYTES = 1 << 18
PAPER_MISSES_AVOIDED = 60
"""Of 16 walks over 4 objects all but the first."""


@cache
def scheduler():
    """The example, linked with CAMA."""
    cama = load_allocator("cama", {})
    toolchain = find_toolchain(PACKAGED, TARGET)
    layout = TARGET.memory_map
    with TemporaryDirectory() as name:
        here = Path(name)
        for file, text in cama.sources:
            (here / file).write_text(text)
        (here / "scheduler.c").write_bytes((EXAMPLE / "scheduler.c").read_bytes())
        (here / "image.ld").write_text(build._LINKER_SCRIPT.format(code=layout.code, data=layout.data))
        flags = (*TARGET.compiler_flags[toolchain.family], *build.COMMON_FLAGS)
        for unit in ("scheduler", "cama"):
            build._call([*toolchain.compile, *flags, "-c", f"{unit}.c", "-o", f"{unit}.o"], here)
        build._call([*toolchain.link, "-T", "image.ld", "scheduler.o", "cama.o", "-o", "image.elf"], here)
        return guest_on(read_image((here / "image.elf").read_bytes(), TARGET.isa, toolchain.identity, flags), TARGET)


@cache
def example_bound(facts):
    sources = {"scheduler.c": (EXAMPLE / "scheduler.c").read_text()}
    return proved(scheduler(), "schedule", (EXAMPLE / facts).read_text(), sources)


def proved(guest, entry, facts, sources):
    asked = (guest.image, guest.target, guest.instructions, guest.costs, entry, parse_facts("facts.toml", facts))
    return prove(BoundRequest(*asked, sources, {}))


def scheduled(low_set, low_step, initial):
    """The call, with tasks that CAMA puts into these sets."""
    guest = scheduler()
    with guest.machine(HEAP_BYTES) as machine:
        assert machine.call("make_tasks", machine.heap.base_address, HEAP_BYTES, low_set, low_step) == 0
        first = [machine.memory.read_word(guest.address(name)) for name in ("high_tasks", "low_tasks")]
        return machine.measure("schedule", first, initial)


def test_known_sets_take_the_misses_away_that_the_paper_says():
    known, unknown = example_bound("known.toml"), example_bound("unknown.toml")
    miss_cycles = 2 * TARGET.memory.line_cycles(TARGET.dcache.line_bytes)  # a fill and a write-back
    assert unknown.cycles - known.cycles == PAPER_MISSES_AVOIDED * miss_cycles
    assert (known.cycles, unknown.cycles) == (2061, 6021), "docs/explanation/known-sets.md has these numbers"
    assert [check_certificate(bound.certificates[1]).bound for bound in (known, unknown)] == [2061, 6021]
    counted = [one for one in known.assumptions if " lines, " in one.statement]
    assert len(counted) == 2
    assert all(one.check.startswith("every emulated run holds") for one in counted)


@pytest.mark.parametrize(("low_set", "low_step"), [(1, 7), (1, 8), (64, 1), (112, 1)])
@pytest.mark.parametrize("initial", InitialCache)
def test_tasks_in_the_sets_that_the_facts_say(low_set, low_step, initial):
    run = scheduled(low_set, low_step, initial)
    assert run.cycles <= example_bound("known.toml").cycles
    assert run.dcache.read_misses == 4 + 16


def test_the_bounds_are_met():
    known, unknown = scheduled(1, 7, InitialCache.DIRTY), scheduled(0, 0, InitialCache.DIRTY)
    assert 0 <= example_bound("known.toml").cycles - known.cycles <= 15
    assert unknown.dcache.read_misses == 80
    assert 0 <= example_bound("unknown.toml").cycles - unknown.cycles <= 15


# ------------------------------------------------------------------------------------------- what else is in the sets

SOURCE = """\
struct task { struct task *next; unsigned passed; };
unsigned counters[1024];
struct table { unsigned words[4]; };

static inline struct task *next_high(struct task *task) { task->passed++; return task->next; }
static inline struct task *next_low(struct task *task) { task->passed++; return task->next; }

#define WALK(BEFORE, DURING) \\
    for (unsigned i = 0; i < 16; i++) { \\
        struct task *high = high_first; \\
        BEFORE; \\
        for (unsigned j = 0; j < 4; j++) { high = next_high(high); DURING; } \\
        low = next_low(low); \\
    }

void alone(struct task *high_first, struct task *low) { WALK(, ) }
void with_word(struct task *high_first, struct task *low, volatile unsigned *word) { WALK((*word)++, (*word)++) }
void with_near(struct task *high_first, struct task *low) { WALK(, (*(volatile unsigned *)&counters[0])++) }
void with_far(struct task *high_first, struct task *low) { WALK(, (*(volatile unsigned *)&counters[264])++) }
void with_chain(struct task *high_first, struct task *low, struct table *const volatile *table)
{
    WALK(, (*table)->words[1]++)
}
"""
ENTRIES = ("alone", "with_word", "with_near", "with_far", "with_chain")
LINE_BYTES, SETS = 32, 128
EVENTS = "miss:objects:"


@cache
def guest(replacement=Replacement.LRU, ways=4):
    dcache = replace(TARGET.dcache, replacement=replacement, ways=ways)
    return guest_of(SOURCE, replace(TARGET, dcache=dcache), ".c")


def facts(high_lines=4, low_first=1):
    index = index_sources({"guest.c": SOURCE})
    text = ""
    for name, first, sets, lines, each in (("high", 0, 1, high_lines, high_lines), ("low", low_first, 127, 16, 1)):
        text += f"""
[[pointer]]
functions = ["next_{name}"]
multiple_of = 8
first_set = {first}
sets = {sets}
lines = {lines}
lines_per_set = {each}
because = "a test"
sha256 = {{ next_{name} = "{index.function(f"next_{name}", None, None).sha256}" }}
"""
    return text


@cache
def bound(entry, replacement=Replacement.LRU, ways=4, high_lines=4, low_first=1):
    return proved(guest(replacement, ways), entry, facts(high_lines, low_first), {"guest.c": SOURCE})


def counted(found):
    """How many kinds of objects were counted."""
    return sum(f"{EVENTS}{number}:most" in found.certificates[1] for number in range(3))


def measured(entry, on: Guest, low_sets, initial, extra_set):
    """The call with tasks of high priority in set 0, the others in ``low_sets``, and a word in ``extra_set``."""
    with on.machine(HEAP_BYTES) as machine:
        page, base = LINE_BYTES * SETS, machine.heap.base_address
        high = [base + number * page for number in range(4)]
        low = [base + (number + 4) * page + LINE_BYTES * one for number, one in enumerate(low_sets)]
        extra = base + 24 * page + LINE_BYTES * extra_set
        for nodes in (high, low):
            for node, following in zip(nodes, [*nodes[1:], nodes[0]], strict=True):
                machine.memory.write(node, following.to_bytes(4, "big"))
        machine.memory.write(extra, (extra + 8 * page).to_bytes(4, "big"))
        return machine.measure(
            entry, (high[0], low[0], extra)[: 3 if entry in {"with_word", "with_chain"} else 2], initial
        )


@pytest.mark.parametrize(
    ("entry", "kinds"), [("alone", 2), ("with_word", 1), ("with_near", 1), ("with_far", 2), ("with_chain", 0)]
)
def test_objects_are_counted_only_where_all_that_shares_their_sets_is(entry, kinds):
    assert guest().address("counters") // LINE_BYTES % SETS == 0
    assert counted(bound(entry)) == kinds


@pytest.mark.covering
@pytest.mark.parametrize("replacement", Replacement)
@pytest.mark.parametrize("entry", ENTRIES)
def test_no_run_exceeds_its_bound(entry, replacement):
    on, found = guest(replacement), bound(entry, replacement)
    for low_sets in (range(1, 17), range(112, 128), range(1, 128, 8)):
        for initial in (InitialCache.COLD, InitialCache.DIRTY):
            for extra_set in (0, 1, 127):
                run = measured(entry, on, low_sets, initial, extra_set)
                assert run.cycles <= found.cycles, (low_sets, initial, extra_set)


@pytest.mark.parametrize(
    ("replacement", "ways", "kinds"),
    [
        (Replacement.LRU, 4, 2),
        (Replacement.LRU, 2, 1),
        (Replacement.FIFO, 4, 2),
        (Replacement.PLRU, 4, 1),  # keeps three lines
        (Replacement.PLRU, 8, 2),
        (Replacement.RANDOM, 8, 1),
    ],
)
def test_as_many_lines_are_kept_as_the_policy_keeps(replacement, ways, kinds):
    assert counted(bound("alone", replacement, ways)) == kinds


def test_lists_that_share_a_set_count_together():
    assert counted(bound("alone", high_lines=4, low_first=0)) == 0
    assert counted(bound("alone", high_lines=3, low_first=0)) == 2


@pytest.mark.parametrize("lines", ["lines = 4", "lines = 4\nlines_per_set = 5", "lines = 4\nlines_per_set = 0"])
def test_lines_that_cannot_be(lines):
    text = facts().replace("lines = 4\nlines_per_set = 4", lines)
    with pytest.raises(UsageError, match=r"facts\.toml:2: \[\[pointer\]\] key lines"):
        proved(guest(), "alone", text, {"guest.c": SOURCE})


# ----------------------------------------------------------------------------------------------------- by brute force


CONFIGS = st.builds(
    cache_config,
    sets=st.just(1),
    ways=st.sampled_from((1, 2, 4, 8)),
    replacement=st.sampled_from(Replacement),
    write_back=st.booleans(),
    write_allocate=st.booleans(),
    seed=st.integers(0, 99),
)


@given(
    CONFIGS,
    st.lists(st.integers(0, 11), max_size=30),
    st.lists(st.tuples(st.integers(0, 7), st.booleans()), max_size=60),
)
@settings(max_examples=examples(100), deadline=None)
def test_lines_that_fit_are_filled_once(config, before, call):
    """Whatever the set held, and in whatever order the lines are accessed that the policy keeps."""
    simulation = CacheSimulation(config, InitialCache.DIRTY)
    for line in before:
        simulation.access(line * 16, is_write=False)
    fills = {}
    for number, is_write in call:
        line = number % _ways(config)
        if not simulation.access(line * 16, is_write=is_write) and (config.write_allocate or not is_write):
            fills[line] = fills.get(line, 0) + 1
    assert max(fills.values(), default=0) <= 1
