"""The plugin as a firmware team meets it: pytest in a folder of its own, with the plugin named and no other loaded."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import highspy  # noqa: F401  (pytester forgets the modules of its runs, and numpy bears to be loaded once only)
import pytest

import wcet_probe.answer.firmware.firmware
import wcet_probe.answer.witness.probe  # noqa: F401
from tests.support import image_of, images_dir
from wcet_probe.catalog.lookup import load_target

pytest_plugins = "pytester"

SOURCE = """\
int table[8];
int f(void)
{
    int n = 0;
    for (int i = 0; i < 8; i++)
        n += table[i];
    return n;
}
int endless(int *p)
{
    int n = 0;
    while (*p++)
        n++;
    return n;
}
"""
HEAVY = ("click", "rich", "unicorn", "capstone", "highspy", "numpy", "pypcode", "elftools")
FIRMWARE = 'image="build/fw.elf", entry="f"'


@pytest.fixture(scope="module")
def elf():
    return image_of(SOURCE, load_target("mpc603e"), ".c").elf


@pytest.fixture
def firmware(pytester, elf, monkeypatch):
    """A folder with an image, in which ``firmware(BODY, *OPTIONS)`` runs a file of tests."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    for name in ("CI", "BUILD_NUMBER"):  # there pytest prints each message twice, once more in its summary
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WCET_PROBE_CACHE_DIR", str(images_dir()))
    pytester.mkdir("build")
    (pytester.path / "build" / "fw.elf").write_bytes(elf)
    pytester.makeini("[pytest]\nwcet_target = mpc603e\n")

    def run(body, *options):
        pytester.makepyfile(test_bounds=f"import pytest\nfrom wcet_probe.errors import AnalysisError\n{body}\n")
        return pytester.runpytest_inprocess(
            "-p", "wcet_probe.pytest_plugin", "-p", "no:cacheprovider", "--strict-markers", *options
        )

    return run


def marked(arguments, body="pass"):
    return f"@pytest.mark.wcet({arguments})\ndef test_it():\n    {body}\n"


def test_a_claim_within_its_budget_passes(firmware):
    firmware(marked(f"{FIRMWARE}, budget_cycles=2000, budget_instructions=100")).assert_outcomes(passed=1)


def test_the_body_runs_after_the_claim(firmware):
    firmware(marked(FIRMWARE, "assert False")).assert_outcomes(failed=1)


def test_a_claim_over_its_budget_fails_with_one_message(firmware):
    result = firmware(marked(f"{FIRMWARE}, budget_cycles=7, budget_instructions=10", "raise SystemError"))
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert re.search(r"f of fw.elf on mpc603e is over its WCET budget:\ncycles: bound (\d+), budget 7, ", text)
    cycles, instructions = (
        map(int, re.search(rf"{unit}: bound (\d+), budget \d+, (\d+) over \(", text).groups())
        for unit in ("cycles", "instructions")
    )
    assert [bound - over for bound, over in (cycles, instructions)] == [7, 10]
    assert len(re.findall(r"\n  \d+ for 8 x f\+0x\w+ \(guest\.c:6\)", text)) == 2
    assert "all of it: wcet-probe bound build/fw.elf --entry f --target mpc603e --why" in text
    assert "Traceback" not in text
    assert "pytest_plugin.py" not in text
    assert "SystemError" not in text


