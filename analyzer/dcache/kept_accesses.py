"""Accesses by name where lines are known to stay in the cache: what evicts, and lines of the stack at a known place.

Where all lines of the call are kept but for what strays evict (`footprints`), stores that fill nothing are followed by
name once more, as how often they are single writes no number of lines tells. Of the stack pointer only its alignment is
known otherwise, so that of eight words in a row each pair may be in a line of its own. Where its value at entry is
assumed, all names of a line of the stack become one.

Words: symbolic cache block, footprint (docs/explanation/glossary.md).

*Soundness:* under the assumption ``stack-pointer`` two granules of the group of the stack pointer lie in one line if
their addresses do. Loads are charged by the names that they have without it, and only stores by those that are united;
that a line was filled is known by the latter.

The prologue stores four registers in two granules of eight bytes, and they lie in one line if the stack pointer is a
multiple of 32:

>>> leaf = example('''
... void f(unsigned *p) {
...     volatile unsigned own[4];
...     own[0] = 1; own[3] = p[0];
... }''')
>>> def stores(stack_pointer):
...     steps = kept_steps(leaf.steps, leaf.lines, leaf.values, {}, stack_pointer).analysed
...     return len({one.line.line for own in steps.values() for one in own if one.line.modifies})
>>> stores(None), stores(0x1000)
(2, 1)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from wcet_probe.analyzer.dcache.access_steps import AccessStep, is_sure
from wcet_probe.analyzer.dcache.footprints import Strays
from wcet_probe.analyzer.dcache.symbolic_blocks import SymbolicBlock, SymbolicBlocks
from wcet_probe.analyzer.dcache.younger_sets import LineAccess, Verdict
from wcet_probe.analyzer.values.result import Values

Evicting = Mapping[tuple[int, int], frozenset[int]]
"""The sets that strays may go to, by point and address of the instruction."""
_NONE = frozenset[int]()
_Verdicts = Mapping[int, Sequence[Verdict]]
Steps = Mapping[int, Sequence[AccessStep]]
"""By point."""


class KeptSteps(NamedTuple):
    """The accesses of each point, by name, where lines are kept.

    Attributes:
        analysed: with united names of lines, and with what evicts.
        charged: of which stores have those names.
        at: the sets of lines of the stack, where they are known.
    """

    analysed: Steps
    charged: Steps
    at: Mapping[SymbolicBlock, int]

    def named(self) -> Mapping[int, Sequence[LineAccess]]:
        """What the analysis by names is made of."""
        return {point: [step.line for step in own] for point, own in self.analysed.items()}

    def sure(self) -> Mapping[int, frozenset[SymbolicBlock | None]]:
        """The lines that each point accesses in any case, and fills, by either name."""
        return self._lines(is_sure)

    def departing(self) -> Mapping[int, frozenset[SymbolicBlock | None]]:
        """The same where the point is left for another than the next instruction."""
        return self._lines(lambda one: one.line.is_leaving and one.line.fills)

    def verdicts(self, before: _Verdicts, after: _Verdicts, others: Strays) -> _Verdicts:
        """Those ``after``, where lines are kept; those ``before`` of the ``others``, which may go to other lines."""
        return {
            point: tuple(
                one if step.access is None or (point, step.access.instruction_address) in others else kept
                for step, one, kept in zip(own, before[point], after[point], strict=True)
            )
            for point, own in self.analysed.items()
        }

    def _lines(self, is_meant: Callable[[AccessStep], bool]) -> Mapping[int, frozenset[SymbolicBlock | None]]:
        return {
            point: frozenset(
                one.line.line for each in (self.analysed, self.charged) for one in each[point] if is_meant(one)
            )
            for point in self.analysed
        }


def kept_steps(
    steps: Steps, lines: SymbolicBlocks, values: Values, strays: Evicting, stack_pointer: int | None
) -> KeptSteps:
    """The ``steps`` where lines are kept, with the names that they have with a known ``stack_pointer``.

    ``strays`` tells the sets that each of them may go to.

    *Soundness:* as said of the module; fetches are in no cache that is not for them too, and then evict.
    """
    united, config = _United.of(lines, values, stack_pointer), lines.places.config
    everywhere = frozenset(range(config.sets))
    analysed = {
        point: [
            step._replace(
                line=step.line._replace(
                    line=united.name(step.line.line),
                    evicts=strays.get((point, step.access.instruction_address), _NONE) if step.access else everywhere,
                )
            )
            for step in own
        ]
        for point, own in steps.items()
    }
    charged = {
        point: [after if after.line.modifies else before for before, after in zip(own, analysed[point], strict=True)]
        for point, own in steps.items()
    }
    names = {step.line.line for own in analysed.values() for step in own}
    places = {name: united.address(name) for name in names if name is not None}
    at = {name: place // config.line_bytes % config.sets for name, place in places.items() if place is not None}
    return KeptSteps(analysed, charged, at)


class _United(NamedTuple):
    """The groups of the stack pointer at entry, and its value; nothing of it is known if that is None."""

    lines: SymbolicBlocks
    groups: frozenset[int]
    stack_pointer: int | None

    @classmethod
    def of(cls, lines: SymbolicBlocks, values: Values, stack_pointer: int | None) -> _United:
        """Of all groups of ``lines``."""

        def is_at(number: int) -> bool:
            part = lines.symbolic_part(number)
            return list(part.values()) == [1] and all(values.terms[one].arguments == ("stack pointer",) for one in part)

        at = (number for number in range(len(lines.groups)) if stack_pointer is not None and is_at(number))
        return cls(lines, frozenset(at), stack_pointer)

    def address(self, line: SymbolicBlock) -> int | None:
        """Where a granule begins; None where that is not known."""
        if self.stack_pointer is None or line.group not in self.groups:
            return None
        group = self.lines.groups[line.group]
        address = self.stack_pointer + line.granule * group.alignment_bytes - group.residue
        return None if address % group.alignment_bytes else address

    def name(self, line: SymbolicBlock | None) -> SymbolicBlock | None:
        """The name that all granules of a line get: the least granule that begins in it."""
        address = None if line is None else self.address(line)
        if line is None or address is None:
            return line
        within = address % self.lines.places.config.line_bytes
        return line._replace(granule=line.granule - within // self.lines.groups[line.group].alignment_bytes)
