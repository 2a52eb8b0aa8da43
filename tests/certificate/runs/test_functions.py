"""Functions of Python of blocks: what is left out, and that a run is the same as line by line."""

import pytest

from tests.support import guest_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.facts.asserted import Asserted
from wcet_probe.certificate.facts.findings import Binary
from wcet_probe.certificate.kernel.coverage import code_of
from wcet_probe.certificate.runs import run
from wcet_probe.certificate.runs.functions import function_of, needless_before, successors
from wcet_probe.certificate.runs.memory import memory_at_entry
from wcet_probe.certificate.runs.run import TooLongError, executed
from wcet_probe.model.scenario import InitialCache

SP = 13
PARTS = """
unsigned char bytes[64]; unsigned short halves[64]; unsigned words[64]; signed char low[16]; short signed_halves[16];
unsigned f(void) {
    unsigned found = ~0u;
    for (int i = 0; i < 64; i++) { bytes[i] = i * 7; halves[i] = i * 771; words[i] = i * 0x01234567u; }
    for (int i = 0; i < 16; i++) { low[i] = i - 8; signed_halves[i] = 3 - 1000 * i; }
    for (int i = 0; i < 63; i++)
        for (int j = 0; j < 63 - i; j++)
            if (words[j] > words[j + 1]) { unsigned t = words[j]; words[j] = words[j + 1]; words[j + 1] = t; }
    for (int i = 0; i < 64; i++) {
        found ^= bytes[i] + halves[i] * words[63 - i] + low[i & 15] - signed_halves[i & 15];
        for (int k = 0; k < 8; k++) found = found & 1 ? found >> 1 ^ 0xedb88320u : found >> 1;
        bytes[i] = found;
        halves[63 - i] = found >> 8;
    }
    volatile unsigned last = found;
    return last + bytes[5] + halves[7];
}
"""


def quick(kind, size, is_store):
    """Of one kind it is told what is done besides."""
    return f"noted.append(({size}, {is_store}))" if kind == "quick" else None


def executed_alone(lines, following, needless=(), address=None, **names):
    """What a block returns, and its registers behind it."""
    registers = [0] * 19
    again = [0]
    names = {"R": registers, "again": again, "words": {}, "stored": set(), "shifts": [], **names}
    exec(function_of(address, (lines, following), needless, SP, quick), names)  # noqa: S102
    return names["block"](), registers, again[0]


def source(lines, following="8", needless=()):
    return function_of(None, (lines, following), needless, SP, quick).split("\n ")[1:-1]


def test_the_ways_on_are_told_where_they_are_numbers():
    assert successors("8") == (8,)
    assert successors("8 if R[16] == 0 else 12") == (8, 12)
    assert successors("jump(t)") == ()


@pytest.mark.parametrize(
    ("lines", "following", "needless", "kept"),
    [
        (["R[16] = 1", "R[16] = 2"], "8", (), ["R[16] = 2"]),
        (["R[16] = 1", "R[16] = R[16] + 1"], "8", (), ["R[16] = 1", "R[16] = R[16] + 1"]),
        (["R[16] = 1", "if R[17]: R[16] = 2"], "8", (), ["R[16] = 1", "if R[17]: R[16] = 2"]),
        (["R[16] = 1", "if R[17]:", " R[0] = R[16]", "R[16] = 2"], "8", (), None),
        (["R[16] = 1", "if R[17]:", " return 4", "R[16] = 2"], "8", (), None),
        (["R[16] = 1"], "8", {"R[16]"}, []),
        (["R[16] = 1"], "8 if R[16] else 12", {"R[16]"}, ["R[16] = 1"]),
        (["R[16] = load(4, 4, 'slow')"], "8", {"R[16]"}, ["R[16] = load(4, 4, 'slow')"]),
        (["a = 1", "t = a"], "8", (), []),
        (["a = 1", "t = a"], "jump(t)", (), ["a = 1", "t = a"]),
        (["R[13] = 8", "store(4, 4, v0, 'slow')", "R[13] = 4"], "8", (), None),
        (["R[12] = 8", "store(4, 4, v0, 'slow')", "R[12] = 4"], "8", (), ["store(4, 4, v0, 'slow')", "R[12] = 4"]),
    ],
)  # fmt: skip
def test_what_nobody_reads_is_left_out_and_no_more(lines, following, needless, kept):
    assert source(lines, following, needless) == (lines if kept is None else kept)


