"""What the tests of check and diff share: small results by hand, and real ones, made once, with a heap of 4 KiB."""

import copy
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.support import image_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.ci.baseline import baseline_entry
from wcet_probe.ci.budgets import Budget, FirmwareCall, read_budgets
from wcet_probe.ci.judge import judge, located, unbounded
from wcet_probe.cli import budgeted
from wcet_probe.config import read_config

GOLDEN = Path(__file__).parent / "golden"
SOURCE = """\
int table[16];
struct node { struct node *next; };

int fixed(void)
{
    int total = 0;
    for (int i = 0; i < 16; i++)
        total += table[i] * i;
    return total;
}

int length(const struct node *node)
{
    int total = 0;
    while (node) {
        total++;
        node = node->next;
    }
    return total;
}
"""
TLSF = '[[budgets]]\nallocator = "tlsf"\noperation = "malloc"\ntarget = "mpc603e"\nheap = "4KiB"\n'
FIXED = '[[budgets]]\nimage = "build/fw.elf"\nentry = "fixed"\ntarget = "cortex-m4"\nsources = "src"\n'
LENGTH = FIXED.replace('"fixed"', '"length"')
LOOP = {
    "name": "find+0x8", "function": "find", "address": "0x00000108", "context": [], "location": "find+0x8 (find.c:7)",
    "file": "find.c", "line": 7, "max": 9, "total": None, "origin": "fact", "expression": "N", "where": "facts.toml:1",
    "because": "nobody links more",
}  # fmt: skip
RESULT = {
    "format": "wcet-probe-bound",
    "version": 1,
    "tool": {"name": "wcet-probe", "version": "0.1.0", "packages": {"highspy": "1.15.1"}},
    "target": "mpc603e",
    "target_configuration": {"timing": {"integer": {"cycles": 1}}, "caches": {"dcache": {"sets": 128}, "icache": None}},
    "image": {
        "sha256": "0123456789abcdef" * 4,
        "compiler": "clang 22",
        "flags": ["-O2"],
        "functions": [{"name": "find", "sha256": "ab" * 32}],
    },
    "bound": {
        "entry": "find",
        "instructions": 1000,
        "cycles": 2000,
        "parameters": {"N": 8},
        "assumptions": [{"id": "no-interference", "statement": "nothing else runs", "check": "not checked"}],
        "loops": [LOOP],
        "flow_claims": [{"where": "facts.toml:9", "statement": "calls in all", "constant": 3}],
        "worst_path": [{"location": "find+0x0 (find.c:3)"}],
    },
}
ALLOCATOR_RESULT = RESULT | {
    "format": "wcet-probe-result",
    "allocator": "tlsf",
    "scenario": "worst-alloc",
    "heap_bytes": 4096,
    "parameters": {"sl-bits": 5},
    "observed": {"instructions": 900, "cycles": 1500},
    "verdict": "BOUNDED",
}
CALL = FirmwareCall(Path("build/fw.elf"), "find", (), ())
BUDGET = Budget("find in fw.elf", "mpc603e", CALL, {"N": 8}, max_instructions=999, max_cycles=2000)


def changed(path, value, document=RESULT):
    """``document`` with another ``value`` under the keys of ``path``."""
    result = copy.deepcopy(document)
    *folders, last = (int(part) if part.isdigit() else part for part in path.split("/"))
    place = result
    for part in folders:
        place = place[part]
    place[last] = value
    return result


def outcomes():
    """One of each verdict."""
    accepted = baseline_entry("b", changed("image/compiler", "clang 21", changed("bound/cycles", 1600)))
    text = "no bound for the loops at scan+0x8 (list.c:17), walk+0x10 (list.c:31): say how often they repeat."
    found = (
        judge(Budget("ok", "mpc603e", CALL, {}), ALLOCATOR_RESULT, baseline_entry("ok", ALLOCATOR_RESULT)),
        judge(BUDGET, RESULT),
        judge(Budget("worse", "mpc603e", CALL, {}), RESULT, accepted),
        unbounded(Budget("scan in fw.elf", "cortex-m4", CALL, {}), text),
        judge(
            Budget("tlsf malloc", "cortex-m4", read_tlsf().call, {}), changed("observed/cycles", 2001, ALLOCATOR_RESULT)
        ),
    )
    return [located(one, {"find.c": "src/find.c", "list.c": "src/list.c"}) for one in found]


@cache
def read_tlsf():
    return Budget("tlsf malloc", "mpc603e", read_budget_text(TLSF)[0].call, {})


def read_budget_text(text, folder=Path("/nowhere")):
    import tomllib

    from wcet_probe.config import Config

    return read_budgets(Config(file=folder / "wcet-probe.toml", budgets=tuple(tomllib.loads(text)["budgets"])))


@dataclass(frozen=True)
class Project:
    """A folder with firmware, a configuration and a command line."""

    folder: Path

    def configure(self, *entries):
        (self.folder / "wcet-probe.toml").write_text("\n".join(entries))


@cache
def elf():
    return image_of(SOURCE, load_target("cortex-m4"), ".c").elf


def project(folder):
    """A new project in ``folder``."""
    (folder / "build").mkdir()
    (folder / "src").mkdir()
    (folder / "src" / "guest.c").write_text(SOURCE)
    (folder / "build" / "fw.elf").write_bytes(elf())
    return Project(folder)


def real(folder):
    """The results of `TLSF` and `FIXED` in the project ``folder``."""
    config = read_config(folder / "wcet-probe.toml")
    return [budgeted.prove(budget, config, lambda *_: None) for budget in read_budgets(config)]


def golden(name, text):
    """Compares ``text`` with a golden file; WCET_PROBE_UPDATE_GOLDEN=1 writes it instead."""
    file = GOLDEN / name
    if os.environ.get("WCET_PROBE_UPDATE_GOLDEN") == "1":
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(text.encode())
    assert text.encode() == file.read_bytes()
