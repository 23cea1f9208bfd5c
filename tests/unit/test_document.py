"""YAML with positions: every place is counted by hand in the text beside it."""

import math
import time
from pathlib import Path
from typing import Annotated, Any

import pytest

from tilewright.document import (
    Document,
    dotted,
    faulty_keys,
    in_file_order,
    parse_document,
    read_document,
    suggestion,
    validate,
)
from tilewright.document.file_model import FileModel, Length, Range, filled
from tilewright.errors import InputError, Problem

MACHINE = """\
name: wren
memories:
  bank:
    size: 16
    ports:
      - {fh: w_port_1,   tl: r_port_1}
      - fh: w_port_1
  ddr: [1, [2, 3]]
"""


def refusal(text: str) -> Problem:
    with pytest.raises(InputError) as caught:
        parse_document(text, "f.yaml")
    (problem,) = caught.value.problems
    return problem


def parsed(text: str) -> Any:
    return parse_document(text, "f.yaml").data


@pytest.mark.parametrize(
    ("at", "place"),
    [
        (("name",), (1, 1)),
        (("memories",), (2, 1)),
        (("memories", "bank"), (3, 3)),
        (("memories", "bank", "size"), (4, 5)),
        (("memories", "bank", "ports"), (5, 5)),
        (("memories", "bank", "ports", 0), (6, 9)),
        (("memories", "bank", "ports", 0, "fh"), (6, 10)),
        (("memories", "bank", "ports", 0, "tl"), (6, 26)),
        (("memories", "bank", "ports", 1), (7, 9)),
        (("memories", "bank", "ports", 1, "fh"), (7, 9)),
        (("memories", "ddr", 0), (8, 9)),
        (("memories", "ddr", 1), (8, 12)),
        (("memories", "ddr", 1, 1), (8, 16)),
    ],
)
def test_every_key_and_list_item_has_its_place(
    at: tuple[str | int, ...], place: tuple[int, int]
) -> None:
    assert parse_document(MACHINE, "f.yaml").places[at] == place


@pytest.mark.parametrize(
    ("at", "place"),
    [
        (("memories", "bank", "ports", 2), (5, 5)),  # no such item: the list
        (("memories", "bank", "ports", 0, "fl"), (6, 9)),  # no such key: the item
        (("memories", "cache", "size"), (2, 1)),
        (("sources", 0), (1, 1)),  # nothing of it: the file
    ],
)
def test_what_is_not_there_is_placed_at_the_deepest_part_that_is(
    at: tuple[str | int, ...], place: tuple[int, int]
) -> None:
    problem = parse_document(MACHINE, "f.yaml").problem(at, "lost", hint="look", severity="warning")
    assert (problem.line, problem.column) == place
    assert str(problem) == f"f.yaml:{place[0]}:{place[1]}: warning: lost\n  hint: look"


def test_an_alias_has_the_data_of_its_anchor_and_the_place_of_its_own_key() -> None:
    document = parse_document("a: &x {size: 1}\nb:\n  c: *x\n", "f.yaml")
    assert document.data == {"a": {"size": 1}, "b": {"c": {"size": 1}}}
    assert document.places["b", "c"] == (3, 3)
    assert document.places["b", "c", "size"] == (1, 8)  # what it says stands at the anchor


def test_an_anchor_may_be_defined_anew() -> None:
    assert parsed("a: &x 1\nb: &x 2\nc: *x\n") == {"a": 1, "b": 2, "c": 2}


def test_a_key_that_stands_twice_is_an_error_at_the_second_place() -> None:
    problem = refusal("a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\n")
    assert str(problem) == (
        "f.yaml:5:3: b.c: the key stands here a second time\n  hint: delete one of the two"
    )


def test_all_doubled_keys_are_reported_at_once() -> None:
    with pytest.raises(InputError) as caught:
        parse_document("a: 1\na: 2\nb: {c: 1, c: 2}\na: 3\n", "f.yaml")
    places = [(p.line, p.column) for p in caught.value.problems]
    assert sorted(places) == [(2, 1), (3, 11), (4, 1)]


