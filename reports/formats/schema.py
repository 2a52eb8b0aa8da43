"""JSON schemas of the documents, generated from their types, and validation against them. Only here is fastjsonschema.

The schemas are of draft 7 (JSON Schema Validation, draft-handrews-json-schema-validation-01) and allow no other keys.
``reports/schemas`` holds them for readers outside; ``python -m wcet_probe.reports.formats.schema FOLDER`` writes them.
"""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

import fastjsonschema

from wcet_probe.errors import UsageError
from wcet_probe.reports.formats.document import dumps
from wcet_probe.reports.formats.shapes import DOCUMENTS
from wcet_probe.reports.formats.shapes_base import record_of

Schema = dict[str, Any]

_PLAIN: Mapping[object, str] = {bool: "boolean", int: "integer", str: "string"}


def keys(shape: type) -> dict[str, object]:
    """The keys of objects of the type ``shape``, a record or one of `reports.formats.shapes`, and their types."""
    own = get_type_hints(shape, include_extras=True)
    if is_dataclass(shape):
        return {field.name: own[field.name] for field in fields(shape)}
    record, without = record_of(shape) or (None, frozenset())
    inherited = keys(record) if record else {}
    return {name: kind for name, kind in inherited.items() if name not in without} | own


def _format(document: type) -> str:
    """The name of the format of ``document``, from its key ``format``."""
    (name,) = get_args(keys(document)["format"])
    return str(name)


FORMATS: Mapping[str, type] = {_format(document): document for document in DOCUMENTS}
"""Documents that have a schema, by format."""


def schema(document: type) -> Schema:
    """The schema of documents of the type ``document``."""
    definitions: dict[str, Schema] = {}
    found = _object(document, definitions)
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$comment": "SPDX-License-Identifier: 0BSD",
        "title": f"{_format(document)}, version 1",
        **found,
        "definitions": dict(sorted(definitions.items())),
    }


def write_schemas(folder: Path) -> None:
    """Write the schema of each document into ``folder``: ``FORMAT-VERSION.schema.json``."""
    for name, document in FORMATS.items():
        (folder / f"{name}-1.schema.json").write_text(dumps(schema(document)), "utf-8")


def validate(document: object) -> None:
    """Check that ``document`` is what its format says.

    Raises:
        UsageError: it is not; the message names the first wrong key by its path.
    """
    _validate(document, of_any_version=False)


def validate_types(document: object) -> None:
    """Check that what ``document`` holds has the types that its format says; keys may be missing or unknown.

    For results of other versions of wcet-probe, whose documents have other keys.

    Raises:
        UsageError: it has not; the message names the first wrong key by its path.
    """
    _validate(document, of_any_version=True)


def _validate(document: object, *, of_any_version: bool) -> None:
    name = document.get("format") if isinstance(document, Mapping) else None
    if not isinstance(name, str) or name not in FORMATS:
        raise UsageError("the document has no format of wcet-probe; give what --json printed.")
    try:
        for problem in _unreadable(document, "document"):
            raise UsageError(f"{_shortened(problem)}; give what --json printed.")
        _validator(FORMATS[name], of_any_version)(document)
    except fastjsonschema.JsonSchemaValueException as error:
        what = "" if of_any_version else " of this version of wcet-probe"
        raise UsageError(f"{_shortened(_problem(error))}; give what --json{what} printed.") from error
    except RecursionError as error:
        raise UsageError("the document is nested too deeply; give what --json printed.") from error


def _problem(error: fastjsonschema.JsonSchemaValueException) -> str:
    """What is wrong, and where."""
    if error.rule == "required":
        return f"{error.name}.{min(set(error.rule_definition) - error.value.keys())} is missing"
    if error.rule == "additionalProperties":
        return f"{error.name}.{min(error.value.keys() - error.definition['properties'].keys())} is no key of it"
    return str(error.message)


def _shortened(message: str) -> str:
    """``message`` on one line, and no longer than people read."""
    line = "".join(each if each.isprintable() else f"\\x{ord(each):02x}" for each in message[: _MOST_SHOWN + 1])
    return line if len(line) <= _MOST_SHOWN else f"{line[:_MOST_SHOWN]}…"


_MOST_SHOWN = 300
_LONGEST_TEXT = 20_000
"""Characters of a text other than a certificate: lines are broken in time that grows with the square."""
_CERTIFICATES = re.compile(r"bound\.(?:certificates|callees)$|operations\[[0-9]+\]\.certificate$")
"""Of a bound, and of each operation of a module certificate."""


@cache
def _validator(document: type, of_any_version: bool) -> Callable[[object], object]:  # noqa: FBT001  (cached)
    wanted = _of_any_version(schema(document)) if of_any_version else schema(document)
    found: Callable[[object], object] = fastjsonschema.compile(wanted, use_default=False)
    return lambda value: found(value, name_prefix="document")  # type: ignore[call-arg]


