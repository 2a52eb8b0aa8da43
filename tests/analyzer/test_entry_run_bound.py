"""The bound of a run that is followed on the code alone: no run takes longer, and what it rests on is listed."""

import json
from dataclasses import replace
from random import Random

import pytest

from tests.analyzer.recursive_programs import SORT, self_made, source
from tests.support import guest_of, image_of
from wcet_probe.analyzer import entry_run_bound as module
from wcet_probe.analyzer import initial_data
from wcet_probe.analyzer.entry_run_bound import entry_run_bound
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.initial_data import image_data
from wcet_probe.analyzer.request import BoundRequest, InitialData
from wcet_probe.answer.witness.victims import victim_choices
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.kernel.verify import check_certificate
from wcet_probe.cli import main
from wcet_probe.errors import ExitCode
from wcet_probe.model.scenario import InitialCache
from wcet_probe.model.target import Replacement

TARGETS = ["cortex-m4", "arm926ej-s", "mpc603e"]


def asked(guest, entry="f", **others):
    question = guest.image, guest.target, guest.instructions, guest.costs, entry
    initial = InitialData(image_data(guest.image), "the file says")
    return BoundRequest(*question, **{"facts": Facts(), "sources": {}, "parameters": {}, "initial": initial, **others})


def bound_of(request):
    return entry_run_bound(request).bound


def small(target, random):
    """``target`` with small caches of any policy, where it has some."""
    if target.icache is None:
        return target
    shape = {"sets": 16, "ways": random.choice([1, 2, 4]), "replacement": random.choice(list(Replacement))}
    writes = {"write_allocate": random.random() < 0.5, "write_back": random.random() < 0.8}
    return replace(target, icache=replace(target.icache, **shape), dcache=replace(target.dcache, **shape, **writes))


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", range(4))
def test_no_run_of_random_recursion_takes_longer_and_the_certificate_proves_it(target, seed):
    told = 0
    for number in range(3):
        random = Random(f"entry run bound {target} {seed} {number}")
        guest = guest_of(
            source((seed, number)), small(load_target(target), random), ".c", ["-O1", "-O2", "-Os"][number]
        )
        with guest.machine() as machine:
            pointer = machine.entry_registers(())[guest.target.isa.stack_pointer]
            bound = bound_of(asked(guest, stack_pointer=pointer))
            if bound is None:
                continue
            told += 1
            memory = machine.memory.snapshot()
            for victims in victim_choices(guest.target)[:3]:
                for content in (InitialCache.DIRTY, InitialCache.COLD):
                    machine.memory.restore(memory)
                    run = machine.measure("f", (), content, victims=victims)
                    assert run.instructions == bound.instructions
                    assert run.cycles <= bound.cycles
            checked = [check_certificate(text) for text in bound.certificates]
            assert [one.bound for one in checked] == [bound.instructions, bound.cycles]
            # That each passage is taken so often nobody but the analysis says.
            assert any(name.startswith("followed:") for name in checked[0].given)
    assert told


NOTHING_KNOWN = InitialData((), "")


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m33"])
@pytest.mark.parametrize("seed", range(3))
def test_a_run_that_nothing_at_entry_changes_is_exact_whatever_memory_holds(target, seed):
    told = 0
    for number in range(2):
        random = Random(f"run of its own {target} {seed} {number}")
        guest = guest_of(self_made((seed, number)), load_target(target), ".c", ["-O1", "-Os"][number])
        bound = bound_of(asked(guest, initial=NOTHING_KNOWN))
        if bound is None:
            continue
        told += 1
        assert {one.id for one in bound.assumptions} >= {"stack-separation"}
        assert "initial-data" not in {one.id for one in bound.assumptions}
        with guest.machine() as machine:
            for _ in range(3):
                for name, size_bytes in (("w", 64), ("c", 40), ("depth", 4)):
                    machine.memory.write(guest.image.symbols[name].address, random.randbytes(size_bytes))
                run = machine.measure("f", [random.getrandbits(32) for _ in range(4)], InitialCache.COLD)
                assert run.instructions == bound.instructions
                assert run.cycles <= bound.cycles
    assert told


UNKNOWN = {
    "a word": "u f(void) { return word ? helped() : 0; }",
    "an argument": "u f(u n) { return n ? helped() : 0; }",
    "a word on the stack": "u f(u a, u b, u c, u d, u n) { return n ? helped() : 0; }",
    "a device": "u f(void) { *(volatile u *)0x40000000 = 1; return *(volatile u *)0x40000000 ? helped() : 0; }",
}


