import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ci_samples import ALLOCATOR_RESULT, LOOP, RESULT, changed, golden
from wcet_probe.ci.baseline import baseline_document, baseline_entry
from wcet_probe.ci.compare import Change, Move, compare
from wcet_probe.cli import main
from wcet_probe.reports.screens.difference import difference_lines

SECOND = LOOP | {"address": "0x00000120", "location": "find+0x20 (find.c:12)", "line": 12, "max": 4}


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Writes the documents and tells their difference; gives exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def diff(old, new, *options):
        for name, document in (("old.json", old), ("new.json", new)):
            (tmp_path / name).write_text(document if isinstance(document, str) else json.dumps(document))
        code = main(["diff", "old.json", "new.json", *options])
        return code, *capsys.readouterr()

    return diff


def several(*results):
    return {"format": "wcet-probe-results", "version": 1, "results": list(results)}


def difference(old, new):
    (found,) = compare([old], [new]).differences
    return found


def test_nothing_changed_between_a_result_and_itself(run):
    code, out, _ = run(ALLOCATOR_RESULT, ALLOCATOR_RESULT, "--fail-on-worse")
    assert code == 0
    assert out.splitlines()[1:] == ["  nothing changed that the bound depends on", "", "No bound moved."]


@pytest.mark.parametrize(
    ("path", "value", "change"),
    [
        ("tool/version", "0.2.0", Change("tool", "wcet-probe", "0.1.0", "0.2.0")),
        ("tool/packages/highspy", "1.16.0", Change("tool", "highspy", "1.15.1", "1.16.0")),
        ("heap_bytes", 8192, Change("heap", "", "4096", "8192")),
        ("image/compiler", "gcc 15", Change("compiler", "", "clang 22", "gcc 15")),
        ("image/flags", ["-O3"], Change("flag", "", "-O2", "")),
        ("image/sha256", "f" * 64, Change("image", "", "0123456789abcdef", "f" * 16)),
        ("image/functions/0/sha256", "cd" * 32, Change("code of", "find", "ab" * 8, "cd" * 8)),
        ("parameters/sl-bits", 4, Change("parameter", "sl-bits", "5", "4")),
        ("bound/parameters/N", 9, Change("parameter", "N", "8", "9")),
        ("bound/loops/0/max", 12, Change("loop bound", "find+0x8 (find.c:7)", "9, fact: N", "12, fact: N")),
        ("bound/loops/0/total", 12, Change("loop bound", "find+0x8 (find.c:7)", "9, fact: N", "9, 12 in all, fact: N")),
        ("bound/loops", [], Change("loop bound", "find+0x8 (find.c:7)", "9, fact: N", "")),
        ("bound/flow_claims/0/constant", 4, Change("flow fact", "", "calls in all: 3", "")),
        ("bound/assumptions", [], Change("assumption", "", "nothing else runs", "")),
        ("target_configuration/timing/integer/cycles", 2, Change("target", "timing.integer.cycles", "1", "2")),
        ("target_configuration/caches/dcache/sets", 64, Change("cache", "caches.dcache.sets", "128", "64")),
        ("target_configuration/caches/dcache", None, Change("cache", "caches.dcache.sets", "128", "")),
    ],
)
def test_what_changed_is_named(path, value, change):
    found = difference(ALLOCATOR_RESULT, changed(path, value, ALLOCATOR_RESULT))
    assert change in found.changes
    assert {one.kind for one in found.changes} == {change.kind}
    assert not found.moves


def test_what_a_result_of_an_earlier_version_does_not_say_is_no_change():
    older = {key: value for key, value in RESULT.items() if key != "target_configuration"}
    older |= {"tool": {"name": "wcet-probe", "version": "0.1.0"}, "image": {**RESULT["image"], "functions": None}}
    assert difference(older, RESULT).changes == difference(RESULT, older).changes == ()


def test_a_loop_that_moved_to_another_line_is_the_same_loop():
    old = changed("bound/loops", [LOOP, SECOND])
    moved = [{**loop, "line": loop["line"] + 5, "location": "elsewhere"} for loop in (LOOP, SECOND)]
    assert difference(old, changed("bound/loops", moved)).changes == ()
    moved[1]["max"] = 5
    assert difference(old, changed("bound/loops", moved)).changes == (
        Change("loop bound", "elsewhere", "4, fact: N", "5, fact: N"),
    )


def test_a_loop_that_comes_first_is_new_and_the_other_as_it_was():
    found = difference(changed("bound/loops", [SECOND]), changed("bound/loops", [LOOP, SECOND]))
    assert found.changes == (Change("loop bound", LOOP["location"], "", "9, fact: N"),)


