"""Are the results of two checkouts the same bytes? For changes that must change none: moves, names, layouts.

Run with ``python tools/same_results.py BEFORE [AFTER] [NAME...]``: two checkouts with their environments, AFTER being
this one if it is not given, and the allocators to ask of, all without names. Each of them is asked for its worst states
on a core without and on one with caches, by ``wcet-probe NAME --json``; what a command writes to stderr is no result.
Exit code 1 if a result, or the exit code of a command, differs.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

TARGETS = ("cortex-m4", "mpc603e")
HEAP = "16KiB"
HERE = Path(__file__).parents[1]
Answer = tuple[int, bytes]


def commands(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """What is asked of each checkout."""
    for name in names:
        yield from ((name, "--target", target, "--heap", HEAP, "--json") for target in TARGETS)


def answer(checkout: Path, command: Sequence[str]) -> Answer:
    """Exit code and stdout of a command of a checkout."""
    asked = [str(checkout.resolve() / ".venv" / "bin" / "wcet-probe"), *command]
    done = subprocess.run(asked, capture_output=True, cwd=checkout, check=False)
    return done.returncode, done.stdout


def differing(before: Path, after: Path, names: Sequence[str]) -> Iterator[str]:
    """Of each command a line; it begins with "differs" if the answers do."""
    for command in commands(names):
        one, other = answer(before, command), answer(after, command)
        same = "same" if one == other else "differs"
        yield f"{same}: {' '.join(command)} (exit {one[0]}, {len(one[1]):,} bytes)"


def main(arguments: Sequence[str]) -> int:
    """Compare, a line for each command."""
    folders = [Path(one) for one in arguments if (Path(one) / "allocators").is_dir()]
    names = [one for one in arguments if not (Path(one) / "allocators").is_dir()]
    before, after = (*folders, HERE)[:2]
    own = sorted(path.parent.name for path in (after / "allocators").glob("*/manifest.toml"))
    found = False
    for line in differing(before, after, names or own):
        print(line, flush=True)
        found |= line.startswith("differs")
    return int(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
