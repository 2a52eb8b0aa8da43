"""What a stored result depends on: all that can run for it, and no more than that."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tests.support import images_dir
from wcet_probe.answer.papers import dependencies
from wcet_probe.answer.papers.dependencies import identity_of, reached
from wcet_probe.answer.papers.measuring import MEASURES
from wcet_probe.answer.papers.points import Point, Settings
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import BuildError

ROOT = Path(__file__).parents[3]
RUN, WORST, BOUND = (
    Point(kind, "tlsf", "m06", (), 64 << 10, what, (0, 8200) if kind == "run" else ())
    for kind, what in (("run", "mean"), ("worst", "alloc"), ("bound", "malloc"))
)


def settings(compiler: str = "zig", target: str = "cortex-m4") -> Settings:
    return Settings(load_target(target), compiler, images_dir())


def keys(**where: str) -> tuple[str, ...]:
    return tuple(identity_of(point, settings(**where)) for point in (RUN, WORST, BOUND))


def codes() -> tuple[str, ...]:
    """What the code is, as the folder has it now."""
    return tuple(dependencies.code_identity.__wrapped__(MEASURES[one.kind].__module__) for one in (RUN, WORST, BOUND))


@cache
def before() -> tuple[str, ...]:
    """The same, remembered: for what is compared with the folder as it is."""
    return codes()


@pytest.fixture
def _allocators_not_remembered():
    """What a test changes is seen, and what it saw is not seen by the next."""
    dependencies._allocator.cache_clear()
    yield
    dependencies._allocator.cache_clear()


@pytest.fixture
def _compilers_not_remembered():
    yield
    dependencies._compiler.cache_clear()


LOADED = """
import sys
from importlib import import_module
from pathlib import Path
from wcet_probe.answer.papers.points import Point, Settings
from wcet_probe.catalog.lookup import load_target
module, function, images, point = sys.argv[1:]
found = getattr(import_module(module), function)
found(eval(point), Settings(load_target("cortex-m4"), "zig", Path(images)))
print(*(name for name in sys.modules if name.startswith("wcet_probe")))
"""


def test_what_a_measurement_loads_is_among_what_it_depends_on():
    """Data folders are loaded as packages without modules; the allocator and the core are compared as values."""
    measure, data = MEASURES["run"], {"wcet_probe.allocators", "wcet_probe.targets"}
    command = [sys.executable, "-c", LOADED, measure.__module__, measure.__name__, str(images_dir()), repr(RUN)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert {"wcet_probe.emu.machine", "wcet_probe.compiled.library"} <= loaded
    assert loaded - data <= reached(measure.__module__)[0]


def test_modules_that_are_imported_within_functions_count_and_those_of_types_do_not():
    ours, others = reached(MEASURES["run"].__module__)
    assert {"wcet_probe.compiled.translation", "wcet_probe.scenarios.workloads.periodic", "wcet_probe"} <= ours
    assert "wcet_probe.analyzer.bound" not in ours
    assert {"unicorn", "pypcode", "capstone", "numpy"} <= others
    assert "wcet_probe.scenarios.buddy.buddy_binary" in reached(MEASURES["worst"].__module__)[0]


@pytest.mark.parametrize(
    ("module", "changed"),
    [
        ("wcet_probe.emu.machine", (True, True, False)),
        ("wcet_probe.scenarios.workloads.puaut", (True, True, False)),
        ("wcet_probe.analyzer.pcode.lift", (True, True, True)),
        ("wcet_probe.build.compilation", (True, True, True)),
        ("wcet_probe.analyzer.bound", (False, True, True)),
        ("wcet_probe.scenarios.fast_fit", (False, True, False)),
        ("wcet_probe.answer.papers.lee", (False, False, False)),
        ("wcet_probe.reports.screens.reproduction", (False, False, False)),
    ],
)
def test_a_change_of_code_changes_the_keys_of_what_it_may_run_for(monkeypatch, module, changed):
    source, unchanged = dependencies._source, before()
    monkeypatch.setattr(dependencies, "_source", lambda name: source(name) + "\n" * (name == module))
    assert tuple(one != other for one, other in zip(unchanged, codes(), strict=True)) == changed


@pytest.mark.usefixtures("_allocators_not_remembered")
def test_a_change_of_the_allocator_its_facts_the_core_or_a_program_changes_keys(monkeypatch):
    before, made = keys(), dependencies.allocator_of

    def differ() -> tuple[bool, ...]:
        dependencies._allocator.cache_clear()
        return tuple(one != other for one, other in zip(before, keys(), strict=True))

    monkeypatch.setattr(dependencies, "allocator_of", lambda point: replace(made(point), facts=()))
    assert differ() == (False, True, True)
    monkeypatch.setattr(dependencies, "allocator_of", lambda point: replace(made(point), sources=()))
    assert differ() == (True, True, True)
    monkeypatch.undo()
    assert differ() == (False, False, False)
    assert not set(keys(target="cortex-m7")) & set(before)


@pytest.mark.usefixtures("_compilers_not_remembered")
def test_another_compiler_behind_the_same_command_is_another(monkeypatch):
    before = keys()

    class Newer:
        identity = "clang version 99"

    monkeypatch.setattr(dependencies, "find_toolchain", lambda *_: Newer)
    dependencies._compiler.cache_clear()
    assert not set(keys()) & set(before)


@pytest.mark.usefixtures("_compilers_not_remembered")
def test_a_compiler_that_is_missing_has_keys_of_its_own(monkeypatch):
    def missing(*_):
        raise BuildError("it is not there")

    before = keys()
    monkeypatch.setattr(dependencies, "find_toolchain", missing)
    dependencies._compiler.cache_clear()
    assert not set(keys()) & set(before)


def test_versions_of_engines_and_what_lies_beside_modules_count(monkeypatch):
    real, unchanged = dependencies.version, before()
    monkeypatch.setattr(dependencies, "version", lambda name: "0" if name == "unicorn" else real(name))
    changed = tuple(one != other for one, other in zip(unchanged, codes(), strict=True))
    assert changed == (True, True, False)
    files = {
        path for name in ("wcet_probe.emu", "wcet_probe.scenarios.workloads") for path, _ in dependencies._beside(name)
    }
    assert {"wcet_probe.emu/native/observer.c", "wcet_probe.scenarios.workloads/recorded/sort.parquet"} <= files
    assert any(path.startswith("wcet_probe.emu/_native") for path in files)


@pytest.mark.usefixtures("_allocators_not_remembered")
def test_another_state_than_the_allocators_own_depends_on_both(monkeypatch):
    point = replace(WORST, kind="in-state-of", what="half-fit")
    before, made = identity_of(point, settings()), dependencies.allocator_of
    monkeypatch.setattr(
        dependencies,
        "allocator_of",
        lambda one: replace(made(one), sources=()) if one.allocator == "half-fit" else made(one),
    )
    dependencies._allocator.cache_clear()
    assert identity_of(point, settings()) != before
