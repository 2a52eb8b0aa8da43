# SPDX-License-Identifier: 0BSD
"""What accesses have shown of names: classes that hold of all code behind them, for as long as the name does.

A fact about pointers speaks of addresses that code of some functions computes, and the class of a name that rests on it
is cut down to that of the code that asks. But where such code has accessed memory, and the address is one symbol and a
constant, the fact was about the value of that symbol: it holds of it behind, in code of other functions as well, until
the symbol begins anew. So do classes that are computed: of sums, of shifts of constants.

*Soundness:* an access that surely takes place is at the symbol's value and a constant, of which nothing else is known,
and the fact says of its code that this value is in the class; a symbol has one value while it does not begin anew, and
a name in a node one value in an execution of that. Where nodes begin the certificate says what is shown, nothing at the
entry; on each edge it has to follow from what holds behind the node that is left. Not of the sum of two names, of which
the fact shows the sum only, nor of an access that may be skipped. The run checks each address that shows something.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from wcet_probe.certificate.machines.operands import class_of, class_of_sum, may_be_skipped, operands_of, register_named
from wcet_probe.certificate.values.congruences import MOST_MODULUS, UNALIGNED, UNKNOWN_SPAN, Congruence
from wcet_probe.certificate.values.numbers import Value, constant
from wcet_probe.certificate.values.state import Place, State
from wcet_probe.model.instruction import Instruction

_SHIFTS = re.compile(r"(?:lsl|slw)(?:s|\.w|s\.w)? ([a-z]+[0-9]*), ([a-z]+[0-9]*), ([a-z]+[0-9]*)")


@dataclass(slots=True)
class Shown:
    """Classes of names in one execution of a node.

    Attributes:
        symbols: of which accesses show something; their names are these behind an ``@``.
        classes: by name.
    """

    symbols: Collection[str]
    classes: dict[str, Congruence] = field(default_factory=dict)

    def of(self, base: str) -> Congruence:
        """The class of a name."""
        return self.classes.get(base, UNALIGNED)

    def add(self, base: str, own: Congruence) -> None:
        """A name is of a class, too."""
        if base.startswith("@"):
            self.classes[base] = max(self.of(base), own)

    def see(self, instruction: Instruction, addresses: Sequence[tuple[Value, Value, Congruence]]) -> None:
        """Accesses of ``instruction`` have taken place, unless it may be skipped.

        Args:
            instruction: it.
            addresses: as numbers, by name, and the classes that the names have there.
        """
        if not may_be_skipped(instruction):
            for number, name, of_base in addresses:
                is_unknown = number.is_plain and number.high - number.low >= UNKNOWN_SPAN
                is_symbol = name.base.startswith("@") and name.base[1:] in self.symbols
                if is_unknown and is_symbol and name.is_constant:
                    self.add(name.base, of_base)

    def computed(self, instruction: Instruction, place: Place, before: State) -> Congruence:
        """The class of what ``instruction`` leaves in ``place``, by those of its operands."""
        shift = _SHIFTS.fullmatch(instruction.text)
        if shift and not may_be_skipped(instruction) and register_named(shift[1]) == place:
            register = register_named(shift[2])
            known = class_of(self.classes, before, register) if before.read(register).base != "stack" else UNALIGNED
            return Congruence(min(known.modulus, known.residue & -known.residue or known.modulus), 0)
        found = operands_of(instruction, place)
        return UNALIGNED if found is None else class_of_sum(self.classes, before, found, constant(0))


def shown_behind(
    shown: Mapping[str, Congruence], symbol: str, begins: Collection[str], values: Mapping[str, Value]
) -> Congruence:
    """The class of a symbol behind an edge.

    Args:
        shown: classes of names behind the node that is left.
        symbol: the symbol.
        begins: the symbols that begin anew on the edge.
        values: what these are, by the names of the node that is left; those of which it is known.
    """
    if symbol not in begins:
        return shown.get(f"@{symbol}", UNALIGNED)
    value = values.get(symbol)
    if value is None:
        return UNALIGNED
    if value.is_number:
        return Congruence(MOST_MODULUS, value.low % MOST_MODULUS)
    return shown.get(value.base, UNALIGNED).moved(value.low)
