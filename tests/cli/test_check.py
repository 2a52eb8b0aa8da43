import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ci_samples import (
    BUDGET,
    FIXED,
    LENGTH,
    RESULT,
    TLSF,
    changed,
    golden,
    outcomes,
    project,
    read_budget_text,
    real,
)
from wcet_probe.answer.witness import probe
from wcet_probe.ci.baseline import baseline_document, baseline_entries, baseline_entry, load_baseline
from wcet_probe.ci.budgets import read_budgets
from wcet_probe.ci.judge import Place, Rule, contradicted, judge, percent, places
from wcet_probe.cli import budgeted, main
from wcet_probe.config import load_config
from wcet_probe.errors import BuildError, ContradictionError, UsageError
from wcet_probe.reports.formats.check_document import check_document
from wcet_probe.reports.screens.check import check_lines

COUNT = st.integers(0, 2**40)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The real results of two entries, each in its file."""
    made = project(tmp_path_factory.mktemp("results"))
    made.configure(TLSF, FIXED)
    return real(made.folder)


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Checks a new project; gives exit code, stdout and stderr."""
    made = project(tmp_path)
    monkeypatch.chdir(tmp_path)

    def check(entries, *options):
        made.configure(*entries)
        code = main(["check", *map(str, options)])
        return code, *capsys.readouterr()

    return check


@pytest.fixture
def saved(results, tmp_path):
    """Options that hand the real results to a check."""
    options = []
    for number, result in enumerate(results):
        (tmp_path / f"{number}.json").write_text(json.dumps(result))
        options += ["--results", f"{number}.json"]
    return options


# ------------------------------------------------------------------------------------------------------------- judging


@given(COUNT, COUNT, COUNT, st.integers(0, 400))
def test_a_bound_is_over_budget_above_it_and_worse_beyond_the_tolerance(bound, limit, accepted, percent_allowed):
    before = baseline_entry("", changed("bound/cycles", accepted))
    budget = replace(BUDGET, max_instructions=None, max_cycles=limit, tolerance_percent=percent_allowed)
    found = judge(budget, changed("bound/cycles", bound), before)
    rules = {finding.rule for finding in found.findings}
    assert (Rule.OVER_BUDGET in rules) == (bound > limit)
    assert (Rule.WORSE in rules) == (100 * bound > accepted * (100 + percent_allowed))
    assert found.exit_code == (3 if rules else 0)
    assert found.verdict == ("OVER_BUDGET" if bound > limit else "WORSE" if rules else "BOUNDED")


def test_an_observation_above_the_bound_is_graver_than_a_budget():
    found = judge(BUDGET, {**RESULT, "observed": {"instructions": 1001, "cycles": 5}})
    assert [finding.rule for finding in found.findings] == [Rule.CONTRADICTION, Rule.OVER_BUDGET]
    assert (found.exit_code, found.verdict) == (5, "CONTRADICTED")


def test_a_document_may_say_itself_that_it_is_contradicted_or_has_no_bound():
    assert judge(BUDGET, {**RESULT, "verdict": "CONTRADICTED"}).exit_code == 5
    assert judge(BUDGET, {**RESULT, "bound": None, "no_bound": "at f+0x4 (a.c:3)"}).findings[0].places == (
        Place("f", "a.c", 3),
    )
    assert "--no-bound" in judge(BUDGET, {**RESULT, "bound": None}).findings[0].message


def test_the_places_in_a_message_are_found():
    text = "no bound for the loops at b+0x10 (x.c:4), a.part.0+0xc, b+0x10 (x.c:4): say how often"
    assert places(text) == (Place("b", "x.c", 4), Place("a.part.0"))
    assert contradicted(BUDGET, "observed at q+0x0 (q.c:1)").findings[0].places == (Place("q", "q.c", 1),)


def test_a_finding_is_where_the_function_starts():
    assert judge(BUDGET, RESULT).findings[0].places == (Place("find", "find.c", 3),)
    rows = [
        {"address": f"0x{at:08x}", "function": name, "file": "l.c", "line": at} for at, name in ((9, "find"), (8, "x"))
    ]
    assert judge(BUDGET, {**RESULT, "listing": rows}).findings[0].places == (Place("find", "l.c", 9),)
    assert judge(BUDGET, changed("bound/worst_path", [])).findings[0].places == (Place("find"),)


