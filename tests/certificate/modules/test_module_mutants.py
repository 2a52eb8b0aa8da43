"""Module certificates changed in what they mean, by chance: none is accepted that claims less than the true one.

The true one is the least that its writer finds: what is accepted has to tell as much of each place, each cell, the
block and each access, of the same code, and no fact that it does not prove.

Tests: certificate.modules.module.
"""

import json
import random
import re
from collections import Counter
from functools import cache

import pytest

from tests.module_certificates import true_certificate
from tests.support import images_dir
from wcet_probe.build.program import load_program
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.certificate.facts.findings import OK
from wcet_probe.certificate.kernel.records import demand, read_records
from wcet_probe.certificate.modules.module import check_module, operation_of
from wcet_probe.certificate.values.kinds import ANYTHING, within, word_of
from wcet_probe.errors import VerificationError
from wcet_probe.evidence.checking import allocator_binary

HEAP_BYTES = 5000
KINDS = ("null", "near", "number", "arena", "static", "table", "mixed", "any", "payload", "given+8", "given-4")
PART = re.compile(r"[a-z]+(?:[+-][0-9]+)?\*?(?:@[0-9a-fx-]+)?:[0-9]+:[0-9,]+:\S+")
NUMBER = re.compile(r"(?<![\w.])-?(?:0x[0-9a-f]+|[0-9]+)(?![\w.])")


@cache
def specimen(name, target):
    """A program's binary, its true certificate, and what that claims."""
    program = load_program(load_allocator(name), load_target(target), "zig", images_dir(), HEAP_BYTES)
    binary = allocator_binary(program, HEAP_BYTES)
    document = true_certificate(program, HEAP_BYTES)
    return binary, document, claims_of(document, check_module(document, binary))


def claims_of(document, found):
    """What a certificate that was accepted says."""
    operations = {
        one["role"]: operation_of(one["role"], read_records(one["certificate"])) for one in document["operations"]
    }
    words = {
        (role, node, place): parts
        for role, one in operations.items()
        for node, own in one.words.items()
        for place, parts in own.items()
    }
    cells = {name: word_of(text, demand) for name, text in document["cells"].items()}
    verdicts = {one.check for one in found.findings if one.verdict == OK}
    return words, cells, word_of(document["block"], demand), found.aligned, verdicts


def claims_less(found, true):
    """Where one that was accepted says less than the true one allows, in words."""
    words, cells, block, aligned, verdicts = found
    own_words, own_cells, own_block, own_aligned, own_verdicts = true
    for key, parts in words.items():
        if not within(own_words.get(key, ANYTHING), parts):
            yield f"word {key}"
    rest = own_cells["static"]
    for name, parts in cells.items():
        if not within(own_cells.get(name, rest if name.startswith("static") else ANYTHING), parts):
            yield f"cell {name}"
    if not within(own_block, block):
        yield "block"
    for key, residues in own_aligned.items():
        if residues & ~aligned.get(key, 0):
            yield f"access {key}"
    if not verdicts <= own_verdicts:
        yield f"verdicts {verdicts - own_verdicts}"


def changed_part(text, choose):
    """Parts of a word, one left out, of another kind, not loaded, or with other numbers."""
    parts = text.split(" ")
    place = choose.randrange(len(parts))
    kind, reach, modulus, residues, way = re.fullmatch(r"([^:@]+)(@[^:]+)?:(\d+):([\d,]+):(.*)", parts[place]).groups()
    few = residues.split(",")
    match choose.randrange(8):
        case 0:
            del parts[place]
            return " ".join(parts)
        case 1:
            kind = choose.choice(KINDS) + "*" * kind.endswith("*")
        case 2:
            kind = kind.removesuffix("*") if kind.endswith("*") else f"{kind}*"
        case 3:
            few = [one for one in few if one != choose.choice(few)] or ["0"]
        case 4:
            modulus = str(min(64, 2 * int(modulus)))
        case 5:
            few = sorted({*few, str(choose.randrange(int(modulus)))}, key=int)
        case 6:
            way = choose.choice((f"o{choose.randrange(64)}", f"r{modulus}:{few[0]}", "o0", "r64:0"))
        case 7:
            low, _, high = (reach or "@0x0-0x0")[1:].partition("-")
            changed = changed_number(low, choose), changed_number(high, choose)
            reach = choose.choice(("", f"@{changed[0]}-{high}", f"@{low}-{changed[1]}"))
    parts[place] = f"{kind}{reach or ''}:{modulus}:{','.join(few)}:{way}"
    return " ".join(sorted(parts))


