"""Sharing: which units of the array get an element of an operand together."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tilewright.document import Document, Location, dotted
from tilewright.errors import Problem
from tilewright.machine.files import MemoryFile, OldMemoryFile
from tilewright.machine.model import (
    INPUT_OPERANDS,
    OUTPUT_OPERAND,
    UNION,
    Machine,
    Memory,
    Operand,
    Sharing,
)

_TERM = re.compile(r"(?:([0-9]{1,2})\*)?(D[0-9]{1,2})")


def parse_sharing(
    document: Document, at: Location, file: MemoryFile | OldMemoryFile, dims: Sequence[str]
) -> tuple[tuple[Sharing, ...], list[Problem]]:
    """Read `sharing: {I1: D1 + D2}`: unit (d1, d2) gets element d1 + d2 of the operand.

    `dims` are those of the array; none if they could not be read.
    """
    result, problems = [], []
    for operand, text in file.sharing.items():
        here = (*at, operand)
        if operand not in file.operands:
            message = f"{dotted(here)}: this memory holds no {operand!r}"
            hint = f"operands: {', '.join(file.operands)}"
            problems.append(document.problem(here, message, hint=hint))
            continue
        if text.strip() == UNION:
            result.append(Sharing(operand=operand, is_union=True))
            continue
        terms: dict[str, int] = {}
        for part in text.replace(" ", "").split("+"):
            match = _TERM.fullmatch(part)
            if match is None or (dims and match[2] not in dims):
                message = f"{dotted(here)}: {text!r} is no sum of array dimensions"
                hint = f"such as '{' + '.join(dims[:2]) or 'D1 + D2'}', or {UNION!r}"
                problems.append(document.problem(here, message, hint=hint))
                break
            terms[match[2]] = terms.get(match[2], 0) + int(match[1] or 1)
        else:
            result.append(Sharing(operand=operand, terms=tuple(terms.items())))
    return tuple(result), problems


def unshared(memories: Iterable[Memory]) -> tuple[Operand, ...]:
    """Operands of which no memory says how units share them."""
    said = {sharing.operand for memory in memories for sharing in memory.sharing}
    return tuple(o for o in (*INPUT_OPERANDS, OUTPUT_OPERAND) if o not in said)


def assumed_sharing(machine: Machine) -> Iterator[str]:
    """What is taken for granted about sharing because the file does not say it."""
    if machine.unions:
        yield (
            f"units that want the same element of {', '.join(machine.unions)} get it together, "
            f"wherever they stand, as ZigZag counts (sharing: {UNION})"
        )


def distinct_elements(sharing: Sharing, sizes: Mapping[str, int]) -> int:
    """Different elements that the units need in one cycle.

    >>> diagonal = Sharing(operand="I1", terms=(("D1", 1), ("D2", 1)))
    >>> distinct_elements(diagonal, {"D1": 8, "D2": 8})
    15
    """
    reached = 1  # one bit for every element that some unit needs
    for dim, factor in sharing.terms:
        done = 1
        while done < sizes[dim]:
            step = min(done, sizes[dim] - done)
            reached |= reached << (factor * step)
            done += step
    return reached.bit_count()
