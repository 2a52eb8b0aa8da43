"""The oracle: a measurement against a second engine that shares no code with it, on TLSF and on hand-written code.

Tests: emu.machine, analyzer.pcode.interpreter.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.emu.guests import ALL, HEAP, IDS, arguments_in, guest
from tests.emu.second_engine import (
    Caches,
    assert_agree,
    counts_of,
    cycles_of,
    interpret,
    pipeline_cycles,
    traced_call,
    unaligned_cycles_of,
)
from tests.support import TARGETS, Guest, assembler, cache_config, guest_of, guest_on, images_dir, tlsf, tlsf_guest
from wcet_probe.answer.witness.probe import ProbeRequest, observe
from wcet_probe.catalog.lookup import load_target
from wcet_probe.model.scenario import InitialCache, OperationKind
from wcet_probe.model.target import CacheConfig, Replacement, Target

COLD, DIRTY = InitialCache.COLD, InitialCache.DIRTY
HEAP_BYTES = 4096
TARGET = {name: load_target(name) for name in TARGETS}
CONTENT = bytes(16) + bytes(i * 37 & 0xFF for i in range(240))

CACHES: dict[str, tuple[CacheConfig | None, CacheConfig | None]] = {
    "small lru": (cache_config(4, 2, 16), cache_config(4, 2, 16)),
    "fifo, write-through": (
        cache_config(8, 3, 8, Replacement.FIFO),
        cache_config(2, 3, 8, Replacement.FIFO, write_back=False, write_allocate=True),
    ),
    "plru, around": (
        cache_config(4, 4, 32, Replacement.PLRU),
        cache_config(2, 4, 32, Replacement.PLRU, write_allocate=False),
    ),
    "random": (
        cache_config(4, 3, 16, Replacement.RANDOM, seed=5),
        cache_config(4, 5, 16, Replacement.RANDOM, seed=6, write_back=False, write_allocate=False),
    ),
    "lines of a word": (cache_config(16, 2, 4), cache_config(8, 1, 4)),
    "instructions only": (cache_config(2, 1, 64), None),
    "data only": (None, cache_config(1, 8, 64)),
}


def with_caches(target: Target, name: str) -> Target:
    icache, dcache = CACHES[name]
    return replace(target, icache=replace(icache, write_back=False) if icache else None, dcache=dcache)


KNOWN = [pair for pair in zip(ALL, IDS, strict=True) if pair[0][1].function not in {"zero", "string"}]
"""The interpreter knows no ``dcbz`` and takes a load or store string for one access: both are counted by hand alone."""


@pytest.mark.covering(1)
@pytest.mark.parametrize(("target", "case"), [pair for pair, _ in KNOWN], ids=[name for _, name in KNOWN])
@pytest.mark.parametrize("caches", CACHES)
def test_hand_written_functions(target, case, caches):
    cached = guest_on(guest(target).image, with_caches(load_target(target), caches))
    with cached.machine() as machine, cached.engine() as traced:
        for each in (machine, traced):
            each.memory.write(each.heap.base_address, CONTENT)
        arguments = arguments_in(machine, case.arguments)
        measurement, second = assert_agree(cached, machine, case.function, arguments, COLD)
        seen = traced_call(traced, cached.target.isa, case.function, arguments)
        longer = unaligned_cycles_of(cached, second)
        assert measurement.instruction_cycles == cycles_of(cached, second.path, seen) + longer
        assert measurement.instruction_cycles >= pipeline_cycles(cached, second.path, seen)


IT_BLOCKS = "itete eq\nldreq r2, [r1]\nstrne.w r2, [r1]\nstreq r2, [r1, #4]\nldrne.w r3, [r1, #4]\n"
CONDITIONALS = "ldreq r2, [r1]\nstrne r2, [r1]\nldmeq r1, {r2, r3}\nldrne r3, [r1, #4]!\n"
LOADS = "lwz 5, 0(4)\nstw 5, 4(4)\nstmw 30, 8(4)\nlmw 30, 8(4)\n"
REPEATED = {
    "cortex-m4": ("cmp r0, #0\n", IT_BLOCKS, "bx lr"),
    "arm926ej-s": ("cmp r0, #0\n", CONDITIONALS, "bx lr"),
    "mpc603e": ("cmpwi 3, 0\n", LOADS, "blr"),
}


@cache
def repeated(target: str, skipped_bytes: int, times: int) -> Guest:
    """A function that starts ``skipped_bytes`` bytes into a page, of ``times`` equal pieces."""
    first, again, last = REPEATED[target]
    branch = "b.w" if target == "cortex-m4" else "b"
    body = f"{branch} 1f\n.balign 4096\n.space {skipped_bytes}\n1: {first}{again * times}{last}"
    return guest_of(assembler({"f": body}, TARGET[target]), with_caches(TARGET[target], "small lru"))


@pytest.mark.covering(1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("argument", [0, 1])
@pytest.mark.parametrize(("before_page_end", "times"), [(4, 3), (8, 3), (12, 3), (4096, 400)])
def test_code_that_the_engine_translates_in_pieces(target, argument, before_page_end, times):
    """Code across a page, in the middle of an IT block or of an instruction, and blocks longer than a translation."""
    used = repeated(target, 4096 - before_page_end + 2 * (target == "cortex-m4"), times)
    with used.machine() as machine, used.engine() as traced:
        arguments = (argument, machine.heap.base_address)
        measurement, second = assert_agree(used, machine, "f", arguments, COLD)
        assert measurement.instructions == 3 + times * (5 if target == "cortex-m4" else 4)
        seen = traced_call(traced, used.target.isa, "f", arguments)
        longer = unaligned_cycles_of(used, second)
        assert measurement.instruction_cycles == cycles_of(used, second.path, seen) + longer
        machine.call("f", *arguments)
        assert machine.count("f", arguments) == measurement.instructions


@pytest.mark.parametrize("unaligned", range(4))
def test_addressing_modes_of_a32(unaligned):
    with guest("arm926ej-s").machine() as machine:
        arguments = arguments_in(machine, (HEAP + 64 + 4 * unaligned, 8))
        assert_agree(guest("arm926ej-s"), machine, "forms", arguments, COLD)


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
@given(data=st.data())
@settings(max_examples=8)
def test_random_operations_on_tlsf(target, data):
    """Each operation of a random sequence, from the state that all before it left."""
    caches = data.draw(st.sampled_from([*CACHES, "own"]))
    initial = data.draw(st.sampled_from((COLD, DIRTY)))
    built = tlsf_guest(
        target, {"sl-bits": data.draw(st.sampled_from((4, 5))), "bit-search": data.draw(st.integers(0, 1))}
    )
    used = built if caches == "own" else guest_on(built.image, with_caches(built.target, caches))
    sizes = st.integers(1, 300) | st.sampled_from((0, 8, 256, 257, 1000, 2000, HEAP_BYTES, 1 << 31))
    operations = data.draw(st.lists(st.one_of(sizes, st.integers(-8, -1)), min_size=1, max_size=10))
    with used.machine(HEAP_BYTES) as machine, used.engine(HEAP_BYTES) as traced:
        start = (machine.heap.base_address, HEAP_BYTES)
        assert machine.call("tlsf_init", *start) == traced.call("tlsf_init", *start) == 0
        live: list[int] = []
        for operation in operations:
            function, argument = ("tlsf_malloc", operation)
            if operation < 0:
                function, argument = "tlsf_free", live.pop(operation % len(live)) if live else 0
            measurement, second = assert_agree(used, machine, function, (argument,), initial)
            seen = traced_call(traced, used.target.isa, function, (argument,))
            longer = unaligned_cycles_of(used, second)
            assert measurement.instruction_cycles == cycles_of(used, second.path, seen) + longer
            if operation >= 0 and measurement.result:
                live.append(measurement.result)
            assert machine.call("tlsf_check") == 0


@pytest.mark.covering
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("scenario", ["worst-alloc", "worst-free"])
def test_everything_from_init_on_in_the_interpreter_alone(target, scenario):
    """No state comes from the first engine: the second starts with the ELF's segments and an empty heap."""
    request = ProbeRequest(
        tlsf(), load_target(target), scenario, HEAP_BYTES, 0, None, "zig", cross_check=False, cache_dir=images_dir()
    )
    report = observe(request)
    used = guest_on(report.image, report.target)
    layout = report.target.memory_map
    memory: dict[int, bytes | bytearray] = {
        s.address: bytearray(s.data.ljust(s.size_bytes, b"\0")) if s.writable else s.data for s in report.image.segments
    }
    memory[layout.stack.base_address] = bytearray(layout.stack.size_bytes)
    memory[layout.heap_address] = bytearray(HEAP_BYTES)
    with used.machine(HEAP_BYTES) as machine:  # it runs nothing; it says how a call begins
        entry = machine.entry_registers

    def call(function: str, *arguments: int):
        nonlocal memory
        done = interpret(used, memory, entry(arguments), function)
        memory = {
            base: bytearray(done.memory[base]) if isinstance(old, bytearray) else old for base, old in memory.items()
        }
        return done

    assert call("tlsf_init", layout.heap_address, HEAP_BYTES).result == 0
    blocks = {}
    for i in range(len(report.plan.trace)):
        operation = report.plan.trace[i]
        if operation.kind is OperationKind.MALLOC:
            blocks[operation.slot] = call("tlsf_malloc", operation.size_bytes).result
            assert blocks[operation.slot]
        else:
            call("tlsf_free", blocks.pop(operation.slot))
    measured = report.plan.measured
    allocates = measured.kind is OperationKind.MALLOC
    argument = measured.size_bytes if allocates else blocks[measured.slot]
    second = call("tlsf_malloc" if allocates else "tlsf_free", argument)
    witness = report.measurement
    assert (witness.instructions, witness.loads, witness.stores) == (second.instructions, second.loads, second.stores)
    assert not allocates or witness.result == second.result
    caches = Caches.of(report.target, report.initial_cache)
    caches.feed(used, second)
    assert (witness.icache, witness.dcache) == (counts_of(caches.icache), counts_of(caches.dcache))
