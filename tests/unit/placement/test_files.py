"""Problems as CSV: MiniMalloc's columns, ours, and every fault with its line."""

from pathlib import Path

import pytest

from tilewright.errors import InputError
from tilewright.placement.files import parse_csv, read_csv, to_csv
from tilewright.placement.pack import pack
from tilewright.placement.problem import Buffer


def test_the_four_columns_are_read_in_any_order() -> None:
    problem = parse_csv("size,id,upper,lower\n4,b1,3,0\n8,b2,9,3\n", "x.csv", 12)
    assert problem.buffers == (
        Buffer(name="b1", lives=((0, 3),), size_bytes=4),
        Buffer(name="b2", lives=((3, 9),), size_bytes=8),
    )
    assert problem.capacity_bytes == 12


def test_an_end_column_counts_its_last_cycle() -> None:
    problem = parse_csv("id,start,end,size\na,2,4,1\n", "x.csv")
    assert problem.buffers[0].lives == ((2, 5),)


def test_alignment_hint_gaps_address_and_group_are_read() -> None:
    text = (
        "id,lower,upper,size,alignment,hint,gaps,address,group\n"
        "a,0,20,8,4,16,5-7 9-12,,\n"
        "b,0,5,8,,,,64,g\n"
        "c,5,9,8,,-1,,,g\n"
    )
    problem = parse_csv(text, "x.csv")
    assert problem.buffers[0] == Buffer(
        name="a", lives=((0, 5), (7, 9), (12, 20)), size_bytes=8, alignment_bytes=4, hint=16
    )
    assert problem.buffers[1].address == 64
    assert problem.groups == (("b", "c"),)


def test_what_is_written_can_be_read_back() -> None:
    text = "id,lower,upper,size,alignment,gaps\na,0,9,8,4,3-5\nb,3,5,8,1,\n"
    packing = pack(parse_csv(text, "x.csv"))
    written = to_csv(packing)
    assert written == ("id,lower,upper,size,alignment,gaps,offset\na,0,9,8,4,3-5,0\nb,3,5,8,1,,0\n")
    assert parse_csv(written, "y.csv").buffers == packing.problem.buffers


def test_every_fault_is_told_with_its_line() -> None:
    text = "id,lower,upper,size\na,0,x,1\nb,5,5,1\nc,0,1\nd,0,1,-1\na2,0,1,1\na2,0,1,1\n"
    with pytest.raises(InputError) as error:
        parse_csv(text, "x.csv")
    assert [(p.line, p.message) for p in error.value.problems] == [
        (2, "upper 'x': expected a whole number from 0 to 2^60"),
        (3, "'b' lives from 5 to 5: no cycle at all"),
        (4, "3 values where the first line names 4 columns"),
        (5, "size '-1': expected a whole number from 0 to 2^60"),
        (7, "'a2' was already in line 6"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("id,lower,upper\n", "there must be one column 'size'"),
        ("id,lower,upper,end,size\n", "there must be one column 'upper' or 'end'"),
        ("id,lower,upper,size,colour\n", "unknown column 'colour'"),
        ("id,id,lower,upper,size\n", "column 'id' is there twice"),
        ("id,lower,upper,size,gaps\na,0,9,1,3\n", "expected such as"),
        ("id,lower,upper,size,gaps\na,0,9,1,3-12\n", "does not lie between"),
        ("id,lower,upper,size,gaps\na,0,9,1,5-6 3-4\n", "does not lie between"),
        ("id,lower,upper,size,alignment,address\na,0,9,1,4,2\n", "not aligned"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_csv(text, "x.csv")


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_csv(tmp_path / "no.csv")
    binary = tmp_path / "binary.csv"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not UTF-8"):
        read_csv(binary)
