"""Mutants of what the rule *source* reads: texts, marks, facts, hashes; and of the constraints that rest on it.

    python -m tests.certificate.source_mutants FROM TO

Each changes true evidence so that a constraint claims too much which the bound rests on: a place that takes off a sum
is executed oftener by the source, or is not counted, or weighs more. A fact's hashes are those of the changed text, but
where they are what is changed. Some mutants change nothing that counts; these may be accepted.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256

from tests.certificate.forgeries import sealed, solved_again
from tests.certificate.mutants import outcome
from tests.certificate.specimens import specimen
from wcet_probe.catalog.lookup import load_allocator
from wcet_probe.certificate.facts.asserted import read_asserted
from wcet_probe.certificate.facts.hashes import tokens
from wcet_probe.certificate.facts.plain_source import definitions
from wcet_probe.errors import AnalysisError

SPECIMENS = (
    ("buddy-binary", "mpc603e", "malloc"),
    ("avl-best-fit", "cortex-m4", "free"),
    ("avl-best-fit", "cortex-m7", "malloc"),
)
"""Bounds that rest on sums from which something is taken off."""
NEGATIVE = re.compile(r'"(point|loop) (?:(\w+):)?(\w+)" = -(\d+)')


@dataclass(frozen=True)
class Place:
    """What takes off the sum of the fact ``number``: in which function it stands, its name, for calls of ``entry``."""

    number: int
    entry: str
    function: str
    name: str


@dataclass
class Told:
    """Evidence beside a result: files of facts, sources, and whether a bound that rests on ``place`` claims too much.

    Attributes:
        is_stale: whether hashes stay as they are, whatever the texts are.
    """

    facts: dict[str, str]
    sources: dict[str, str]
    place: Place
    is_less: bool = True
    is_stale: bool = False

    def body(self, name):
        """The file of a function, and where its body begins and ends."""
        for file, text in self.sources.items():
            found = re.search(rf"^\S[^;{{}}\n]*\b{name}\([^;{{}}]*\)\s*\{{(.*?)^\}}", text, re.MULTILINE | re.DOTALL)
            if found:
                return file, *found.span(1)
        return None

    def text(self, name):
        """The body of a function."""
        file, start, end = self.body(name)
        return self.sources[file][start:end]

    def insert(self, file, offset, text):
        whole = self.sources[file]
        self.sources[file] = whole[:offset] + text + whole[offset:]

    def called(self, name):
        """The functions that a call of ``name`` may execute."""
        found, waiting = set(), [name]
        while waiting:
            one = waiting.pop()
            if one not in found and self.body(one):
                found.add(one)
                waiting += re.findall(r"\b(\w+)\(", self.text(one))
        return found

    def chain(self):
        """The functions that are executed in a call of the entry and may call the place's."""
        return sorted(one for one in self.called(self.place.entry) if self.place.function in self.called(one))

    def boundary(self, draw, name):
        """A place between two statements of a function."""
        file, start, end = self.body(name)
        text, depth, found = self.sources[file], 0, []
        plain = re.sub(r"/\*.*?\*/", lambda one: "*" * len(one[0]), text[start:end], flags=re.DOTALL)
        for offset, mark in enumerate(plain):
            depth += (mark == "(") - (mark == ")")
            if mark == ";" and depth == 0 and not re.match(r"\s*else\b", plain[offset + 1 :]):
                found.append(start + offset + 1)
        return file, draw.choice(found or [start])


OPERATORS = {}


def operator(function):
    OPERATORS[function.__name__] = function
    return function


def table(draw, told, kind, wanted):
    """A table of a file of facts in whose text ``wanted`` is found: the file, and where it begins and ends."""
    found = [
        (file, *one.span())
        for file, text in told.facts.items()
        for one in re.finditer(rf"^\[\[{kind}\]\].*?(?=^\[\[|\Z)", text, re.MULTILINE | re.DOTALL)
        if re.search(wanted, one[0])
    ]
    return draw.choice(found) if found else None


def change_table(told, where, pattern, new):
    file, start, end = where
    text = told.facts[file]
    changed = re.sub(pattern, new, text[start:end], flags=re.MULTILINE)
    told.facts[file] = text[:start] + changed + text[end:]
    assert changed != text[start:end], pattern