def test_what_a_block_writes_first_is_needless_before_it():
    assert needless_before(["R[1] = R[2]", "R[16] = R[1]", "R[2] = 0"], "8", SP) == {"R[1]", "R[16]"}
    assert needless_before(["if R[3]:", " return 4", "R[1] = 0"], "8", SP) == frozenset()


def test_a_block_that_leads_to_itself_is_executed_again_for_a_while():
    lines, following = ["R[0] = R[0] + 1"], "4 if R[0] != 10 else 8"
    assert executed_alone(lines, following, address=4)[1:] == ([10, *[0] * 18], 9)
    assert executed_alone(lines, following)[1:] == ([1, *[0] * 18], 0)
    found, registers, again = executed_alone(lines, "4 if R[0] != 2500 else 8", address=4)
    assert (found, registers[0], again) == (4, 1000, 999)


@pytest.mark.parametrize(
    ("line", "held", "found", "noted"),
    [
        ("R[1] = load(R[0], 4, 'quick')", 0x04030201, 0x04030201, [(4, False)]),
        ("R[1] = load(R[0] + 1, 1, 'quick')", 0x04030201, 2, [(1, False)]),
        ("R[1] = load(R[0] + 2, 2, 'quick') ^ 1", 0x04030201, 0x0402, [(2, False)]),
        ("R[1] = load(R[0] + 1, 2, 'quick')", 0x04030201, "loaded", []),
        ("R[1] = load(R[0], 4, 'quick')", [1, 2, 3, None], "loaded", []),
        ("R[1] = load(R[0], 4, 'slow')", 0x04030201, "loaded", []),
        ("R[1] = load(R[0] + 4, 4, 'quick')", 0x04030201, "loaded", []),
    ],
)
def test_a_quick_load_of_a_known_word_is_made_in_place_and_any_other_is_asked_of_memory(line, held, found, noted):
    seen, shifts = [], [[0] * 4, [0, 8, 16, 24], [0, 8, 16, 24]]
    names = {"words": {0: held}, "noted": seen, "load": lambda *_: "loaded", "shifts": shifts}
    _, registers, _ = executed_alone([line], "8", **names)
    assert (registers[1], seen) == (found, noted)


@pytest.mark.parametrize(
    ("line", "words", "noted"),
    [
        ("store(R[0], 4, v0, 'quick')", {0: 7}, [(4, True)]),
        ("store(R[0] + 4, 4, v0, 'quick')", {0: 1}, []),
        ("store(R[0] + 2, 4, v0, 'quick')", {0: 1}, []),
        ("store(R[0], 1, v0, 'quick')", {0: 1}, []),
        ("store(R[0], 4, v0, 'slow')", {0: 1}, []),
    ],
)
def test_a_quick_store_of_a_word_that_was_stored_is_made_in_place_and_any_other_is_left_to_memory(line, words, noted):
    seen, own, calls = [], {0: 1}, []
    names = {"words": own, "stored": {0}, "noted": seen, "store": lambda *told: calls.append(told)}
    executed_alone(["v0 = 7", line], "8", **names)
    assert (own, seen, len(calls)) == (words, noted, 1 - len(noted))


CORES = ("cortex-m4", "arm926ej-s", "mpc603e", "cortex-r5")


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("option", ["-O1", "-O2"])
def test_a_run_is_the_same_as_line_by_line_and_as_the_engine_has_it(core, option, monkeypatch):
    guest = guest_of(PARTS, load_target(core), ".c", option)
    with guest.machine() as machine:
        pointer = machine.entry_registers(())[guest.target.isa.stack_pointer]
        ran = machine.measure("f", (), InitialCache.DIRTY)
    binary = Binary(guest.image, guest.instructions, guest.costs, guest.target, Asserted(), {})
    code, content = code_of(guest.image, guest.instructions), memory_at_entry(guest.image, pointer)
    for where in (pointer, None):
        with monkeypatch.context() as patch:
            found = executed(code, binary, "f", content, {}, where, 100_000)
            with pytest.raises(TooLongError):
                executed(code, binary, "f", content, {}, where, found.instructions - 1)
            patch.setattr(run, "function_of", line_by_line)
            assert executed(code, binary, "f", content, {}, where, found.instructions) == found
            assert found.instructions == ran.instructions


def line_by_line(_address, text, *_):
    return "\n ".join(["def block():", *text[0], f"return {text[1]}"])
