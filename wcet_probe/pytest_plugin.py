"""pytest plugin: a marker and a fixture by which a firmware's own tests assert bounds of its functions.

The marker ``wcet`` checks a test's claim before its body runs; the fixture ``wcet`` hands bounds to the body. What
pytest loads in every run of everybody's tests is this file and the errors: all else is imported by the first claim.
"""

# ruff: noqa: PLC0415  (a run of tests that asks for no bound must not wait for the analyzer)

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from wcet_probe.errors import AnalysisError, UsageError, WcetProbeError, unknown_name

if TYPE_CHECKING:
    from wcet_probe.answer.firmware.firmware import FirmwareBound
    from wcet_probe.model.proof import Assumption, Bound, PathBlock
    from wcet_probe.model.report import Report

_FIRMWARE = ("image", "entry", "facts", "sources")
_ALLOCATOR = ("allocator", "operation", "heap", "preset")
_BUDGETS = ("budget_cycles", "budget_instructions")
_QUESTION = ("target", "params", *_FIRMWARE, *_ALLOCATOR)
_SCENARIOS = {"malloc": "worst-alloc", "free": "worst-free"}
_PLACES_TOLD = 5


@dataclass(frozen=True, slots=True)
class WcetBound:
    """A proved upper bound of the WCET of one function, as tests see it.

    Attributes:
        subject: which function on which core.
        instructions: no call takes more, under the assumptions.
        cycles: likewise.
        assumptions: what the bound rests on and is not proved; each has ``id``, ``statement`` and ``check``.
        worst_path: blocks of the worst path in instructions; each has ``location``, ``executions`` and ``cost``.
        worst_path_cycles: likewise, of the worst path in cycles.
    """

    subject: str
    instructions: int
    cycles: int
    assumptions: tuple[Assumption, ...] = field(repr=False)
    worst_path: tuple[PathBlock, ...] = field(repr=False)
    worst_path_cycles: tuple[PathBlock, ...] = field(repr=False)
    _found: FirmwareBound | Report = field(repr=False, compare=False)

    @property
    def document(self) -> dict[str, Any]:
        """The JSON document that ``wcet-probe … --json`` prints of it; a new one each time."""
        from wcet_probe.model.report import Report

        if isinstance(self._found, Report):
            from wcet_probe.reports.formats.document import document

            return document(self._found)
        from wcet_probe.reports.formats.bound_document import firmware_document

        return firmware_document(self._found)


@dataclass(frozen=True, slots=True)
class _Question:
    """Which function on which core, None for the configured one; paths are seen from pytest's root folder."""

    target: str | None
    params: Mapping[str, int]
    image: str = ""
    entry: str = ""
    facts: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    allocator: str = ""
    operation: str = "malloc"
    heap_bytes: int | None = None
    preset: str | None = None


@dataclass(frozen=True, slots=True)
class _Claim:
    question: _Question
    budgets: Mapping[str, int]


_PROVED = pytest.StashKey[list[WcetBound]]()
"""Of a test: the bounds of its marks."""


# ---------------------------------------------------------------------------------------------------------------- hooks


def pytest_addoption(parser: pytest.Parser) -> None:
    """The core that claims without ``target`` are about."""
    text = "core for wcet claims that name no target"
    parser.getgroup("wcet-probe").addoption("--wcet-target", metavar="NAME", help=text)
    parser.addini("wcet_target", text, default="")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers",
        "wcet(image, entry | allocator, operation, heap, ...; target, budget_cycles, budget_instructions): "
        "before the test, prove a bound of the function's WCET and fail where there is none or it is over budget.",
    )


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem(collector: pytest.Collector) -> Generator[None, object, object]:
    """Refuse tests whose marks are wrong, where everybody looks for such errors."""
    made = yield
    for item in made if isinstance(made, list) else [made]:
        if isinstance(item, pytest.Item):
            try:
                for mark in item.iter_markers("wcet"):
                    _check_names(_claim(mark, item.config))
            except UsageError as error:
                raise collector.CollectError(f"mark wcet of {item.name}: {error}") from None
    return made


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Check the claims of the test's marks, of which the body need not know."""
    bounds: list[WcetBound] = []
    item.stash[_PROVED] = bounds
    for mark in item.iter_markers("wcet"):
        try:
            claim = _claim(mark, item.config)
            bound = _prove(claim.question, item.config)
        except WcetProbeError as error:
            pytest.fail(str(error), pytrace=False)
        _record(item, bound, claim.budgets)
        bounds.append(bound)
        if any(getattr(bound, unit) > budget for unit, budget in claim.budgets.items()):
            pytest.fail(_over_budget(claim, bound), pytrace=False)