def test_two_loops_that_left_a_line_are_gone():
    three = [LOOP | {"address": f"0x0000010{at}", "max": at} for at in (1, 2, 3)]
    found = difference(changed("bound/loops", three), changed("bound/loops", three[:1]))
    assert [(change.old, change.new) for change in found.changes] == [("2, fact: N", ""), ("3, fact: N", "")]


def test_of_a_loop_in_several_contexts_the_largest_bound_counts():
    small = LOOP | {"max": 2, "context": ["0x00000200"]}
    assert difference(changed("bound/loops", [LOOP, small]), changed("bound/loops", [small, LOOP])).changes == ()


def test_bounds_and_observations_that_moved_are_told():
    old = changed("bound/cycles", 1800, ALLOCATOR_RESULT)
    found = difference(old, changed("observed/cycles", 1400, ALLOCATOR_RESULT))
    assert found.moves == (Move("bound", "cycles", 1800, 2000), Move("observed", "cycles", 1500, 1400))


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_worse_is_a_bound_that_went_up(old, new):
    assert compare([changed("bound/cycles", old)], [changed("bound/cycles", new)]).is_worse == (new > old)
    seen = [changed("observed/cycles", count, ALLOCATOR_RESULT) for count in (old, new)]
    assert not compare(seen[:1], seen[1:]).is_worse


def test_a_bound_that_went_up_or_is_lost_fails_where_that_is_asked_for(run):
    worse = changed("bound/cycles", 2001)
    assert run(RESULT, worse)[0] == 0
    assert run(RESULT, worse, "--fail-on-worse")[0] == 3
    assert run(worse, RESULT, "--fail-on-worse")[0] == 0
    assert run(ALLOCATOR_RESULT, {**ALLOCATOR_RESULT, "bound": None}, "--fail-on-worse")[0] == 3
    code, out, _ = run(several(RESULT, ALLOCATOR_RESULT), several(RESULT), "--fail-on-worse")
    assert code == 3
    assert "tlsf worst-alloc on mpc603e, heap 4 KiB: only in the first" in out


def test_several_results_are_paired_by_what_they_are_of():
    other = changed("heap_bytes", 8192, ALLOCATOR_RESULT)
    again = changed("parameters/sl-bits", 4, ALLOCATOR_RESULT)
    found = compare([RESULT, ALLOCATOR_RESULT, again], [other, again, ALLOCATOR_RESULT, RESULT])
    assert [one.subject for one in found.differences] == [
        "find on mpc603e",
        "tlsf worst-alloc on mpc603e, heap 4 KiB",
        "tlsf worst-alloc on mpc603e, heap 4 KiB (2)",
    ]
    assert found.only_new == ("tlsf worst-alloc on mpc603e, heap 8 KiB",)


def test_a_baseline_is_compared_by_its_hashes(run):
    baseline = baseline_document([baseline_entry("any", RESULT)])
    after = changed("bound/cycles", 2100, changed("image/compiler", "gcc 15", changed("bound/loops/0/because", "so")))
    code, out, _ = run(baseline, after, "--fail-on-worse")
    assert code == 3
    assert "compiler: clang 22 -> gcc 15" in out
    assert "flow facts or assumptions: " in out
    assert run(baseline, ALLOCATOR_RESULT)[0] == 0
    assert run(baseline, baseline)[1].endswith("No bound moved.\n")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "wcet-probe-bound", "version": 1}'])
def test_what_is_no_result_is_a_usage_error(run, text):
    code, out, err = run(RESULT, text)
    assert (code, out) == (2, "")
    assert "give" in err
    assert "bug" not in err


def test_a_file_that_is_not_there_is_a_usage_error(capsys):
    assert main(["diff", "no.json", "no.json"]) == 2
    assert "cannot read no.json: No such file or directory" in capsys.readouterr().err


def test_the_difference_of_several_pairs():
    new = changed("bound/cycles", 1900, changed("image/compiler", "gcc 15", changed("bound/loops/0/max", 10)))
    after = changed("bound/instructions", 100_001, changed("observed/cycles", 12, ALLOCATOR_RESULT))
    lines = difference_lines(compare([RESULT, ALLOCATOR_RESULT], [new, after]), 100)
    golden("diff.txt", "\n".join(lines) + "\n")


def test_the_help(capsys):
    assert main(["diff", "--help"]) == 0
    golden("help-diff.txt", capsys.readouterr().out)
