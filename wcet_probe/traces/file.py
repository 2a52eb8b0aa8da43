"""A trace as a Parquet file: columns, compressed, read and written in parts, so that its length costs no memory.

The columns are the fields of `TraceRow`. DuckDB reads and writes the file, and may query it:
``SELECT kind, count(*), avg(size_bytes) FROM 'trace.parquet' GROUP BY kind``. No other module imports it.
"""

from __future__ import annotations

import csv
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import duckdb

from wcet_probe.errors import UsageError, WcetProbeError
from wcet_probe.traces.operations import KINDS, TraceRow

_ROWS_AT_ONCE = 1 << 16
_TYPES = {
    "kind": f"ENUM({', '.join(repr(kind) for kind in KINDS)})",
    "block": "UBIGINT",
    "size_bytes": "UBIGINT",
    "alignment_bytes": "UINTEGER",
    "new_block": "UBIGINT",
    "time_ns": "UBIGINT",
}
_MAGIC = b"PAR1"


def is_trace_file(path: Path) -> bool:
    """Whether ``path`` begins as a Parquet file does."""
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def read_trace(path: Path) -> Iterator[TraceRow]:
    """The rows of a trace in order, read in parts.

    Raises:
        UsageError: no such file, one that is cut off, or one without the columns of a trace.
    """
    if not path.is_file():
        raise UsageError(f"there is no trace {path}; record one: wcet-probe record -o {path.name} -- PROGRAM.")
    names = ", ".join(_TYPES)
    try:
        with duckdb.connect() as database:
            found = database.execute(f"SELECT {names} FROM read_parquet(?)", [str(path)])  # noqa: S608  (our own names)
            while rows := found.fetchmany(_ROWS_AT_ONCE):
                yield from map(TraceRow._make, rows)
    except duckdb.Error as error:
        message = f"{path} is no whole trace: {str(error).splitlines()[0]}; record or import it again."
        raise UsageError(message) from error


def write_trace(path: Path, rows: Iterable[TraceRow]) -> int:
    """Write ``rows`` to ``path``, which is replaced as a whole or not at all; how many there are.

    Raises:
        WcetProbeError: the file cannot be written.
    """
    try:
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".wcet-probe-") as folder:
            text, new = Path(folder, "rows.csv"), Path(folder, "trace.parquet")
            with text.open("w", encoding="ascii", newline="") as file:
                writer = csv.writer(file)
                count = 0
                for count, row in enumerate(rows, 1):  # noqa: B007  (the last number is the result)
                    writer.writerow(row)
            columns = ", ".join(f"'{name}': '{_quoted(kind)}'" for name, kind in _TYPES.items())
            with duckdb.connect() as database:
                database.execute("SET threads = 1")
                rows_of = f"read_csv({_literal(text)}, header = false, auto_detect = false, columns = {{{columns}}})"
                form = "(FORMAT parquet, COMPRESSION zstd)"
                database.execute(f"COPY (SELECT * FROM {rows_of}) TO {_literal(new)} {form}")  # noqa: S608  (quoted)
            os.replace(new, path)  # noqa: PTH105  (across a rename the old file is never missing)
    except (OSError, duckdb.Error) as error:
        raise WcetProbeError(
            f"cannot write {path}: {str(error).splitlines()[0]}; free room or name another."
        ) from error
    return count


def _quoted(text: str) -> str:
    return text.replace("'", "''")


def _literal(path: Path) -> str:
    return f"'{_quoted(str(path))}'"
