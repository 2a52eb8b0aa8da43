"""The claims and the picture of each page in docs/explanation/papers, from what ``wcet-probe reproduce --json`` prints.

``python -m bench.papers P02.json C06.json …`` replaces what stands between the two marks of each page. More documents
of the same paper, of another core say, add the claims that come out otherwise there.
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


def claims(document: dict, others: list[dict]) -> str:
    """The table of claims, and what comes out otherwise in ``others``, of other cores say."""
    head = f"On {measured(document)}:\n\n| | claimed | verdict | found |\n|---|---|---|---|\n"
    rows = [
        f"| {one['exhibit']} | {text(one['name'])} | {one['verdict']} | {text(one['why'])} |"
        for one in document["shapes"]
    ]
    return "\n\n".join([head + "\n".join(rows), *(differences(document, other) for other in others)])


def measured(document: dict) -> str:
    """Where, and at which scale."""
    seeds = f", at most {document['most_seeds']} seed(s)" if document["most_seeds"] else ""
    return f"`{document['target']}`, {'`--quick`' if document['quick'] else 'published scale'}{seeds}"


def differences(document: dict, other: dict) -> str:
    """The claims with another verdict in ``other``; those that it does not have are left out, and counted."""
    known = {(one["exhibit"], one["name"]): one for one in document["shapes"]}
    common = [one for one in other["shapes"] if (one["exhibit"], one["name"]) in known]
    turned = [one for one in common if one["verdict"] != known[one["exhibit"], one["name"]]["verdict"]]
    head = f"On {measured(other)}, {len(common) - len(turned)} of {len(common)} claims come out the same"
    if not turned:
        return f"{head}."
    rows = (f"| {one['exhibit']} | {text(one['name'])} | {one['verdict']} | {text(one['why'])} |" for one in turned)
    return f"{head}, but\n\n| | claimed | verdict | found |\n|---|---|---|---|\n" + "\n".join(rows)


def text(words: str) -> str:
    """As a cell of a table."""
    return words.replace("|", "\\|").replace("<", "&lt;").replace("_", "\\_").replace("*", "\\*")


def main(files: list[str]) -> None:
    """Write the pages of these documents; the first of a paper is the one that is told and drawn."""
    documents: dict[str, list[dict]] = {}
    for file in files:
        document = json.loads(Path(file).read_text("utf-8"))
        documents.setdefault(document["paper"], []).append(document)
    for name, (first, *others) in documents.items():
        page = HOME / f"{name.lower()}.md"
        before, _, rest = page.read_text("utf-8").partition(BEGIN)
        write_whole(page, f"{before}{BEGIN}\n{claims(first, others)}\n{END}{rest.partition(END)[2]}")
        drawn = next(one for one in first["exhibits"] if one["name"] == PICTURES[name])
        write_whole(HOME / f"{name}-{drawn['name']}.svg", exhibit_picture(drawn, name) or "")


if __name__ == "__main__":
    main(sys.argv[1:])
