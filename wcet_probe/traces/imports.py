"""Other logs as traces: CSV with the columns of a trace, what glibc's mtrace writes, and what the recorder wrote."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from wcet_probe.errors import UsageError
from wcet_probe.traces.file import is_trace_file, read_trace
from wcet_probe.traces.operations import KINDS, TraceRow, checked

_RECORD = np.dtype(
    [(name, "<u8") for name in ("number", "time_ns", "address", "size_bytes")]
    + [(name, "<u4") for name in ("alignment_bytes", "thread", "kind", "unused")]
)
_MALLOC, _FREE, _CALLOC, _MEMALIGN, _REALLOC_OLD, _REALLOC_NEW, _END = range(1, 8)
_KIND_OF = {_MALLOC: "malloc", _CALLOC: "calloc", _MEMALIGN: "memalign"}
_MTRACE = re.compile(r"(?:@ .* )?([-+<>!]) (0x[0-9a-f]+|\(nil\)|0)(?: (0x[0-9a-f]+|0))?$")
_RECORDS_AT_ONCE = 1 << 14


class _Blocks:
    """Blocks by the address at which they are held; numbers are given once."""

    def __init__(self, place: str) -> None:
        self._place, self._next = place, 1
        self._held: dict[int, int] = {}
        self._freed: set[int] = set()

    def allocate(self, address: int) -> int:
        block = self._held[address] = self._next
        self._next += 1
        self._freed.discard(address)
        return block

    def release(self, address: int, line: int) -> int:
        block = self._held.pop(address, None)
        if block is None:
            why = "frees twice" if address in self._freed else "frees what was never allocated"
            raise UsageError(f"line {line} of {self._place} {why}, {address:#x}; record or correct the log.")
        self._freed.add(address)
        return block

    def knows(self, address: int) -> bool:
        return address in self._held


def rows_of(path: Path) -> Iterator[TraceRow]:
    """The rows of a trace, of a CSV file with its columns, or of a log of mtrace, by what the file begins with.

    Raises:
        UsageError: no such file, or one that is none of these.
    """
    if not path.is_file():
        raise UsageError(f"there is no file {path}; name a trace, a CSV file or a log of mtrace.")
    if is_trace_file(path):
        return read_trace(path)
    with path.open(encoding="utf-8", errors="replace") as file:
        first = file.readline()
    return read_mtrace(path) if first.startswith(("=", "@", "+", "-", "<", ">")) else read_csv(path)


def read_mtrace(path: Path) -> Iterator[TraceRow]:
    """The rows of a log of glibc's mtrace (glibc manual, "Allocation Debugging").

    Raises:
        UsageError: a line that is none of mtrace, cut off, or frees what is not held; the message names it.
    """
    blocks, old = _Blocks(path.name), None
    with path.open(encoding="utf-8", errors="replace") as file:
        for line, text in enumerate(file, 1):
            if text.startswith("="):
                continue
            found = _MTRACE.match(text.rstrip("\n"))
            if found is None or not text.endswith("\n"):
                why = "is cut off" if not text.endswith("\n") else "is no line of mtrace"
                raise UsageError(f"line {line} of {path.name} {why}; record the log again.")
            sign, address = found[1], 0 if found[2] == "(nil)" else int(found[2], 16)
            size_bytes = int(found[3] or "0", 16)
            if sign == "+":
                yield TraceRow("malloc", blocks.allocate(address), size_bytes)
            elif sign == "-" and address:
                yield TraceRow("free", blocks.release(address, line))
            elif sign == "<":
                old = blocks.release(address, line)
            elif sign == ">":
                yield TraceRow("realloc", old or 0, size_bytes, new_block=blocks.allocate(address))
                old = None


def read_csv(path: Path) -> Iterator[TraceRow]:
    """The rows of a CSV file with a header; ``kind`` and ``block`` must be there, other columns of a trace may be.

    Raises:
        UsageError: a column or a value that a trace cannot have, or a line that frees what is not held; the message
            names the line.
    """
    line = 0

    def rows() -> Iterator[TraceRow]:
        nonlocal line
        for number, row in _csv_rows(path):
            line = number
            yield row

    yield from checked(rows(), lambda _: f"line {line} of {path.name}")


def _csv_rows(path: Path) -> Iterator[tuple[int, TraceRow]]:
    """With their lines."""
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        reader = csv.DictReader(file)
        names = set(reader.fieldnames or ())
        if not {"kind", "block"} <= names <= set(TraceRow._fields):
            columns = ", ".join(TraceRow._fields)
            raise UsageError(f"{path.name} has not the columns of a trace; begin it with a line of: {columns}.")
        for row in reader:
            try:
                numbers = {name: int(value) for name, value in row.items() if name != "kind"}
            except (TypeError, ValueError):
                where = f"line {reader.line_num} of {path.name}"
                raise UsageError(f"{where} is cut off or has no number; correct it.") from None
            if row["kind"] not in KINDS or any(not 0 <= number < 1 << 64 for number in numbers.values()):
                raise UsageError(f"line {reader.line_num} of {path.name} is no operation; kinds: {', '.join(KINDS)}.")
            yield reader.line_num, TraceRow(kind=row["kind"], **numbers)


def read_recording(path: Path, tell: Callable[[str], None] = lambda _: None) -> Iterator[TraceRow]:
    """The rows of what the recorder wrote, in the order of their numbers.

    Blocks that were given out before the recorder began are left out where they are freed. ``tell`` is told where the
    program ended without its exit handlers: then each thread's last operations, 4,096 at most, are missing.
    """
    blocks, ended, moving = _Blocks(path.name), False, dict[int, int]()
    for _, time_ns, address, size_bytes, alignment_bytes, thread, kind, _ in _in_order(path):
        if kind in _KIND_OF:
            yield TraceRow(_KIND_OF[kind], blocks.allocate(address), size_bytes, alignment_bytes, time_ns=time_ns)
        elif kind == _FREE and blocks.knows(address):
            yield TraceRow("free", blocks.release(address, 0), time_ns=time_ns)
        elif kind == _REALLOC_OLD:
            moving[thread] = blocks.release(address, 0) if blocks.knows(address) else 0
        elif kind == _REALLOC_NEW:
            new = blocks.allocate(address) if address else 0
            yield TraceRow("realloc", moving.pop(thread, 0), size_bytes, new_block=new, time_ns=time_ns)
        ended = ended or kind == _END
    if not ended:
        tell("the program ended without its exit handlers; the last operations of each thread may be missing")


def _in_order(path: Path) -> Iterator[tuple[int, ...]]:
    """The records by their numbers; each thread wrote its own, a full buffer at a time."""
    whole = path.stat().st_size // _RECORD.itemsize
    if not whole:
        return
    records = np.memmap(path, dtype=_RECORD, mode="r", shape=(whole,))
    order = np.argsort(records["number"], kind="stable")
    for start in range(0, whole, _RECORDS_AT_ONCE):
        yield from records[order[start : start + _RECORDS_AT_ONCE]].tolist()
