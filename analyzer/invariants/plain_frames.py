"""Whether what an operation loads from its stack is no address of the stack, as its values were told to assume.

Words: stack separation, lemma (docs/explanation/glossary.md).

*Soundness:* by induction over the loads of a call. Up to a load the values hold, so each store went where they say,
with what they say. What the load reads was stored by this call, by lemma ``stored-before-loaded``, so that it is no
address of the stack where none was stored that it could see. It lies below the stack pointer at entry, and so is the
call's own.
"""

from __future__ import annotations

from collections.abc import Iterable

from wcet_probe.analyzer.pcode.semantics import signed
from wcet_probe.analyzer.values.execution.accesses import WordTransfer
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.term_table import Term
from wcet_probe.errors import AnalysisError


def require_plain_frames(role: str, transfers: Iterable[WordTransfer]) -> None:
    """Refuse an operation that may load an address of its stack from there, where its values do not know that it does.

    Args:
        role: its name in the manifest.
        transfers: all its loads and stores, whose states were made with what is loaded taken for no such address.

    Raises:
        AnalysisError: it may.

    *Soundness:* as said of the module.
    """
    loaded, stored = list[tuple[int, int]](), list[tuple[int, int]]()
    for one in transfers:
        if one.state.base(one.pointer) is not Base.STACK:
            continue
        low, high = one.state.value(one.pointer).signed_range()
        if one.value is None:
            if held(one) is None:
                loaded.append((low, high + one.size_bytes))
        elif one.state.base(one.value) is not Base.NUMBER or one.state.has_low_part(one.value):
            stored.append((low, high + one.size_bytes))
    if any(end > 0 or any(low < other and first < end for first, other in stored) for low, end in loaded):
        raise AnalysisError(f"{role} may load an address of its stack from a computed place there.")


def held(load: WordTransfer) -> Term | None:
    """What the state knows that a ``load`` from the stack gives; None: nothing."""
    place = load.state.value(load.pointer)
    if not place.is_constant or load.state.base(load.pointer) is not Base.STACK:
        return None
    return load.state.read(Location("stack", signed(place.bits, place.value), load.size_bytes))
