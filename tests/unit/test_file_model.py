"""File models: what is accepted, and what is said about the rest."""

from typing import Annotated, Any, Literal

import pytest

from tilewright.document.file_model import (
    Context,
    Converted,
    FileModel,
    Length,
    OneLine,
    Pattern,
    Range,
    Written,
    filled,
    keys_of,
    new,
    read_model,
)
from tilewright.document.json_schema import json_schema


def doubled(value: Any, context: Context) -> Any:
    if value == "odd":
        raise ValueError("no odd ones -- write an even one")
    return 2 * value if context.get("double") else value


class Leaf(FileModel):
    """A leaf."""

    colour: Literal["green", "red"]


class Tree(FileModel):
    name: Annotated[str, Length(1, 8), OneLine()]
    height: Annotated[float, Range(least=0, finite=True)] = 1.0
    rings: Annotated[int, Range(above=0, most=100)] | None = None
    label: Annotated[str, Pattern("D[0-9]", "a label such as D1")] = "D1"
    pair: Annotated[list[int], Length(2, 2)] | None = None
    either: str | int = 0
    leaves: list[Leaf] = new(list)
    marks: dict[Annotated[str, Pattern("[a-z]", "a letter")], bool] = new(dict)
    weight: Annotated[
        int, Converted(doubled), Written({"anyOf": [{"type": "string"}, {"type": "integer"}]})
    ] = 0
    rest: Any = None


class TallTree(Tree):
    height: Annotated[float, Range(least=10)]
    crown: Leaf


def faults(**changes: object) -> list[tuple[str, str]]:  # the keys of a file
    _, found = read_model(Tree, {"name": "oak", **changes})
    return [(".".join(map(str, fault.at)), fault.message) for fault in found]


def test_what_is_not_given_has_its_default_and_lists_are_not_shared() -> None:
    first, _ = read_model(Tree, {"name": "oak"})
    second, _ = read_model(Tree, {"name": "oak"})
    assert first is not None
    assert second is not None
    assert (first.height, first.rings, first.leaves, first.marks) == (1.0, None, [], {})
    assert first == second == filled(Tree, {"name": "oak"})
    assert first.leaves is not second.leaves
    assert first != filled(Tree, {"name": "elm"})


def test_an_object_cannot_be_changed() -> None:
    with pytest.raises(AttributeError, match=r"Tree\.name cannot be set"):
        filled(Tree, {"name": "oak"}).name = "elm"


def test_a_whole_number_becomes_a_number_where_one_is_wanted_but_not_the_reverse() -> None:
    tree, _ = read_model(Tree, {"name": "oak", "height": 2})
    assert tree is not None
    assert isinstance(tree.height, float)
    assert faults(rings=2.0) == [("rings", "expected a whole number")]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("name", 7, "expected a text"),
        ("name", "", "must not be empty"),
        ("name", "123456789", "must have at most 8 characters"),
        ("name", "a\nb", "must be one line of plain text"),
        ("height", "2", "expected a number"),
        ("height", True, "expected a number"),
        ("height", 10**400, "expected a number"),
        ("height", -0.5, "must be 0 or more"),
        ("height", float("inf"), "expected a finite number"),
        ("height", float("nan"), "expected a finite number"),
        ("rings", True, "expected a whole number"),
        ("rings", 0, "must be more than 0"),
        ("rings", 101, "must be 100 or less"),
        ("label", "D1\n", "expected a label such as D1"),
        ("pair", [1], "must have at least 2 items"),
        ("pair", ["a", "b", "c"], "must have at most 2 items"),
        ("pair", (1, 2), "expected a list"),
        ("leaves", {}, "expected a list"),
        ("marks", [], "expected a mapping (`key: value` lines)"),
        ("weight", "odd", "no odd ones -- write an even one"),
        ("weight", "text", "expected a whole number"),
    ],
)
def test_a_value_that_is_refused_is_told_in_our_words(key: str, value: Any, message: str) -> None:
    assert faults(**{key: value}) == [(key, message)]


def test_faults_inside_are_told_with_their_location() -> None:
    leaves = [{"colour": "blue"}, {}, 7, {"colour": "red", "size": 1}]
    assert faults(leaves=leaves, marks={"a": 1, "B": True}, either=None) == [
        ("either.str", "expected a text"),
        ("either.int", "expected a whole number"),
        ("leaves.0.colour", "expected 'green' or 'red'"),
        ("leaves.1.colour", "is missing"),
        ("leaves.2", "expected a mapping (`key: value` lines)"),
        ("leaves.3.size", "unknown key"),
        ("marks.a", "expected true or false"),
        ("marks.B.[key]", "expected a letter"),
    ]


def test_a_conversion_sees_the_context() -> None:
    tree, _ = read_model(Tree, {"name": "oak", "weight": 4}, {"double": True})
    assert tree is not None
    assert tree.weight == 8


def test_a_model_has_the_keys_of_its_base_and_may_narrow_them() -> None:
    assert list(keys_of(TallTree)) == [*keys_of(Tree), "crown"]
    _, found = read_model(TallTree, {"name": "oak", "height": 9, "crown": {"colour": "red"}})
    assert [fault.message for fault in found] == ["must be 10 or more"]
    _, found = read_model(TallTree, {"name": "oak"})
    assert [(fault.at, fault.what) for fault in found] == [
        (("height",), "missing"),
        (("crown",), "missing"),
    ]


def test_the_schema_says_what_the_model_says() -> None:
    schema = json_schema(TallTree)
    assert schema["$defs"] == {
        "Leaf": {
            "additionalProperties": False,
            "description": "A leaf.",
            "properties": {
                "colour": {"enum": ["green", "red"], "title": "Colour", "type": "string"}
            },
            "required": ["colour"],
            "title": "Leaf",
            "type": "object",
        }
    }
    assert schema["required"] == ["name", "height", "crown"]
    assert schema["additionalProperties"] is False
    assert schema["properties"] == {
        "name": {"maxLength": 8, "minLength": 1, "title": "Name", "type": "string"},
        "height": {"minimum": 10, "title": "Height", "type": "number"},
        "rings": {
            "anyOf": [
                {"exclusiveMinimum": 0, "maximum": 100, "type": "integer"},
                {"type": "null"},
            ],
            "default": None,
            "title": "Rings",
        },
        "label": {"default": "D1", "pattern": "^D[0-9]$", "title": "Label", "type": "string"},
        "pair": {
            "anyOf": [
                {"items": {"type": "integer"}, "maxItems": 2, "minItems": 2, "type": "array"},
                {"type": "null"},
            ],
            "default": None,
            "title": "Pair",
        },
        "either": {
            "anyOf": [{"type": "string"}, {"type": "integer"}],
            "default": 0,
            "title": "Either",
        },
        "leaves": {"items": {"$ref": "#/$defs/Leaf"}, "title": "Leaves", "type": "array"},
        "marks": {
            "additionalProperties": {"type": "boolean"},
            "title": "Marks",
            "type": "object",
        },
        "weight": {
            "anyOf": [{"type": "string"}, {"type": "integer"}],
            "default": 0,
            "title": "Weight",
        },
        "rest": {"default": None, "title": "Rest"},
        "crown": {"$ref": "#/$defs/Leaf"},
    }
