"""One layer of a ZigZag workload file: its equation, loops, relations and precisions."""

import re
from dataclasses import dataclass
from math import gcd
from typing import Annotated

from tilewright.document.file_model import FileModel, Length, Range
from tilewright.network.graph import MAX_SIZE

KINDS = {
    "Conv": "conv",
    "Conv_downsample": "conv",
    "ConvTranspose": "conv_transpose",
    "Gemm": "matmul",
    "MatMul": "matmul",
    "Add": "add",
    "Mul": "mul",
    "Max": "max",
    "Pooling": "max_pool",
    "Pool": "max_pool",
    "MaxPool": "max_pool",
    "AveragePool": "average_pool",
    "GlobalAveragePool": "average_pool",
}
"""Operator types, and the kind of op each becomes."""

_ACCESS = r"[A-Za-z]\w{0,30}(?:\s*\[\w{0,40}\])+"
_EQUATION = re.compile(rf"\s*({_ACCESS})\s*(\+?=)\s*({_ACCESS})\s*(?:([*+])\s*({_ACCESS})\s*)?")
_TERM = r"(?:(\d{1,12})\s*\*\s*)?([A-Za-z]\w{0,30})"
_RELATION = re.compile(rf"\s*([A-Za-z]\w{{0,30}})\s*=\s*{_TERM}\s*\+\s*{_TERM}\s*")

Size = Annotated[int, Range(least=1, most=MAX_SIZE)]
Pad = Annotated[int, Range(least=0)]
Bits = Annotated[int, Range(least=0, most=1024)]


class LayerFile(FileModel):
    """A layer as it is written."""

    id: int
    name: str | None = None
    operator_type: str
    equation: Annotated[str, Length(most=2000)]
    dimension_relations: list[Annotated[str, Length(most=200)]] | None = None
    loop_dims: Annotated[list[str], Length(most=64)]
    loop_sizes: list[Size]
    operand_precision: dict[str, Bits]
    operand_source: dict[str, int] | None = None
    constant_operands: list[str] | None = None
    operand_source_dimension_mapping: dict[str, dict[str, str]] | None = None
    pr_loop_dims: list[str] | None = None
    pr_loop_sizes: list[Size] | None = None
    padding: list[Annotated[list[Pad], Length(2, 2)]] | None = None


