"""How far nests are followed in tests: enough for what they ask, and a fraction of what a nest without an end costs."""

from collections.abc import Iterator
from contextlib import contextmanager

from wcet_probe.analyzer.loops import abstract_execution

PRODUCT = abstract_execution.MOST_INSTRUCTIONS
"""Most instructions that the product follows."""
IN_TESTS = 20_000


def follow_at_most(instructions: int) -> None:
    """From now on this process follows no more than so many instructions in the nests of a function."""
    abstract_execution.MOST_INSTRUCTIONS = instructions


@contextmanager
def following(instructions: int) -> Iterator[None]:
    """Follow so many instructions at most in here."""
    before = abstract_execution.MOST_INSTRUCTIONS
    follow_at_most(instructions)
    try:
        yield
    finally:
        follow_at_most(before)
