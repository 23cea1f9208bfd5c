"""What a cascade has to make and to hold, counted row by row from the loops of its ops."""

from collections.abc import Mapping, Sequence
from itertools import product

from tilewright.network.graph import Index, Operand
from tilewright.program.cascade import Turn
from tilewright.program.rows import Rows

Reads = Mapping[str, frozenset[int]]
"""Rows by storage."""


def positions(index: Index, sizes: Mapping[str, int], loop: str, row: int) -> frozenset[int]:
    """Where every point of a nest with one loop at `row` lands on an axis, padding included."""
    ranges = [[row] if dim == loop else range(sizes[dim]) for dim, _ in index.terms]
    sums = [
        index.offset + sum(f * at for (_, f), at in zip(index.terms, point, strict=True))
        for point in product(*ranges)
    ]
    return frozenset(at // index.divisor for at in sums if at % index.divisor == 0)


def _row_axis(operand: Operand, loop: str) -> int | None:
    for axis, index in enumerate(operand.index or ()):
        if loop in dict(index.terms):
            return axis
    return None


def operand_rows(rows: Rows, number: int, operand: Operand, loop: str, row: int) -> frozenset[int]:
    """The rows of an operand that are read for one row of a stage's result.

    From the first to the last that it is made of: a task reads boxes, without holes.
    """
    tensor, axis = rows.network.by_name[operand.tensor], _row_axis(operand, loop)
    if tensor.role == "constant" or axis is None or operand.index is None:
        return frozenset()
    touched = positions(operand.index[axis], rows.stages[number].op.sizes, loop, row)
    span = range(min(touched), max(touched) + 1) if touched else range(0)
    return frozenset(at for at in span if 0 <= at < tensor.shape[axis])


def rows_read(rows: Rows, number: int, loop: str, row: int) -> Reads:
    """The rows of each storage that are read for one row of a stage's result."""
    found: dict[str, frozenset[int]] = {}
    for operand in rows.stages[number].inputs:
        root = rows.storage[operand.tensor].root
        read = operand_rows(rows, number, operand, loop, row)
        if read:
            found[root] = found.get(root, frozenset()) | read
    return found


def turn_reads(rows: Rows, turns: Sequence[Turn], loops: Mapping[int, str]) -> list[Reads]:
    """By turn the rows that it reads."""
    found: list[Reads] = []
    for turn in turns:
        reads: dict[str, frozenset[int]] = {}
        for row in range(turn.start, turn.stop):
            for root, touched in rows_read(rows, turn.stage, loops[turn.stage], row).items():
                reads[root] = reads.get(root, frozenset()) | touched
        found.append(reads)
    return found


def arrivals(turns: Sequence[Turn], reads: Sequence[Reads], rows: Rows) -> dict[str, list[range]]:
    """By storage and turn the rows that come then: as its stage makes them, or as one reads them.

    Rows from outside come one behind the other, also those that nobody reads.
    """
    made = {rows.root(turn.stage) for turn in turns}
    outside = sorted({root for found in reads for root in found} - made)
    first = {root: min(min(found[root]) for found in reads if root in found) for root in outside}
    come: dict[str, list[range]] = {root: [] for root in sorted(made) + outside}
    for turn, found in zip(turns, reads, strict=True):
        for root, history in come.items():
            if root in made:
                mine = rows.root(turn.stage) == root
                history.append(range(turn.start, turn.stop) if mine else range(0))
            else:
                behind = max([first[root], *(span.stop for span in history)])
                needed = max(found.get(root, ()), default=-1) + 1
                history.append(range(behind, max(behind, needed)) if needed > behind else range(0))
    return come


def rows_held(root: str, come: Sequence[range], reads: Sequence[Reads]) -> int:
    """From the oldest row that is still read to the newest one, at the worst moment."""
    last_read = {row: when for when, found in enumerate(reads) for row in found.get(root, ())}
    there: set[int] = set()
    most = 1
    for when, arriving in enumerate(come):
        if not arriving:
            continue
        there = {row for row in there if last_read.get(row, -1) >= when} | set(arriving)
        most = max(most, max(arriving) - min(there) + 1)
    return most
