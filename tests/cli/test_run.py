"""What reaches the probe, and the JSON document that comes back."""

import json
import re

import pytest

from wcet_probe.certificate.kernel.verify import bound_digest
from wcet_probe.model.scenario import InitialCache
from wcet_probe.model.target import Replacement

RUN = ("toyfit", "--target", "toy-cached")


def test_defaults(world, monkeypatch):
    monkeypatch.setattr("wcet_probe.cli.configured.DEFAULT_TARGET", "toy-plain")
    assert world.run("toyfit")[0] == 0
    (request,) = world.requests
    assert (request.allocator.name, request.target.name, request.scenario) == ("toyfit", "toy-plain", "worst-alloc")
    assert (request.heap_bytes, request.compiler, request.seed) == (4 << 20, "zig", 0)
    assert (request.initial_cache, request.cross_check, request.prove) == (None, None, True)


def test_every_option_reaches_the_probe(world):
    options = (
        "--scenario worst-free --heap 64K --param bits=4 --initial-cache warm --seed 7 --cc clang-19 --cross-check"
    )
    assert (
        world.run(*RUN, *options.split(), "--cache", "i:none", "--cache", "d:ways=2", "--cache", "policy=fifo")[0] == 2
    )
    assert world.run(*RUN, *options.split(), "--cache", "i:none", "--cache", "d:ways=2,policy=fifo")[0] == 0
    (request,) = world.requests
    assert (request.scenario, request.heap_bytes, request.allocator.values) == ("worst-free", 65536, {"bits": 4})
    assert (request.initial_cache, request.seed, request.compiler) == (InitialCache.WARM, 7, "clang-19")
    assert request.cross_check
    assert request.target.icache is None
    assert (request.target.dcache.ways, request.target.dcache.replacement) == (2, Replacement.FIFO)


def test_configuration_gives_the_defaults(world, tmp_path):
    (tmp_path / "wcet-probe.toml").write_text('cc = "clang"\ntarget = "toy-cached"\nheap = "64K"\n')
    assert world.run("toyfit")[0] == 0
    assert world.run("toyfit", "--heap", "8K", "--cc", "zig", "--target", "toy-plain")[0] == 0
    found = [(request.compiler, request.target.name, request.heap_bytes) for request in world.requests]
    assert found == [("clang", "toy-cached", 65536), ("zig", "toy-plain", 8192)]


def test_a_combination_asked_for_twice_is_answered_once(world):
    world.run(*RUN, "--target", "toy-cached", "--heap", "4K", "--heap", "4096")
    assert len(world.requests) == 1


def test_json_contract(world):
    code, out, err = world.run(*RUN, "--json")
    assert (code, err) == (0, "")
    doc = json.loads(out)
    assert (doc["format"], doc["version"]) == ("wcet-probe-result", 1)
    assert (doc["allocator"], doc["target"], doc["scenario"]) == ("toyfit", "toy-cached", "worst-alloc")
    assert doc["tool"]["name"] == "wcet-probe"
    assert doc["heap_bytes"] == 4 << 20
    assert doc["image"] == {
        "sha256": "0123456789abcdef" * 4,
        "size_bytes": 0,
        "compiler": "clang version 22.1.8 [ziglang 0.17.0]",
        "flags": ["-O2", "-std=c11"],
        "functions": [],
    }
    assert (doc["parameters"], doc["initial_cache"]) == ({"bits": 5}, "dirty")
    assert doc["measured_operation"] == {"kind": "malloc", "slot": 0, "size_bytes": 497, "cache_set": 0}
    assert doc["state"]["checks"] == [{"fact": "free blocks", "predicted": 1, "found": 1}]
    assert doc["caches"]["dcache"]["size_bytes"] == 16384
    assert doc["memory"]["first_beat_cycles"] == {"value": 24, "basis": "assumed", "source": "a board of the time"}
    assert (doc["cross_check"], doc["verdict"], doc["no_bound"], doc["gap"]) == (None, "BOUNDED", None, None)
    assert doc["slack"] == {"instructions": 3, "cycles": 1321}
    observed = doc["observed"]
    assert (observed["instructions"], observed["cycles"], observed["stack_bytes"]) == (123, 1321, 16)
    assert (observed["icache"]["hits"], observed["icache"]["misses"]) == (105, 18)
    assert [observed["dcache"][key] for key in ("hits", "misses", "writebacks")] == [13, 9, 9]
    assert observed["touched_sets"] == {"instruction": [*range(16, 34)], "data": [0, 1, 5, 17, 60, 61, 127]}
    assert observed["touched_sets_by_region"]["static"] == [0, 1, 60, 61]
    assert observed["runs"][1] == {
        "address": "0x00010100",
        "function": "map_size",
        "location": "map_size+0x0 (toyfit.c:40)",
        "instructions": 49,
        "executions": 2,
    }
    assert observed["path"] == [0, 1, 1]


