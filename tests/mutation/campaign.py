"""Mutants of domains, fixpoint, cache analyses, oracle and observer: does a test die of each?

    python -m tests.mutation.campaign [--tally FILE] [NAME ...]

Each mutant is a change of one place of the source, made when the module is imported; the files stay as they are. The
tests that concern it are run until one fails. Of each the tally keeps the test that failed, or that none did; what is
in it is not run again for the same tests. `--table` prints the table of ``docs/explanation/mutation.md`` instead.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.run_folder import RUN
from tests.source_change import SourceChange, change_source

ROOT = Path(__file__).parents[2]
TALLY = Path(__file__).with_name("tally.json")
MOST_SECONDS = 900
"""A mutant that does not end is killed by the clock, which is generous."""


@dataclass(frozen=True)
class Mutant:
    """A change, the tests that concern it, and, where no test can tell it, why it survives."""

    area: str
    name: str
    change: SourceChange
    tests: tuple[str, ...]
    survives: str


def _read() -> Mapping[str, Mutant]:
    found = {}
    for one in tomllib.loads(Path(__file__).with_name("mutants.toml").read_text("utf-8"))["mutant"]:
        change = SourceChange(one["module"], one["old"], one["new"])
        found[one["name"]] = Mutant(one["area"], one["name"], change, tuple(one["tests"]), one.get("survives", ""))
    return found


MUTANTS = _read()

# This module is also the plugin of the process that runs the tests: named there, it changes the source before pytest
# imports anything of the package.
if "WCET_PROBE_MUTANT" in os.environ and "pytest" in sys.modules:
    change_source(MUTANTS[os.environ["WCET_PROBE_MUTANT"]].change)


def run(mutant: Mutant) -> str:
    """The first test that fails with ``mutant``; empty if none does.

    Raises:
        RuntimeError: the tests could not be run.
    """
    command = [sys.executable, "-m", "pytest", "-p", "tests.mutation.campaign", "-p", "no:cacheprovider"]
    command += ["-x", "-q", "--no-header", "--tb=no", *mutant.tests]
    environment = {**os.environ, "WCET_PROBE_MUTANT": mutant.name}
    for name in ("PYTEST_XDIST_WORKER", RUN, "HYPOTHESIS_PROFILE"):  # the ordinary run has to find it
        environment.pop(name, None)
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=MOST_SECONDS
        )
    except subprocess.TimeoutExpired:
        return "no test ended"
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    if failed:
        return failed[1]
    if done.returncode:
        raise RuntimeError(f"{mutant.name}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return ""


def table(tally: Mapping[str, str]) -> str:
    """The mutants as a table in Markdown: what was changed where, and what became of it."""
    rows = ["| area | mutant | module | outcome |", "|---|---|---|---|"]
    for one in MUTANTS.values():
        killer = tally.get(one.name)
        test = (killer or "").rpartition("::")[2].partition("[")[0]
        outcome = "not run" if killer is None else f"killed by `{test}`" if killer else f"survives: {one.survives}"
        module = one.change.module.removeprefix("wcet_probe.")
        rows.append(f"| {one.area} | {one.name} | `{module}` | {outcome} |")
    return "\n".join(rows) + "\n"


def summary(tally: Mapping[str, str]) -> str:
    """How many mutants of each area were killed, in a table in Markdown."""
    rows = ["| area | mutants | killed | survive | not run |", "|---|---|---|---|---|"]
    every = Counter(one.area for one in MUTANTS.values())
    ran = Counter(one.area for one in MUTANTS.values() if one.name in tally)
    killed = Counter(one.area for one in MUTANTS.values() if tally.get(one.name))
    for area, number in (*every.items(), ("all", every.total())):
        ended, dead = (ran.total(), killed.total()) if area == "all" else (ran[area], killed[area])
        rows.append(f"| {area} | {number} | {dead} | {ended - dead} | {number - ended} |")
    return "\n".join(rows) + "\n"


def read_tally(file: Path = TALLY) -> dict[str, str]:
    """The first test that failed of each mutant that was run."""
    return dict(json.loads(file.read_text("utf-8"))) if file.exists() else {}


def main() -> int:
    """Run the mutants that are named, or those that the tally lacks; 1 if one survives without a reason."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tally", type=Path, default=TALLY, help="the file of outcomes, which is written anew")
    parser.add_argument("--table", action="store_true", help="print the tables")
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    tally = read_tally(asked.tally)
    if asked.table:
        sys.stdout.write(f"{summary(tally)}\n{table(tally)}")
        return 0
    for name in asked.names or [name for name in MUTANTS if name not in tally]:
        tally[name] = run(MUTANTS[name])
        known = {name: tally[name] for name in MUTANTS if name in tally}
        new = asked.tally.with_suffix(".new")
        new.write_text(json.dumps(known, indent=1) + "\n", "utf-8")
        new.replace(asked.tally)
        sys.stdout.write(f"{tally[name] or 'SURVIVED'}: {name}\n")
        sys.stdout.flush()
    return 1 if any(not tally[one.name] and not one.survives for one in MUTANTS.values() if one.name in tally) else 0


if __name__ == "__main__":
    sys.exit(main())
