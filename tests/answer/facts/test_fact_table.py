"""The table of facts: a row for each fact of a file, which says what is proved of it and what it asserts besides."""

import pytest

from tests.support import images_dir
from wcet_probe.answer.facts import fact_table
from wcet_probe.answer.facts.fact_table import FactStatus, fact_rows
from wcet_probe.answer.facts.proved_facts import ProvedFacts
from wcet_probe.build.program import load_program
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.cli import main
from wcet_probe.reports.screens.fact_table import fact_table_text

HEAP_BYTES = 5000


def program(name):
    return load_program(load_allocator(name), load_target("mpc603e"), "zig", images_dir(), HEAP_BYTES)


def test_each_fact_has_a_row_with_what_is_proved_and_what_is_a_lemma():
    rows = fact_rows(program("kingsley"), HEAP_BYTES)
    assert [(row.allocator, row.alignment) for row in rows] == [("kingsley", FactStatus.PROVED)] * 2
    assert [row.lemmas for row in rows] == [(), ("lines", "lines of a set")]
    text = fact_table_text(rows)
    assert "2 facts; alignment proved of 2; 1 assert more, which is a lemma" in text


@pytest.mark.parametrize(
    ("found", "expected"),
    [(ProvedFacts((), "a store is lost"), FactStatus.LEMMA), (ProvedFacts(()), FactStatus.UNUSED)],
)
def test_a_fact_of_which_nothing_was_found_is_a_lemma_unless_nothing_rests_on_it(monkeypatch, found, expected):
    monkeypatch.setattr(fact_table, "proved_facts", lambda *_: found)
    pointers = [row for row in fact_rows(program("tlsf"), HEAP_BYTES) if row.alignment != FactStatus.NOT_ASSERTED]
    assert [row.alignment for row in pointers] == [expected] * 2
    words = [row for row in fact_rows(program("tlsf"), HEAP_BYTES) if row.alignment == FactStatus.NOT_ASSERTED]
    assert [(row.speaks_of, row.lemmas) for row in words] == [(("tlsf_control",), ("range",))]
    assert fact_table_text([]) == "no fact speaks of a pointer or a word\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--entry", "malloc", "--target", "mpc603e"], "leave --entry"),
        (["--target", "cortex-m4"], "cortex-m4 has none"),
    ],
)
def test_a_table_that_cannot_be_made_is_refused(options, message, capsys):
    assert main(["facts", "all", "--prove", *options]) == 2
    assert message in capsys.readouterr().err
