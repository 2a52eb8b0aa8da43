"""Each mutant is killed by a test, or survives for the reason that is given."""

import pytest

from tests.mutation.campaign import MUTANTS, ROOT, read_tally, run, summary, table


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_a_test_dies_of_the_mutant(name):
    killer, mutant = run(MUTANTS[name]), MUTANTS[name]
    assert bool(killer) != bool(mutant.survives), killer or f"{name} survives"


@pytest.mark.parametrize("name", MUTANTS)
def test_the_mutant_can_be_put_in(name):
    mutant = MUTANTS[name]
    assert mutant.change.file.read_text("utf-8").count(mutant.change.old) == 1
    assert mutant.change.new != mutant.change.old
    assert all((ROOT / test.partition("::")[0]).exists() for test in mutant.tests)


def test_the_table_of_the_documentation_tells_of_all():
    page = (ROOT / "docs/explanation/mutation.md").read_text("utf-8")
    tally = read_tally()
    assert set(tally) <= set(MUTANTS)
    assert all(tally[name] or MUTANTS[name].survives for name in tally)
    assert summary(tally) in page
    assert table(tally) in page
