import io
import re

import pytest
from pypdf import PdfReader

from tests.dossier_sample import HASH, HOSTILE, SIGNS, sample
from wcet_probe.reports.dossier.blocks import Blank, Code, Dossier, Figure, Items, KeyValues, Paragraph, Section, Table
from wcet_probe.reports.dossier.columns import Column, Setting, columns, layout
from wcet_probe.reports.dossier.numbered import blocks, numbered
from wcet_probe.reports.dossier.pdf import render_pdf

FONTS = {"LibertinusSerif", "DejaVuSansMono", "NewComputerModern", "NewCMMath"}


@pytest.fixture(scope="module")
def file():
    return render_pdf(sample())


@pytest.fixture(scope="module")
def reader(file):
    return PdfReader(io.BytesIO(file))


@pytest.fixture(scope="module")
def text(reader):
    return squeezed("".join(page.extract_text() for page in reader.pages))


def squeezed(text):
    return re.sub(r"\s", "", text)


def of(*parts):
    return Dossier("Title", "subtitle", (Section("A", "a", parts),))


def text_of(dossier):
    return squeezed("".join(page.extract_text() for page in PdfReader(io.BytesIO(render_pdf(dossier))).pages))


def test_the_same_dossier_gives_the_same_bytes(file):
    assert render_pdf(sample()) == file


def test_it_holds_no_date(reader):
    assert not {"/CreationDate", "/ModDate"} & set(reader.metadata)
    assert b"CreateDate" not in reader.root_object["/Metadata"].get_object().get_data()


def test_title_language_and_tags_are_named(reader):
    assert reader.metadata.title == "WCET dossier: tlsf on mpc603e · Bound and witness of malloc and free, heap 64 KiB"
    assert reader.root_object["/Lang"].startswith("en")
    assert reader.root_object["/MarkInfo"]["/Marked"]
    assert b"pdfuaid" in reader.root_object["/Metadata"].get_object().get_data()


def test_every_text_is_there(text):
    for block in blocks(numbered(sample())):
        for words in words_of(block):
            assert squeezed(words) in text, words


def words_of(block):
    """The words of a block; lines of a listing may be broken, and are looked at elsewhere."""
    if "number" in block:
        yield block["number"]
        yield "".join("".join(run["pieces"]) for run in block["caption"])
    rows = [block.get("header", ()), *block.get("rows", ())]
    cells = [cell for row in rows for cell in (row.values() if isinstance(row, dict) else row)]
    for lines in (block.get("text", ()), *block.get("items", ()), *cells):
        for line in lines:
            # A cell of several lines is taken out line by line together with its neighbours.
            yield from (word for run in line for piece in run["pieces"] for word in piece.split())


def test_hashes_hostile_texts_and_signs_come_out(text):
    assert HASH in text
    assert squeezed(HOSTILE) in text
    assert squeezed(SIGNS) in text


def test_sections_are_bookmarks_with_their_numbers(reader):
    titles = []

    def walk(entries, depth):
        for entry in entries:
            if isinstance(entry, list):
                walk(entry, depth + 1)
            else:
                titles.append((depth, entry.title))

    walk(reader.outline, 0)
    assert titles == [
        (0, "1 Identification"),
        (0, "2 Assumptions & restrictions <all of them>"),
        (1, "2.1 Flow facts of block_locate_free"),
        (2, "2.1.1 Deep down"),
        (1, "2.2 Pictures"),
        (0, "3 Worst path"),
        (0, "4 Sign-off"),
    ]


def test_pages_are_a4_and_numbered_and_as_many_as_one_would_think(reader):
    count = len(reader.pages)
    assert 8 <= count <= 14
    for number, page in enumerate(reader.pages, 1):
        assert sorted(round(float(side)) for side in page.mediabox[2:]) == [595, 842]
        assert (f"page {number} of {count}" in page.extract_text()) == (number > 1)


def test_headers_of_tables_are_repeated(reader):
    pages = [page.extract_text() for page in reader.pages if "op_" in page.extract_text()]
    assert len(pages) > 1
    assert all("operation" in page for page in pages)


