"""Slightly false versions of every number in the facts of an allocator, and whether a run reports them.

A number is made false by a program: a limit one less, a multiple twice as large, one set fewer. The claims that the
false fact comes to replace those of the true bound, and states on small heaps are run against them: of the allocator as
it is by default, then in other settings, with a heap that does not begin with a line of the cache, compiled for other
cores, with the values of its presets. A false number that no run reports survives, with a reason in `survivors.toml`.

``python -m tests.end_to_end.falsification TALLY.json [ALLOCATOR…]`` runs what the tally does not have yet and keeps
it.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.end_to_end.falsifying_states import SCENARIOS as FALSIFYING
from tests.end_to_end.falsifying_states import with_falsifying_states
from tests.support import images_dir
from wcet_probe.analyzer.bound import prepare, prove
from wcet_probe.analyzer.call_summaries import merged_claims
from wcet_probe.analyzer.dcache.invariants import access_ranges
from wcet_probe.analyzer.dcache.symbolic_blocks import SymbolicBlocks
from wcet_probe.analyzer.facts.binding import parameter_values
from wcet_probe.analyzer.facts.expressions import Expression, parse
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.facts.memory import pointer_facts, word_claims
from wcet_probe.analyzer.prepared import Prepared
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.answer.bounds.proving import allocator_facts, operation_request
from wcet_probe.answer.witness import probe
from wcet_probe.build.program import Program, load_program
from wcet_probe.catalog.lookup import allocator_names, load_allocator, load_target
from wcet_probe.errors import AnalysisError, ContradictionError, StateError, UsageError
from wcet_probe.model.allocator import Allocator
from wcet_probe.model.proof import Bound
from wcet_probe.model.target import Target
from wcet_probe.scenarios.lookup import family

HEAPS_BYTES = (5_008, 1 << 14, 1 << 16)
SEEDS = range(3)
MOST_REFUSED_BYTES = 1 << 14
"""So far beyond the least heap of an allocator one is looked for that holds a scenario."""
ROLES = ("malloc", "free")
OTHER_TARGETS = ("cortex-m4", "arm926ej-s")
"""Cores whose compiled code has other loops and points than the default one's."""

_KEYS: Mapping[str, Mapping[str, str]] = {
    "loops": {"maximum": "({}) - 1", "total": "({}) - 1"},
    "flows": {"maximum": "({}) - 1"},
    "pointers": {
        "multiple_of": "2 * ({})",
        "remainder": "({} + ({multiple_of}) // 2) % ({multiple_of})",
        "first_set": "({}) + 1",
        "sets": "({}) - 1",
        "lines": "({}) - 1",
        "lines_per_set": "({}) - 1",
        "line_changes": "({}) - 1",
        "visit_line_bytes": "2 * ({})",
    },
    "words": {"minimum": "({}) + 1", "maximum": "({}) - 1"},
    "arguments": {},
    "recursions": {},
}
"""What makes a number of a fact false, by kind and key."""


@dataclass(frozen=True)
class Setting:
    """How an allocator is compiled, and where its heap begins: so many bytes behind the target's own address of it."""

    target_name: str = "mpc603e"
    preset: str | None = None
    values: tuple[tuple[str, int], ...] = ()
    heap_offset_bytes: int = 0
    heaps_bytes: tuple[int, ...] = HEAPS_BYTES

    def __str__(self) -> str:
        """What is not as by default, for tallies."""
        plain, told = Setting(), [f"{name} {value}" for name, value in self.values]
        if self.target_name != plain.target_name:
            told.append(self.target_name)
        if self.preset:
            told.append(f"preset {self.preset}")
        if self.heap_offset_bytes:
            told.append(f"heap {self.heap_offset_bytes} bytes into a line")
        return ", ".join(told)

    def allocator(self, name: str) -> Allocator:
        """The allocator ``name`` with the values of the setting."""
        return load_allocator(name, dict(self.values), self.preset)

    def target(self) -> Target:
        """The target, its heap where the setting has it."""
        target = load_target(self.target_name)
        where = target.memory_map.heap_address + self.heap_offset_bytes
        return replace(target, memory_map=replace(target.memory_map, heap_address=where))


PLAIN = Setting()
OTHER_SETTINGS: Mapping[str, tuple[Setting, ...]] = {
    # Least blocks of 8 bytes: their links and buckets lie at odd multiples of four.
    "djgpp-carve": (Setting(preset="l11"),),
    "djgpp-sbrk": (Setting(preset="l11"),),
    # Blocks at odd multiples of four.
    "avl-best-fit": (Setting(values=(("alignment", 4), ("granule", 4))),),
    "buddy-fibonacci": (Setting(preset="p02"),),
    # A chunk of the threshold, from which on free consolidates, fits into a small heap.
    # The bin of a chunk of the whole heap is the last one of its power of two.
    "dlmalloc27": (
        Setting(values=(("consolidation-threshold", 4096),), heaps_bytes=(1 << 14,)),
        Setting(heaps_bytes=(8184,)),
    ),
}
"""Settings that single allocators need besides, and why."""