def test_percentages_are_rounded_to_a_tenth_and_none_is_hidden():
    assert [percent(1000, new) for new in (1057, 943, 1000, 1001)] == ["+5.7 %", "-5.7 %", "0 %", "+0.1 %"]
    assert (percent(100_000, 100_001), percent(0, 4)) == ("+<0.1 %", "")


@pytest.mark.parametrize(
    ("path", "value", "note"),
    [
        ("image/compiler", "gcc 15", "the compiler changed from clang 22 to gcc 15"),
        ("image/sha256", "f" * 64, "the image changed from 0123456789abcdef to ffffffffffffffff"),
        ("bound/loops/0/because", "or more", "the flow facts or assumptions changed"),
        ("bound/flow_claims/0/constant", 4, "the flow facts or assumptions changed"),
        ("bound/assumptions/0/statement", "little else runs", "the flow facts or assumptions changed"),
        ("target_configuration/timing/integer/cycles", 2, "the target's numbers changed"),
        ("bound/loops/0/where", "facts.toml:2", None),
        ("bound/loops/0/observed_max", 3, None),
    ],
)
def test_what_changed_since_the_baseline_is_noted(path, value, note):
    found = judge(BUDGET, changed(path, value), baseline_entry("", RESULT))
    assert found.notes == ((f"since the baseline {note}",) if note else ())


# ----------------------------------------------------------------------------------------------------- the command line


def test_what_is_within_its_budget_passes(run):
    code, out, err = run([TLSF + "max_instructions = 123\n", FIXED], "--json")
    document = json.loads(out)
    assert (code, err, document["exit_code"]) == (0, "", 0)
    allocator, firmware = document["entries"]
    assert allocator["observed"]["instructions"] <= allocator["bound"]["instructions"] <= 123
    assert (firmware["verdict"], firmware["observed"], firmware["findings"]) == ("BOUNDED", None, [])


def test_a_bound_one_above_its_budget_is_exit_3(run, results, saved):
    bound = results[0]["bound"]["instructions"]
    assert run([f"{TLSF}max_instructions = {bound}\n", FIXED], *saved)[0] == 0
    code, out, _ = run([f"{TLSF}max_instructions = {bound - 1}\n", FIXED], *saved)
    assert code == 3
    assert "OVER_BUDGET" in out
    assert f"{bound:,} instructions is 1 above the budget" in " ".join(out.split())


def test_a_loop_without_a_bound_is_exit_4_at_its_line(run):
    code, out, _ = run([FIXED + "max_cycles = 1\n", LENGTH], "--json")
    over, unbounded = json.loads(out)["entries"]
    assert (code, over["verdict"], unbounded["verdict"]) == (4, "OVER_BUDGET", "UNBOUNDED")
    assert unbounded["findings"][0]["places"] == [{"function": "length", "file": "src/guest.c", "line": 17}]


