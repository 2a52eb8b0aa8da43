"""How the records of a certificate are written that say what holds where nodes begin, and of caches.

`wcet_probe.certificate` reads them.

Words: certificate, abstract state (docs/explanation/glossary.md).

*Soundness:* none is claimed. The checker tests what it reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from wcet_probe.certificate.caches.annotations import Annotations
from wcet_probe.certificate.caches.residents import Bound
from wcet_probe.certificate.kernel.equalities import Cases, Equalities
from wcet_probe.certificate.kernel.flags import SIGNS, Flags
from wcet_probe.certificate.kernel.records import says_nothing
from wcet_probe.certificate.names.names import Names
from wcet_probe.certificate.values.numbers import WORD, Value
from wcet_probe.certificate.values.state import SAVED, STATIC, Place


def invariant_lines(node: str, values: Mapping[Place, Value]) -> list[str]:
    """The records of what holds where ``node`` begins; what says nothing is left out.

    *Soundness:* none is claimed.
    """
    lines = []
    for place, value in sorted(values.items(), key=lambda item: (isinstance(item[0], int), str(item[0]))):
        if says_nothing(place, value):
            continue
        lines.append(f"invariant {node} {_text_of(place)} {_value_text(value)}")
    return lines


def _value_text(value: Value) -> str:
    steps = (value.high - value.low) // value.stride if value.stride else 0
    return f"{value.base} {value.low % WORD} {value.stride} {steps}"


def case_lines(cases: Cases) -> Iterator[str]:
    """The records of cases.

    *Soundness:* none is claimed.
    """
    for node, own in cases.items():
        for number, case in enumerate(own):
            for place, value in case.values.items():
                yield f"case {node} {number} {_text_of(place)} {_value_text(value)}"
            for place, other in case.equal.items():
                yield f"case-equal {node} {number} {_text_of(place)} {_text_of(other)}"


def flag_lines(flags: Flags) -> Iterator[str]:
    """The records of what flags tell.

    *Soundness:* none is claimed.
    """
    signs = {value: text for text, value in SIGNS.items()}
    for node, own in flags.items():
        for name, one in sorted(own.items()):
            kind = "result" if one.is_result else "numbers"
            ranges = (
                f"{value.low} {value.stride} {(value.high - value.low) // value.stride if value.stride else 0}"
                for value in (one.left_value, one.right_value)
            )
            relations = ",".join(sorted(f"{relation}{'us'[is_signed]}" for relation, is_signed in one.holding)) or "-"
            yield " ".join(("flags", node, name, signs[one.is_signed], kind, *ranges, relations))


def equality_lines(equal: Equalities) -> Iterator[str]:
    """The records of which places are equal.

    *Soundness:* none is claimed.
    """
    for node, own in equal.items():
        yield from sorted(f"equal {node} {_text_of(place)} {_text_of(other)}" for place, other in own.items())


def annotation_lines(annotations: Annotations) -> Iterator[str]:
    """The records of what is said of caches.

    *Soundness:* none is claimed.
    """
    yield from _names(annotations.names)
    for node, misses in annotations.misses.items():
        yield from (f"miss {node} {address:#x} {number} {name}" for (address, number), name in sorted(misses.items()))
    yield from (" ".join(("paid", name, *edges)) for name, edges in annotations.paid.items())
    for cache, nodes in annotations.must.items():
        for node, must in nodes.items():
            for (base, offset, size), (names, others) in sorted(must.items()):
                yield " ".join(("must", cache, node, base, str(offset), str(size), str(others), *sorted(names)))
    for node, modified in annotations.modified.items():
        yield from (f"modified {node} {base} {offset} {size}" for base, offset, size in sorted(modified))
    for name, balances in annotations.held.items():
        yield from (
            f"held {name} {node} {_balance_text(balance)}" for node, balance in balances.items() if balance is not None
        )
    yield from (f"unchecked {node}" for node in sorted(annotations.unchecked))


def _names(names: Names) -> Iterator[str]:
    for symbol, (way, node, (modulus, residue)) in names.homes.items():
        yield f"symbol {symbol} {way} {node} {modulus} {residue}"
    for node, claims in names.claims.items():
        for place, (symbol, offset) in sorted(claims.items(), key=lambda one: str(one[0])):
            yield f"name {node} {_text_of(place)} {symbol} {offset}"
    for node, classes in names.shown.items():
        yield from (f"shown {node} {symbol} {one.modulus} {one.residue}" for symbol, one in classes.items())


def _balance_text(balance: Bound | str) -> str:
    if isinstance(balance, str):
        return balance
    parts = (
        f"{offset}:" + ("gone" if known is None else ",".join((str(known.others), *sorted(known.names))))
        for offset, known in sorted(balance.spent.items())
    )
    return " ".join((balance.base, str(balance.granule_bytes), *parts))


def _text_of(place: Place) -> str:
    """What records call ``place``."""
    if isinstance(place, str):
        return place
    if place >= STATIC:
        return f"static:{place - STATIC:#x}"
    return f"stack:{place}" if place >= SAVED // 2 else f"saved:{place - SAVED}"
