"""What changed between two result documents, and which numbers moved. Values to values."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import Any

from wcet_probe.certificate.results.witnessed import witnessed
from wcet_probe.ci.baseline import baseline_entry, subject

Document = Mapping[str, Any]
_DIGITS_SHOWN = 16
_UNITS = ("instructions", "cycles")
_NAMED = (
    ("allocator", "allocator"),
    ("scenario", "scenario"),
    ("target", "target"),
    ("heap", "heap_bytes"),
    ("initial caches", "initial_cache"),
)


@dataclass(frozen=True, slots=True)
class Change:
    """Something that is not as it was: of what kind, where, and both texts; empty where it was not or is no more."""

    kind: str
    where: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Move:
    """A number that is not as it was: ``bound`` or ``observed``, its unit, both values; None where there is none."""

    quantity: str
    unit: str
    old: int | None
    new: int | None

    @property
    def is_worse(self) -> bool:
        """Whether a bound went up, or is lost."""
        gone_up = self.old is not None and (self.new is None or self.new > self.old)
        return self.quantity == "bound" and gone_up


@dataclass(frozen=True, slots=True)
class Difference:
    """The differences of one pair of results."""

    subject: str
    changes: tuple[Change, ...]
    moves: tuple[Move, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """All pairs, and the subjects that only one of the two documents has."""

    differences: tuple[Difference, ...]
    only_old: tuple[str, ...]
    only_new: tuple[str, ...]

    @property
    def is_worse(self) -> bool:
        """Whether a bound went up or is lost, or a result with a bound is no more there."""
        return bool(self.only_old) or any(move.is_worse for one in self.differences for move in one.moves)


def compare(old: Sequence[Document], new: Sequence[Document]) -> Comparison:
    """Pair the results of two documents, as `wcet_probe.ci.result_files` reads them, and tell their differences.

    Two single results are a pair whatever they are of; else results are paired that have the same subject.
    """
    single = len(old) == len(new) == 1
    before, after = ({"": docs[0]} if single else _by_subject(docs) for docs in (old, new))
    return Comparison(
        differences=tuple(_difference(key, before[key], after[key]) for key in before if key in after),
        only_old=tuple(key for key in before if key not in after),
        only_new=tuple(key for key in after if key not in before),
    )


def _by_subject(documents: Iterable[Document]) -> dict[str, Document]:
    """Documents by their subject; the second of the same gets a number."""
    found: dict[str, Document] = {}
    seen = Counter[str]()
    for document in documents:
        name = _subject(document)
        seen[name] += 1
        found[name if seen[name] == 1 else f"{name} ({seen[name]})"] = document
    return found


def _subject(document: Document) -> str:
    return str(document["subject"]) if "subject" in document else subject(document)


def _difference(key: str, old: Document, new: Document) -> Difference:
    names = [key] if key else list(dict.fromkeys((_subject(old), _subject(new))))
    hashed = "subject" in old or "subject" in new
    changes = _hash_changes(_entry(old), _entry(new)) if hashed else _changes(old, new)
    return Difference(" -> ".join(names), tuple(changes), tuple(_moves(old, new)))


# ------------------------------------------------------------------------------------------------------ with a baseline


def _entry(document: Document) -> Document:
    """What a baseline keeps of a result, as far as it is there; of a baseline, its entry."""
    if "subject" in document or document.get("bound") is None:
        return document
    return {**asdict(baseline_entry("", document)), "tool": document.get("tool")}


def _hash_changes(old: Document, new: Document) -> Iterator[Change]:
    yield from _tool_changes(old, new)
    for kind, key in (
        ("compiler", "compiler"),
        ("image", "image_sha256"),
        ("flow facts or assumptions", "facts_sha256"),
        ("target's numbers", "target_sha256"),
    ):
        if old.get(key) and new.get(key) and old[key] != new[key]:
            shown = len(old[key]) if kind == "compiler" else _DIGITS_SHOWN
            yield Change(kind, "", old[key][:shown], new[key] if kind == "compiler" else new[key][:shown])


# ------------------------------------------------------------------------------------------------------- of two results


def _changes(old: Document, new: Document) -> Iterator[Change]:
    yield from _tool_changes(old, new)
    for kind, key in _NAMED:
        yield from _flat(kind, old.get(key), new.get(key))
    yield from _flat("entry", _bound(old).get("entry"), _bound(new).get("entry"))
    yield from _flat("call", old.get("measured_operation"), new.get("measured_operation"))
    image, built = old["image"], new["image"]
    yield from _flat("compiler", image.get("compiler"), built.get("compiler"))
    yield from _listed("flag", image.get("flags") or (), built.get("flags") or ())
    yield from _flat("image", image["sha256"][:_DIGITS_SHOWN], built["sha256"][:_DIGITS_SHOWN])
    yield from _known("code of", _functions(old), _functions(new))
    yield from _known("source", _sources(old), _sources(new))
    yield from _flat("parameter", _parameters(old), _parameters(new))
    yield from _loop_changes(_bound(old).get("loops") or (), _bound(new).get("loops") or ())
    yield from _listed("flow fact", _claims(old), _claims(new))
    yield from _listed("assumption", _assumptions(old), _assumptions(new))
    yield from _target_changes(old, new)


def _moves(old: Document, new: Document) -> Iterator[Move]:
    for quantity in ("bound", "observed"):
        for unit in _UNITS:
            before, after = (_number(document, quantity, unit) for document in (old, new))
            unknown = quantity == "observed" and ("subject" in old or "subject" in new)
            if before != after and not unknown:
                yield Move(quantity, unit, before, after)


def _number(document: Document, quantity: str, unit: str) -> int | None:
    section = document if "subject" in document else _section(document, quantity)
    return section.get(unit) if section else None


def _section(document: Document, quantity: str) -> Mapping[str, Any] | None:
    return witnessed(document) if quantity == "observed" else document.get(quantity)


def _bound(document: Document) -> Document:
    return document.get("bound") or {}


def _tool_changes(old: Document, new: Document) -> Iterator[Change]:
    tools = [document.get("tool") or {} for document in (old, new)]
    yield from _known("tool", *({"wcet-probe": tool.get("version")} for tool in tools))
    yield from _known("tool", *(tool.get("packages") for tool in tools))


def _functions(document: Document) -> Document:
    rows = document["image"].get("functions") or ()
    return {row["name"]: row["sha256"][:_DIGITS_SHOWN] for row in rows}


def _sources(document: Document) -> Document:
    rows = (document.get("allocator_manifest") or {}).get("sources") or ()
    return {row["name"]: row["sha256"][:_DIGITS_SHOWN] for row in rows if isinstance(row, Mapping)}


def _parameters(document: Document) -> Document:
    """Build parameters, and parameters of flow facts that are none of them."""
    build = document.get("parameters") or {}
    told = _bound(document).get("parameters") or {}
    heap = {"H"} if "heap_bytes" in document else set()
    same = {key.replace("-", "_") for key in build} | heap
    return {**build, **{key: value for key, value in told.items() if key not in same}}


def _claims(document: Document) -> list[str]:
    return [f"{one['statement']}: {one['constant']}" for one in _bound(document).get("flow_claims") or ()]


def _assumptions(document: Document) -> list[str]:
    return [one["statement"] for one in _bound(document).get("assumptions") or ()]


def _target_changes(old: Document, new: Document) -> Iterator[Change]:
    """The target's numbers, where both documents have all of them; else caches and memory latencies."""
    key = "target_configuration"
    if old.get(key) and new.get(key):
        before, after = old[key], new[key]
    else:
        before, after = ({part: document.get(part) for part in ("caches", "memory")} for document in (old, new))
    for change in _flat("target", before, after):
        is_cache = any(part in ("caches", "icache", "dcache") for part in change.where.split("."))
        yield Change("cache", change.where, change.old, change.new) if is_cache else change


