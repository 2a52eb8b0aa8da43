"""Flow facts: what a bound takes as given, because values cannot tell it; ``docs/reference/facts.md`` describes them.

A fact speaks of a function and carries the hash of it, so that a changed function needs a new look. `binding`
compares the hashes and finds the binary loops that a fact speaks of; here the file is read, and nothing more.

Words: flow fact (docs/explanation/glossary.md).
"""

from __future__ import annotations

import keyword
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import PurePath
from types import MappingProxyType
from typing import Any, Literal, TypeVar

from wcet_probe.analyzer.facts.expressions import Expression, names, parse
from wcet_probe.analyzer.facts.language import (
    ArgumentFact,
    CallsFact,
    Facts,
    FlowFact,
    FlowTerm,
    GivenBoundFact,
    InfeasibleFact,
    Lemma,
    LoopFact,
    Place,
    Pointee,
    PointerFact,
    RecursionFact,
    ThroughFact,
    Visit,
    WordFact,
)
from wcet_probe.errors import UsageError, unknown_name

CHECKS = ("access-regions", "alignment", "heap-invariants", "heap-walk")
"""The checks of emulated states that a lemma may name."""


_TERM = re.compile(r"(branch|loop|point|then) (?:(\w+):)?([\w.-]+)")
_KINDS_OF_TERMS: Mapping[str, Literal["branch", "loop", "point", "then"]] = {
    "branch": "branch",
    "loop": "loop",
    "point": "point",
    "then": "then",
}
_VISITS: Mapping[str, Visit] = {"first": "first", "again": "again"}
_SHA256 = re.compile(r"[0-9a-f]{64}")
_POINTEE = re.compile(r"([\w.$]+)(?:\s*\+\s*(0x[0-9a-fA-F]+|[0-9]+))?")
_MEMBER = re.compile(r"\w+(?:\.\w+)+")
_FIELD = re.compile(r"\w+(?:\[[0-9]+\])*(?:\.\w+(?:\[[0-9]+\])*)*")
_Value = TypeVar("_Value")


