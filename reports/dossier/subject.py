"""What a dossier is about: result documents by allocator and target, with what their certificates prove."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from wcet_probe.certificate.kernel.verify import CheckedBound, verify_result
from wcet_probe.certificate.results.observed import verify_runs, verify_slack
from wcet_probe.certificate.results.witnessed import witnessed
from wcet_probe.errors import VerificationError
from wcet_probe.reports.dossier.blocks import Block, Figure, Paragraph
from wcet_probe.sizes import format_size

Json = Mapping[str, Any]

RESULT, BOUND = "wcet-probe-result", "wcet-probe-bound"


@dataclass(frozen=True, slots=True)
class Answer:
    """One result document.

    Attributes:
        document: a ``wcet-probe-result`` or ``wcet-probe-bound``.
        label: what tells it from the others of its subject.
        checked: what its certificates prove; empty without a bound.
        sha256: of the document as canonical JSON: sorted keys, no white space.
        proof: what two answers share if they rest on the same proof, certificates and parameters.
        not_checked: what a check against the code left open; None where there was no binary, or is no bound.
    """

    document: Json
    label: str
    checked: tuple[CheckedBound, ...]
    sha256: str
    proof: str
    not_checked: tuple[str, ...] | None = None

    @property
    def bound(self) -> Json | None:
        """The section ``bound``, or None."""
        found: Json | None = self.document.get("bound")
        return found

    @property
    def observed(self) -> Json | None:
        """The section ``observed``, or None."""
        found: Json | None = self.document.get("observed")
        return found

    @property
    def witnessed(self) -> Json | None:
        """The dearest known call in each unit, or None."""
        found = witnessed(self.document)
        return None if found is None else dict(found)

    @property
    def entry(self) -> str:
        """The analysed function, or the operation where no bound names one."""
        return str(self.bound["entry"]) if self.bound else operation(self.document)

    @property
    def heap(self) -> str:
        """The size of the heap in words, or a dash."""
        size = self.document.get("heap_bytes")
        return format_size(size) if size else "—"


@dataclass(frozen=True, slots=True)
class Subject:
    """An allocator in one build, or a function of some firmware, on one target: with all answers about it."""

    title: str
    anchor: str
    answers: tuple[Answer, ...]

    @property
    def first(self) -> Json:
        """The document that speaks for what all have in common."""
        return self.answers[0].document

    def proofs(self) -> tuple[Answer, ...]:
        """The answers with a bound, each different bound once: scenarios of one operation share theirs."""
        found: dict[str, Answer] = {}
        for answer in self.answers:
            if answer.bound is not None:
                found.setdefault(answer.proof, answer)
        return tuple(found.values())

    def sharing(self, answer: Answer) -> tuple[Answer, ...]:
        """The answers that rest on the same proof as ``answer``, itself among them."""
        return tuple(one for one in self.answers if one.proof == answer.proof)

    def observations(self) -> tuple[Answer, ...]:
        """The answers with an observation."""
        return tuple(answer for answer in self.answers if answer.observed is not None)


def subjects(
    documents: Sequence[Json], not_checked: Sequence[tuple[str, ...] | None] | None = None
) -> tuple[Subject, ...]:
    """The subjects of ``documents``, in the order in which they come.

    Args:
        documents: results and bounds.
        not_checked: of each, what a check against its code left open; None where there was none.

    Raises:
        VerificationError: a certificate does not prove what its document says.
    """
    grouped: dict[tuple[str, ...], list[Json]] = {}
    left_open: dict[tuple[str, ...], list[tuple[str, ...] | None]] = {}
    for document, found_open in zip(documents, not_checked or [None] * len(documents), strict=True):
        grouped.setdefault(_key(document), []).append(document)
        left_open.setdefault(_key(document), []).append(found_open)
    titles = [f"{name} on {target}" for name, target, *_ in grouped]
    found: dict[str, Subject] = {}
    for title, (key, group) in zip(titles, grouped.items(), strict=True):
        full = title if titles.count(title) == 1 else f"{title}, {key[2]}"
        anchor = _unused(re.sub(r"[^a-z0-9]+", "-", full.lower()).strip("-"), found)
        answers = [
            Answer(
                document,
                label,
                _checked(document, f"{full}, {label}"),
                _sha256(document),
                _sha256(_proof(document)),
                found_open,
            )
            for document, label, found_open in zip(group, _labels(group), left_open[key], strict=True)
        ]
        found[anchor] = Subject(full, anchor, tuple(answers))
    return tuple(found.values())


def operation(document: Json) -> str:
    """``malloc`` or ``free``, or the entry of a bound."""
    if measured := document.get("measured_operation"):
        return str(measured["kind"])
    return str((document.get("bound") or {}).get("entry", "?"))


def cache_words(cache: Json | None) -> str:
    """Geometry and policy of a cache in words."""
    if cache is None:
        return "none"
    size = format_size(cache["sets"] * cache["ways"] * cache["line_bytes"])
    return (
        f"{size}, {cache['sets']} sets of {cache['ways']} lines of {cache['line_bytes']} bytes, {cache['replacement']}"
    )


def caches_words(document: Json) -> str:
    """Both caches in words; empty where the document does not tell them."""
    caches = document.get("caches")
    if caches is None:
        return ""
    first, second = cache_words(caches.get("icache")), cache_words(caches.get("dcache"))
    return f"caches: {first}" if first == second else f"I: {first}; D: {second}"


def parameter_words(values: Mapping[str, object]) -> str:
    """``a = 1, b = 2``."""
    return ", ".join(f"{name} = {_number(value)}" for name, value in sorted(values.items()))


def number(value: object) -> str:
    """A count with separators; a dash for what is not known."""
    return "—" if value is None else _number(value)


def counted(count: int, noun: str) -> str:
    """``1 loop``, ``2 loops``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def picture(caption: str, alternative: str, svg: str | None) -> Iterator[Block]:
    """A figure, where there is a picture."""
    if svg is not None:
        yield Figure(caption, alternative, svg)