def _of_any_version(part: Any) -> Any:  # noqa: ANN401  (a part of a schema)
    """The part of a schema without its demands on which keys there are."""
    if isinstance(part, list):
        return [_of_any_version(one) for one in part]
    if not isinstance(part, dict):
        return part
    is_object = isinstance(part.get("properties"), dict) and isinstance(part.get("required"), list)
    left_out = {"required", "additionalProperties"} if is_object else set()
    return {key: _of_any_version(one) for key, one in part.items() if key not in left_out}


def _unreadable(value: object, path: str) -> Iterator[str]:
    """What no schema says: numbers that are not integers, though their fraction is 0, and texts that nobody wrote."""
    if isinstance(value, float):
        yield f"{path} is no integer"
    elif isinstance(value, str) and len(value) > _LONGEST_TEXT:
        yield f"{path} is longer than {_LONGEST_TEXT} characters"
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if len(key) > _LONGEST_TEXT:
                yield f"a key of {path} is longer than {_LONGEST_TEXT} characters"
            if not _CERTIFICATES.search(f"{path}.{key}"):
                yield from _unreadable(item, f"{path}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unreadable(item, f"{path}[{index}]")


# -------------------------------------------------------------------------------------------------------------- schemas


def _schema(kind: Any, definitions: dict[str, Schema]) -> Schema:  # noqa: ANN401  (a type, of any form)
    """The schema of values of the type ``kind``; objects go to ``definitions``."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in {None, Literal}:
        return _simple(kind, definitions)
    if origin in {Annotated, NotRequired}:
        return {**_schema(arguments[0], definitions), **dict(arguments[1:])}
    if origin in {types.UnionType, Union}:
        return _union(arguments, definitions)
    if issubclass(origin, Mapping):
        names = _schema(arguments[0], definitions).get("pattern")
        limit = {"propertyNames": {"pattern": names}} if names else {}
        return {"type": "object", "additionalProperties": _schema(arguments[1], definitions), **limit}
    if origin is list or arguments[-1] is Ellipsis:
        return {"type": "array", "items": _schema(arguments[0], definitions)}
    items = [_schema(item, definitions) for item in arguments]
    return {"type": "array", "items": items, "minItems": len(items), "maxItems": len(items)}


def _simple(kind: Any, definitions: dict[str, Schema]) -> Schema:  # noqa: ANN401  (a type, of any form)
    """The schema of a class, or of some literals."""
    if get_origin(kind) is Literal:
        return {"enum": sorted(get_args(kind))}
    if kind in _PLAIN:
        return {"type": _PLAIN[kind]}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {"type": "string", "enum": [member.value for member in kind]}
    if is_dataclass(kind) or is_typeddict(kind):
        return _reference(kind, definitions, null=False)
    raise TypeError(kind)


def _union(kinds: tuple[Any, ...], definitions: dict[str, Schema]) -> Schema:
    """Several simple types, one type and null, or documents of several formats.

    There is no ``anyOf``, behind which the path of an error would be lost.
    """
    others = [kind for kind in kinds if kind is not types.NoneType]
    if all(kind in _PLAIN for kind in others):
        return {"type": sorted("null" if kind is types.NoneType else _PLAIN[kind] for kind in kinds)}
    if len(others) > 1:
        return _by_format(others, definitions)
    (kind,) = others
    if is_dataclass(kind) or is_typeddict(kind):
        return _reference(kind, definitions, null=True)
    found = _schema(kind, definitions)
    values = {"enum": [*found["enum"], None]} if "enum" in found else {}
    return {**found, "type": [found["type"], "null"], **values}


def _by_format(documents: Sequence[Any], definitions: dict[str, Schema]) -> Schema:
    """Documents of several formats: the format decides, so that an error has the path of its key."""
    *others, last = documents
    found = _reference(last, definitions, null=False)
    for one in reversed(others):
        own = {"properties": {"format": {"const": _format(one)}}}
        found = {"if": own, "then": _reference(one, definitions, null=False), "else": found}
    return found


def _reference(kind: type, definitions: dict[str, Schema], *, null: bool) -> Schema:
    name = kind.__name__.removesuffix("Shape") + (" or null" if null else "")
    if name not in definitions:
        definitions[name] = {}
        definitions[name] = _object(kind, definitions)
        if null:
            definitions[name]["type"] = ["object", "null"]
    return {"$ref": f"#/definitions/{name}"}


def _object(kind: type, definitions: dict[str, Schema]) -> Schema:
    properties = {name: _schema(one, definitions) for name, one in sorted(keys(kind).items())}
    return {
        "type": "object",
        "description": str(kind.__doc__).partition("\n")[0],
        "properties": properties,
        "required": [name for name in properties if get_origin(keys(kind)[name]) is not NotRequired],
        "additionalProperties": False,
    }


if __name__ == "__main__":
    write_schemas(Path(sys.argv[1]))