def test_a_function_without_a_bound_fails_and_is_named(firmware):
    result = firmware(marked('image="build/fw.elf", entry="endless"'))
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines([r".*endless.*guest\.c:1\d.*"])
    assert "pytest_plugin.py" not in result.stdout.str()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (f"{FIRMWARE}, budget_cycle=7", "unknown argument 'budget_cycle': did you mean 'budget_cycles'?"),
        (f"{FIRMWARE}, budget_cycles='7'", "budget_cycles is '7'; give a whole number above 0."),
        (f"{FIRMWARE}, budget_instructions=True", "budget_instructions is True; give"),
        (f"{FIRMWARE}, target='mpc603'", "unknown target 'mpc603': did you mean 'mpc603e'?"),
        (f"{FIRMWARE}, heap='4K'", "heap does not go with image; leave it out."),
        (f"{FIRMWARE}, params=['N']", r"params is ['N']; give names and whole numbers"),
        (f"{FIRMWARE}, facts=7", "facts is 7; give a text."),
        ("'build/fw.elf'", "'build/fw.elf' has no name; write every argument as NAME=VALUE."),
        ("image='build/fw.elf'", "entry is missing"),
        ("target='mpc603e'", "name either image and entry, of a firmware, or an allocator."),
        (f"{FIRMWARE}, allocator='tlsf'", "name either image and entry, of a firmware, or an allocator."),
        ("allocator='tslf'", "unknown allocator 'tslf': did you mean 'tlsf'?"),
        ("allocator='tlsf', operation='fre'", "unknown operation 'fre': did you mean 'free'?"),
        ("allocator='tlsf', heap='4Q'", "'4Q' is no size in bytes"),
        ("allocator='tlsf', params={'sl-bit': 5}", "unknown parameter of tlsf 'sl-bit': did you mean 'sl-bits'?"),
    ],
)
def test_a_bad_mark_is_an_error_of_the_collection(firmware, arguments, told):
    result = firmware(marked(arguments))
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.assert_outcomes(errors=1)
    assert f"mark wcet of test_it: {told}" in result.stdout.str()
    assert "Traceback" not in result.stdout.str()


def test_an_unknown_function_is_suggested_when_the_test_runs(firmware):
    result = firmware(marked('image="build/fw.elf", entry="endles"'))
    result.assert_outcomes(failed=1)
    assert "unknown symbol of the image 'endles': did you mean 'endless'?" in result.stdout.str()


def test_the_option_goes_before_the_ini_file_and_the_mark_before_both(firmware):
    firmware(marked(FIRMWARE), "--wcet-target", "cortex-m4").assert_outcomes(failed=1)  # another byte order
    mark = f'{FIRMWARE}, target="mpc603e"'
    firmware(marked(mark), "--wcet-target", "cortex-m4").assert_outcomes(passed=1)


def test_a_fixture_may_build_the_image(firmware):
    built = "@pytest.fixture\ndef built(tmp_path):\n    __import__('os').rename('build/fw.elf', 'build/new.elf')\n"
    claim = '@pytest.mark.wcet(image="build/new.elf", entry="f")\ndef test_it(built): pass\n'
    firmware(built + claim).assert_outcomes(passed=1)


def test_an_expected_failure_is_one(firmware):
    firmware(f"@pytest.mark.xfail\n{marked(f'{FIRMWARE}, budget_cycles=7')}").assert_outcomes(xfailed=1)


def test_each_mark_is_a_claim(firmware):
    claim = f"@pytest.mark.wcet({FIRMWARE}, budget_cycles="
    firmware(f"{claim}9000)\n{claim}7)\nclass TestIt:\n    def test_it(self): pass").assert_outcomes(failed=1)


def test_the_fixture_proves_what_it_is_asked(firmware):
    result = firmware(f"""
def test_a_bound(wcet):
    bound = wcet({FIRMWARE})
    assert bound.instructions <= 100 and bound.cycles >= bound.instructions
    assert "no-interference" in [one.id for one in bound.assumptions]
    assert sum(block.cost for block in bound.worst_path) == bound.instructions
    assert bound.document["bound"]["cycles"] == bound.cycles

@pytest.mark.wcet({FIRMWARE})
def test_the_bound_of_the_mark(wcet):
    assert wcet() == wcet({FIRMWARE})

def test_no_bound_is_an_error_that_can_be_expected(wcet):
    with pytest.raises(AnalysisError, match="endless"):
        wcet(image="build/fw.elf", entry="endless")
""")
    result.assert_outcomes(passed=3)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("wcet(image='build/fw.elf', entry='endless')", "AnalysisError: .*endless"),
        ("wcet(image='build/other.elf', entry='f')", r"UsageError: cannot read build/other\.elf"),
        ("wcet()", r"UsageError: wcet\(\) without arguments is for the body"),
        ("wcet(imge='build/fw.elf')", "UsageError: unknown argument 'imge': did you mean 'image'"),
    ],
)
def test_an_error_of_the_fixture_shows_the_line_of_the_test_and_no_other(firmware, call, told):
    result = firmware(f"def test_it(wcet):\n    {call}")
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert f">       {call}" in text
    assert re.search(told, text)
    assert set(re.findall(r"^(\S+\.py):\d+:", text, re.MULTILINE)) == {"test_bounds.py"}


