"""Bounds of malloc by the size of the request."""

import json
from itertools import pairwise
from types import SimpleNamespace
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.support import images_dir
from wcet_probe.answer.bounds import per_size
from wcet_probe.answer.bounds.per_size import Cost, PerSizeRequest, bounds_per_size
from wcet_probe.answer.bounds.proving import prove_operation
from wcet_probe.build.program import load_program
from wcet_probe.build.toolchain import PACKAGED
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.cli import main
from wcet_probe.emu.machine import Machine
from wcet_probe.errors import UsageError
from wcet_probe.model.scenario import InitialCache

HEAP_BYTES = 1000


def found_by(cost_of, monkeypatch, starts=()):
    """The ranges where the cost of a size is ``cost_of`` it, and all that a proof knows of a range is the largest."""

    def prove(_request, first, last):
        costs = [cost_of(size) for size in range(max(1, first), min(last, HEAP_BYTES) + 1)]
        return Cost(max(cost.instructions for cost in costs), max(cost.cycles for cost in costs))

    monkeypatch.setattr(per_size, "_prove", prove)
    monkeypatch.setattr(per_size, "prove_operation", lambda *_: Cost(1, 2))
    allocator = SimpleNamespace(name="stub", minimum_heap_bytes=64, takes_cache_set=False)
    return bounds_per_size(PerSizeRequest(SimpleNamespace(allocator=allocator), HEAP_BYTES, starts)).malloc


def test_the_ends_of_the_ranges_are_where_the_bound_changes(monkeypatch):
    steps = {1: 10, 117: 50, 125: 40, 777: 20}

    def cost(size):
        return Cost(1, next(cycles for first, cycles in reversed(steps.items()) if first <= size))

    assert found_by(cost, monkeypatch) == (
        (1, 116, (1, 10)),
        (117, 124, (1, 50)),
        (125, 776, (1, 40)),
        (777, 1000, (1, 20)),
    )
    assert found_by(cost, monkeypatch, (50, 200, 300, 900)) == (
        (50, 199, (1, 50)),
        (200, 899, (1, 40)),
        (900, 1000, (1, 20)),
    )


@given(st.lists(st.tuples(st.integers(1, HEAP_BYTES), st.integers(0, 3), st.integers(0, 3)), max_size=6))
@settings(max_examples=examples(25), deadline=None)
def test_every_size_is_in_a_range_whose_bound_holds_for_it(steps):
    steps = [(1, 1, 1), *sorted(steps)]

    def cost(size):
        return next(Cost(i, c) for first, i, c in reversed(steps) if first <= size)

    with pytest.MonkeyPatch.context() as patch:
        ranges = found_by(cost, patch)
    assert [one.first_bytes for one in ranges] == [1, *(one.last_bytes + 1 for one in ranges[:-1])]
    assert ranges[-1].last_bytes == HEAP_BYTES
    assert all(a.cost != b.cost for a, b in pairwise(ranges))
    assert all(cost(size).is_within(one.cost) for one in ranges for size in range(one.first_bytes, one.last_bytes + 1))


@pytest.mark.parametrize("name", ["tlsf", pytest.param("cama", marks=pytest.mark.slow)])
def test_no_call_takes_more_than_the_bound_of_its_size(name):
    target, heap_bytes = load_target("mpc603e"), 1 << 16
    program = load_program(load_allocator(name, {}), target, PACKAGED, images_dir())
    found = bounds_per_size(PerSizeRequest(program, heap_bytes, (1, 100, 117, 4096)))
    whole = prove_operation(program, "malloc", heap_bytes)
    entry_points = program.allocator.entry_points
    for one in found.malloc:
        assert one.cost.instructions <= whole.instructions
        assert one.cost.cycles <= whole.cycles
        for size in {one.first_bytes, one.last_bytes}:
            with Machine(program.image, target, program.instructions, program.costs, heap_bytes) as machine:
                machine.call(entry_points["init"], machine.heap.base_address, heap_bytes)
                run = machine.measure(entry_points["malloc"], (size, 77), InitialCache.DIRTY)
            assert run.instructions <= one.cost.instructions
            assert run.cycles <= one.cost.cycles


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        code = main(["bound", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_the_table(run):
    code, out, err = run("half-fit", "--per-size", "--heap", "4KiB", "--sizes", "1,512")
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "half-fit on cortex-m4, heap 4 KiB: proved, at most"
    assert [line.split()[0] for line in out.splitlines()[2:]] == ["malloc", "free"]


@pytest.mark.parametrize("is_repeated", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_document_and_picture(run, tmp_path, is_repeated):
    asked = ("cama", "--per-size", "--heap", "8K", "--sizes", "8,2K", "--cache-set", "3-5", "--target", "cortex-m4")
    code, out, _ = run(*asked, "--json", "--svg", "figure.svg")
    assert code == 0
    document = json.loads(out)
    assert (document["format"], document["version"]) == ("wcet-probe-per-size", 1)
    (result,) = document["results"]
    assert (result["allocator"], result["heap_bytes"], result["cache_sets"]) == ("cama", 8192, [3, 5])
    assert [one["first_bytes"] for one in result["malloc"]] == [8, 2048]
    picture = (tmp_path / "figure.svg").read_text()
    cycles = [one["cycles"] for one in result["malloc"]]
    told = f"{min(cycles):,} to {max(cycles):,}" if len({*cycles}) > 1 else f"{cycles[0]:,}"
    assert f"cama: {told} cycles." in ET.fromstring(picture).find("{*}desc").text  # noqa: S314
    if is_repeated:
        assert run(*asked, "--json", "--svg", "figure.svg")[1] == out
        assert (tmp_path / "figure.svg").read_text() == picture


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("tlsf", "--per-size", "--sizes", "8,4"), "--sizes must rise, from 1 at least to the heap of 4194304 bytes"),
        (("tlsf", "--per-size", "--sizes", "8,8M"), "--sizes must rise"),
        (("tlsf", "--per-size", "--sizes", "8,x"), "'x' is no size in bytes"),
        (("tlsf", "--per-size", "--cache-set", "3"), "tlsf takes no cache set; leave --cache-set out, or ask cama."),
        (("cama", "--per-size", "--cache-set", "5-3"), "--cache-set '5-3' is no range of cache sets"),
        (("tlsf", "--per-size", "--heap", "16"), "a heap of 16 bytes is too small for tlsf"),
        (("tlsf", "--per-size", "--why"), "--why does not go with --per-size; leave one of them out."),
        (("x.elf", "--entry", "f", "--heap", "4K"), "--heap needs --per-size; add it."),
        (("x.elf",), "missing option '--entry'"),
        (("x.elf", "y.elf", "--entry", "f"), "one ELF file has the function, not 2; name one."),
    ],
)
def test_bad_input_is_one_sentence(run, arguments, told):
    code, out, err = run(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"wcet-probe: {told}")


def test_sizes_above_the_heap_are_refused_by_the_library_too(monkeypatch):
    with pytest.raises(UsageError, match="--sizes must rise"):
        found_by(lambda _: Cost(1, 1), monkeypatch, (8, HEAP_BYTES + 1))
