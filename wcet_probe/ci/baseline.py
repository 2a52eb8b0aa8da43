"""Baselines: bounds that a project has accepted, in small JSON files that are committed beside its configuration.

A bound that is worse than the accepted one is found without the result that was accepted; what it was about is known
by hashes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from hashlib import sha256
from pathlib import Path
from typing import Any

from wcet_probe import __version__
from wcet_probe.errors import UsageError
from wcet_probe.sizes import format_size

FORMAT = "wcet-probe-baseline"
FOLDER = "wcet-probe-baselines"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class BaselineEntry:
    """An accepted bound.

    Attributes:
        name, target: of the entry of the configuration.
        subject: what the bound is of, see `subject`.
        instructions, cycles: the bound.
        image_sha256: of the ELF file.
        compiler: that built it, or None where that is not known.
        facts_sha256: see `facts_hash`.
        target_sha256: see `target_hash`.
    """

    name: str
    target: str
    subject: str
    instructions: int
    cycles: int
    image_sha256: str
    compiler: str | None
    facts_sha256: str
    target_sha256: str | None


def baseline_entry(name: str, document: Mapping[str, Any]) -> BaselineEntry:
    """What a baseline keeps of the result ``document``, which has a bound, under the name of its budget."""
    bound, image = document["bound"], document["image"]
    return BaselineEntry(
        name=name,
        target=document["target"],
        subject=subject(document),
        instructions=bound["instructions"],
        cycles=bound["cycles"],
        image_sha256=image["sha256"],
        compiler=image.get("compiler") or None,
        facts_sha256=facts_hash(document),
        target_sha256=target_hash(document),
    )


def subject(document: Mapping[str, Any]) -> str:
    """What a result ``document`` is of: allocator, scenario, target and heap, or function and target."""
    if "allocator" in document:
        heap = format_size(document["heap_bytes"])
        return f"{document['allocator']} {document['scenario']} on {document['target']}, heap {heap}"
    entry = (document.get("bound") or document)["entry"]
    return f"{entry} on {document['target']}"


def facts_hash(document: Mapping[str, Any]) -> str:
    """SHA-256 of all that the bound of ``document`` takes as given: flow facts, pragmas, assumptions; not where."""
    bound = document["bound"]
    told = [
        [loop["function"], loop["origin"], loop["expression"], loop["because"]]
        for loop in bound["loops"]
        if loop["origin"] != "proved"
    ]
    claims = [[claim["statement"], claim["constant"]] for claim in bound.get("flow_claims") or ()]
    assumed = [one["statement"] for one in bound["assumptions"]]
    return _digest([sorted(map(_canonical, part)) for part in (told, claims, assumed)])


def target_hash(document: Mapping[str, Any]) -> str | None:
    """SHA-256 of the target's numbers in ``document``, or None where they are not in it."""
    configuration = document.get("target_configuration")
    return _digest(configuration) if configuration else None


def baseline_document(entries: Iterable[BaselineEntry]) -> dict[str, object]:
    """The document ``wcet-probe-baseline`` of ``entries``, sorted by target and name."""
    rows = [asdict(one) for one in sorted(entries, key=lambda one: (one.target, one.name))]
    for row in rows:
        row["bound"] = {unit: row.pop(unit) for unit in ("instructions", "cycles")}
    return {"format": FORMAT, "version": 1, "tool": {"name": "wcet-probe", "version": __version__}, "entries": rows}


def baseline_entries(document: object, file: Path) -> tuple[BaselineEntry, ...]:
    """The entries of the baseline ``document``, which was read from ``file``.

    Raises:
        UsageError: it is no baseline of a version that is known.
    """
    if isinstance(document, dict) and (document.get("format"), document.get("version")) == (FORMAT, 1):
        names = [field.name for field in fields(BaselineEntry)]
        with suppress(KeyError, TypeError, AttributeError):
            rows = [{**row, **row["bound"]} for row in document["entries"]]
            if all(_is_as_said(row, name) for row in rows for name in names):
                return tuple(BaselineEntry(**{name: row[name] for name in names}) for row in rows)
    raise UsageError(f"{file} is no baseline of version 1; write it anew with wcet-probe check --save-baseline.")


def _is_as_said(row: Mapping[str, Any], name: str) -> bool:
    """Whether the field ``name`` of an entry has its type."""
    if name in {"instructions", "cycles"}:
        return type(row[name]) is int
    return isinstance(row[name], str) or (row[name] is None and name in {"compiler", "target_sha256"})


def baseline_file(name: str, folder: Path) -> Path:
    """Where the baseline ``name`` is kept beside a configuration in ``folder``.

    Raises:
        UsageError: the name has other characters than letters, digits, ``.``, ``_`` and ``-``.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} is no name of a baseline: use letters, digits, '.', '_' and '-', such as main.")
    return folder / FOLDER / f"{name}.json"


def load_baseline(name: str, folder: Path) -> tuple[BaselineEntry, ...]:
    """The entries of the baseline ``name`` beside a configuration in ``folder``.

    Raises:
        UsageError: there is no such baseline, or the file is none.
    """
    file = baseline_file(name, folder)
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UsageError(f"no baseline {name}: {file} does not exist; write it with --save-baseline {name}.") from error
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{file} cannot be read as JSON; write it anew with --save-baseline {name}.") from error
    return baseline_entries(document, file)


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _digest(value: object) -> str:
    return sha256(_canonical(value).encode()).hexdigest()