def left_out(rows: Sequence[object], shown: int, what: str) -> Iterator[Block]:
    """A note where only ``shown`` of ``rows`` are printed."""
    if len(rows) > shown:
        note = f"{len(rows) - shown:,} more {what} are in the result document, and in a report made with `--full`."
        yield Paragraph(note, "note")


def unique(items: Iterable[str]) -> tuple[str, ...]:
    """``items`` without repetitions, in their order."""
    return tuple(dict.fromkeys(items))


def _sha256(content: object) -> str:
    return sha256(json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()).hexdigest()


def _proof(document: Json) -> list[object]:
    bound = document.get("bound") or {}
    return [bound.get("certificates"), bound.get("parameters")]


def _number(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _key(document: Json) -> tuple[str, ...]:
    if document["format"] == BOUND:
        return operation(document), document["target"], f"image {document['image']['sha256'][:8]}", BOUND
    return document["allocator"], document["target"], parameter_words(document.get("parameters", {})), RESULT


def _labels(group: Sequence[Json]) -> list[str]:
    """A label for each document, as short as tells them apart."""
    labels = [_base(document) for document in group]
    for discriminate in (caches_words, _initial, lambda document: document["image"]["sha256"][:8]):
        if len({*labels}) < len(labels):
            extra = [discriminate(document) for document in group]
            if len({*extra}) > 1:
                labels = [f"{label}, {more}" for label, more in zip(labels, extra, strict=True)]
    return labels


def _base(document: Json) -> str:
    if document["format"] == BOUND:
        return operation(document)
    return f"{operation(document)}, {document['scenario']}, {format_size(document['heap_bytes'])}"


def _initial(document: Json) -> str:
    return f"{document.get('initial_cache', 'unknown')} at entry"


def _unused(anchor: str, taken: Mapping[str, object]) -> str:
    numbers = (f"{anchor}-{number}" for number in range(2, len(taken) + 3))
    return anchor if anchor not in taken else next(name for name in numbers if name not in taken)


def _checked(document: Json, what: str) -> tuple[CheckedBound, ...]:
    """What the certificates prove; bound and observation must agree with each other, too."""
    if document.get("bound") is None:
        return ()
    try:
        checked = tuple(verify_result(document))
        if document["format"] == BOUND:
            verify_runs(document)
        elif document.get("observed") is not None:
            verify_slack(document)
    except VerificationError as error:
        raise VerificationError(f"{what}: {error}") from error
    return checked
