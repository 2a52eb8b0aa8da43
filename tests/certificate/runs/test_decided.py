"""Bounds of followed runs, held against the run that the checker executes: true ones are ok, forged ones are not.

Tests: certificate.runs.decided, certificate.runs.run, certificate.check.
"""

import json
from dataclasses import replace
from random import Random

import pytest

from tests.analyzer.recursive_programs import SORT, self_made, source
from tests.analyzer.test_entry_run_bound import LISTED, UNALIGNED, asked, small
from tests.certificate.forgeries import sealed, solved_again
from tests.support import TARGETS, guest_of
from wcet_probe.analyzer.entry_run_bound import entry_run_bound
from wcet_probe.analyzer.initial_data import apart_from_stack, image_data
from wcet_probe.analyzer.request import InitialData
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.check import check_bound
from wcet_probe.certificate.facts.asserted import Asserted
from wcet_probe.certificate.facts.findings import Binary
from wcet_probe.certificate.kernel.coverage import code_of
from wcet_probe.certificate.runs import decided, run
from wcet_probe.certificate.values.numbers import constant
from wcet_probe.errors import VerificationError
from wcet_probe.model.scenario import InitialCache
from wcet_probe.reports.formats.bound_document import bound_section

SAYS = "the file says, and zeros where it says nothing"
SORTING = f"""typedef unsigned u; u words[12] = {{9, 2, 7, 4, 5, 1, 8, 3}}; volatile u out; unsigned long long sum = 7;
{SORT}
u f(void) {{ sort(words, 0, 11); for (u i = 0; i < 12; i++) sum = (sum << 1) - (words[i] >> (i & 3));
  out = (u)(sum >> 7); return words[3]; }}
"""


def pointer_of(guest):
    with guest.machine() as machine:
        return machine.entry_registers(())[guest.target.isa.stack_pointer]


def proof(guest, pointer=None, content=None):
    """The bound of the followed run of ``f`` as a document, and what it is checked against."""
    known = image_data(guest.image) if content is None else content
    initial = apart_from_stack(guest.image, InitialData(known, SAYS), pointer)
    bound = entry_run_bound(asked(guest, initial=initial, stack_pointer=pointer)).bound
    document = {"image": {"sha256": guest.image.sha256}, "target": guest.target.name}
    document["bound"] = json.loads(json.dumps(bound_section(bound)))
    return document, binary_of(guest)


def binary_of(guest):
    return Binary(guest.image, guest.instructions, guest.costs, guest.target, Asserted(), {})


def verdicts(document, binary):
    return {one.check: one.verdict for one in check_bound(sealed(document), binary).findings}


@pytest.mark.parametrize("target", [*TARGETS, "cortex-m0plus", "mpc755"])
def test_a_true_bound_of_a_followed_run_is_checked_in_full(target):
    guest = guest_of(SORTING, load_target(target), ".c", "-O1")
    document, binary = proof(guest, pointer_of(guest))
    found = check_bound(document, binary)
    assert found.is_full, found.findings
    assert {"run in instructions", "run in cycles", "graph", "assumptions"} <= {one.check for one in found.findings}
    with guest.machine() as machine:
        ran = machine.measure("f", (), InitialCache.DIRTY)
    assert (
        f"takes {ran.instructions} at most" in {one.check: one.found for one in found.findings}["run in instructions"]
    )


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", range(6))
def test_no_true_bound_of_random_recursion_is_refused(target, seed):
    told = 0
    for number in range(2):
        core = load_target(target)
        random = Random(f"decided {target} {seed} {number}")
        guest = guest_of(source((seed, "decided", number)), small(core, random), ".c", ["-O1", "-Os"][number])
        pointer = pointer_of(guest)
        if entry_run_bound(asked(guest, stack_pointer=pointer)).bound is not None:
            told += check_bound(*proof(guest, pointer)).is_full
    assert told


@pytest.mark.parametrize("target", TARGETS)
def test_a_run_of_one_block_is_followed_whatever_memory_holds(target):
    """Nothing said that it is followed, as nothing is left to be limited, and a true bound was refused."""
    guest = guest_of("unsigned f(unsigned n) { return n * 3; }", load_target(target), ".c")
    document, binary = proof(guest, content=())
    assert check_bound(document, binary).is_full


@pytest.mark.parametrize("text", [LISTED, UNALIGNED], ids=["addresses of the stack", "unaligned"])
def test_a_stack_whose_place_is_told_and_unaligned_words_are_followed(text):
    guest = guest_of(text, load_target("cortex-m4"), ".c", "-O1")
    assert check_bound(*proof(guest, pointer_of(guest))).is_full


def solved_lower(document, unit, by):
    """The bound of one unit is less, and proved: the node at the entry costs less."""

    def change(problem, derivations, followed):
        if problem.unit == unit:
            first = next(one for one in problem.nodes if one.name == problem.entry)
            nodes = tuple(replace(one, cost=one.cost - by) if one is first else one for one in problem.nodes)
            problem = replace(problem, nodes=nodes)
        return problem, derivations, followed

    return solved_again(document, change)