def test_a_fact_is_used_and_what_is_said_of_it_does_not_depend_on_the_folder(run, tmp_path):
    fact = '[[loop]]\nfunction = "length"\noffset = 8\nmax = "N"\nbecause = "nobody links more"\n'
    (tmp_path / "facts.toml").write_text(fact)
    entry = LENGTH + 'facts = "facts.toml"\nparameters = { N = 9 }\n'
    code, _, err = run([entry])
    assert code == 2  # the error tells the hash of what the fact speaks of
    (tmp_path / "facts.toml").write_text(fact + re.search('sha256 = "[0-9a-f]+"', err)[0])
    code, out, err = run([entry], "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["entries"][0]["name"] == "length in fw.elf, N=9"
    (budget,) = read_budgets(load_config(tmp_path))
    result = budgeted.prove(budget, load_config(tmp_path), lambda *_: None)
    assert result["bound"]["loops"][0]["where"] == "facts.toml:1"
    assert str(tmp_path) not in out + json.dumps(result)


def test_a_contradiction_is_the_largest_exit_code(run, monkeypatch):
    def observe(*_):
        raise ContradictionError("the loop at take+0x5c (a.c:18) ran 9 times, at most 8 are claimed; correct the fact.")

    monkeypatch.setattr(probe, "observe", observe)
    code, out, _ = run([TLSF, LENGTH], "--save-baseline", "main", "--json")
    assert (code, [one["verdict"] for one in json.loads(out)["entries"]]) == (5, ["CONTRADICTED", "UNBOUNDED"])


def test_any_other_error_names_the_entry_and_writes_nothing(run, monkeypatch, tmp_path):
    def observe(*_):
        raise BuildError("no compiler; install one.")

    monkeypatch.setattr(probe, "observe", observe)
    code, out, err = run([FIXED, TLSF], "--junit", "j.xml")
    assert (code, out) == (1, "")
    assert err == "wcet-probe: tlsf malloc, heap 4 KiB on mpc603e: no compiler; install one.\n"
    assert not (tmp_path / "j.xml").exists()


def test_given_results_are_taken_and_nothing_is_run(run, saved, monkeypatch):
    monkeypatch.setattr(budgeted, "prove", None)
    monkeypatch.setattr(probe, "observe", None)
    assert run([TLSF, FIXED], *saved)[0] == 0


@pytest.mark.parametrize(
    "entry",
    [
        TLSF.replace("malloc", "free"),
        TLSF.replace("4KiB", "8KiB"),
        TLSF.replace("mpc603e", "cortex-m4"),
        TLSF + "parameters = { sl-bits = 4 }\n",
        TLSF + 'caches = "d:size=8KiB"\n',
        TLSF + 'caches = "none"\n',
        LENGTH,
        FIXED + "parameters = { N = 3 }\n",
    ],
)
def test_a_result_of_something_else_is_not_taken(run, saved, entry):
    code, _, err = run([entry], *saved)
    assert code == 2
    assert "none of the --results is of this entry" in err


def test_a_result_of_another_image_is_not_taken(run, saved, tmp_path):
    (tmp_path / "build" / "fw.elf").write_bytes(b"\x7fELF changed since")
    assert run([FIXED], *saved)[0] == 2
    (tmp_path / "build" / "fw.elf").unlink()  # a machine that has only the results
    assert run([FIXED], *saved)[0] == 0


def test_two_results_of_one_entry_are_one_too_many(run, saved):
    code, _, err = run([TLSF], *saved, *saved)
    assert code == 2
    assert "2 of the --results are of this entry" in err


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"format": "wcet-probe-result", "version": 2}', '{"format": "wcet-probe-results"}']
)
def test_a_file_that_holds_no_results_is_a_usage_error(run, tmp_path, text):
    (tmp_path / "r.json").write_text(text)
    code, out, err = run([TLSF], "--results", "r.json")
    assert (code, out) == (2, "")
    assert "give it what --json printed" in err


@given(st.data())
def test_a_damaged_result_is_a_usage_error_or_none_at_all(data):
    spots = [path for path in _paths(RESULT) if not path.startswith(("format", "version"))]
    path = data.draw(st.sampled_from(spots))
    value = data.draw(st.sampled_from([None, 4, "x", [], {}, [4], {"x": []}]))
    from wcet_probe.ci.compare import compare
    from wcet_probe.ci.result_files import refusing_damage

    broken = changed(path, value)
    for act in (lambda: judge(BUDGET, broken, baseline_entry("", RESULT)), lambda: compare([RESULT], [broken])):
        try:
            with refusing_damage():
                act()
        except UsageError:
            pass


def _paths(value, path=""):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        here = f"{path}/{key}" if path else str(key)
        yield here
        yield from _paths(item, here)


# ------------------------------------------------------------------------------------------------------------ baselines


