"""Plain YAML without the library: places are counted by hand, and all else is left alone."""

from typing import Any

import pytest

from tilewright.document.plain_yaml import plain_data

LAYERS = """\
# two layers
- id: 0   # the first
  equation: O[k]+=W[k][c]*I[c]
  sizes: [64, -3, 0.5]
  source: {I: 0, 'W x': "a, b"}

- id: 1
  parts:
    bank:
      - 512 KiB
      - fh: w_port_1
        tl:
  rest:
  - 'a # b'
"""


def test_lists_and_mappings_are_read_by_their_columns() -> None:
    read = plain_data(LAYERS)
    assert read is not None
    assert read[0] == [
        {
            "id": 0,
            "equation": "O[k]+=W[k][c]*I[c]",
            "sizes": [64, -3, 0.5],
            "source": {"I": 0, "W x": "a, b"},
        },
        {
            "id": 1,
            "parts": {"bank": ["512 KiB", {"fh": "w_port_1", "tl": None}]},
            "rest": ["a # b"],
        },
    ]


@pytest.mark.parametrize(
    ("at", "place"),
    [
        ((), (2, 1)),
        ((0,), (2, 3)),
        ((0, "id"), (2, 3)),
        ((0, "sizes", 1), (4, 15)),
        ((0, "source", "I"), (5, 12)),
        ((0, "source", "W x"), (5, 18)),
        ((1, "parts", "bank", 0), (10, 9)),
        ((1, "parts", "bank", 1), (11, 9)),
        ((1, "parts", "bank", 1, "tl"), (12, 9)),
        ((1, "rest", 0), (14, 5)),
    ],
)
def test_every_key_and_item_has_its_place(
    at: tuple[str | int, ...], place: tuple[int, int]
) -> None:
    read = plain_data(LAYERS)
    assert read is not None
    assert read[1][at] == place


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("17", 17),
        ("+3", 3),
        ("-1.5e-3", -0.0015),
        ("True", True),
        ("false", False),
        ("null", None),
        ("", None),
        ("# only a comment", None),
        ("yes", "yes"),
        ("8_NPE", "8_NPE"),
        ("it's a#b:c", "it's a#b:c"),
        ("'17'", "17"),
        ('"a: b"  # c', "a: b"),
        ("[]", []),
        ("{ }", {}),
        ("[ a b , [c] ,{d: 1}]", ["a b", ["c"], {"d": 1}]),
    ],
)
def test_a_value_is_read_as_yaml_1_2_says(text: str, value: Any) -> None:
    read = plain_data(f"a: {text}\n")
    assert read is not None
    result = read[0]["a"]
    assert (result, type(result)) == (value, type(value))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing\n",
        "word\n",
        "a: 1\na: 2\n",  # a fault is for the library to tell
        "a: {b: 1, b: 2}\n",
        "a: 1\n  more\n",
        "a: 1\n   b: 2\n",
        "a:\n    b: 1\n  c: 2\n",
        "a: b: c\n",
        "a: b:\n",
        "a: [1\nb: 2\n",
        "a: [1,\n  2]\n",
        "a: [1,]\n",
        "a: [b: 1]\n",
        "a: [1] 2\n",
        "a: 'b' c\n",
        "a: 'b'#c\n",
        "a: [1]#c\n",
        "a: 'it''s'\n",
        'a: "\\n"\n',
        "a: 'b\n  c'\n",
        "a: |\n  text\n",
        "a: &x 1\n",
        "a: *x\n",
        "a: !t 1\n",
        "a: - b\n",
        "- - a\n",
        "-\n  a: 1\n",
        "? a\n: 1\n",
        "---\na: 1\n",
        "a: 1\n...\n",
        "%YAML 1.1\n---\na: 1\n",
        "a: 0x1f\n",
        "a: 1_000\n",
        "a: 007\n",
        "a: 1e3\n",
        "a: .5\n",
        "a: ~\n",
        "a: 1:30\n",
        "a:\t1\n",
        "a: 1\r\n",
        "a: é\n",
        "a: " + "[" * 60 + "]" * 60 + "\n",
        "a: " + "1" * 30 + "\n",
        "k" * 200 + ": 1\n",
    ],
)
def test_what_is_not_plain_is_left_to_the_library(text: str) -> None:
    assert plain_data(text) is None
