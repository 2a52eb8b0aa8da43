"""A state that a search found, in the answer: the witness of the unit in which it is the dearest, in a pack as well."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support import images_dir
from wcet_probe.answer.studies.sweep import grow
from wcet_probe.answer.witness.bench import ProbeRequest
from wcet_probe.answer.witness.probe import observe
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.cli.app import main
from wcet_probe.errors import UsageError

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "own-allocator"


def request(name, target, heap_bytes):
    return ProbeRequest(
        allocator=load_allocator(name),
        target=load_target(target),
        scenario="worst-alloc",
        heap_bytes=heap_bytes,
        seed=0,
        initial_cache=None,
        compiler="zig",
        cross_check=False,
        cache_dir=images_dir(),
    )


def test_a_found_state_is_the_witness_of_the_unit_in_which_it_is_the_dearest():
    seen = observe(request("best-fit", "arm926ej-s", 64 << 10))
    in_cycles, in_instructions = seen.witnesses["cycles"], seen.witnesses["instructions"]
    assert in_cycles.plan.found_by.unit == "cycles"
    assert in_instructions.plan.found_by is None
    assert in_cycles.value("cycles") == in_cycles.plan.found_by.value
    assert in_cycles.value("cycles") > in_instructions.value("cycles")
    assert in_cycles.value("instructions") < in_instructions.value("instructions")
    assert [check.fact for check in seen.checks] == ["used blocks"]


def test_what_is_kept_beside_an_own_allocator_is_its_witness_and_passes_an_audit(tmp_path, monkeypatch, capsys):
    shutil.copytree(EXAMPLE, tmp_path / "pool")
    (tmp_path / "wcet-probe.toml").write_text('allocators = ["pool"]\n')
    monkeypatch.chdir(tmp_path)
    heap = ["--heap", "1KiB"]
    search = ["search", "pool", *heap, "--start", "constructed", "--evaluations", "30", "--json"]

    def document(*words):
        assert main([*words]) == 0
        return json.loads(capsys.readouterr().out)

    first = document(*search, "--keep", "--save", "state.txt")
    assert first["beaten"]
    assert (tmp_path / "pool" / first["kept"]).read_text() == (tmp_path / "state.txt").read_text()
    again = document(*search)
    assert again["constructed"] == first["constructed"] < again["known"] == first["found"]
    assert again["kept"] is None

    result = document("pool", *heap, "--no-bound", "--no-cross-check", "--json")
    witness = result["witnesses"]["instructions"]
    assert witness["value"] == first["found"]
    assert witness["found_by"]["value"] == first["found"]
    assert first["kept"].endswith(result["allocator_manifest"]["found"][0]["name"])
    (tmp_path / "r.json").write_text(json.dumps(result))
    assert main(["pack", "r.json", "-o", "e.zip"]) == 0
    assert main(["audit", "e.zip"]) == 6  # the author's words are not checked


def test_nothing_is_kept_in_the_package(capsys):
    assert main(["search", "tlsf", "--evaluations", "1", "--keep"]) == 2
    assert "leave --keep out, and write the state to a file with --save" in capsys.readouterr().err


def test_growth_is_of_constructed_states_alone():
    asked = request("half-fit", "cortex-m4", 8 << 10)
    asked = replace(asked, allocator=replace(asked.allocator, found=(("0.txt", "no state"),)))
    with pytest.raises(UsageError, match="no state that a search found"):
        observe(asked)
    assert grow(asked, [8 << 10, 16 << 10, 32 << 10]).holds
