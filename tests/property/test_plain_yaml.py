"""What is read without the YAML library is what the library reads, places included.

TILEWRIGHT_FUZZ sets the number of examples of each test, and leaves them to chance.
"""

import os
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.random_cases import examples

from tilewright.document.any_yaml import parse_any_yaml
from tilewright.document.plain_yaml import plain_data
from tilewright.machine.load import library_names, machine_path

FUZZ = settings(
    max_examples=int(os.environ.get("TILEWRIGHT_FUZZ", examples(300))),
    derandomize="TILEWRIGHT_FUZZ" not in os.environ,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
TESTS = Path(__file__).parents[1]
FILES = [
    *sorted(TESTS.glob("*/*.yaml")),
    *(machine_path(name) for name in library_names()),
]
TEXTS = [path.read_text(encoding="utf-8") for path in FILES]
PIECES = st.one_of(
    st.sampled_from("{}[],:-&*#?|>@'\"%!~\n \\0123456789.eExX_aIO+=/()$^;<\t"),
    st.sampled_from([" # c", ": ", "- ", "  ", "1_0", "0x1f", "null", "True", "yes", "1e3", ".5"]),
    st.sampled_from(["-1", "a: b", "'a b'", '"c"', "[a, {b: 1}]", "[]", "{}", "{a: }", "[a, ]"]),
    st.sampled_from(["2001-01-01", "1:30", "007", "<<", "---", "...", "&a x", "é"]),
)
VALUES = st.lists(PIECES, min_size=1, max_size=5).map("".join)
FRAMES = ("k: @", "k: @\nl: 1", "- @\n- b", "- k: @\n  l: 2", "k:\n  m: @\nn: 1", "k:\n- @\nl: 2")


@st.composite
def changed_files(draw: st.DrawFn) -> str:
    """Some lines of a file, with a few places changed."""
    lines = draw(st.sampled_from(TEXTS)).split("\n")
    start = draw(st.integers(0, len(lines) - 1))
    lines = lines[start : start + draw(st.integers(1, 25))]
    for _ in range(draw(st.integers(0, 3))):
        number = draw(st.integers(0, len(lines) - 1))
        line = lines[number]
        place = draw(st.integers(0, len(line)))
        match draw(st.sampled_from(["put", "cut", "indent", "double", "drop"])):
            case "put":
                lines[number] = line[:place] + draw(PIECES) + line[place:]
            case "cut":
                lines[number] = line[:place] + line[place + 1 :]
            case "indent":
                lines[number] = f"  {line}" if draw(st.booleans()) else line[1:]
            case "double":
                lines.insert(number, line)
            case _:
                lines[number] = ""
    return "\n".join(lines)


def agrees_if_plain(text: str) -> bool:
    """Whether the text is plain; if so, the library must say the same of it."""
    read = plain_data(text)
    if read is None:
        return False
    document = parse_any_yaml(text, "f", last_key_wins=False)
    assert repr(read[0]) == repr(document.data)
    assert read[1] == document.places
    return True


def test_machines_of_the_library_are_plain() -> None:
    texts = [machine_path(name).read_text(encoding="utf-8") for name in library_names()]
    assert all(agrees_if_plain(text) for text in texts)


@FUZZ
@given(changed_files())
def test_changed_files_are_read_as_the_library_reads_them(text: str) -> None:
    agrees_if_plain(text)


@FUZZ
@given(st.sampled_from(FRAMES), VALUES)
def test_any_value_is_read_as_the_library_reads_it(frame: str, value: str) -> None:
    agrees_if_plain(frame.replace("@", value))