@pytest.fixture
def wcet(request: pytest.FixtureRequest) -> Callable[..., WcetBound]:
    """A function that proves a bound: ``wcet(image=…, entry=…, target=…)``, ``wcet(allocator=…, operation=…)``.

    It takes what the mark takes, but for budgets; without arguments it returns the bound of the test's mark. Raises
    the errors of wcet-probe, ``AnalysisError`` where there is no bound.
    """

    def prove(**arguments: object) -> WcetBound:
        __tracebackhide__ = True
        try:
            if not arguments:
                return _marked(request.node)
            bound = _prove(_question(arguments, _QUESTION, request.config), request.config)
        except WcetProbeError as error:
            raise error.with_traceback(None) from None
        _record(request.node, bound, {})
        return bound

    return prove


# -------------------------------------------------------------------------------------------------------- what is asked


def _claim(mark: pytest.Mark, config: pytest.Config) -> _Claim:
    """What a mark claims.

    Raises:
        UsageError: an argument is unknown, missing or of a wrong kind.
    """
    if mark.args:
        raise UsageError(f"{mark.args[0]!r} has no name; write every argument as NAME=VALUE.")
    question = _question(mark.kwargs, (*_QUESTION, *_BUDGETS), config)
    budgets = {name.removeprefix("budget_"): mark.kwargs[name] for name in _BUDGETS if name in mark.kwargs}
    for unit, budget in budgets.items():
        if type(budget) is not int or budget < 1:
            raise UsageError(f"budget_{unit} is {budget!r}; give a whole number above 0.")
    return _Claim(question, budgets)


def _question(given: Mapping[str, Any], known: Iterable[str], config: pytest.Config) -> _Question:
    """What the arguments ``given`` ask.

    Raises:
        UsageError: an argument is unknown, missing or of a wrong kind.
    """
    for name in given:
        if name not in known:
            raise unknown_name("argument", name, known)
    if ("image" in given) == ("allocator" in given):
        raise UsageError("name either image and entry, of a firmware, or an allocator.")
    apart, of = (_ALLOCATOR, "image") if "image" in given else (_FIRMWARE, "allocator")
    for name in apart:
        if name in given:
            raise UsageError(f"{name} does not go with {of}; leave it out.")
    if "image" in given and "entry" not in given:
        raise UsageError("entry is missing; name the function of the image that is called.")
    texts = {name: _text(name, given[name]) for name in ("entry", "allocator", "operation", "preset") if name in given}
    if texts.get("operation", "malloc") not in _SCENARIOS:
        raise unknown_name("operation", texts["operation"], _SCENARIOS)
    return _Question(
        target=_target_name(_text("target", given["target"]) if "target" in given else None, config),
        params=_numbers(given.get("params", {})),
        image=_path("image", given["image"]) if "image" in given else "",
        facts=_paths("facts", given.get("facts", ())),
        sources=_paths("sources", given.get("sources", ())),
        heap_bytes=_size_bytes(given["heap"]) if "heap" in given else None,
        **texts,
    )


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise UsageError(f"{name} is {value!r}; give a text.")
    return value


def _path(name: str, value: object) -> str:
    return _text(name, os.fspath(value) if isinstance(value, os.PathLike) else value)


def _paths(name: str, value: object) -> tuple[str, ...]:
    if isinstance(value, list | tuple):
        return tuple(_path(name, each) for each in value)
    return (_path(name, value),)


def _numbers(value: object) -> Mapping[str, int]:
    if not isinstance(value, Mapping) or not all(isinstance(k, str) and type(v) is int for k, v in value.items()):
        raise UsageError(f"params is {value!r}; give names and whole numbers, as in {{'N': 64}}.")
    return dict(value)


def _size_bytes(value: object) -> int:
    from wcet_probe.sizes import parse_size

    return parse_size(str(value))


def _check_names(claim: _Claim) -> None:
    """Refuse an allocator, a preset or a build parameter that there is not.

    Raises:
        UsageError: the name, and the nearest one that there is.
    """
    question = claim.question
    if question.allocator:
        from wcet_probe.catalog.lookup import load_allocator

        load_allocator(question.allocator, question.params, question.preset)


def _target_name(given: str | None, config: pytest.Config) -> str | None:
    """The target ``given``, else of ``--wcet-target``, else of ``wcet_target``, else None: the configuration's.

    Raises:
        UsageError: there is no such target.
    """
    from wcet_probe.catalog.lookup import target_names

    name: str | None = given or config.getoption("wcet_target") or config.getini("wcet_target") or None
    if name is not None and name not in (known := target_names()):
        raise unknown_name("target", name, known)
    return name


# ----------------------------------------------------------------------------------------------------- what is answered


