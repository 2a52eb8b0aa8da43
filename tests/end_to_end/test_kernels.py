"""Ordinary single-task kernels: their bounds hold for all that was run, and are close for the longest runs."""

import random
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import cycle
from statistics import median

import pytest

from tests.kernel_suite import FOLDER, KERNELS, SOURCES, bound, guest, machine, prepare, worst_instructions
from tests.path_check import lifter_of
from tests.support import TARGETS, guest_of, guest_on
from wcet_probe.analyzer.bound import prove
from wcet_probe.analyzer.facts.file import parse_facts
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.facts.source_index import index_sources
from wcet_probe.analyzer.pcode.interpreter import interpret_call
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.answer.witness.contradiction import (
    check_accesses,
    check_counts,
    check_flows,
    check_loops,
    register_check,
)
from wcet_probe.build.image import read_image
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.kernel.verify import check_certificate
from wcet_probe.emu.machine import RETURN_ADDRESS
from wcet_probe.errors import AnalysisError, EmulationError, UsageError, WcetProbeError
from wcet_probe.model.scenario import InitialCache
from wcet_probe.model.target import MemoryRange
from wcet_probe.reports.dossier.qualification import load_qualification

RANDOM_RUNS = 5
MOST_STEPS = 1000
NO_FACTS = Facts()
ALL = [(kernel, target) for target in TARGETS for kernel in KERNELS]
SHARE = [(kernel, target) for kernel, target in zip(KERNELS, cycle(TARGETS), strict=False)]
"""Each kernel on one core; all of them are for campaigns."""
CASES = [
    pytest.param(*each, id=f"{each[0].name}-{each[1]}", marks=() if each in SHARE else pytest.mark.slow) for each in ALL
]


# --------------------------------------------------------------------------------------------------- bounds and runs


@pytest.mark.parametrize(("kernel", "target"), CASES)
def test_the_longest_run_meets_all_that_is_proved(kernel, target):
    proved, on = bound(kernel, target), guest(target)
    subject = f"the longest run of {kernel.name}"
    with machine(kernel, target) as running:
        prepare(running, kernel, target, "worst")
        memory = running.memory.snapshot()
        registers = running.entry_registers(kernel.worst)
        measured = running.measure(kernel.name, kernel.worst, InitialCache.DIRTY)
        counts = running.loop_counts()
        check_counts(proved, measured, subject)
        if kernel.name != "merge_sort":  # in a recursive function iterations are counted over all activations
            check_loops(proved.loop_claims, counts, on.image, subject)
        check_flows(proved, counts, running.executions, subject)
    pointer = registers[on.target.isa.stack_pointer]
    second = interpret_call(
        lifter_of(on.target.pcode_language, on.target.isa, on.image.segments),
        memory,
        registers,
        entry_address=on.address(kernel.name),
        return_address=RETURN_ADDRESS,
        step_limit=proved.instructions,
        visit=register_check(proved, on.image, pointer, subject),
    )
    assert second.instructions == measured.instructions
    frames = MemoryRange(pointer - measured.stack_bytes, measured.stack_bytes)
    check_accesses(proved, second.accesses, on.image, on.target, frames=frames, subject=subject)


@pytest.mark.parametrize(("kernel", "target"), CASES)
def test_the_dossier_and_the_page_print_what_is_proved_and_observed(kernel, target):
    """`test_qualification` holds that both print the same."""
    (suite,) = (one for one in load_qualification().suites if one.id == "kernels")
    name = kernel.name if kernel.is_worst else f"{kernel.name}*"
    printed = suite.rows[name][suite.targets.index(target)]
    assert tuple(printed) == (bound(kernel, target).instructions, worst_instructions(kernel, target))


@pytest.mark.parametrize(("kernel", "target"), CASES)
def test_random_runs_stay_within_the_bound(kernel, target):
    proved, draw = bound(kernel, target), random.Random(f"{kernel.name} {target}")
    with machine(kernel, target) as running:
        for _ in range(RANDOM_RUNS):
            prepare(running, kernel, target, "random", draw.getrandbits(32))
            arguments = kernel.arguments(draw)
            assert running.count(kernel.name, arguments) <= proved.instructions, arguments
            if kernel.name != "merge_sort":
                check_loops(proved.loop_claims, running.loop_counts(), guest(target).image, f"{arguments}")


@pytest.mark.parametrize("cases", [SHARE[::2], pytest.param(ALL, marks=pytest.mark.slow)], ids=len)
def test_certificates_prove_the_bounds(cases):
    for kernel, target in cases:
        proved = bound(kernel, target)
        checked = [check_certificate(text) for text in proved.certificates]
        assert [one.bound for one in checked] == [proved.instructions, proved.cycles]


