# SPDX-License-Identifier: 0BSD
"""Contexts: the calls that lead to a node, as its name tells them; and returns that are assumed to go to the caller.

A return whose address nobody can follow, for the word that holds it may have been overwritten, goes where the caller
waits if the stack pointer is what it was where the function was entered: that is the assumption *return-address*.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from wcet_probe.certificate.kernel.records import Edge, Graph
from wcet_probe.certificate.values.numbers import Value
from wcet_probe.certificate.values.state import Place
from wcet_probe.model.image import Image
from wcet_probe.model.instruction import Control, Instruction

_CONDITION = r"(?:eq|ne|[cv][cs]|hs|lo|mi|pl|hi|ls|g[et]|l[et])?(?:\.w)?"
_RETURNS = re.compile(
    rf"bx{_CONDITION} lr|pop{_CONDITION} \{{.*\bpc\}}|ldm(?:ia|fd)?{_CONDITION} sp!, \{{.*\bpc\}}"
    rf"|ldr{_CONDITION} pc, \[sp\], #(?:0x)?[0-9a-f]+|blr"
)


def context_of(node: str) -> str:
    """The calls that lead to a node, as its name tells them."""
    return node[: node.rfind("/") + 1]


def keeps_contexts(
    graph: Graph, code: Mapping[str, Sequence[Instruction]], image: Image, over: Collection[str] = ()
) -> bool:
    """Whether a context is entered to the start of a function, and left by no jump but one to where its caller waits.

    Else code of a function could be called that of its caller, and its return that of the caller. Edges ``over`` a call
    are taken where the callee has returned.
    """
    behind = {f"{one.address:#x}": one.address + one.size_bytes for own in code.values() for one in own}
    return all(
        context_of(edge.source) == context_of(edge.target)
        if over and edge.name in over
        else _keeps_context(edge, graph, code, image, behind)
        for edge in graph.edges
    )


def _keeps_context(
    edge: Edge, graph: Graph, code: Mapping[str, Sequence[Instruction]], image: Image, behind: Mapping[str, int]
) -> bool:
    before, after = context_of(edge.source), context_of(edge.target)
    last = code[edge.source][-1]
    if after == before:
        return last.control is not Control.CALL
    if after == f"{before}{last.address:#x}/":
        symbol = image.function_at(graph.nodes[edge.target][0])
        return symbol is not None and symbol.address == graph.nodes[edge.target][0]
    site = before.removeprefix(after).partition("/")[0]
    is_indirect = last.control is Control.INDIRECT or (
        last.control is Control.CONDITIONAL_BRANCH and last.branch_target is None
    )
    return before.startswith(after) and is_indirect and behind.get(site) == graph.nodes[edge.target][0]


class Returns:
    """Answers about the returns of one graph whose addresses are not followed.

    Args:
        graph: of the certificate.
        code: instructions of each node.
        invariants: what holds where nodes begin.
        image: the binary.
        stack_pointer: the register.
        over: edges over calls that are not expanded.
    """

    def __init__(
        self,
        graph: Graph,
        code: Mapping[str, Sequence[Instruction]],
        invariants: Mapping[str, Mapping[Place, Value]],
        image: Image,
        stack_pointer: str,
        *,
        over: Collection[str] = (),
    ) -> None:
        self._graph, self._code = graph, code
        self._holds, self._first = keeps_contexts(graph, code, image, over), context_of(graph.entry)
        self._instructions = {one.address: one for own in code.values() for one in own}
        starts = {symbol.address for symbol in image.symbols.values() if symbol.is_function}
        self._entered: dict[str, set[Value | None]] = {context_of(graph.entry): set()}
        for node, (address, _) in graph.nodes.items():
            if address in starts:
                self._entered.setdefault(context_of(node), set()).add(invariants[node].get(stack_pointer))

    def go_to_caller(self, node: str, stack_pointers: Iterable[Value]) -> bool:
        """Whether a return at the end of ``node`` goes where the graph says, if functions return to their callers.

        ``stack_pointers`` are what the stack pointer may be then.
        """
        is_return = _RETURNS.fullmatch(self._code[node][-1].text) is not None
        if not (self._holds and is_return):
            return False
        own, own_site = set(stack_pointers), None
        context = context_of(node)
        while own_site is None:
            if not self._is_entered_with(context, own):
                return False
            if context == self._first:
                return node in self._graph.exits
            context, site = _split(context)
            # A function that was jumped to returns to the caller of the one that jumped.
            own_site = site if self._instructions[site].control is Control.CALL else None
        behind = own_site + self._instructions[own_site].size_bytes
        targets = {(context_of(edge.target), self._graph.nodes[edge.target][0]) for edge in self._graph.leading[node]}
        return (context, behind) in targets

    def _is_entered_with(self, context: str, own: Collection[Value]) -> bool:
        """Whether the stack pointer is ``own``, which is known, wherever the function of ``context`` is entered."""
        entered = self._entered.get(context, set())
        one = next(iter(own))
        return len(own) == 1 and entered == own and one.base == "stack" and one.is_constant


def _split(context: str) -> tuple[str, int]:
    """The context of the caller, and the address of the call."""
    parent, _, site = context.removesuffix("/").rpartition("/")
    return f"{parent}/" if parent else "", int(site, 16)
