"""CAMA for the MPC603e, as it is and changed, and what is deduced of it."""

from functools import cache

import pytest

from tests.cache_sets.mutants import changed
from tests.support import images_dir
from wcet_probe.analyzer.deduction import cama_views as cama
from wcet_probe.analyzer.deduction.cama_claims import claims
from wcet_probe.analyzer.deduction.cama_memory import CamaMemory
from wcet_probe.analyzer.deduction.cama_obligations import Deduction
from wcet_probe.analyzer.deduction.cama_stores import Rules
from wcet_probe.analyzer.deduction.formulas import unknown
from wcet_probe.analyzer.deduction.solver import Questions
from wcet_probe.analyzer.deduction.word_terms import WordTerms
from wcet_probe.analyzer.deduction.words import Word
from wcet_probe.build.program import load_program
from wcet_probe.cache_sets.deduction import deduce, geometry_of
from wcet_probe.catalog.lookup import load_allocator, load_target


@cache
def program():
    return load_program(load_allocator("cama"), load_target("mpc603e"), "zig", images_dir())


@cache
def geometry():
    return geometry_of(program())


def memory(*, begins=False):
    """The memory at the entry of an operation, and a list that gets the obligations."""
    obligations = []
    terms, g = WordTerms(Questions()), geometry()
    rules = Rules(g, terms, claims(g), cama.view_of(""), begins, lambda *one: obligations.append(one))
    stack_pointer = Word(0, ((terms.known(unknown("stack pointer")), 1),))
    return CamaMemory(rules, stack_pointer=stack_pointer), obligations


@cache
def deduced(operation):
    return deduce(program(), (operation,))[0]


def open_of_changed(operation, *changes, target="mpc603e"):
    """What stays open of ``operation`` where texts of ``cama.c`` are replaced, with the places."""
    version = changed("cama.c", *changes, target=target)
    found = deduce(version, (operation,))[0]
    return {name: [version.image.location(at) for at in places] for name, places in found.open_by_name.items()}


def possible(operation, monkeypatch):
    """Of each way of ``operation``, whether what is assumed at its end is no contradiction; claims are not asked."""
    found = []

    def end_way(self, end, asked):
        found.append(self.terms.questions.is_possible())
        original(self, end, asked)

    original = Deduction.end_way
    monkeypatch.setattr(Deduction, "end_way", end_way)
    monkeypatch.setattr(Deduction, "ask_claims", lambda *_: None)
    monkeypatch.setattr(Deduction, "ask_words", lambda *_: None)
    deduce(program(), (operation,))
    return found


def mostly_slow(names):
    """The first of ``names`` is in the ordinary run."""
    return [pytest.param(name, marks=[pytest.mark.slow] * (index > 0)) for index, name in enumerate(names)]


def only(names, monkeypatch):
    """Let no claims be asked but those of ``names``, at the ends of ways, and of no words whether they were stored."""
    original = Deduction.ask_claims

    def ask_claims(self, memory, after, end):
        everything, self.claims = self.claims, tuple(one for one in self.claims if one.name in names)
        original(self, memory, after, end)
        self.claims = everything

    monkeypatch.setattr(Deduction, "ask_claims", ask_claims)
    monkeypatch.setattr(Deduction, "ask_words", lambda *_: None)