def own_table(told):
    """The table of the fact."""
    tables = [
        (file, *one.span())
        for file, text in told.facts.items()
        for one in re.finditer(r"^\[\[flow\]\].*?(?=^\[\[|\Z)", text, re.MULTILINE | re.DOTALL)
    ]
    return tables[told.place.number]


@operator
def another_call(draw, told):
    """One more call of what executes the place, somewhere in the call."""
    callee, caller = draw.choice(told.chain()), draw.choice(sorted(told.called(told.place.entry)))
    told.insert(*told.boundary(draw, caller), f" {callee}(0);")


@operator
def call_elsewhere(draw, told):
    """Of a function that nobody calls, which changes nothing."""
    told.sources[told.body(told.place.entry)[0]] += f"void nobody(void) {{ {draw.choice(told.chain())}(0); }}\n"
    told.is_less = False


def rounds_told(draw, told):
    """The table of a fact that tells of a loop around the place, or around what calls it; None where there is none."""
    chain, found = told.chain(), []
    for name in chain:
        for loop in re.finditer(r"/\* loop: (\w+) \*/(.*?)^ {4}\}", told.text(name), re.MULTILINE | re.DOTALL):
            is_call = re.search(rf"\b(?:{'|'.join(chain)})\(", loop[2])
            if is_call or (name == told.place.function and f"/* point: {told.place.name} */" in loop[2]):
                found.append((name, loop[1]))
    return table(draw, told, "loop", 'function = "{}"\nlabel = "{}"'.format(*draw.choice(found))) if found else None


@operator
def more_rounds(draw, told):
    where = rounds_told(draw, told)
    if where is None:
        more_weight(draw, told)
        return
    change_table(told, where, r'^(max|total) = "?([^"\n]*)"?$', rf'\1 = "(\2) + {draw.randrange(1, 4)}"')


@operator
def no_rounds_told(draw, told):
    where = rounds_told(draw, told)
    if where is None:
        other_sum(draw, told)
        return
    change_table(told, where, r"^(max|total) =", r"no-\1 =")


@operator
def more_weight(draw, told):
    """The place takes off more than it did."""
    more = draw.randrange(1, 4)
    change_table(told, own_table(told), NEGATIVE.pattern, lambda one: one[0].replace(f"-{one[4]}", f"-{more + 1}"))


@operator
def less_weight(_, told):
    """Of the sum no place counts that adds to it."""
    change_table(told, own_table(told), r'"((?:point|loop|branch) [\w:]+)" = [1-9]\d*', r'"\1" = 0')


@operator
def other_sum(draw, told):
    """The sum may be more, which is too much for the certificate, or less."""
    told.is_less = draw.random() < 0.7
    sign = "+" if told.is_less else "-"
    change_table(told, own_table(told), r'^max = "?([^"\n]*)"?$', rf'max = "(\1) {sign} {draw.randrange(1, 4)}"')


@operator
def looped(draw, told):
    """What executes the place stands in a loop, of which a fact tells how often it is repeated."""
    name, most = draw.choice(told.chain()), draw.randrange(1, 4)
    file, start, end = told.body(name)
    told.insert(file, end, "}")
    told.insert(file, start, " for (;;) { /* loop: extra */")
    (digest,) = _digests(told.sources[file], name)
    facts = next(iter(told.facts))
    told.facts[facts] += (
        f'\n[[loop]]\nfunction = "{name}"\nlabel = "extra"\nmax = {most}\nbecause = "it says so"\nsha256 = "{digest}"\n'
    )
    told.is_less = most > 1


STATEMENTS = (
    "goto out; out: ;",
    "unknown();",
    "UNKNOWN(1);",
    "for (;;) FUNCTION(0);",
    "while (1) { FUNCTION(0); }",
    'asm volatile ("");',
    "void (*way)() = FUNCTION; way();",
    "setjmp(0);",
    "void inner(void) { FUNCTION(0); } inner();",
    "<% FUNCTION(0); %>",
    "ENTRY(0);",
    "/* loop: none */ do FUNCTION(0); while (1);",
)
ENDS = (
    "#define AGAIN FUNCTION",
    "#define OPEN {",
    "#define JOIN(a, b) a##b",
    '#include "missing.h"',
    "#include <missing.h>",
    'void same(void) __attribute__((alias("FUNCTION")));',
    'void same(void) __asm__("FUNCTION");',
    "#pragma redefine_extname same FUNCTION",
    "void (*way)() = FUNCTION;",
    "void FUNCTION(void) { }",
    "#if 0\n}\n#endif",
    "}",
    "#if 0\n{\n#else",
)
FILES = {
    "more.c": ("void (*way)() = FUNCTION;", "void FUNCTION(void) { }", "#define MORE {", "#define return FUNCTION(0)"),
    "more.s": ("more: b FUNCTION", ".global more\nmore: b FUNCTION"),
    "more.h": ("#define way FUNCTION", '#include "none.h"'),
}