@pytest.mark.parametrize("text", UNKNOWN.values(), ids=UNKNOWN)
def test_what_is_not_known_at_entry_decides_no_run(text):
    head = "typedef unsigned u; u word = 1; __attribute__((noinline)) u helped(void) { word = 2; return word; }\n"
    guest = guest_of(head + text, load_target("cortex-m4"), ".c", "-O1")
    assert bound_of(asked(guest, initial=NOTHING_KNOWN)) is None


LOOKED_UP = """typedef unsigned u; const u table[16] = {3, 1, 2}; u word, kept[4];
__attribute__((noinline)) void copied(volatile u *to, volatile u *from) { for (u i = 0; i < 4; i++) to[i] = from[i]; }
u f(u n) { u own[4] = {n, 2, 3, word}; copied(kept, own); copied(own, kept); word = table[own[0] & 15];
  for (u i = 0; i < own[2]; i++) word += table[(own[3] + i) & 15]; return STORED; }
"""


def test_a_load_by_what_is_not_known_is_anywhere_and_a_store_by_it_no_run(tmp_path):
    """And where an instruction goes to the stack and to static words, a run is held against neither of them."""
    target = load_target("cortex-m4")
    assert bound_of(asked(guest_of(LOOKED_UP.replace("STORED", "kept[n & 3] = 1"), target, ".c", "-O1"))) is None
    guest = guest_of(LOOKED_UP.replace("STORED", "word"), target, ".c", "-O1")
    bound = bound_of(asked(guest, initial=NOTHING_KNOWN))
    assert {one.base for one in bound.accesses if one.steps == (1 << 32) - 1} == {"any"}
    with guest.machine() as machine:
        for n in (0, 7, 0xFFFF_FFFF):
            run = machine.measure("f", [n], InitialCache.COLD)
            assert (run.instructions, run.cycles <= bound.cycles) == (bound.instructions, True)
    (tmp_path / "f.elf").write_bytes(image_of(LOOKED_UP.replace("STORED", "word"), target, ".c", "-O1").elf)
    assert main(["bound", str(tmp_path / "f.elf"), "--entry", "f", "--run", "f(0); f(7)"]) == ExitCode.OK


def test_of_a_run_that_nobody_asked_for_few_instructions_are_followed(monkeypatch):
    guest = guest_of(LEFT_ALONE.replace("u words", "const u words"), load_target("cortex-m4"), ".c", "-O1")
    request = asked(guest, initial=NOTHING_KNOWN)
    length = bound_of(request).instructions
    monkeypatch.setattr(module, "_SOON", length - 2)
    assert entry_run_bound(request, length).bound is not None
    assert entry_run_bound(request, length - 1).bound is None


LEFT_ALONE = """typedef unsigned u; u words[4] = {1, 2, 3, 4};
u f(u n) { u s = 0; for (u i = 0; i < 4; i++) s += words[i]; return s; }
"""


@pytest.mark.parametrize(
    "others",
    [{"initial": None}, {"facts": Facts(file="facts.toml")}],
    ids=["no memory", "facts"],
)
def test_nothing_is_told_without_memory_or_beside_facts(others):
    guest = guest_of(LEFT_ALONE, load_target("cortex-m4"), ".c", "-O1")
    assert bound_of(asked(guest)) is not None
    assert bound_of(asked(guest, **others)) is None


def test_nothing_is_told_of_caches_whose_order_of_lines_matters_or_that_are_not_known():
    target = load_target("arm926ej-s")
    few = replace(target, dcache=replace(target.dcache, sets=8))
    assert bound_of(asked(guest_of(LEFT_ALONE, few, ".c", "-O1"))) is None
    assert bound_of(asked(guest_of(LEFT_ALONE, load_target("cortex-m7"), ".c", "-O1"))) is None
    pushing = LEFT_ALONE.replace("return s;", "volatile u kept = s; return kept;")
    guest = guest_of(pushing, target, ".c", "-O1")
    assert bound_of(asked(guest)) is None  # nobody says which lines the stack has
    assert bound_of(asked(guest, stack_pointer=0x2010_0000)) is not None


def test_what_is_longer_than_is_followed_is_not_told(monkeypatch):
    guest = guest_of(LEFT_ALONE, load_target("cortex-m4"), ".c", "-O1")
    length = bound_of(asked(guest)).instructions
    for most in ("_SOON", "MOST_INSTRUCTIONS"):
        monkeypatch.setattr(module, most, length - 1)
    assert entry_run_bound(asked(guest)) == (None, False)


