"""Changed versions of allocators whose flow facts were accepted for the change, as somebody would who believes them."""

from __future__ import annotations

import re
from dataclasses import replace

from tests.support import images_dir
from wcet_probe.analyzer.facts.source_index import SourceIndex, index_sources
from wcet_probe.build.program import Program, load_program
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.model.allocator import Allocator


def changed(file: str, *changes: tuple[str, str], target: str = "mpc603e", name: str = "cama") -> Program:
    """The allocator ``name`` with texts of a source file replaced, each of which stands there once."""
    allocator = load_allocator(name)
    sources = dict(allocator.sources)
    for old, new in changes:
        assert sources[file].count(old) == 1, old
        sources[file] = sources[file].replace(old, new)
    return load_program(
        accepted(replace(allocator, sources=tuple(sources.items()))), load_target(target), "zig", images_dir()
    )


def accepted(allocator: Allocator) -> Allocator:
    """``allocator`` with the hashes in its facts made those of its sources."""
    index = index_sources(dict(allocator.sources))
    name, text = allocator.facts[0]
    text = re.sub(
        r'^(\w+) = "[0-9a-f]{64}"$',
        lambda found: found[0] if found[1] == "sha256" else f'{found[1]} = "{_hash(index, found[1])}"',
        text,
        flags=re.MULTILINE,
    )
    loop = re.compile(r'function = "(\w+)"(.*?)sha256 = "[0-9a-f]{64}"', re.DOTALL)
    text = loop.sub(lambda found: f'function = "{found[1]}"{found[2]}sha256 = "{_hash(index, found[1])}"', text)
    return replace(allocator, facts=((name, text), *allocator.facts[1:]))


def _hash(index: SourceIndex, function: str) -> str:
    return index.function(function).sha256