def test_the_last_of_two_equal_keys_wins_where_other_tools_accept_it() -> None:
    document = parse_document("a: 1\nb: 2\na: 3\n", "f.yaml", last_key_wins=True)
    assert document.data == {"a": 3, "b": 2}
    assert document.places["a",] == (3, 1)
    (warning,) = document.warnings
    assert (warning.severity, warning.line) == ("warning", 3)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("17", 17),
        ("-3", -3),
        ("+3", 3),
        ("0x1f", 31),
        ("0o17", 15),
        ("017", 17),  # YAML 1.2 has no octal without the o
        ("1_000", 1000),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("-.inf", -math.inf),
        ("true", True),
        ("False", False),
        ("yes", "yes"),  # YAML 1.2: a word
        ("~", None),
        ("", None),
        ("'17'", "17"),
        ("2001-01-01", "2001-01-01"),
        ("512 KiB", "512 KiB"),
    ],
)
def test_scalars_are_read_as_yaml_1_2_says(text: str, value: Any) -> None:
    result = parsed(f"a: {text}\n")["a"]
    assert result == value
    assert type(result) is type(value)


def test_nan_is_a_number() -> None:
    assert math.isnan(parsed("a: .nan")["a"])


@pytest.mark.parametrize("text", ["1" * 5000, "0x" + "f" * 5000, "!!int few", "!!float much"])
def test_a_number_that_cannot_be_used_is_refused_with_its_place(text: str) -> None:
    problem = refusal(f"a:\n  b: {text}\n")
    assert (problem.line, problem.column) == (2, 6)
    assert problem.message.startswith("a.b: '")
    assert problem.message.endswith("is no number that can be used")


def test_a_number_of_400_digits_is_the_longest() -> None:
    assert parsed(f"a: {'1' * 400}\n") == {"a": int("1" * 400)}
    assert "is no number that can be used" in refusal(f"a: {'1' * 401}\n").message


def test_a_key_that_is_no_line_of_plain_text_is_refused() -> None:
    assert str(refusal('"a\\nb": 1\n')) == (
        "f.yaml:1:1: a key must be one line of plain text, not 'a\\nb'"
    )


@pytest.mark.parametrize("half", ["ud800", "udfff"])
def test_half_a_character_is_refused_since_it_could_not_be_printed(half: str) -> None:
    problem = refusal(f'a: 1\nb: "\\{half}"\n')
    assert (problem.line, problem.column) == (2, 4)
    assert "half a character" in problem.message
    assert str(problem).encode()


def test_a_key_that_is_a_list_is_refused() -> None:
    assert str(refusal("? [a, b]\n: 1\n")) == "f.yaml:1:3: a key must be a plain word"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a: [1\nb: 2\n", (2, 2)),
        ("a: 1\n\tb: 2\n", (2, 1)),
        ("a: *nowhere\n", (1, 4)),
        ("a: 1\n---\nb: 2\n", (2, 1)),
        ("a: 'open\n", (2, 1)),
    ],
)
def test_what_is_no_yaml_is_refused_where_it_ceases_to_be(
    text: str, place: tuple[int, int]
) -> None:
    problem = refusal(text)
    assert (problem.line, problem.column) == place
    assert problem.message.startswith("is no YAML: ")
    assert "\n" not in problem.message


@pytest.mark.parametrize("text", ["%YAML 9.9\n---\na\n", '"\\U00110000"', "a\0b", "!<"])
def test_what_the_yaml_library_chokes_on_is_refused_too(text: str) -> None:
    assert refusal(text).message.startswith("is no YAML: ")


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n"])
def test_an_empty_file_is_refused(text: str) -> None:
    assert str(refusal(text)) == "f.yaml:1:1: the file is empty"


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "windows.yaml"
    path.write_bytes(b"\xef\xbb\xbfa:\r\n  b: 1\r\n")
    document = read_document(path)
    assert document.data == {"a": {"b": 1}}
    assert document.places["a", "b"] == (2, 3)


