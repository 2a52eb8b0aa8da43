"""``wcet-probe plot``: results as pictures."""

# ruff: noqa: PLC0415  (engines and renderers are imported when they are needed)

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from wcet_probe.ci.result_files import refusing_damage
from wcet_probe.errors import ExitCode, UsageError, unknown_name
from wcet_probe.json_text import read_json

Document = dict[str, Any]

_READABLE = ("wcet-probe-result", "wcet-probe-results", "wcet-probe-bound", "wcet-probe-growth", "wcet-probe-replay")


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of picture: the function of ``reports.pictures``, what it takes, and in words; the title for a replay."""

    name: str
    takes: str
    needs: str
    title: str = ""


_REPLAY = "what wcet-probe replay --json printed"
_KINDS = (
    _Kind("bound-against-observed", "results", "results of a run or a bound"),
    _Kind("wcet-against-heap", "results", "results of several heaps, of --why, or of growth"),
    _Kind("heat-strip", "result", "the result of a run on a target with caches"),
    _Kind("call-graph", "result", "a result whose bound has its graph"),
    _Kind("control-flow-graph", "result", "a result whose bound has its graph"),
    _Kind("gap-bars", "result", "a result of --why that has slack"),
    _Kind("instructions-by-operation", "replay", _REPLAY, "Instructions by operation"),
    _Kind("histogram", "replay", _REPLAY, "Instructions of an operation"),
)
PLOT_EPILOG = f"""\b
Kinds, and what they need:
{chr(10).join(f"  {kind.name:<26} {kind.needs}" for kind in _KINDS)}

\b
Examples:
  wcet-probe plot tlsf.json cama.json --kind bound-against-observed -o a.svg
  wcet-probe plot cama.json --kind control-flow-graph --function grow -o b.svg

\b
Exit codes: 0 drawn, 1 failure, 2 bad usage, or a document without what the
  picture shows
"""


@click.command(epilog=PLOT_EPILOG)
@click.argument("files", nargs=-1, required=True, metavar="RESULT.json...", type=click.Path(path_type=Path))
@click.option("--kind", "name", required=True, metavar="KIND", help="What to draw, see below.")
@click.option("--function", metavar="NAME", help="Of control-flow-graph: the one to draw, instead of what fits.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="SVG to write.  [default: stdout]"
)
def plot(*, files: tuple[Path, ...], name: str, function: str | None, output: Path | None) -> int:
    """Draw results as one SVG, without the analyzer and without the emulator.

    RESULT.json is what --json printed.
    """
    kinds = {kind.name: kind for kind in _KINDS}
    if name not in kinds:
        raise unknown_name("kind of picture", name, kinds)
    if function and name != "control-flow-graph":
        raise UsageError("--function goes with --kind control-flow-graph; leave it out.")
    documents = [_document(file) for file in files]
    with refusing_damage():
        svg = _drawn(kinds[name], documents, function)
    if svg is None:
        shown = f"{function} is none of its functions, or " if function else ""
        raise UsageError(f"nothing to draw: {shown}{name} needs {kinds[name].needs}.")
    if output:
        from wcet_probe.output_files import write_whole

        write_whole(output, svg)
    else:
        click.echo(svg.encode(), nl=False)
    return ExitCode.OK


def _drawn(kind: _Kind, documents: Sequence[Document], function: str | None) -> str | None:
    from wcet_probe.reports import pictures
    from wcet_probe.reports.screens.replay import replay_samples

    draw: Callable[..., str | None] = getattr(pictures, kind.name.replace("-", "_"))
    if kind.takes == "results":
        return draw([one for one in documents if one["format"] != "wcet-probe-replay"])
    single = [one for document in documents for one in _single(document)]
    if len(single) != 1:
        raise UsageError(f"{kind.name} shows one document, not {len(single)}; give one RESULT.json with one result.")
    is_replay = single[0]["format"] == "wcet-probe-replay"
    if is_replay is not (kind.takes == "replay"):
        return None
    if is_replay:
        return draw(replay_samples(single[0]), f"{kind.title}: {pictures.name_of(single[0])}")
    return draw(single[0], function) if kind.name == "control-flow-graph" else draw(single[0])


def _single(document: Document) -> Iterable[Document]:
    return document["results"] if document["format"] == "wcet-probe-results" else (document,)


def _document(file: Path) -> Document:
    document = read_json(file)
    if isinstance(document, dict) and document.get("format") in _READABLE and document.get("version") == 1:
        from wcet_probe.reports.formats.schema import validate

        validate(document)
        return document
    raise UsageError(f"{file} is no document that can be drawn; give it what a run, growth or replay --json printed.")
