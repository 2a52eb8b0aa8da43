"""Memory that is known at entry: what the call does not write of it is as constant as read-only memory, for that long.

What it writes is known until then: the function is followed from its entry, on the code alone (`entry_run_bound`), and
where that tells nothing, on its values (`loops.abstract_execution`).

Words: assumption, stack separation (docs/explanation/glossary.md).

*Soundness:* that memory holds this at entry is an assumption. What is taken to be constant is found by assuming it of
everything and taking back what some store of the analysis may hit, until none does. Then it holds by induction over the
steps of a call: as long as nothing of it was written, each step is one of those that the analysis covers, and no store
of these hits it. So stores count from which no call returns as long as memory holds this (`values.dead_ends`): one of
them may be why it returns. Else it is told of all calls that return, whatever memory holds. Callees are expanded, so
that no store is missing. The stack may be an object of the image, as that of a task is: nothing is taken to be known of
the object in which ``--stack-pointer`` is, and that the stack is in nothing else is part of the assumption.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from wcet_probe.analyzer.entry_run_bound import MOST_UNASKED, entry_run_bound
from wcet_probe.analyzer.prepared import Prepared
from wcet_probe.analyzer.request import BoundRequest, InitialData
from wcet_probe.analyzer.values.analysis import TooMuchWorkError
from wcet_probe.analyzer.values.remembered import RememberedValues, remember
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.errors import AnalysisError
from wcet_probe.model.image import Image, Segment
from wcet_probe.model.proof import INITIAL_DATA, Bound, IdleFact

Content = tuple[tuple[int, bytes], ...]
"""Addresses and what is there, in order, without overlaps."""


def image_data(image: Image) -> Content:
    """What the writable segments of the file hold, zeros included that the file leaves out; of code nothing.

    *Soundness:* that is what a start-up code makes of the file.
    """
    return tuple(
        (one.address, one.data.ljust(one.size_bytes, b"\0"))
        for one in sorted(image.segments, key=lambda one: one.address)
        if one.writable and not one.executable and one.size_bytes
    )


_MOST_VISITS = 80_000
"""Blocks that are executed to find what follows from memory at entry: a minute, where all calls are expanded."""
_LONG_VISITS = 40_000
"""The same where the run is known to be too long to be followed, so that less is gained."""
_FEW_VISITS = 2_000
"""The same where a bound is known already, and only more would be said of loops and calls: two seconds or so."""


def within_visits(
    prepare: Callable[[BoundRequest, RememberedValues | None], Prepared], most: int | None = None
) -> Callable[[BoundRequest], Prepared]:
    """``prepare``, of questions with initial data all together for ``most`` blocks; what it is given counts them.

    Where ``most`` is not told, it is as many as the first question's initial data allow.

    The function that is returned raises AnalysisError where that is not enough, besides what ``prepare`` raises.
    """
    left = most

    def within(request: BoundRequest) -> Prepared:
        nonlocal left
        if request.initial is None:
            return prepare(request, None)
        own = remember(request.image, request.target)
        if left is None:
            left = _allowed(request.initial)
        own.left = left
        try:
            return prepare(request, own)
        except TooMuchWorkError as error:
            own.left = 0
            raise AnalysisError("what follows from it takes more than is worth while.") from error
        finally:
            left = own.left

    return within


def _allowed(initial: InitialData) -> int:
    if initial.is_followed:
        return _FEW_VISITS
    return _LONG_VISITS if initial.is_long else _MOST_VISITS


def with_initial_data(
    request: BoundRequest,
    prepare: Callable[[BoundRequest], Prepared],
    is_decided: Callable[[Prepared], bool | None] = lambda _: False,
) -> Prepared:
    """What ``prepare`` makes of ``request``, with as much of its initial data as is not written in the call.

    Nothing is taken to be constant where what memory holds at entry decides every step, as ``is_decided`` tells of what
    is prepared. Where that is not told in time, or is known to take too long, the function is not followed from its
    entry.

    Raises:
        AnalysisError, UsageError: as ``prepare``.

    *Soundness:* as said of the module.
    """
    if request.initial is None:
        return prepare(request)
    told = apart_from_stack(request.image, request.initial, request.stack_pointer)
    unfollowed = replace(request, summaries=False, initial=told)
    plain = replace(unfollowed, initial=replace(told, entry=told.at_entry))
    known, is_least, least = told.content, False, None
    if told.is_long:
        plain = unfollowed
    else:
        with suppress(AnalysisError):
            least = prepare(_knowing(plain, ()))
            decided = is_decided(least)
            if decided:
                return least
            if decided is None:
                plain = unfollowed
    while True:
        try:
            found = prepare(_knowing(plain, known))
            rest = tuple(_unwritten(known, found.values))
            if rest == known and not is_least and found.values.graph.dead_ends:
                # What does not return if nothing of it is written may write it, and return then.
                rest = tuple(_unwritten(known, prepare(replace(_knowing(plain, known), keeps_dead_ends=True)).values))
        except AnalysisError:
            if is_least or not known:
                raise
            # What is assumed too much may leave nothing to analyse: what is written without it is taken back at once.
            values = least.values if least is not None else prepare(_knowing(plain, ())).values
            known, is_least = tuple(_unwritten(known, values)), True
            continue
        if rest == known:
            return found
        known = rest


def apart_from_stack(image: Image, initial: InitialData, stack_pointer: int | None) -> InitialData:
    """``initial`` without the object of ``image`` that the stack is in, or all that is around it where there is none.

    *Soundness:* the stack grows downwards, from the byte below the stack pointer at entry.
    """
    if stack_pointer is None:
        return initial
    below = stack_pointer - 1
    around = [
        (one.address, one.address + one.size_bytes)
        for one in image.symbols.values()
        if not one.is_function and one.address <= below < one.address + one.size_bytes
    ]
    around += [(at, at + len(data)) for at, data in initial.at_entry if at <= below < at + len(data)]
    if not around:
        return initial
    low, high = min(around, key=lambda one: one[1] - one[0])

    def apart(content: Content) -> Content:
        return tuple(_outside(content, ((low, high - 1),)))

    return replace(initial, content=apart(initial.content), entry=apart(initial.at_entry))


def proved_with_initial_data(
    request: BoundRequest, prove: Callable[[BoundRequest], Bound], progress: Callable[[str], None]
) -> Bound:
    """What ``prove`` tells of ``request``; where it is nothing or a bound by type, what it tells without initial data.

    Raises:
        AnalysisError: there is no bound without them either; the message is of that.
        UsageError: as ``prove``.

    *Soundness:* what is proved of any memory holds of this one.
    """
    if request.initial is None:
        return prove(request)
    told = apart_from_stack(request.image, request.initial, request.stack_pointer)
    run, is_long = entry_run_bound(replace(request, initial=told))
    if run is not None and is_long:
        return run  # on its values it is not followed so far
    if run is not None:
        return _beside(run, lambda few: prove(replace(request, initial=few)), request.initial)
    try:
        found = prove(replace(request, initial=replace(request.initial, is_long=is_long)))
    except AnalysisError as error:
        why = f"no bound is found so: {str(error).splitlines()[0]}"
    else:
        if not found.by_type:
            return found
        why = "what is found so is a bound by type"
    progress("once more, whatever memory holds at entry")
    found = prove(replace(request, initial=None))
    return replace(found, idle_facts=(IdleFact(INITIAL_DATA, why), *found.idle_facts))


def bound_of_own_run(request: BoundRequest, found: Bound | None) -> Bound | None:
    """The bound of the run that nothing at entry changes, if there is one that is less than what was ``found``.

    Only where nothing is assumed of memory, and of no run of more than `MOST_UNASKED` instructions.

    *Soundness:* what is followed from an entry where only code and constants are known is what each call executes.
    """
    if request.initial is not None:
        return None
    run = entry_run_bound(replace(request, initial=InitialData((), "")), MOST_UNASKED).bound
    if run is None or found is None or found.by_type:
        return run
    return run if found.instructions > run.instructions or found.cycles > run.cycles else None


def _beside(run: Bound, prove: Callable[[InitialData], Bound], initial: InitialData) -> Bound:
    """What ``prove`` soon tells besides the bound of the ``run`` that is known: of loops and calls by themselves.

    It is that of the run where that is less, or nothing is soon told.

    *Soundness:* both hold.
    """
    try:
        found = prove(replace(initial, is_followed=True))
    except AnalysisError:
        return run
    is_more = found.instructions > run.instructions or found.cycles > run.cycles
    return run if is_more or found.by_type else found


def _knowing(request: BoundRequest, known: Content) -> BoundRequest:
    """The question where ``known`` is read-only memory."""
    told = replace(request.initial, content=known) if request.initial else None
    segments = tuple(part for one in request.image.segments for part in _cut(one, known))
    return replace(request, image=replace(request.image, segments=segments), initial=told)


def _cut(segment: Segment, known: Content) -> Iterator[Segment]:
    """``segment`` in parts, those of ``known`` read-only and with that content."""
    end, at = segment.address + segment.size_bytes, segment.address
    inside = [(start, data) for start, data in known if segment.address <= start < end] if segment.writable else []
    for start, data in (*inside, (end, b"")):
        if at < start:
            rest = segment.data[at - segment.address : start - segment.address]
            yield replace(segment, address=at, data=rest, size_bytes=start - at)
        if data:
            yield replace(segment, address=start, data=data, size_bytes=len(data), writable=False)
        at = start + len(data)
    if not segment.size_bytes:
        yield segment


def _unwritten(known: Content, values: Values) -> Iterator[tuple[int, bytes]]:
    """The parts of ``known`` that no store of ``values`` may hit."""
    return _outside(known, sorted(_written(values)))


def _outside(known: Content, spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, bytes]]:
    """The parts of ``known`` in none of ``spans``, each from a first to a last byte, in order."""
    for start, data in known:
        at, end = start, start + len(data)
        for low, high in spans:
            if low < end and at <= high:
                if at < low:
                    yield at, data[at - start : low - start]
                at = max(at, high + 1)
        if at < end:
            yield at, data[at - start :]


def _written(values: Values) -> Iterable[tuple[int, int]]:
    """First and last byte of all that may be written, but for the stack."""
    for own in values.accesses.values():
        for access in own:
            if access.is_store and access.base is not Base.STACK:
                low, high = access.offset.unsigned_range() if access.base is Base.NUMBER else (0, (1 << 32) - 1)
                yield low, high + access.size_bytes - 1