def test_both_operations_of_an_allocator(firmware):
    body = """
    malloc = wcet(allocator="tlsf", heap="64KiB", target="cortex-m4")
    free = wcet(allocator="tlsf", operation="free", heap=65536, params={"sl-bits": 4}, target="cortex-m4")
    assert malloc.document["verdict"] == free.document["verdict"] == "BOUNDED"
    assert malloc.subject == "malloc of tlsf on cortex-m4" and free.cycles != malloc.cycles
"""
    firmware(f"def test_it(wcet):{body}").assert_outcomes(passed=1)
    result = firmware(marked('allocator="tlsf", operation="free", heap="64KiB", budget_cycles=1'))
    result.assert_outcomes(failed=1)
    assert "wcet-probe tlsf --scenario worst-free --target mpc603e --heap 65536 --why" in result.stdout.str()


def test_the_bounds_are_properties_in_the_junit_file(firmware):
    firmware(marked(f"{FIRMWARE}, budget_cycles=7"), "--junitxml=junit.xml")
    found = {each.get("name"): each.get("value") for each in ET.parse("junit.xml").iter("property")}  # noqa: S314
    assert found["wcet_subject"] == "f of fw.elf on mpc603e"
    assert found["wcet_budget_cycles"] == "7"
    assert int(found["wcet_bound_cycles"]) > int(found["wcet_bound_instructions"]) > 7
    assert "no-interference" in found["wcet_assumptions"].split()


def test_workers_of_xdist_tell_the_same(firmware):
    pytest.importorskip("xdist")
    body = "".join(
        f"@pytest.mark.wcet({FIRMWARE}, budget_cycles={budget})\ndef test_{budget}(): pass\n" for budget in (7, 9000)
    )
    result = firmware(body, "-p", "xdist", "-n", "2", "--junitxml=junit.xml")
    result.assert_outcomes(passed=1, failed=1)
    assert "f of fw.elf on mpc603e is over its WCET budget" in result.stdout.str()
    names = [each.get("name") for each in ET.parse("junit.xml").iter("property")]  # noqa: S314
    assert names.count("wcet_bound_cycles") == 2


def test_the_mark_and_the_fixture_tell_what_they_are(firmware):
    firmware("", "--markers").stdout.fnmatch_lines(["@pytest.mark.wcet(*prove a bound*"])
    firmware("", "--fixtures").stdout.fnmatch_lines(["wcet -- *"])


def test_a_run_without_claims_loads_nothing_heavy(pytester):
    pytester.makepyfile(test_unmarked="def test_it(): pass")
    program = (
        "import sys, pytest\n"
        "code = pytest.main(['-p', 'wcet_probe.pytest_plugin', '-p', 'no:cacheprovider', '-q'])\n"
        f"print('loaded:', [name for name in sys.modules if name.split('.')[0] in {HEAVY!r}])\n"
        "print('ours:', sorted(name for name in sys.modules if name.startswith('wcet_probe')))\n"
        "raise SystemExit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )
    assert "loaded: []" in done.stdout
    assert "ours: ['wcet_probe', 'wcet_probe.errors', 'wcet_probe.pytest_plugin']" in done.stdout
