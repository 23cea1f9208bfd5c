"""Placement problems as CSV, in MiniMalloc's format and with two columns more.

Columns: `id`, `lower` and `upper` (half-open; or `start` and `end`, whose last cycle counts) and
`size`; where wanted `alignment`, `hint`, `gaps` (such as `7-9 12-14`, half-open), `address` (fixed)
and `group` (buffers of one group share one place). `offset` is written, and ignored when read.
"""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from tilewright.errors import InputError, Problem
from tilewright.placement.problem import Buffer, Life, Packing, PlacementProblem

_KNOWN = (
    "id", "lower", "upper", "start", "end", "size", "alignment", "hint", "gaps", "offset",
    "address", "group",
)  # fmt: skip
_LARGEST = 2**60
_EXAMPLE = "a first line such as id,lower,upper,size"

Row = Mapping[str, str]


def read_csv(path: str | Path, capacity_bytes: int | None = None) -> PlacementProblem:
    """Read a problem; raises InputError that lists every fault of the file."""
    try:
        text = Path(path).read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise InputError(Problem(file=str(path), message=f"cannot be read: {reason}")) from None
    return parse_csv(text, str(path), capacity_bytes)


def parse_csv(text: str, name: str, capacity_bytes: int | None = None) -> PlacementProblem:
    """Read a problem from text; `name` is what messages call it."""
    try:
        lines = list(csv.reader(io.StringIO(text)))
    except csv.Error as error:
        raise InputError(
            Problem(file=name, message=f"is no CSV that can be read: {error}")
        ) from None
    header = [cell.strip() for cell in lines[0]] if lines else []
    problems = [_at(name, 1, fault, _EXAMPLE) for fault in _header_faults(header)]
    if problems:
        raise InputError(*problems)
    buffers: list[Buffer] = []
    groups: dict[str, list[str]] = {}
    first_line: dict[str, int] = {}
    for number, cells in enumerate(lines[1:], start=2):
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(header):
            message = f"{len(cells)} values where the first line names {len(header)} columns"
            problems.append(_at(name, number, message))
            continue
        row = dict(zip(header, (cell.strip() for cell in cells), strict=True))
        try:
            buffer = _buffer(row)
        except ValueError as error:
            problems.append(_at(name, number, str(error)))
            continue
        if buffer.name in first_line:
            message = f"{buffer.name!r} was already in line {first_line[buffer.name]}"
            problems.append(_at(name, number, message, "give every buffer an id of its own"))
            continue
        first_line[buffer.name] = number
        buffers.append(buffer)
        if row.get("group"):
            groups.setdefault(row["group"], []).append(buffer.name)
    if problems:
        raise InputError(*problems)
    return PlacementProblem(
        buffers=tuple(buffers),
        capacity_bytes=capacity_bytes,
        groups=tuple(tuple(members) for members in groups.values() if len(members) > 1),
    )


def to_csv(packing: Packing) -> str:
    """The problem with its addresses in a column `offset`, as MiniMalloc writes it."""
    buffers = packing.problem.buffers
    with_alignment = any(buffer.alignment_bytes > 1 for buffer in buffers)
    with_gaps = any(len(buffer.lives) > 1 for buffer in buffers)
    output = io.StringIO()
    writer = csv.writer(output, lineterminator="\n")
    columns = ["id", "lower", "upper", "size"]
    columns += ["alignment"] * with_alignment + ["gaps"] * with_gaps
    writer.writerow([*columns, "offset"])
    for buffer, address in zip(buffers, packing.addresses, strict=True):
        cells = [buffer.name, buffer.start_cycle, buffer.end_cycle, buffer.size_bytes]
        cells += [buffer.alignment_bytes] if with_alignment else []
        cells += [" ".join(_gaps(buffer.lives))] if with_gaps else []
        writer.writerow([*cells, address])
    return output.getvalue()


def _gaps(lives: Sequence[Life]) -> Iterator[str]:
    for (_, end), (start, _) in pairwise(lives):
        yield f"{end}-{start}"


def _header_faults(header: Sequence[str]) -> Iterator[str]:
    if not header:
        yield "the file is empty"
        return
    for column in sorted({c for c in header if header.count(c) > 1}):
        yield f"column {column!r} is there twice"
    for column in header:
        if column not in _KNOWN:
            yield f"unknown column {column!r}; known are {', '.join(_KNOWN)}"
    for choices in (("id",), ("lower", "start"), ("upper", "end"), ("size",)):
        if sum(choice in header for choice in choices) != 1:
            yield f"there must be one column {' or '.join(map(repr, choices))}"


def _buffer(row: Row) -> Buffer:
    start = _number(row, "lower" if "lower" in row else "start")
    end = _number(row, "upper") if "upper" in row else _number(row, "end") + 1
    if start >= end:
        raise ValueError(f"{row['id']!r} lives from {start} to {end}: no cycle at all")
    return Buffer(
        name=row["id"],
        lives=_lives(start, end, row.get("gaps", "")),
        size_bytes=_number(row, "size"),
        alignment_bytes=max(1, _number(row, "alignment")) if row.get("alignment") else 1,
        address=_number(row, "address") if row.get("address") else None,
        hint=_number(row, "hint") if row.get("hint") and row["hint"] != "-1" else None,
    )


def _lives(start: int, end: int, gaps: str) -> tuple[Life, ...]:
    lives = []
    for word in gaps.split():
        first, dash, last = word.partition("-")
        if not dash or not first.isdecimal() or not last.isdecimal():
            raise ValueError(f"gaps {gaps!r}: expected such as '7-9 12-14'")
        if not start < int(first) < int(last) < end:
            raise ValueError(f"gap {word} does not lie between {start} and {end}, in order")
        lives.append((start, int(first)))
        start = int(last)
    return (*lives, (start, end))


def _number(row: Row, column: str) -> int:
    text = row[column]
    if not text.isascii() or not text.isdecimal() or len(text) > 19 or int(text) > _LARGEST:
        raise ValueError(f"{column} {text!r}: expected a whole number from 0 to 2^60")
    return int(text)


def _at(name: str, line: int, message: str, hint: str = "") -> Problem:
    return Problem(file=name, line=line, message=message, hint=hint)
