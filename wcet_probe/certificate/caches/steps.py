# SPDX-License-Identifier: 0BSD
"""The accesses of a node to a cache, in order, and what is known of their lines.

An access whose bytes may lie in two lines is two steps, of its first and its last byte. What is known of a line is its
*spot*: a base, and the offset of a granule. The base is ``number`` (0), ``stack`` or a name (`symbols`); a granule has
as many bytes as the base is known modulo, up to those of a line, and lies in one line. Spots of one base are so near
each other that no two lines of it are in one set.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from wcet_probe.certificate.machines.machine import CONDITIONAL_STORES
from wcet_probe.certificate.machines.operands import may_be_skipped
from wcet_probe.certificate.names.names import Address, Objects, Pointers, Traced
from wcet_probe.certificate.values.congruences import Congruence
from wcet_probe.model.instruction import Access, AccessKind, Control, Instruction
from wcet_probe.model.target import CacheConfig, Target

NUMBER = "number"
MOST_CANDIDATES = 64
_STACK_ALIGNMENT_BYTES = 8


class Spot(NamedTuple):
    """A granule: the line that it is in, as far as it is known. ``offset`` is where it begins, from the base."""

    base: str
    offset: int
    granule_bytes: int


@dataclass(frozen=True, slots=True)
class Step:
    """One access to one line.

    Attributes:
        instruction_address: of the access.
        number: of the step among those of the instruction.
        spot: of its line; None where nothing is known of it.
        lines: numbers of the lines that it may be to, no two of one set; None for any.
        sets: the sets that these may be in; None for any.
        is_fetch, is_store: what it is.
        fills: whether a miss fills the line.
        is_certain: False where the instruction may be skipped, or may store nothing.
        is_leaving: whether it takes place only where the node is left for another than the next instruction.
        objects: what a fact counts its line among.
        apart: other granules of the node that surely are not in another line of its set: they are in its line, or in
            another set, whichever of their lines they are in.
    """

    instruction_address: int
    number: int
    spot: Spot | None
    lines: frozenset[int] | None
    is_fetch: bool
    is_store: bool
    fills: bool
    is_certain: bool
    is_leaving: bool
    objects: Objects | None = None
    apart: frozenset[Spot] = frozenset()
    sets: frozenset[int] | None = None

    @property
    def key(self) -> tuple[int, int]:
        """What records call it by."""
        return self.instruction_address, self.number

    @property
    def few_lines(self) -> frozenset[int]:
        """``lines``, if they are few enough to speak of each; else none."""
        return self.lines if self.lines is not None and len(self.lines) <= MOST_CANDIDATES else frozenset()


def fetch_lines(instructions: Sequence[Instruction], line_bytes: int) -> Iterator[tuple[Instruction, int, int]]:
    """Instructions with the numbers of the lines that they begin to be fetched from, and which of them it is."""
    last = None
    for instruction in instructions:
        first, end = instruction.address // line_bytes, instruction.address + instruction.size_bytes - 1
        for number, line in enumerate(range(first, end // line_bytes + 1)):
            if line != last:
                yield instruction, number, line
            last = line


def fetch_steps(instructions: Sequence[Instruction], config: CacheConfig) -> tuple[Step, ...]:
    """The fetches of a node: a line once for as long as nothing else is fetched."""
    return tuple(
        _fetch(instruction, number, line, config)
        for instruction, number, line in fetch_lines(instructions, config.line_bytes)
    )


def _fetch(instruction: Instruction, number: int, line: int, config: CacheConfig) -> Step:
    return Step(
        instruction.address,
        number,
        Spot(NUMBER, line * config.line_bytes, config.line_bytes),
        frozenset({line}),
        is_fetch=True,
        is_store=False,
        fills=True,
        is_certain=True,
        is_leaving=False,
        sets=frozenset({line % config.sets}),
    )


def data_steps(
    traced: Traced,
    target: Target,
    crosses_no_line: Callable[[int], bool],
    asserted: Pointers,
    placed: Sequence[Address] = (),
    *,
    node: str = "",
) -> tuple[Step, ...]:
    """The accesses of a node to the data cache; with a unified cache fetches are among them.

    Args:
        traced: an execution of the node.
        target: the core; it has a data cache.
        crosses_no_line: whether an assumption says so of the instruction at an address.
        asserted: where facts say that accesses go, if nothing else is known.
        placed: addresses that have names where the node begins, and are known to be in a range.
        node: its name.
    """
    config = target.dcache
    assert config is not None  # noqa: S101  (the caller's)
    found: list[Step] = []
    for instruction, accesses in traced.executed:
        if target.unified_cache:
            found += (_fetch(i, n, line, config) for i, n, line in fetch_lines((instruction,), config.line_bytes))
        number = 100
        for access, addresses in zip(instruction.accesses, accesses, strict=True):
            is_both = access.kind is AccessKind.LOAD_STORE
            told = _told(asserted, node, instruction.address, access, config.sets * config.line_bytes)
            for address in addresses:
                for is_store in (False, True) if is_both else (access.kind is AccessKind.STORE,):
                    for skipped in _pieces(address, access.bytes_each, config, instruction, crosses_no_line):
                        one = _data(
                            instruction, number, address, skipped, config,
                            is_store=is_store, told=told,
                        )  # fmt: skip
                        found.append(one)
                        number += 1
    return tuple(told_apart(found, config, [_granule(address, config) for address in placed]))


def told_apart(
    steps: Sequence[Step], config: CacheConfig, placed: Sequence[tuple[Spot | None, frozenset[int]]] = ()
) -> Iterator[Step]:
    """``steps`` of one node, with the granules that each does not age, by the lines that they and it may be.

    In one execution of a node a name means one address: what is known of a granule's line at one access, or where the
    node begins (``placed``), holds at all. But not what is known of an access that may be skipped: a fact about it says
    nothing then.
    """
    lines: dict[Spot, frozenset[int]] = {}
    certain = ((step.spot, step.few_lines) for step in steps if step.is_certain)
    for spot, few in (*placed, *certain):
        if spot is not None and few and spot.base != NUMBER:
            lines[spot] = lines.get(spot, few) & few
    for step in steps:
        own = step.few_lines
        apart = {
            spot
            for spot, others in (lines.items() if own else ())
            if spot != step.spot
            and not any(one != other and (one - other) % config.sets == 0 for one in own for other in others)
        }
        yield replace(step, apart=frozenset(apart)) if apart else step


def _pieces(
    address: Address, size: int, config: CacheConfig, instruction: Instruction, crosses_no_line: Callable[[int], bool]
) -> tuple[int, ...]:
    """Distances from the address of bytes that lie in all the lines of an access."""
    line_bytes = config.line_bytes
    if size > line_bytes:
        return (*range(0, size, line_bytes), size - 1)
    if is_in_one_line(address, size, line_bytes) or crosses_no_line(instruction.address):
        return (0,)
    return (0, size - 1)


def is_in_one_line(address: Address, size: int, line_bytes: int) -> bool:
    """Whether all bytes of an access surely lie in one line."""
    modulus, residue = address.alignment.coarser(line_bytes)
    if residue % modulus + size <= modulus:
        return True
    number = address.number
    if not number.is_number or number.size > 4 * MOST_CANDIDATES * line_bytes:
        return False
    return all(word % line_bytes + size <= line_bytes for word in number.words())


class _Told(NamedTuple):
    """What a fact says of an access: what its line is counted among, the object that it is in, its sets."""

    objects: Objects | None = None
    within: tuple[int, int] | None = None
    sets: Collection[int] | None = None


def _told(asserted: Pointers, node: str, instruction_address: int, access: Access, way_bytes: int) -> _Told:
    """What is ``asserted`` of an access, if its address is made of what nobody knows; sets, if so on each way.

    Of what is only known to be within as many bytes as a way has or more facts tell the place as well.
    """
    known, registers = asserted.known, (access.base, access.index)
    if known is None or not known.is_unknown(node, instruction_address, registers, way_bytes, on_each_way=False):
        return _Told()
    is_unknown = known.is_unknown(node, instruction_address, registers, way_bytes, on_each_way=True)
    return _Told(
        asserted.objects(instruction_address),
        asserted.within(instruction_address),
        asserted.sets(instruction_address) if is_unknown else None,
    )


def _data(
    instruction: Instruction, number: int, address: Address, skipped: int, config: CacheConfig, *,
    is_store: bool, told: _Told,
) -> Step:  # fmt: skip
    """The step of an access to the line of its byte ``skipped``.

    Where it goes is ``told`` only if neither lines nor sets are known.
    """
    lines = _lines(address, skipped, config)
    sets, objects = _sets(address, skipped, lines, config), None
    if sets is None and address.number.is_number:
        objects, lines = told.objects, _lines_within(address, told.within, config)
        sets = frozenset(line % config.sets for line in lines) if lines else None
        sets = sets if lines or not told.sets or skipped else frozenset(one % config.sets for one in told.sets)
    is_predicated = may_be_skipped(instruction)
    is_conditional = is_predicated or instruction.timing_class in CONDITIONAL_STORES
    return Step(
        instruction.address,
        number,
        _spot(address, skipped, lines, config),
        lines,
        is_fetch=False,
        is_store=is_store,
        fills=config.write_allocate or not is_store,
        is_certain=not is_conditional,
        is_leaving=is_predicated and instruction.control is Control.INDIRECT,
        objects=objects,
        sets=sets,
    )


def _sets(address: Address, skipped: int, lines: frozenset[int] | None, config: CacheConfig) -> frozenset[int] | None:
    """The sets of an access, by the numbers that its address is the sum of.

    *Soundness:* a number that moves in steps of as many bytes as a way has does not change the set.
    """
    line_bytes, way_bytes = config.line_bytes, config.sets * config.line_bytes
    if lines is None and address.number.is_number:
        is_sum = bool(address.parts)
        low, more = skipped + (address.name.low if is_sum else 0), 0
        for times, part in address.parts if is_sum else ((1, address.number),):
            low += times * part.low
            if times * part.stride % way_bytes:
                low += min(0, times * (part.high - part.low))
                more += abs(times) * (part.high - part.low)
        if more < way_bytes:
            lines = frozenset(range(low // line_bytes, (low + more) // line_bytes + 1))
    return None if lines is None else frozenset(line % config.sets for line in lines)


def _granule(address: Address, config: CacheConfig) -> tuple[Spot | None, frozenset[int]]:
    """The granule of an address, and the lines that it may be in if they are few; else none."""
    lines = _lines(address, 0, config)
    is_few = lines is not None and len(lines) <= MOST_CANDIDATES
    return _spot(address, 0, lines, config), lines if is_few and lines is not None else frozenset()


def _lines(address: Address, skipped: int, config: CacheConfig) -> frozenset[int] | None:
    value = address.number
    if not value.is_number:
        return None
    return _lines_of(value.low + skipped, value.high + skipped, config)


def _lines_within(address: Address, within: tuple[int, int] | None, config: CacheConfig) -> frozenset[int] | None:
    """The lines of an object that a fact says an access is in, if these are not too many.

    None, too, where no address of it is known to be possible: the fact then says nothing of the access.
    """
    first, last = (max(within[0], address.number.low), min(within[1] - 1, address.number.high)) if within else (0, -1)
    modulus, residue = address.alignment
    if within is None or first + (residue - first) % modulus > last:
        return None
    return _lines_of(within[0], within[1] - 1, config)


def _lines_of(first: int, last: int, config: CacheConfig) -> frozenset[int] | None:
    """The lines from one byte to another; None where there are more than sets."""
    low, high = first // config.line_bytes, last // config.line_bytes
    return frozenset(range(low, high + 1)) if high - low < config.sets else None


def _spot(address: Address, skipped: int, lines: frozenset[int] | None, config: CacheConfig) -> Spot | None:
    if lines is not None and len(lines) == 1:
        return Spot(NUMBER, next(iter(lines)) * config.line_bytes, config.line_bytes)
    value = address.number
    if value.base == "stack" and value.is_constant:
        return spot_of("stack", value.low + skipped, Congruence(_STACK_ALIGNMENT_BYTES, 0), config)
    near = address.near
    if near is not None:
        ends = {spot_of(near.base, end + skipped, near.of_base, config) for end in (near.low, near.high)}
        if len(ends) == 1:
            return ends.pop()
    name = address.name
    if name.base.startswith("@") and name.is_constant:
        return spot_of(name.base[1:], name.low + skipped, address.of_base, config)
    return None


def spot_of(base: str, offset: int, residue: Congruence, config: CacheConfig) -> Spot | None:
    """The granule of a byte.

    No two lines of what is called by one name are in one set: what is further from a base is ``BASE^NUMBER``.

    Args:
        base: a name.
        offset: from the base, in bytes.
        residue: the class of the base.
        config: the cache; of fewer than four sets nothing is known.
    """
    window_bytes = (config.sets - 2) * config.line_bytes
    if config.sets < 4:
        return None
    modulus, own = residue.coarser(config.line_bytes)
    start = (offset + own) // modulus * modulus - own
    window = (start + window_bytes // 2) // window_bytes
    return Spot(f"{base}^{window}" if window else base, start, modulus)


def most_lines(offsets: Collection[int], granule_bytes: int, line_bytes: int) -> int:
    """Most lines that granules at ``offsets`` from a base lie in, whatever the base is."""
    first = min(offsets)
    shifts = range(0, line_bytes, granule_bytes)
    return max(len({(offset - first + shift) // line_bytes for offset in offsets}) for shift in shifts)