def parse_facts(file: str, text: str) -> Facts:
    """The facts of the TOML file with the content ``text``.

    Parameters:
        file: the file's name for messages and results; of an absolute path only the last part is kept.
        text: its content.

    Raises:
        UsageError: no TOML, or a key is missing, unknown or has a bad value; the message names file, line and key.

    Soundness: a fact is an assumption: its truth is not decided here or anywhere in the analyzer.
    """
    shown = PurePath(file).name if PurePath(file).is_absolute() else file
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{shown} is no TOML ({error}); correct it.") from error
    for key in document:
        if key not in _KINDS:
            raise UsageError(f"{shown}: {unknown_name('key', key, _KINDS)}")

    def entries(kind: str, read: Callable[[_Entry], _Value]) -> tuple[_Value, ...]:
        tables = document.get(kind, [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            raise UsageError(f"{shown}: key {kind} is no array of tables; write [[{kind}]] above each of them.")
        lines = _lines_of(kind, text)
        found = []
        for row, table in enumerate(tables):
            entry = _Entry(f"{shown}:{lines[row]}" if len(lines) == len(tables) else shown, kind, table)
            found.append(read(entry))
            entry.finish()
        return tuple(found)

    calls = entries("calls", lambda e: _calls(e, file))
    return Facts(
        file=shown,
        loops=entries("loop", _loop),
        arguments=entries("argument", _argument),
        recursions=entries("recursion", _recursion),
        calls=tuple(one for one in calls if isinstance(one, CallsFact)),
        through=tuple(one for one in calls if isinstance(one, ThroughFact)),
        given=tuple(one for one in calls if isinstance(one, GivenBoundFact)),
        infeasible=entries(
            "infeasible", lambda e: InfeasibleFact(e.where, e.place("point", "line", "offset"), *_reason(e))
        ),
        flows=entries("flow", _flow),
        pointers=entries("pointer", _pointer),
        words=entries("word", _word),
        lemmas=entries("lemma", _lemma),
        parameters=_parameters(shown, document.get("parameters", {})),
    )


_KINDS = ("argument", "calls", "flow", "infeasible", "lemma", "loop", "parameters", "pointer", "recursion", "word")


def _lines_of(kind: str, text: str) -> list[int]:
    """The lines of the headers ``[[kind]]``."""
    header = re.compile(rf"\s*\[\[\s*{kind}\s*\]\]")
    return [number for number, line in enumerate(text.split("\n"), 1) if header.match(line)]


class _Entry:
    """One table of the file, which remembers the keys that were read, so that others can be refused."""

    def __init__(self, where: str, kind: str, content: Mapping[str, Any]) -> None:
        self.where = where
        self._kind, self._content = kind, content
        self._read: set[str] = set()

    def error(self, key: str, remedy: str) -> UsageError:
        return UsageError(f"{self.where}: [[{self._kind}]] key {key}: {remedy}{'' if remedy.endswith('?') else '.'}")

    def has(self, *keys: str) -> list[str]:
        """Those of ``keys`` that are given."""
        self._read |= set(keys)
        return [key for key in keys if key in self._content]

    def value(self, key: str, kind: type[_Value], remedy: str) -> _Value:
        if not self.has(key):
            raise self.error(key, f"is missing; {remedy}")
        value = self._content[key]
        if not isinstance(value, kind) or isinstance(value, bool) or value == "":
            raise self.error(key, f"cannot be {value!r}; {remedy}")
        return value

    def text(self, key: str) -> str:
        return self.value(key, str, "give a text that is not empty")

    def number(self, key: str, minimum: int = 0) -> int:
        remedy = f"give a whole number of at least {minimum}"
        number = self.value(key, int, remedy)
        if number < minimum:
            raise self.error(key, f"cannot be {number}; {remedy}")
        return number

    def flag(self, key: str) -> bool:
        if not self.has(key):
            return False
        if not isinstance(self._content[key], bool):
            raise self.error(key, f"cannot be {self._content[key]!r}; give true or false")
        return bool(self._content[key])

    def texts(self, key: str) -> tuple[str, ...]:
        remedy = "give an array of texts, at least one"
        texts = self.value(key, list, remedy)
        if not texts or not all(isinstance(text, str) and text for text in texts):
            raise self.error(key, f"cannot be {texts!r}; {remedy}")
        return tuple(texts)

    def expression(self, key: str) -> Expression:
        remedy = "give a whole number or an expression such as 'H // (2*M)'"
        return _expression(self.value(key, object, remedy), lambda reason: self.error(key, reason))

    def place(self, *keys: str) -> Place:
        """The place that ``function``, ``file`` and exactly one of ``keys`` name; without keys, the function."""
        given = self.has(*keys)
        if keys and len(given) != 1:
            asserted = " and ".join(given) or "no place"
            raise self.error("function", f"{asserted} given; give exactly one of {', '.join(keys)}")
        name = next((self.text(key) for key in given if key in ("label", "point")), None)
        return Place(
            self.text("function"),
            self.text("file") if self.has("file") else None,
            name,
            self.number("line", 1) if given == ["line"] else None,
            self.number("offset") if given == ["offset"] else None,
        )

    def check_sha256(self, value: object) -> None:
        if not isinstance(value, str) or not _SHA256.fullmatch(value):
            raise self.error("sha256", f"cannot be {value!r}; give 64 hexadecimal digits in lower case")

    def finish(self) -> None:
        """Refuse keys that nobody asked for."""
        for key in self._content:
            if key not in self._read:
                raise self.error(key, str(unknown_name("key", key, self._read)).removesuffix("."))


def _expression(value: object, error: Callable[[str], UsageError]) -> Expression:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise error(f"cannot be {value!r}; give a whole number or an expression such as 'H // (2*M)'")
    try:
        return parse(str(value))
    except UsageError as problem:
        raise error(str(problem).removesuffix(".")) from problem


def _recursion(entry: _Entry) -> RecursionFact:
    """With an offset it is about the function's code, whose source need not be known."""
    place = entry.place("offset") if entry.has("offset") else entry.place()
    keys = ("max_depth", "max_calls")
    given = entry.has(*keys)
    if len(given) != 1:
        raise entry.error("max_depth", f"{' and '.join(given) or 'is missing'}; give exactly one of {', '.join(keys)}")
    depth, calls = (entry.expression(key) if key in given else None for key in keys)
    return RecursionFact(entry.where, place, depth, calls, *_reason(entry))


def _calls(entry: _Entry, file: str) -> CallsFact | GivenBoundFact | ThroughFact:
    """Of a document, a path that is not absolute is one from the folder of the file of facts."""
    if entry.has("bound_by"):
        document = str(PurePath(file).parent / entry.text("bound_by"))
        return GivenBoundFact(entry.where, entry.text("function"), document, entry.text("because"))
    if entry.has("through"):
        through = entry.text("through")
        if not _MEMBER.fullmatch(through):
            raise entry.error("through", f"cannot be {through!r}; name a structure and its member, 'lfs_config.read'")
        return ThroughFact(entry.where, through, _targets(entry), entry.text("because"))
    return CallsFact(entry.where, entry.place("line", "offset"), _targets(entry), *_reason(entry))


def _targets(entry: _Entry) -> tuple[str, ...]:
    if entry.has("targets") and entry.value("targets", object, "") == []:
        remedy = "tell of each call that is never made by [[infeasible]] with its function and offset, or name a target"
        raise entry.error("targets", f"cannot be []; {remedy}")
    return entry.texts("targets")


def _reason(entry: _Entry) -> tuple[str, str]:
    """Why the fact holds, and the hash of the function it speaks of."""
    because = entry.text("because")
    sha256 = entry.text("sha256") if entry.has("sha256") else ""
    if sha256:
        entry.check_sha256(sha256)
    return because, sha256


def _loop(entry: _Entry) -> LoopFact:
    maximum, minimum, total = (entry.expression(key) if entry.has(key) else None for key in ("max", "min", "total"))
    if maximum is minimum is total is None:
        raise entry.error("max", "is missing; give max or total, or min")
    within = entry.text("within") if entry.has("within") else None
    if within and total is None:
        raise entry.error("within", "needs a total; give one, or leave it out")
    optional = entry.flag("optional")
    return LoopFact(
        entry.where, entry.place("label", "line", "offset"), maximum, minimum, total, within, *_reason(entry), optional
    )


def _argument(entry: _Entry) -> ArgumentFact:
    if len(entry.has("index", "register")) != 1:
        raise entry.error("index", "give exactly one of index and register")
    points_to = _points_to(entry)
    return ArgumentFact(
        where=entry.where,
        function=entry.text("function"),
        index=entry.number("index") if entry.has("index") else None,
        register=entry.text("register") if entry.has("register") else None,
        minimum=entry.expression("min") if points_to is None else parse("0"),
        maximum=entry.expression("max") if points_to is None else parse("0"),
        because=entry.text("because"),
        points_to=points_to,
    )


def _points_to(entry: _Entry) -> Pointee | None:
    if not entry.has("points_to"):
        return None
    if given := entry.has("min", "max"):
        raise entry.error("points_to", f"leave it out, or {' and '.join(given)}")
    found = _POINTEE.fullmatch(entry.text("points_to"))
    if found is None:
        raise entry.error(
            "points_to",
            f"cannot be {entry.text('points_to')!r}; name a function or an object, 'table' or 'table + 8'",
        )
    return Pointee(found[1], int(found[2] or "0", 0))


def _flow(entry: _Entry) -> FlowFact:
    sums = entry.value("sum", dict, 'give a table such as { "point a" = 1, "loop b" = -2 }')
    place, hashes = entry.place(), _hashes(entry)
    terms = []
    for key, weight in sums.items():
        term = _TERM.fullmatch(key)
        if term is None:
            raise entry.error(
                "sum", f"cannot hold {key!r}; name a 'point NAME', a 'branch NAME', a 'then NAME' or a 'loop LABEL'"
            )
        if weight == 0:
            raise entry.error("sum", f"cannot weigh {key!r} with 0; give another number")
        expression = _expression(weight, lambda reason: entry.error("sum", reason))
        function = term[2] or place.function
        at = Place(function, place.file if function == place.function else None, term[3])
        terms.append(FlowTerm(_KINDS_OF_TERMS[term[1]], at, expression, hashes.get(function, "")))
    if not terms:
        raise entry.error("sum", 'is empty; give a table such as { "point a" = 1, "loop b" = -2 }')
    per = entry.text("per") if entry.has("per") else None
    if per not in (None, "call"):
        raise entry.error("per", f"cannot be {per!r}; give 'call', or leave it out")
    return FlowFact(
        where=entry.where,
        place=place,
        terms=tuple(terms),
        maximum=entry.expression("max"),
        because=entry.text("because"),
        for_each_call=per == "call",
        optional=entry.flag("optional"),
    )


def _pointer(entry: _Entry) -> PointerFact:
    functions = entry.texts("functions") if entry.has("functions") else ()
    given = entry.value("sha256", dict, "give a hash for each of the functions") if functions else {}
    for sha256 in given.values():
        entry.check_sha256(sha256)
    if len(entry.has("first_set", "sets")) == 1:
        raise entry.error("sets", "give both first_set and sets, or neither")
    if len(entry.has("symbol", "sets")) == 2:
        raise entry.error("symbol", "leave out first_set and sets, or the symbol")
    if len(entry.has("lines", "lines_per_set")) == 1:
        raise entry.error("lines", "give both lines and lines_per_set, or neither")
    visit = _visit(entry) if entry.has("visit") else None
    if (visit == "again") != bool(entry.has("visit_line_bytes")):
        raise entry.error("visit_line_bytes", "give it with visit = 'again', and only then")
    keys = ("first_set", "sets", "lines", "lines_per_set", "visit_line_bytes", "line_changes")
    first_set, sets, lines, lines_per_set, line_bytes, line_changes = (
        entry.expression(key) if entry.has(key) else None for key in keys
    )
    return PointerFact(
        where=entry.where,
        functions=MappingProxyType({function: given.get(function, "") for function in functions}),
        multiple_of=entry.expression("multiple_of"),
        first_set=first_set,
        sets=sets,
        because=entry.text("because"),
        lines=lines,
        lines_per_set=lines_per_set,
        symbol=entry.text("symbol") if entry.has("symbol") else None,
        remainder=entry.expression("remainder") if entry.has("remainder") else None,
        visit=visit,
        visit_line_bytes=line_bytes,
        line_changes=line_changes,
    )


def _visit(entry: _Entry) -> Visit:
    visit = _VISITS.get(entry.text("visit"))
    if visit is None:
        raise entry.error("visit", f"cannot be {entry.text('visit')!r}; give 'first' or 'again'")
    return visit


def _word(entry: _Entry) -> WordFact:
    if len(entry.has("offset", "field")) > 1:
        raise entry.error("field", "leave it out, or the offset")
    field = entry.text("field") if entry.has("field") else ""
    if field and not _FIELD.fullmatch(field):
        raise entry.error("field", f"cannot be {field!r}; name a member, as 'read', 'rcache.buffer' or 'way[2].next'")
    points_to = _points_to(entry)
    return WordFact(
        where=entry.where,
        symbol=entry.text("symbol"),
        offset=entry.expression("offset") if entry.has("offset") else parse("0"),
        minimum=entry.expression("min") if entry.has("min") else parse("0"),
        maximum=entry.expression("max") if points_to is None else parse("0"),
        because=entry.text("because"),
        field=field,
        points_to=points_to,
    )


def _hashes(entry: _Entry) -> Mapping[str, str]:
    """Hashes by function: a text is that of the fact's own function."""
    if not entry.has("sha256"):
        return {}
    given = entry.value("sha256", object, "")
    table = given if isinstance(given, dict) else {entry.text("function"): given}
    for sha256 in table.values():
        entry.check_sha256(sha256)
    return {str(function): str(sha256) for function, sha256 in table.items()}


def _lemma(entry: _Entry) -> Lemma:
    check = entry.text("check")
    if check not in CHECKS:
        raise entry.error("check", str(unknown_name("check", check, CHECKS)).removesuffix("."))
    loops = entry.texts("loops") if entry.has("loops") else ()
    for loop in loops:
        if loop.count(":") != 1:
            raise entry.error("loops", f"cannot hold {loop!r}; name loops as function:label")
    return Lemma(entry.where, entry.text("id"), entry.text("statement"), entry.text("because"), check, loops)


def _parameters(file: str, table: object) -> Mapping[str, Expression]:
    if not isinstance(table, dict):
        raise UsageError(f"{file}: key parameters is no table; write [parameters] above the parameters.")
    found: dict[str, Expression] = {}
    for name, value in table.items():

        def error(reason: str, name: str = name) -> UsageError:
            return UsageError(f"{file}: [parameters] key {name}: {reason}.")

        if not name.isidentifier() or keyword.iskeyword(name) or not names(Expression(name)):
            raise error("is no name for a parameter; take letters, digits and underscores, and no function's name")
        found[name] = _expression(value, error)
    return MappingProxyType(found)
