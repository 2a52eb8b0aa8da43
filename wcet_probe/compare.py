"""What changed between two result documents, and which numbers moved. Values to values."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from wcet_probe.baseline import FORMAT, baseline_entries, baseline_entry, subject
from wcet_probe.errors import UsageError

Document = Mapping[str, Any]
_DIGITS_SHOWN = 16
_UNITS = ("instructions", "cycles")
_RESULTS = ("wcet-probe-result", "wcet-probe-bound")
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


def read_documents(file: Path, *, baselines: bool = False) -> list[dict[str, Any]]:
    """The results in ``file``, or, if ``baselines`` are welcome, the entries of a baseline in the shape of results.

    Raises:
        UsageError: it cannot be read, or holds something else.
    """
    try:
        document = json.loads(file.read_bytes())
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}; name a file that you can read.") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{file} is no JSON; give it what --json printed.") from error
    if baselines and isinstance(document, dict) and document.get("format") == FORMAT:
        tool = document.get("tool")
        return [{**asdict(one), "tool": tool} for one in baseline_entries(document, file)]
    several = isinstance(document, dict) and document.get("format") == "wcet-probe-results"
    results = document.get("results") if several else [document]
    if isinstance(results, list) and results and all(_is_result(one) for one in results):
        return results
    wanted = "results, bounds or a baseline" if baselines else "results or bounds"
    raise UsageError(f"{file} holds no {wanted} of version 1; give it what --json printed.")


def compare(old: Sequence[Document], new: Sequence[Document]) -> Comparison:
    """Pair the results of two documents, as `read_documents` gives them, and tell their differences.

    Two single results are a pair whatever they are of; else results are paired that have the same subject.
    """
    single = len(old) == len(new) == 1
    before, after = ({"": docs[0]} if single else _by_subject(docs) for docs in (old, new))
    return Comparison(
        differences=tuple(_difference(before[key], after[key]) for key in before if key in after),
        only_old=tuple(key for key in before if key not in after),
        only_new=tuple(key for key in after if key not in before),
    )


def _is_result(document: object) -> bool:
    return isinstance(document, dict) and document.get("format") in _RESULTS and document.get("version") == 1


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


def _difference(old: Document, new: Document) -> Difference:
    names = list(dict.fromkeys((_subject(old), _subject(new))))
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
    yield from _flat("tool", _tool(old), _tool(new))
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
    yield from _flat("tool", _tool(old), _tool(new))
    for kind, key in _NAMED:
        yield from _flat(kind, old.get(key), new.get(key))
    yield from _flat("entry", _bound(old).get("entry"), _bound(new).get("entry"))
    yield from _flat("call", old.get("measured_operation"), new.get("measured_operation"))
    image, built = old["image"], new["image"]
    yield from _flat("compiler", image.get("compiler"), built.get("compiler"))
    yield from _listed("flag", image.get("flags") or (), built.get("flags") or ())
    yield from _flat("image", image["sha256"][:_DIGITS_SHOWN], built["sha256"][:_DIGITS_SHOWN])
    yield from _flat("source", _sources(old), _sources(new))
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
    section = document if "subject" in document else document.get(quantity)
    return section.get(unit) if section else None


def _bound(document: Document) -> Document:
    return document.get("bound") or {}


def _tool(document: Document) -> Document:
    tool = document.get("tool") or {}
    return {tool.get("name", "wcet-probe"): tool.get("version"), **(tool.get("packages") or {})}


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
    """Loops are the same that stand in the same function and line; what is left over, in the order of the code."""
    before, after = _loops(old), _loops(new)
    pairs = [(before.pop(key), after.pop(key)) for key in list(before) if key in after]
    for function in dict.fromkeys(key[0] for key in (*before, *after)):
        left, right = ([loop for key, loop in rest.items() if key[0] == function] for rest in (before, after))
        pairs += list(zip_longest(left, right))
    for first, second in pairs:
        texts = [_loop_text(loop) if loop else "" for loop in (first, second)]
        if texts[0] != texts[1]:
            yield Change("loop bound", (second or first)["location"], *texts)


def _loops(loops: Iterable[Document]) -> dict[tuple[str, str, int, int], Document]:
    """Loops by function, file, line and number among those of the line; of several contexts the largest bound."""
    headers: dict[tuple[str, str], Document] = {}
    for loop in loops:
        place = loop["function"], loop["address"]
        if place not in headers or loop["max"] > headers[place]["max"]:
            headers[place] = loop
    seen = Counter[tuple[str, str, int]]()
    found: dict[tuple[str, str, int, int], Document] = {}
    for _, loop in sorted(headers.items()):
        line = loop["function"], loop["file"] or "", loop["line"] or 0
        seen[line] += 1
        found[*line, seen[line]] = loop
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