@pytest.mark.parametrize(("less", "is_long"), [(0, True), (8, True), (-1, False)])
def test_it_is_told_whether_a_run_is_too_long_to_be_followed_on_the_values(monkeypatch, less, is_long):
    guest = guest_of(LEFT_ALONE, load_target("cortex-m4"), ".c", "-O1")
    length = bound_of(asked(guest)).instructions
    monkeypatch.setattr(module, "_LONG", length - less)
    assert entry_run_bound(asked(guest)).is_long == is_long
    # Nor is the run told of which it is not known what its caches cost.
    pushing = LEFT_ALONE.replace("return s;", "volatile u kept = s; return kept;")
    guest = guest_of(pushing, load_target("arm926ej-s"), ".c", "-O1")
    length = bound_of(asked(guest, stack_pointer=0x2010_0000)).instructions
    monkeypatch.setattr(module, "_LONG", length - less)
    assert entry_run_bound(asked(guest)) == (None, is_long)


def test_a_store_to_read_only_memory_or_code_is_no_run():
    text = "typedef unsigned u; const u fixed[2] = {1, 2}; u f(void) { *(volatile u *)(TARGET) = 3; return fixed[1]; }"
    for place, is_told in (("fixed", False), ("(u)f & ~3", False), ("0x40000000", True)):
        guest = guest_of(text.replace("TARGET", place), load_target("cortex-m4"), ".c")
        bound = bound_of(asked(guest))
        assert (bound is not None) == is_told, place
    assert "stack-separation" in {one.id for one in bound.assumptions}


UNALIGNED = """typedef unsigned u; struct __attribute__((packed)) { char kind; u time; unsigned short h; } one[3];
__attribute__((noinline)) u sum(u n) { return n ? one[n & 1].time + one[n & 1].h + sum(n - 1) : 0; } u count = 6;
u f(void) { volatile u *p = &one[1].time; *p = count; return 2 * sum(count) + 1; }
"""


def test_what_is_unaligned_is_charged_by_its_address():
    guest = guest_of(UNALIGNED, load_target("cortex-m4"), ".c", "-O1")
    bound = bound_of(asked(guest))
    with guest.machine() as machine:
        run = machine.measure("f", (), InitialCache.COLD)
    assert run.instructions == bound.instructions
    assert run.cycles <= bound.cycles <= 1.1 * run.cycles
    assert bound_of(asked(guest_of(UNALIGNED, load_target("mpc603e"), ".c"), stack_pointer=0x1000)) is None


LISTED = """typedef unsigned u; struct list { struct list *next; u number; }; u count = 5;
__attribute__((noinline)) u length(volatile struct list *own) {
  u n = 0;
  for (; own != 0; own = own->next) n++;
  return n;
}
__attribute__((noinline)) u nested(u n, struct list *next) {
  struct list own = {next, n};
  return n ? nested(n - 1, &own) + own.number : length(&own);
}
u f(void) { return nested(count, 0); }
"""


@pytest.mark.parametrize("target", TARGETS)
def test_addresses_of_the_stack_are_compared_where_it_is_known_where_that_is(target):
    guest = guest_of(LISTED, load_target(target), ".c", "-O1")
    anywhere = bound_of(asked(guest))
    with guest.machine() as machine:
        pointer = machine.entry_registers(())[guest.target.isa.stack_pointer]
        run = machine.measure("f", (), InitialCache.COLD)
    if guest.target.dcache is None:
        assert anywhere.instructions == run.instructions
        assert [one.statement.split(" at entry")[0] for one in anywhere.assumptions if one.id == "stack-bounds"] == [
            "the stack pointer is from 0x100 to 0xffffff00"
        ]
    else:
        assert anywhere is None
    bound = bound_of(asked(guest, stack_pointer=pointer))
    assert bound.instructions == run.instructions
    assert run.cycles <= bound.cycles
    assert bound.stack_pointer == pointer
    assert "stack-pointer" in {one.id for one in bound.assumptions}


TASK = """typedef unsigned u; u stack[64] __attribute__((aligned(8))); u calls = 2;
__attribute__((noinline)) u deep(u n) { return n ? deep(n - 1) + n : 0; }
u f(void) {
  volatile u *own = stack, local = 3;
  u s = deep(calls);
  for (u i = WORDS; i < 64; i++) if (own[i] == 3) own[i] = 50;
  for (u i = 0; i < local; i++) s += i;
  return s;
}
__asm__(".globl on_stack\\n.thumb_func\\n.type on_stack,%function\\non_stack: push {r4,lr}\\n mov r4,sp\\n"
        " ldr r0,=stack+256\\n mov sp,r0\\n bl f\\n mov sp,r4\\n pop {r4,pc}\\n.pool\\n.size on_stack,.-on_stack\\n");
"""