@operator
def not_plain(draw, told):
    """A statement of which it is not known how often it executes what it names."""
    text = draw.choice(STATEMENTS).replace("FUNCTION", told.place.function).replace("ENTRY", told.place.entry)
    told.insert(*told.boundary(draw, draw.choice(told.chain())), f" {text}")


@operator
def not_plain_behind(draw, told):
    """Something at the end of a file that makes a text of which nothing is known."""
    file = told.body(told.place.function)[0] if draw.random() < 0.7 else draw.choice(sorted(told.sources))
    told.sources[file] += draw.choice(ENDS).replace("FUNCTION", told.place.function) + "\n"


@operator
def another_file(draw, told):
    name = draw.choice(sorted(FILES))
    told.sources[name] = draw.choice(FILES[name]).replace("FUNCTION", told.place.function) + "\n"


@operator
def missing_file(draw, told):
    """One that has code of the call, or is included; or, of which nothing is used."""
    name = draw.choice(sorted(told.sources))
    is_used = name.endswith(".h") or any(told.body(one)[0] == name for one in told.called(told.place.entry))
    del told.sources[name]
    told.is_less = is_used


@operator
def renamed_file(draw, told):
    """As no line of the code calls it, and nobody includes it."""
    name = told.body(told.place.function)[0]
    told.sources[draw.choice(("other.c", f"x/{name}", "other.h"))] = told.sources.pop(name)


@operator
def mark_elsewhere(draw, told):
    """The mark stands in another function of the call, or in none."""
    file = told.body(told.place.function)[0]
    mark = f"/* point: {told.place.name} */"
    told.sources[file] = told.sources[file].replace(mark, "/* */")
    if draw.random() < 0.5:
        others = sorted(told.called(told.place.entry) - {told.place.function})
        told.insert(*told.boundary(draw, draw.choice(others)), f" {mark}")


@operator
def other_hash(draw, told):
    """A digit of a hash, of any function that a fact speaks of."""
    told.is_stale = True
    found = [(file, one.start()) for file, text in told.facts.items() for one in re.finditer(r"[0-9a-f]{64}", text)]
    file, start = draw.choice(found)
    at, text = start + draw.randrange(64), told.facts[file]
    told.facts[file] = text[:at] + draw.choice(sorted(set("0123456789abcdef") - {text[at]})) + text[at + 1 :]


@operator
def other_function(draw, told):
    """A function is another one than its hash is of, if only by a statement that is none."""
    told.is_stale = True
    hashed = {one for text in told.facts.values() for one in re.findall(r'\b(\w+) = "[0-9a-f]{64}"', text)} - {"sha256"}
    told.insert(*told.boundary(draw, draw.choice(sorted(one for one in hashed if told.body(one)))), " ;")


@operator
def other_words(draw, told):
    """A comment, which is no part of a function, or a line behind them."""
    told.is_stale, told.is_less = True, False
    told.insert(*told.boundary(draw, draw.choice(told.chain())), " /* a comment; with { and f(0); */")


def _hashed_again(told, before):
    """The hashes of functions that have changed are those of the text that there is now."""
    for file, text in before.items():
        for name in set(re.findall(r"\b(\w+)\(", text)) if told.sources.get(file, text) != text else ():
            for was, now in zip(_digests(text, name), _digests(told.sources[file], name), strict=False):
                told.facts = {facts: whole.replace(was, now) for facts, whole in told.facts.items()}


# ----------------------------------------------------------------------------------------------------- the certificate


