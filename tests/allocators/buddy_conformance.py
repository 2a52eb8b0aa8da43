"""What both buddy systems must do besides: where their arena may start."""

from __future__ import annotations

from .conformance import WORD, Conformance, Host

HEADER, MINIMUM = 2 * WORD, 4 * WORD


class BuddyConformance(Conformance):
    """Of the default parameters."""

    def test_the_arena_starts_at_a_multiple_of_the_minimum_block(self, host: Host) -> None:
        assert host.init(1 << 12) == 0
        assert host.init_at(host.arena + HEADER, 1 << 11)
        assert not host.init_at(host.arena + MINIMUM, 1 << 11)
