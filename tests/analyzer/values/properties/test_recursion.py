"""Recursion whose depth follows from an argument, and recursion that nothing bounds."""

from unittest.mock import patch

import pytest

from tests.path_check import attack, check_emulated, proved
from tests.support import TARGETS, guest_of
from wcet_probe.analyzer.facts.file import parse_facts
from wcet_probe.analyzer.graph import supergraph
from wcet_probe.analyzer.values.properties import recursion
from wcet_probe.analyzer.values.properties.recursion import Followed
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import AnalysisError

SOURCE = """typedef unsigned u; volatile u sink;
__attribute__((noinline)) u factorial(u n) { sink = n; if (n < 2) return 1; return n * factorial(n - 1) + sink; }
u of_nine(void) { return factorial(9); }
u of_few(u n) { return factorial(n & 7); }
__attribute__((noinline)) u fibonacci(u n) {
  sink = n; if (n < 2) return n; return fibonacci(n - 1) + fibonacci(n - 2); }
u of_five(void) { return fibonacci(5); }
__attribute__((noinline)) u tree(u n) {
  sink = n; if (n == 0) return 1; u left = tree(n - 1); sink = left; return tree(n - 1) * 3 + left * sink; }
u of_tree(void) { return tree(5); }
u odd(u n);
__attribute__((noinline)) u even(u n) { sink = n; if (n == 0) return 1; return odd(n - 1) + sink; }
__attribute__((noinline)) u odd(u n) { sink = n; if (n == 0) return 0; return even(n - 1) + sink; }
u parity(u n) { return even(n & 3); }
__attribute__((noinline)) u nibbles(u n) { sink = n; if (n >> 4) return nibbles(n >> 4) * 3 + sink; return n; }
u all_nibbles(u n) { return nibbles(n) + sink; }
"""


@pytest.mark.parametrize("target", TARGETS)
def test_a_constant_argument_gives_the_exact_depth(target):
    proof = proved(guest_of(SOURCE, load_target(target), ".c"), "of_nine")
    assert attack(proof) == proof.bound.instructions
    check_emulated(proof)


def test_two_calls_of_itself():
    """An emulated run puts together what the loop does in different depths, so it is not held against the proof."""
    proof = proved(guest_of(SOURCE, load_target("cortex-m4"), ".c"), "of_five")
    assert attack(proof) <= proof.bound.instructions


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("entry", ["of_few", "parity"])
def test_an_argument_with_a_range_gives_the_greatest_depth(target, entry):
    proof = proved(guest_of(SOURCE, load_target(target), ".c"), entry)
    assert max(attack(proof, number) for number in range(8)) == proof.bound.instructions


def test_where_the_graph_would_be_too_large_calls_are_followed_where_values_lead(monkeypatch):
    guest = guest_of(SOURCE, load_target("cortex-m4"), ".c")
    whole = proved(guest, "of_five")
    monkeypatch.setattr(supergraph, "MOST_POINTS", 120)
    proof = proved(guest, "of_five")
    assert proof.bound.instructions == whole.bound.instructions
    assert attack(proof) <= proof.bound.instructions
    monkeypatch.setattr(supergraph, "MOST_POINTS", 10)
    with pytest.raises(AnalysisError, match="more than 10 basic blocks"):
        proved(guest, "of_five")


def test_calls_of_one_function_are_followed_together_as_long_as_the_graph_is_small_enough(monkeypatch):
    guest, rounds, deeper = guest_of(SOURCE, load_target("cortex-m4"), ".c"), [], Followed.deeper

    def counted(followed, image, values):
        rounds.append(len(followed.opened))
        return deeper(followed, image, values)

    monkeypatch.setattr(Followed, "deeper", counted)
    needed, bounds = {}, set()
    for most in (500, 400):
        monkeypatch.setattr(supergraph, "MOST_POINTS", most)
        rounds.clear()
        bounds.add(proved(guest, "of_tree").bound.instructions)
        needed[most] = len(rounds)
        assert rounds[-1] > 0, "the depth alone was enough"
    assert needed[500] < needed[400]
    assert len(bounds) == 1


def test_an_argument_that_is_halved_gives_the_greatest_depth():
    proof = proved(guest_of(SOURCE, load_target("cortex-m4"), ".c"), "all_nibbles")
    assert max(attack(proof, 1 << place) for place in (0, 3, 4, 17, 31)) == proof.bound.instructions