def constrained(draw, document, place):
    """A constraint that follows from the fact, stronger by little; solved again."""

    def change(problem, derivations, followed):
        own = [one for one in problem.constraints if one.name.startswith(f"flow:{place.number}.")]
        victim = draw.choice(own)
        changed = replace(victim, constant=victim.constant - draw.randrange(1, 4))
        if draw.random() < 0.6:
            name = draw.choice([edge.name for edge in problem.edges] if draw.random() < 0.5 else [*victim.coefficients])
            more = victim.coefficients.get(name, 0) + draw.randrange(1, 3)
            changed = replace(victim, coefficients={**victim.coefficients, name: more})
        rows = tuple(changed if one is victim else one for one in problem.constraints)
        return replace(problem, constraints=rows), derivations, followed

    return solved_again(document, change)


def unlisted(draw, document):
    """A fact of which the list of assumptions does not tell."""
    changed = {**document, "bound": dict(document["bound"])}
    listed = changed["bound"]["assumptions"]
    gone = draw.choice([one for one in listed if one["id"].startswith("fact ")])
    changed["bound"]["assumptions"] = [one for one in listed if one is not gone]
    return sealed(changed)


# ---------------------------------------------------------------------------------------------------------- the verdict


def _digests(text, name):
    return [sha256(b"\0".join(one.encode() for one in tokens(text))).hexdigest() for text in definitions(text, name)]


@cache
def rests_on(one):
    """The places that take off what the specimen ``one`` rests on."""
    document, _ = specimen(*one)
    used = {
        int(number)
        for text in document["bound"]["certificates"]
        for number in re.findall(r"^dual flow:(\d+)\.", text, re.MULTILINE)
    }
    tables = [
        table[0]
        for _, text in load_allocator(one[0], {}).facts
        for table in re.finditer(r"^\[\[flow\]\].*?(?=^\[\[|\Z)", text, re.MULTILINE | re.DOTALL)
    ]
    found = []
    for number in sorted(used):
        for kind, function, name, _ in NEGATIVE.findall(tables[number]):
            assert kind == "point"
            own = re.search(r'^function = "(\w+)"', tables[number], re.MULTILINE)[1]
            entry = own if 'per = "call"' in tables[number] else None
            found.append(Place(number, entry or f"{one[0].replace('-', '_')}_{one[2]}", function or own, name))
    return tuple(found)


def verdict_of(one, seed):
    """What becomes of a mutant: the operator, and ``refused``, ``not checked``, ``no less`` or ``less``."""
    document, binary = specimen(*one)
    draw = random.Random(seed)
    place = draw.choice(rests_on(one))
    name = draw.choice([*sorted(OPERATORS), "constrained", "constrained", "constrained", "unlisted"])
    if name == "unlisted":
        mutant = unlisted(draw, document)
        return name, outcome(mutant, binary) or "less"
    if name == "constrained":
        try:
            mutant = constrained(draw, document, place)
        except (AnalysisError, ValueError, KeyError, ArithmeticError):
            return name, "no linear program"
        is_less = any(mutant["bound"][unit] < document["bound"][unit] for unit in ("instructions", "cycles"))
        return name, outcome(mutant, binary) or ("less" if is_less else "no less")
    allocator = load_allocator(one[0], {})
    told = Told(dict(allocator.facts), dict(allocator.sources), place)
    OPERATORS[name](draw, told)
    if not told.is_stale:
        _hashed_again(told, dict(allocator.sources))
    asserted = read_asserted([*told.facts.items()], told.sources)
    mutant = replace(binary, asserted=asserted)
    return name, outcome(document, mutant) or ("less" if told.is_less else "no less")


def tally(one, seeds):
    """How often each operator led to each verdict."""
    return Counter(verdict_of(one, seed) for seed in seeds)


def main():
    """Draw the mutants of seeds; 1 if one is accepted that claims too much."""
    parser = argparse.ArgumentParser(prog="python -m tests.certificate.source_mutants", description=__doc__)
    parser.add_argument("seeds", nargs=2, type=int, metavar="SEED")
    parser.add_argument("--by-operator", action="store_true")
    asked = parser.parse_args()
    total, accepted = Counter(), 0
    for one in SPECIMENS:
        for seed in range(*asked.seeds):
            name, found = verdict_of(one, seed)
            total[found if not asked.by_operator else f"{name} {found}"] += 1
            if found == "less":
                accepted += 1
                sys.stdout.write(f"ACCEPTED {' '.join(one)}: {seed} {name}\n")
    sys.stdout.write(f"{sum(total.values())} mutants: {dict(sorted(total.items()))}\n")
    return int(accepted > 0)


if __name__ == "__main__":
    sys.exit(main())
