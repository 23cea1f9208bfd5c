"""Affine sharing: which units of the array get the same element of an operand."""

import re
from collections.abc import Mapping

from tilewright.document import Document, Location, dotted
from tilewright.errors import Problem
from tilewright.machine.files import MemoryFile, OldMemoryFile
from tilewright.machine.model import Sharing

_TERM = re.compile(r"(?:([0-9]{1,2})\*)?(D[0-9]{1,2})")


def parse_sharing(
    document: Document, at: Location, file: MemoryFile | OldMemoryFile
) -> tuple[tuple[Sharing, ...], list[Problem]]:
    """Read `sharing: {I1: D1 + D2}`: unit (d1, d2) gets element d1 + d2 of the operand."""
    result, problems = [], []
    served = file.served_dimensions
    for operand, text in file.sharing.items():
        here = (*at, operand)
        if operand not in file.operands:
            message = f"{dotted(here)}: this memory holds no {operand!r}"
            hint = f"operands: {', '.join(file.operands)}"
            problems.append(document.problem(here, message, hint=hint))
            continue
        terms: dict[str, int] = {}
        for part in text.replace(" ", "").split("+"):
            match = _TERM.fullmatch(part)
            if match is None or match[2] not in served:
                message = f"{dotted(here)}: {text!r} is no sum of array dimensions that it serves"
                hint = f"such as '{' + '.join(served[:2]) or 'D1 + D2'}'"
                problems.append(document.problem(here, message, hint=hint))
                break
            terms[match[2]] = terms.get(match[2], 0) + int(match[1] or 1)
        else:
            result.append(Sharing(operand=operand, terms=tuple(terms.items())))
    return tuple(result), problems


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