@pytest.mark.parametrize("unit", ["instructions", "cycles"])
@pytest.mark.parametrize("target", TARGETS)
def test_a_bound_that_is_one_lower_is_refused_by_the_run(target, unit):
    guest = guest_of(SORTING, load_target(target), ".c", "-O1")
    document, binary = proof(guest, pointer_of(guest))
    with pytest.raises(VerificationError, match=f"the run takes (more than the )?[0-9]+ {unit}"):
        check_bound(solved_lower(document, unit, 1), binary)


@pytest.mark.parametrize("target", TARGETS)
def test_an_assumption_that_the_run_rests_on_must_be_listed(target):
    guest = guest_of(SORTING, load_target(target), ".c", "-O1")
    document, binary = proof(guest, pointer_of(guest))
    listed = document["bound"]["assumptions"]
    needed = {"no-interference", "timing-model", *(["stack-pointer"] if target != "cortex-m4" else [])}
    for one in listed:
        if one["id"] in needed:
            document["bound"]["assumptions"] = [other for other in listed if other is not one]
            if one["id"] == "stack-pointer":  # then nobody says which lines the stack has
                assert verdicts(document, binary)["run in cycles"] == "not checked"
                continue
            with pytest.raises(VerificationError, match=f"the assumption {one['id']} is used and not listed"):
                verdicts(document, binary)
            needed -= {one["id"]}
    assert needed <= {"stack-pointer"}


def test_without_initial_data_the_run_tells_nothing_and_the_bound_is_not_ok():
    guest = guest_of(SORTING, load_target("cortex-m4"), ".c", "-O1")
    document, binary = proof(guest)
    others = [one for one in document["bound"]["assumptions"] if one["id"] != "initial-data"]
    document["bound"]["assumptions"] = others
    found = {one.check: one for one in check_bound(sealed(document), binary).findings}
    assert found["graph"].verdict == found["limits of paths"].verdict == "not checked"
    assert "one run, whatever memory holds at entry; the run is not followed: " in found["graph"].found


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m33"])
@pytest.mark.parametrize("seed", range(3))
def test_a_run_that_nothing_at_entry_changes_is_checked_in_full_and_a_lower_bound_refused(target, seed):
    guest = guest_of(self_made((seed, "decided")), load_target(target), ".c", "-Os")
    document, binary = proof(guest, content=())
    assert check_bound(document, binary).is_full
    for unit in ("instructions", "cycles"):
        with pytest.raises(VerificationError, match=f"the run takes (more than the )?[0-9]+ {unit}"):
            check_bound(solved_lower(document, unit, 1), binary)
    listed = document["bound"]["assumptions"]
    document["bound"]["assumptions"] = [one for one in listed if one["id"] != "stack-separation"]
    with pytest.raises(VerificationError, match="the assumption stack-separation is used and not listed"):
        verdicts(document, binary)


LOOKED_UP = """typedef unsigned u; const u table[4] = {3, 1, 2}; volatile u word;
u f(u n) { SAID return table[n & 3]; }
"""


@pytest.mark.parametrize("said", ["word = 3; for (u i = 0; i < word; i++) n *= 5;", "word = 3;"])
@pytest.mark.parametrize("target", ["arm926ej-s", "mpc603e"])
def test_of_a_run_that_is_not_followed_waiting_is_not_said_to_be_charged_where_it_waits(target, said):
    guest = guest_of(LOOKED_UP.replace("SAID", said), replace(load_target(target), dcache=None), ".c", "-O1")
    document, binary = proof(guest, content=())
    found = {one.check: one for one in check_bound(document, binary).findings}
    assert found["graph"].verdict == "not checked"
    assert "waiting for memory" in found["costs in cycles"].found
    with pytest.raises(VerificationError, match="costs at least"):
        check_bound(solved_lower(document, "cycles", 1), binary)


STORING = (
    "typedef unsigned u; u n = 3; u f(void) { for (u i = 0; i < n; i++) *(volatile u *)0x40000000 = i; return n; }"
)
ON_STACK = """typedef unsigned u; u n = 3; __attribute__((noinline)) void put(volatile u *p) { p[9] = n; }
u f(void) { volatile u own[4]; put(own); return (u)own & 3 ? 2 : n; }"""


@pytest.mark.parametrize(
    ("text", "assumed"), [(STORING, "stack-separation"), (ON_STACK, "stack-stores"), (ON_STACK, "stack-alignment")]
)
def test_stores_to_devices_and_out_of_the_frame_rest_on_what_is_listed(text, assumed):
    guest = guest_of(text, load_target("cortex-m4"), ".c", "-O1")
    document, binary = proof(guest)
    assert set(verdicts(document, binary).values()) == {"ok"}
    listed = document["bound"]["assumptions"]
    document["bound"]["assumptions"] = [one for one in listed if one["id"] != assumed]
    assert len(document["bound"]["assumptions"]) == len(listed) - 1
    with pytest.raises(VerificationError, match=f"the assumption {assumed} is used and not listed"):
        verdicts(document, binary)


