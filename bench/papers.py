"""The claims and the picture of each page in docs/explanation/papers, from what ``wcet-probe reproduce --json`` prints.

``python -m bench.papers P02.json C06.json …`` replaces what stands between the two marks of each page.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from wcet_probe.output_files import write_whole
from wcet_probe.reports.pictures.exhibits import exhibit_picture

HOME = Path(__file__).parents[1] / "docs" / "explanation" / "papers"
BEGIN, END = "<!-- claims: python -m bench.papers -->", "<!-- end of claims -->"
PICTURES = {"P02": "F1", "C06": "T3", "M06": "F3", "L11": "T2", "H11": "F8"}


def claims(document: dict) -> str:
    """The table of claims."""
    scale = "`--quick`" if document["quick"] else "published scale"
    head = f"On `{document['target']}`, {scale}:\n\n| | claimed | verdict | found |\n|---|---|---|---|\n"
    rows = (
        f"| {one['exhibit']} | {text(one['name'])} | {one['verdict']} | {text(one['why'])} |"
        for one in document["shapes"]
    )
    return head + "\n".join(rows)


def text(words: str) -> str:
    """As a cell of a table."""
    return words.replace("|", "\\|").replace("<", "&lt;").replace("_", "\\_").replace("*", "\\*")


def main(files: list[str]) -> None:
    """Write the pages of these documents."""
    for file in files:
        document = json.loads(Path(file).read_text("utf-8"))
        name = document["paper"]
        page = HOME / f"{name.lower()}.md"
        before, _, rest = page.read_text("utf-8").partition(BEGIN)
        write_whole(page, f"{before}{BEGIN}\n{claims(document)}\n{END}{rest.partition(END)[2]}")
        drawn = next(one for one in document["exhibits"] if one["name"] == PICTURES[name])
        write_whole(HOME / f"{name}-{drawn['name']}.svg", exhibit_picture(drawn, name) or "")


if __name__ == "__main__":
    main(sys.argv[1:])