def test_a_saved_baseline_is_met_by_the_same_bounds_and_not_by_larger_ones(run, results, saved, tmp_path):
    entries = [TLSF, FIXED]
    assert run(entries, *saved, "--save-baseline", "main")[0] == 0
    file = tmp_path / "wcet-probe-baselines" / "main.json"
    assert [one.subject for one in load_baseline("main", tmp_path)] == [
        "fixed on cortex-m4",
        "tlsf worst-alloc on mpc603e, heap 4 KiB",
    ]
    assert run(entries, *saved, "--baseline", "main")[0] == 0
    bound = results[0]["bound"]["instructions"]
    file.write_text(file.read_text().replace(f'"instructions": {bound}', f'"instructions": {bound - 2}'))
    code, out, _ = run(entries, *saved, "--baseline", "main")
    assert code == 3
    assert "WORSE" in out
    assert run([TLSF + "tolerance_percent = 2\n", FIXED], *saved, "--baseline", "main")[0] == 0
    assert (
        run(entries, *saved, "--baseline", "main", "--save-baseline", "main")[0] == 3
    )  # first compared, then accepted
    assert run(entries, *saved, "--baseline", "main")[0] == 0


def test_a_baseline_has_the_same_bytes_again_and_no_place_of_this_machine(run, saved, tmp_path):
    files = [tmp_path / "wcet-probe-baselines" / f"{name}.json" for name in ("a", "b")]
    assert [run([TLSF, FIXED], *saved, "--save-baseline", file.stem)[0] for file in files] == [0, 0]
    run([FIXED, TLSF], *saved, "--save-baseline", "b")
    assert files[0].read_bytes() == files[1].read_bytes()
    assert str(tmp_path) not in files[0].read_text()


def test_only_bounds_are_saved_and_none_that_is_contradicted(run, monkeypatch, tmp_path):
    monkeypatch.setattr(probe, "observe", lambda *_: (_ for _ in ()).throw(ContradictionError("never.")))
    run([TLSF, LENGTH, FIXED + "max_cycles = 1\n"], "--save-baseline", "main")
    assert [one.name for one in load_baseline("main", tmp_path)] == ["fixed in fw.elf"]


def test_an_entry_that_the_baseline_lacks_is_told_and_passes(run, saved):
    run([FIXED], *saved, "--save-baseline", "main")
    code, _, err = run([TLSF, FIXED], *saved, "--baseline", "main")
    assert (code, err) == (0, "wcet-probe: tlsf malloc, heap 4 KiB on mpc603e is not in the baseline main.\n")


@pytest.mark.parametrize("name", ["../main", "", ".hidden", "a/b", "a b", "ä"])
def test_a_baseline_is_a_name_and_no_path(run, saved, name):
    for option in ("--baseline", "--save-baseline"):
        if option == "--save-baseline" or name:
            code, _, err = run([TLSF, FIXED], *saved, option, name)
            assert code == (0 if not name else 2), err


def test_a_missing_or_damaged_baseline_says_how_it_is_written(run, saved, tmp_path):
    code, _, err = run([FIXED], *saved, "--baseline", "main")
    assert code == 2
    assert "write it with --save-baseline main" in err
    (tmp_path / "wcet-probe-baselines").mkdir()
    for text in ("{", "{}", '{"format": "wcet-probe-baseline", "version": 1, "entries": [{}]}'):
        (tmp_path / "wcet-probe-baselines" / "main.json").write_text(text)
        code, _, err = run([FIXED], *saved, "--baseline", "main")
        assert code == 2
        assert "write it anew" in err


def test_a_baseline_is_read_as_it_was_written(tmp_path):
    entries = (baseline_entry("a", RESULT), baseline_entry("b", changed("image/compiler", "")))
    document = json.loads(json.dumps(baseline_document(reversed(entries))))
    assert baseline_entries(document, tmp_path) == entries


# --------------------------------------------------------------------------------------------------------------- golden


def test_the_table_on_a_terminal():
    golden("check.txt", "\n".join(check_lines(outcomes(), 100)) + "\n")


def test_the_document():
    golden("check.json", json.dumps(check_document(outcomes(), "main"), indent=2) + "\n")


def test_the_help(run):
    golden("help-check.txt", run([TLSF], "--help")[1])


def test_names_of_entries_are_taken_from_what_they_are_of():
    assert [one.name for one in read_budget_text(TLSF + FIXED)] == ["tlsf malloc, heap 4 KiB", "fixed in fw.elf"]
