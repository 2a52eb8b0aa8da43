"""Execution of a function's machine code on terms: every way through it, from its entry to its return or to a join.

Words: symbolic execution, path condition (docs/explanation/glossary.md).

*Soundness:* at a branch whose condition is not constant both ways are followed, but for one whose condition was shown
to contradict what is assumed and what was met on the way. Loops are followed round by round. A way that cannot be
followed to its end (an operation or access that is not known here, more steps than are allowed) is told with its
instruction, and then nothing is shown of the operation as a whole. Registers are anything at entry, unless they are
given. A way that ends at a join says so: what is executed from there on is to be followed from another call on, with
nothing given there but what was shown at the end of every way that ends there. Two ways are left as one where nothing
but registers differs: each holds what it would on the way that was taken, by the condition, which only the bits know.
A way that returns leaves the stack pointer, and each register that the caller keeps, as it was at entry, by its term; a
way that writes to a register that no function may change is not followed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from wcet_probe.analyzer.deduction.byte_terms import NO_BITS, Bits, byte, compared, constant, of_bits
from wcet_probe.analyzer.deduction.calling_convention import RETURN_ADDRESS, STACK_POINTER, Kept, saved_words
from wcet_probe.analyzer.deduction.formulas import FALSE, TRUE, Node, choice, disjunction, negation, unknown
from wcet_probe.analyzer.deduction.joins import join_between_stores
from wcet_probe.analyzer.deduction.word_terms import WordTerms
from wcet_probe.analyzer.deduction.words import SPAN, Word, same
from wcet_probe.analyzer.pcode.lift import Lifter
from wcet_probe.analyzer.pcode.operations import PcodeOp, Varnode
from wcet_probe.analyzer.pcode.semantics import NO_EFFECT, signed
from wcet_probe.errors import DecodeError

_Held = dict[tuple[str, int], tuple[int, Word | Bits]]
"""What registers hold, by space and offset, with their sizes in bytes."""

_STEP_LIMIT = 200_000
"""Most instructions of one way."""
_BRANCH_LIMIT = 200
"""Most branches of one way whose condition is not constant: each is a scope within the others."""
_OF_BYTES = frozenset({"INT_ZEXT", "INT_LEFT", "INT_RIGHT", "INT_SRIGHT"})
"""Operations that make a word of bytes, or of a word and a byte, and do not depend on how wide the byte is."""
_STACK_POINTER = Word(0, ((STACK_POINTER, 1),))
_BEFORE_RETURN = frozenset({"setISAMode"})
"""User operations of Arm: they say in which instruction set a return or a jump by a register goes on."""


class Astray(Exception):  # noqa: N818  no error of the program: a way that is not followed any further
    """A way cannot be followed any further; the message says why."""


@dataclass(frozen=True, slots=True)
class Site:
    """Where an access takes place: its instruction, and the conditions of words that were met before."""

    instruction_address: int
    conditions: tuple[Node, ...]


def stack_offset(address: Word, stack_pointer: Word) -> int | None:
    """How far a word of the stack is from the stack pointer at entry; None of an address that is derived otherwise.

    Raises:
        Astray: it is no word by itself.
    """
    difference = address.plus(stack_pointer, -1)
    if difference.parts:
        return None
    if difference.constant % 4:
        raise Astray("an access across words of the stack")
    return signed(32, difference.constant)


def refuse_callers_frame(offset: int, value: Word) -> None:
    """Raise Astray where a word that is stored in the stack is not of the function's own frame.

    Of PowerPC the word above it is, for where it returns to (System V ABI, PowerPC, 3-20).
    """
    if offset >= 0 and (offset, value) != (4, Word(0, ((RETURN_ADDRESS, 1),))):
        raise Astray("a store into the caller's frame")


class Memory(Protocol):
    """What accesses go to."""

    def copy(self) -> Memory:
        """The same, to be changed apart."""

    def load(self, address: Word, site: Site) -> Word:
        """The word at ``address``.

        Raises:
            Astray: it is not known what it is.
        """

    def store(self, address: Word, value: Word, site: Site) -> None:
        """Store ``value``.

        Raises:
            Astray: it is not known where to.
        """


Comparison = Callable[[Memory, Site, Word, Word], bool]
"""Whether a comparison of two words, with this memory at this site, is the one that is looked for."""


@dataclass(frozen=True, slots=True)
class End:
    """Where a way ends.

    Attributes:
        instruction_address: the last instruction.
        memory: as the way left it.
        registers: read by name.
        conditions: of words, met on the way.
        choices: branches whose condition is not constant, and whether each was taken.
        reason: why it was not followed to a return; empty if it was.
        words: the registers of four bytes of which something is known, by name.
        is_at_join: whether it ends before the instruction of the join, or of a comparison, and not at a return.
        untouched: registers that the caller keeps and that hold what they held at entry, as the way never read them.
    """

    instruction_address: int
    memory: Memory
    registers: Callable[[str], Word | None]
    conditions: tuple[Node, ...]
    choices: tuple[tuple[int, bool], ...]
    reason: str
    words: Callable[[], Mapping[str, Word]]
    is_at_join: bool
    untouched: frozenset[str]


def follow_paths(  # noqa: PLR0917  what is executed, and whereupon
    lifter: Lifter,
    terms: WordTerms,
    entry_address: int,
    registers: Mapping[str, Word],
    memory: Memory,
    visit: Callable[[End], None],
    *,
    to_join: bool = False,
    ends_before: Comparison | None = None,
) -> None:
    """Execute the function at ``entry_address`` on all ways; ``visit`` is told of each at its end.

    When it is, what is assumed in ``terms.questions`` holds of this way.

    Parameters:
        lifter: lifter of the image.
        terms: of the words; what is assumed of the entry is assumed there.
        registers: what is in registers at entry, by name. Unless ``lr`` is given it holds the return address, and the
            registers that the caller keeps hold what they hold at entry; else any that is not given holds anything.
        memory: at entry; it is not changed, so that ends can be held against it.
        to_join: whether ways end where those come together again into which the first branch forks that stores are
            before and behind.
        ends_before: ways end before the first instruction that makes such a comparison and accesses nothing before it.

    *Soundness:* as said of the module.
    """
    held: _Held = {}
    returning = Word(0, ((terms.known(RETURN_ADDRESS), 1),))
    saved = saved_words(lifter.isa)
    if "lr" not in registers:
        saved = {name: registers.get(name, word) for name, word in saved.items()}
        untouched = saved.keys() - registers.keys()
    else:
        # The stack pointer is not among them: a join asks how far it is from what it was.
        untouched = {name for name, word in saved.items() if registers.get(name) == word and word != _STACK_POINTER}
    for name, word in {"lr": returning, **registers}.items():
        varnode = lifter.registers[name]
        if name not in untouched:
            held[varnode.space, varnode.offset] = varnode.size_bytes, word
    kept = Kept(lifter, saved, untouched)
    execution = _Execution(lifter, terms, returning, visit, kept, to_join=to_join, ends_before=ends_before)
    execution.run(_Way(entry_address, 0, memory.copy(), (), (), held, 0))


@dataclass(slots=True)
class _Way:
    """Where a way stands: at operation ``index`` of the instruction at ``pc``."""

    pc: int
    index: int
    memory: Memory
    conditions: tuple[Node, ...]
    choices: tuple[tuple[int, bool], ...]
    held: _Held
    steps: int
    is_at_join: bool = False

    def fork(self, index: int, condition: Node, choice: bool) -> _Way:  # noqa: FBT001
        """The way on which ``condition`` holds, from ``index`` on."""
        conditions, choices = (*self.conditions, condition), (*self.choices, (self.pc, choice))
        return _Way(self.pc, index, self.memory.copy(), conditions, choices, dict(self.held), self.steps)


class _Execution:
    def __init__(
        self,
        lifter: Lifter,
        terms: WordTerms,
        returning: Word,
        visit: Callable[[End], None],
        kept: Kept,
        *,
        to_join: bool,
        ends_before: Comparison | None,
    ) -> None:
        self._lifter, self._terms, self._visit = lifter, terms, visit
        # On Arm the lowest bit says in which instruction set the caller goes on.
        self._returns = returning, terms.operate("INT_AND", returning, Word(SPAN - 2))
        self._kept = kept
        self._wants_join = to_join
        self._join_address: int | None = None
        self._joins: dict[int, int | None] = {}
        self._ends_before = ends_before

    def run(self, way: _Way) -> None:
        """Follow ``way`` and all that it forks into."""
        forks: list[_Way] | None = None
        reason = ""
        try:
            forks = self._follow(way)
        except Astray as error:
            reason = str(error)
        except DecodeError as error:
            reason = str(error)
        if forks is None:
            self._visit(self._end(way, reason))
            return
        if self._wants_join:
            if way.pc not in self._joins:
                self._joins[way.pc] = join_between_stores(self._lifter, way.pc)
            self._join_address = self._joins[way.pc]
            self._wants_join = self._join_address is None
        for fork in forks:
            self._terms.enter()
            self._terms.questions.assume(self._terms.formula(fork.conditions[-1]))
            if not self._is_impossible(fork):
                self.run(fork)
            self._terms.leave()

    def _is_impossible(self, way: _Way) -> bool:
        """Whether the last condition contradicts what is known, of integers or of bits."""
        terms = self._terms
        if terms.questions.is_contradiction():
            return True
        last = way.conditions[-1]
        words = list(terms.words_in(last))
        if all(terms.is_plain(word) for word in words):
            return False
        premises = terms.bits_about(words, way.conditions[:-1])
        return terms.bits_follow(premises, negation(terms.bits_formula(last)))

    def _end(self, way: _Way, reason: str) -> End:
        def register(name: str) -> Word | None:
            try:
                found = self._read(way, self._lifter.registers[name])
            except Astray:
                return None
            return found if isinstance(found, Word) else None

        def words() -> Mapping[str, Word]:
            held = {(space, offset): value for (space, offset), (_, value) in way.held.items()}
            named = {name: held.get((one.space, one.offset)) for name, one in self._lifter.registers.items()}
            return {name: value for name, value in named.items() if isinstance(value, Word)}

        untouched = self._kept.still_untouched(way.held)
        return End(way.pc, way.memory, register, way.conditions, way.choices, reason, words, way.is_at_join, untouched)

    def _is_end(self, way: _Way, op: PcodeOp) -> bool:
        """Whether ``op`` makes a comparison that ways end before."""
        if self._ends_before is None or op.output is None or op.output.size_bytes != 1 or len(op.inputs) != 2:
            return False
        one, other = (self._read(way, each) for each in op.inputs)
        if not isinstance(one, Word) or not isinstance(other, Word):
            return False
        return self._ends_before(way.memory, Site(way.pc, way.conditions), one, other)

    def _follow(self, way: _Way) -> list[_Way] | None:  # noqa: C901, PLR0912  a case for each way on
        """Follow ``way`` to where it forks, or to its end."""
        at_begin: _Held | None = None
        while True:
            instruction = self._lifter.lift(way.pc)
            if way.index == 0:
                if way.pc == self._join_address:
                    way.is_at_join = True
                    return None
                at_begin = dict(way.held)
                way.steps += 1
                if way.steps > _STEP_LIMIT:
                    raise Astray(f"more than {_STEP_LIMIT} instructions")
                operands = self._lifter.reversed_bits(way.pc)
                # In an IT block a branch is behind the operations of its condition: then it is followed bit by bit.
                if operands and all(op.opcode != "CBRANCH" for op in instruction.ops):
                    self._write(way, operands[0], self._terms.reversed_bits(self._word(way, operands[1])))
                    way.pc += instruction.size_bytes
                    continue
            if way.index >= len(instruction.ops):
                way.pc, way.index = way.pc + instruction.size_bytes, 0
                continue
            op = instruction.ops[way.index]
            condition = FALSE
            match op.opcode:
                case "BRANCH":
                    condition = TRUE
                case "CBRANCH":
                    condition = self._bit(way, op.inputs[1])
                case "RETURN":
                    if self._word(way, op.inputs[0]) not in self._returns:
                        raise Astray("a return to another place than the caller")
                    if changed := self._kept.changed(way.held):
                        raise Astray(f"a return with another {changed} than the caller had")
                    return None
                case _:
                    if at_begin is not None and self._is_end(way, op):
                        way.held, way.index, way.is_at_join = at_begin, 0, True
                        return None
                    if op.opcode in {"LOAD", "STORE"}:
                        at_begin = None
                    self._execute(way, op)
            if condition is TRUE:
                _jump(way, op.inputs[0])
            elif condition is FALSE or self._is_joined(way, condition, op.inputs[0]):
                way.index += 1
            else:
                if len(way.choices) == _BRANCH_LIMIT:
                    raise Astray(f"more than {_BRANCH_LIMIT} branches, as in a loop that is not bounded by constants")
                taken = way.fork(way.index, condition, choice=True)
                _jump(taken, op.inputs[0])
                return [taken, way.fork(way.index + 1, negation(condition), choice=False)]

    def _is_joined(self, way: _Way, condition: Node, target: Varnode) -> bool:
        """Leave both ways behind a branch over what only computes, if that can be; the branch ends its own.

        That is one whole instruction, or the rest of one that is executed under a condition, as Arm's are. Where the
        integers do not learn the condition, nothing is lost by it but ways.
        """
        branch = self._lifter.lift(way.pc)
        skipped_address, skipped = way.pc, branch
        skipped_ops = branch.ops[way.index + 1 :]
        if not skipped_ops:
            skipped_address += branch.size_bytes
            skipped = self._lifter.lift(skipped_address)
            skipped_ops = skipped.ops
        if target.space == "const" or target.offset != skipped_address + skipped.size_bytes:
            return False
        leaves = any(op.output is None or op.opcode == "LOAD" or op.output.space == "ram" for op in skipped_ops)
        if leaves or not self._terms.is_of_bits(condition):
            return False
        other = _Way(skipped_address, 0, way.memory, way.conditions, (), dict(way.held), way.steps)
        for op in skipped_ops:
            self._execute(other, op)
        joined = self._joined(way, other, condition)
        if joined is None:
            return False
        way.held, way.pc, way.index = joined, skipped_address, len(skipped.ops) - 1
        return True

    def _joined(self, way: _Way, other: _Way, condition: Node) -> _Held | None:
        """What registers hold behind two ways, ``way`` where ``condition`` holds; None where that is not one value."""
        found: _Held = {}
        for key in dict.fromkeys((*way.held, *other.held)):
            if key[0] == "unique":
                continue  # what SLEIGH computes an instruction with, which none behind it reads
            if key not in other.held:
                return None
            size_bytes, second = other.held[key]
            try:
                one = self._read(way, Varnode(*key, size_bytes))
            except Astray:
                return None
            if isinstance(one, Word) and isinstance(second, Word):
                found[key] = size_bytes, self._terms.choose(condition, one, second)
            elif isinstance(one, Word) or isinstance(second, Word):
                return None
            else:
                bits = (choice(condition, *pair) for pair in zip(one, second, strict=True))
                found[key] = size_bytes, tuple(bits)
        return found

    # ------------------------------------------------------------------------------------------- operations, operands

    def _execute(self, way: _Way, op: PcodeOp) -> None:
        site = Site(way.pc, way.conditions)
        if op.opcode == "STORE":
            if op.inputs[1].size_bytes != 4:
                raise Astray(f"a store of {op.inputs[1].size_bytes} bytes")
            way.memory.store(self._word(way, op.inputs[0]), self._word(way, op.inputs[1]), site)
            return
        if op.opcode == "CALLOTHER" and op.user_op in NO_EFFECT | _BEFORE_RETURN:
            return
        if op.output is None or op.output.space == "ram":
            raise Astray(f"an operation that is not known, {op.user_op or op.opcode}")
        if op.opcode == "LOAD":
            if op.output.size_bytes != 4:
                raise Astray(f"a load of {op.output.size_bytes} bytes")
            address = self._word(way, op.inputs[0])
            # Another address in the code, as of a table of constants, is none that the values tell to be one literal.
            is_literal = op.inputs[0].space == "const" and not address.parts
            literal = self._lifter.code_word(address.constant) if is_literal else None
            self._write(way, op.output, way.memory.load(address, site) if literal is None else Word(literal))
            return
        if op.opcode == "INT_ZEXT" and op.inputs[0].space == "const":
            self._write(way, op.output, Word(op.inputs[0].offset))
            return
        inputs = [self._read(way, one) for one in op.inputs]
        result = self._computed(op.opcode, inputs, op.output.size_bytes)
        if result is None:
            raise Astray(f"an operation that is not known, {op.user_op or op.opcode}")
        self._write(way, op.output, result)

    def _computed(self, opcode: str, inputs: list[Word | Bits], size_bytes: int) -> Word | Bits | None:
        words = [one for one in inputs if isinstance(one, Word)]
        if opcode == "SUBPIECE" and size_bytes == 1 and isinstance(inputs[0], Word):
            return self._lowest_byte(inputs[0]) if inputs[1] == Word(0) else None
        if len(words) == len(inputs):
            return compared(opcode, words) if size_bytes == 1 else self._terms.operate(opcode, *words)
        if size_bytes == 4:
            if opcode not in _OF_BYTES:
                return None
            numbers = [one if isinstance(one, Word) else constant(one) for one in inputs]
            plain = [Word(one) if isinstance(one, int) else one for one in numbers if one is not None]
            return self._terms.operate(opcode, *plain) if len(plain) == len(inputs) else None
        return of_bits(opcode, inputs)

    def _lowest_byte(self, word: Word) -> Bits:
        """Anything, unless it is a constant or a bit: of other words none is asked for."""
        if not word.parts:
            return byte(word.constant % 256)
        if self._terms.most(word) == 1:
            return negation(same(word, Word(0))), *NO_BITS[1:]
        return tuple(unknown(self._terms.fresh("bit").arguments[0], "bool") for _ in range(8))

    def _bit(self, way: _Way, varnode: Varnode) -> Node:
        value = self._read(way, varnode)
        if isinstance(value, Word):
            return negation(same(value, Word(0)))
        return disjunction(*value)

    def _word(self, way: _Way, varnode: Varnode) -> Word:
        value = self._read(way, varnode)
        if not isinstance(value, Word):
            raise Astray("a byte in the place of a word")
        return value

    def _read(self, way: _Way, varnode: Varnode) -> Word | Bits:
        literal = self._lifter.code_word(varnode.offset) if varnode.space == "ram" and varnode.size_bytes == 4 else None
        if literal is not None:
            return Word(literal)
        if varnode.space == "ram" or varnode.size_bytes not in {1, 4}:
            raise Astray(f"an operand of {varnode.size_bytes} bytes in the space {varnode.space}")
        if varnode.space == "const":
            return Word(varnode.offset) if varnode.size_bytes == 4 else byte(varnode.offset)
        found = way.held.get((varnode.space, varnode.offset))
        if found is None:
            end = varnode.offset + varnode.size_bytes
            for (space, offset), (size_bytes, _) in way.held.items():
                if space == varnode.space and offset < end and varnode.offset < offset + size_bytes:
                    raise Astray("a part of a register")
            name = f"{varnode.space} {varnode.offset}"
            value: Word | Bits = tuple(unknown(f"{name} bit {bit} at entry", "bool") for bit in range(8))
            if varnode.size_bytes == 4:
                kept = self._kept.untouched.get((varnode.space, varnode.offset))
                node = unknown(f"{name} at entry") if kept is None else kept.parts[0][0]
                value = Word(0, ((self._terms.known(node), 1),))
            found = way.held[varnode.space, varnode.offset] = varnode.size_bytes, value
        if found[0] != varnode.size_bytes:
            raise Astray("a part of a register")
        return found[1]

    def _write(self, way: _Way, varnode: Varnode, value: Word | Bits) -> None:
        if varnode.space == "register" and (varnode.offset, varnode.size_bytes) not in self._kept.may_write:
            raise Astray("a write to a register that no function may change, or to a part of one")
        end = varnode.offset + varnode.size_bytes
        held = way.held
        for offset in range(varnode.offset - 7, end):
            own = held.get((varnode.space, offset))
            if own is not None and offset + own[0] > varnode.offset:
                del held[varnode.space, offset]
        if isinstance(value, Word) != (varnode.size_bytes == 4):
            raise Astray(f"a result of {varnode.size_bytes} bytes")
        held[varnode.space, varnode.offset] = varnode.size_bytes, value


def _jump(way: _Way, target: Varnode) -> None:
    """Go on at ``target``; an offset is to another operation of the same instruction."""
    if target.space == "const":
        way.index += signed(8 * target.size_bytes, target.offset)
    else:
        way.pc, way.index = target.offset, 0
