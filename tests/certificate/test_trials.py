"""Trial runs refute certificates that are false where nothing else tells; a true one is never refuted."""

import random
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import patch

import pytest

from tests.certificate.forgeries import sealed, solved_again
from tests.certificate.kernel.test_code import CODE, document_of
from tests.support import TARGETS, guest_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate import check
from wcet_probe.certificate.check import check_bound
from wcet_probe.certificate.kernel.coverage import code_of
from wcet_probe.certificate.kernel.verify import verify_result
from wcet_probe.certificate.machines.arm import _is_met
from wcet_probe.certificate.trials import TrialMachine, _LostError
from wcet_probe.certificate.values.numbers import ANY, TOP, Value, constant
from wcet_probe.certificate.values.state import State
from wcet_probe.errors import VerificationError

SOURCE = """
volatile int port;
int f(unsigned n, const int *p) { int s = 0; for (unsigned i = 0; i < (n & 15); i++) s += port; if (s > 5) s += *p;
if (s < 3) s -= port * s; return s; }
"""


def forged(change, target="cortex-m4", source=SOURCE):
    document, binary = document_of(guest_of(source, load_target(target), ".c"))
    document = solved_again(document, change)
    told = [{**one, "max": 9 if change is lower_loops else one["max"]} for one in document["bound"]["loops"]]
    document["bound"]["loops"] = told
    with patch("wcet_probe.certificate.check.check_shown", return_value="nothing"):
        return check_bound(sealed(document), binary)


def lower_loops(problem, derivations, followed):
    """Each loop ends after 9 rounds; its counter is said to."""
    loops = tuple(replace(one, max_back_edges=8) for one in problem.loops)
    counted = {"initial_low": 0, "initial_high": 0, "step": 1, "limit_low": 8, "limit_high": 8, "comparison": "<"}
    own = [replace(one, max_header=9, **counted) for one in derivations]
    return replace(problem, loops=loops), own, followed


@pytest.mark.parametrize("target", TARGETS)
def test_a_run_that_takes_more_than_the_bound_refutes_it(target):
    with pytest.raises(
        VerificationError, match=r"a run from r[03] = 0x.* (takes more than the|exceeds the limit of the)"
    ):
        forged(lower_loops, target)


def test_nothing_is_tried_where_a_bound_rests_on_facts():
    with patch("wcet_probe.certificate.trials._STANDING", frozenset({"timing-model"})):
        found = forged(lower_loops)
    assert [one.check for one in found.findings if one.verdict != "ok"] == ["loop bounds"]


def test_a_way_that_is_said_not_to_be_taken_refutes_a_certificate_where_a_run_takes_it():
    source = "volatile int port;\nint f(int n) { if (n == 77) { port = 1; port = 2; port = n / 3; } return n; }"

    def change(problem, derivations, followed):
        entry = problem.entry
        ways = [one for one in problem.edges if one.source == entry]
        addresses = {one.name: one.address for one in problem.nodes}
        victim = next((one for one in ways if ":fall" in one.name), None)
        if victim is None:  # the entry is left for good where n is another number
            pytest.fail("the function has no branch")
        edges = tuple(one for one in problem.edges if one is not victim)
        reached = {entry, *(one.target for one in edges)}
        nodes = tuple(one for one in problem.nodes if one.name in reached)
        said = [line for line in followed if line.split(" ")[1] in reached]
        changed = replace(problem, nodes=nodes, edges=tuple(e for e in edges if e.source in reached), constraints=())
        exits = tuple(one for one in problem.exits if one in reached)
        changed = replace(changed, exits=exits, exit_costs={k: v for k, v in problem.exit_costs.items() if k in exits})
        return changed, derivations, [*said, f"excluded {entry} {addresses[victim.target]:#x}"] if followed else []

    with pytest.raises(VerificationError, match=r"a run from r0 = 0x.* takes a way .* that is none of the graph"):
        forged(change, source=source)


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CODE)
def test_no_run_refutes_a_true_certificate(name, target):
    document, binary = document_of(guest_of(CODE[name], load_target(target), ".c"))
    found = check._Check(document["bound"], binary, verify_result(document), code_of(binary.image, binary.instructions))
    assert list(found.findings())
    found.try_runs()


# ------------------------------------------------------------------------------------------------------------- machine

DATA = 0x20000000


def machine(*, big_endian=False):
    image = SimpleNamespace(segments=(), big_endian=big_endian)
    return TrialMachine(image, ranges=[(DATA, DATA + 64)], choose=lambda base, _: 0x11223344 + (base == "stack"))


@pytest.mark.parametrize("big_endian", [False, True])
def test_memory_holds_what_was_stored_and_else_what_is_chosen(big_endian):
    own, state = machine(big_endian=big_endian), State({})
    first = 0x11 if big_endian else 0x44
    assert own.load(constant(DATA), 1, state)[0] == constant(first)
    assert own.load(Value("stack", -8, -8, 0), 4, state)[0] == constant(0x11223345)
    own.store(constant(DATA + 4), 4, constant(0x80FF0102), None, state)
    own.store(constant(DATA + 4), 1, constant(0x1AB), None, state)
    word = 0xABFF0102 if big_endian else 0x80FF01AB
    assert own.load(constant(DATA + 4), 4, state)[0] == constant(word)
    signed = own.load(constant(DATA + 4), 2, state, is_signed=True)[0]
    assert signed == (constant(0xFFFFABFF) if big_endian else constant(0x01AB))


def test_what_is_not_known_ends_a_run():
    own, state = machine(), State({})
    pointer = Value("stack", -4, -4, 0)
    own.store(pointer, 4, pointer, None, state)
    assert own.load(pointer, 4, state)[0] == pointer
    own.store(constant(DATA), 4, TOP, None, state)
    refused = [(constant(DATA), 4), (constant(DATA + 1), 4), (constant(DATA + 64), 4), (constant(12), 4), (ANY, 4)]
    for address, size in [*refused, (Value("stack", -4, -4, 0), 1), (Value("link", 0, 0, 0), 4)]:
        with pytest.raises(_LostError):
            own.load(address, size, state)
    own.store(Value("stack", -3, -3, 0), 1, constant(1), None, state)
    with pytest.raises(_LostError):
        own.load(pointer, 4, state)


def test_flags_of_two_words_are_those_of_their_difference():
    chosen = random.Random(18)
    edges = (0, 1, (1 << 32) - 1, 1 << 31, (1 << 31) - 1)
    for _ in range(4000):
        a, b = (chosen.choice([*edges, chosen.getrandbits(32)]) for _ in range(2))
        left = (a - b) % (1 << 32)
        negative, overflow = left >> 31, ((a ^ b) & (a ^ left)) >> 31
        found = [_is_met(one, constant(a), constant(b)) for one in ("mi", "pl", "vs", "vc")]
        assert found == [negative == 1, negative == 0, overflow == 1, overflow == 0]
    assert _is_met("mi", TOP, constant(1)) is None
