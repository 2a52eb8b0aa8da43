"""Settings that all tests share."""

import gc
import os
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from shutil import rmtree
from tempfile import gettempdir

import pytest
from hypothesis import settings

from tests.covering import covering, numbered, one_of
from tests.examples import OF_CAMPAIGNS, ORDINARY, PROFILE
from tests.following import IN_TESTS, follow_at_most
from tests.run_folder import run_folder
from wcet_probe.cli import COLLECTED_EVERY

TESTS = Path(__file__).parent

# What is tested is the proof, not what an earlier test left in the cache.
os.environ["WCET_PROBE_PROVE_ANEW"] = "1"

# A nest that has no end here is followed to the limit, for nothing.
follow_at_most(IN_TESTS)

# The same examples in every run, so that a failure is the change's and not the day's.
settings.register_profile("ci", max_examples=ORDINARY, derandomize=True, deadline=None, database=None)
# `make soundness` takes more of them, the same ones each time as well: its tally tells what has passed.
settings.register_profile("campaign", max_examples=OF_CAMPAIGNS, derandomize=True, deadline=None, database=None)
# New examples in every run, and many: for a search by hand, HYPOTHESIS_PROFILE=explore.
settings.register_profile("explore", max_examples=2000, deadline=None)
settings.load_profile(PROFILE)


# To collect tests makes containers that live: look at them as seldom as the command line, see `wcet_probe.cli.main`.
gc.set_threshold(COLLECTED_EVERY)

# Made here, before workers are started, so that they share it.
run_folder("images")

# Who wants no bytecode beside the sources gets it in build/: each run, worker and command would compile all anew.
# What was compiled of files that tests wrote is not kept: they are others in each run.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
    bytecode = TESTS.parent / "build" / "bytecode"
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = str(bytecode)
    sys.dont_write_bytecode = False
    for left in bytecode.joinpath(*Path(gettempdir()).parts[1:]).glob("pytest-of-*"):
        rmtree(left, ignore_errors=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session):
    """Of a run of all tests the second worker reads the files from the last one on.

    To rewrite the assertions of all files takes 17 s; so each worker does half, and finds what the other one has done.
    """
    if os.environ.get("PYTEST_XDIST_WORKER") == "gw1" and session.config.args == session.config.getini("testpaths"):
        for file in sorted(TESTS.rglob("test_*.py"), reverse=True):
            with suppress(Exception):  # which the collection then tells
                import_module(".".join(file.relative_to(TESTS.parent).with_suffix("").parts))


# By CPU seconds, from fifty down to five; the many that take less fill up what is left at the end.
DEAREST = (
    "certificate/modules/test_module.py", "end_to_end/test_bounds.py", "cache_sets/test_verify_sets.py",
    "end_to_end/test_cache_soundness.py", "emu/test_compiled.py", "cli/test_report.py",
    "end_to_end/test_falsification.py", "evidence/test_audit.py", "analyzer/loops/test_native_run.py",
    "analyzer/dcache/test_analysis.py", "end_to_end/test_kernels.py", "certificate/modules/test_counted_words.py",
    "certificate/modules/test_buddies.py", "certificate/modules/test_djgpp_tags.py",
    "analyzer/deduction/test_cama_operations.py", "scenarios/dlmalloc27/test_dlmalloc27.py",
    "analyzer/dcache/test_single_programs.py", "emu/test_loops.py", "catalog/test_own_allocator.py",
    "cli/test_both_sides.py", "analyzer/loops/test_abstract_execution.py", "scenarios/dlmalloc28/test_dlmalloc28.py",
    "test_pytest_plugin.py", "certificate/test_mutants.py", "analyzer/loops/test_native_code.py",
    "certificate/modules/test_module_mutants.py", "analyzer/values/execution/test_instruction_run.py",
    "emu/test_pipeline.py", "scenarios/test_tlsf.py", "answer/studies/test_adversary.py", "end_to_end/test_presets.py",
    "emu/test_faults.py", "emu/test_oracle.py", "packaging/test_wheel.py", "analyzer/loops/test_bisection.py",
    "certificate/test_trials.py", "answer/studies/test_search.py", "build/test_compilation.py",
    "analyzer/domains/test_lattice.py",
)  # fmt: skip


def pytest_collection_modifyitems(items):
    """The dearest files come first: one that is taken last keeps one worker busy while the other has nothing to do."""
    place = {TESTS / name: number for number, name in enumerate(DEAREST)}
    assert all(file.is_file() for file in place)
    items.sort(key=lambda item: place.get(item.path, len(place)))


def pytest_collection_finish():
    """What was collected lives as long as the run: the collector need not go through it again and again."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish():
    """What lives now lives until the process ends; pytest would go through it ten times for what was not closed."""
    gc.freeze()


# Last, when all parameters are known; of the whole matrix, whichever of its cases were asked for.
@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc):
    """Of tests marked ``covering`` leave the cases to the campaigns that the ordinary run does not need."""
    if mark := metafunc.definition.get_closest_marker("covering"):
        cases = [case for case in metafunc._calls if all(each.name != "slow" for each in case.marks)]
        if mark.args == (0,):
            kept = one_of(cases, metafunc.definition.nodeid)
        else:
            kept = covering(numbered(case.params for case in cases), *mark.args) if cases else frozenset()
        for number, case in enumerate(cases):
            if number not in kept:
                case.marks.append(pytest.mark.slow.mark)


@pytest.fixture(params=["engine", "translated"])
def each_engine(request, monkeypatch):
    """Unicorn, then translated code, compiled without optimisation: of every machine that a guest is asked for."""
    if request.param == "translated":
        monkeypatch.setenv("WCET_PROBE_TEST_TRANSLATED", "1")
        monkeypatch.setattr("wcet_probe.compiled.library.OPTIMISATION", ("-O0",))
    return request.param
