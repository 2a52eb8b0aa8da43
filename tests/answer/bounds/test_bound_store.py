"""Bounds that are kept: found again by all that they depend on, told of, and never read where they were touched."""

import hashlib
import io
import pickle
import shutil
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from types import MappingProxyType

import pytest

from tests.support import images_dir
from wcet_probe.answer.bounds import bound_store, proved_again
from wcet_probe.answer.bounds.bound_store import BoundStore, bound_key
from wcet_probe.answer.bounds.proving import prove_operation
from wcet_probe.build.program import load_program
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.cli.app import main
from wcet_probe.errors import AnalysisError
from wcet_probe.model.allocator import OwnBuild
from wcet_probe.model.scenario import OperationKind

HEAP_BYTES = 4096


@cache
def program(target="cortex-m4"):
    return load_program(load_allocator("kingsley"), load_target(target), "zig", images_dir())


@cache
def proved():
    return prove_operation(program(), "free", HEAP_BYTES)


@pytest.fixture
def kept(tmp_path):
    """A store that keeps one bound, and its file."""
    bound_store._write(tmp_path / "bounds" / bound_key(program(), "free", HEAP_BYTES), proved())
    return BoundStore(tmp_path), next((tmp_path / "bounds").iterdir())


def ask(store):
    return store(program(), "free", HEAP_BYTES)


def proofs(monkeypatch):
    """The operations that are proved from now on."""
    asked = []

    def prove(subject, role, heap_bytes):
        asked.append((subject.target.name, role, heap_bytes))
        return proved()

    monkeypatch.setattr(bound_store, "prove_anew", prove)
    monkeypatch.setattr(proved_again, "prove_anew", prove)
    return asked


def test_a_bound_is_proved_once(tmp_path, monkeypatch):
    asked = proofs(monkeypatch)
    first, second = BoundStore(tmp_path), BoundStore(tmp_path)
    assert ask(first) is proved()
    found = ask(second)
    assert (asked, first.recalled, second.recalled) == ([("cortex-m4", "free", HEAP_BYTES)], [], ["free"])
    assert found == proved()
    assert found is not proved()


def test_members_of_enumerations_are_kept(tmp_path, monkeypatch):
    told = replace(proved(), entry=OperationKind.FREE)
    monkeypatch.setattr(bound_store, "prove_anew", lambda *_: told)
    ask(BoundStore(tmp_path))
    monkeypatch.setattr(bound_store, "prove_anew", None)
    found = ask(BoundStore(tmp_path))
    assert found == told
    assert isinstance(found.entry, OperationKind)


def test_its_certificates_are_of_a_proof_of_now(kept, monkeypatch):
    store, _ = kept
    found = ask(store)
    assert found.certificates == proved().certificates
    assert found.callee_certificates == proved().callee_certificates
    other = replace(proved(), instructions=proved().instructions + 1)
    monkeypatch.setattr(proved_again, "prove_anew", lambda *_: other)
    with pytest.raises(AnalysisError, match="remove its folder bounds"):
        assert ask(store).certificates


def test_read_only_mappings_and_fractions_come_back(tmp_path):
    found = replace(proved(), parameters=MappingProxyType({"H": 4096, "a": Fraction(1, 3)}))
    bound_store._write(tmp_path / "kept", found)
    again = bound_store._read(tmp_path / "kept", program(), "free", HEAP_BYTES)
    assert again == found
    assert isinstance(again.parameters, MappingProxyType)


def changed_allocators():
    found = program().allocator
    (name, text), *others = found.sources
    yield replace(found, sources=((name, text + "\n"), *others))
    (name, text), *others = found.facts
    yield replace(found, facts=((name, text + "\n"), *others))
    yield replace(found, alignment_bytes=2 * found.alignment_bytes)
    yield replace(found, entry_points={**found.entry_points, "free": "kingsley_malloc"})


