"""The JSON schema of a file model, for editors and other tools."""

import inspect
from typing import Annotated, Any, Literal, get_args, get_origin

from tilewright.document.file_model import (
    FileModel,
    Key,
    Length,
    Pattern,
    Range,
    Written,
    keys_of,
)

Schema = dict[str, Any]
_TYPES = {type(None): "null", str: "string", int: "integer", float: "number", bool: "boolean"}
_LENGTHS = {"string": ("minLength", "maxLength"), "array": ("minItems", "maxItems")}


def json_schema(model: type[FileModel]) -> Schema:
    """The schema of a model, with those of the models inside it under `$defs`."""
    inner: dict[str, Schema] = {}
    whole = _object(model, inner)
    return {"$defs": dict(sorted(inner.items())), **whole} if inner else whole


def _object(model: type[FileModel], inner: dict[str, Schema]) -> Schema:
    keys = keys_of(model)
    schema: Schema = {
        "additionalProperties": False,
        "properties": {name: _property(name, key, inner) for name, key in keys.items()},
        "required": [name for name, key in keys.items() if key.is_required],
        "title": model.__name__,
        "type": "object",
    }
    if model.__doc__:
        schema["description"] = inspect.cleandoc(model.__doc__)
    return dict(sorted(schema.items()))


def _property(name: str, key: Key, inner: dict[str, Schema]) -> Schema:
    schema = dict(_schema(key.kind, inner))
    if "$ref" not in schema:
        schema["title"] = name.replace("_", " ").title()
    if not key.is_required and key.default not in ([], {}):
        schema["default"] = key.default
    return dict(sorted(schema.items()))


def _schema(kind: Any, inner: dict[str, Schema]) -> Schema:
    """The schema of an annotation; models in it are put into `inner`."""
    parts = get_args(kind)
    match get_origin(kind):
        case None:
            return _plain(kind, inner)
        case origin if origin is Annotated:
            return _annotated(parts, inner)
        case origin if origin is Literal:
            return _one_of(parts)
        case origin if origin is list:
            return {"items": _schema(parts[0], inner), "type": "array"}
        case origin if origin is dict:
            return {"additionalProperties": _schema(parts[1], inner) or True, "type": "object"}
        case _:  # a union
            options = [_schema(part, inner) for part in parts]
            return {"anyOf": [flat for option in options for flat in option.get("anyOf", [option])]}


def _plain(kind: Any, inner: dict[str, Schema]) -> Schema:
    if kind is Any:
        return {}
    if not issubclass(kind, FileModel):
        return {"type": _TYPES[kind]}
    if kind.__name__ not in inner:
        inner[kind.__name__] = _object(kind, inner)
    return {"$ref": f"#/$defs/{kind.__name__}"}


def _annotated(parts: tuple[Any, ...], inner: dict[str, Schema]) -> Schema:
    kind, *notes = parts
    for note in notes:
        if isinstance(note, Written):
            return dict(note.schema)
    schema = _schema(kind, inner)
    for note in notes:
        if isinstance(note, Range):
            bounds = (note.above, note.least, note.most)
            names = ("exclusiveMinimum", "minimum", "maximum")
        elif isinstance(note, Length):
            bounds, names = (None, note.least, note.most), ("", *_LENGTHS[schema["type"]])
        else:
            continue
        pairs = zip(names, bounds, strict=True)
        schema |= {name: bound for name, bound in pairs if bound is not None}
    for note in notes:
        if isinstance(note, Pattern):
            schema["pattern"] = f"^{note.pattern}$"
    return dict(sorted(schema.items()))


def _one_of(values: tuple[Any, ...]) -> Schema:
    schema = {"const": values[0]} if len(values) == 1 else {"enum": list(values)}
    return {**schema, "type": _TYPES[type(values[0])]}
