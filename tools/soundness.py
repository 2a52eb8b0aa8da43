"""Run the long campaigns in slices that can be stopped and resumed: soundness.py [--slices N].

They are the tests marked slow, and random tests with more examples than the ordinary run takes.

A tally in build/soundness.json tells of each test whether it passed; it is written anew after each slice, and after
Ctrl-C, with what has ended until then. A test that has passed is not repeated for the same files, so that a run that
was stopped goes on where it was. A change of any file of the package, the allocators, the targets or the tests begins a
new tally.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parent.parent
TALLY = ROOT / "build" / "soundness.json"
RESULTS = ROOT / "build" / "soundness-slice.xml"
PYTEST = (sys.executable, "-m", "pytest", "-m", "slow or hypothesis")
"""What is marked, and all random tests, of which the ordinary run takes few examples."""
PROFILE = {"HYPOTHESIS_PROFILE": "campaign"}
ENDED = re.compile(r"\[gw\d+\] .*?(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS) (.*\S)")
STOPPED = 130
"""The exit code of what Ctrl-C has ended, by the convention of shells."""
FOLDERS = ("allocators", "analyzer", "emu", "reports", "scenarios", "targets", "tests", "wcet_probe")


def tree_digest(root: Path) -> str:
    """SHA-256 of the names and contents of all files that a campaign speaks of."""
    digest = hashlib.sha256()
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                content = hashlib.sha256(path.read_bytes()).hexdigest()
                digest.update(f"{path.relative_to(root)} {content}\n".encode())
    return digest.hexdigest()


def load_tally(path: Path, digest: str) -> dict[str, str]:
    """Outcomes by test; none where the tally is missing, unreadable, or of other files."""
    try:
        found = json.loads(path.read_text("utf-8"))
        return dict(found["outcomes"]) if found["tree"] == digest else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def save_tally(path: Path, digest: str, outcomes: dict[str, str]) -> None:
    """Write the tally beside its place, then rename, so that it is never half there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text(json.dumps({"tree": digest, "outcomes": outcomes}, indent=1, sort_keys=True) + "\n", "utf-8")
    new.replace(path)


def slices(tests: Sequence[str], outcomes: dict[str, str], size: int) -> Iterator[list[str]]:
    """The tests that have not passed yet, ``size`` at a time, in the order of collection."""
    left = [test for test in tests if outcomes.get(test) not in {"passed", "skipped"}]
    yield from (left[start : start + size] for start in range(0, len(left), size))


def outcomes_of(results: Path, tests: Sequence[str]) -> dict[str, str]:
    """What a JUnit file tells of ``tests``; one that it does not tell of has not ended, nor any where there is no file.

    A case's class is the file's path with dots, and the test's class behind it; so is the test's name in the tally.
    """
    told: dict[str, str] = {}
    cases = ET.parse(results).iter("testcase") if results.exists() else ()  # noqa: S314  (pytest has just written it)
    for case in cases:
        kinds = {child.tag for child in case}
        outcome = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        told[f"{case.get('classname')}.{case.get('name')}"] = outcome
    return {
        test: told.get(test.replace(".py::", ".").replace("/", ".").replace("::", "."), "not ended") for test in tests
    }


def collected(only: str) -> list[str]:
    """The campaigns whose name holds ``only``.

    Raises:
        SystemExit: a test file could not be read, so that some would be left out, or there are none.
    """
    environment = os.environ | PROFILE
    done = subprocess.run(
        [*PYTEST, "--collect-only", "-q"], cwd=ROOT, check=False, capture_output=True, text=True, env=environment
    )
    tests = [line for line in done.stdout.splitlines() if "::" in line and only in line]
    if done.returncode:
        raise SystemExit(f"{done.stdout[-2000:]}\nnot all campaigns could be collected; mend what is told above")
    if not tests:
        raise SystemExit(f"no campaign has {only!r} in its name; see pytest -m slow --collect-only")
    return tests


def run(chosen: Sequence[str]) -> tuple[str, bool]:
    """Run a slice, and tell of each test when it has ended; what pytest said, and whether it was stopped by Ctrl-C."""
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.unlink(missing_ok=True)
    command = [*PYTEST, "-v", "-n", "2", f"--junitxml={RESULTS}", *chosen]
    said: list[str] = []
    stopped = False
    with (
        TemporaryFile("w+", encoding="utf-8") as errors,
        subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True, env=os.environ | PROFILE
        ) as child,
    ):
        while True:
            try:
                for line in child.stdout or ():
                    said.append(line)
                    if ended := ENDED.match(line):
                        print(f"  {ended[1].lower():8} {ended[2]}", flush=True)
                break
            except KeyboardInterrupt:
                # pytest has had it, too: it tells of what has ended, and then ends itself.
                stopped = True
        errors.seek(0)
        return "".join(said) + errors.read(), stopped


def main() -> int:
    """Run the slices; 0 if no test of the tally failed, 130 if they were stopped."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--slices", type=int, default=None, help="stop after so many slices (default: all)")
    parser.add_argument("--size", type=int, default=8, help="tests of a slice (default: 8)")
    parser.add_argument("--only", default="", help="only tests whose name holds this text")
    asked = parser.parse_args()
    digest = tree_digest(ROOT)
    try:
        tests = collected(asked.only)
    except KeyboardInterrupt:
        return STOPPED
    outcomes, stopped = load_tally(TALLY, digest), False
    to_do = list(slices(tests, outcomes, asked.size))
    for number, chosen in enumerate(to_do[: asked.slices], 1):
        print(f"slice {number} of {len(to_do)}", flush=True)
        said, stopped = run(chosen)
        outcomes |= outcomes_of(RESULTS, chosen)
        save_tally(TALLY, digest, outcomes)
        if any(outcomes[test] == "failed" for test in chosen):
            print(said)
        count = Counter(outcomes.get(test, "to do") for test in tests)
        told = ", ".join(f"{count[kind]} {kind}" for kind in sorted(count))
        print(f"of {len(tests)} campaigns {told}", flush=True)
        if stopped:
            print(f"stopped; what has passed is in {TALLY.relative_to(ROOT)}, and the same command goes on from there")
            return STOPPED
    failed = [test for test in tests if outcomes.get(test) in {"failed", "not ended"}]
    print("\n".join(f"failed: {test}" for test in failed) or f"no campaign has failed; the tally is in {TALLY.name}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
