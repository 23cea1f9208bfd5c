"""Stages cut into cells (rows, or pixels with all their channels), and the cells they read."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

from tilewright.machine.model import Machine
from tilewright.mapping.hierarchy import partial_sum_bits
from tilewright.network.graph import Index, Network, Op, Operand
from tilewright.network.kinds import is_mac
from tilewright.program.boxes import elements, overlap, shifted, touched, whole
from tilewright.program.model import Box
from tilewright.program.stages import Stage, Storage, stages_of, storages
from tilewright.units import packed_bytes

Granularity = Literal["pixel", "row"]
Span = tuple[int, int]
Place = tuple[int | None, int | None]
"""The axes of a tensor that rows and columns of cells follow."""
Loops = tuple[str | None, str | None]
"""The loops over rows and columns that a stage's steps run over; None: not cut."""

ROWS, COLUMNS = "OY", "OX"
POOLS = ("max_pool", "average_pool")

LEAST_SUM_BITS: Final = 16
"""Sums are kept at least this wide; a running maximum is as wide as what it runs over."""


@dataclass(frozen=True, kw_only=True)
class Held:
    """A tensor that comes in or that a stage makes, and how it can be cut into cells."""

    tensor: str
    shape: tuple[int, ...]
    bits: int
    origin: tuple[int, ...]
    """Where it begins in its root's coordinates."""
    root: str
    place: Place
    is_seen_as_one: bool
    """Whether somebody reads its bytes under another shape, so that they must lie together."""

    @cached_property
    def size_bytes(self) -> int:
        """All of it, densely packed."""
        return packed_bytes(elements(whole(self.shape)), self.bits)


@dataclass(frozen=True, slots=True)
class Grid:
    """Rows and columns of cells that a held tensor is cut into; one of each: not at all."""

    held: Held
    rows: int
    columns: int

    def box(self, row: int, column: int) -> Box:
        """The elements of a cell."""
        spans = list(whole(self.held.shape))
        for axis, at, count in zip(
            self.held.place, (row, column), (self.rows, self.columns), strict=True
        ):
            if axis is not None and count > 1:
                spans[axis] = (at, at + 1)
        return tuple(spans)

    @property
    def cell_bytes(self) -> int:
        """Bytes of a cell, all of them alike."""
        return packed_bytes(elements(self.box(0, 0)), self.held.bits)


@dataclass(frozen=True, slots=True)
class Reach:
    """Cells of a grid that each row and each column of a stage's steps reads."""

    tensor: str
    rows: tuple[Span, ...]
    columns: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Tap:
    """A row (or column) of an input as a step of a window's loop; padding goes to a neighbour."""

    at: int
    span: Span


@dataclass(frozen=True, slots=True)
class Window:
    """A pool's window along one axis: its loop, and by result the taps that are no padding."""

    dim: str
    taps: tuple[tuple[Tap, ...], ...]


