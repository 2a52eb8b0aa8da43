"""A path of a result document as a profile that other tools open: Callgrind, speedscope, collapsed stacks.

Formats: "Callgrind Format Specification", Valgrind manual; https://www.speedscope.app/file-format-schema.json; a line
``outer;inner count`` for each stack, as flame graph tools read it. All are pure functions of the document.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from wcet_probe.errors import UsageError

Json = Mapping[str, Any]

PATHS = ("observed", "worst", "worst-cycles")
"""The executed path, the worst path in instructions, and that in cycles, which has cycles as well."""
_UNKNOWN = "???"
_UNATTRIBUTED = "(misses and writes of no single block)"


@dataclass(frozen=True, slots=True)
class Place:
    """An instruction and where it is from; what is not known is ``???`` or line 0.

    ``returns``: control may go from here to wherever a call goes on.
    """

    address: int
    end_address: int
    control: str
    returns: bool
    function: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Stretch:
    """Instructions that follow each other, executed ``executions`` times in one call context.

    ``context`` are the addresses of the calls that lead to it; ``cycles`` are of all executions, None if not known.
    """

    context: tuple[int, ...]
    code: tuple[Place, ...]
    executions: int
    cycles: int | None = None

    @property
    def instructions(self) -> int:
        """Instructions of all executions."""
        return len(self.code) * self.executions


@dataclass(frozen=True, slots=True)
class Profile:
    """A path: its stretches, and how often each call was made, by the address of the call and the entry of the callee.

    Attributes:
        title: what it is about, for people.
        creator: name and version of the program.
        places: the code by address.
        stretches: in order of execution where that is known.
        calls: number of calls.
        has_cycles: whether the cycles of the stretches are known.
        unattributed_cycles: cycles that belong to no stretch.
    """

    title: str
    creator: str
    places: Mapping[int, Place]
    stretches: tuple[Stretch, ...]
    calls: Mapping[tuple[int, int], int]
    has_cycles: bool = False
    unattributed_cycles: int = 0

    def stack(self, stretch: Stretch) -> tuple[str, ...]:
        """The functions that wait in ``stretch``, the outermost first, and its own."""
        return (*(self.places[site].function for site in stretch.context), stretch.code[0].function)

    def weight(self, stretch: Stretch) -> int:
        """Cycles where they are known, else instructions."""
        return stretch.instructions if stretch.cycles is None else stretch.cycles


# ------------------------------------------------------------------------------------------------------- from documents


def profile(document: Json, path: str) -> Profile:
    """The path of ``document``, a valid ``wcet-probe-result`` or ``wcet-probe-bound``, that ``path`` of `PATHS` names.

    Raises:
        UsageError: the document has no such path.
    """
    code = tuple(_place(one) for one in document["listing"])
    creator = f"{document['tool']['name']} {document['tool']['version']}"
    found = Profile(_title(document, path), creator, {place.address: place for place in code}, (), {})
    return _observed(document, code, found) if path == "observed" else _worst(document, code, found, path)


def _place(one: Json) -> Place:
    address = int(one["address"], 16)
    end = address + one["size_bytes"]
    # A conditional return of PowerPC, beqlr for instance, is a conditional branch.
    returns = one["control"] == "indirect" or one["text"].split()[0].rstrip("+-").endswith("lr")
    source = one["function"] or _UNKNOWN, one["file"] or _UNKNOWN, one["line"] or 0
    return Place(address, end, one["control"], returns, *source)


def _title(document: Json, path: str) -> str:
    what = {"observed": "observed path", "worst": "worst path", "worst-cycles": "worst path in cycles"}[path]
    if document["format"] == "wcet-probe-bound":
        return f"{document['bound']['entry']} on {document['target']}: {what}"
    return f"{document['allocator']} on {document['target']}, {document['scenario']}: {what}"


def _observed(document: Json, code: Sequence[Place], empty: Profile) -> Profile:
    if "observed" not in document:
        raise UsageError("a bound alone has no observed path; give --path worst, or a result of a run.")
    starts = [place.address for place in code]
    runs: list[tuple[Place, ...]] = []
    for run in document["observed"]["runs"]:
        first = bisect_left(starts, int(run["address"], 16))
        runs.append(tuple(code[first : first + run["instructions"]]))
    if not document["observed"]["path_complete"]:
        counts = [run["executions"] for run in document["observed"]["runs"]]
        flat = tuple(Stretch((), run, count) for run, count in zip(runs, counts, strict=True))
        return replace(empty, title=f"{empty.title}, cut in the document: without calls", stretches=flat)
    stretches: list[Stretch] = []
    calls: Counter[tuple[int, int]] = Counter()
    frames: list[_Frame] = []
    for index in document["observed"]["path"]:
        if stretches:
            last, target = stretches[-1].code[-1], runs[index][0]
            if _enter(frames, last, target):
                calls[last.address, target.address] += 1
        stretches.append(Stretch(tuple(frame.site for frame in frames), runs[index], 1))
    return replace(empty, stretches=tuple(stretches), calls=calls)


@dataclass(frozen=True, slots=True)
class _Frame:
    """A call that waits, and where it goes on; a tail call goes on nowhere."""

    site: int
    return_address: int | None


def _enter(frames: list[_Frame], last: Place, target: Place) -> bool:
    """What going from ``last`` to ``target`` makes of the calls that wait; whether it is a call.

    A jump to another function is a tail call: who called the jumping function is returned to from the other one.
    """
    falls = target.address == last.end_address
    if last.control == "call":
        if falls and last.function == target.function:
            return False  # its condition failed
        frames.append(_Frame(last.address, last.end_address))
        return True
    if last.returns:
        for depth in reversed(range(len(frames))):
            if frames[depth].return_address == target.address:
                del frames[depth:]
                return False
    if last.function != target.function:
        frames.append(_Frame(last.address, None))
        return True
    return False


def _worst(document: Json, code: Sequence[Place], empty: Profile, path: str) -> Profile:
    bound = document["bound"]
    if bound is None:
        raise UsageError("the result has no bound, and so no worst path; give --path observed.")
    key, unit = ("worst_path", "instructions") if path == "worst" else ("worst_path_cycles", "cycles")
    blocks = bound[key]
    if not blocks:
        raise UsageError(f"no path was found that attains the bound in {unit}; give another --path.")
    starts = [place.address for place in code]
    stretches: list[Stretch] = []
    for block in blocks:
        first, behind = (bisect_left(starts, int(block[end], 16)) for end in ("address", "end_address"))
        context = tuple(int(site, 16) for site in block["context"])
        stretches.append(Stretch(context, tuple(code[first:behind]), block["executions"], block.get("cost_cycles")))
    entries = {int(function["address"], 16) for function in document["image"]["functions"]}
    calls = _calls(stretches, entries)
    beside = (bound["unattributed_cycles"] or 0) if unit == "cycles" else 0
    return replace(
        empty, stretches=tuple(stretches), calls=calls, has_cycles=unit == "cycles", unattributed_cycles=beside
    )


def _calls(stretches: Sequence[Stretch], entries: Iterable[int]) -> Mapping[tuple[int, int], int]:
    """How often each call is made on a worst path: as often as its block and the first of its callee are executed.

    A call whose condition may fail is executed more often than the callee is entered; a loop's header that is the first
    block of the callee is executed more often than the callee is entered. The less of both is right in either case.
    """
    sites = {(stretch.context, stretch.code[-1].address): stretch.executions for stretch in stretches}
    calls: Counter[tuple[int, int]] = Counter()
    for stretch in stretches:
        address = stretch.code[0].address
        if stretch.context and address in entries:
            *outer, site = stretch.context
            calls[site, address] += min(stretch.executions, sites[tuple(outer), site])
    return calls


# ----------------------------------------------------------------------------------------------------------- to formats


def callgrind(found: Profile) -> str:
    """``found`` for KCachegrind and callgrind_annotate: costs of each instruction, and of the calls with their callees.

    Events are instructions (``Ir``) and, where they are known, cycles; a block's cycles stand at its first instruction,
    those of no block at a function of their own.
    """
    own, inclusive, total = _costs(found)
    events = ("Ir", "Cycles") if found.has_cycles else ("Ir",)

    def text(counts: Counter[str]) -> str:
        return " ".join(str(counts[event]) for event in events)

    lines = [
        "# callgrind format",
        "version: 1",
        f"creator: {found.creator}",
        f"cmd: {found.title}",
        "positions: instr line",
        f"events: {' '.join(events)}",
        f"summary: {text(total)}",
    ]
    for function, group in groupby((found.places[address] for address in sorted(own)), lambda place: place.function):
        places = list(group)
        file = places[0].file
        lines += ["", f"fl={file}", f"fn={function}"]
        for place in places:
            if place.file not in {file, _UNKNOWN}:  # what the compiler made stays with what is around it
                file = place.file
                lines.append(f"fi={file}")
            here = f"{place.address:#x} {place.line}"
            lines.append(f"{here} {text(own[place.address])}")
            for callee, count in _calls_at(found, place):
                lines += [
                    f"cfi={callee.file}",
                    f"cfn={callee.function}",
                    f"calls={count} {callee.address:#x} {callee.line}",
                    f"{here} {text(inclusive[place.address, callee.function])}",
                ]
    if found.unattributed_cycles:
        lines += ["", f"fl={_UNKNOWN}", f"fn={_UNATTRIBUTED}", f"0x0 0 0 {found.unattributed_cycles}"]
    return "\n".join([*lines, "", f"totals: {text(total)}", ""])


def _costs(found: Profile) -> tuple[dict[int, Counter[str]], dict[tuple[int, str], Counter[str]], Counter[str]]:
    """Costs of each instruction, of each call with its callee, by address and callee, and of everything."""
    own: dict[int, Counter[str]] = {}
    inclusive: dict[tuple[int, str], Counter[str]] = {}
    total = Counter(Cycles=found.unattributed_cycles)
    for stretch in found.stretches:
        for place in stretch.code:
            own.setdefault(place.address, Counter())["Ir"] += stretch.executions
        own[stretch.code[0].address]["Cycles"] += stretch.cycles or 0
        cost = Counter(Ir=stretch.instructions, Cycles=stretch.cycles or 0)
        total.update(cost)
        for call in set(zip(stretch.context, found.stack(stretch)[1:], strict=True)):
            inclusive.setdefault(call, Counter()).update(cost)
    return own, inclusive, total


def _calls_at(found: Profile, place: Place) -> list[tuple[Place, int]]:
    """The callees of the calls at ``place``, in order of addresses, and how often each is called."""
    return [
        (found.places[entry], count) for (site, entry), count in sorted(found.calls.items()) if site == place.address
    ]


def speedscope(found: Profile) -> str:
    """``found`` for https://www.speedscope.app: a sample for each stack, in order, with its cycles or instructions."""
    first: dict[str, Place] = {}
    for _, place in sorted(found.places.items()):
        first.setdefault(place.function, place)
    stacks = [(stack, sum(weights)) for stack, weights in _in_order(found)]
    names = list(dict.fromkeys(name for stack, _ in stacks for name in stack))
    sources = {name: _source(place) for name, place in first.items()}
    number = {name: index for index, name in enumerate(names)}
    document = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": found.creator,
        "name": found.title,
        "shared": {"frames": [{"name": name, **sources.get(name, {})} for name in names]},
        "profiles": [
            {
                "type": "sampled",
                "name": found.title,
                "unit": "none",
                "startValue": 0,
                "endValue": sum(weight for _, weight in stacks),
                "samples": [[number[name] for name in stack] for stack, _ in stacks],
                "weights": [weight for _, weight in stacks],
            }
        ],
    }
    return json.dumps(document, sort_keys=True, indent=1, ensure_ascii=False) + "\n"


def collapsed(found: Profile) -> str:
    """``found`` as a line ``outer;inner count`` for each stack, sorted; counts are cycles or instructions."""
    counts: Counter[str] = Counter()
    for stack, weights in _in_order(found):
        counts[";".join(stack)] += sum(weights)
    return "".join(f"{stack} {count}\n" for stack, count in sorted(counts.items()))


FORMATS: Mapping[str, Callable[[Profile], str]] = {
    "callgrind": callgrind,
    "speedscope": speedscope,
    "collapsed": collapsed,
}


def _in_order(found: Profile) -> Iterator[tuple[tuple[str, ...], Iterator[int]]]:
    """Stacks and the weights of the stretches that follow each other in them."""
    for stack, group in groupby(found.stretches, found.stack):
        yield stack, map(found.weight, group)
    if found.unattributed_cycles:
        yield (_UNATTRIBUTED,), iter([found.unattributed_cycles])


def _source(place: Place) -> dict[str, object]:
    return {} if place.file == _UNKNOWN else {"file": place.file, "line": place.line}
