"""Two machines on one guest, one on the engine and one on translated code, and all that must be equal of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.support import Guest
from wcet_probe.emu.guest_registers import ARM_FLAGS
from wcet_probe.emu.machine import Machine
from wcet_probe.emu.measurement import executed_path
from wcet_probe.errors import EmulationError

_CUT_BY_BLOCKS = ("entered", "left", "path", "path_complete")
"""An engine's own blocks: what is compared are the runs that they make up."""


@contextmanager
def twins(
    guest: Guest, heap_bytes: int = 4096, most_instructions: int = 0, **options
) -> Iterator[tuple[Machine, Machine]]:
    """A machine on the engine, and one on translated code."""
    with (
        guest.machine(heap_bytes, most_instructions, **options) as engine,
        guest.machine(
            heap_bytes, most_instructions, translations=guest.translated, translates_calls=True, **options
        ) as translated,
    ):
        yield engine, translated


def outcome(machine: Machine, ask: Callable[[Machine], object]) -> object:
    """What ``ask`` gives, or the sentence with which it fails."""
    try:
        return ask(machine)
    except EmulationError as error:
        return str(error)


def assert_equal(
    engine: Machine, translated: Machine, ask: Callable[[Machine], object], *, observed: bool = True
) -> int:
    """Both give the same answer, and leave the same behind; how many instructions were counted.

    After a failure flags are not compared: translated code has not kept those that nobody would have read.
    The product shows none. On Arm and PowerPC the next call finds them; both ABIs leave them undefined
    at entry (AAPCS32, section 6.1.1), and no compiled function reads them there. On Thumb all begin as zero.
    """
    expected = outcome(engine, ask)
    found = outcome(translated, ask)
    assert found == expected
    assert translated._translated, "nothing ran translated"
    assert translated.memory.snapshot() == engine.memory.snapshot()
    fails = isinstance(expected, str)
    assert registers(translated, flags=not fails) == registers(engine, flags=not fails)
    assert translated.loop_counts() == engine.loop_counts()
    assert translated.broken_claim() == engine.broken_claim()
    assert translated.held_calls() == engine.held_calls()
    seen, counted = engine.observation(), translated.observation()
    if observed:
        names = [name for name in seen.__slots__ if name not in _CUT_BY_BLOCKS]
        assert {name: getattr(counted, name) for name in names} == {name: getattr(seen, name) for name in names}
        runs, path = executed_path(seen, engine._table)
        found_runs, found_path = executed_path(counted, translated._table)
        if seen.path_complete and counted.path_complete:
            assert (found_runs, found_path) == (runs, path)
        else:
            assert sorted(found_runs, key=lambda run: run.address) == sorted(runs, key=lambda run: run.address)
    return seen.instructions


def registers(machine: Machine, *, flags: bool = True) -> dict[str, int]:
    """Registers of the guest; ``flags``: also those that hold flags, which a failed call need not leave right."""
    found = machine._engine.guest_registers()
    names = (*ARM_FLAGS, *(name for name in found if name.startswith(("cr", "xer"))))
    return found if flags else {name: value for name, value in found.items() if name not in names}
