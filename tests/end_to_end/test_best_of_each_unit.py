"""Where another state is the dearest in instructions than in cycles, each answer names the best witness of each."""

import json
import re
from contextlib import redirect_stdout
from html import unescape

import pypdf
import pytest

from tests.support import images_dir
from wcet_probe.cli import main

RUN = ("half-fit", "--target", "mpc603e", "--scenario", "worst-free", "-q")
HEAPS = ("--heap", "4KiB", "--heap", "64KiB")


@pytest.fixture(scope="module")
def call(tmp_path_factory):
    def run(*arguments):
        file = tmp_path / "out.txt"
        with pytest.MonkeyPatch.context() as patch, file.open("w", encoding="utf-8") as out, redirect_stdout(out):
            patch.setenv("WCET_PROBE_CACHE_DIR", str(images_dir()))
            patch.chdir(tmp_path)
            assert main([str(argument) for argument in arguments]) == 0
        return file.read_text("utf-8")

    tmp_path = tmp_path_factory.mktemp("units")
    run.folder = tmp_path
    return run


@pytest.fixture(scope="module")
def result(call):
    """Of a call whose dearest states differ; and a file with it."""
    text = call(*RUN, "--heap", "4KiB", "--json")
    (call.folder / "result.json").write_text(text, "utf-8")
    found = json.loads(text)
    assert found["witnesses"]["instructions"]["variant"] != found["witnesses"]["cycles"]["variant"]
    assert found["witnesses"]["instructions"]["value"] > found["observed"]["instructions"]
    return found


def numbers(result):
    """Dearest known calls in words, by unit."""
    return tuple(f"{result['witnesses'][unit]['value']:,}" for unit in ("instructions", "cycles"))


def words(markup):
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", markup)))


def test_the_first_screen_has_the_best_of_each(call, result):
    instructions, cycles = numbers(result)
    screen = call(*RUN, "--heap", "4KiB")
    assert re.search(rf"^ +instructions +\d+ +{instructions} ", screen, re.MULTILINE)
    assert re.search(rf"^ +cycles +[\d,]+ +{cycles} ", screen, re.MULTILINE)
    told = re.sub(r"\s+", " ", screen)
    variant = result["witnesses"]["instructions"]["variant"]
    assert f"in different states; the one with most instructions is: {variant}" in told


def test_the_dossier_has_the_best_of_each_in_summary_comparison_and_picture(call, result):
    instructions, cycles = numbers(result)
    call("report", "result.json", "-q", "-o", "dossier")
    page = words((call.folder / "dossier" / "report.html").read_text("utf-8"))
    pages = pypdf.PdfReader(call.folder / "dossier" / "report.pdf").pages
    for text in (page, re.sub(r"\s+", " ", " ".join(one.extract_text() for one in pages))):
        bounds = [f"{result['bound'][unit]:,}" for unit in ("instructions", "cycles")]
        assert f"4 KiB {bounds[0]} {instructions} {bounds[1]} {cycles} BOUNDED" in text
        assert f"Instructions: {instructions} against {bounds[0]}" in text
        assert f"cycles: {cycles} against {bounds[1]}" in text
        assert "No one state is the dearest in both units" in text
        assert f"most instructions in this one: {result['witnesses']['instructions']['variant']}" in text
    assert f"half-fit free: observed {instructions}, bound" in page
    assert f"half-fit free: observed {cycles}, bound" in page


def test_pictures_have_the_best_of_each(call, result):
    instructions, cycles = numbers(result)
    bars = words(call("plot", "result.json", "--kind", "bound-against-observed"))
    assert f"half-fit free: observed {instructions}, bound" in bars
    assert f"half-fit free: observed {cycles}, bound" in bars
    (call.folder / "heaps.json").write_text(call(*RUN, *HEAPS, "--json"), "utf-8")
    lines = words(call("plot", "heaps.json", "--kind", "wcet-against-heap"))
    assert f"half-fit, observed: {instructions} instructions at 4 KiB" in lines


def test_tables_of_heaps_growth_and_matrix_have_the_best_of_each(call, result):
    instructions, cycles = numbers(result)
    bounds = [f"{result['bound'][unit]:,}" for unit in ("instructions", "cycles")]
    assert f"4 KiB {instructions} {bounds[0]} {cycles} {bounds[1]}" in " ".join(call(*RUN, *HEAPS).split())
    growth = call("growth", "half-fit", "--scenario", "worst-free", "--target", "mpc603e", "-q")
    assert f"exactly: instructions = {instructions}\n" in growth
    own = ("--allocator", "half-fit", "--scenario", "worst-free", "--target", "mpc603e", "--heap", "4KiB", "-q")
    matrix = call("matrix", *own)
    assert f"half-fit [{instructions}]" in re.sub(r" +", " ", matrix)
    assert f"half-fit [{cycles}]" in re.sub(r" +", " ", matrix)