def settings(name: str, number: Number) -> Iterator[Setting]:
    """In which settings ``number`` of the facts of ``name`` is tried, the default one first."""
    yield PLAIN
    allocator = load_allocator(name)
    if number.kind == "pointers" and name == "quick-fit":
        return  # its pages are aligned: on a moved heap its states look beyond the end
    if number.kind == "pointers":
        # The least step into a line, and the greatest: there what ends with a line elsewhere begins another one.
        cache_config, step = load_target(PLAIN.target_name).dcache, allocator.alignment_bytes
        for offset in (step, cache_config.line_bytes - step) if cache_config else ():
            yield replace(PLAIN, heap_offset_bytes=offset)
    else:
        for target_name in OTHER_TARGETS:
            yield replace(PLAIN, target_name=target_name)
    yield from OTHER_SETTINGS.get(name, ())


@dataclass(frozen=True)
class Number:
    """A number of a fact: its kind, position among the facts of the kind, what it is about, its key, and a term."""

    kind: str
    position: int
    subject: str
    key: str
    term: int = -1

    def __str__(self) -> str:
        """How a case is named in tallies and in the table of survivors."""
        return f"{self.kind.removesuffix('s')} {self.subject}: {self.key}{f' {self.term}' if self.term >= 0 else ''}"


def _subject(kind: str, fact: Any) -> str:
    if kind == "pointers":
        return next(iter(fact.functions), "elsewhere")
    if kind == "words":
        return f"{fact.symbol} + {fact.offset}"
    if kind == "flows":
        return f"{fact.place.function}, {' + '.join(f'{term.kind} {term.place.name}' for term in fact.terms)}"
    return f"{fact.place.function}:{fact.place.name}"


def numbers(facts: Facts) -> Iterator[Number]:
    """All numbers of ``facts``, the weights of sums included."""
    subjects = Counter[tuple[str, str]]()
    for kind, keys in _KEYS.items():
        for position, fact in enumerate(getattr(facts, kind)):
            subject = _subject(kind, fact)
            subjects[kind, subject] += 1
            if subjects[kind, subject] > 1:
                subject += f" #{subjects[kind, subject]}"
            for key in keys:
                if getattr(fact, key) is not None:
                    yield Number(kind, position, subject, key)
            for term in range(len(fact.terms)) if kind == "flows" else ():
                yield Number(kind, position, subject, "weight", term)


def falsified(facts: Facts, number: Number) -> Facts:
    """``facts`` with ``number`` made false."""
    found = list(getattr(facts, number.kind))
    fact = found[number.position]
    if number.key == "weight":
        terms = list(fact.terms)
        terms[number.term] = replace(terms[number.term], weight=parse(f"({terms[number.term].weight}) + 1"))
        found[number.position] = replace(fact, terms=tuple(terms))
    else:
        old: Expression = getattr(fact, number.key)
        other = {"multiple_of": str(fact.multiple_of)} if number.kind == "pointers" else {}
        false = parse(_KEYS[number.kind][number.key].format(old, **other))
        found[number.position] = replace(fact, **{number.key: false})
    return replace(facts, **{number.kind: tuple(found)})


@cache
def _program(name: str, setting: Setting) -> Program:
    return load_program(setting.allocator(name), setting.target(), "zig", images_dir())


@cache
def _true(name: str, role: str, heap_bytes: int, setting: Setting) -> tuple[BoundRequest, Prepared, Bound]:
    request = operation_request(_program(name, setting), role, heap_bytes)
    prepared = prepare(request)
    with patch("wcet_probe.analyzer.bound.prepare", return_value=prepared):
        return request, prepared, prove(request)


def false_bound(name: str, role: str, heap_bytes: int, number: Number, setting: Setting = PLAIN) -> Bound:
    """The true bound, with the claims of facts of which ``number`` is false.

    Raises:
        UsageError: the false fact is refused.
    """
    request, prepared, bound = _true(name, role, heap_bytes, setting)
    facts = falsified(request.facts, number)
    changed = replace(request, facts=facts)
    parameters = parameter_values(facts, request.parameters, request.image)
    if number.kind == "pointers":
        cache_config = request.target.dcache
        told = pointer_facts(facts, prepared.index, prepared.analysed, parameters, cache_config.line_bytes)
        lines = SymbolicBlocks(prepared.values, cache_config, told)
        return replace(bound, accesses=tuple(access_ranges(prepared.values, lines)))
    if number.kind == "words":
        return replace(bound, words=word_claims(facts.words, request.image, parameters))
    stage = replace(prepared, request=changed).bounded(request.parameters)
    loop_claims, flow_claims = merged_claims(stage.loops.claims), (*stage.loops.flow_claims, *stage.asserted.claims)
    return replace(bound, loop_claims=loop_claims, flow_claims=flow_claims)