@pytest.mark.parametrize("cases", [SHARE, pytest.param(ALL, marks=pytest.mark.slow)], ids=len)
def test_bounds_are_close_to_the_longest_runs(cases):
    ratios = {
        (kernel.name, target): bound(kernel, target).instructions / worst_instructions(kernel, target)
        for kernel, target in cases
        if kernel.is_worst
    }
    assert min(ratios.values()) >= 1
    assert median(ratios.values()) <= 1.05


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["bubble_sort", "insertion_sort", "selection_sort"])
def test_triangular_loops_are_charged_as_triangles(name, target):
    kernel = next(kernel for kernel in KERNELS if kernel.name == name)
    assert bound(kernel, target).instructions <= 1.1 * worst_instructions(kernel, target)


# ------------------------------------------------------------------------------------------------- what is refused


@dataclass(frozen=True)
class Refused:
    source: str
    message: str
    suffix: str = ".c"
    target: str = "cortex-m4"


RECURSION = "int f(int n) { return n < 2 ? n : f(n - 1) * 3 + f(n - 2); }"
REFUSED = {
    "recursion": Refused(RECURSION, r"f\+0x\w+ \(guest\.c:1\) calls f recursively: .*\[\[recursion\]\]"),
    "pointer": Refused(
        "int (*volatile p)(int);\nint f(int n) { return p(n) + 1; }",
        r"indirect branch or call at f\+0x\w+ \(guest\.c:2\) are not known: .*\[\[calls\]\]",
    ),
    "unbounded": Refused(
        "volatile int ready;\nvoid f(void)\n{\n    while (!ready)\n        ;\n}",
        r"no bound for the loop at f\+0x\w+ \(guest\.c:4\): .*flow fact.*pragma",
    ),
    "endless": Refused("volatile int n;\nvoid f(void) { for (;;) n++; }", r"f never returns"),
    "floating point": Refused(
        "f:\n vadd.f32 s0, s0, s1\n bx lr", r"vadd\.f32 s0, s0, s1: cortex-m4 has no timing class .float_add.", ".s"
    ),
    "unknown instruction": Refused("f:\n .inst.n 0xde00\n bx lr", r"0x\w+|f", ".s"),
}


IRREDUCIBLE = """\
f:
 cmp r0, #0
 beq 2f
 movs r1, #10
1:
 subs r1, #1
 bmi 3f
2:
 subs r0, #1
 cmp r0, #9
 bls 1b
3:
 bx lr
"""


def refused_guest(case):
    target = load_target(case.target)
    head = ".syntax unified\n.fpu vfpv4-sp-d16\n.thumb\n.text\n.globl f\n.type f, %function\n.thumb_func\n"
    size = "" if ".size" in case.source else ".size f, . - f\n"
    return guest_of(case.source if case.suffix == ".c" else f"{head}{case.source}\n{size}", target, case.suffix)


def proof_of(on, facts=NO_FACTS, sources=None, entry="f"):
    return prove(BoundRequest(on.image, on.target, on.instructions, on.costs, entry, facts, sources or {}, {}))


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_proved_is_refused_by_name(case):
    with pytest.raises(AnalysisError, match=case.message):
        proof_of(refused_guest(case))


def test_a_goto_into_a_loop_is_refused_or_bounded():
    on = refused_guest(Refused(IRREDUCIBLE, "", ".s"))
    with suppress(AnalysisError):
        proved = proof_of(on)
        with on.machine() as running:
            assert all(running.count("f", (n,)) <= proved.instructions for n in (0, 1, 5, 9, 10, 11, 1 << 31))
        return
    with pytest.raises(AnalysisError, match=r"(irreducible|no bound for the loop).*f\+0x\w+"):
        proof_of(on)


RECURSION_FACT = """\
[[recursion]]
function = "f"
max_depth = {depth}
because = "n is small"
sha256 = "{sha256}"
"""


def recursion_bound(depth):
    on = refused_guest(REFUSED["recursion"])
    sources = {"guest.c": RECURSION}
    sha256 = index_sources(sources).function("f").sha256
    return proof_of(on, parse_facts("facts.toml", RECURSION_FACT.format(depth=depth, sha256=sha256)), sources)


def facts_of(name, old, new):
    text = (FOLDER / f"{name}.toml").read_text("utf-8")
    assert re.search(old, text)
    return parse_facts(f"{name}.toml", re.sub(old, new, text))


