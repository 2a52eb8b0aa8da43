"""The fact that is missing where calls go through a member of a structure: one for all of them.

It tells what objects of the image hold in that member, as candidates. What firmware registers there as it runs is not
in the file.
"""

from __future__ import annotations

from collections.abc import Mapping

from wcet_probe.build.debug_types import held_functions
from wcet_probe.model.image import Image

_MOST_LISTED = 5


def member_fact(image: Image, members: Mapping[int, tuple[str, ...]], site: int) -> tuple[str, tuple[str, ...]]:
    """The title and the lines of a fact about the one member that the call at ``site`` goes through.

    ``members`` has the members of each call, by its address (bytes), as ``analyzer.facts.call_fields`` finds them.

    Raises:
        ImageError: the debug information is damaged.
    """
    own = members[site]
    places = [image.location(place) for place, one in members.items() if one == own]
    held = [f"{name} holds {function}" for name, function in held_functions(image, own[0])]
    holders = ", ".join(held[:_MOST_LISTED]) or "no object holds a function there"
    more = f" and {len(places) - _MOST_LISTED} more" if len(places) > _MOST_LISTED else ""
    calls = ", ".join(places[:_MOST_LISTED])
    title = f"where calls through {own[0]} go is not known ({calls}{more}); in the file, {holders}"
    return title, ("[[calls]]", f'through = "{own[0]}"', 'targets = ["?"]', 'because = "?"')