@dataclass(frozen=True, kw_only=True)
class Work:
    """A network's stages, and every tensor that is held while they run."""

    network: Network
    stages: tuple[Stage, ...]
    storage: Mapping[str, Storage]
    held: Mapping[str, Held]
    makers: Mapping[str, int]
    """Stage by held tensor; inputs have none."""
    machine: Machine | None = None
    """Whose array makes partial sums; without one, these are as narrow as they can be."""

    def sum_bits(self, stage: Stage) -> int:
        """How wide an accumulator of a stage's result is."""
        op, bits = stage.op, self.held[stage.results[0].tensor].bits
        if op.kind == "max_pool":
            return bits
        if self.machine is None or not is_mac(op.kind):
            return max(bits, LEAST_SUM_BITS)
        made = partial_sum_bits(self.machine, self.machine.cores[0], op.accumulator_bits)
        return max(bits, LEAST_SUM_BITS, made)

    @cached_property
    def constants(self) -> tuple[str, ...]:
        """Constants that some stage reads, in the order of their first use."""
        names = [self.storage[o.tensor].root for stage in self.stages for o in stage.inputs]
        return tuple(dict.fromkeys(n for n in names if self.network.by_name[n].role == "constant"))

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Held tensors that come from outside."""
        return tuple(name for name in self.held if name not in self.makers)

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """Held tensors of which results are handed out."""
        roots = {self.storage[t.name].root for t in self.network.outputs}
        return tuple(name for name, held in self.held.items() if held.root in roots)

    @cached_property
    def readers(self) -> Mapping[str, tuple[int, ...]]:
        """Stages that read a held tensor."""
        found: dict[str, dict[int, None]] = {name: {} for name in self.held}
        for number, stage in enumerate(self.stages):
            for operand in stage.inputs:
                for name in self.pieces(operand.tensor):
                    found[name][number] = None
        return {name: tuple(numbers) for name, numbers in found.items()}

    def pieces(self, tensor: str) -> tuple[str, ...]:
        """Held tensors that lie in the same storage as a tensor; none for a constant."""
        return self._pieces.get(self.storage[tensor].root, ())

    @cached_property
    def _pieces(self) -> Mapping[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for name, held in self.held.items():
            found[held.root] = (*found.get(held.root, ()), name)
        return found

    def is_alone(self, name: str) -> bool:
        """Whether a held tensor has storage of its own, and nothing is a view of it."""
        return self.storage[name].root == name and self._lying[name] == 1

    @cached_property
    def _lying(self) -> Mapping[str, int]:
        return Counter(lies.root for lies in self.storage.values())

    @property
    def constant_bytes(self) -> int:
        """Bytes of all constants that are read."""
        return sum(self.network.by_name[name].size_bytes for name in self.constants)


def work_of(
    network: Network, order: Sequence[Op] | None = None, machine: Machine | None = None
) -> Work:
    """The stages of a network, its ops in the given order, and what is held while they run."""
    made = stages_of(network, order or network.ops, joins_on_array=True)
    storage, stages = storages(network, made)
    return work_of_stages(network, stages, storage, machine)


def work_of_stages(
    network: Network,
    stages: Sequence[Stage],
    storage: Mapping[str, Storage],
    machine: Machine | None = None,
) -> Work:
    """Stages that somebody made of a network, and what is held while they run."""
    reshaped = {lies.root for lies in storage.values() if lies.origin is None}
    makers = {o.tensor: n for n, stage in enumerate(stages) for o in stage.results}
    read = {storage[o.tensor].root for stage in stages for o in stage.inputs}
    names = [t.name for t in network.inputs if t.name in read] + list(makers)
    held = {}
    for name in names:
        tensor, lies = network.by_name[name], storage[name]
        held[name] = Held(
            tensor=name,
            shape=tensor.shape,
            bits=tensor.bits,
            origin=lies.origin or (0,) * len(tensor.shape),
            root=lies.root,
            place=_place(name, stages, makers),
            is_seen_as_one=lies.root in reshaped,
        )
    return Work(
        network=network,
        stages=tuple(stages),
        storage=storage,
        held=held,
        makers=makers,
        machine=machine,
    )


def _place(name: str, stages: Sequence[Stage], makers: Mapping[str, int]) -> Place:
    """The axes that the maker's rows and columns run along, or the first reader's for an input."""
    if name in makers:
        stage = stages[makers[name]]
        result = next(o for o in stage.results if o.tensor == name)
        return _axis(result, ROWS), _axis(result, COLUMNS)
    for stage in stages:
        for operand in stage.inputs:
            if operand.tensor == name and operand.index is not None and loops_of(stage) is not None:
                return _axis(operand, ROWS), _axis(operand, COLUMNS)
    return None, None


def _axis(operand: Operand, dim: str) -> int | None:
    axes = [n for n, i in enumerate(operand.index or ()) if any(d == dim for d, _ in i.terms)]
    return axes[0] if len(axes) == 1 else None


def loops_of(stage: Stage) -> Loops | None:
    """The loops over rows and columns by which a stage can be cut; None where it cannot be."""
    index = stage.op.outputs[0].index
    inputs = [operand for operand in stage.op.inputs if stage.op.searches(operand)]
    if index is None or inputs or len(stage.results) > 1:
        return None
    found = []
    for dim in (ROWS, COLUMNS):
        axes = [axis for axis in index if any(d == dim for d, _ in axis.terms)]
        usable = len(axes) == 1 and repeats_of(stage, dim) > 0 and dim not in stage.op.coupled
        if axes and not usable:
            return None
        found.append(dim if usable else None)
    return (found[0], found[1]) if found[0] is not None or found[1] is not None else None


def repeats_of(stage: Stage, loop: str | None) -> int:
    """Rows (or columns) of the result that one step along a loop makes; 0: no whole ones.

    Where a step makes a block, as depth to space does, that is more than one.
    """
    if loop is None:
        return 1
    for axis in stage.op.outputs[0].index or ():
        if axis.terms and axis.terms[0][0] == loop and not axis.offset and axis.divisor == 1:
            step, rest = axis.terms[0][1], axis.terms[1:]
            if not rest:
                return 1 if step == 1 else 0
            inner, factor = rest[0]
            is_repeat = len(rest) == 1 and factor == 1 and stage.op.sizes[inner] == step
            return step if is_repeat and step > 0 else 0
    return 0


def grid_of(held: Held, granularity: Granularity | None) -> Grid:
    """A held tensor cut into rows, into pixels, or (None) not at all."""
    row_axis, column_axis = held.place
    rows = held.shape[row_axis] if granularity is not None and row_axis is not None else 1
    columns = held.shape[column_axis] if granularity == "pixel" and column_axis is not None else 1
    return Grid(held, rows, columns)


def reaches_of(work: Work, number: int, loops: Loops, grids: Mapping[str, Grid]) -> list[Reach]:
    """The cells of every held tensor that the steps of a stage read."""
    stage = work.stages[number]
    found = []
    for operand in stage.inputs:
        for name in work.pieces(operand.tensor):
            grid = grids[name]
            spans = []
            for side, loop in enumerate(loops):
                steps = range(stage.op.sizes[loop]) if loop is not None else range(1)
                spans.append(
                    tuple(_cells(work, stage, operand, grid, (side, loop, at)) for at in steps)
                )
            if any(stop > start for start, stop in spans[0]):
                found.append(Reach(name, spans[0], spans[1]))
    return found


def _cells(
    work: Work, stage: Stage, operand: Operand, grid: Grid, step: tuple[int, str | None, int]
) -> Span:
    """Rows (side 0) or columns (side 1) of a grid that one step along a loop touches."""
    side, loop, at = step
    ranges = {dim: (0, size) for dim, size in stage.op.dims}
    if loop is not None:
        ranges[loop] = (at, at + 1)
    box = touched(operand, ranges, work.network.by_name[operand.tensor].shape)
    lies = work.storage[operand.tensor]
    if lies.origin is None or operand.index is None:
        inside: Box = whole(grid.held.shape)
    else:
        steps = [a - b for a, b in zip(lies.origin, grid.held.origin, strict=True)]
        inside = overlap(shifted(box, steps), whole(grid.held.shape))
    if any(start >= stop for start, stop in inside):
        return 0, 0
    axis, count = grid.held.place[side], (grid.rows, grid.columns)[side]
    return inside[axis] if axis is not None and count > 1 else (0, 1)


def windows_of(stage: Stage, shape: Sequence[int], loops: Loops) -> tuple[Window, Window] | None:
    """The windows along rows and columns of a stage that can take its input cell by cell.

    Where it is not cut along columns (or rows), that window has no loop.
    """
    op = stage.op
    index = op.inputs[0].index
    if op.kind not in (*POOLS, "conv") or len(op.outputs) > 1 or index is None or loops[0] is None:
        return None
    found = []
    for loop in loops:
        if loop is None:
            found.append(Window("", ((Tap(0, (0, 1)),),)))
            continue
        axis = next(n for n, i in enumerate(index) if any(d == loop for d, _ in i.terms))
        window = _window(index[axis], loop, op.sizes, shape[axis])
        if window is None:
            return None
        found.append(window)
    return found[0], found[1]


def _window(index: Index, loop: str, sizes: Mapping[str, int], size: int) -> Window | None:
    if len(index.terms) != 2 or index.divisor != 1 or index.terms[0][0] != loop:
        return None
    (_, stride), (dim, dilation) = index.terms
    # Between taps that are apart lie elements that a box around them would take in.
    if dilation != 1:
        return None
    taps = []
    for at in range(sizes[loop]):
        places = [(stride * at + f + index.offset, f) for f in range(sizes[dim])]
        real = [(place, f) for place, f in places if 0 <= place < size]
        starts = [0, *(f for _, f in real[1:]), sizes[dim]]
        taps.append(tuple(Tap(p, (starts[i], starts[i + 1])) for i, (p, _) in enumerate(real)))
    return Window(dim, tuple(taps)) if all(taps) else None
