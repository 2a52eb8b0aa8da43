"""What caches cost in a run that is followed: never less than any content at entry and any victim make of it."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analyzer.concrete_caches import config_of
from tests.examples import examples
from tests.support import guest_of
from wcet_probe.analyzer.bound import prepare, prove
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.followed_caches import RunCache, run_waits
from wcet_probe.analyzer.initial_data import image_data
from wcet_probe.analyzer.request import BoundRequest, InitialData
from wcet_probe.answer.witness.victims import victim_choices
from wcet_probe.catalog.lookup import load_target
from wcet_probe.model.scenario import InitialCache
from wcet_probe.model.target import Replacement

TARGET = load_target("arm926ej-s")
SETS = 2
LINES = range(10)
FILL, SINGLE = TARGET.memory.line_cycles(32), TARGET.memory.single_cycles


def concrete_cost(config, content, accesses, draw):
    """Cycles of ``accesses`` from ``content``, by set the ways' lines in order of age and whether they are modified.

    Victims are the oldest for LRU, the one filled first for FIFO, and drawn for all other policies.
    """
    cycles = 0
    for line, is_store in accesses:
        own = content[line % config.sets]
        found = next((one for one in own if one[0] == line), None)
        if found is None and is_store and not config.write_allocate:
            cycles += SINGLE
            continue
        if is_store and not config.write_back:
            cycles += SINGLE
        modified = is_store and config.write_back
        if found is not None:
            at = own.index(found)
            if config.replacement is Replacement.LRU:
                own.insert(0, own.pop(at))
                at = 0
            own[at] = line, found[1] or modified
            continue
        ordered = config.replacement in {Replacement.LRU, Replacement.FIFO}
        victim = own.pop(len(own) - 1 if ordered else draw(len(own)))
        own.insert(0, (line, modified))
        cycles += FILL * (1 + (victim[1] and config.write_back))
    return cycles


@given(st.data())
@settings(max_examples=examples(150, 1200), deadline=None)
def test_no_content_at_entry_and_no_victim_costs_more_than_is_told(data):
    policy = data.draw(st.sampled_from([one for one in Replacement if one is not Replacement.PLRU]))
    config = config_of(policy, data.draw(st.sampled_from([1, 2, 4])), sets=SETS)
    config = replace(config, write_allocate=data.draw(st.booleans()), write_back=data.draw(st.booleans()))
    accesses = data.draw(st.lists(st.tuples(st.sampled_from(LINES), st.booleans()), max_size=40))
    cache = RunCache(config)
    for line, is_store in accesses:
        cache.touch(line, is_store=is_store)
    most = sum(count * cycles for _, count, cycles in cache.events("data", TARGET))
    random = data.draw(st.randoms(use_true_random=True))  # contents that are evenly spread find more, and sooner
    for _ in range(8):
        content = []
        for number in range(SETS):
            lines = [line for line in (*LINES, *range(100, 110)) if line % SETS == number]
            content.append([(line, random.random() < 0.7) for line in random.sample(lines, config.ways)])
        assert concrete_cost(config, content, accesses, random.randrange) <= most


@pytest.mark.parametrize("policy", [Replacement.LRU, Replacement.PLRU, Replacement.ROUND_ROBIN])
def test_what_is_held_is_known_access_by_access(policy):
    """The second of two rounds hits where a set keeps both lines; any victim may be the other line."""
    cache = RunCache(config_of(policy, 4))
    for _ in range(2):
        for line in (1, 2):
            cache.touch(line, is_store=False)
    assert cache.fills.total() == (4 if policy is Replacement.ROUND_ROBIN else 2)


def test_a_store_that_may_hit_makes_other_lines_older_and_leaves_its_own_unknown():
    cache = RunCache(config_of(Replacement.LRU, 2, write_allocate=False))
    for line, is_store in ((1, False), (2, True), (1, False), (3, False), (2, True), (1, False)):
        cache.touch(line, is_store=is_store)
    assert cache.fills.total() == 3
    assert cache.singles == 2


@pytest.mark.parametrize("policy", [Replacement.FIFO, Replacement.ROUND_ROBIN, Replacement.RANDOM])
def test_a_store_that_may_have_hit_modifies_one_more_line_that_is_written_back(policy):
    """Both ways are modified at entry and written back; then line 1, stored to while it was held, is the third."""
    cache = RunCache(replace(config_of(policy, 2, write_allocate=False), write_back=True))
    accesses = [(1, False), (2, False), (1, True), (3, False)]
    for line, is_store in accesses:
        cache.touch(line, is_store=is_store)
    assert (cache.stored.total(), cache.may_store.total(), cache.singles) == (0, 1, 1)
    most = sum(count * cycles for _, count, cycles in cache.events("data", TARGET))
    dearest = concrete_cost(cache.config, [[(101, True), (103, True)]], accesses, lambda ways: ways - 1)
    assert most == dearest == 6 * FILL


def test_as_many_stores_that_may_have_hit_are_written_back_as_lines_are_filled():
    cache = RunCache(replace(config_of(Replacement.FIFO, 1, write_allocate=False), write_back=True))
    accesses = [(1, True), (2, True), (1, True), (3, False), (4, False)]
    for line, is_store in accesses:
        cache.touch(line, is_store=is_store)
    assert (cache.fills.total(), cache.may_store.total(), cache.singles) == (2, 2, 3)
    assert [(count, cycles) for _, count, cycles in cache.events("data", TARGET)] == [
        *((2, FILL), (3, SINGLE)),
        *((1, FILL), (1, FILL - SINGLE)),
    ]


SOURCE_HEAD = """typedef unsigned u; typedef unsigned short h; typedef unsigned char b;
u words[600] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3}; h halves[300] = {7, 8, 9}; b bytes[500] = {1, 2};
volatile u out;
"""


def random_function(random, number):
    """A function of known memory: loops over arrays at strides, choices by what they hold, a call and a stack array."""
    arrays = [("words", 600), ("halves", 300), ("bytes", 500)]
    body = ["  u local[40]; u sum = 0; for (u i = 0; i < 40; i++) local[i] = words[i] + i;"]
    for _ in range(random.randint(2, 4)):
        (name, size), (other, other_size) = random.choice(arrays), random.choice(arrays)
        stride, rounds = random.choice([1, 1, 3, 8, 16, 32]), random.randint(2, 30)
        place = f"(i * {stride} + {random.randrange(9)}) % {size}"
        target = f"(i * {random.choice([1, 8, 64])}) % {other_size}"
        body.append(
            random.choice(
                [
                    f"  for (u i = 0; i < {rounds}; i++) {{ sum += {name}[{place}]; {other}[{target}] = sum; }}",
                    f"  for (u i = 0; i < {rounds}; i++) if ({name}[{place}] & 1) {other}[{target}]++; else out = sum;",
                    f"  for (u i = 0; i < {rounds}; i++) local[(i * 5) % 40] += {name}[{place}];",
                    f"  for (u j = 0; j < 3; j++) for (u i = 0; i <= j * 4; i++) sum += {name}[{place}] + local[i];",
                ]
            )
        )
    if number:
        body.append(f"  if (words[{random.randrange(16)}] > 4) sum += f{number - 1}();")
    body.append("  for (u i = 0; i < 40; i++) sum += local[i];")
    text = "\n".join(body)
    return f"__attribute__((noinline)) u f{number}(void) {{\n{text}\n  return sum;\n}}"


def small(target, random):
    """``target`` with small caches, of any policy."""
    policy = random.choice(list(Replacement))
    allocate = random.random() < 0.5
    shape = {"sets": 16, "ways": random.choice([1, 2, 4]), "replacement": policy}
    return replace(
        target,
        icache=replace(target.icache, **shape),
        dcache=replace(target.dcache, **shape, write_allocate=allocate, write_back=random.random() < 0.8),
    )


def held(target, random, functions=4):
    """How many runs were held against bounds, how many followed bounds there were, and the ratios of cycles."""
    source = SOURCE_HEAD + "\n".join(random_function(random, number) for number in range(functions))
    guest = guest_of(source, target, ".c", random.choice(["-O1", "-O2", "-Os"]))
    runs, told, ratios = 0, 0, []
    for number in range(functions):
        entry = f"f{number}"
        with guest.machine() as machine:
            pointer = machine.entry_registers(())[target.isa.stack_pointer]
            memory = machine.memory.snapshot()
            question = (guest.image, target, guest.instructions, guest.costs, entry)
            initial = InitialData(image_data(guest.image), "the file says")
            request = BoundRequest(*question, Facts(), {}, {}, initial=initial, stack_pointer=pointer)
            bound = prove(request)
            prepared = prepare(request)
            found = run_waits(prepared.values, prepared.constants, target, pointer)
            told += found is not None and found.data is not None
            dearest = 0
            for victims in victim_choices(target)[:3]:
                for content in (InitialCache.DIRTY, InitialCache.COLD):
                    machine.memory.restore(memory)
                    run = machine.measure(entry, (), content, victims=victims)
                    assert run.cycles <= bound.cycles, (entry, target, source)
                    assert run.instructions <= bound.instructions
                    dearest, runs = max(dearest, run.cycles), runs + 1
            ratios.append(bound.cycles / dearest)
    return runs, told, ratios


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", ["arm926ej-s", "mpc603e"])
@pytest.mark.parametrize("seed", range(2))
def test_no_run_of_a_random_program_of_known_memory_takes_longer(target, seed):
    random = Random(f"followed caches {target} {seed}")
    runs, told, _ = held(small(load_target(target), random), random, functions=3)
    assert runs
    assert told
