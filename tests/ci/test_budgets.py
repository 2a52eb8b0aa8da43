from fractions import Fraction
from pathlib import Path

import pytest

from tests.ci_samples import FIXED, TLSF, read_budget_text
from wcet_probe.ci.budgets import AllocatorCall, FirmwareCall, read_budgets
from wcet_probe.config import Config, load_config, read_config
from wcet_probe.errors import UsageError


def test_an_entry_of_an_allocator_says_what_is_called_and_how_long_it_may_take():
    (budget,) = read_budget_text(
        TLSF + 'caches = "d:size=8KiB"\nmax_cycles = 900\ntolerance_percent = 2.1\nparameters = { sl-bits = 4 }\n'
    )
    assert budget.call == AllocatorCall("tlsf", "malloc", 4096)
    assert budget.name == "tlsf malloc, heap 4 KiB, sl-bits=4, d:size=8KiB"
    assert (budget.limit("cycles"), budget.limit("instructions")) == (900, None)
    assert budget.tolerance_percent == Fraction(21, 10)  # as written, not as a float has it


def test_paths_of_firmware_start_at_the_configuration(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (budget,) = read_budget_text(FIXED + 'facts = ["a.toml", "b.toml"]\n', tmp_path / "p")
    assert budget.call == FirmwareCall(
        Path("p/build/fw.elf"), "fixed", (Path("p/a.toml"), Path("p/b.toml")), (Path("p/src"),)
    )
    (budget,) = read_budget_text(FIXED.replace('sources = "src"', ""), tmp_path)
    assert budget.call.sources == (Path("build"), Path())


def test_target_and_heap_of_the_configuration_are_the_defaults(tmp_path):
    text = '[tool.wcet-probe]\ntarget = "cortex-m4"\nheap = "8KiB"\n[[tool.wcet-probe.budgets]]\n'
    (tmp_path / "pyproject.toml").write_text(f'{text}allocator = "tlsf"\noperation = "free"\n')
    (budget,) = read_budgets(load_config(tmp_path))
    assert (budget.target, budget.call.heap_bytes) == ("cortex-m4", 8192)
    assert read_config(tmp_path / "pyproject.toml") == load_config(tmp_path)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (TLSF + "max_cycle = 5\n", "'max_cycle': did you mean 'max_cycles'?"),
        (TLSF + "max_cycles = -1\n", "max_cycles must be a whole number of at least 0, not -1."),
        (TLSF + "max_cycles = 1.5\n", "max_cycles must be a whole number"),
        (TLSF + "max_cycles = true\n", "max_cycles must be a whole number"),
        (TLSF + "tolerance_percent = nan\n", "tolerance_percent must be a number of at least 0, not nan."),
        (TLSF + "tolerance_percent = inf\n", "tolerance_percent must be a number"),
        (TLSF + "parameters = { a = true }\n", "parameters must be a table of whole numbers"),
        (TLSF + "caches = [1]\n", "caches must be a text or a list of texts"),
        (TLSF + 'entry = "main"\n', "unknown key"),
        (TLSF + 'image = "fw.elf"\n', "both of allocator and image"),
        ("[[budgets]]\nmax_cycles = 4\n", "neither of allocator and image"),
        (TLSF.replace("malloc", "mallok"), "'mallok': did you mean 'malloc'?"),
        (TLSF.replace('heap = "4KiB"', ""), 'heap is missing; add one, such as heap = "64KiB".'),
        (TLSF.replace("4KiB", "4 pages"), "entry 1: heap: '4 pages' is no size"),
        (TLSF.replace('target = "mpc603e"', ""), "target is missing"),
        (FIXED.replace('entry = "fixed"', ""), "entry is missing"),
        (TLSF + TLSF, "two budgets are named 'tlsf malloc, heap 4 KiB' on mpc603e; give one a name."),
    ],
)
def test_a_wrong_entry_is_one_usage_error(text, sentence):
    with pytest.raises(UsageError) as error:
        read_budget_text(text)
    assert sentence in str(error.value)


def test_equal_entries_on_two_targets_or_with_names_are_two():
    assert len(read_budget_text(TLSF + TLSF.replace("mpc603e", "cortex-m4") + TLSF + 'name = "again"\n')) == 3


@pytest.mark.parametrize("config", [Config(), Config(file=Path("wcet-probe.toml"))])
def test_no_budgets_are_an_error_that_tells_what_to_write(config):
    with pytest.raises(UsageError, match=r"has no budgets; add a table \[\[budgets\]\]"):
        read_budgets(config)


def test_a_named_configuration_must_be_there_and_have_tables(tmp_path):
    with pytest.raises(UsageError, match="is no file"):
        read_config(tmp_path / "wcet-probe.toml")
    (tmp_path / "pyproject.toml").write_text("[tool.other]\n")
    with pytest.raises(UsageError, match=r"has no table tool\.wcet-probe"):
        read_config(tmp_path / "pyproject.toml")
    (tmp_path / "wcet-probe.toml").write_text("budgets = 4\n")
    with pytest.raises(UsageError, match="budgets must be tables"):
        read_config(tmp_path / "wcet-probe.toml")
