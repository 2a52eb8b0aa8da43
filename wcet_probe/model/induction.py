"""What alignments of pointers rest on that are proved by induction over the operations of an allocator, in words.

What is proved so is an assumption no more; the lemmas and premises of the induction are. They are the same for all
allocators, and nothing in a certificate tells whether they hold. Where a solver shows that the operations keep claims
that are written for the allocator, there are no lemmas, and some premises more.
"""

from __future__ import annotations

from collections.abc import Mapping

LEMMAS: Mapping[str, str] = {
    "stored-before-loaded": (
        "a word of the arena that an operation loads, other than at a constant distance behind the start of the block "
        "that it is given, was stored by an operation since the caller last held it; of its stack, by the same call"
    ),
    "words-keep-their-kind": (
        "a word that is loaded from the arena, or at a computed place of static data, was stored as what the loading "
        "instruction's operation uses it as: what is followed as a link, is compared with one, or stands for one where "
        "paths meet, as an address; what is added to one, subtracted, masked or shifted, there or behind a place "
        "where paths meet, and not followed, as a number, and so what is no such link and a summand of what is "
        "multiplied or shifted to the left, or compared with a number from 1 to 65,535; what an operation stores, and "
        "takes for an index of static data and for nothing else, as such an index; null is not followed, nor what "
        "is computed from it; an address is made of a whole word that is one, by adding and subtracting numbers, and "
        "by masking with a constant, and in no other way"
    ),
    "heads-are-no-blocks": (
        "what is taken from a list as a block is one of the arena, and not the list's head in static data: malloc "
        "returns no head, and no size is added to one"
    ),
    "objects-apart": (
        "an address that is computed from the arena's start lies in the arena, one computed from static data lies in "
        "static data, one computed from a constant table in a constant table, and these and the stack do not overlap, "
        "and none lies below 65,536"
    ),
}
"""What is taken for granted of the allocator, by id."""
PREMISES: Mapping[str, str] = {
    "init-first": "init is called, and returns 0, before any other operation is",
    "free-gets-held-blocks": "free is given null, or a block that malloc returned and that was not freed since",
    "caller-writes-own-blocks": "the caller writes nothing of the allocator's but the bytes of blocks that it holds",
}
"""What is taken for granted of the caller, by id."""

DEDUCTION_PREMISES: Mapping[str, str] = {
    "arena-apart": "the arena that init is given overlaps no static data",
    "arena-not-wrapped": "the arena that init is given ends where the address space does at the latest",
}
"""What a deduction takes for granted besides the `PREMISES`, by id; some of it only for some allocators."""
DEDUCED_BY_ALL = (*PREMISES, "arena-apart", "stack-separation")
"""What every deduction takes for granted, by id; ``stack-separation`` is told in the words of a bound."""

LEMMA_CHECK = "not checked: the induction takes it for granted, and runs are held against what that proves only"
PREMISE_CHECK = "no run can check it: it is the caller's"
PROVED_CHECK = (
    "by the module certificate that the bound carries, where the checker says so; every emulated run holds each access"
)
DEDUCED_CHECK = (
    "by a solver (z3), which is believed, as is who asks it; the certificate's checker cannot tell; "
    "every emulated run holds each access"
)
"""How assumptions of each kind are checked."""
