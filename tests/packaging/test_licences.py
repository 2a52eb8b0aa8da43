"""docs/explanation/licences.md names every dependency with the licence that its metadata state."""

import re
from importlib.metadata import distribution
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| ([\w.-]+) \| [^|]* \| [^|]* \| ([^|]*) \|$", re.MULTILINE)


def locked(file: str) -> set[str]:
    text = (ROOT / "requirements" / file).read_text(encoding="utf-8")
    lines = re.findall(r"^([\w.-]+)==[^ ]+(.*)", text, re.MULTILINE)
    return {name for name, marker in lines if "win32" not in marker}


def stated(name: str) -> str:
    """The licence by the package's own metadata, in the shortest form that they offer."""
    metadata = distribution(name).metadata
    classifiers = [
        text.split(" :: ")[-1] for text in metadata.get_all("Classifier", []) if text.startswith("License ::")
    ]
    text = metadata.get("License-Expression") or metadata.get("License")
    return " / ".join(text.split(" :: ")[-1] for text in classifiers) if text is None or "\n" in text else text


def table() -> dict[str, str]:
    return dict(ROW.findall((ROOT / "docs/explanation/licences.md").read_text(encoding="utf-8")))


def test_every_locked_package_is_listed():
    assert set(table()) - {"package"} == locked("dev.txt") | locked("lock.txt")


@pytest.mark.parametrize("name", sorted(locked("dev.txt")))
def test_the_table_says_what_the_metadata_say(name):
    assert table()[name].strip() == (stated(name) or "nothing")


def test_the_licence_texts_are_complete():
    assert "GNU GENERAL PUBLIC LICENSE\n                       Version 2, June 1991" in (ROOT / "LICENSE").read_text()
    assert (ROOT / "LICENSES/0BSD.txt").read_text().startswith("BSD Zero Clause License")
