"""The house in numbers, of the architecture page: modules, lines, rooms, floors and arrows of a checkout.

Run with ``python tools/house.py [CHECKOUT]``. A room is a folder of the package with modules, or a module beside those
in ``wcet_probe/``; an arrow is an import, counted once for each pair; the floors are the longest chain of rooms.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from graphlib import TopologicalSorter
from pathlib import Path

TOPS = ("analyzer", "emu", "reports", "scenarios", "wcet_probe")
LONG = 500
Arrows = set[tuple[str, str]]


def modules(checkout: Path) -> dict[str, Path]:
    """The modules of the package by name, each once: links to other folders are not followed."""
    found = {}
    for path in sorted(path for top in TOPS for path in (checkout / top).rglob("*.py")):
        parts = path.relative_to(checkout).with_suffix("").parts
        if not any((checkout.joinpath(*parts[:depth])).is_symlink() for depth in range(1, len(parts))):
            name = parts[:-1] if parts[-1] == "__init__" else parts
            found[".".join(name if name[0] == "wcet_probe" else ("wcet_probe", *name))] = path
    return found


def arrows(paths: Mapping[str, Path]) -> Arrows:
    """Which module imports which."""
    return {(name, one) for name, path in paths.items() for one in _imported(path, paths) if one != name}


def _imported(path: Path, paths: Mapping[str, Path]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in paths)
        elif isinstance(node, ast.ImportFrom):
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (one for name in names if (one := name if name in paths else str(node.module)) in paths)


def room(name: str, path: Path) -> str:
    """The room that a module stands in."""
    is_beside = path.name != "__init__.py" and name.count(".") == 1 and path.parent.name == "wcet_probe"
    return name if is_beside or path.name == "__init__.py" else name.rpartition(".")[0]


def floors(rooms: Arrows) -> int:
    """How many rooms the longest chain of arrows has.

    Raises:
        graphlib.CycleError: rooms import each other.
    """
    below: dict[str, set[str]] = {}
    for one, other in rooms:
        below.setdefault(one, set()).add(other)
    height: dict[str, int] = {}
    for one in TopologicalSorter(below).static_order():
        height[one] = 1 + max((height[other] for other in below.get(one, ())), default=0)
    return max(height.values(), default=0)


def rows(checkout: Path) -> Iterator[tuple[str, str]]:
    """The rows of the table."""
    paths = modules(checkout)
    rooms = {name: room(name, path) for name, path in paths.items()}
    lengths = {name: path.read_text("utf-8").count("\n") for name, path in paths.items()}
    between = {(name, other): (rooms[name], rooms[other]) for name, other in arrows(paths)}
    apart = {pair for pair in between.values() if pair[0] != pair[1]}
    most, count = Counter(rooms[name] for name, path in paths.items() if path.name != "__init__.py").most_common(1)[0]
    long = [length for length in lengths.values() if length > LONG]
    yield "modules of the package, lines", f"{len(paths):,}, {sum(lengths.values()):,}"
    yield "folders with modules, and modules at the top", f"{len(set(rooms.values()))}"
    yield "most modules in one folder", f"{count} ({most})"
    yield "floors: the longest chain of folders", f"{floors(apart)}"
    yield "arrows between modules, between folders", f"{len(between):,}, {len(apart)}"
    yield f"modules over {LONG} lines, the longest", f"{len(long)}, {max(lengths.values())}"


if __name__ == "__main__":
    for label, value in rows(Path(sys.argv[1] if len(sys.argv) > 1 else ".")):
        print(f"{label}: {value}")
