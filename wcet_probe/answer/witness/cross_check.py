"""A second engine repeats the measured call: the analyzer's p-code interpreter, and a cache simulation of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol

from wcet_probe.analyzer.pcode.interpreter import interpret_call
from wcet_probe.analyzer.pcode.lift import Lifter, image_lifter
from wcet_probe.answer.witness.call_paths import check_call_path
from wcet_probe.answer.witness.contradiction import check_accesses, check_path, register_check
from wcet_probe.answer.witness.victims import seeded
from wcet_probe.build.image import require_symbol
from wcet_probe.emu.cache import Caches
from wcet_probe.emu.layout import RETURN_ADDRESS
from wcet_probe.errors import ContradictionError
from wcet_probe.identity import Same
from wcet_probe.model.image import Image
from wcet_probe.model.measurement import Measurement
from wcet_probe.model.proof import Bound
from wcet_probe.model.report import CrossCheck
from wcet_probe.model.scenario import InitialCache
from wcet_probe.model.target import Isa, MemoryRange, Target


@dataclass(frozen=True, slots=True)
class Call:
    """The measured call, as a second engine can repeat it: registers and memory at its entry."""

    function: str
    registers: Mapping[str, int]
    memory: Mapping[int, bytes | bytearray]
    initial_cache: InitialCache


class Repeatable(Protocol):
    """What a call is repeated of: an image on a target."""

    @property
    def image(self) -> Image:
        """The binary."""
        ...

    @property
    def target(self) -> Target:
        """The core."""
        ...


@lru_cache(maxsize=4)
def _lifter(language: str, isa: Isa, image: Same[Image]) -> Lifter:
    """One for all calls of an image that are repeated, with what a proof of it has translated."""
    return image_lifter(language, isa, image.value.segments)


def cross_check(
    program: Repeatable, bound: Bound | None, call: Call, measurement: Measurement, subject: str
) -> CrossCheck:
    """Repeat the measured call in the p-code interpreter, and its accesses in the plain cache simulation.

    Parameters:
        program: what was run.
        bound: of the function that was called; each access and register is held against it.
        call: the call to be repeated.
        measurement: what the first engine counted.
        subject: what was run, in words.

    Raises:
        ContradictionError: a count differs, or what happened is outside of what is proved.
    """
    target, image = program.target, program.image
    lifter = _lifter(target.pcode_language, target.isa, Same(image))
    pointer = call.registers[target.isa.stack_pointer]
    second = interpret_call(
        lifter,
        call.memory,
        call.registers,
        entry_address=require_symbol(image, call.function).address,
        return_address=RETURN_ADDRESS,
        step_limit=measurement.instructions + 1,
        visit=register_check(bound, image, pointer, subject) if bound else None,
    )
    icache = dcache = None
    if call.initial_cache is not InitialCache.WARM:
        caches = Caches.of(seeded(target, measurement.victims), call.initial_cache)
        accesses = ((one.step, one.address, one.size_bytes, one.is_store) for one in second.accesses)
        caches.run(second.path, lambda at: lifter.lift(at).size_bytes, accesses)
        icache, dcache = caches.icache, caches.dcache
    check = CrossCheck(
        engine="p-code interpreter",
        instructions=second.instructions,
        loads=second.loads,
        stores=second.stores,
        icache_misses=icache.misses if icache else None,
        dcache_misses=dcache.misses if dcache else None,
        dcache_writebacks=dcache.writebacks if dcache else None,
    )
    first = CrossCheck(
        engine=check.engine,
        instructions=measurement.instructions,
        loads=measurement.loads,
        stores=measurement.stores,
        icache_misses=measurement.icache.misses if icache else None,
        dcache_misses=measurement.dcache.misses if dcache else None,
        dcache_writebacks=measurement.dcache.writebacks if dcache else None,
    )
    if check != first or second.result != measurement.result:
        message = (
            f"the two engines disagree about {call.function}: {first} against {check}; "
            "report this with the command line."
        )
        raise ContradictionError(message)
    if bound is not None:
        frames = MemoryRange(pointer - measurement.stack_bytes, measurement.stack_bytes)
        returns = check_path(bound, second.path, image, subject)
        check_accesses(bound, second.accesses, image, target, frames=frames, subject=subject)
        check_call_path(bound, second.path, second.accesses, image, target, frames=frames, subject=subject)
        check = replace(check, returns=returns)
    return check
