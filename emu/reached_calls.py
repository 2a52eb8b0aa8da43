"""Calls that a guest is about to make within others: kept as they are found, and made by themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from wcet_probe.emu.engine import Engine
from wcet_probe.emu.layout import RETURN_ADDRESS
from wcet_probe.model.target import Isa


@dataclass(frozen=True, slots=True)
class ReachedCall:
    """A call that the guest is about to make: where, and with which registers.

    Attributes:
        entry_address: of the function that is called.
        return_address: where the call returns to.
        registers: by name, as the call finds them where it is measured, which returns to the machine.
        saved: the engine's own.
    """

    entry_address: int
    return_address: int
    registers: Mapping[str, int]
    saved: object = field(repr=False, compare=False)


def reached_call(engine: Engine, isa: Isa, entry_address: int) -> ReachedCall:
    """The call of the function at ``entry_address``, where ``engine`` is."""
    thumb = int(isa is Isa.THUMB)
    names = {"sp": "r13"} if isa is not Isa.POWERPC else {}
    registers = {names.get(name, name): value for name, value in engine.guest_registers().items()}
    back = registers["lr"] & ~thumb
    registers["lr"] = RETURN_ADDRESS | thumb
    return ReachedCall(entry_address, back, registers, engine.saved())


def make_call(engine: Engine, hooks: tuple[int | None, int | None, int], call: ReachedCall) -> None:
    """Make ``call``, watched by ``hooks``, up to its return.

    Raises:
        EngineFault: the guest did what it must not.
    """
    engine.restore(call.saved)
    engine.write_register("lr", call.registers["lr"])
    engine.set_hooks(*hooks)
    engine.run(call.entry_address, RETURN_ADDRESS, goes_on=True)
