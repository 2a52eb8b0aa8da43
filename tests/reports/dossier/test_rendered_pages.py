"""The page in a real browser: it never scrolls sideways, and on paper no line leaves the sheet."""

import re
import shutil
import subprocess

import pytest

from tests.dossier_sample import sample
from wcet_probe.reports.dossier.html import render_html

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)
MEASURE = """<script>
addEventListener("load", () => {
  const frame = document.createElement("iframe");
  frame.style = "border:0;position:absolute;left:0;top:0;height:900px;width:WIDTHpx";
  frame.srcdoc = PAGE;
  frame.onload = () => {
    const page = frame.contentDocument, root = page.documentElement;
    const boxes = [...page.querySelectorAll("body *")].filter(box => !box.closest(".scroll, .skip"));
    const out = boxes.filter(box => box.getBoundingClientRect().right > root.clientWidth + 1).map(box => box.tagName);
    const small = [...page.querySelectorAll("svg")].map(svg => Math.round(svg.getBoundingClientRect().width));
    document.title = JSON.stringify([root.scrollWidth, root.clientWidth, out.slice(0, 5), Math.min(...small)]);
  };
  document.body.append(frame);
});
</script>"""

pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs chromium, of which none is on the PATH")


def browse(folder, *arguments):
    command = [BROWSER, *FLAGS, f"--user-data-dir={folder / 'profile'}", *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout


@pytest.mark.parametrize("width", [390, 768, 1366])
def test_the_page_does_not_scroll_sideways(width, tmp_path):
    # In a frame, because a window has a least width of its own.
    quoted = json_for_script(render_html(sample()))
    test_page = tmp_path / "measured.html"
    measure = MEASURE.replace("WIDTH", str(width)).replace("PAGE", quoted)
    test_page.write_text(f"<!DOCTYPE html><meta charset=utf-8><title>no</title><body>{measure}", encoding="utf-8")
    shown = browse(tmp_path, "--virtual-time-budget=5000", "--window-size=1600,1000", "--dump-dom", test_page.as_uri())
    found = re.search(r"<title>\[(\d+),(\d+),\[(.*?)\],(\d+)\]</title>", shown)
    assert found, shown[:300]
    scrolled, visible, sticking_out, narrowest = int(found[1]), int(found[2]), found[3], int(found[4])
    assert visible in range(width - 20, width + 1)
    assert scrolled <= visible
    assert not sticking_out
    assert narrowest >= 500


def json_for_script(page):
    import json

    return json.dumps(page).replace("</", "<\\/")


def test_on_paper_every_text_is_on_the_sheet(tmp_path):
    from pypdf import PdfReader

    page, printed = tmp_path / "page.html", tmp_path / "page.pdf"
    page.write_text(render_html(sample()), encoding="utf-8")
    browse(tmp_path, "--no-pdf-header-footer", f"--print-to-pdf={printed}", page.as_uri())
    reader = PdfReader(printed)
    assert 8 <= len(reader.pages) <= 18
    text = re.sub(r"\s", "", "".join(sheet.extract_text() for sheet in reader.pages))
    # Each stands at the right end of something wide: the last column, a long line of code.
    assert "countofkind11" in text
    assert f"{70 * 1234567 * 11:,}" in text
    assert text.count("x" * 58 + "|") == 91
    for sheet in reader.pages:
        assert not beyond(sheet), sheet.extract_text()[:80]


def beyond(sheet):
    """Texts that start outside of the sheet."""
    width, height = map(float, sheet.mediabox[2:])
    found = []

    def visit(text, matrix, text_matrix, _font, _size):
        x = text_matrix[4] * matrix[0] + text_matrix[5] * matrix[2] + matrix[4]
        if text.strip() and not -1 <= x <= max(width, height):
            found.append(text)

    sheet.extract_text(visitor_text=visit)
    return found
