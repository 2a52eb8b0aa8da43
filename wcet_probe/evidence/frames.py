"""Functions and returns of a certificate's graph, by its contexts: what documents say of them is held against these.

The name of a node begins with the calls that lead to it, each with the address of its instruction; a jump that enters
another function in the caller's stead is one of them. So the frames that wait can be told from the edges alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from wcet_probe.certificate.kernel.loops import demand
from wcet_probe.certificate.kernel.records import Edge, Graph
from wcet_probe.model.image import Image
from wcet_probe.model.instruction import Instruction

Context = tuple[str, ...]
_OFFSET = re.compile(r"\+-?0x[0-9a-f]+'*$")


def way_of(edge: Edge) -> str:
    """``fall``, ``jump``, ``call`` or ``return``, as the name of the edge has it."""
    found = re.search(r":(fall|jump|call|return)(?:[:#]|$)", edge.name)
    return found[1] if found else ""


class Frames:
    """The frames of a graph.

    Attributes:
        functions: by node, the name of the function that its code is executed for.
    """

    def __init__(self, graph: Graph, image: Image, code: Mapping[str, Sequence[Instruction]]) -> None:
        """Find them; ``code`` are the instructions of each node.

        Raises:
            VerificationError: a node is named after a function that was not entered in its context.
        """
        self._entered: dict[Context, dict[int, bool]] = {_context(graph.entry): {graph.nodes[graph.entry][0]: True}}
        self._nodes, self._behind = graph.nodes, dict[Context, set[int]]()
        self._enter_next(graph.entry, image, code)
        for edge in graph.edges:
            own, into = _context(edge.source), _context(edge.target)
            if into[:-1] == own and len(into) > len(own):
                is_call = way_of(edge) == "call"
                self._entered.setdefault(into, {})[graph.nodes[edge.target][0]] = is_call
                last = code[edge.source][-1]
                self._behind.setdefault(into, set()).add(last.address + last.size_bytes)
            elif own == into == ():
                # A run that is followed has no contexts: its nodes are code, for whichever caller it is executed.
                self._enter_next(edge.target, image, code)
                if edge.target.endswith("+0x0"):
                    self._entered[()][graph.nodes[edge.target][0]] = True
        names = {address: _names(image, address) for entered in self._entered.values() for address in entered}
        self.functions: Mapping[str, str] = {node: _OFFSET.sub("", node[node.rfind("/") + 1 :]) for node in graph.nodes}
        for node, name in self.functions.items():
            known = {each for address in self._entered.get(_context(node), ()) for each in names[address]}
            demand(name in known, f"the code of {node} is not executed for {name}")

    def _enter_next(self, node: str, image: Image, code: Mapping[str, Sequence[Instruction]]) -> None:
        """Functions that a node's code goes on into, as behind a tail call of the one that is laid out next."""
        for one in code[node][1:]:
            function = image.function_at(one.address)
            if function is not None and function.address == one.address:
                self._entered[_context(node)][one.address] = True

    def kind(self, edge: Edge) -> str:
        """The way of ``edge``; ``unwind`` is that of a return that pops the frame of a caller as well.

        ``resume`` is that of one that goes elsewhere in the caller than behind the call.
        """
        way, context = way_of(edge), _context(edge.source)
        while way == "return" and context and not all(self._entered.get(context, {0: True}).values()):
            context = context[:-1]
        if way != "return":
            return way
        behind = self._behind.get(context)
        is_resumed = behind is not None and self._nodes[edge.target][0] not in behind
        return "unwind" if _context(edge.target) != context[:-1] else "resume" if is_resumed else "return"


def _context(node: str) -> Context:
    return tuple(node.split("/")[:-1])


def _names(image: Image, address: int) -> set[str]:
    """What the function that is entered at ``address`` may be called: a label there, or where it lies."""
    labels = {name for name, symbol in image.symbols.items() if symbol.address == address}
    return labels or {image.place(address) if image.function_at(address) else f"function_at_{address:#x}"}
