# SPDX-License-Identifier: 0BSD
"""What a word is made of: null, numbers, an address of the arena or of static data, each with residues modulo 64.

A word is any of its *parts*. What a part is made of is asked of how it was computed, not of its value: `ARENA` is the
arena's start plus numbers, `STATIC` an address of static data plus numbers, or a number that looks like one, unless it
was loaded; `NEAR` is null plus a number, `MIXED` a sum of addresses that is none, and of `UNKNOWN` nothing is known.
`TABLE` is `STATIC` with the content of a register added that the same block does not make a constant, `CONSTANT` an
address of data that is not written plus numbers, or a number that looks like one. What is computed
from an address by anything but sums and masks is a number. ``given+8`` is an address of the arena that
is so far behind the start of the block that the operation is given, and `PAYLOAD` one that is a constant, but not told,
distance behind it. A part is *loaded* if a word is in it that was loaded from the arena, or from a place of static data
that is computed: of these the lemmas speak. Of an address of static data that was not loaded it may be told, too,
between which numbers it lies. Null is loaded where it stands for a link; a sum that it is in is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import NamedTuple

from wcet_probe.certificate.values.congruences import Congruence
from wcet_probe.certificate.values.numbers import WORD
from wcet_probe.certificate.values.residues import (
    ALL,
    MODULUS,
    added_up,
    combined,
    each,
    members,
    moved,
    negated,
    of_class,
    residue,
    scaled_by,
    text_of_residues,
)

NULL, NEAR, NUMBER, ARENA, STATIC, MIXED, UNKNOWN = "null", "near", "number", "arena", "static", "mixed", "any"
GIVEN, PAYLOAD, TABLE, CONSTANT = "given", "payload", "table", "constant"
_MOST_DISTANCE = 64
_SMALL_MASK = 0xFFFF
"""What a mask with none above keeps is a number: no memory lies below."""
_KEEPING = WORD - MODULUS
"""A mask from here on clears a few of the lowest bits: what it keeps of an address is one."""
_RESIDUES = "([1-9][0-9]?):((?:0|[1-9][0-9]?)(?:,(?:0|[1-9][0-9]?))*)"
_ADDRESS = "0x(0|[1-9a-f][0-9a-f]{0,7})"
_PART = re.compile(
    r"(null|near|number|arena|static|table|constant|mixed|any|payload|given[+-](?:0|[1-9][0-9]?))(\*?)"
    rf"(?:@{_ADDRESS}-{_ADDRESS})?:{_RESIDUES}:(?:o(0|[1-9][0-9]?)|r{_RESIDUES})"
)


class Part(NamedTuple):
    """Words that are made in one way.

    Attributes:
        kind: of what, see the module.
        is_loaded: whether a word is in it that the lemmas speak of.
        value: its residues.
        offset: what was added to the one unknown number that it is made of by sums; None where there are several.
        root: the residues of each of these; only where ``offset`` is None.
        reach: of an address of static data that was not loaded the least and the greatest number that it may be.
    """

    kind: str
    is_loaded: bool
    value: int
    offset: int | None = 0
    root: int = ALL
    reach: tuple[int, int] | None = None

    @property
    def roots(self) -> int:
        """Residues of each number that it is the sum or difference of: loaded words, arguments and other results."""
        return self.root if self.offset is None else moved(self.value, -self.offset)

    @property
    def is_number(self) -> bool:
        """Whether it is made of no address."""
        return self.kind in {NULL, NEAR, NUMBER}

    @property
    def is_arena(self) -> bool:
        """Whether it is an address of the arena."""
        return self.kind in {ARENA, PAYLOAD} or self.kind.startswith(GIVEN)

    @property
    def is_address(self) -> bool:
        """Whether it is an address of the arena, of static data or of constant data."""
        return self.is_memory or self.kind == CONSTANT

    @property
    def is_memory(self) -> bool:
        """Whether it is an address of what may be written."""
        return self.is_arena or self.kind in {STATIC, TABLE}

    @property
    def may_be_number(self) -> bool:
        """Whether it may be a number that looks like an address of static or constant data."""
        return self.kind in {TABLE, CONSTANT} or (self.kind == STATIC and not self.is_loaded)

    @property
    def is_of_payload(self) -> bool:
        """Whether a word there may be one of the block that the operation is given."""
        return self.kind == PAYLOAD or (self.kind.startswith(GIVEN) and int(self.kind.removeprefix(GIVEN)) > -4)

    @property
    def is_computed(self) -> bool:
        """Whether the code computes a place so of which the lemmas speak: it depends on the code alone."""
        return self.is_arena or self.kind == TABLE or (self.kind == STATIC and self.is_loaded)


Word = tuple[Part, ...]
"""Parts of different kinds, in order; nothing: there is no such word."""
ANYTHING: Word = (Part(UNKNOWN, False, ALL),)


def word(parts: Iterable[Part]) -> Word:
    """The words of ``parts``."""
    parts = tuple(parts)
    if len(parts) <= 1:  # as most are
        return ANYTHING if parts and parts[0].kind == UNKNOWN else parts
    found: dict[tuple[str, bool], Part] = {}
    for part in parts:
        if part.kind == UNKNOWN:
            return ANYTHING
        key = part.kind, part.is_loaded
        found[key] = _joined(found[key], part) if key in found else part
    return tuple(found[key] for key in sorted(found))


def _joined(a: Part, b: Part) -> Part:
    if a == b:
        return a
    value, reach = a.value | b.value, _hull(a.reach, b.reach)
    if a.offset is not None and a.offset == b.offset:
        return a._replace(value=value, reach=reach)
    return a._replace(value=value, offset=None, root=a.roots | b.roots, reach=reach)


def _hull(one: tuple[int, int] | None, other: tuple[int, int] | None) -> tuple[int, int] | None:
    return (min(one[0], other[0]), max(one[1], other[1])) if one and other else None


def within(one: Word, other: Word) -> bool:
    """Whether all of ``one`` is in ``other``."""
    return other == ANYTHING or word((*other, *one)) == other


def new(parts: Word, *, is_loaded: bool) -> Word:
    """``parts`` as what is loaded: a number of its own, and no distance from the block that is given any more."""
    return word(
        Part(
            ARENA if part.is_arena else STATIC if part.kind == TABLE else part.kind,
            part.is_loaded or ((is_loaded or part.kind in {STATIC, TABLE}) and part.kind not in {NULL, NEAR, UNKNOWN}),
            part.value,
        )
        for part in parts
    )


def known_as(parts: Word, known: int) -> Word:
    """``parts``, of whose residues ``known`` is known besides."""
    return tuple(part._replace(value=part.value & known) for part in parts if part.value & known)


def reaching(parts: Word, low: int, high: int) -> Word:
    """``parts``, which are known as a number from ``low`` to ``high``, too."""
    return tuple(one for part in parts for one in _reaching(part, low, high))


def _reaching(part: Part, low: int, high: int) -> Iterator[Part]:
    if part.kind not in {STATIC, TABLE} or part.is_loaded:
        yield part
        return
    first, last = part.reach or (0, WORD - 1)
    if max(low, first) <= min(high, last):
        reach = max(low, first), min(high, last)
        yield part._replace(reach=reach if _tells(*reach) else None)


def _tells(low: int, high: int) -> bool:
    """Whether it tells much that an address lies between two numbers: for half of all words it is not said."""
    return 0 <= high - low < WORD // 2


def followed(address: Word) -> Word:
    """``address`` where something is accessed: *words-keep-their-kind* says that it is no null and no loaded number."""
    return tuple(
        part
        for part in address
        if part.kind not in {NULL, NEAR} and not (part.is_loaded and part.kind in {NUMBER, MIXED})
    )


def numbers_of(loaded: Word) -> Word:
    """``loaded`` where it is counted in: *words-keep-their-kind* says that it was stored as a number."""
    return tuple(part for part in loaded if part.is_number or part.kind == UNKNOWN or not part.is_loaded)


def tables_of(parts: Word) -> Word:
    """``parts`` in a register that a loop steps: an address of static data is a computed place."""
    return word(part._replace(kind=TABLE) if part.kind == STATIC and not part.is_loaded else part for part in parts)


def nulls_of(parts: Word) -> Word:
    """``parts`` where they are 0: of what may be null of a link, or a link, null of one; no loaded address is 0."""
    return word(
        part if part.kind == NULL else Part(NULL, part.is_address and part.is_loaded and part.offset == 0, residue(0))
        for part in parts
    )


def links_of(loaded: Word) -> Word:
    """``loaded`` where it is followed: *words-keep-their-kind* says that it was stored as an address or as none."""
    kept = (part for part in loaded if part.kind != NEAR and not (part.is_loaded and part.kind in {NUMBER, MIXED}))
    return word(part._replace(is_loaded=True) if part.kind == NULL else part for part in kept)


# --------------------------------------------------------------------------------------------------------- computations


def added(one: Word, other: Word, *, sign: int = 1, constant: int | None = None) -> Word:
    """The sum, or for ``sign`` -1 the difference; ``constant`` is ``other`` if that is a known number, as signed."""
    return one if constant == 0 else word(_added(a, b, sign, constant) for a, b in product(one, other))


def _added(a: Part, b: Part, sign: int, constant: int | None) -> Part:
    value = added_up(a.value, b.value if sign > 0 else negated(b.value))
    kind = _kind_of_sum(a, b, sign, None if constant is None else sign * constant)
    is_loaded = (a.is_loaded or b.is_loaded) and kind not in {NULL, NEAR, UNKNOWN}
    if constant is None:
        return Part(kind, is_loaded, value, None, a.roots | b.roots)
    offset = None if a.offset is None else (a.offset + sign * constant) % MODULUS
    return Part(kind, is_loaded, value, offset, a.root, _reach(a, kind, sign * constant))


def _reach(part: Part, kind: str, by: int) -> tuple[int, int] | None:
    """Between which numbers an address lies that a constant is added to; None where it may wrap around."""
    if part.reach is None or kind != part.kind:
        return None
    low, high = part.reach[0] + by, part.reach[1] + by
    return (low, high) if low >= 0 and high < WORD else None


def _kind_of_sum(a: Part, b: Part, sign: int, constant: int | None) -> str:
    no_address = UNKNOWN if a.may_be_number or b.may_be_number else MIXED
    if {UNKNOWN, MIXED} & {a.kind, b.kind} or any(one.kind == NULL and one.is_loaded for one in (a, b)):
        return UNKNOWN if UNKNOWN in {a.kind, b.kind} else no_address
    if a.is_number and b.is_number:
        return NEAR if a.kind in {NULL, NEAR} or (sign > 0 and b.kind in {NULL, NEAR}) else NUMBER
    if a.is_address and b.is_address:
        return NUMBER if sign < 0 and a.is_arena == b.is_arena and no_address == MIXED else no_address
    if a.is_number and sign < 0:
        return no_address
    address, number = (a, b) if a.is_address else (b, a)
    return _moved(address, number.kind == NULL, constant if number is b else None)


def _moved(address: Part, is_null: bool, constant: int | None) -> str:  # noqa: FBT001  (of the number that is added)
    """The kind of an address that a number is added to, a ``constant``, or, if that is None, something else."""
    kind = address.kind
    if kind == STATIC and address.is_loaded:  # a list's head: only what is behind it is an address
        return STATIC if is_null or (constant is not None and constant >= 0) else MIXED
    if kind == CONSTANT:
        return kind
    if kind in {STATIC, TABLE}:
        return kind if is_null or constant is not None else TABLE
    if kind == ARENA or constant is None:
        return ARENA
    distance = int(kind.removeprefix(GIVEN)) + constant if kind != PAYLOAD else WORD
    return PAYLOAD if distance > _MOST_DISTANCE else ARENA if distance < -_MOST_DISTANCE else f"{GIVEN}{distance:+d}"


def masked(parts: Word, mask: int) -> Word:
    """``parts`` without the bits that ``mask`` has not."""
    return word(_masked(part, mask) for part in parts)


def _masked(part: Part, mask: int) -> Part:
    value = each(part.value, lambda one: one & mask)
    if part.kind == NULL or (part.kind != UNKNOWN and mask == 0):
        return Part(NULL, False, residue(0))
    if mask <= _SMALL_MASK:
        return Part(NUMBER, part.is_loaded, value)
    if mask >= _KEEPING and part.kind != UNKNOWN:
        return Part(ARENA if part.is_arena else part.kind, part.is_loaded, value)
    return _made_of((part,), value)


def computed(words: Iterable[Word], value: int = ALL) -> Word:
    """What is computed from ``words`` in a way that makes no address: a number."""
    return word(_made_of(parts, value) for parts in product(*words))


def bitwise(operation: Callable[[int, int], int], one: Word, other: Word) -> Word:
    """What an ``operation`` that works bit by bit makes of two words: a number."""
    return word(_made_of(pair, combined(operation, pair[0].value, pair[1].value)) for pair in product(one, other))


def shifted(parts: Word, amounts: Iterable[int]) -> Word:
    """Words shifted to the left by one of ``amounts`` of bits, as numbers."""
    return word(_made_of((part,), scaled_by(part.value, 1 << bits)) for part in parts for bits in amounts)


def _made_of(parts: Iterable[Part], value: int) -> Part:
    """A number; the lemmas speak of it only if they do of all addresses that it is made of."""
    own = tuple(parts)
    is_told = all(part.is_number or (part.is_loaded and part.kind != UNKNOWN) for part in own)
    if any(part.kind == NEAR for part in own) and all(part.is_number for part in own):
        return Part(NEAR, False, value)
    return Part(NUMBER, is_told and any(part.is_loaded for part in own), value)


def scaled(parts: Word, factor: int) -> Word:
    """Words times a constant, as numbers; facts about pointers speak of what is added or subtracted once."""
    found = [_made_of((part,), scaled_by(part.value, factor)) for part in parts]
    return word(found) if factor % WORD in {1, WORD - 1} else indices_of(found)


def indices_of(parts: Iterable[Part]) -> Word:
    """``parts`` that were multiplied or have a range: facts about pointers do not speak of the numbers among them."""
    return word(part._replace(offset=None, root=residue(0)) if part.is_number else part for part in parts)


def multiples(parts: Word) -> int:
    """The residues of multiples of ``parts``."""
    powers = [one & -one or MODULUS for part in parts for one in members(part.value)]
    return of_class(Congruence(min(powers, default=1), 0))


# ----------------------------------------------------------------------------------------------------------------- text


def text_of(parts: Word) -> str:
    """``parts`` as the records of a certificate have them."""
    return " ".join(map(_text_of, parts))


def _text_of(part: Part) -> str:
    way = f"r{text_of_residues(part.root)}" if part.offset is None else f"o{part.offset}"
    reach = "" if part.reach is None else f"@{part.reach[0]:#x}-{part.reach[1]:#x}"
    return f"{part.kind}{'*' * part.is_loaded}{reach}:{text_of_residues(part.value)}:{way}"


def word_of(text: str, demand: Callable[[object, str], None]) -> Word:
    """The word that records have as ``text``.

    Raises:
        VerificationError: by ``demand``, there is no such word.
    """
    parts = []
    for one in text.split():
        match = _PART.fullmatch(one)
        demand(match, f"{one[:80]!r} is no part of a word")
        assert match is not None  # noqa: S101  (told above)
        kind, star, first, last, modulus, own, offset, *root = match.groups()
        known = _residues(int(modulus), own)
        part = (
            Part(kind, bool(star), known, int(offset))
            if offset
            else Part(kind, bool(star), known, None, _residues(int(root[0]), root[1]))
        )
        if first:
            part = part._replace(reach=(int(first, 16), int(last, 16)))
        demand(not first or _may_reach(part), f"{one[:80]!r} is no address of static data between two numbers")
        demand(_text_of(part) == one and int(offset or 0) < MODULUS, f"{one[:80]!r} is not how its part is written")
        parts.append(part)
    found = tuple(parts)
    demand(found and word(found) == found, f"{text[:80]!r} is no word")
    return found


def _may_reach(part: Part) -> bool:
    """Whether it may be told of a part between which numbers it lies, and is so."""
    return part.kind in {STATIC, TABLE} and not part.is_loaded and part.reach is not None and _tells(*part.reach)


def _residues(modulus: int, text: str) -> int:
    """The residues that are those of ``text`` modulo ``modulus``."""
    own = set(map(int, text.split(",")))
    return sum(residue(one) for one in range(MODULUS) if one % modulus in own)