def test_a_billion_laughs_are_refused_fast() -> None:
    lines = ["a0: &a0 [ha]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 13)]
    start = time.process_time()
    problem = refusal("\n".join(lines))  # 10^12 entries, written out
    assert time.process_time() - start < 5
    assert "holds more entries than any description should" in problem.message


def test_an_alias_to_its_own_parent_is_refused() -> None:
    assert "is nested deeper than any description should" in refusal("a: &a [*a]\n").message


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" * 100_000, id="flow", marks=pytest.mark.slow),
        pytest.param("- " * 50_000, id="block"),
        pytest.param("{a: " * 20_000, id="mappings"),
    ],
)
def test_deep_nesting_is_refused_fast(text: str) -> None:
    start = time.process_time()
    assert refusal(text).message == "is nested too deeply to be read"
    assert time.process_time() - start < 10


def test_sixty_levels_are_read_and_one_more_is_not() -> None:
    assert parsed("[" * 60 + "]" * 60) is not None
    assert "is nested deeper" in refusal("[" * 62 + "]" * 62).message


def test_a_file_of_a_mebibyte_is_read_and_one_byte_more_is_not(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    path.write_bytes(b"a: 1\n#" + b"x" * (2**20 - 6))
    assert read_document(path).data == {"a": 1}
    path.write_bytes(b"a: 1\n#" + b"x" * (2**20 - 5))
    with pytest.raises(InputError, match=r"large\.yaml: is larger than 1,048,576 bytes"):
        read_document(path)


@pytest.mark.parametrize("raw", [b"\xff\xfea\x00", b"name: caf\xe9\n", b"\x80"])
def test_a_file_that_is_not_utf_8_is_refused(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes(raw)
    with pytest.raises(InputError, match=r"latin\.yaml: is no text file \(UTF-8 is needed\)"):
        read_document(path)


def test_a_file_is_read_strictly_unless_the_last_key_is_to_win(tmp_path: Path) -> None:
    path = tmp_path / "twice.yaml"
    path.write_text("a: 1\na: 2\n")
    with pytest.raises(InputError, match="a: the key stands here a second time"):
        read_document(path)
    assert read_document(path, last_key_wins=True).data == {"a": 2}


def test_a_missing_file_and_a_folder_are_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file or directory"):
        read_document(tmp_path / "none.yaml")
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        read_document(tmp_path)


class Inner(FileModel):
    size: Annotated[int, Range(above=0, most=100)]
    bandwidth: int
    note: str = ""


class Outer(FileModel):
    name: Annotated[str, Length(1)]
    parts: dict[str, Inner]
    rows: list[Inner] | None = None


def faults(text: str) -> list[str]:
    value, problems = validate(parse_document(text, "f"), Outer)
    assert (value is None) == bool(problems)
    return [str(problem) for problem in problems]


def test_a_sound_document_becomes_its_model() -> None:
    document = parse_document("name: n\nparts: {a: {size: 1, bandwidth: 2}}\n", "f")
    value, problems = validate(document, Outer)
    assert problems == []
    sound = filled(Inner, {"size": 1, "bandwidth": 2})
    assert value == filled(Outer, {"name": "n", "parts": {"a": sound}})
    inner, problems = validate(document, Inner, at=("parts", "a"))
    assert (inner, problems) == (sound, [])


def test_all_faults_of_a_document_come_in_file_order() -> None:
    text = "parts:\n  b: {size: 0, bandwidth: x}\n  a: [1]\nname: 7\n"
    assert faults(text) == [
        "f:2:7: parts.b.size: must be more than 0",
        "f:2:16: parts.b.bandwidth: expected a whole number",
        "f:3:3: parts.a: expected a mapping (`key: value` lines)",
        "f:4:1: name: expected a text",
    ]


def test_the_bounds_of_a_value_are_told() -> None:
    text = "name: ''\nparts: {a: {size: 101, bandwidth: 1.5}}\n"
    assert faults(text) == [
        "f:1:1: name: must not be empty",
        "f:2:13: parts.a.size: must be 100 or less",
        "f:2:24: parts.a.bandwidth: expected a whole number",
    ]


def test_a_misspelt_key_is_reported_once_with_the_key_that_was_meant() -> None:
    text = "name: n\nparts: {}\nrows:\n  - {size: 1, bandwith: 2}\n"
    assert faults(text) == [
        "f:4:15: rows[0].bandwith: unknown key\n  hint: did you mean 'bandwidth'?"
    ]


def test_a_missing_key_need_not_be_spelt_as_nearly() -> None:
    near, far = "bndwith_max", "band"  # 'band' is as near to nothing else that is missing
    assert faults(f"name: n\nparts:\n  a: {{size: 1, {near}: 2}}\n") == [
        f"f:3:16: parts.a.{near}: unknown key\n  hint: did you mean 'bandwidth'?"
    ]
    assert faults(f"name: n\nparts:\n  a: {{size: 1, bandwidth: 1, {far}x: 2}}\n") == [
        f"f:3:30: parts.a.{far}x: unknown key\n  hint: known: size, bandwidth, note"
    ]


def test_a_merge_key_is_told_how_to_do_without() -> None:
    text = (
        "name: n\nparts:\n  a: &a {size: 1, bandwidth: 2}\n  b: {<<: *a, size: 1, bandwidth: 2}\n"
    )
    assert faults(text) == [
        "f:4:7: parts.b.<<: unknown key\n"
        "  hint: merge keys are not read: write the keys out; `*name` stands for a whole value"
    ]


def test_an_unknown_key_like_no_other_gets_the_list_of_known_ones() -> None:
    text = "name: n\nparts: {}\ncolour: red\n"
    assert faults(text) == ["f:3:1: colour: unknown key\n  hint: known: name, parts, rows"]


def test_a_document_that_is_no_mapping_is_refused_as_such() -> None:
    for text in ("17", "[1, 2]", "~", "word"):
        assert faults(text) == ["f:1:1: expected a mapping (`key: value` lines)"]


def test_faulty_keys_are_those_at_the_top() -> None:
    document = parse_document("name: 7\nparts: {a: {size: 1, bandwidth: 2}}\nx: 1\n", "f")
    assert faulty_keys(document, Outer) == {"name", "x"}
    assert faulty_keys(parse_document("name: n\nparts: {}\n", "f"), Outer) == set()


def test_problems_are_sorted_by_place_and_told_once() -> None:
    first, second = Problem(message="b", line=1, column=9), Problem(message="a", line=2, column=1)
    tie = Problem(message="a", line=1, column=9)
    assert in_file_order([second, first, tie, second]) == [tie, first, second]


@pytest.mark.parametrize(
    ("at", "text"),
    [
        ((), ""),
        (("a",), "a"),
        (("memories", "sram", "ports", 1), "memories.sram.ports[1]"),
        (("dma", 0, "routes", 2, 1), "dma[0].routes[2][1]"),
    ],
)
def test_a_location_is_written_with_dots_and_brackets(at: tuple[str | int, ...], text: str) -> None:
    assert dotted(at) == text


def test_a_suggestion_names_the_nearest_or_all() -> None:
    assert suggestion("bnk", ["bank", "ddr"]) == "did you mean 'bank'?"
    assert suggestion("flash", ["bank", "ddr"]) == "known: bank, ddr"


def test_a_problem_of_an_empty_document_stands_at_its_start() -> None:
    assert Document("f", {}, {}).problem(("a", 1), "lost").where == "f:1:1"