def test_all_that_a_bound_depends_on_is_in_its_key(monkeypatch):
    used = program()
    keys = [bound_key(used, role, heap) for role in ("malloc", "free") for heap in (HEAP_BYTES, HEAP_BYTES + 8)]
    keys += [bound_key(replace(used, allocator=one), "free", HEAP_BYTES) for one in changed_allocators()]
    keys += [bound_key(program("cortex-m0plus"), "free", HEAP_BYTES)]
    slower = replace(used.target, memory=replace(used.target.memory, regions=load_target("e200z6").memory.regions))
    keys += [bound_key(replace(used, target=replace(slower, name="x")), "free", HEAP_BYTES)]
    keys += [bound_key(replace(used, image=replace(used.image, sha256="0")), "free", HEAP_BYTES)]
    monkeypatch.setattr(bound_store, "_version", lambda: "another")
    keys += [bound_key(used, "free", HEAP_BYTES)]
    assert len(set(keys)) == len(keys)


def test_every_module_that_proves_is_in_the_key():
    home = Path(bound_store.__file__).parents[2]
    names = {str(file.relative_to(home)) for file in bound_store._sources()}
    assert {
        "analyzer/bound.py",
        "analyzer/ipet/solver.py",
        "model/proof.py",
        "isa/timing.py",
        "answer/bounds/proving.py",
    } <= names
    assert {"certificate/names/symbols.py", "errors.py", "build/image.py"} <= names


@pytest.mark.parametrize("change", [lambda text: text[:-1], lambda text: text[:40] + b"x" + text[41:], lambda _: b""])
def test_a_damaged_file_is_not_read(kept, monkeypatch, change):
    store, file = kept
    file.write_bytes(change(file.read_bytes()))
    assert len(proofs(monkeypatch)) == 0
    assert ask(store) is proved()
    assert store.recalled == []
    assert ask(store) == proved()
    assert store.recalled == ["free"]  # what was proved took its place


def write_as_it_should_be(file, text):
    file.write_bytes(hashlib.sha256(file.name.encode() + text).digest() + text)


def test_a_file_under_the_key_of_another_question_is_not_read(kept, monkeypatch):
    store, file = kept
    asked = proofs(monkeypatch)
    shutil.copy(file, file.with_name(bound_key(program(), "malloc", HEAP_BYTES)))
    store(program(), "malloc", HEAP_BYTES)
    assert (asked, store.recalled) == ([("cortex-m4", "malloc", HEAP_BYTES)], [])


class Hostile:
    def __reduce__(self):
        return shutil.rmtree, ("/nowhere/at/all",)


@pytest.mark.parametrize("content", [Hostile(), 7, ("a",)])
def test_nothing_but_the_nouns_is_read(kept, monkeypatch, content):
    store, file = kept
    proofs(monkeypatch)
    write_as_it_should_be(file, pickle.dumps(content))
    monkeypatch.setattr(shutil, "rmtree", lambda *_: pytest.fail("a file of the cache ran code"))
    assert ask(store) is proved()
    assert store.recalled == []


def test_what_the_module_of_a_noun_imports_is_not_read():
    with pytest.raises(pickle.UnpicklingError, match="bisect_right"):
        bound_store._Reader(io.BytesIO(), {}).find_class("wcet_probe.model.image", "bisect_right")


def test_an_allocator_of_ones_own_is_proved_each_time(tmp_path, monkeypatch):
    asked = proofs(monkeypatch)
    own = replace(program(), allocator=replace(program().allocator, own=object.__new__(OwnBuild)))
    for _ in range(2):
        BoundStore(tmp_path)(own, "free", HEAP_BYTES)
    assert len(asked) == 2
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_to_is_no_failure(tmp_path, monkeypatch):
    proofs(monkeypatch)
    (tmp_path / "file").write_text("")
    assert ask(BoundStore(tmp_path / "file")) is proved()


def test_the_answer_is_the_same_and_says_where_the_bound_is_from(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("WCET_PROBE_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("WCET_PROBE_PROVE_ANEW")
    shown = []
    for options in ([], [], ["--prove-anew"]):
        assert main(["kingsley", "--heap", "4K", *options]) == 0
        shown.append(capsys.readouterr())
    assert len({each.out for each in shown}) == 1
    told = "the bounds of malloc and free were proved by an earlier run"
    assert [told in each.err for each in shown] == [False, True, False]
