"""Stores to memory that is taken to be constant: the segments of an image that are not writable.

Words: bound (docs/explanation/glossary.md).

*Soundness:* what is read of such a segment is its content in the file. A store that surely goes there contradicts that,
in whatever memory the segment is put, so there is no bound. Of one that may go elsewhere it is assumed that it does.
"""

from __future__ import annotations

from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.errors import AnalysisError
from wcet_probe.model.image import Image


def refuse_constant_stores(image: Image, values: Values) -> None:
    """Find no store that surely goes to a segment that is not writable.

    Raises:
        AnalysisError: there is one.
    """
    constant = [(one.address, one.address + len(one.data)) for one in image.segments if not one.writable]
    for accesses in values.accesses.values():
        for one in accesses:
            if not one.is_store or one.base is not Base.NUMBER or one.offset.is_bottom:
                continue
            low, high = one.offset.unsigned_range()
            if any(start <= low and high + one.size_bytes <= end for start, end in constant):
                raise AnalysisError(
                    f"{image.place(one.instruction_address)} stores to {low:#x}, in a segment that is not writable and "
                    "whose content is taken to be constant; let the linker put it into a writable one."
                )
