import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from tests.dossier_sample import HASH, HOSTILE, LONG_LINE, SIGNS, picture, sample
from wcet_probe.reports.dossier.blocks import Dossier, Figure, Paragraph, Section, Table
from wcet_probe.reports.dossier.html import render_html
from wcet_probe.reports.dossier.numbered import blocks, numbered, pieces

STYLE = Path(__file__).parents[3] / "reports" / "templates" / "dossier.css"
VOID = {"meta", "br", "wbr", "link", "img", "input", "hr"}


class Page(HTMLParser):
    """The elements of a page with their attributes, and its text; an element that is closed wrongly is an error."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.parts = [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in {"style", "title"}:
            self.parts.append(data)

    def all(self, *tags):
        return [attributes for tag, attributes in self.elements if tag in tags]

    @property
    def text(self):
        return "".join(self.parts)


@pytest.fixture(scope="module")
def source():
    return render_html(sample())


@pytest.fixture(scope="module")
def page(source):
    return Page(source)


def test_every_text_is_there_as_it_was_written(page):
    for text in (HASH, HOSTILE, SIGNS, LONG_LINE, "Assumptions & restrictions <all of them>"):
        assert text in page.text
    assert page.text.count("To be filled in:") == 3
    assert page.text.count("to be filled in") == 1


def test_identifiers_are_unique_and_links_resolve(page):
    found = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(found) == len(set(found))
    links = [attributes["href"] for attributes in page.all("a")]
    assert {"#report", "#identification", "#flow", "#sign-off"} <= set(links)
    assert {link[1:] for link in links} <= set(found)
    named = {attributes["aria-labelledby"] for _, attributes in page.elements if "aria-labelledby" in attributes}
    assert named <= set(found)


def test_references_inside_a_picture_stay_inside_it(source):
    assert len(set(re.findall(r'fill="url\(#([^)]+)\)"', source))) == 3
    for name in re.findall(r"url\(#([^)]+)\)", source):
        assert f'id="{name}"' in source


def test_there_is_one_title_and_no_level_of_headings_is_left_out(page):
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert {2, 3, 4} <= set(levels)


def test_landmarks_language_and_a_way_past_the_contents(page):
    assert page.all("html") == [{"lang": "en"}]
    assert [len(page.all(tag)) for tag in ("header", "nav", "main", "footer")] == [1, 1, 1, 1]
    assert page.all("a")[0] == {"class": "skip", "href": "#report"}


def test_every_picture_has_a_name(page):
    assert [attributes["aria-label"] for attributes in page.all("svg")] == [
        "Bars that grow with the heap",
        'Bars with "quotes" & <signs>',
        "A tall column of bars",
    ]
    assert all(attributes["role"] == "img" for attributes in page.all("svg"))


def test_every_table_has_a_caption_and_its_header_cells_a_scope(page):
    assert len(page.all("caption")) == len(page.all("table")) == 3
    assert page.all("th")
    assert all(attributes["scope"] == "col" for attributes in page.all("th"))


def test_what_scrolls_can_be_reached_by_keyboard(page):
    boxes = [a for _, a in page.elements if "scroll" in (a.get("class") or "").split()]
    assert len(boxes) == len(page.all("table", "pre", "svg"))
    assert all(box["tabindex"] == "0" and box["role"] == "region" for box in boxes)


def test_nothing_is_fetched_and_nothing_runs(source, page):
    assert not page.all("script", "iframe", "object", "link", "img")
    assert not [a for _, attributes in page.elements for a in attributes if a.startswith("on") or a == "src"]
    assert not re.search(r"https?:(?!//www\.w3\.org/2000/svg)|@import|url\((?!#)", source)
    assert any("default-src 'none'" in attributes.get("content", "") for attributes in page.all("meta"))


def test_numbers_run_through_the_dossier(page):
    labels = re.findall(r"(?:Table|Figure|Listing) \d+", page.text)
    assert labels == [
        *("Table 1", "Table 2", "Table 3"),
        *("Figure 1", "Figure 2", "Figure 3"),
        *("Listing 1", "Listing 2"),
    ]


def test_the_anchor_of_a_table_does_not_depend_on_other_sections():
    def anchors(*sections):
        return [block["anchor"] for block in blocks(numbered(Dossier("t", "s", sections))) if "anchor" in block]

    one = Table("c", ("h",), (("1",),), "l")
    first, second = Section("A", "a", (one, one)), Section("B", "b", (Paragraph("p"), one))
    assert anchors(second) == ["b-table-1"]
    assert anchors(first, second) == ["a-table-1", "a-table-2", "b-table-1"]


def test_the_same_dossier_gives_the_same_page(source):
    assert render_html(sample()) == source


def test_two_sections_of_one_anchor_are_refused():
    twice = (Section("A", "same", ()), Section("B", "b", (), (Section("C", "same", ()),)))
    with pytest.raises(ValueError, match="same"):
        render_html(Dossier("t", "s", twice))


def test_a_row_with_a_cell_too_few_is_refused():
    table = Table("short one", ("a", "b"), (("1",),), "lr")
    with pytest.raises(ValueError, match="short one"):
        render_html(Dossier("t", "s", (Section("A", "a", (table,)),)))


def test_a_text_of_backticks_without_a_partner_stays_as_it_is():
    assert "a ` b" in Page(render_html(Dossier("t", "s", (Section("A", "a", (Paragraph("a ` b"),)),)))).text


def test_an_empty_dossier_is_a_page():
    assert Page(render_html(Dossier("t", "", ()))).all("h1")


@pytest.mark.parametrize("prolog", ["", '<?xml version="1.0" encoding="UTF-8"?>\n'])
def test_a_picture_comes_without_its_prolog(prolog):
    figure = Figure("c", "words", prolog + picture("p"))
    page = render_html(Dossier("t", "s", (Section("A", "a", (figure,)),)))
    assert "<?xml" not in page
    assert "<svg " in page


@pytest.mark.parametrize("text", [HASH, "a/b/" + "c" * 50, "two words", "", "x" * 100, f"`{HASH}` and\tmore  "])
def test_pieces_put_together_are_the_text(text):
    assert "".join(pieces(text)) == text


def test_a_hash_is_broken_between_groups_and_a_path_behind_separators():
    assert pieces(HASH) == [HASH[i : i + 8] for i in range(0, 64, 8)]
    assert pieces("src/some_long_folder/file_of_the_heap.c") == [
        *("src/", "some_", "long_", "folder/"),
        *("file_", "of_", "the_", "heap.", "c"),
    ]


def test_an_option_and_the_number_of_an_assumption_stay_whole():
    assert pieces("cc -fno-asynchronous-unwind-tables x") == ["cc -fno-asynchronous-unwind-tables x"]
    page = render_html(Dossier("t", "s", (Section("A", "a", (Paragraph("`f --heap=1` <-x> by A-04"),)),)))
    kept = re.findall(r'<span class="kept">(.*?)</span>', page)
    assert kept == ["--heap=1", "-x", "A-04"]
    assert "f --heap=1 <-x> by A-04" in Page(page).text


def luminance(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def schemes():
    found = re.findall(r":root \{([^}]*--ground[^}]*)\}", STYLE.read_text())
    return [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block)) for block in found]


@pytest.mark.parametrize("scheme", schemes(), ids=["light", "dark", "print"])
def test_texts_stand_out_from_what_is_behind_them(scheme):
    """WCAG 2.2, 1.4.3: 4.5 to 1 for text; 1.4.11: 3 to 1 for the lines of a blank."""
    behind = {
        "ground": ("text", "quiet", "link"),
        "panel": ("text",),
        "head": ("text",),
        "blank": ("text", "quiet", "blank-text"),
    }
    for ground, texts in behind.items():
        for text in texts:
            assert contrast(scheme[text], scheme[ground]) >= 4.5, (text, ground)
    assert contrast(scheme["blank-line"], scheme["ground"]) >= 3
    assert contrast(scheme["blank-line"], scheme["blank"]) >= 3