def _prove(question: _Question, pytest_config: pytest.Config) -> WcetBound:
    """The bound that is asked for.

    Raises:
        AnalysisError: there is none; the message names function, file and line.
        WcetProbeError: as of ``wcet-probe bound`` and of a run.
    """
    from wcet_probe.cli.configured import configured_target
    from wcet_probe.config import load_config

    config = load_config(pytest_config.rootpath)
    target = configured_target(question.target, config)
    if question.allocator:
        from wcet_probe.answer.witness.bench import ProbeRequest
        from wcet_probe.answer.witness.probe import observe
        from wcet_probe.catalog.lookup import load_allocator
        from wcet_probe.cli.configured import default_heap_bytes
        from wcet_probe.cli.run import DEFAULT_COMPILER
        from wcet_probe.config import cache_dir

        allocator = load_allocator(question.allocator, question.params, question.preset)
        request = ProbeRequest(
            allocator=allocator,
            target=target,
            scenario=_SCENARIOS[question.operation],
            heap_bytes=question.heap_bytes or default_heap_bytes(allocator, config),
            seed=0,
            initial_cache=None,
            compiler=config.cc or DEFAULT_COMPILER,
            cross_check=None,
            cache_dir=cache_dir(config),
            prove=True,
        )
        report = observe(request)
        if report.bound is None:
            raise AnalysisError(f"no bound of {question.operation} of {question.allocator}: {report.no_bound}")
        return _bound(f"{question.operation} of {question.allocator} on {target.name}", report.bound, report)
    from wcet_probe.answer.firmware.firmware import FirmwareRequest, bound_firmware

    root = pytest_config.rootpath
    elf = _seen_from_here(root, question.image)
    folders = tuple(_seen_from_here(root, each) for each in question.sources) or (elf.parent, root)
    facts = tuple(_seen_from_here(root, each) for each in question.facts)
    found = bound_firmware(FirmwareRequest(elf, question.entry, target, facts, folders, question.params))
    return _bound(f"{question.entry} of {elf.name} on {target.name}", found.bound, found)


def _seen_from_here(root: Path, path: str) -> Path:
    """``path`` below ``root``, as the current folder sees it: no path of the machine gets into a document."""
    return Path(os.path.relpath(root / path))


def _bound(subject: str, bound: Bound, found: FirmwareBound | Report) -> WcetBound:
    paths = bound.worst_path, bound.worst_path_cycles
    return WcetBound(subject, bound.instructions, bound.cycles, bound.assumptions, *paths, found)


def _marked(item: pytest.Item) -> WcetBound:
    bounds = item.stash.get(_PROVED, [])
    if len(bounds) != 1:
        raise UsageError("wcet() without arguments is for the body of a test with one mark wcet; say what is asked.")
    return bounds[0]


def _record(item: pytest.Item, bound: WcetBound, budgets: Mapping[str, int]) -> None:
    """Properties of the test, which ``--junitxml`` writes."""
    item.user_properties += [
        ("wcet_subject", bound.subject),
        ("wcet_bound_cycles", bound.cycles),
        ("wcet_bound_instructions", bound.instructions),
        *((f"wcet_budget_{unit}", budget) for unit, budget in budgets.items()),
        ("wcet_assumptions", " ".join(assumption.id for assumption in bound.assumptions)),
    ]


def _over_budget(claim: _Claim, bound: WcetBound) -> str:
    """By how much, and where the worst path spends it."""
    lines = [f"{bound.subject} is over its WCET budget:"]
    for unit, path in (("cycles", bound.worst_path_cycles), ("instructions", bound.worst_path)):
        proved = getattr(bound, unit)
        budget = claim.budgets.get(unit, proved)
        if proved > budget:
            over = proved - budget
            lines.append(f"{unit}: bound {proved}, budget {budget}, {over} over ({100 * over / budget:.1f} %)")
            lines.append(f"dearest in {unit} on the worst path:")
            lines += [f"  {text}" for text in _dearest(path)]
    lines.append(f"all of it: {_command(claim.question)}")
    return "\n".join(lines)


def _dearest(path: Iterable[PathBlock]) -> Iterable[str]:
    """The dearest places of the worst path, whatever the calls that lead there."""
    spent: dict[str, tuple[int, int]] = {}
    for block in path:
        cost, executions = spent.get(block.location, (0, 0))
        spent[block.location] = cost + block.cost, executions + block.executions
    for where, (cost, executions) in sorted(spent.items(), key=lambda each: -each[1][0])[:_PLACES_TOLD]:
        yield f"{cost} for {executions} x {where}"


def _command(question: _Question) -> str:
    """The command line that explains the bound."""
    words = ["wcet-probe"]
    if question.allocator:
        words += [question.allocator, "--scenario", _SCENARIOS[question.operation]]
    else:
        words += ["bound", question.image, "--entry", question.entry]
    words += ["--target", question.target] if question.target else []
    words += ["--heap", str(question.heap_bytes)] if question.heap_bytes else []
    words += ["--preset", question.preset] if question.preset else []
    words += [word for each in question.facts for word in ("--facts", each)]
    words += [word for each in question.sources for word in ("--source", each)]
    words += [word for name, value in question.params.items() for word in ("--param", f"{name}={value}")]
    return shlex.join([*words, "--why"])
