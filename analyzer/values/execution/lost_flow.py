"""The error of an analysis whose graph and whose values disagree.

Words: supergraph, control-flow reconstruction (docs/explanation/glossary.md).

*Soundness:* control that goes where the graph has no edge ends the proof.
"""

from __future__ import annotations


class LostFlowError(AssertionError):
    """Control goes a way for which the graph has no edge: a bug, for some executions would be left out."""

    def __init__(self, place: str, way: str, address: int | None) -> None:
        where = "" if address is None else f" to {address:#010x}"
        super().__init__(f"control leaves {place} by a {way}{where}, for which the graph has no edge")
