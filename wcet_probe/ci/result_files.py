"""Reading results that somebody has: one, several, or the entries of a baseline."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from wcet_probe.ci.baseline import FORMAT, baseline_entries
from wcet_probe.errors import UsageError
from wcet_probe.json_text import read_json

_RESULTS = ("wcet-probe-result", "wcet-probe-bound")
_MOST_SHOWN = 200


def read_documents(file: Path, *, check: Callable[[object], None], baselines: bool = False) -> list[dict[str, Any]]:
    """The results in ``file``, or, if ``baselines`` are welcome, the entries of a baseline in the shape of results.

    Parameters:
        file: with a JSON document.
        check: raises UsageError if a result is not as its format says; nobody reads it before.
        baselines: whether they are welcome.

    Raises:
        UsageError: it cannot be read, or holds something else.
    """
    document = read_json(file)
    if baselines and isinstance(document, dict) and document.get("format") == FORMAT:
        tool = document.get("tool")
        return [{**asdict(one), "tool": tool} for one in baseline_entries(document, file)]
    several = isinstance(document, dict) and document.get("format") == "wcet-probe-results"
    results = document.get("results") if several else [document]
    if isinstance(results, list) and results and all(_is_result(one) for one in results):
        for one in results:
            check(one)
        return results
    wanted = "results, bounds or a baseline" if baselines else "results or bounds"
    raise UsageError(f"{file} holds no {wanted} of version 1; give it what --json printed.")


@contextmanager
def refusing_damage() -> Iterator[None]:
    """What is done with documents that somebody gave: where a key is missing or wrong, that is said of them.

    Their types are held against the schema before. Keys may be missing: results of other versions are compared as well.

    Raises:
        UsageError: a document lacks a key, or has something else under it.
    """
    try:
        yield
    except (AttributeError, TypeError, ValueError, LookupError, ArithmeticError, RecursionError) as error:
        shown = " ".join(repr(error)[:_MOST_SHOWN].split())
        raise UsageError(f"a given document is damaged ({shown}); give what --json printed, unchanged.") from error


def _is_result(document: object) -> bool:
    return isinstance(document, dict) and document.get("format") in _RESULTS and document.get("version") == 1
