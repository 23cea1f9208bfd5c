"""What a user fixes about mappings: unrolling, hints, loop order; read from ZigZag's files."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from tilewright.document import Document, in_file_order, validate
from tilewright.document.file_model import FileModel, Length, Pattern
from tilewright.errors import Problem
from tilewright.network.graph import Op

DEFAULT_LINKS = (("O", "O"), ("W", "I2"), ("I", "I1"))

_TYPE_NAMES = {
    "conv": ("Conv",),
    "matmul": ("Gemm", "MatMul"),
    "add": ("Add",),
    "max_pool": ("MaxPool", "Pooling", "Pool"),
    "average_pool": ("AveragePool", "Pooling", "Pool"),
}

ArrayDim = Annotated[str, Pattern(r"D\d{1,2}", "an array dimension such as D1")]
_FACTOR = re.compile(r"\s*([A-Za-z]\w{0,30})\s*,\s*(\d{1,9})\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """What is fixed for ops of one name or type.

    `spatial` gives (array dim, ((loop, factor), …)); `hints` (array dim, (loop, …)); `order` the
    temporal loops, innermost first, as (loop or `*`, size or None); `links` which machine operand
    (I1, I2, O) carries which operand of an op.
    """

    name: str
    spatial: tuple[tuple[str, tuple[tuple[str, int], ...]], ...] = ()
    hints: tuple[tuple[str, tuple[str, ...]], ...] = ()
    order: tuple[tuple[str, int | None], ...] = ()
    links: tuple[tuple[str, str], ...] = DEFAULT_LINKS


@dataclass(frozen=True)
class ConstraintReading:
    """A mapping file as far as it could be read."""

    document: Document
    constraints: tuple[Constraint, ...]
    problems: tuple[Problem, ...]


class _EntryFile(FileModel):
    name: str
    core_allocation: list[int] | None = None
    spatial_mapping: dict[ArrayDim, list[str]] | None = None
    spatial_mapping_hint: dict[ArrayDim, list[str]] | None = None
    temporal_ordering: list[Annotated[list[str | int], Length(2, 2)]] | None = None
    memory_operand_links: dict[str, Literal["I1", "I2", "O"]] | None = None


def is_mapping(data: object) -> bool:
    """Whether a YAML document looks like a mapping file: a list of named entries."""
    return isinstance(data, list) and all(isinstance(e, dict) and "name" in e for e in data)


def read_constraints(document: Document) -> ConstraintReading:
    """Read a ZigZag mapping file; all faults of all entries are found."""
    problems = list(document.warnings)
    constraints: list[Constraint] = []
    if not isinstance(document.data, list):
        message = "a mapping file is a list of entries, each with a `name`"
        return ConstraintReading(document, (), (document.problem((), message),))
    for i in range(len(document.data)):
        file, faults = validate(document, _EntryFile, None, (i,))
        problems += faults
        if file is None:
            continue
        if any(c.name == file.name for c in constraints):
            text = f"a second entry {file.name!r}; the first is used"
            problems.append(document.problem((i,), text, severity="warning", hint="delete one"))
        constraint, faults = _constraint(document, i, file)
        problems += faults
        constraints.append(constraint)
    if not problems and not any(c.name == "default" for c in constraints):
        text = "there is no entry `default`: ops without an entry of their own have none"
        problems.append(document.problem((), text, hint="write an entry `- name: default`"))
    return ConstraintReading(document, tuple(constraints), tuple(in_file_order(problems)))


def constraint_for(op: Op, constraints: Mapping[str, Constraint]) -> Constraint | None:
    """The entry for an op: by its name, else by its type, else `default`.

    The type is what the op's file calls it; an op of the zoo goes by the names of its kind.
    """
    stated = str(op.attribute("zigzag_type") or op.attribute("onnx_op"))
    types = (stated,) if stated else _TYPE_NAMES.get(op.kind, ())
    for key in (op.name, *types, "default"):
        if key in constraints:
            return constraints[key]
    return None


def _constraint(
    document: Document, position: int, file: _EntryFile
) -> tuple[Constraint, list[Problem]]:
    problems: list[Problem] = []
    spatial = []
    for dim, texts in (file.spatial_mapping or {}).items():
        pairs = []
        for j, text in enumerate(texts):
            match = _FACTOR.fullmatch(text)
            if match is None or int(match[2]) < 1:
                place = (position, "spatial_mapping", dim, j)
                message = f"{text!r} is no loop and factor"
                problems.append(document.problem(place, message, hint="such as 'K, 8'"))
            else:
                pairs.append((match[1].upper(), int(match[2])))
        spatial.append((dim, tuple(pairs)))
    order: list[tuple[str, int | None]] = []
    for j, (loop, size) in enumerate(file.temporal_ordering or ()):
        if not isinstance(loop, str) or not (size == "*" or (isinstance(size, int) and size > 0)):
            at = (position, "temporal_ordering", j)
            message = f"[{loop}, {size}] is no loop and size"
            problems.append(document.problem(at, message, hint="such as [OX, 14] or [K, '*']"))
        else:
            order.append((loop.upper(), size if isinstance(size, int) else None))
    hints = tuple(
        (dim, tuple(loop.upper() for loop in loops))
        for dim, loops in (file.spatial_mapping_hint or {}).items()
    )
    links = tuple((file.memory_operand_links or {}).items()) or DEFAULT_LINKS
    carriers = [carrier for _, carrier in links]
    twice = next((carrier for carrier in carriers if carriers.count(carrier) > 1), None)
    if twice is not None:
        message = f"{twice} carries {' and '.join(o for o, c in links if c == twice)}"
        hint = "give each operand one of its own: {O: O, W: I2, I: I1}"
        problems.append(document.problem((position, "memory_operand_links"), message, hint=hint))
    return Constraint(
        name=file.name, spatial=tuple(spatial), hints=hints, order=tuple(order), links=links
    ), problems
