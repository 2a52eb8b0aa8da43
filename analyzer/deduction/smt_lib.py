"""Scripts of SMT-LIB 2 of what was shown, so that another solver than the one that answered can be asked.

Of the questions of a `solver.Questions` those are told that were answered by *it follows*, with what was assumed. Each
asks for values of which the negation of what follows holds, so that each answer is to be ``unsat``. Integers and bits
have a script each. Formulas are written as `formulas` and `word_terms` make them; nothing of z3 takes part.

Words: SMT, verification condition (docs/explanation/glossary.md).

*Soundness:* none is claimed. A script tells what was asked, and not that it was the right question.

The first answer is ``unsat`` because of what is assumed in the scope:

>>> from wcet_probe.analyzer.deduction.formulas import unknown
>>> size = unknown("size")
>>> events = [Scope(begins=True), Assumed(size >= 8), Follows(size > 0), Scope(begins=False)]
>>> print(next(scripts(events)).text)
; 1 question, each to be answered by: unsat
(set-option :global-declarations true)
(set-logic QF_UFLIA)
(push 1)
(declare-fun |size| () Int)
(define-fun t1 () Int (+ 8 (* (- 1) |size|)))
(define-fun t2 () Bool (<= t1 0))
(assert t2)
(push 1)
(define-fun t3 () Int (+ 1 (* (- 1) |size|)))
(define-fun t4 () Bool (<= t3 0))
(define-fun t5 () Bool (not t4))
(assert t5)
(check-sat)
(pop 1)
(pop 1)
<BLANKLINE>
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from wcet_probe.analyzer.deduction.formulas import Node, negation

Further = Callable[[Callable[[Node], int]], Iterable[Node]]
"""More premises of bits, of what words are where those told before hold and a formula does not."""
_BITS = 32
_PREDICATES = {"bits equal": "=", "bits less": "bvult", "bits signed less": "bvslt"}
"""Of words, and true or false."""
_OPERATIONS = {
    **_PREDICATES,
    "all": "and",
    "bits INT_ADD": "bvadd",
    "bits INT_AND": "bvand",
    "bits INT_LEFT": "bvshl",
    "bits INT_MULT": "bvmul",
    "bits INT_NEGATE": "bvnot",
    "bits INT_OR": "bvor",
    "bits INT_RIGHT": "bvlshr",
    "bits INT_XOR": "bvxor",
    "bits choice": "ite",
    "choice": "ite",
    "equal": "=",
    "not": "not",
}


class Assumed(NamedTuple):
    """A formula is taken for granted from here on, in this scope."""

    formula: Node


class Scope(NamedTuple):
    """A scope of assumptions begins, or ends."""

    begins: bool


class Follows(NamedTuple):
    """A formula follows from what is assumed."""

    formula: Node


class FollowsOfBits(NamedTuple):
    """A formula of words as bits follows from premises, and from nothing else."""

    premises: tuple[Node, ...]
    formula: Node


class FollowsOfIntegers(NamedTuple):
    """A formula over integers follows from premises, and from nothing else."""

    premises: tuple[Node, ...]
    formula: Node


Question = FollowsOfIntegers | FollowsOfBits
"""One that stands by itself."""
Event = Assumed | Scope | Follows | Question


class Script(NamedTuple):
    """A script.

    Attributes:
        logic: of SMT-LIB: ``QF_UFLIA`` of integers, or ``QF_BV`` of bits.
        text: of it.
        questions: how many answers it is to have, each ``unsat``.
    """

    logic: str
    text: str
    questions: int


def scripts(events: Iterable[Event]) -> Iterator[Script]:
    """The scripts of integers and of bits of what was asked of one `solver.Questions`, if there is such a question.

    Args:
        events: what was assumed and shown, in order.
    """
    own = tuple(events)
    bits = [one for one in own if isinstance(one, FollowsOfBits)]
    for logic, told in (("QF_UFLIA", [one for one in own if not isinstance(one, FollowsOfBits)]), ("QF_BV", bits)):
        number = sum(isinstance(one, Follows | Question) for one in told)
        if number:
            head = (
                f"; {number} question{'s' * (number > 1)}, each to be answered by: unsat",
                "(set-option :global-declarations true)",
                f"(set-logic {logic})",
            )
            yield Script(logic, "".join(f"{line}\n" for line in (*head, *_lines(told))), number)


def assertion_of(formula: Node) -> str:
    """``formula`` over integers, as what is asserted, with the declarations of what it is made of."""
    return "".join(f"{line}\n" for line in _Written().asserted(formula))


def script_of(question: Question) -> str:
    """``question`` alone, to be answered by ``unsat``."""
    written = _Written()
    lines = [f"(set-logic {'QF_BV' if isinstance(question, FollowsOfBits) else 'QF_UFLIA'})"]
    for one in (*question.premises, negation(question.formula)):
        lines += written.asserted(one)
    return "".join(f"{line}\n" for line in (*lines, "(check-sat)"))


def _lines(events: Iterable[Event]) -> Iterator[str]:
    written = _Written()
    for event in events:
        match event:
            case Scope(begins):
                yield "(push 1)" if begins else "(pop 1)"
            case Assumed(formula):
                yield from written.asserted(formula)
            case Follows(formula):
                yield from _question(written, negation(formula))
            case FollowsOfIntegers(premises, formula) | FollowsOfBits(premises, formula):
                yield from _question(written, *premises, negation(formula))


def _question(written: _Written, *formulas: Node) -> Iterator[str]:
    yield "(push 1)"
    for one in formulas:
        yield from written.asserted(one)
    yield "(check-sat)"
    yield "(pop 1)"


class _Written:
    """The terms that a script has a name for, so that none is written twice."""

    def __init__(self) -> None:
        self._names: dict[Node, str] = {}
        self._declared = set[str]()

    def asserted(self, formula: Node) -> Iterator[str]:
        """Declare what ``formula`` is made of, and assert it."""
        todo = [formula]
        while todo:
            parts = [part for part in _parts(todo[-1]) if part not in self._names]
            if parts:
                todo += parts
            else:
                node = todo.pop()
                if node not in self._names:
                    yield from self._named(node)
        yield f"(assert {self._names[formula]})"

    def _named(self, node: Node) -> Iterator[str]:
        """Give ``node`` a name, whose parts have one."""
        if node.operation in {"unknown", "bits unknown", "apply"}:
            name, *arguments = node.arguments
            if name not in self._declared:
                self._declared.add(name)
                yield f"(declare-fun |{name}| ({' '.join(map(_sort, arguments))}) {_sort(node)})"
        text = _text(node, [self._names[part] for part in _parts(node)])
        if _parts(node):
            name = f"t{len(self._names)}"
            yield f"(define-fun {name} () {_sort(node)} {text})"
            text = name
        self._names[node] = text


def _parts(node: Node) -> Sequence[Node]:
    """The terms that ``node`` is directly made of."""
    if node.operation == "sum":
        return [one for one, _ in node.arguments[1]]
    return [one for one in node.arguments if isinstance(one, Node)]


def _sort(node: Node) -> str:
    if node.operation.startswith("bits ") and node.operation not in _PREDICATES:
        return f"(_ BitVec {_BITS})"
    return "Int" if node.sort == "int" else "Bool"


def _text(node: Node, parts: Sequence[str]) -> str:  # noqa: C901, PLR0911  a case for each operation
    """``node``, whose parts are written as ``parts``."""
    match node.operation, node.arguments:
        case "int", (value,):
            return _integer(value)
        case "bool", (value,):
            return "true" if value else "false"
        case "bits constant", (value,):
            return _word(value)
        case (("unknown" | "bits unknown"), (name,)):
            return f"|{name}|"
        case "apply", (name, *_):
            return f"(|{name}| {' '.join(parts)})"
        case "sum", (constant, summands):
            each = zip(parts, (factor for _, factor in summands), strict=True)
            products = (part if factor == 1 else f"(* {_integer(factor)} {part})" for part, factor in each)
            return f"(+ {_integer(constant)} {' '.join(products)})"
        case "at most", _:
            return f"(<= {parts[0]} 0)"
        case "bits LZCOUNT", _:
            return _leading_zeros(parts[0])
        case "bits REVERSED", _:
            return f"(concat {' '.join(_bit(parts[0], place) for place in range(_BITS))})"
        case operation, _:
            return f"({_OPERATIONS[operation]} {' '.join(parts)})"


def _integer(value: int) -> str:
    return str(value) if value >= 0 else f"(- {-value})"


def _word(value: int) -> str:
    return f"(_ bv{value % (1 << _BITS)} {_BITS})"


def _bit(word: str, place: int) -> str:
    return f"((_ extract {place} {place}) {word})"


def _leading_zeros(word: str) -> str:
    text = _word(_BITS)
    for place in range(_BITS):
        text = f"(ite (= {_bit(word, place)} #b1) {_word(_BITS - 1 - place)} {text})"
    return text
