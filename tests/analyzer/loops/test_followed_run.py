"""The run that memory at entry decides: each of its instructions and accesses is that of the emulated run."""

import pytest

from tests.support import guest_of
from wcet_probe.analyzer.bound import prepare
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.initial_data import image_data
from wcet_probe.analyzer.loops.followed_run import follow_run
from wcet_probe.analyzer.request import BoundRequest, InitialData
from wcet_probe.catalog.lookup import load_target
from wcet_probe.model.scenario import InitialCache

SOURCE = """typedef unsigned u; u words[9] = {3, 1, 4, 1, 5, 9, 2, 6, 5}; volatile u out;
__attribute__((noinline)) u twice(u x) { out = x; return 2 * x; }
u f(void) {
  u sum = 0;
  for (u i = 0; i < 9; i++) { if (words[i] > 4) sum += twice(words[i]); words[i] = sum; }
  return sum;
}
u g(u x) { return x ? f() : twice(x); }
"""


def followed(target, entry):
    guest = guest_of(SOURCE, load_target(target), ".c", "-O1")
    question = (guest.image, guest.target, guest.instructions, guest.costs, entry)
    request = BoundRequest(*question, Facts(), {}, {}, initial=InitialData(image_data(guest.image), "the file says"))
    prepared, steps = prepare(request), []

    def take(_, own):
        steps.extend(own)
        return True

    return guest, follow_run(prepared.values, prepared.constants, take), steps, prepared


@pytest.mark.parametrize("target", ["cortex-m4", "arm926ej-s", "mpc603e"])
def test_a_run_is_told_instruction_by_instruction_with_its_accesses(target):
    guest, is_whole, steps, prepared = followed(target, "f")
    assert is_whole
    with guest.machine() as machine:
        run = machine.measure("f", (), InitialCache.COLD)
    assert len(steps) == run.instructions
    accesses = [one for step in steps for one in step.accesses]
    assert sum(not is_store for is_store, *_ in accesses) == run.loads
    assert sum(is_store for is_store, *_ in accesses) == run.stores
    words = guest.image.symbols["words"].address
    stored = [place for is_store, place, _ in accesses if is_store and isinstance(place, int)]
    assert [place for place in stored if words <= place < words + 36] == [words + 4 * number for number in range(9)]
    assert not follow_run(prepared.values, prepared.constants, lambda *_: False)


def test_what_an_argument_decides_is_no_run():
    _, is_whole, steps, _ = followed("arm926ej-s", "g")
    assert not is_whole
    assert not steps
