"""Mappings as text that a person can read and the program can read back.

    op conv1
    nest B 1, K 64, C 3, OY 112, OX 112, FY 7, FX 7
    unroll D1: K 8; D2: C 3; D3: OX 4; D4: OY 4
    loop    O         W          I
    K 8     sram_2MB  dram       sram_2MB
    OX 28   sram_2MB  sram_32KB  sram_2MB
    FX 7    rf_2B     sram_32KB  sram_2MB

Loops stand outermost first; the columns say which memory keeps each operand while the loop runs.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilewright.errors import InputError, Problem
from tilewright.mapping.attach import Unrolling
from tilewright.mapping.evaluate import Loops, Setup
from tilewright.mapping.hierarchy import Hierarchy
from tilewright.mapping.nest import LoopNest

HEADER = "# tilewright mappings"


@dataclass(frozen=True)
class GivenMapping:
    """A mapping that was read: unrolling, loops outermost first, and each loop's memories."""

    line: int
    nest: tuple[tuple[str, int], ...]
    unrolling: Unrolling
    loops: tuple[tuple[str, int], ...]
    memories: Mapping[str, tuple[str, ...]]
    """Per operand, the memory of every loop."""


def mapping_text(name: str, setup: Setup, loops: Loops) -> str:
    """One mapping as text."""
    letters = [operand.letter for operand in setup.nest.operands]
    columns = {letter: _memories(setup.hierarchy, letter, loops) for letter in letters}
    rows = [["loop", *letters]]
    for place in range(len(loops.order) - 1, -1, -1):
        loop, size = loops.order[place]
        rows.append([f"{loop} {size}", *(columns[letter][place] for letter in letters)])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    nest = ", ".join(f"{loop} {size}" for loop, size in setup.nest.dims)
    unroll = "; ".join(
        f"{dim}: {', '.join(f'{loop} {factor}' for loop, factor in pairs) or '-'}"
        for dim, pairs in setup.spatial.unrolling
    )
    return "\n".join([f"op {name}", f"nest {nest}", f"unroll {unroll}", *lines, ""])


def read_mappings(text: str, file: str) -> dict[str, GivenMapping]:
    """All mappings of a text, by the name of their op.

    Raises:
        InputError: a line that cannot be understood, with its number.
    """
    result: dict[str, GivenMapping] = {}
    blocks = _blocks(text)
    for number, lines in blocks:
        name = lines[0].removeprefix("op ").strip()
        try:
            result[name] = _block(number, lines)
        except (ValueError, IndexError) as error:
            message = f"mapping of op {name!r} cannot be read: {error}"
            raise InputError(Problem(file=file, line=number, column=1, message=message)) from None
    return result


def given_loops(given: GivenMapping, nest: LoopNest, hierarchy: Hierarchy) -> Loops:
    """A given mapping as loops with level ends, checked against the nest and the memories.

    Raises:
        ValueError: it belongs to another nest or machine, or its levels do not ascend.
    """
    if given.nest != nest.dims:
        raise ValueError("it was made for a nest with other loops")
    order = given.loops[::-1]
    ends = []
    for operand in nest.operands:
        names = [hierarchy.levels[i][0].name for i in hierarchy.chains[operand.letter]]
        column = given.memories.get(operand.letter, ())[::-1]
        if len(column) != len(order) or any(name not in names for name in column):
            raise ValueError(f"{operand.letter} is kept in memories that do not serve it")
        levels = [names.index(name) for name in column]
        if levels != sorted(levels):
            raise ValueError(f"an outer loop of {operand.letter} lies below an inner one")
        cuts = tuple(sum(level <= m for level in levels) for m in range(len(names)))
        ends.append((operand.letter, cuts))
    return Loops(order, tuple(ends))


def _memories(hierarchy: Hierarchy, letter: str, loops: Loops) -> list[str]:
    ends = dict(loops.ends)[letter]
    names = [hierarchy.levels[i][0].name for i in hierarchy.chains[letter]]
    return [
        next(name for name, end in zip(names, ends, strict=True) if place < end)
        for place in range(len(loops.order))
    ]


def _blocks(text: str) -> list[tuple[int, list[str]]]:
    blocks: list[tuple[int, list[str]]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("op "):
            blocks.append((number, [line]))
        elif blocks and line.strip() and not line.startswith("#"):
            blocks[-1][1].append(line)
    return blocks


def _block(number: int, lines: Sequence[str]) -> GivenMapping:
    nest_line, unroll_line, header, *rows = lines[1:]
    if not nest_line.startswith("nest ") or not unroll_line.startswith("unroll "):
        raise ValueError("expected the lines `nest …` and `unroll …` after `op …`")
    letters = header.split()[1:]
    cells = [_cells(header, row, len(letters) + 2) for row in rows]
    if any(len(row) != len(letters) + 2 for row in cells):
        raise ValueError(f"expected a loop, its size and {len(letters)} memories in each line")
    return GivenMapping(
        line=number,
        nest=_pairs(nest_line.removeprefix("nest ")),
        unrolling=tuple(
            (dim.strip(), _pairs(pairs) if pairs.strip() != "-" else ())
            for dim, _, pairs in (
                part.partition(":") for part in unroll_line.removeprefix("unroll ").split(";")
            )
        ),
        loops=tuple((row[0], int(row[1])) for row in cells),
        memories={letter: tuple(row[i + 2] for row in cells) for i, letter in enumerate(letters)},
    )


def _cells(header: str, row: str, count: int) -> list[str]:
    """A loop, its size and its memories; names with blanks in them by the columns of the header."""
    cells = row.split()
    if len(cells) == count:
        return cells
    starts = [column.start() for column in re.finditer(r"\S+", header)]
    columns = zip(starts, [*starts[1:], len(row)], strict=True)
    first, *memories = [row[start:end].strip() for start, end in columns]
    return [*first.split(), *filter(None, memories)]


def _pairs(text: str) -> tuple[tuple[str, int], ...]:
    parts = [part.split() for part in text.split(",") if part.strip()]
    return tuple((loop, int(size)) for loop, size in parts)
