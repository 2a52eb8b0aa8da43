"""Why the targets of an indirect branch or call are not known: the table or word that they are read from.

Words: control-flow reconstruction (docs/explanation/glossary.md).

*Soundness:* as said of `check_resolved`; the rest words errors.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence

from wcet_probe.analyzer.graph.supergraph import EXIT, Supergraph, TooManyPointsError, never_returns
from wcet_probe.analyzer.values.execution.accesses import Access
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.memory import MOST_READ
from wcet_probe.errors import AnalysisError
from wcet_probe.model.image import Image

_IF_OVERWRITTEN = (
    ", or, where a store by an index without a bound may go to where the function saved its registers, let bound take "
    "it that none does: --assume saved-registers"
)
_REMEDY = "name them by a flow fact, [[calls]] function = …, offset = …, targets = […]."
_OR_SAVED = f"{_REMEDY[:-1]}{_IF_OVERWRITTEN.replace('the function', 'a function')}."
_CAN_CHANGE = "which is in writable memory; make it const, or assume what it holds at entry (--initial-data, --after)"


def check_resolved(image: Image, graph: Supergraph, values: Values, asserted: Collection[int]) -> None:
    """Raise AnalysisError where control goes to what is not known, or nowhere: ``asserted`` are the branches of facts.

    *Soundness:* without an error, each indirect branch and call that can be reached has all its targets in the graph,
    and no return is known to lead elsewhere than the graph says. Where it is not known where a return leads, it pops
    the frame of its function: who returns from another one's frame by longjmp does not go unnoticed.
    """
    check_targets(image, graph, values, asserted)
    for index, targets in sorted(values.strays.items()):
        place = image.location(graph.points[index].block.last_address)
        elsewhere = " or ".join(map(image.location, targets[:2])) + (" or elsewhere" if len(targets) > 2 else "")
        raise AnalysisError(
            f"the return at {place} goes to {elsewhere}, and not to its caller: code that makes return addresses "
            "of its own is not analysed; call by bl, blx or bctrl, and jump by bx or bctr of another register than lr."
        )
    for index in values.unwinding:
        place = image.location(graph.points[index].block.last_address)
        remedy = "" if values.saving else _IF_OVERWRITTEN
        raise AnalysisError(
            f"the return at {place} is not known to be one of its function: where it goes is not known, and the stack "
            "pointer is not the one that the function was entered with (longjmp, an exception or a switch of "
            "contexts): such code is not analysed; let the function return by its own frame, of a switch of contexts "
            f"link one that just returns in its place, and bound the way up to it as a function of its own{remedy}."
        )
    if not any(edge.target == EXIT for edge in values.edges):
        raise never_returns(graph.entry.name)


def check_targets(image: Image, graph: Supergraph, values: Values, asserted: Collection[int]) -> None:
    """Raise AnalysisError where the targets of an indirect branch or call that can be reached are not known.

    A larger graph, with more code or deeper recursion, brings more values to it, and does not tell them either.
    """
    reachable = {graph.points[index].block.last_address for index in values.states}
    unknown = {site for site, targets in values.indirect.items() if not targets and site not in asserted}
    missing = sorted(unknown.union(graph.unresolved) & reachable)
    if missing:
        raise _unknown_targets(image, values, missing)


def _unknown_targets(image: Image, values: Values, addresses: Sequence[int]) -> AnalysisError:
    """The error that the targets of the branches and calls at ``addresses`` are not known, and what is missing."""
    reasons = [_reason(image, values, address) for address in addresses]
    remedy = _REMEDY if all(reasons) or values.saving or not _may_overwrite(values) else _OR_SAVED
    if len(addresses) == 1:
        head = f"the targets of the indirect branch or call at {image.location(addresses[0])} are not known: "
        return AnalysisError(head + (f"{reasons[0]}, or {remedy}" if reasons[0] else remedy), sites=(addresses[0],))
    each = [
        f"of the one at {image.location(address)}{f' {reason}' if reason else ''}"
        for address, reason in zip(addresses, reasons, strict=True)
    ]
    head = f"the targets of {len(addresses)} indirect branches or calls are not known: "
    return AnalysisError(f"{head}{'; '.join(each)}; {remedy}", sites=tuple(addresses))


def _may_overwrite(values: Values) -> bool:
    """Whether a store to the stack, by an index without a bound, may change a register that a callee has saved."""
    accesses = (access for index in values.states for access in values.accesses[index])
    return any(one.is_store and one.base is Base.STACK and one.offset.size > MOST_READ for one in accesses)


def too_large_for_targets(image: Image, error: TooManyPointsError, addresses: Sequence[int]) -> TooManyPointsError:
    """``error``, that a graph is too large, for which the unknown targets of what is at ``addresses`` are a reason."""
    head, places = str(error).partition(":")[0], ", ".join(map(image.location, addresses))
    return TooManyPointsError(
        f"{head}: functions cannot be analysed once for all of their calls where it is not known where they go, "
        f"as at {places}; {_REMEDY}",
        sites=tuple(addresses),
    )


def _reason(image: Image, values: Values, address: int) -> str:
    """What is missing where the indirect branch or call at ``address`` reads its target from a table or a word."""
    points = values.graph.points
    loads = [
        access
        for index in sorted(values.states)
        if points[index].block.last_address == address
        for access in values.accesses[index]
        if not access.is_store and access.base is Base.NUMBER
    ]
    found = [text for access in reversed(loads) if (text := _table(image, access) or _word(image, access))]
    return found[0] if found else ""


def _table(image: Image, access: Access) -> str:
    """What is missing where an access reads a table."""
    indices = [(factor, value) for factor, _, value in access.parts if not value.is_constant]
    fixed = access.constant + sum(factor * value.value for factor, _, value in access.parts if value.is_constant)
    base = fixed & 0xFFFF_FFFF
    if len(indices) != 1 or access.offset.is_constant:
        return ""
    if _holds(image, base, writable=True):
        return f"they are read from the table {_named(image, base)}, {_CAN_CHANGE}"
    if not _holds(image, base, writable=False):
        return ""
    ((factor, index),) = indices
    low, high = index.unsigned_range()
    entries = "entries" if factor == 1 else f"steps of {factor} bytes"
    why = f"more than the {MOST_READ:,} that are followed" if index.size > MOST_READ else "not all of it is constant"
    return (
        f"they are read from the table {_named(image, base)} with an index from {low:,} to {high:,} ({entries}), "
        f"{why}; "
        "let the code check the range of the index, tell it by a flow fact ([[argument]] with min and max)"
    )


def _word(image: Image, access: Access) -> str:
    """What is missing where an access reads a word that can change."""
    if not access.offset.is_constant or not _holds(image, access.offset.value, writable=True):
        return ""
    named = _named(image, access.offset.value)
    word = f"the word {named}" if named.startswith("at ") else named
    return f"they are read from {word}, {_CAN_CHANGE}"


def _named(image: Image, place: int) -> str:
    """``symbol at 0x20000010``, or the address where no object is known there."""
    names = [
        symbol.name
        for symbol in image.symbols.values()
        if symbol.address <= place < symbol.address + symbol.size_bytes and not symbol.is_function
    ]
    return f"{min(names)} at {place:#010x}" if names else f"at {place:#010x}"


def _holds(image: Image, address: int, *, writable: bool) -> bool:
    return any(
        segment.address <= address < segment.address + segment.size_bytes and segment.writable is writable
        for segment in image.segments
    )


def grown_targets(
    values: Values, indirect: Mapping[int, Sequence[int]], asserted: Container[int]
) -> Mapping[int, Collection[int]]:
    """The targets of indirect branches and calls of which some were not known before."""
    found = {site: {*targets, *indirect.get(site, ())} for site, targets in values.indirect.items()}
    return {
        site: targets
        for site, targets in found.items()
        if site not in asserted and len(targets) > len(indirect.get(site, ()))
    }


def have_one_each(found: Mapping[int, Collection[int]]) -> bool:
    """Whether the graph is to be made anew, and sharper values would tell no other targets."""
    return bool(found) and all(len(targets) == 1 for targets in found.values())
