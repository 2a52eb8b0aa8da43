"""An image of a few words, and operations of a few instructions, for tests of inductions over an allocator's memory."""

from __future__ import annotations

from types import SimpleNamespace

from tests.analyzer.small_functions import POWERPC, lifter_of, small_guest
from tests.support import Guest
from wcet_probe.analyzer.bound import prepare
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.analyzer.values.result import Values
from wcet_probe.model.image import Segment, Symbol

CODE, DATA = 0x40000, 0x200000
DATA_SECTION = (
    ".pushsection .data\n.balign 8\n.globl head\n.type head, @object\nhead: .long 0, 0\n.size head, 8\n.popsection\n"
)


def small_image(
    data: bytes = b"\0" * 64, table: bytes = b"", symbols: tuple[Symbol, ...] = (), *, big_endian: bool = True
):
    """Constant data behind code at `CODE`, and static data at `DATA`."""
    segments = (
        Segment(CODE, b"\x60\0\0\0" * 8 + table, 32 + len(table), writable=False, executable=True),
        Segment(DATA, data, max(64, len(data)), writable=True, executable=False),
    )
    named = {one.name: one for one in symbols}
    return SimpleNamespace(segments=segments, big_endian=big_endian, symbols=named)


def small_module(bodies: dict[str, str]) -> tuple[Guest, dict[str, Values]]:
    """PowerPC functions with a static variable ``head``, and the values of each."""
    guest = small_guest({**bodies, "unused": f"blr\n{DATA_SECTION}"}, POWERPC)
    lifter_of(guest)
    found = {}
    for name in bodies:
        asked = BoundRequest(guest.image, guest.target, guest.instructions, guest.costs, name, Facts(), {}, {})
        found[name] = prepare(asked).values
    return guest, found