def test_only_the_fonts_of_typst_are_used(reader):
    names = set()
    for page in reader.pages:
        for font in page["/Resources"].get("/Font", {}).values():
            names.add(font.get_object()["/BaseFont"].split("+")[-1].split("-")[0])
    assert names
    assert all(any(name.startswith(known) for known in FONTS) for name in names), names


def test_a_character_without_a_picture_is_written_as_its_number():
    assert "aU+1F600bU+4E2DcU+0001" in text_of(of(Paragraph("a\U0001f600b\u4e2dc\u0001")))


def test_the_characters_that_dossiers_use_need_no_number():
    # All that the pattern of printed characters lets through: typst refuses a sign that no font has.
    from wcet_probe.reports.dossier.pdf import _NOT_PRINTED

    printed = "".join(chr(code) for code in range(0x21, 0x3000) if not _NOT_PRINTED.match(chr(code)))
    assert len(printed) > 1500
    assert "U+" not in text_of(of(Paragraph(" ".join(printed)), Code("c", printed), Paragraph(f"`{printed}`", "lead")))


@pytest.mark.parametrize(
    "block",
    [
        Paragraph(""),
        Blank(""),
        Items(()),
        KeyValues(()),
        Table("no rows", ("a", "b"), (), "lr"),
        Table("one column", ("a",), (("",),), "l"),
        Code("", ""),
        Code("spaces", "   \n\n  x\ty"),
        Figure("", "empty", '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10"/>'),
    ],
    ids=lambda block: f"{type(block).__name__}",
)
def test_a_block_without_content_is_set_as_well(block):
    assert len(PdfReader(io.BytesIO(render_pdf(of(block)))).pages) == 3


def test_a_dossier_without_sections_is_set_as_well():
    assert "Title" in text_of(Dossier("Title", "", ()))


def test_deep_sections_are_set():
    section = Section("Bottom", "s9", (Paragraph("reached"),))
    for depth in range(8, 0, -1):
        section = Section(f"Level {depth}", f"s{depth}", (), (section,))
    assert "reached" in text_of(Dossier("Title", "", (section,)))


def test_a_row_longer_than_a_page_is_broken():
    words = " ".join(f"word{number}" for number in range(3000))
    text = text_of(of(Table("long", ("a",), ((words,),), "l")))
    assert all(f"word{number}" in text for number in range(3000))


def test_a_value_longer_than_a_page_is_broken():
    text = text_of(of(KeyValues((("key", " ".join(f"word{number}" for number in range(3000))),))))
    assert all(f"word{number}" in text for number in range(3000))


def test_a_long_line_of_code_is_wrapped_with_a_mark():
    text = text_of(of(Code("c", "move " * 60)))
    assert text.count("move") == 60
    assert "↪" in text


def test_columns_that_fit_have_their_natural_width():
    settings = (Setting("large", 10, 5, 500), Setting("small", 5, 5, 500))
    found = layout([Column(2, 4), Column(3, 6)], settings)
    assert found.setting.name == "large"
    assert found.widths_points == (50, 70)


def test_a_table_that_does_not_fit_is_set_smaller_and_fills_the_page():
    settings = (Setting("large", 10, 5, 500), Setting("small", 5, 5, 500))
    found = layout([Column(20, 90), Column(30, 30)], settings)
    assert found.setting.name == "small"
    assert sum(found.widths_points) == pytest.approx(500)
    assert found.widths_points[1] >= 30 * 5


def test_a_table_that_fits_nowhere_stays_on_the_page():
    found = layout([Column(90, 90), Column(30, 40)], (Setting("only", 10, 5, 500),))
    assert sum(found.widths_points) == pytest.approx(500)


def test_no_column_of_the_sample_is_narrower_than_its_longest_part():
    for table in (block for block in blocks(numbered(sample())) if block["kind"] == "table"):
        needs = columns(table)
        found = layout(needs, (Setting("", 7, 2.5, 481),))
        for need, width in zip(needs, found.widths_points, strict=True):
            assert width + 0.01 >= need.floor_em * 7 + 5
