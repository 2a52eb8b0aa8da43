"""How a fact names a loop by its source, and why one of the binary has none."""

from __future__ import annotations

from wcet_probe.analyzer.facts.binding import has_code
from wcet_probe.analyzer.facts.source_parts import SourceLoop
from wcet_probe.analyzer.prepared import Prepared
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.build.sources import renumbered_files
from wcet_probe.errors import UsageError


def why_no_loop(asked: BoundRequest, header: int) -> str:
    """Why no source loop was found for the one at ``header``."""
    file, _ = asked.image.lines.find(header) or ("", 0)
    if file and file not in asked.sources:
        return f"{file} is not found, or not only once (--source)"
    if file in renumbered_files(asked.sources):
        return f"a #line gives lines of {file} to other code, so that its pragmas and labels are not used"
    return "no source loop is clearly its own"


def source_lines(
    asked: BoundRequest, prepared: Prepared, loop: SourceLoop
) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
    """The keys that name a source loop, the hash of its function, and the function's text.

    Parameters:
        asked: the question.
        prepared: what was found of it.
        loop: one of its sources.
    """
    same = [each for source in prepared.index.files.values() for each in source.functions if each.name == loop.function]
    file = (f'file = "{loop.file}"',) if len(same) > 1 else ()
    place = f'label = "{loop.label}"' if loop.label else f"line = {loop.header_lines[0]}"
    elsewhere = {one.name for one in asked.image.functions} - {*prepared.analysed.functions}
    # Where another function has a copy, its loop may not be clearly this one's, and the fact is about both questions.
    copied = ("optional = true",) if has_code(loop, asked.image, elsewhere) else ()
    lines = (f'function = "{loop.function}"', *file, place, *copied)
    try:
        function = prepared.index.function(loop.function, loop.file, loop.header_lines[0])
    except UsageError:
        return lines, "", ()
    text = asked.sources[loop.file].splitlines()[function.first_line - 1 : function.last_line]
    return lines, function.sha256, tuple(text)
