"""Results of campaigns in a folder of Parquet files, a row each: appended as they come, and queried as one table.

A row is written to a file beside its place, forced to the disk, and renamed to the name that its key gives: killed at
any moment, a campaign has each row whole or not at all, and what is measured again takes the same place, so that none
is there twice. DuckDB, pandas and others read the folder while a campaign runs:
``SELECT allocator, what, malloc_most FROM 'store/*.parquet' WHERE kind = 'run'``.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from wcet_probe.answer.papers.dependencies import identity_of
from wcet_probe.answer.papers.points import Document, Point, Settings, run_of, text_of
from wcet_probe.errors import WcetProbeError

_COLUMNS = {
    "key": "VARCHAR",
    "target": "VARCHAR",
    "kind": "VARCHAR",
    "allocator": "VARCHAR",
    "preset": "VARCHAR",
    "parameters": "VARCHAR",
    "heap_bytes": "UBIGINT",
    "what": "VARCHAR",
    "arguments": "VARCHAR",
    "error": "VARCHAR",
    "instructions": "UBIGINT",
    "cycles": "UBIGINT",
    "operations": "UBIGINT",
    "refused": "UBIGINT",
    "malloc_mean": "DOUBLE",
    "malloc_most": "UBIGINT",
    "free_mean": "DOUBLE",
    "free_most": "UBIGINT",
    "peak_live_bytes": "UBIGINT",
    "peak_reached_bytes": "UBIGINT",
    "point": "VARCHAR",
    "document": "VARCHAR",
}


@dataclass(frozen=True, slots=True)
class Result:
    """What a point gave: a document, or the reason why there is none."""

    document: Document | None
    error: str


@dataclass(frozen=True, slots=True)
class ResultStore:
    """A folder of results of one core and compiler.

    A result is found again while nothing that it depends on has changed (`wcet_probe.answer.papers.dependencies`).
    """

    home: Path
    settings: Settings

    def get(self, point: Point) -> Result | None:
        """What is known of ``point``; None where it was not measured, or failed, which may be another time's fault.

        Raises:
            WcetProbeError: the store cannot be read.
        """
        file = self._file(point)
        if not file.is_file():
            return None
        try:
            with duckdb.connect() as database:
                rows = database.execute("SELECT error, document FROM read_parquet(?)", [str(file)]).fetchall()
        except duckdb.Error as error:
            raise _unusable(file, error) from error
        ((reason, document),) = rows
        return None if reason else Result(json.loads(document), "")

    def put(self, point: Point, result: Result) -> None:
        """Keep ``result``, in the place of an earlier one of the same point.

        Raises:
            WcetProbeError: the store cannot be written.
        """
        file, row = self._file(point), dict.fromkeys(_COLUMNS) | self._row(point, result)
        try:
            self.home.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=self.home, prefix=".new-") as name:
                new = Path(name, "row.parquet")
                with duckdb.connect() as database:
                    columns = ", ".join(f"CAST(? AS {kind}) AS {name}" for name, kind in _COLUMNS.items())
                    database.execute(f"CREATE TABLE result AS SELECT {columns}", list(row.values()))
                    target = str(new).replace("'", "''")
                    database.execute(f"COPY result TO '{target}' (FORMAT parquet, COMPRESSION zstd)")
                _sync(new)
                os.replace(new, file)  # noqa: PTH105  (across a rename the old row is never missing)
                _sync(self.home)
        except (OSError, duckdb.Error) as error:
            raise _unusable(self.home, error) from error

    def rows(self) -> Iterator[Mapping[str, Any]]:
        """All rows of the folder, of whatever core and version, sorted by their points; without the documents.

        Raises:
            WcetProbeError: the store cannot be read.
        """
        names = [name for name in _COLUMNS if name != "document"]
        if not any(self.home.glob("*.parquet")):
            return
        try:
            with duckdb.connect() as database:
                files = str(self.home / "*.parquet")
                order = f"SELECT {', '.join(names)} FROM read_parquet(?) ORDER BY target, point, key"  # noqa: S608  (ours)
                found = database.execute(order, [files])
                while part := found.fetchmany(1 << 10):
                    yield from (dict(zip(names, row, strict=True)) for row in part)
        except duckdb.Error as error:
            raise _unusable(self.home, error) from error

    def _file(self, point: Point) -> Path:
        return self.home / f"{self._key(point)}.parquet"

    def _key(self, point: Point) -> str:
        text = f"{text_of(point)}\n{identity_of(point, self.settings)}"
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def _row(self, point: Point, result: Result) -> dict[str, object]:
        row: dict[str, object] = {
            "key": self._key(point),
            "target": self.settings.target.name,
            "kind": point.kind,
            "allocator": point.allocator,
            "preset": point.preset,
            "parameters": json.dumps(dict(point.values), sort_keys=True),
            "heap_bytes": point.heap_bytes,
            "what": point.what,
            "arguments": json.dumps(point.arguments),
            "error": result.error,
            "point": text_of(point),
        }
        if result.document is None:
            return row
        row["document"] = json.dumps(result.document, sort_keys=True)
        row |= {name: result.document[name] for name in _COLUMNS if name in result.document}
        if point.kind == "run":
            run = run_of(result.document)
            for role in ("malloc", "free"):
                found = run.distributions[role, "instructions"]
                row |= {f"{role}_mean": float(found.mean), f"{role}_most": found.most}
        return row


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unusable(path: Path, error: Exception) -> WcetProbeError:
    return WcetProbeError(
        f"the store of results {path} cannot be used: {str(error).splitlines()[0]}; name another with --store."
    )