def test_the_bound_of_other_data_another_image_another_entry_or_another_core_is_refused():
    target = load_target("cortex-m4")
    guest = guest_of(SORTING, target, ".c", "-O1")
    document, binary = proof(guest)
    # Other words of the same size, of an image that is said to be the same one: the run is another one.
    other = guest_of(
        SORTING.replace("{9, 2, 7, 4, 5, 1, 8, 3}", "{1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 9}"), target, ".c", "-O1"
    )
    with pytest.raises(VerificationError, match="another image"):
        check_bound(document, binary_of(other))
    same = replace(other, image=replace(other.image, sha256=guest.image.sha256))
    with pytest.raises(VerificationError, match="the run takes"):
        check_bound(document, binary_of(same))
    with pytest.raises(VerificationError, match="another target"):
        check_bound(document, replace(binary, target=load_target("cortex-m3")))
    slower = {one.address: one for one in guest.instructions}
    costs = [
        replace(cost, executed_cycles=cost.executed_cycles + 1) for _, cost in zip(slower, guest.costs, strict=True)
    ]
    with pytest.raises(VerificationError, match=r"the run takes [0-9]+ cycles, and the bound is"):
        check_bound(document, replace(binary, costs=costs))
    bound = document["bound"]
    bound["certificates"] = [text.replace("entry-function f", "entry-function sort") for text in bound["certificates"]]
    bound["entry"] = "sort"
    assert verdicts(document, binary)["graph"] == "not checked"


@pytest.mark.parametrize("change", ["after", "fewer", "more", "but", "or"])
def test_what_is_said_of_memory_at_entry_is_what_the_image_has(change):
    guest = guest_of(SORTING, load_target("cortex-m4"), ".c", "-O1")
    document, binary = proof(guest)
    one = next(one for one in document["bound"]["assumptions"] if one["id"] == "initial-data")
    size = int(one["statement"].split(": ")[1].split(" ")[0])
    if change in {"but", "or"}:
        words = "which the call is proved not to write, or anything" if change == "or" else "but for words[0]"
        before, after = one["statement"].split(";")
        one["statement"] = f"{before}, {words};{after}"
    elif change == "after":
        one["statement"] = one["statement"].replace(SAYS, "the file says and init() leaves")
    else:
        one["statement"] = one["statement"].replace(f"{size} bytes", f"{size + (4 if change == 'more' else -4)} bytes")
    if change == "more":
        with pytest.raises(VerificationError, match="bytes of data"):
            verdicts(document, binary)
        return
    assert verdicts(document, binary)["graph"] == "not checked"


@pytest.mark.parametrize("place", ["0x1{:08x}", "{:#x} or more"])
def test_a_stack_pointer_that_is_no_word_is_not_taken_for_one(place):
    """Of another one by 2^32 no object of the data would be left out as the one that the stack is in."""
    guest = guest_of(SORTING, load_target("arm926ej-s"), ".c", "-O1")
    pointer = pointer_of(guest)
    document, binary = proof(guest, pointer)
    (one,) = (one for one in document["bound"]["assumptions"] if one["id"] == "stack-pointer")
    assert f"{pointer:#x}" in one["statement"]
    one["statement"] = one["statement"].replace(f"{pointer:#x}", place.format(pointer))
    assert verdicts(document, binary)["graph"] == "not checked"


def test_a_run_of_an_unknown_argument_tells_why_it_is_not_followed_and_one_that_is_told_is():
    text = SORTING.replace("u f(void) {", "u f(u n) { if (n) return 2;")
    guest = guest_of(text, load_target("cortex-m4"), ".c", "-O1")
    listed = {
        one["id"]: one["statement"]
        for one in proof(guest_of(SORTING, guest.target, ".c", "-O1"))[0]["bound"]["assumptions"]
    }
    code, binary = code_of(guest.image, guest.instructions), binary_of(guest)
    found = decided.decided_run(code, binary, "f", listed, {}, 10_000)
    assert found.startswith("a condition depends on what is not known, at or behind f+0x0")
    assert decided.decided_run(code, binary, "f", listed, {"r0": constant(3)}, 10_000).instructions < 6
    assert decided.decided_run(code, binary, "f", listed, {"r0": constant(0)}, 10_000).instructions > 100


def test_a_long_run_tells_how_far_it_is_and_one_that_is_too_long_is_not_begun(monkeypatch):
    guest = guest_of(SORTING, load_target("cortex-m4"), ".c", "-O1")
    document, binary = proof(guest)
    heard = []
    monkeypatch.setattr(run, "_TOLD_AFTER", 100)
    check_bound(document, replace(binary, progress=lambda *told: heard.append(told)))
    most = document["bound"]["instructions"]
    assert len(heard) > 3
    assert {(text, total) for text, _, total in heard} == {("executing the run that memory at entry decides", most)}
    monkeypatch.setattr(decided, "MOST_INSTRUCTIONS", most - 1)
    found = {one.check: one for one in check_bound(document, binary).findings}["graph"]
    assert f"it may take {most} instructions, and {most - 1} are followed" in found.found