@dataclass(frozen=True, slots=True)
class Relation:
    """`target = Σ coefficient × dim`, of two dims."""

    target: str
    terms: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        return f"{self.target}=" + "+".join(f"{c}*{d}" for d, c in self.terms)

    def distinct(self, sizes: dict[str, int]) -> int:
        """Different values of the target: ZigZag's formula, exact for two terms."""
        (a, ca), (b, cb) = self.terms
        common = gcd(ca, cb)
        size_a, size_b = sizes[a], sizes[b]
        return size_a * size_b - max(0, size_b - ca // common) * (size_a - cb // common)

    def span(self, sizes: dict[str, int]) -> int:
        """From the smallest to the largest value, inclusive."""
        return sum(c * (sizes[d] - 1) for d, c in self.terms) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A layer whose equation has been taken apart; names of dims are upper case."""

    id: int
    name: str
    type: str
    dims: tuple[tuple[str, int], ...]
    operands: tuple[tuple[str, tuple[str, ...]], ...]
    """Letters with their index names, the output first."""
    relations: tuple[Relation, ...]
    precision: dict[str, int]
    sources: dict[str, int]
    sizes_given: dict[str, int]
    pads: dict[str, tuple[int, int]]

    @property
    def kind(self) -> str:
        """The kind of op it becomes."""
        return KINDS[self.type]

    @property
    def sizes(self) -> dict[str, int]:
        """Loop sizes by dim."""
        return dict(self.dims)

    def relation(self, target: str) -> Relation | None:
        """The relation that defines an index."""
        return next((r for r in self.relations if r.target == target), None)


def layer_of(file: LayerFile) -> tuple[Layer | None, list[tuple[str, str, str]]]:
    """Take a layer apart; returns it, or None, and faults as (key, message, hint)."""
    faults: list[tuple[str, str, str]] = []
    if file.operator_type not in KINDS:
        known = ", ".join(KINDS)
        faults.append(("operator_type", f"{file.operator_type!r} is not known", f"known: {known}"))
    dims = _dims(file, faults)
    relations = _relations(file, dict(dims), faults)
    operands = _operands(file, dict(dims), relations, faults)
    names = [letter for letter, _ in operands]
    for letter in [*names, "O_final"]:
        if operands and letter not in file.operand_precision:
            message = f"the precision of {letter} is missing"
            faults.append(("operand_precision", message, f"write {letter}: 8"))
    faults += [
        ("operand_precision", f"{key} of 0 bits holds nothing", f"write {key}: 8")
        for key in ("O", "O_final")
        if file.operand_precision.get(key) == 0
    ]
    pads, given = _window_sizes(file, faults)
    if faults:
        return None, faults
    return Layer(
        id=file.id,
        name=file.name or f"Layer{file.id}",
        type=file.operator_type,
        dims=dims,
        operands=operands,
        relations=relations,
        precision=dict(file.operand_precision),
        sources=dict(file.operand_source or {}),
        sizes_given=given,
        pads=pads,
    ), []


def _dims(file: LayerFile, faults: list[tuple[str, str, str]]) -> tuple[tuple[str, int], ...]:
    names = [dim.upper() for dim in file.loop_dims]
    if len(names) != len(file.loop_sizes):
        counts = f"{len(names)} loop_dims and {len(file.loop_sizes)} loop_sizes do not match"
        faults.append(("loop_sizes", counts, "write one size per dim"))
    for name in names:
        if names.count(name) > 1:
            faults.append(("loop_dims", f"{name} stands twice", "name each loop once"))
            break
    return tuple(zip(names, file.loop_sizes, strict=False))


def _relations(
    file: LayerFile, sizes: dict[str, int], faults: list[tuple[str, str, str]]
) -> tuple[Relation, ...]:
    result: list[Relation] = []
    for text in file.dimension_relations or ():
        match = _RELATION.fullmatch(text)
        if match is None:
            message = f"{text!r} is no relation of two loops"
            faults.append(("dimension_relations", message, "such as ix=2*ox+1*fx"))
            continue
        target, *parts = match.groups()
        terms = ((parts[1].upper(), int(parts[0] or 1)), (parts[3].upper(), int(parts[2] or 1)))
        unknown = [d for d, _ in terms if d not in sizes]
        if unknown or terms[0][0] == terms[1][0]:
            message = f"{text!r}: {unknown[0] if unknown else 'a dim twice'} is no loop"
            faults.append(("dimension_relations", message, f"loops: {', '.join(sizes)}"))
        elif target.upper() in sizes or target.upper() in [r.target for r in result]:
            message = f"{text!r}: {target.upper()} is a loop or defined already"
            faults.append(("dimension_relations", message, "relate an index that is no loop"))
        elif any(not 0 < c <= MAX_SIZE for _, c in terms):
            faults.append(("dimension_relations", f"{text!r}: impossible factor", "use 1 or more"))
        else:
            result.append(Relation(target.upper(), terms))
    return tuple(result)


def _operands(
    file: LayerFile,
    sizes: dict[str, int],
    relations: tuple[Relation, ...],
    faults: list[tuple[str, str, str]],
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    match = _EQUATION.fullmatch(file.equation)
    if match is None:
        example = "O[b][k][oy][ox]+=W[k][c][fy][fx]*I[b][c][iy][ix]"
        message = f"{file.equation!r} cannot be read"
        faults.append(("equation", message, f"such as {example}"))
        return ()
    result = []
    known = [*sizes, *(r.target for r in relations)]
    for text in (match[1], match[3], match[5]):
        if text is None:
            continue
        letter, _, rest = text.partition("[")
        indices = tuple(i.upper() for i in re.findall(r"\[\s*(\w*)\s*", "[" + rest) if i)
        missing = [i for i in indices if i not in known]
        if missing:
            message = f"index {missing[0].lower()!r} is neither a loop nor in a relation"
            faults.append(("equation", message, f"loops: {', '.join(sizes)}"))
        result.append((letter.strip(), indices))
    letters = [letter for letter, _ in result]
    if letters[0] != "O" or len(set(letters)) != len(letters):
        message = f"operands {', '.join(letters)}: the result is O, and each letter stands once"
        faults.append(("equation", message, ""))
    return tuple(result)


def _window_sizes(
    file: LayerFile, faults: list[tuple[str, str, str]]
) -> tuple[dict[str, tuple[int, int]], dict[str, int]]:
    """Padding and total size of each related index, where the file gives them."""
    names = [name.upper() for name in file.pr_loop_dims or ()]
    pads, given = file.padding or [], file.pr_loop_sizes or []
    for key, values in (("padding", pads), ("pr_loop_sizes", given)):
        if values and len(values) != len(names):
            message = f"{len(values)} entries for {len(names)} pr_loop_dims"
            faults.append((key, message, "write one entry per name in pr_loop_dims"))
    windows = {n: (p[0], p[1]) for n, p in zip(names, pads, strict=False)}
    return windows, dict(zip(names, given, strict=False))
