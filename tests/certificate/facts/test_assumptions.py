"""The list of assumptions holds all that rules used, and says of each fact what its file says."""

from dataclasses import replace

import pytest

from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.facts.asserted import read_asserted
from wcet_probe.certificate.facts.assumptions import ALWAYS, check_assumptions
from wcet_probe.errors import VerificationError

TARGET = load_target("cortex-m4")
FACTS = """
[[lemma]]
id = "sizes"
statement = "sizes are below 4096"
because = "the caller checks them"

[[loop]]
function = "f"
max = "7"
because = "lists are short"
"""
ASSERTED = read_asserted([("facts.toml", FACTS)])
FACT = next(f"fact {fact.where}" for fact in ASSERTED.of("loop"))
LISTED = {
    "no-interference": "nothing interrupts the call",
    "timing-model": "the table is targets/cortex-m4.toml",
    FACT: "the loop has 7 rounds: lists are short",
    "lemma sizes": "sizes are below 4096: the caller checks them",
}


def check(used=ALWAYS, listed=LISTED, target=TARGET, constraints=()):
    return check_assumptions(used, listed, ASSERTED, target, constraints)


def test_with_a_fact_the_lemmas_are_used():
    assert check() == ALWAYS
    assert check((*ALWAYS, FACT)) == (*ALWAYS, FACT, "lemma sizes")
    assert check((*ALWAYS, FACT), {**LISTED, FACT.replace("fact", "proved", 1): "by induction"})


@pytest.mark.parametrize("name", LISTED)
def test_what_is_used_is_listed(name):
    listed = {one: words for one, words in LISTED.items() if one != name}
    with pytest.raises(VerificationError, match=rf"the assumption {name} is used and not listed"):
        check((*ALWAYS, FACT), listed)


@pytest.mark.parametrize(
    ("name", "words", "sentence"),
    [
        (FACT, "the loop has 7 rounds", "has other words than its file"),
        ("fact facts.toml:99", "", "there is no fact at facts.toml:99"),
        ("lemma sizes", "sizes are below 4096", "the lemma sizes says something else"),
        ("lemma others", "", "there is no lemma others"),
        ("timing-model", "the table is targets/cortex-m7.toml", "the timing model is of another target"),
    ],
)
def test_what_is_listed_says_what_its_file_says(name, words, sentence):
    with pytest.raises(VerificationError, match=sentence):
        check(listed={**LISTED, name: words})


def test_constraints_of_facts_need_a_fact_that_is_listed():
    without = {one: words for one, words in LISTED.items() if one != FACT}
    assert check(constraints=["fact:0"])
    with pytest.raises(VerificationError, match="constraints of facts are used, and no fact is listed"):
        check(listed=without, constraints=["fact:0"])
    assert check(listed={**without, "fact f.c:3": "", "pragma f.c:3": ""}, constraints=["fact:0"])
    with pytest.raises(VerificationError, match="code is of bodies, and no assumption says which"):
        check(constraints=["body:0"])


def test_what_a_core_takes_for_granted_is_used():
    target = replace(load_target("mpc755"), aligned_accesses=True)
    with pytest.raises(VerificationError, match="is used and not listed"):
        check(listed={**LISTED, "timing-model": "targets/mpc755.toml"}, target=target)


def test_lines_of_a_known_stack_need_the_stack_pointer_that_is_listed():
    name, known = "miss:kept:stack-pointer:0x20010", {"stack-pointer": "the stack pointer is 0x20010 at entry"}
    assert check(listed={**LISTED, **known}, constraints=("miss:kept", name)) == (*ALWAYS, "stack-pointer")
    part = "miss:kept:12:stack-pointer:0x20010"
    assert check(listed={**LISTED, **known}, constraints=("miss:kept:3", part)) == (*ALWAYS, "stack-pointer")
    with pytest.raises(VerificationError, match="the assumption stack-pointer is used and not listed"):
        check(constraints=(name,))
    other = {"stack-pointer": "the stack pointer is 0x20018 at entry"}
    with pytest.raises(VerificationError, match="where another stack pointer has them"):
        check(listed={**LISTED, **other}, constraints=(name,))
    assert check(listed={**LISTED, **other}) == ALWAYS
