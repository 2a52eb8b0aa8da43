"""What a proof assumes, and which run can check it.

Words: assumption (docs/explanation/glossary.md).

*Soundness:* each stage says of itself what it rests on; here it is put into words, with an id that results list.
"""

from __future__ import annotations

from collections.abc import Iterable

from wcet_probe.analyzer.dcache.symbolic_blocks import SymbolicBlocks
from wcet_probe.analyzer.domains.strided_interval import StridedInterval
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.facts.memory import (
    alignment_assumptions,
    memory_assumptions,
    used_words,
    word_assumptions,
)
from wcet_probe.analyzer.graph.cfg import Block
from wcet_probe.analyzer.loops.abstract_execution import rests_on_stack_alignment
from wcet_probe.analyzer.pcode.status_registers import PROCESS_STACK
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.analyzer.values.properties.dead_ends import dead_end_assumptions
from wcet_probe.analyzer.values.properties.stack_stores import may_leave_frames
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.symbolic.stack_alignment import STACK_ALIGNMENT_BYTES, tells_stack_alignment
from wcet_probe.errors import UsageError
from wcet_probe.model.image import Image
from wcet_probe.model.proof import Assumption
from wcet_probe.model.target import Replacement, Target

_SAME_TABLE = "no run can check it: the emulator counts by the same table"
_UNTOLD = "no run can check it: the emulator does not tell unaligned accesses apart; it is the developer's"
_OWN_STACK = "no run can check it: emulated calls begin on the emulator's own stack; it is the caller's"
_LEAST_REACH = 256
_SAME_CACHES = "no run can check it: the emulator replaces the same lines; it is the integrator's"
_REPEATED = "every call that the second engine repeats"
STACK_SEPARATION = Assumption(
    "stack-separation",
    "a store through a pointer that is not derived from the stack pointer misses the call's stack frames and what it "
    "is given on the stack, and a load through one finds none of their addresses",
    "every emulated run holds each store of such an instruction against it; runs are given nothing on the stack",
)
"""That no other pointer reaches the call's stack."""
MAIN_STACK = Assumption(
    "main-stack",
    "the call runs on the main stack (MSP), as exception handlers do, so that a write of PSP changes no stack in use",
    "no run can check it: the emulator runs calls on the main stack; it is the integrator's",
)
"""That who writes PSP does not write the stack pointer in use."""
STACK_STORES = Assumption(
    "stack-stores",
    "a store through a pointer that is derived from the stack pointer hits no static data",
    "no run looks at it; it is the developer's",
)
"""That what is derived from the stack pointer stays in the stack."""
STACK_ALIGNED = Assumption(
    "stack-alignment",
    f"the stack pointer is a multiple of {STACK_ALIGNMENT_BYTES} at entry, as the calling convention asks",
    _OWN_STACK,
)
"""That its lowest bits are known."""


def assumptions(
    facts: Facts, image: Image, target: Target, values: Values, lines: SymbolicBlocks | None
) -> list[Assumption]:
    """What a proof takes for granted of the machine, the caller and the code, besides flow facts.

    Args:
        facts: those about memory are among the assumptions where there is a data cache.
        image: of the code.
        target: the core.
        values: what was analysed.
        lines: of the data cache; None where there is none.

    *Soundness:* an assumption is left out only where nothing of ``values`` and ``lines`` rests on it.
    """
    assumed = of_machine(target)
    accesses = [access for found in values.accesses.values() for access in found]
    far = [one for one in accesses if one.base is Base.NUMBER and not _is_known(one.offset, image)]
    if any(one.is_store for one in far) or (far and values.held.is_any and not values.stack_escapes):
        assumed.append(STACK_SEPARATION)
    if may_leave_frames(values):
        assumed.append(STACK_STORES)
    assumed += _of_saved(values)
    if lines and lines.assumed:
        places = ", ".join(image.place(address) for address in sorted(lines.assumed))
        text = f"no data access crosses a cache line at {places}"
        assumed.append(Assumption("alignment", text, "every emulated run"))
    if target.dcache:
        assumed += memory_assumptions(facts)
    else:
        assumed += alignment_assumptions(facts) if target.unaligned else ()
        assumed += word_assumptions(used_words(facts, has_cache=False))
    on_stack = any(access.base is not Base.NUMBER for found in values.accesses.values() for access in found)
    is_asked = tells_stack_alignment(values.terms) or rests_on_stack_alignment(values)
    if ((target.dcache or target.unaligned) and on_stack) or is_asked:
        assumed.append(STACK_ALIGNED)
    assumed += of_process_stack(values.graph.points[index].block for index in values.states)
    assumed += dead_end_assumptions(image, values)
    if values.unchecked_returns:
        assumed.append(Assumption("return-address", "functions return to their callers", _REPEATED))
    return assumed


