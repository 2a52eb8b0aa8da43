"""The long part of the search for dearer states: slices of it, and the tally of what they found.

Run with ``python -m bench.adversary --slice 3/8 [--evaluations N] [ALLOCATOR ...]``: the combinations of allocator,
operation, heap and unit are dealt out to the slices, each is attacked, held against bound and facts, and its line in
``tests/search_tally.csv`` follows: evaluations add up, the most that was found stays while the dearest known cost does.
A state that is dearer than all candidates is kept in ``allocators/NAME/found`` and is a candidate from then on, of the
next search too. A contradiction ends the run with exit code 5.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from platformdirs import user_cache_dir

from wcet_probe.answer.studies.adversary import Attack, Unit, attack
from wcet_probe.answer.studies.search import SearchRequest
from wcet_probe.catalog.lookup import allocator_names, load_allocator, load_target
from wcet_probe.catalog.own_allocator import FOUND
from wcet_probe.errors import UsageError, WcetProbeError
from wcet_probe.model.scenario import OperationKind

TALLY = Path(__file__).parents[1] / "tests" / "search_tally.csv"
HEAPS = (5000, 5008, 64 << 10, (1 << 20) + 16)
UNITS = ((Unit.INSTRUCTIONS, "cortex-m4"), (Unit.CYCLES, "arm926ej-s"), (Unit.CYCLES, "mpc603e"))
RANDOM_UNITS = ((Unit.CYCLES, "cortex-m7"),)
"""Where victims are random any other state may be dearer with the one seed: attacked on demand, and never judged."""
HEAD = ("allocator", "operation", "heap", "unit", "target", "evaluations", "known", "found")
ALLOCATORS = Path(__file__).parents[1] / "allocators"

Key = tuple[str, str, str, str, str]


def combinations(names: list[str], units: Sequence[tuple[Unit, str]] = UNITS) -> Iterator[Key]:
    """All that is attacked, as the first columns of the tally."""
    for name in names:
        for kind in OperationKind:
            for heap in HEAPS:
                for unit, target in units:
                    yield name, kind.value, str(heap), unit.value, target


def read_tally() -> dict[Key, tuple[int, int, int]]:
    """Evaluations, the dearest candidate's cost and the most that was found, by combination."""
    if not TALLY.exists():
        return {}
    with TALLY.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[1:]
    return {(a, b, c, d, e): (int(f), int(g), int(h)) for a, b, c, d, e, f, g, h in rows}


def write_tally(tally: dict[Key, tuple[int, int, int]]) -> None:
    """The tally, in order of its columns."""
    with TALLY.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEAD)
        for key in sorted(tally, key=lambda key: (*key[:2], int(key[2]), *key[3:])):
            writer.writerow((*key, *tally[key]))


def attacked(key: Key, evaluations: int, seed: int, *, prove: bool) -> Attack:
    """Attack one combination."""
    name, operation, heap, unit, target = key
    cache_dir = Path(user_cache_dir("wcet-probe"))
    kind = OperationKind(operation)
    request = SearchRequest(
        load_allocator(name), load_target(target), kind, int(heap), evaluations, seed, "zig", cache_dir
    )
    return attack(request, Unit(unit), prove=prove)


def keep(found: Attack) -> Path:
    """Keep a state that beats all candidates beside its allocator; where."""
    folder = ALLOCATORS / found.request.allocator.name.partition(":")[0] / FOUND
    folder.mkdir(exist_ok=True)
    file = folder / found.file_name
    file.write_text(found.text, "utf-8")
    return file


def main() -> int:
    """Attack a slice and update the tally."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slice", default="1/1", help="which of how many, such as 3/8")
    parser.add_argument("--evaluations", type=int, default=500)
    parser.add_argument("--heap", type=int, action="append", choices=HEAPS, help="of these heaps only")
    known = sorted(target for _, target in (*UNITS, *RANDOM_UNITS))
    parser.add_argument("--target", action="append", choices=known, help="of these targets only")
    parser.add_argument("--operation", choices=[kind.value for kind in OperationKind], help="of this operation only")
    parser.add_argument("--no-bound", action="store_true", help="hold no run against a bound, which saves its proof")
    parser.add_argument("allocators", nargs="*", default=allocator_names())
    options = parser.parse_args()
    number, _, count = options.slice.partition("/")
    heaps = {str(heap) for heap in options.heap or HEAPS}
    units = [one for one in (*UNITS, *RANDOM_UNITS) if one[1] in options.target] if options.target else UNITS
    chosen = [key for key in combinations(options.allocators, units) if key[2] in heaps]
    chosen = [key for key in chosen if options.operation in (None, key[1])]
    for key in chosen[int(number) - 1 :: int(count)]:
        tally = read_tally()
        before, known, most = tally.get(key, (0, 0, 0))
        try:
            found = attacked(key, options.evaluations, before, prove=not options.no_bound)
        except UsageError as error:  # a heap that is too small for the states, or no multiple of the alignment
            print(*key, error, flush=True)
            continue
        except WcetProbeError as error:
            print(*key, error, file=sys.stderr)
            return error.exit_code
        dearest = found.found if found.beaten else found.known
        if found.beaten:
            print("kept in", keep(found).relative_to(ALLOCATORS), flush=True)
        run = found.evaluations + (before if found.known == known else 0)
        most = max(most, dearest) if found.known == known else dearest
        write_tally(read_tally() | {key: (run, dearest, most)})
        print(*key, found.constructed, dearest, most, "beaten" if most > dearest else "", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
