"""Soundness bugs put into the analyzer, one at a time: which wrong certificates does the checker refuse?

    python -m tests.certificate.injected_bugs [NAME ...]

Each bug is a change of one place of the analyzer's source, made when the module is imported; the files stay as they
are. Small programs are bounded without and with it. A bound that is lower than without the bug is a wrong certificate,
which the checker, whose code is not changed, must refuse; or it is *seen*: a line that is ok of the true certificate
is not checked of the wrong one.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.source_change import SourceChange, change_source

ROOT = Path(__file__).parents[2]
PACKAGE = "wcet_probe.analyzer."


_ROWS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))["bug"]
BUGS: Mapping[str, SourceChange] = {
    one["name"]: SourceChange(PACKAGE + one["module"], one["old"], one["new"]) for one in _ROWS
}
TARGET_OF: Mapping[str, str] = {one["name"]: one.get("target", "cortex-m4") for one in _ROWS}
"""The core on which the programs reach a bug."""
OF_TOLD = frozenset(one["name"] for one in _ROWS if one.get("told"))
"""Bugs of what is told and assumed, which have programs of their own: no trial run tells anything of these."""

PROGRAMS = {
    name: Path(__file__).with_name(f"{name}.c")
    for name in ("injected_bugs", "injected_bugs_caches", "injected_bugs_told")
}
TOLD = "injected_bugs_told"
"""Its bounds rest on facts, on pragmas, and on registers that stay where they are saved."""
OF_TARGET = {
    "cortex-m4": ("injected_bugs", TOLD),
    "cortex-m7": ("injected_bugs", "injected_bugs_caches"),
    "mpc603e": ("injected_bugs_caches",),
}
"""The programs that are bounded for each core: those of loops and values, those of caches, those that are told of."""

_ENTRY = re.compile(r"^(?:int|unsigned) (\w+)\([^;{\n]*\)(?: \{|\n\{| ASM)", re.MULTILINE)
"""The definition of a function, which stands at the start of a line and is not static."""


def _images(folder: Path) -> Iterator[tuple[str, str, Path]]:
    for target, names in OF_TARGET.items():
        for name in names:
            yield target, name, folder / f"{name} {target}.elf"


def build(folder: Path) -> None:
    """Build the programs into ``folder``."""
    from tests.support import image_of
    from wcet_probe.catalog.lookup import load_target

    for target, name, file in _images(folder):
        text = PROGRAMS[name].read_text("utf-8")
        file.write_bytes(image_of(text, load_target(target), ".c").elf)
        if name == TOLD:
            (folder / "guest.c").write_text(text, "utf-8")  # as the line table calls it


def bounds(folder: Path, name: str | None, wanted: Mapping[str, list]) -> dict[str, object]:
    """Bound all programs in this process, with the bug ``name``; a bound below ``wanted`` is given to the checker."""
    if name is not None:
        change_source(BUGS[name])
    from wcet_probe.answer.firmware.firmware import FirmwareRequest, bound_firmware
    from wcet_probe.catalog.lookup import load_target
    from wcet_probe.errors import VerificationError, WcetProbeError
    from wcet_probe.evidence.checking import check_file_result
    from wcet_probe.reports.formats.bound_document import firmware_document

    found: dict[str, object] = {}
    for target, program, file in _images(folder):
        entries = _ENTRY.findall(PROGRAMS[program].read_text("utf-8"))
        is_told = program == TOLD
        sources = [folder] if is_told else []
        assume = ("saved-registers",) if is_told else ()
        is_meant = name is None or (target == TARGET_OF[name] and is_told == (name in OF_TOLD))
        for entry in entries if is_meant else ():
            key = f"{target} {entry}"
            try:
                core = load_target(target)
                answer = bound_firmware(FirmwareRequest(file, entry, core, [], sources, {}, assume=assume))
            except WcetProbeError as error:
                found[key] = f"no bound: {error}"[:160]
                continue
            except Exception as error:  # noqa: BLE001  (a bug was put in: whatever it breaks)
                found[key] = f"broken: {error!r}"[:160]
                continue
            numbers = [answer.bound.instructions, answer.bound.cycles, len(answer.bound.assumptions)]
            before = wanted.get(key)
            if before is not None and all(now >= then for now, then in zip(numbers, before, strict=False)):
                found[key] = numbers
                continue
            document = json.loads(json.dumps(firmware_document(answer)))
            try:
                data = json.dumps(document).encode(), file.read_bytes()
                checked, _ = check_file_result(document, *data, facts=[], source_dirs=sources)
            except VerificationError as error:
                found[key] = f"refused: {error}"[:200]
                continue
            named = [one.check for one in checked.findings if one.verdict != "ok"]
            if before is None:
                found[key] = [*numbers, named]
            elif set(named) - set(before[3]):
                found[key] = f"seen: {', '.join(named)}"
            else:
                found[key] = f"not checked: {', '.join(named)}" if named else f"ACCEPTED: {numbers} for {before}"
    return found


def run(folder: Path, name: str | None, wanted: Mapping[str, list]) -> dict[str, object]:
    """`bounds` in a process of its own."""
    command = [sys.executable, "-m", "tests.certificate.injected_bugs", "--one", str(folder), name or ""]
    done = subprocess.run(command, cwd=ROOT, input=json.dumps(wanted), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr[-2000:]}")
    return dict(json.loads(done.stdout))


def verdict(true: Mapping[str, object], found: Mapping[str, object]) -> str:
    """What the checker made of the wrong certificates of one bug, in a word; the worst of them decides."""
    texts = [str(one) for key, one in found.items() if isinstance(one, str) and isinstance(true[key], list)]
    for word in ("ACCEPTED", "not checked", "seen", "refused"):
        if any(one.startswith(word) for one in texts):
            return word
    return "no certificate" if texts else "no effect"


WORDS = ("refused", "seen", "not checked", "ACCEPTED", "no bound", "broken")


def tell(line: str) -> None:
    """One line of the answer, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    """Run the bugs that are named, or all; 1 if a wrong certificate is accepted."""
    if sys.argv[1:2] == ["--one"]:
        sys.stdout.write(json.dumps(bounds(Path(sys.argv[2]), sys.argv[3] or None, json.load(sys.stdin))))
        return 0
    accepted = 0
    with TemporaryDirectory() as place:
        folder = Path(place)
        build(folder)
        true = run(folder, None, {})
        wanted = {key: one for key, one in true.items() if isinstance(one, list)}
        tell(f"{len(wanted)} of {len(true)} programs have a bound")
        for name in sys.argv[1:] or BUGS:
            found = run(folder, name, wanted)
            word = verdict(true, found)
            accepted += word == "ACCEPTED"
            texts = {key: str(one) for key, one in found.items() if isinstance(one, str) and key in wanted}
            count = Counter(next(word for word in WORDS if one.startswith(word)) for one in texts.values())
            tell(f"{word:14} {name}: {', '.join(f'{number} {each}' for each, number in count.items())}")
            for key, one in texts.items() if os.environ.get("INJECTED_BUGS_TELL") else ():
                tell(f"    {key}: {one}")
    return 1 if accepted else 0


if __name__ == "__main__":
    sys.exit(main())
