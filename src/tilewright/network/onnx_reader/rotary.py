"""Rotary embeddings: pairs of elements turned by angles that positions say."""

from dataclasses import dataclass

from tilewright.network.nests import Shape, anywhere_along, moved
from tilewright.network.onnx_reader.call import Call, NodeError, Rule, Step, Value
from tilewright.network.onnx_reader.composition import Composition
from tilewright.network.onnx_reader.shapes import with_inputs


def rules() -> dict[str, Rule]:
    """Rules by operator."""
    return {
        "RotaryEmbedding": Rule("mul", _standard),
        "com.microsoft.RotaryEmbedding": Rule("mul", _microsoft),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Embedding:
    """Data, (batch, heads, rows, columns) or flat, and tables of cosines and sines."""

    data: Value
    heads: int
    cosines: Value
    sines: Value
    positions: Value | None
    """(batch, rows); without them the tables have a row for each row of the data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Data of four axes, and for each pair of its first columns a cosine and a sine."""

    data: Value
    cosines: Value
    sines: Value
    is_interleaved: bool
    """Whether neighbours are pairs, or else a column and the one half of all turning behind it."""
    label: str = ""
    """What tells its ops from those of others in the same node."""

    @property
    def pairs(self) -> int:
        """Pairs of columns that turn; those behind them stay."""
        return self.cosines.shape[-1]


def _standard(call: Call) -> list[Step]:
    data = call.value(0)
    heads = call.integer("num_heads", 0) if len(data.shape) == 3 else data.shape[1]
    return _embedded(
        call,
        _Embedding(
            data=data,
            heads=heads,
            cosines=call.value(1),
            sines=call.value(2),
            positions=call.get(3),
        ),
    )


def _microsoft(call: Call) -> list[Step]:
    if call.number("scale", 1) != 1 or call.flag("is_packed_batching"):
        raise NodeError("a scale or packed batches are not read", "export it without them")
    data, positions, cosines, sines = (call.value(i) for i in range(4))
    if len(positions.shape) != 2:
        hint = "give it a position for every row, as a tensor of batch x rows"
        raise NodeError("a first position instead of all of them is not read", hint)
    width = 2 * cosines.shape[-1]
    stated = call.integer("num_heads", 0) or data.shape[-1] // max(1, width)
    heads = stated if len(data.shape) == 3 else data.shape[1]
    return _embedded(
        call,
        _Embedding(data=data, heads=heads, cosines=cosines, sines=sines, positions=positions),
    )


def _embedded(call: Call, given: _Embedding) -> list[Step]:
    ops = Composition(call)
    data = _with_heads(ops, given)
    is_flat, columns = len(given.data.shape) == 3, data.shape[-1]
    turning = call.integer("rotary_embedding_dim", 0) or columns
    batch, rows = data.shape[0], data.shape[1 if is_flat else 2]
    if turning % 2 or not 0 < turning <= columns:
        raise ValueError(f"{turning} of {columns} columns cannot turn in pairs")
    lying = (batch, rows, 1, turning // 2) if is_flat else (batch, 1, rows, turning // 2)
    cosines, sines = (
        _looked_up(ops, label, table, given.positions, lying)
        for label, table in (("cosines", given.cosines), ("sines", given.sines))
    )
    is_interleaved = call.flag("interleaved")
    made = turned(ops, Turn(data=data, cosines=cosines, sines=sines, is_interleaved=is_interleaved))
    ops.give(0, made, given.data.shape)
    return ops.steps


def turned(ops: Composition, turn: Turn) -> Value:
    """(a, b) becomes (a cos - b sin, a sin + b cos); columns behind those that turn stay."""
    data, pairs, cosines, sines = turn.data, turn.pairs, turn.cosines, turn.sines
    columns, turning, name = data.shape[-1], 2 * pairs, turn.label
    whole = ops.part(f"{name}turning", data, {3: (0, turning)})
    axis, middle = 3, pairs
    if turn.is_interleaved:
        axis, middle = 4, 1
        whole = ops.shaped(f"{name}pairs", whole, (*whole.shape[:3], pairs, 2))
        cosines = ops.shaped(f"{name}cosines of pairs", cosines, (*cosines.shape, 1))
        sines = ops.shaped(f"{name}sines of pairs", sines, (*sines.shape, 1))
    first = ops.part(f"{name}first", whole, {axis: (0, middle)})
    second = ops.part(f"{name}second", whole, {axis: (middle, 2 * middle)})

    def combined(label: str, kind: str, left: Value, right: Value) -> Value:
        products = (
            ops.each("mul", f"{name}{label}, first", first, left),
            ops.each("mul", f"{name}{label}, second", second, right),
        )
        return ops.each(kind, f"{name}{label}", *products)

    made = [combined("new first", "sub", cosines, sines)]
    made.append(combined("new second", "add", sines, cosines))
    joined = ops.joined(f"{name}turned", made, axis)
    parts = [ops.shaped(f"{name}turned columns", joined, (*data.shape[:3], turning))]
    if turning < columns:
        parts.append(ops.part(f"{name}staying", data, {3: (turning, columns)}))
    return ops.joined(f"{name}all columns", parts, 3)


def _with_heads(ops: Composition, given: _Embedding) -> Value:
    """The data with an axis of heads; it stands behind the rows where they are flat."""
    shape = given.data.shape
    if len(shape) == 4:
        return given.data
    if len(shape) != 3 or given.heads < 1 or shape[-1] % given.heads:
        raise ValueError(f"{given.heads} heads of data of shape {shape}")
    return ops.shaped("heads", given.data, (*shape[:2], given.heads, shape[2] // given.heads))


def _looked_up(
    ops: Composition, label: str, table: Value, positions: Value | None, lying: Shape
) -> Value:
    """Rows of a table at the positions, or all of them, in the shape that goes with the data."""
    batch, rows, pairs = lying[0], max(lying[1], lying[2]), lying[3]
    if positions is None:
        if table.shape != (batch, rows, pairs):
            raise ValueError(f"tables of shape {table.shape}; {(batch, rows, pairs)} is needed")
        return ops.shaped(label, table, lying)
    if len(table.shape) != 2 or table.shape[1] < pairs or positions.shape != (batch, rows):
        raise ValueError(
            f"positions of shape {positions.shape} in tables of shape {table.shape}; "
            f"{(batch, rows)} and {pairs} columns are needed"
        )
    nest = moved((batch, rows, table.shape[1]))
    assert nest.output is not None
    source = (anywhere_along(table.shape[0]), nest.output[2])
    nest = with_inputs(nest, [source, nest.output[:2]])
    found = ops.add("gather", f"{label} found", nest, [table, positions], {"axis": 0})
    found = ops.part(f"{label} used", found, {2: (0, pairs)})
    return ops.shaped(label, found, lying)
