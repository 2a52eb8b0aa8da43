"""The certificate of a deduction: claims, ways, what was asked of each, and the answers that it rests on.

It is checked without a search. The operations are deduced again of the binary, with the answers of the certificate in
the place of a solver's (`analyzer.deduction.replay`), and have to come to the same ways and obligations; each answer
*it follows* is asked of a solver of one's choice, with nothing assumed but the few formulas that the answer names.

Words: claim, obligation, SMT, verification condition (docs/explanation/glossary.md).

*Soundness:* of a certificate nothing is believed. Ways, claims and questions are those of the binary and of the claims
of this program, whatever the certificate says; what it says is compared with them, so that it says nothing else. What
is trusted is told in docs/explanation/known-sets.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import Any, TypeGuard

from wcet_probe.analyzer.deduction.answers import Answer, KeptQuestions, OfBits, OfIntegers
from wcet_probe.analyzer.deduction.asked import Asked, Asking
from wcet_probe.analyzer.deduction.formulas import unknown
from wcet_probe.analyzer.deduction.obligations import Deduced
from wcet_probe.analyzer.deduction.other_solvers import OPEN, UNSAT, answer
from wcet_probe.analyzer.deduction.replay import OtherQuestionsError, Replayed
from wcet_probe.analyzer.deduction.smt_lib import assertion_of, script_of
from wcet_probe.build.program import Program
from wcet_probe.cache_sets.claimed import claimed
from wcet_probe.errors import UsageError, VerificationError
from wcet_probe.model.induction import PREMISES
from wcet_probe.progress import Progress, silent

FORMAT, VERSION = "wcet-probe-deduction", 1
Json = dict[str, Any]
Deducing = Callable[[Asking], tuple[Deduced, ...]]
"""Operations deduced, by answers of whoever is asked."""
_TOLD_EACH = 50
"""Of so many questions it is told that they were asked."""


# ------------------------------------------------------------------------------------------------------------- writing


def with_certificate(program: Program, deducing: Deducing) -> tuple[tuple[Deduced, ...], Json]:
    """What comes of ``deducing``, and its certificate.

    Raises:
        UsageError: z3 is not installed, or no claims are written for this allocator.
    """
    made: dict[str, list[KeptQuestions]] = {}

    def asking(operation: str) -> Callable[[], Asked]:
        own = made.setdefault(operation, [])

        def make() -> Asked:
            own.append(KeptQuestions())
            return own[-1]

        return make

    parts = deducing(asking)
    operations = [
        {**_told(one), "answers": [[_written(each) for each in kept.answers] for kept in made[one.operation]]}
        for one in parts
    ]
    return parts, {**_head(program), "operations": operations}


def _head(program: Program) -> Json:
    """What is claimed, of which binary, and what is taken for granted of its callers."""
    allocator, own = program.allocator, claimed(program.allocator.name)
    return {
        "format": FORMAT,
        "version": VERSION,
        "allocator": allocator.name,
        "parameters": dict(allocator.values),
        "target": program.target.name,
        "image_sha256": sha256(program.image.elf).hexdigest(),
        "premises": [*PREMISES, *own.premises],
        "claims": [
            {"name": claim.name, "of": list(claim.kinds), "formula": assertion_of(claim.of(view, *variables))}
            for claim, view in own.claims(program)
            for variables in [tuple(unknown(f"{kind} {number}") for number, kind in enumerate(claim.kinds))]
        ],
    }


def _told(one: Deduced) -> Json:
    """The ways of an operation, by the branches that they take, and what was asked of each."""
    return {
        "operation": one.operation,
        "ways": [[[hex(address), is_taken] for address, is_taken in way] for way in one.choices],
        "obligations": [
            [each.way, hex(each.instruction_address), each.what, each.is_shown] for each in one.obligations
        ],
    }


def _written(one: Answer) -> Any:  # noqa: ANN401  JSON
    """An answer: null, or what it follows from; of bits an object."""
    match one:
        case OfIntegers(suffices):
            return None if suffices is None else list(suffices)
        case OfBits(is_shown, numbers):
            return {"shown": is_shown, "numbers": [list(own) for own in numbers]}


# ------------------------------------------------------------------------------------------------------------ checking


def operations_of(document: object) -> tuple[str, ...]:
    """The operations that ``document`` is of, in order; there is one at least, as of none nothing would be checked.

    Raises:
        UsageError: it is no certificate of a deduction, or of another version.
    """
    try:
        if (document["format"], document["version"]) == (FORMAT, VERSION):  # type: ignore[index]
            names = [one["operation"] for one in document["operations"]]  # type: ignore[index]
            if names and all(isinstance(one, str) for one in names) and len(set(names)) == len(names):
                return tuple(names)
    except (KeyError, TypeError):
        pass
    raise UsageError(f"this is no {FORMAT} document of version {VERSION}; give a file that --certificate wrote.")


def checked(
    program: Program, document: Json, deducing: Deducing, solver: str, progress: Progress = silent
) -> tuple[Deduced, ...]:
    """What comes of ``deducing`` by the answers of ``document``, all of which ``solver`` gives as well.

    Raises:
        UsageError: it is no certificate, or the solver is not installed.
        VerificationError: it is of another binary or other claims, has other ways or obligations, lacks an answer or
            has one too many, or the solver does not answer a question as it says.
    """
    named = operations_of(document)
    for key, own in _head(program).items():
        if document.get(key) != own:
            raise VerificationError(f"the certificate's {_difference(key, document.get(key), own)}")
    told = dict(zip(named, document["operations"], strict=True))
    made: dict[str, list[Replayed]] = {}

    def asking(operation: str) -> Callable[[], Asked]:
        own = made.setdefault(operation, [])
        kept = told.get(operation, {}).get("answers")

        def make() -> Asked:
            if not isinstance(kept, list) or len(own) >= len(kept):
                raise OtherQuestionsError(f"there are no answers for part {len(own) + 1}")
            own.append(Replayed(_read(operation, kept[len(own)])))
            return own[-1]

        return make

    try:
        parts = deducing(asking)
    except OtherQuestionsError as error:
        operation = list(made)[-1]
        where = f"{operation}, part {max(len(made[operation]), 1)}"
        raise VerificationError(f"the certificate does not fit the code: of {where}, {error}") from error
    if more := [repr(one) for one in told.keys() - {one.operation for one in parts}]:
        raise VerificationError(f"the certificate has operations too many: {', '.join(sorted(more))}")
    for one in parts:
        _compare(one, told[one.operation], made[one.operation])
    _ask(made, solver, progress)
    return parts


def _difference(key: str, told: object, own: object) -> str:
    if key == "claims" and isinstance(own, list):
        names = [one["name"] for one in own if not isinstance(told, list) or one not in told]
        more = "" if names else " and more"
        return f"claims are not those of this program: {', '.join(names) or 'all'}{more}"
    if key == "image_sha256":
        return "binary is another one; build the one that it was made of."
    return f"{key}: {told!r} is told, and is {own!r} here"


def _read(operation: str, answers: object) -> tuple[Answer, ...]:
    if not isinstance(answers, list):
        raise VerificationError(f"of {operation} no list of answers is in the certificate")
    return tuple(_read_one(operation, one) for one in answers)


def _read_one(operation: str, one: object) -> Answer:
    if one is None:
        return OfIntegers(None)
    if _are_numbers(one):
        return OfIntegers(tuple(one))
    if isinstance(one, dict) and one.keys() == {"shown", "numbers"} and isinstance(one["shown"], bool):
        numbers = one["numbers"]
        if isinstance(numbers, list) and all(map(_are_numbers, numbers)):
            return OfBits(one["shown"], tuple(map(tuple, numbers)))
    raise VerificationError(f"of {operation} the certificate has an answer that is none: {one!r}")


def _are_numbers(one: object) -> TypeGuard[list[int]]:
    return isinstance(one, list) and all(type(each) is int and each >= 0 for each in one)


def _compare(one: Deduced, told: Mapping[str, object], replayed: Iterable[Replayed]) -> None:
    """Hold what came of an operation against what the certificate says of it."""
    parts = tuple(replayed)
    for number, part in enumerate(parts, 1):
        if not part.is_at_end:
            raise VerificationError(f"of {one.operation}, part {number}, the certificate has an answer too many")
    answers = told["answers"]
    if not isinstance(answers, list) or len(answers) != len(parts):
        raise VerificationError(f"of {one.operation} the certificate has a part too many")
    own = _told(one)
    for key in ("ways", "obligations"):
        if told.get(key) != own[key]:
            raise VerificationError(f"the {key} of {one.operation} are not those that the certificate says")


def _ask(made: Mapping[str, list[Replayed]], solver: str, progress: Progress) -> None:
    """Ask ``solver`` all that is said to follow."""
    questions = [
        (f"{operation}, part {part}, question {number}", question)
        for operation, parts in made.items()
        for part, one in enumerate(parts, 1)
        for number, question in enumerate(one.shown, 1)
    ]
    answered = set[str]()
    for number, (where, question) in enumerate(questions):
        if number % _TOLD_EACH == 0:
            progress(f"asking {solver} what the certificate says to follow, {number:,} of {len(questions):,}")
        script = script_of(question)
        if script in answered:
            continue
        said = answer(script, solver)
        if said != UNSAT:
            what = "does not find an answer" if said == OPEN else "finds values against it"
            raise VerificationError(f"{where}: it does not follow from what the certificate names, {solver} {what}")
        answered.add(script)
