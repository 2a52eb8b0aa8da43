"""What a proof says held against what a run did: one violation is a contradiction, and is named.

The bound itself, the iterations of each loop, the sums that flow facts speak of, and the address of each data access.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import pairwise

from wcet_probe.analyzer.pcode.interpreter import DataAccess
from wcet_probe.errors import ContradictionError
from wcet_probe.model.access_claims import AccessClaim, AddressRange, access_claims
from wcet_probe.model.held_calls import BrokenClaim, ClaimKind
from wcet_probe.model.image import Image
from wcet_probe.model.measurement import CallCost, Measurement
from wcet_probe.model.proof import Bound, LoopClaim, RegisterRange
from wcet_probe.model.target import CacheConfig, MemoryRange, Target
from wcet_probe.model.watched_loop import LoopCount

Executions = Callable[[Sequence[int]], Sequence[int]]
"""Executions of the instructions at some addresses, in the run that is held against the proof."""


def check_counts(bound: Bound, measurement: CallCost | Measurement, subject: str) -> None:
    """``measurement`` must not exceed ``bound``; ``subject`` says in words what was run.

    Raises:
        ContradictionError: it does.
    """
    for unit in ("instructions", "cycles"):
        check_most(bound, unit, getattr(measurement, unit), subject)


def check_most(bound: Bound, unit: str, observed: int, subject: str) -> None:
    """``observed``, in ``unit`` (``instructions`` or ``cycles``), must not exceed ``bound``.

    Raises:
        ContradictionError: it does.
    """
    proved = getattr(bound, unit)
    if observed > proved:
        raise _contradiction(f"{bound.entry} took {observed:,} {unit} in {subject}, and at most {proved:,} were proved")


def check_loops(claims: Iterable[LoopClaim], counts: Iterable[LoopCount], image: Image, subject: str) -> None:
    """No loop may have repeated more often for one entry than is claimed.

    Raises:
        ContradictionError: one has.
    """
    observed = {count.name: count.max_header_executions for count in counts}
    for claim in claims:
        if observed[claim.loop.name] > claim.max_header:
            source = f" ({claim.origin} {claim.where})" if claim.where else f" ({claim.origin})"
            raise _contradiction(
                f"the loop at {image.location(claim.loop.header_address)} ran its header {observed[claim.loop.name]:,} "
                f"times for one entry in {subject}, and at most {claim.max_header:,} are claimed{source}"
            )


def check_flows(bound: Bound, counts: Iterable[LoopCount], executions: Executions, subject: str) -> tuple[int, ...]:
    """What flow facts say of one call of the entry must hold for the one that was run.

    Returns:
        the sum that each claim of ``bound`` is about.

    Raises:
        ContradictionError: it does not.
    """
    entries = {count.name: count.entries for count in counts}
    sums: list[int] = []
    addresses = list(dict.fromkeys(address for claim in bound.flow_claims for address, _ in claim.blocks))
    executed = dict(zip(addresses, executions(addresses), strict=True)) if addresses else {}
    for claim in bound.flow_claims:
        total = sum(weight * executed[address] for address, weight in claim.blocks)
        total += sum(weight * entries.get(name, 0) for name, weight in claim.entries)
        if total > claim.constant:
            raise _contradiction(
                f"the flow fact {claim.where} is false in {subject}: {claim.statement}; the sum was {total:,}, "
                f"and at most {claim.constant:,} is claimed"
            )
        sums.append(total)
    return tuple(sums)


def check_accesses(
    bound: Bound,
    accesses: Iterable[DataAccess],
    image: Image,
    target: Target,
    *,
    frames: MemoryRange,
    subject: str,
) -> None:
    """Every data access of a call must be where the value analysis says, and meet the assumptions on accesses.

    Parameters:
        bound: what was proved.
        accesses: of the call, in order.
        image, target: what was run.
        frames: the stack that the call used; it ends at the stack pointer at entry.
        subject: what was run, in words.

    Raises:
        ContradictionError: an access is elsewhere.
    """
    state = _Lines(target.dcache)
    claims = access_claims(bound.accesses)
    for one in accesses:
        claim = claims.get((one.instruction_address, one.is_store))
        found = _violated(bound, claim, one, state, frames)
        if found is not None:
            kind, fact, limit, value = found
            broken = BrokenClaim(
                kind, bound.entry, fact, "", limit, value, one.instruction_address, one.address, one.is_store
            )
            raise refusal(broken, image, subject)


class _Lines:
    """What a call did to lines of the data cache so far, as far as facts speak of it."""

    def __init__(self, cache: CacheConfig | None) -> None:
        self.cache = cache
        self.visited: set[int] = set()
        self.changes: Counter[str] = Counter()
        self.counted: dict[str, tuple[set[int], Counter[int]]] = {}
        self.before: int | None = None


_Violated = tuple[ClaimKind, str, int, int]
"""What was claimed, by which fact, and of a number what was claimed and what was found."""


def _violated(
    bound: Bound, claim: AccessClaim | None, one: DataAccess, state: _Lines, frames: MemoryRange
) -> _Violated | None:
    """What of the claims on an access does not hold, if anything; ``state`` is brought behind the access."""
    if claim is None or not any(each.contains(one.address, frames.end_address) for each in claim.ranges):
        return ClaimKind.ADDRESS, ", ".join(sorted(claim.facts if claim else ())), 0, one.address
    if one.is_store and not claim.may_be_frame and one.address in frames:
        return ClaimKind.FRAME, "", 0, one.address
    word = next((word for word in bound.words if word.address == one.address and not one.is_store), None)
    if word is not None and one.value is not None and not word.low <= one.value <= word.high:
        return ClaimKind.WORD, word.where, word.high, one.value
    return _violated_line(claim, one, state, state.cache) if state.cache else None


def _violated_line(claim: AccessClaim, one: DataAccess, state: _Lines, cache: CacheConfig) -> _Violated | None:
    facts = ", ".join(sorted(claim.facts))
    line, last = one.address // cache.line_bytes, (one.address + one.size_bytes - 1) // cache.line_bytes
    allowed = range(cache.sets) if claim.sets is None else claim.sets
    strayed = [each % cache.sets for each in range(line, last + 1) if each % cache.sets not in allowed]
    if strayed:
        return ClaimKind.SET, facts, 0, strayed[0]
    if line != last and one.size_bytes <= cache.line_bytes and not claim.may_cross:
        return ClaimKind.CROSSES, "", 0, one.size_bytes
    if claim.is_only_again and line not in state.visited:
        return ClaimKind.VISIT, facts, 0, line
    exceeded = _exceeded(claim, line, last, state, cache)
    state.before = last
    if one.is_store:
        state.visited -= {line, last}
    if claim.is_first_visit:
        state.visited.add(line)
    return exceeded


def _exceeded(claim: AccessClaim, line: int, last: int, state: _Lines, cache: CacheConfig) -> _Violated | None:
    """What is counted, after an access to the lines from ``line`` to ``last``, and more than a fact says."""
    if claim.line_changes and line != state.before:
        fact, most = claim.line_changes
        state.changes[fact] += 1
        if state.changes[fact] > most:
            return ClaimKind.CHANGES, fact, most, state.changes[fact]
    if claim.lines:
        fact, most, most_of_set = claim.lines
        counted, of_set = state.counted.setdefault(fact, (set(), Counter()))
        added = set(range(line, last + 1)) - counted
        counted |= added
        if len(counted) > most:
            return ClaimKind.LINES, fact, most, len(counted)
        of_set.update(each % cache.sets for each in added)
        fullest = max(of_set.values())
        if fullest > most_of_set:
            return ClaimKind.LINES_OF_SET, fact, most_of_set, fullest
    return None


_ACCESSED: Mapping[ClaimKind, str] = {
    ClaimKind.ADDRESS: "outside of what the value analysis allows there",
    ClaimKind.SET: "in a set of the cache that is excluded there",
    ClaimKind.FRAME: "in the call's own stack, against the assumption stack-separation",
    ClaimKind.SAVED: "where a function had saved a register, against the assumption saved-registers",
    ClaimKind.CROSSES: (
        "across a cache line, against the proof or its assumption alignment (code with such accesses has no bound on a "
        "core with a data cache)"
    ),
    ClaimKind.POINT: "against what the proof says of it on this call path",
    ClaimKind.WAY: "to where the value analysis excludes it on this call path",
    ClaimKind.VISIT: (
        "in a line that was not loaded from on a first visit, or was stored to since, against a fact about visits"
    ),
}


def refusal(broken: BrokenClaim, image: Image, subject: str, control: Sequence[str] = ()) -> ContradictionError:
    """The sentence for a claim that a call violated in what ``subject`` says was run.

    ``control`` are the facts that say where control goes: recursions and calls through pointers. Where one of them is
    false, code is executed that was not analysed there, and what it does is outside of all that is claimed.
    """
    where = image.location(broken.instruction_address) if broken.instruction_address else ""
    leads = f"; where control goes rests on the fact {' and the fact '.join(control)}" if control else ""
    match broken.kind:
        case ClaimKind.INSTRUCTIONS | ClaimKind.CYCLES:
            return _contradiction(
                f"{broken.entry} took {broken.value:,} {broken.kind} in {subject}, and at most {broken.limit:,} were "
                f"proved{leads}"
            )
        case ClaimKind.FLOW:
            return _contradiction(
                f"the flow fact {broken.fact} is false in {subject}: {broken.statement}; the sum was "
                f"{broken.value:,}, and at most {broken.limit:,} is claimed"
            )
        case ClaimKind.CHANGES:
            return _contradiction(
                f"more than {broken.limit} accesses went to another line than the access before in {subject}, the last "
                f"one at {where}, against the fact {broken.fact}"
            )
        case ClaimKind.LINES | ClaimKind.LINES_OF_SET:
            place = " in one cache set" if broken.kind is ClaimKind.LINES_OF_SET else ""
            return _contradiction(
                f"more than {broken.limit} lines{place} were accessed in one call of {broken.entry} in {subject}, the "
                f"last one at {where}, against the fact {broken.fact}"
            )
        case ClaimKind.WORD:
            return _contradiction(
                f"the word at {broken.address:#010x} was {broken.value} where it was loaded at {where} in {subject}, "
                f"against the fact {broken.fact}"
            )
        case kind:
            what, rests = "store" if broken.is_store else "load", f"; the fact {broken.fact} speaks of it"
            accessed = f"the {what} at {where} accessed {broken.address:#010x}"
            done = f"control went on from {where}" if kind is ClaimKind.WAY else accessed
            places = broken.statement.rpartition(" at ")[2]
            ends = f", or, against the assumption call-returns, to what never does, at {places}" if places else ""
            return _contradiction(f"{done} in {subject}, {_ACCESSED[kind]}{ends}{rests if broken.fact else leads}")


_INSTRUCTION_BYTES = (2, 4)


def check_path(bound: Bound, path: Sequence[int], image: Image, subject: str) -> int:
    """Control must have gone along the edges of the graph that was analysed, and each function back to its caller.

    Parameters:
        bound: what was proved.
        path: addresses of the executed instructions, in order.
        image: what was run.
        subject: what was run, in words.

    Returns:
        how many returns to a caller there were, that of the entry not counted.

    Raises:
        ContradictionError: it has not.
    """
    ends: dict[int, set[int]] = {}
    for one in bound.graph.blocks:  # code of two functions may be a block of each that ends elsewhere
        ends.setdefault(one.address, set()).add(one.end_address)
    kinds: dict[tuple[int, int], set[str]] = {}
    for edge in bound.graph.edges:
        kinds.setdefault((edge.source, edge.target), set()).add(edge.kind)
    last = {block: max(own) for block, own in ends.items()}
    blocks, callers, returns = {path[0]}, list[set[int]](), 0
    for before, address in pairwise(path):
        goes_on = before < address or address not in ends
        staying = {block for block in blocks if goes_on and block <= address < last[block]}
        if staying and address not in ends:
            blocks = staying
            continue
        ending = {block for block in blocks if any(end - before in _INSTRUCTION_BYTES for end in ends[block])}
        leaving = {block for block in ending if (block, address) in kinds}
        kind = {way for block in leaving for way in kinds[block, address]}
        if staying:
            blocks = staying | ({address} if kind and kind <= {"fall", "jump"} else set())
            continue
        if not kind:
            raise _astray(image, before, address, subject)
        if "call" in kind:
            callers.append({end for block in leaving for end in ends[block]})
        elif kind & {"return", "unwind", "resume"}:
            if not _returns(callers, address, kind):
                raise _contradiction(
                    f"a function did not return to its caller but to {image.location(address)} in {subject}, against "
                    "the assumption return-address"
                )
            returns += "resume" not in kind
        blocks = {address}
    return returns


def _returns(callers: list[set[int]], address: int, kind: Collection[str]) -> bool:
    """Whether a return to ``address`` goes behind the call of one of ``callers``, which are popped, or is resumed."""
    behind = callers.pop() if callers else set()
    while "unwind" in kind and callers and address not in behind:
        behind = callers.pop()
    return address in behind or "resume" in kind  # to one of the places that are proved


def _astray(image: Image, before: int, address: int, subject: str) -> ContradictionError:
    return _contradiction(
        f"control went from {image.location(before)} to {image.location(address)} in {subject}, where the analysed "
        "graph has no edge"
    )


def register_check(
    bound: Bound, image: Image, stack_pointer: int, subject: str
) -> Callable[[int, Callable[[str], int]], None]:
    """A visitor of a call's instructions that holds the registers at each block's entry against what is proved.

    It raises ContradictionError where a register is outside of the ranges of all points of the block, which has one for
    each context, or several copies of it.
    """
    grouped: dict[int, dict[str, list[RegisterRange]]] = {}
    points = Counter(address for address, _ in bound.points)
    for one in bound.registers:
        grouped.setdefault(one.address, {}).setdefault(one.register, []).append(one)

    def visit(address: int, read: Callable[[str], int]) -> None:
        for register, ranges in grouped.get(address, {}).items():
            if len(ranges) < points[address]:
                continue  # at some point it may be anything
            value = read(register)
            if not any(_range(each).contains(value, stack_pointer) for each in ranges):
                raise _contradiction(
                    f"{register} was {value:#x} at {image.location(address)} in {subject}, outside of what the value "
                    "analysis allows there"
                )

    return visit


def _range(told: RegisterRange) -> AddressRange:
    return AddressRange(told.low, told.stride, told.steps, told.base == "stack")


def _contradiction(what: str) -> ContradictionError:
    return ContradictionError(f"CONTRADICTED: {what}; correct the fact, or report this with the command line.")
