"""The published schemas: generated from the types, valid for every document, and strict."""

import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.results import result
from wcet_probe.errors import UsageError
from wcet_probe.reports.formats import shapes
from wcet_probe.reports.formats.document import results_document
from wcet_probe.reports.formats.schema import keys, schema, validate, write_schemas
from wcet_probe.reports.formats.shapes_bound import BoundShape, FormulaShape, GapShape, LoopShape

ROOT = Path(__file__).parents[3]
SCHEMAS = ROOT / "reports" / "schemas"
SCHEMA = schema(shapes.ResultDocument)


def original():
    """The document that is changed, a copy for each caller."""
    return result("best-fit", "arm926ej-s", heap_bytes=8192, why=True)


def places(value, found, path=()):
    """Paths of the keys and items of ``value``, of two items of a list, and whether each is a key that is required."""
    found = SCHEMA["definitions"][found["$ref"].removeprefix("#/definitions/")] if "$ref" in found else found
    if isinstance(value, dict):
        kinds = found.get("properties") or dict.fromkeys(value, found["additionalProperties"])
        for key, item in value.items():
            yield (*path, key), key in found.get("required", ())
            yield from places(item, kinds[key], (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value[:2]):
            yield (*path, number), False
            kind = found["items"]
            yield from places(item, kind[number] if isinstance(kind, list) else kind, (*path, number))


def parent_of(document, path):
    for key in path[:-1]:
        document = document[key]
    return document


def where(chosen):
    """Of the places those that are ``chosen`` by the document, the path and whether it is a key.

    Deferred, so that no document is made where tests are only collected.
    """

    def found():
        document = original()
        return st.sampled_from([path for path, is_key in places(document, SCHEMA) if chosen(document, path, is_key)])

    return st.deferred(found)


PLACES = where(lambda *_: True)
REQUIRED = where(lambda _document, _path, is_key: is_key)
INTEGERS = where(lambda document, path, _: type(parent_of(document, path)[path[-1]]) is int)


def refused(document):
    with pytest.raises(UsageError) as caught:
        validate(document)
    return str(caught.value)


def test_the_published_schemas_are_those_of_the_types(tmp_path):
    if os.environ.get("WCET_PROBE_UPDATE_GOLDEN") == "1":
        write_schemas(SCHEMAS)
    write_schemas(tmp_path)
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {
        file.name: file.read_text() for file in SCHEMAS.iterdir()
    }


@pytest.mark.parametrize("prove", [True, False])
def test_results_are_valid(prove):
    validate(result(prove=prove))
    validate(results_document([result(prove=prove)] * 2))


@given(REQUIRED)
def test_no_key_may_be_missing(path):
    document = original()
    del parent_of(document, path)[path[-1]]
    assert path[-1] in refused(document)


@given(PLACES)
def test_no_value_may_be_of_another_type(path):
    document = original()
    parent = parent_of(document, path)
    parent[path[-1]] = 7 if isinstance(parent[path[-1]], list | dict | str) else [[]]
    refused(document)


@given(REQUIRED, st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1))
def test_no_key_may_be_added(path, key):
    document = original()
    parent = parent_of(document, path)
    assume(key not in parent)
    parent[key] = 0
    assert f"{key} is no key of it" in refused(document)


@given(INTEGERS)
def test_no_number_may_be_a_float(path):
    document = original()
    parent = parent_of(document, path)
    parent[path[-1]] = float(parent[path[-1]])
    assert "is no integer" in refused(document)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("verdict"), "document.verdict is missing; "),
        (lambda d: d["bound"]["loops"][0].pop("max"), "document.bound.loops[0].max is missing; "),
        (lambda d: d["bound"]["loops"][0].update(max="3"), "document.bound.loops[0].max must be integer; "),
        (lambda d: d["observed"].update(path=[0, 1.0]), "document.observed.path[1] is no integer; "),
        (lambda d: d.update(command="x" * 20_001), "document.command is longer than 20000 characters; "),
        (lambda d: d["source_lines"].update({"x" * 20_001: {}}), "a key of document.source_lines is longer than"),
        (lambda d: d["image"].update(digest=""), "document.image.digest is no key of it; "),
        (lambda d: d.update({"\r\n": 1}), r"document.\x0d\x0a is no key of it; "),
        (lambda d: d.update({"y" * 10_000: 1}), "document." + "y" * 291 + "…; "),
        (lambda d: d.update(verdict="FINE"), "document.verdict must be one of ["),
        (lambda d: d["listing"][0].update(address="10"), "document.listing[0].address must match pattern "),
        (lambda d: d.update(format="wcet-probe-fiction"), "the document has no format of wcet-probe; "),
    ],
)
def test_the_message_names_the_key(change, message):
    document = original()
    change(document)
    assert refused(document).startswith(message)


@pytest.mark.parametrize("document", [None, [], "wcet-probe-result", {}, {"format": []}])
def test_what_is_no_document_is_refused(document):
    assert "no format of wcet-probe" in refused(document)


def test_the_schemas_use_no_keyword_behind_which_errors_have_no_path():
    text = json.dumps([schema(one) for one in shapes.DOCUMENTS])
    assert not re.search('"(anyOf|oneOf|allOf|number)"', text)


def section(title):
    """The first columns of the tables below a heading of the reference page, cut at the next heading."""
    page = (ROOT / "docs" / "reference" / "json.md").read_text()
    text = page.split(f"\n{title}\n", 1)[1].split("\n#", 1)[0]
    return {word for row in re.findall(r"^\| (`.*?) \|", text, re.MULTILINE) for word in re.findall(r"`([^`]+)`", row)}


@pytest.mark.parametrize(
    ("title", "shape"),
    [
        ("## `wcet-probe-result`", shapes.ResultDocument),
        ("## `wcet-probe-bound`", shapes.BoundDocument),
        ("### `bound`", BoundShape),
        ("### `gap`", GapShape),
        ("### `formula`", FormulaShape),
        ("### `bound.loops[]`", LoopShape),
        ("### `listing[]`", shapes.InstructionShape),
        ("### `request`", shapes.RequestShape),
    ],
)
def test_the_reference_page_tells_every_key(title, shape):
    told = {re.split(r"[.\[]", word)[0] for word in section(title)}
    assert told == set(keys(shape))