def changed_number(text, choose):
    """One of the numbers in a record is another one."""
    found = list(NUMBER.finditer(text))
    if not found:
        return text
    one = choose.choice(found)
    value = int(one[0], 0) + choose.choice((1, -1, 4, -4, 8, 64, -64, 1 << 31))
    return text[: one.start()] + (f"{value:#x}" if "0x" in one[0] else str(value)) + text[one.end() :]


def changed_records(text, choose):
    """Records, of which one is left out, repeated, or says something else."""
    lines = text.splitlines()
    kinds = Counter(line.split(" ")[0] for line in lines)
    kind = choose.choice(sorted(kinds))
    place = choose.choice([number for number, line in enumerate(lines) if line.split(" ")[0] == kind])
    line = lines[place]
    match choose.randrange(6):
        case 0:
            del lines[place]
        case 1:
            lines.insert(place, line)
        case 2:
            lines[place] = changed_number(line, choose)
        case 3 | 4 if (match := PART.search(line)) is not None:
            lines[place] = line[: match.start()] + changed_part(line[match.start() :], choose)
        case _:  # a field is that of another record of the same kind
            other = choose.choice([own for own in lines if own.split(" ")[0] == kind]).split(" ")
            fields = line.split(" ")
            at = choose.randrange(1, max(2, min(len(fields), len(other))))
            if at < min(len(fields), len(other)):
                fields[at] = other[at]
            lines[place] = " ".join(fields)
    return "".join(f"{own}\n" for own in lines)


def change_more(document, choose):
    """Operations are in another order, or init is said to store another word, one more or one less."""
    if choose.randrange(2):
        document["operations"].insert(choose.randrange(3), document["operations"].pop())
        return
    place = choose.randrange(len(document["stored_by_init"]) + 1)
    words = [one.rpartition(":")[2] for one in document["cells"] if one.startswith("static:")]
    document["stored_by_init"][place : place + 1] = [choose.choice(words)] if words and choose.randrange(2) else []


def mutant(document, choose):
    """A certificate with one or two changes."""
    found = json.loads(json.dumps(document))
    for _ in range(choose.choice((1, 1, 2))):
        what = choose.choice(("operations",) * 6 + ("cells", "cells", "cells", "block", "facts", "assumptions", "more"))
        if what == "operations":
            one = choose.choice(found["operations"])
            one["certificate"] = changed_records(one["certificate"], choose)
        elif what == "cells" and found["cells"]:
            name = choose.choice(sorted(found["cells"]))
            change = choose.randrange(5)
            if change == 0:
                del found["cells"][name]
            elif change == 1:
                found["cells"][changed_number(name, choose)] = found["cells"].pop(name)
            else:
                found["cells"][name] = changed_part(found["cells"][name], choose)
        elif what == "block":
            found["block"] = changed_part(found["block"], choose)
        elif what == "facts" and found["facts"]:
            one = choose.choice(found["facts"])
            one["accesses"] += choose.choice((1, -1))
        elif what == "assumptions" and found["assumptions"]:
            found["assumptions"].remove(choose.choice(found["assumptions"]))
        elif what == "more":
            change_more(found, choose)
    return found


def campaign(name, target, count, seed):
    """What became of ``count`` mutants; those that are accepted and claim less."""
    binary, document, true = specimen(name, target)
    choose, tally, wrong = random.Random(f"{name} {target} {seed}"), Counter(), []
    for _ in range(count):
        forged = mutant(document, choose)
        if forged == document:
            tally["the same"] += 1
            continue
        try:
            found = check_module(forged, binary)
        except VerificationError:
            tally["refused"] += 1
            continue
        less = list(claims_less(claims_of(forged, found), true))
        tally["claims no less" if not less else "claims less"] += 1
        if less:
            wrong.append((less[:3], difference(document, forged)))
    return tally, wrong


def difference(document, forged):
    """The records that are others."""
    texts = [json.dumps(one, indent=0).replace("\\n", "\n").splitlines() for one in (document, forged)]
    return [sorted({*one} - {*other})[:3] for one, other in (texts, texts[::-1])]


ORDINARY = {
    ("first-fit", "mpc603e"): 40,
    ("kingsley", "cortex-m7"): 60,
    ("tlsf", "arm926ej-s"): 8,
    ("djgpp-sbrk", "cortex-m7"): 20,
}
"""How many mutants of each the ordinary run tries: as many as a few seconds allow."""


@pytest.mark.covering(0)
@pytest.mark.parametrize("times", [1, pytest.param(50, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("name", "target"), ORDINARY)
def test_no_changed_certificate_is_accepted_that_claims_less(name, target, times):
    count = times * ORDINARY[name, target]
    tally, wrong = campaign(name, target, count, 1)
    assert not wrong, wrong[:5]
    assert tally["refused"] > count / 4
