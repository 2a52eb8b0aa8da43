"""JSON that somebody gave: one reading of it, or a refusal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from wcet_probe.errors import UsageError

MOST_MIB = 512
"""A larger document is not read: it may have no end."""


def parse_json(data: str | bytes) -> Any:  # noqa: ANN401  (JSON)
    """What the JSON text ``data`` says; an object that has a key twice is refused, as it says two things.

    Raises:
        ValueError: it is no such text, or is nested too deeply.
    """
    try:
        return json.loads(data, object_pairs_hook=_object)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def read_json(file: Path, wanted: str = "what --json printed") -> Any:  # noqa: ANN401  (JSON)
    """What the document in ``file`` says, of which it is told in an error what is ``wanted``.

    Raises:
        UsageError: it cannot be read, or is no such text.
    """
    try:
        parts = []
        with file.open("rb") as opened:
            while part := opened.read(1 << 20):
                parts.append(part)
                if len(parts) > MOST_MIB:
                    raise UsageError(f"{file} has more than {MOST_MIB} MiB, or no end; give {wanted}.")
        return parse_json(b"".join(parts))
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}; name a file that you can read.") from error
    except ValueError as error:
        reason = str(error).partition(";")[0]
        raise UsageError(f"{file} is no JSON ({reason}); give it {wanted}.") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object has a key twice")
    return found
