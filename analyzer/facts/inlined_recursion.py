"""Whether a function that calls itself, and was inlined, has a binary loop of its own inside that of the source loop.

A call of itself at a function's end becomes a jump to where it begins. Where the function is inlined into a loop, its
activations are rounds, and the jump that ends the last of them goes on in the loop around, with a line of the function.

Words: inlined call, line table, header (docs/explanation/glossary.md).

*Soundness:* of a function that calls itself at one place there is one jump back, and copies of it where it is unrolled;
where all code that has a line in the loops inside with them was inlined from this function, they are none of the loop
around. And each round of that passes the test that ends the source loop, in code that no call has brought: so it is a
round of the source loop, too. As of all that `source_match` tells, the line table says what is whose, and emulated runs
count the rounds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from wcet_probe.analyzer.facts.inlined_lines import Inlining
from wcet_probe.analyzer.facts.round_lines import LoopWays
from wcet_probe.analyzer.facts.source_index import SourceIndex
from wcet_probe.analyzer.facts.source_parts import SourceFunction, SourceLoop


def has_loop_of_its_own(
    again: SourceFunction, loops_inside: Iterable[Collection[int]], inlining: Inlining, index: SourceIndex
) -> bool:
    """Whether the activations of ``again``, which calls itself, are the rounds of loops among ``loops_inside``.

    Args:
        again: a function of the source.
        loops_inside: the addresses of the code of the binary loops inside of a loop, those inside of them left out.
        inlining: the inlined calls of this code.
        index: the source.

    Raises:
        ImageError: damaged debug information.

    *Soundness:* as said of the module.
    """
    calls = [line for name, line in index.files[again.file].calls if name == again.name]
    within = [line for line in calls if again.first_line <= line <= again.last_line]
    if len(within) != 1 or index.calls_itself(again.name, directly=False) or index.loops(again.name, again.file):
        return False
    own = [code for code in loops_inside if any(_is_of(at, again, inlining) for at in code)]
    told = [at for code in own for at in code if inlining.image.lines.find(at) is not None]
    return bool(own) and all(_is_of(at, again, inlining) for at in told)


def _is_of(address: int, function: SourceFunction, inlining: Inlining) -> bool:
    """Whether the code has a line and was inlined from ``function`` itself, and from none that it calls."""
    calls, (file, line) = list(inlining.callees(address)), inlining.image.lines.find(address) or ("", 0)
    is_there = file == function.file and function.first_line <= line <= function.last_line
    return is_there and bool(calls) and calls[-1][0] == function.name


def ends_each_round(found: SourceLoop, ways: LoopWays, own: Collection[int], inlining: Inlining) -> bool:
    """Whether each way through a binary loop passes a test of ``found`` that may leave it, and no call has brought.

    Args:
        found: the source loop.
        ways: the ways through the binary loop.
        own: the addresses of its code that is in no loop inside.
        inlining: the inlined calls of this code.

    Raises:
        ImageError: damaged debug information.

    *Soundness:* as said of the module.
    """
    leaving = {code[-1] for start, code in ways.blocks.items() if len(ways.following.get(start, ())) < 2}
    tests = {
        at
        for at in leaving & ways.tests & {*own}
        if (line := inlining.image.lines.find(at)) is not None
        and line[0] == found.file
        and line[1] in found.header_lines
        and not any(inlining.calls(at))
    }
    return not ways.has_round_without(tests)
