"""Soundness bugs put into the analyzer, one at a time: which wrong certificates does the checker refuse?

    python -m tests.certificate.injected_bugs [NAME ...]

Each bug is a change of one place of the analyzer's source, made when the module is imported; the files stay as they
are. Small programs are bounded without and with it. A bound that is lower than without the bug is a wrong certificate,
which the checker, whose code is not changed, must refuse; or it is *seen*: a line that is ok of the true certificate
is not checked of the wrong one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.machinery import PathFinder, SourceFileLoader
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
PACKAGE = "wcet_probe.analyzer."


@dataclass(frozen=True)
class Bug:
    """A change of a module of the analyzer: ``old`` stands there once, and becomes ``new``."""

    module: str
    old: str
    new: str


JOINS, STATE, TRANSFER = "values.joins", "values.state", "values.transfer"
COUNTING, FLOW, COSTS = "loops.counting", "ipet.flow_problem", "ipet.costs"
BUGS: Mapping[str, Bug] = {
    # values
    "a join takes the first way's value": Bug(
        "domains.strided_interval", "    if leq(one, other):\n        return other\n", "    if one.steps >= 0:\n        return one\n"
    ),
    "a join of values keeps the last": Bug(
        JOINS, "        value = strided.join(value, state.value(part))\n    merged.set_known(leaf, value)",
        "        value = state.value(part)\n    merged.set_known(leaf, value)",
    ),
    "what one way knows is taken for all": Bug(
        JOINS, "                value = strided.join(value, other.value(term))\n        merged.set_known(term, value)",
        "                pass\n        merged.set_known(term, value)",
    ),
    "a location keeps its term though the ways differ": Bug(
        JOINS, "len(set(parts)) == 1 and not _speaks_of(terms, parts[:1], place)", "parts"
    ),
    "the base of the first way is taken for all": Bug(
        JOINS, "base = bases.pop() if len(bases) == 1 else Base.ANY\n    if base is not Base.NUMBER:\n        merged.set_base(leaf, base)\n    if base",
        "base = Base.NUMBER\n    if base is not Base.NUMBER:\n        merged.set_base(leaf, base)\n    if base",
    ),
    "a stored word may be read as it was": Bug(
        TRANSFER, "            state.forget(state.overlapping(place))\n            state.set_location(place, value)",
        "            state.set_location(place, value) if state.read(place) is None else None",
    ),
    "stores to the stack or static memory forgotten": Bug(
        TRANSFER, "        if base is not Base.NUMBER:\n            low, high = offset.signed_range()",
        "        if base is Base.STACK:\n            low, high = offset.signed_range()",
    ),
    "stores to static memory by an index forgotten": Bug(
        TRANSFER, "            state.forget_range(\"static\", low, high + size_bytes - 1)", "            pass"
    ),
    "stores to the stack by an index forgotten": Bug(
        TRANSFER, "            state.forget_range(\"stack\", low, high + size_bytes - 1)", "            pass"
    ),
    "a store forgets one byte too few": Bug(
        STATE, "held.space == space and held.offset <= high and low < held.offset + held.size_bytes",
        "held.space == space and held.offset < high - 3 and low < held.offset + held.size_bytes",
    ),
    "a stack address in memory is no stack address": Bug(
        TRANSFER, "            self._memory.stack_escapes = True", "            pass"
    ),
    "writable memory is read as it was linked": Bug(
        TRANSFER, "        if value is not None:\n            # Read-only memory is", "        if place is not None and place.space == \"static\":\n            return self._terms.constant(0, bits)\n        if value is not None:\n            # Read-only memory is"
    ),
    "a condition that may be false is taken for true": Bug(
        TRANSFER, "        if other.assume(condition, holds=False):", "        if other.value(condition).is_top and other.assume(condition, holds=False) and False:"
    ),
    "a way is left out where its condition is likely": Bug(
        TRANSFER, "        if flow.state.assume(condition, holds=True):", "        if flow.state.assume(condition, holds=True) and not self._accesses:"
    ),
    "signed and unsigned comparison confused": Bug(
        "domains.strided_comparisons", "    if opcode == \"INT_EQUAL\":\n        both", "    opcode = opcode.replace(\"INT_SLESS\", \"INT_LESS\")\n    if opcode == \"INT_EQUAL\":\n        both"
    ),
    "less taken for less by two": Bug(
        "domains.strided_comparisons", "    if not holds:\n        opcode = _NEGATED[opcode]", "    if not holds:\n        opcode = _NEGATED[opcode].replace(\"LESSEQUAL\", \"LESS\")"
    ),
    "a comparison's result from the ends of the left side alone": Bug(
        "domains.strided", "\"INT_LESS\": partial(ordered, is_signed=False, or_equal=0)", "\"INT_LESS\": lambda bits, a, b: constant(bits, int(a.unsigned_range()[0] < b.unsigned_range()[1]))"
    ),
    "subtraction does not wrap": Bug(
        "domains.strided", "\"INT_SUB\": _same_width(arithmetic.subtracted)", "\"INT_SUB\": _same_width(lambda a, b: between(a.bits, 0, a.unsigned_range()[1]))"
    ),
    "a shift keeps its operand's least value": Bug(
        "domains.strided", "\"INT_RIGHT\": partial(shift, \"INT_RIGHT\")", "\"INT_RIGHT\": lambda bits, a, b: constant(bits, a.low >> min(b.low, bits))"
    ),
    "sign extension taken for zero extension": Bug(
        "domains.strided", "\"INT_SEXT\": arithmetic.sign_extended", "\"INT_SEXT\": arithmetic.zero_extended"
    ),
    "a mask leaves what was there": Bug(
        "domains.strided", "\"INT_AND\": _AND", "\"INT_AND\": lambda bits, a, b: between(bits, 0, min(a.unsigned_range()[1], b.unsigned_range()[1], 7))"
    ),
    "a table's last entry is not read": Bug(
        TRANSFER, "        for address in addresses.values():\n            content", "        for address in list(addresses.values())[:-1] or addresses.values():\n            content"
    ),
    # loops
    "a loop bound is one too low": Bug(COUNTING, "header = repetitions(relation, step, high) + 1", "header = repetitions(relation, step, high)"),
    "the least start is the only one": Bug(COUNTING, "        header = repetitions(relation, step, high) + 1", "        header = repetitions(relation, step, low) + 1"),
    "a step is taken twice": Bug("loops.conditions", "            return -(-distance // step)\n", "            return -(-distance // (2 * step))\n"),
    "less or equal counted as less": Bug("loops.conditions", "    return distance // step + 1\n", "    return distance // step\n"),
    "unequal loops end half way": Bug(COUNTING, "low, high, high // step + 1, gap, 0)", "low, high, high // (2 * step) + 1, gap, 0)"),
    "one entry of a loop decides": Bug(COUNTING, "            result = part if result is None else strided.join(result, part)", "            result = part if result is None else result"),
    "a counter that is changed twice": Bug(COUNTING, "                rate += signed(form.bits, coefficient) * self._own[term].amount", "                rate += 2 * signed(form.bits, coefficient) * self._own[term].amount"),
    "what the loop changes taken for constant": Bug(COUNTING, "        return place is None or place in self._shape.loop.nodes", "        return False"),
    "counters may wrap": Bug(COUNTING, "            count = self._make(relation, step, distance, bits, lasts) if fits else None", "            count = self._make(relation, step, distance, bits, lasts)"),
    "distances that never meet": Bug(COUNTING, "        if step > 1 and any(number % step for number in (met.low, met.stride if met.steps else 0)):\n            return None\n", ""),
    # paths and costs
    "an edge is forgotten": Bug(FLOW, "        edges.append(FlowEdge(", "        if edge.way == \"fall\" and len(edges) % 5 == 4:\n            continue\n        edges.append(FlowEdge("),
    "a callee is skipped": Bug("graph.supergraph", "            if behind in blocks or target in self._returns.branching:\n", "            if behind in blocks:\n                self._connect(source, self._point(frame, behind), \"fall\", behind)\n            elif target in self._returns.branching:\n"),
    "a callee's loops happen once a call": Bug(FLOW, "        max_back_edges=max(0, loop.max_header - 1),", "        max_back_edges=max(0, loop.max_header - 2),"),
    "conditions contradict too easily": Bug("loops.infeasible_pairs", "                    if _contradict(values.terms, conditions, second.state, speaking[second.edge]):", "                    if second is not first and len(second.state.known) > 2:"),
    "what is behind a change still holds": Bug("loops.infeasible_pairs", "[pair for pair in first.conditions if _lasts(values.terms, pair[0], behind, lost)]", "list(first.conditions)"),
    "taken branches cost nothing": Bug(COSTS, "    return cost.taken_cycles if instruction.control is Control.CONDITIONAL_BRANCH else 0", "    return 0"),
    "a skipped instruction is cheap": Bug(COSTS, "            cycles += max(cost.executed_cycles, cost.skipped_cycles)", "            cycles += min(cost.executed_cycles, cost.skipped_cycles)"),
    "the last instruction of a block is not charged": Bug(COSTS, "    for lifted in block.instructions:\n        instruction, cost", "    for lifted in block.instructions[:-1] or block.instructions:\n        instruction, cost"),
    "a block counts one instruction less": Bug("bound", "            return len(block.instructions)", "            return max(1, len(block.instructions) - 1)"),
    "waiting for data is forgotten": Bug("bound", "        return block_cycles(block, costs) + waiting", "        return block_cycles(block, costs)"),
    "leaving the function costs nothing": Bug(FLOW, "        costs[edge.source] = max(costs.get(edge.source, 0), edge_cost(edge))", "        costs[edge.source] = 0"),
    "assumptions of stores are not listed": Bug("bound", "    if any(access.base is Base.NUMBER and not access.offset.is_constant for access in stores):", "    if not stores and not request.target:"),
}  # fmt: skip

SOURCE = """\
volatile int port; int buffer[32]; const unsigned char sizes[8] = {3, 9, 1, 30, 2, 7, 5, 40}; struct item { struct item *next; int key; };
__attribute__((noinline)) static int worker(int n) { int s = 0; for (int i = 0; i < (n & 15); i++) s += port; return s; }
int nested(int n) { int s = 0; for (int i = 0; i < 10; i++) for (int j = 0; j < 12; j += 3) s += port * n; return s; }
int calling(int n) { int s = worker(n); for (int i = 0; i < 5; i++) s += worker(s); return s; }
int down(unsigned n) { int s = 0; n &= 63; while (n) { s += port; n--; } return s; }
int stepping(int n) { int s = 0; for (int i = n & 3; i <= 40; i += 4) s += port; return s; }
int either(int n) { int most = n < 0 ? 20 : n > 100 ? 6 : 11; int s = 0; for (int i = 0; i < most; i++) s += port; return s; }
int bytes(unsigned n) { int s = 0; for (unsigned i = 0; i < sizes[n & 7]; i++) s += port; return s; }
int choose(int n) { switch (n) { case 0: return port; case 1: return port + port; case 2: port = 1; port = 2; return port / n; case 3: return worker(9); case 4: return 7; case 5: return worker(2) + worker(3); default: return -1; } }
int aliased(int n) { volatile int k = 3, *p = n & 1 ? &k : (volatile int *)&port; *p = 40; int s = 0; for (int i = 0; i < 40 && i < k; i++) s += port; return s; }
int filled(int n) { int a[8]; for (int i = 0; i < 8; i++) a[i] = 4; a[n & 7] = 25; int m = a[2] & 31, s = 0; for (int i = 0; i < m; i++) s += port; return s; }
int shifting(unsigned n) { int s = 0; n |= 1; while (n > 1) { n >>= 2; s += port; } return s; }
int exclusive(int n) { int s = 0; if (n > 10) s += worker(15); if (n < 5) s += worker(15); if (n == 7) s++; return s; }
int related(int n) { int s = 0; if (n > 10) s = port + port + port; n = port; if (n < 5) s += port / 3 + port; return s; }
int early(const int *a, int n) { for (int i = 0; i < 32; i++) if (buffer[i] == n) return i * port; return -1; }
int signs(signed char c) { int m = c; int s = 0; if (m < 30) { unsigned k = m < 0 ? 33 : m; for (unsigned i = 0; i < k; i++) s += port; } return s; }
int kept; int stored(int n) { kept = 2; buffer[n & 31] = 9; int *q = buffer + (n & 31); q[0] = 30; kept += n & 7; int s = 0; for (int i = 0; i < kept && i < 9; i++) s += port; return s; }
"""
ENTRIES = ("nested", "calling", "down", "stepping", "either", "bytes", "choose", "aliased", "filled", "shifting", "exclusive", "related", "early", "signs", "stored")  # fmt: skip
TARGETS = ("cortex-m4",)


class _Loader(SourceFileLoader):
    """The source of one module, with the change of ``bug``."""

    bug: Bug

    def get_data(self, path: str) -> bytes:
        data = super().get_data(path)
        if not path.endswith(".py"):
            raise OSError("no compiled file is used")
        text = data.decode()
        if text.count(self.bug.old) != 1:
            raise SystemExit(f"{self.bug.module} holds {self.bug.old!r} {text.count(self.bug.old)} times, not once")
        return text.replace(self.bug.old, self.bug.new).encode()


class _Finder:
    """Finds the module that has the bug."""

    def __init__(self, bug: Bug) -> None:
        self._bug = bug

    def find_spec(self, name: str, path: object = None, target: object = None) -> object:
        if name != PACKAGE + self._bug.module:
            return None
        spec = PathFinder.find_spec(name, path, target)  # type: ignore[arg-type]
        assert spec is not None
        loader = _Loader(name, str(spec.origin))
        loader.bug = self._bug
        spec.loader = loader
        return spec


def _images(folder: Path) -> Iterator[tuple[str, Path]]:
    for target in TARGETS:
        yield target, folder / f"{target}.elf"


def build(folder: Path) -> None:
    """Build the programs into ``folder``."""
    from tests.support import image_of
    from wcet_probe.catalog.lookup import load_target

    for target, file in _images(folder):
        file.write_bytes(image_of(SOURCE, load_target(target), ".c").elf)


def bounds(folder: Path, name: str | None, wanted: Mapping[str, list]) -> dict[str, object]:
    """Bound all programs in this process, with the bug ``name``; a bound below ``wanted`` is given to the checker."""
    if name is not None:
        sys.meta_path.insert(0, _Finder(BUGS[name]))  # type: ignore[arg-type]
    from wcet_probe.answer.firmware import FirmwareRequest, bound_firmware
    from wcet_probe.catalog.lookup import load_target
    from wcet_probe.errors import VerificationError, WcetProbeError
    from wcet_probe.evidence.checking import check_file_result
    from wcet_probe.reports.formats.bound_document import firmware_document

    found: dict[str, object] = {}
    for target, file in _images(folder):
        for entry in ENTRIES:
            key = f"{target} {entry}"
            try:
                answer = bound_firmware(FirmwareRequest(file, entry, load_target(target), [], [], {}))
            except WcetProbeError as error:
                found[key] = f"no bound: {error}"[:160]
                continue
            except Exception as error:  # noqa: BLE001  (a bug was put in: whatever it breaks)
                found[key] = f"broken: {error!r}"[:160]
                continue
            numbers = [answer.bound.instructions, answer.bound.cycles, len(answer.bound.assumptions)]
            before = wanted.get(key)
            if before is not None and all(now >= then for now, then in zip(numbers, before, strict=False)):
                found[key] = numbers
                continue
            document = json.loads(json.dumps(firmware_document(answer)))
            try:
                checked, _ = check_file_result(document, json.dumps(document).encode(), file.read_bytes())
            except VerificationError as error:
                found[key] = f"refused: {error}"[:200]
                continue
            named = [one.check for one in checked.findings if one.verdict != "ok"]
            if before is None:
                found[key] = [*numbers, named]
            elif set(named) - set(before[3]):
                found[key] = f"seen: {', '.join(named)}"
            else:
                found[key] = f"not checked: {', '.join(named)}" if named else f"ACCEPTED: {numbers} for {before}"
    return found


def run(folder: Path, name: str | None, wanted: Mapping[str, list]) -> dict[str, object]:
    """`bounds` in a process of its own."""
    command = [sys.executable, "-m", "tests.certificate.injected_bugs", "--one", str(folder), name or ""]
    done = subprocess.run(command, cwd=ROOT, input=json.dumps(wanted), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr[-2000:]}")
    return dict(json.loads(done.stdout))


def verdict(true: Mapping[str, object], found: Mapping[str, object]) -> str:
    """What the checker made of the wrong certificates of one bug, in a word; the worst of them decides."""
    texts = [str(one) for key, one in found.items() if isinstance(one, str) and isinstance(true[key], list)]
    for word in ("ACCEPTED", "not checked", "seen", "refused"):
        if any(one.startswith(word) for one in texts):
            return word
    return "no certificate" if texts else "no effect"


WORDS = ("refused", "seen", "not checked", "ACCEPTED", "no bound", "broken")


def main() -> int:
    """Run the bugs that are named, or all; 1 if a wrong certificate is accepted."""
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(bounds(Path(sys.argv[2]), sys.argv[3] or None, json.load(sys.stdin))))
        return 0
    accepted = 0
    with TemporaryDirectory() as place:
        folder = Path(place)
        build(folder)
        true = run(folder, None, {})
        wanted = {key: one for key, one in true.items() if isinstance(one, list)}
        print(f"{len(wanted)} of {len(true)} programs have a bound")
        for name in sys.argv[1:] or BUGS:
            found = run(folder, name, wanted)
            word = verdict(true, found)
            accepted += word == "ACCEPTED"
            texts = [str(one) for key, one in found.items() if isinstance(one, str) and key in wanted]
            count = {word: sum(one.startswith(word) for one in texts) for word in WORDS}  # fmt: skip
            print(f"{word:14} {name}: {', '.join(f'{n} {w}' for w, n in count.items() if n)}", flush=True)
            if os.environ.get("INJECTED_BUGS_TELL"):
                print("".join(f"    {key}: {one}\n" for key, one in found.items() if key in wanted and isinstance(one, str)), flush=True)  # fmt: skip
    return 1 if accepted else 0


if __name__ == "__main__":
    sys.exit(main())