@pytest.mark.parametrize(
    "name",
    [
        "prime_sieve",
        "dispatch_table",
        "merge_sort",
    ],
)
def test_a_fact_about_another_version_of_the_function_is_refused(name):
    stale = facts_of(name, r'sha256 = "\w+"', f'sha256 = "{"0" * 64}"')
    with pytest.raises(UsageError, match="has changed since the fact was written"):
        proof_of(guest("cortex-m4"), stale, SOURCES, name)


# ----------------------------------------------------------------------------------------------------- mutations


def test_each_number_of_a_recursion_fact_counts():
    bounds = [recursion_bound(depth).instructions for depth in range(1, 5)]
    assert bounds == sorted(set(bounds))


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("prime_sieve", "total = 83", "total = 84"),
        ("prime_sieve", "max = 18", "max = 19"),
        ("merge_sort", "max_depth = 4", "max_depth = 3"),
    ],
)
def test_another_number_in_a_fact_is_another_bound_or_refused(name, old, new):
    kernel = next(kernel for kernel in KERNELS if kernel.name == name)
    with suppress(AnalysisError):
        changed = proof_of(guest("cortex-m4"), facts_of(name, old, new), SOURCES, name)
        assert changed.instructions != bound(kernel, "cortex-m4").instructions


def test_another_number_in_a_pragma_is_another_bound():
    kernel = next(kernel for kernel in KERNELS if kernel.name == "binary_search")
    # Values bound it as well, so that only a lower number tells.
    sources = SOURCES | {"binary_search.c": SOURCES["binary_search.c"].replace("max 8", "max 5")}
    changed = proof_of(guest("cortex-m4"), kernel.facts, sources, kernel.name)
    assert changed.instructions < bound(kernel, "cortex-m4").instructions


@cache
def small_guest(target):
    return guest_of(SOURCES["common.h"] + SOURCES["fibonacci.c"], load_target(target), ".c")


def code_of(image, name):
    symbol = image.symbols[name]
    (segment,) = (one for one in image.segments if symbol.address in MemoryRange(one.address, one.size_bytes))
    start = symbol.address - segment.address
    return segment.data[start : start + symbol.size_bytes]


def changed_code(on, name, code):
    """The guest with ``code`` in place of that of a function."""
    image = on.image
    before = code_of(image, name)
    assert image.elf.count(before) == 1
    assert len(code) == len(before)
    return guest_on(read_image(image.elf.replace(before, code), image.isa, image.compiler, image.flags), on.target)


@pytest.mark.parametrize("target", TARGETS)
def test_another_limit_in_the_binary_is_another_bound(target):
    on = small_guest(target)
    code = code_of(on.image, "fibonacci")
    assert bytes([46]) in code
    changed = changed_code(on, "fibonacci", code.replace(bytes([46]), bytes([23])))
    found = proof_of(changed, entry="fibonacci").instructions
    usual = proof_of(on, entry="fibonacci").instructions
    assert usual / 2.2 < found < usual / 1.8


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
def test_a_bound_of_broken_code_is_a_bound(target):
    """Bits of the code are flipped: what is not refused stays within its bound, whatever it does now."""
    on, draw = small_guest(target), random.Random(target)
    code = code_of(on.image, "fibonacci")
    proofs = 0
    for _ in range(12):
        position = draw.randrange(len(code))
        flipped = code[position] ^ 1 << draw.randrange(8)
        changed = changed_code(on, "fibonacci", code[:position] + bytes([flipped]) + code[position + 1 :])
        with suppress(WcetProbeError):
            proved = proof_of(changed, entry="fibonacci")
            proofs += 1
            for index in (0, 46, 1 << 31):
                runs_within(changed, proved, "fibonacci", index)
    assert proofs


def runs_within(on, proved, name, *arguments, hangs=False):
    """Run a call in the interpreter, so far as it is short; what goes astray has no execution time."""
    with on.machine() as machine:
        memory, registers = machine.memory.snapshot(), machine.entry_registers(arguments)
    try:
        interpret_call(
            lifter_of(on.target.pcode_language, on.target.isa, on.image.segments),
            memory,
            registers,
            entry_address=on.address(name),
            return_address=RETURN_ADDRESS,
            # A bound of calls that return says nothing of those that hang: given more time, these return no more.
            step_limit=MOST_STEPS if hangs else min(proved.instructions, MOST_STEPS),
        )
    except EmulationError as error:
        if "did not return within" not in str(error) or proved.instructions > MOST_STEPS or hangs:
            return
        assert any(one.id == "call-returns" for one in proved.assumptions)
        runs_within(on, proved, name, *arguments, hangs=True)
        return
    assert not hangs