# ---------------------------------------------------------------------------------------------------------------- loops


def _loop_changes(old: Iterable[Document], new: Iterable[Document]) -> Iterator[Change]:
    """What changed of the loops, each held against the one that it was."""
    before, after = _loops(old), _loops(new)
    for function in dict.fromkeys((*before, *after)):
        for first, second in _pairs(before.get(function, []), after.get(function, [])):
            texts = [_loop_text(loop) if loop else "" for loop in (first, second)]
            if texts[0] != texts[1]:
                yield Change("loop bound", (second or first or {})["location"], *texts)


def _pairs(old: Sequence[Document], new: Sequence[Document]) -> Iterator[tuple[Document | None, Document | None]]:
    """The loops of a function, of which there are as many as before, in their order; else those of a line first."""
    if len(old) == len(new):
        yield from zip(old, new, strict=True)
        return
    left, right = list(old), list(new)
    for loop in old:
        same = next((other for other in right if other["line"] == loop["line"]), None)
        if same is not None:
            left.remove(loop)
            right.remove(same)
            yield loop, same
    yield from zip_longest(left, right)


def _loops(loops: Iterable[Document]) -> dict[str, list[Document]]:
    """Loops by function, in the order of the code; of a loop in several contexts the one with the largest bound."""
    headers: dict[tuple[str, str], Document] = {}
    for loop in loops:
        place = loop["function"], loop["address"]
        if place not in headers or loop["max"] > headers[place]["max"]:
            headers[place] = loop
    found: dict[str, list[Document]] = {}
    for (function, _), loop in sorted(headers.items()):
        found.setdefault(function, []).append(loop)
    return found


def _loop_text(loop: Document) -> str:
    total = "" if loop["total"] is None else f", {loop['total']:,} in all"
    return f"{loop['max']:,}{total}, {loop['origin']}: {loop['expression']}"


# ----------------------------------------------------------------------------------------------------------- in general


def _flat(kind: str, old: object, new: object) -> Iterator[Change]:
    """A change for each leaf of two values that differs; ``where`` is its path."""
    before, after = dict(_leaves(old)), dict(_leaves(new))
    for path in dict.fromkeys((*before, *after)):
        if before.get(path, "") != after.get(path, ""):
            yield Change(kind, path, before.get(path, ""), after.get(path, ""))


def _known(kind: str, old: object, new: object) -> Iterator[Change]:
    """The same, where both are known: a document of an earlier version, or a baseline, says less."""
    if old and new:
        yield from _flat(kind, old, new)


def _leaves(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key in sorted(value):
            yield from _leaves(value[key], f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from _leaves(item, f"{path}[{number}]")
    elif value is not None:
        yield path, value if isinstance(value, str) else json.dumps(value)


def _listed(kind: str, old: Iterable[str], new: Iterable[str]) -> Iterator[Change]:
    """What is no more among the texts, and what is new; if there is neither, whether their order changed."""
    before, after = list(old), list(new)
    gone, come = Counter(before) - Counter(after), Counter(after) - Counter(before)
    yield from (Change(kind, "", text, "") for text in before if gone[text])
    yield from (Change(kind, "", "", text) for text in after if come[text])
    if not gone and not come and before != after and kind == "flag":
        yield Change(kind, "order", " ".join(before), " ".join(after))