@pytest.mark.covering
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("entry", ["factorial", "fibonacci", "even"])
def test_nothing_bounds_the_depth(target, entry):
    with pytest.raises(AnalysisError, match=r"calls \w+ recursively: .*\[\[recursion\]\]"):
        proved(guest_of(SOURCE, load_target(target), ".c"), entry)


def test_a_fact_about_the_argument_bounds_it():
    text = '[[argument]]\nfunction = "factorial"\nindex = 0\nmin = 0\nmax = 12\nbecause = "a test"\n'
    proof = proved(guest_of(SOURCE, load_target("cortex-m4"), ".c"), "factorial", parse_facts("facts.toml", text))
    assert attack(proof, 12) == proof.bound.instructions
    assert attack(proof, 3) < proof.bound.instructions


BYTES = """typedef unsigned u; static u seed, sum; static char bits[256];
__attribute__((noinline)) u bytes_of(u x) {
  unsigned char *p = (unsigned char *)&x; u s = bits[*p++]; return s + bits[*p]; }
__attribute__((noinline)) u by_bytes(u x) {
  u s = bits[((char *)&x)[0] & 255]; if ((x >>= 8) != 0) s += by_bytes(x); return s; }
u all_bytes(u n) {
  for (u i = 0; i < 3; i++) { seed += n; sum = bytes_of(seed); sum += by_bytes(seed); }
  return sum; }
"""


@pytest.mark.parametrize("target", ["cortex-m4", "mpc603e"])
def test_the_depth_is_told_where_bytes_of_an_argument_are_loaded_through_a_pointer_to_it(target):
    """What is read from a table by such a byte, and stored, is no address of the stack."""
    proof = proved(guest_of(BYTES, load_target(target), ".c", "-O0"), "all_bytes")
    for number in (0, 255, 1 << 16, 0xFFFF_FFD8):
        assert attack(proof, number) <= proof.bound.instructions
        check_emulated(proof, number)


SORT = """typedef unsigned u; volatile u sink; static u data[64];
__attribute__((noinline)) void merge(u low, u count, u way) {
  for (u i = low; i < low + count / 2; i++) if ((data[i] > data[i + count / 2]) == way) sink = i;
  if (count > 2) { merge(low, count / 2, way); merge(low + count / 2, count / 2, way); } }
__attribute__((noinline)) void sort(u low, u count, u way) {
  if (count > 1) { sort(low, count / 2, 1); sort(low + count / 2, count / 2, 0); }
  merge(low, count, way); }
void sort_all(void) { sort(0, 8, 1); }
__attribute__((noinline)) u lopsided(u n, u left) {
  sink = n; if (n == 0) return 1; u sum = lopsided(n - 1, 1); return left ? sum : sum + lopsided(n - 1, 0); }
u of_lopsided(void) { return lopsided(6, 0); }
"""


def _graphs_of(most: int, entry: str, optimisation: str) -> tuple[list[int], int]:
    """Of a proof with no more than ``most`` points: how many there were in each round, and the bound."""
    guest, rounds, deeper = guest_of(SORT, load_target("cortex-m4"), ".c", optimisation), [], Followed.deeper

    def counted(followed, image, values):
        rounds.append(len(values.graph.points))
        return deeper(followed, image, values)

    with patch.object(Followed, "deeper", counted), patch.object(supergraph, "MOST_POINTS", most):
        proof = proved(guest, entry)
    assert 0 < attack(proof) <= proof.bound.instructions
    return rounds, proof.bound.instructions


@pytest.mark.parametrize(("entry", "most", "last"), [("sort_all", 800, 600), ("of_lopsided", 300, 250)])
def test_of_a_graph_that_is_too_large_the_calls_are_kept_that_values_take(entry, most, last):
    """Two calls of itself have twice the blocks with each depth, and the depth is that of one way only."""
    _, whole = _graphs_of(20_000, entry, "-O0")
    rounds, bound = _graphs_of(most, entry, "-O0")
    assert bound == whole
    assert max(rounds) <= most
    assert rounds[-1] < last


def test_a_call_is_followed_as_far_as_one_like_it_was_before(monkeypatch):
    rounds, bound = _graphs_of(300, "of_lopsided", "-O0")
    monkeypatch.setattr(recursion, "_as_before", lambda *_: iter(()))
    without, same = _graphs_of(300, "of_lopsided", "-O0")
    assert len(rounds) <= 14
    assert len(without) > 20
    assert bound == same
    monkeypatch.setattr(recursion, "_as_before", lambda _i, values, *_: iter(values.graph.cuts))  # more than there are
    assert _graphs_of(300, "of_lopsided", "-O0")[1] == same