def of_machine(target: Target) -> list[Assumption]:
    """What every proof takes for granted of the core.

    *Soundness:* as of `assumptions`.
    """
    assumed = [
        Assumption(
            "no-interference",
            "nothing else runs during the call: no interrupt, exception, DMA or other core",
            "no run can check it: the emulator has one core and nothing that interrupts it; it is the integrator's",
        ),
        Assumption("timing-model", f"the core takes the cycles of targets/{target.name}.toml", _SAME_TABLE),
    ]
    if target.translation:
        checked = "no run can check it: no address is translated in the emulator; it is the integrator's"
        assumed.append(Assumption("no-translation-misses", target.translation, checked))
    if target.aligned_accesses:
        assumed.append(Assumption("aligned-accesses", target.aligned_accesses, _UNTOLD))
    if any(cache and cache.replacement is Replacement.FIFO for cache in (target.icache, target.dcache)):
        text = "a first-in first-out cache has a counter for each set: what other sets fill moves no victim"
        assumed.append(Assumption("fifo-replacement", text, _SAME_CACHES))
    return assumed


def stack_place(stack_pointer: int | None) -> tuple[Assumption, ...]:
    """What is assumed of the stack pointer at entry, besides that it is aligned; nothing where none is told.

    Raises:
        UsageError: it is no multiple of what the calling convention asks.
    """
    if stack_pointer is None:
        return ()
    if stack_pointer % STACK_ALIGNMENT_BYTES or not 0 <= stack_pointer < 1 << 32:
        raise UsageError(
            f"a stack pointer of {stack_pointer:#x} at entry is no address of 32 bits that is a multiple of "
            f"{STACK_ALIGNMENT_BYTES}, as the calling convention asks; correct --stack-pointer."
        )
    text = f"the stack pointer is {stack_pointer:#x} at entry"
    return (Assumption("stack-pointer", text, "every call of the function that is run begins with it"),)


def stack_bounds(reach: int) -> tuple[Assumption, ...]:
    """What is assumed of where the stack may be, if addresses in it were compared with each other, or with 0.

    Args:
        reach: they are less than so many bytes from the stack pointer at entry; 0: none was compared.

    *Soundness:* the least power of two that is no less is said, so that few words say it.
    """
    if not reach:
        return ()
    low = 1 << max(reach - 1, _LEAST_REACH - 1).bit_length()
    text = f"the stack pointer is from {low:#x} to {(1 << 32) - low:#x} at entry: no address near it is 0"
    return (Assumption("stack-bounds", text, _OWN_STACK),)


def _of_saved(values: Values) -> list[Assumption]:
    """What is assumed of words that registers are saved in, if anything is."""
    if not values.saving:
        return []
    text = (
        "no store but those that save registers changes a word that a function saved a register in, as long as the "
        "function has not given up that part of its stack"
    )
    return [Assumption("saved-registers", text, "every emulated run holds each store against it")]


def of_process_stack(blocks: Iterable[Block]) -> list[Assumption]:
    """What is assumed of the stack in use, where an instruction of ``blocks`` writes PSP.

    *Soundness:* they are all that can be reached.
    """
    ops = (op for block in blocks for one in block.instructions for op in one.ops)
    return [MAIN_STACK] if any(op.user_op == PROCESS_STACK for op in ops) else []


def _is_known(address: StridedInterval, image: Image) -> bool:
    """Whether a store goes to one address, of the image; what else is there, a device or the stack, is not told."""
    return address.is_constant and any(
        one.address <= address.value < one.address + one.size_bytes for one in image.segments
    )


def assumed_data(request: BoundRequest) -> tuple[Assumption, ...]:
    """What is assumed of memory at entry."""
    if request.initial is None or not request.initial.at_entry:
        return ()
    kept, entry = request.initial.content, request.initial.at_entry
    constant = "which" if kept == entry else f"of which {_bytes(kept)} are what"
    proved = f", {constant} the call is proved not to write" if kept else ""
    apart = "the call's stack is in none of them"
    text = f"memory holds at entry what {request.initial.source}: {_bytes(entry)}{proved}; {apart}"
    return (Assumption("initial-data", text, "every call of the function that is run compares them"),)


def _bytes(content: tuple[tuple[int, bytes], ...]) -> str:
    total, count = sum(len(data) for _, data in content), len(content)
    return f"{total} bytes in {count} range{'s' * (count != 1)}"