def test_a_stack_that_is_written_as_an_object_as_well_is_no_run():
    guest = guest_of(TASK.replace("WORDS", "32"), load_target("cortex-m4"), ".c", "-O1")
    stack = guest.address("stack")
    with guest.machine() as machine:
        run = machine.measure("on_stack", (), InitialCache.COLD)
    assert bound_of(asked(guest, stack_pointer=stack - 8)).instructions < run.instructions - 100
    assert bound_of(asked(guest, stack_pointer=stack + 256)) is None
    apart = guest_of(TASK.replace("WORDS", "8").replace("< 64", "< 12"), load_target("cortex-m4"), ".c", "-O1")
    assert bound_of(asked(apart, stack_pointer=apart.address("stack") + 256)) is not None


FIRMWARE = (
    """typedef unsigned u; u words[12] = {9, 3, 7, 1, 8, 2, 6, 4, 5, 0, 11, 10}; u is_done;
"""
    + SORT
    + """void f(void) { sort(words, 0, 11); is_done = 1; }
"""
)


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
def test_recursion_of_a_program_whose_memory_is_known_is_exact_and_runs_check_what_it_says(
    target, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.elf").write_bytes(guest_of(FIRMWARE, load_target(target), ".c", "-O1").image.elf)
    options = ["bound", "a.elf", "--entry", "f", "--target", target, "-q", "--json", "--initial-data"]
    options += [] if target == "cortex-m4" else ["--stack-pointer", "STACK"]
    if target != "cortex-m4":
        with guest_of(FIRMWARE, load_target(target), ".c", "-O1").machine() as machine:
            options[-1] = hex(machine.entry_registers(())[load_target(target).isa.stack_pointer])
    assert main([*options, "--run", "f()"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["observed"]["instructions"] == document["bound"]["instructions"]
    (told,) = [one for one in document["bound"]["assumptions"] if one["id"] == "initial-data"]
    assert told["executions"] == 1
    (tmp_path / "bound.json").write_text(json.dumps(document))
    assert main(["verify", "bound.json"]) == ExitCode.CHECKED_IN_PART
    capsys.readouterr()
    # What is sorted is sorted otherwise.
    assert main([*options, "--run", "f(); f()"]) == 5
    assert "words+" in capsys.readouterr().err
    # The checker executes the run again, and finds what it claims.
    assert main(["verify", "bound.json", "--image", "a.elf"]) == ExitCode.OK
    assert "run in cycles" in capsys.readouterr().out


BEGIN = """.syntax unified
.text
.global f
.type f, %function
.thumb_func
f: push {r4, lr}
 ldr r0, =words
 ldr r0, [r0]
 bl g
 pop {r4, pc}
.size f, .-f
.balign 4
"""
END = """.data
.type words, %object
words: .word 3
.size words, 4
"""
CALLED = {
    "without a symbol": ".Lg: push {r4, lr}\n subs r0, #1\n beq 1f\n bl .Lg\n1: pop {r4, pc}\n",
    "that goes on into the next one": ".type g, %function\ng: adds r0, #0\n b.w h\n.size g, .-g\n"
    ".type h, %function\nh: movs r2, #3\n1: subs r0, #1\n bne 1b\n bx lr\n.size h, .-h\n",
}


@pytest.mark.parametrize(("called", "executed"), [("without a symbol", 19), ("that goes on into the next one", 15)])
def test_a_run_through_a_function_is_checked(called, executed, tmp_path, capsys, monkeypatch):
    begin = BEGIN.replace("bl g", "bl .Lg") if called == "without a symbol" else BEGIN
    guest = guest_of(begin + CALLED[called] + END, load_target("cortex-m4"))
    bound = bound_of(asked(guest))
    with guest.machine() as machine:
        assert bound.instructions == machine.measure("f", (), InitialCache.COLD).instructions == executed
    own = {block.function for block in bound.graph.blocks} - {"f"}
    assert own == {"g", "h"} or (called == "without a symbol" and min(own).startswith("function_at_0x"))
    (tmp_path / "a.elf").write_bytes(guest.image.elf)
    monkeypatch.setattr(initial_data, "_beside", lambda run, *_: run)  # what values tell is as good
    options = ["bound", str(tmp_path / "a.elf"), "--entry", "f", "-q", "--json", "--initial-data"]
    assert main(options) == 0
    (tmp_path / "bound.json").write_text(capsys.readouterr().out)
    assert main(["verify", str(tmp_path / "bound.json"), "--image", str(tmp_path / "a.elf")]) == ExitCode.OK
    assert "run in instructions" in capsys.readouterr().out