def _claims(bound: Bound) -> tuple[object, ...]:
    return bound.accesses, bound.words, bound.loop_claims, bound.flow_claims


def verdict(name: str, number: Number) -> str:
    """``reported by …``, or ``survived``; ``refused: …`` where the false fact is; ``idle`` where it claims the same."""
    found = "idle"
    for setting in settings(name, number):
        one = verdict_in(setting, name, number)
        if one.startswith(("reported", "refused")):
            return one
        if one == "survived":
            found = one
    return found


def verdict_in(setting: Setting, name: str, number: Number) -> str:
    """The verdict of the runs of one setting."""
    is_idle, allocator, target = True, setting.allocator(name), setting.target()
    chosen = with_falsifying_states(name, family(name))
    builders = chosen.builders
    runs = [(scenario, 0) for scenario in builders if scenario.startswith("worst")]
    runs += [("random", seed) for seed in SEEDS if "random" in builders]
    if number.kind == "pointers":
        # The least calls take other call paths than the dearest do.
        runs += [(scenario, 0) for scenario in builders if scenario.startswith("best")]
    for heap_bytes in setting.heaps_bytes:
        try:
            bounds = {role: false_bound(name, role, heap_bytes, number, setting) for role in ROLES}
            true = {role: _true(name, role, heap_bytes, setting)[2] for role in ROLES}
        except UsageError as error:
            return f"refused: {str(error).partition(': ')[2][:80]}"
        except AnalysisError:
            continue
        if all(_claims(bounds[role]) == _claims(true[role]) for role in ROLES):
            continue
        is_idle = False
        for scenario, seed in runs:
            request = probe.ProbeRequest(
                allocator, target, scenario, heap_bytes, seed, None, "zig",
                cross_check=False, cache_dir=images_dir(), prove=True,
            )  # fmt: skip
            try:
                with patch("wcet_probe.answer.witness.probe.family_of", lambda _: chosen):
                    probe.observe(request, proving=lambda _, role, __: bounds[role])  # noqa: B023
            except ContradictionError:
                where = f"{scenario}{f' {seed}' if seed else ''}, {heap_bytes} bytes"
                return f"reported by {where}{f', {setting}' if setting != PLAIN else ''}"
            except (UsageError, StateError):
                continue
    return "idle" if is_idle else "survived"


def check_falsifying_states(name: str) -> int:
    """Hold all falsifying states of ``name`` on the least heap against its facts as they are; how many there are.

    Raises:
        ContradictionError: a fact is false.
    """
    chosen, count = with_falsifying_states(name, family(name)), 0
    for scenario, kind in FALSIFYING.items():
        request = probe.ProbeRequest(
            PLAIN.allocator(name), PLAIN.target(), scenario, HEAPS_BYTES[0], 0, None, "zig",
            cross_check=False, cache_dir=images_dir(), prove=True,
        )  # fmt: skip
        try:
            with patch("wcet_probe.answer.witness.probe.family_of", lambda _: chosen):
                report = probe.observe(request, proving=lambda _, role, __: _true(name, role, HEAPS_BYTES[0], PLAIN)[2])
        except UsageError:
            continue
        assert report.bound, kind
        count += len(report.candidates)
    return count


def check_least_heaps(name: str, *, heaps: int) -> int:
    """Hold all scenarios on the least ``heaps`` of ``name`` that hold any against its facts; how many runs there are.

    Raises:
        ContradictionError: a fact is false.
    """
    allocator, runs = PLAIN.allocator(name), 0
    unit = allocator.alignment_bytes
    least = -(-allocator.minimum_heap_bytes // unit) * unit
    for heap_bytes in range(least, least + MOST_REFUSED_BYTES, unit):
        before = runs
        for scenario in family(name).builders:
            for seed in SEEDS if scenario == "random" else (0,):
                request = probe.ProbeRequest(
                    allocator, PLAIN.target(), scenario, heap_bytes, seed, None, "zig",
                    cross_check=False, cache_dir=images_dir(), prove=True,
                )  # fmt: skip
                try:
                    probe.observe(request, proving=lambda _, role, size: _true(name, role, size, PLAIN)[2])
                except (UsageError, StateError):
                    continue
                runs += 1
        heaps -= runs > before
        if not heaps:
            break
    return runs


def cases(names: tuple[str, ...] = ()) -> Iterator[tuple[str, Number]]:
    """Every number of every allocator's facts, or of those named."""
    for name in names or allocator_names():
        for number in numbers(allocator_facts(load_allocator(name))):
            yield name, number


def main(tally: Path, *names: str) -> None:
    """Run what ``tally`` does not have; what is done is kept after each number."""
    done: dict[str, str] = json.loads(tally.read_text("utf-8")) if tally.is_file() else {}
    for name, number in cases(names):
        key = f"{name}: {number}"
        if key not in done:
            done[key] = verdict(name, number)
            tally.write_text(json.dumps(done, indent=1, sort_keys=True) + "\n", "utf-8")
        sys.stdout.write(f"{key}: {done[key]}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
