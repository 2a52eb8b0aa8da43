"""What is asked of a solver about an allocator: which builds it can be asked of, and what is printed of it."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.analyzer.deduction.cama_builds import deduced, program
from tests.cache_sets.mutants import changed
from tests.support import images_dir
from wcet_probe.analyzer.deduction.obligations import Deduced, Obligation, Reached
from wcet_probe.build.program import load_program
from wcet_probe.cache_sets.deduction import (
    ALL,
    OPERATIONS,
    WHOLE,
    ShownAccesses,
    deduce,
    geometry_of,
    shown_accesses,
    whole_operations,
)
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.cli.verify_sets import verify_sets
from wcet_probe.errors import UsageError
from wcet_probe.reports.screens.verify_sets import _deduced, _deduced_document


def test_what_is_open_is_told_with_its_instruction():
    whole = deduced("caller")
    entry = program().image.symbols["cama_free"].address
    open_one = replace(whole, obligations=(*whole.obligations, Obligation(1, entry, "bits", is_shown=False)))
    report = SimpleNamespace(deduced=(open_one,), image=program().image, deduced_whole=whole_operations((open_one,)))
    text = " ".join(" ".join(str(line) for line in _deduced(report, 100)).split())
    assert "what the caller writes - 30 1" in text
    assert "Open bits: cama_free+0x0" in text
    assert "shown as a whole: none; not as a whole: init, what the caller writes, free, malloc." in text
    document = _deduced_document(report, open_one)
    assert (document["operation"], document["shown"], document["open"][0]["what"]) == ("caller", 30, "bits")
    assert list(_deduced(SimpleNamespace(deduced=()), 100)) == []


def test_the_command_offers_what_can_be_deduced():
    (option,) = (one for one in verify_sets.params if one.name == "deduced")
    assert tuple(option.type.choices) == (*OPERATIONS, ALL)


def test_an_operation_is_whole_where_nothing_of_its_parts_is_open():
    def of(name, *, is_shown=True):
        return Deduced(name, 1, (Obligation(1, 0x100, "bits", is_shown),), ((),))

    shown = [of(name) for name in OPERATIONS]
    assert whole_operations(shown) == {"init": True, "what the caller writes": True, "free": True, "malloc": True}
    for part in WHOLE["malloc"]:
        assert not whole_operations([one for one in shown if one.operation != part])["malloc"]
    assert not whole_operations([of("free-small"), of("free-large", is_shown=False)])["free"]
    assert not whole_operations([of("free-small")])["free"]
    assert set(OPERATIONS) >= {part for parts in WHOLE.values() for part in parts}


def test_what_is_shown_of_accesses_is_told_by_sets():
    """The control words, the tables and descriptors are reserved ones, and what is shown of a block is its own."""
    shown = (Obligation(1, 0x100, "bits", is_shown=True),)
    of = {
        0x100: {Reached.CONTROL},
        0x104: {Reached.DESCRIPTOR},
        0x108: {Reached.DESCRIPTOR, Reached.AREA},
        0x10C: {Reached.TABLES},
        0x110: {Reached.BLOCK},
        0x114: {Reached.BLOCK, Reached.DESCRIPTOR},
        0x118: {Reached.STACK, Reached.CONTROL},
    }
    reached = {address: frozenset(what) for address, what in of.items()}
    parts = [Deduced(name, 1, shown, ((),), reached if name == "malloc-large" else {}) for name in OPERATIONS]
    found = shown_accesses(program(), parts)
    assert found["free"] == ShownAccesses({}, frozenset(), frozenset())
    every = frozenset(range(32))
    sets = {0x100: frozenset({0, 1}), 0x104: every - {0}, 0x108: every, 0x10C: every}
    assert found["malloc"] == ShownAccesses(sets, frozenset({0x110}), frozenset({0x114, 0x118}))
    others = {**program().allocator.entry_points, "realloc": "cama_realloc"}
    assert not shown_accesses(replace(program(), allocator=replace(program().allocator, entry_points=others)), parts)


def test_while_it_is_deduced_it_is_told_how_many_ways_were_followed():
    told = []
    deduce(program(), ("caller", "free-small"), lambda text, *_: told.append(text))
    assert told == [
        "deducing that what the caller writes keeps the claims",
        "deducing that free-small keeps the claims",
        "deducing that free-small keeps the claims, ways followed: 1",
        "deducing that free-small keeps the claims, ways followed: 2",
    ]


def test_static_data_that_do_not_begin_with_a_page_are_refused():
    own = program()
    symbols = dict(own.image.symbols)
    symbols["cama_tables"] = replace(symbols["cama_tables"], address=symbols["cama_tables"].address + 32)
    with pytest.raises(UsageError, match="begin with cache pages"):
        geometry_of(replace(own, image=replace(own.image, symbols=symbols)))


def test_other_allocators_are_refused():
    tlsf = load_program(load_allocator("tlsf"), load_target("mpc603e"), "zig", images_dir())
    with pytest.raises(UsageError, match="written for cama, not for tlsf"):
        deduce(tlsf, ("init",))


def test_reserved_sets_that_begin_elsewhere_are_refused():
    other = load_allocator("cama", {"descriptor-first-set": 16})
    with pytest.raises(UsageError, match="leave descriptor-first-set at 0"):
        deduce(load_program(other, load_target("cortex-m7"), "zig", images_dir()), ("init",))


@pytest.mark.parametrize(
    ("target", "operation", "ways"),
    [
        pytest.param("cortex-m7", "init", 16, marks=pytest.mark.slow),
        ("cortex-m7", "free-small", 2),
        pytest.param("cortex-m7", "free-large", 17, marks=pytest.mark.slow),
        pytest.param("cortex-m7", "malloc-small", 6, marks=pytest.mark.slow),
        pytest.param("cortex-m7", "malloc-grow", 59, marks=pytest.mark.slow),
        pytest.param("arm926ej-s", "init", 16, marks=pytest.mark.slow),
        ("arm926ej-s", "free-small", 2),
        pytest.param("arm926ej-s", "free-large", 17, marks=pytest.mark.slow),
        pytest.param("arm926ej-s", "malloc-small", 6, marks=pytest.mark.slow),
    ],
)
def test_operations_are_shown_on_arm(target, operation, ways):
    (found,) = deduce(load_program(load_allocator("cama"), load_target(target), "zig", images_dir()), (operation,))
    assert (found.ways, found.open) == (ways, ())


@pytest.mark.parametrize("target", ["cortex-m7", pytest.param("arm926ej-s", marks=pytest.mark.slow)])
def test_a_broken_free_is_not_shown_on_arm(target):
    """A line that strays on one path, as the reason why stores are deduced, and a block that is free twice."""
    stray = "    if (((uintptr_t)block & 0xFFFF0) == 0x77770)\n        ((volatile unsigned char *)block)[96]++;\n"
    head = "void cama_free(void *block)\n{\n"
    (found,) = deduce(changed("cama.c", (head, head + stray), target=target), ("free-small",))
    assert found.open


def test_a_sentinel_that_the_image_fills_is_refused():
    own = program()
    place = own.image.symbols["cama_control"].address + 52
    filled = [
        replace(one, data=bytes(place - one.address) + b"\0\0\0\1") if one.writable else one
        for one in own.image.segments
    ]
    with pytest.raises(UsageError, match="sentinel of size 0"):
        geometry_of(replace(own, image=replace(own.image, segments=tuple(filled))))
