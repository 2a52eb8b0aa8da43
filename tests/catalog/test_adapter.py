"""Calls that C does not make as the machine is told: each is refused with what to write in place of it."""

from __future__ import annotations

import json

import pytest

from tests.catalog.test_own_allocator import CELLS, HEAD, ONE, PLAIN, request, steps
from wcet_probe.answer.witness.probe import observe
from wcet_probe.catalog.lookup import load_allocator
from wcet_probe.cli.app import main
from wcet_probe.errors import ExitCode

WHOLE = """
void cs_set(void *a, size_t n) { cells_set(&all, a, (char *)a + n); }
void *cs_get(size_t n) { return n > 32 ? 0 : cells_get(&all); }
void cs_put(void *p) { cells_put(&all, p); }
"""
SET = PLAIN.replace("void cs_put", "void cs_set(void *, size_t); void cs_put").replace(
    "malloc", 'init = "cs_set(arena, bytes)"\nmalloc'
)


def folder(at, *changes, source=WHOLE):
    """Cells in ``at``, with ``changes`` of source and manifest."""
    call = SET
    for old, new in changes:
        assert old in source + call
        source, call = source.replace(old, new), call.replace(old, new)
    (at / "cells.c").write_text(CELLS + ONE + source, "utf-8")
    (at / "manifest.toml").write_text(HEAD + "[call]\n" + call, "utf-8")
    return at


def test_as_it_is_the_functions_themselves_are_called(tmp_path):
    assert all(step.code is ExitCode.OK for step in steps(folder(tmp_path)))


MORE = 'declarations = """\n#define cs_get(n) cs_take((n), 1)\nvoid *cs_take(size_t, int);\n'


def test_a_macro_is_not_taken_for_the_function_of_its_name(tmp_path):
    """The set-up would call what the macro makes of it, and the function would be measured and bounded."""
    taken = "void *cs_take(size_t n, int m) { for (int i = 0; i < 9; i++) *(volatile int *)&m = i; return cs_get(n); }"
    changes = (('declarations = "', MORE), ('cs_put(void *);"', 'cs_put(void *);\n"""'))
    at = folder(tmp_path, *changes, source=WHOLE + taken)
    text = (at / "manifest.toml").read_text("utf-8").replace("void *cs_get(size_t); ", "")
    (at / "manifest.toml").write_text(text, "utf-8")
    assert "cs_get is a macro: write it in brackets" in steps(at)[-1].found
    (at / "manifest.toml").write_text(text.replace('"cs_get(size)"', '"(cs_get(size))"'), "utf-8")
    assert all(step.code is ExitCode.OK for step in steps(at))
    report = observe(request(f"{at}/", "worst-alloc"))
    assert load_allocator(f"{at}/").entry_points["malloc"] == "wp_malloc"
    assert report.measurement.instructions > 9 * 3


@pytest.mark.parametrize("kind", ["uint8_t", "signed char", "short", "_Bool", "char", "uint64_t", "enum few"])
def test_a_number_of_fewer_or_more_bits_is_not_handed_over_as_a_whole_register(kind, tmp_path):
    """C makes one byte of 300, where a register of 300 would be an argument that no call has."""
    few = "enum __attribute__((packed)) few { ONE, TWO };\n" if "enum" in kind else ""
    at = folder(
        tmp_path,
        ("*cs_get(size_t n)", f"*cs_get({kind} n)"),
        ("*cs_get(size_t)", f"*cs_get({kind})"),
        source=few + WHOLE,
    )
    text, begun = (at / "manifest.toml").read_text("utf-8"), f"= '''\n#include <stdint.h>\n{few}void *cs_get"
    text = text.replace('= "void *cs_get', begun).replace('cs_put(void *);"', "cs_put(void *);\n'''")
    (at / "manifest.toml").write_text(text, "utf-8")
    assert "cs_get takes a narrower or wider number: say under [call] what it serves" in steps(at)[-1].found
    (at / "manifest.toml").write_text(text.replace('"cs_get(size)"', '"size <= 32 ? cs_get(size) : 0"'), "utf-8")
    assert [step.found for step in steps(at) if step.code is not ExitCode.OK] == []


def test_an_inline_function_has_no_symbol_and_the_answer_says_what_to_write(tmp_path):
    included = ("declarations = ", 'include = ["cells.h"]\ndeclarations = ')
    at = folder(tmp_path, included, ('"cs_get(size)"', '"cs_in(size)"'))
    code = "void *cs_get(size_t);\nstatic inline void *cs_in(size_t n) { return cs_get(n); }\n"
    (at / "cells.h").write_text(code, "utf-8")
    text = (at / "manifest.toml").read_text("utf-8")
    text = text.replace("alignment_bytes", 'headers = ["cells.h"]\nalignment_bytes')
    (at / "manifest.toml").write_text(text, "utf-8")
    last = steps(at)[-1]
    assert last.code is ExitCode.FAILURE
    assert 'as in malloc = "(cs_in(size))"' in last.found
    (at / "manifest.toml").write_text(text.replace('"cs_in(size)"', '"(cs_in(size))"'), "utf-8")
    assert all(step.code is ExitCode.OK for step in steps(at))


def test_an_allocator_that_takes_nothing_back_leaves_free_out(tmp_path):
    """Free does nothing then, and a heap that is full stays full."""
    at = folder(tmp_path, ('free = "cs_put(pointer)"\n', ""))
    found = {step.name: step for step in steps(at)}
    assert all(step.code is ExitCode.OK for step in found.values())
    assert found["free"].found == "there is none: nothing is given back"
    for scenario in ("worst-alloc", "worst-free", "worst-failing-alloc"):
        report = observe(request(f"{at}/", scenario))
        assert report.bound
        assert report.measurement.instructions <= report.bound.instructions
    assert report.measurement.result == 0


def test_what_is_wrong_with_a_call_is_told_as_a_matter_of_the_manifest(tmp_path):
    at = folder(tmp_path, ('"cs_get(size)"', '"cs_got(size)"'))
    assert "correct [call] of the manifest" in steps(at)[-1].found


def test_a_free_that_does_nothing_is_an_operation_in_replayed_states(tmp_path, capsys):
    """A compiler that sees that leaves its calls out, and costs are told of the calls before and behind."""
    at = folder(tmp_path, ('free = "cs_put(pointer)"\n', ""))
    (tmp_path / "wcet-probe.toml").write_text('allocators = ["."]\n', "utf-8")
    assert main(["replay", f"{at}/", "--operations", "300", "--json", "-q"]) == ExitCode.OK
    found = json.loads(capsys.readouterr().out)["operations"]["instructions"]
    assert len(found) == 300
    assert found.count(1) > 50
    assert found[0] > 1