def test_json_of_a_bound(world):
    bound = json.loads(world.run(*RUN, "--json")[1])["bound"]
    assert (bound["entry"], bound["instructions"], bound["cycles"]) == ("toyfit_malloc", 126, 2642)
    assert bound["parameters"] == {"H": 4 << 20}
    assert [one["id"] for one in bound["assumptions"]] == ["no-interference", "fact toyfit/facts.toml:3"]
    assert bound["loops"][0] == {
        "observed_max": None,
        "name": "map_size+0x8",
        "function": "map_size",
        "address": "0x00010108",
        "context": ["0x00010020"],
        "location": "map_size+0x8 (toyfit.c:40)",
        "file": "toyfit.c",
        "line": 40,
        "max": 6,
        "total": None,
        "origin": "proved",
        "expression": "r3 != 0, steps of 1, 5 at entry",
        "where": None,
        "because": None,
    }
    assert bound["worst_path"][1]["cost_instructions"] == 100
    assert bound["certificates"] == ["no certificate"]
    assert bound["digest"] == bound_digest(bound)


def test_no_bound_observes_only(world):
    code, out, _ = world.run(*RUN, "--no-bound", "--json")
    doc = json.loads(out)
    assert (code, world.requests[-1].prove) == (0, False)
    assert [doc[key] for key in ("bound", "no_bound", "slack", "gap")] == [None] * 4
    assert doc["verdict"] == "OBSERVED"


def test_json_is_canonical(world):
    _, out, _ = world.run(*RUN, "--json")
    assert out == world.run(*RUN, "--json")[1]
    assert out == json.dumps(json.loads(out), sort_keys=True, indent=2, ensure_ascii=False) + "\n"
    assert not re.search(r'": (/|"/|-?\d+\.)', out)


def test_absent_caches_are_null(world):
    doc = json.loads(world.run("toyfit", "--target", "toy-plain", "--json")[1])
    assert doc["caches"] == {"icache": None, "dcache": None}
    assert doc["observed"]["icache"]["present"] is False
    assert doc["observed"]["touched_sets"] == {"instruction": [], "data": []}


def test_several_answers_are_one_document(world):
    code, out, _ = world.run(*RUN, "--heap", "4K", "--heap", "8K", "--json")
    doc = json.loads(out)
    assert (code, doc["format"], doc["version"]) == (0, "wcet-probe-results", 1)
    assert [(result["format"], result["heap_bytes"]) for result in doc["results"]] == [
        ("wcet-probe-result", 4096),
        ("wcet-probe-result", 8192),
    ]


@pytest.mark.parametrize("name", ["toyfit", "toy-cached", "worst-alloc"])
def test_show_json(world, name):
    code, out, _ = world.run("show", name, "--json")
    doc = json.loads(out)
    assert (code, doc["name"], doc["version"]) == (0, name, 1)
    assert doc["format"].startswith("wcet-probe-")


def test_show_takes_a_kind_before_the_name(world):
    assert world.run("show", "target", "toy-plain")[1] == world.run("show", "toy-plain")[1]
