"""Attention in one operator: products of queries and keys, a softmax, and products with values."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from tilewright.network.graph import AttributeValue, Index
from tilewright.network.moves import transpose
from tilewright.network.nests import Indices, Nest, Shape, along, along_dim, matmul
from tilewright.network.onnx_reader.call import Call, NodeError, Rule, Step, Value
from tilewright.network.onnx_reader.composition import Composition
from tilewright.network.onnx_reader.elements import BOOL
from tilewright.network.onnx_reader.rotary import Turn, turned
from tilewright.network.onnx_reader.stored import Array

_WRITE_OUT: Final = "export it as matrix products and a softmax"


def rules() -> dict[str, Rule]:
    """Rules by operator."""
    return {
        "Attention": Rule("matmul", _attention),
        "com.microsoft.Attention": Rule("matmul", _projected_attention),
        "com.microsoft.MultiHeadAttention": Rule("matmul", _multi_head_attention),
        "com.microsoft.GroupQueryAttention": Rule("matmul", _group_query_attention),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Heads:
    """Queries, keys and values, and how many heads they have.

    Each is (batch, heads, rows, columns), or (batch, rows, heads × columns) where it is flat.
    """

    query: Value
    key: Value
    value: Value
    queries: int
    keys: int

    def __post_init__(self) -> None:
        shapes = [value.shape for value in (self.query, self.key, self.value)]
        if any(len(shape) not in (3, 4) for shape in shapes):
            raise ValueError(f"queries, keys and values of shapes {shapes}")
        heads = (self.queries, self.keys, self.keys)
        odd = [s for s, n in zip(shapes, heads, strict=True) if _columns(s, n) * n != _width(s, n)]
        if odd or self.keys < 1 or self.queries % self.keys:
            raise ValueError(f"{self.queries} and {self.keys} heads of shapes {shapes}")

    @property
    def sharing(self) -> int:
        """Heads of queries for one of keys."""
        return self.queries // self.keys

    @property
    def columns(self) -> int:
        """Elements of a query."""
        return _columns(self.query.shape, self.queries)


def _rows(shape: Shape) -> int:
    return shape[-2]


def _width(shape: Shape, heads: int) -> int:
    """Elements of all heads of a row."""
    return shape[-1] if len(shape) == 3 else heads * shape[-1]


def _columns(shape: Shape, heads: int) -> int:
    return max(1, _width(shape, heads) // heads) if heads > 0 else 0


def _attention(call: Call) -> list[Step]:
    _refuse(call, {6: "nonpad_kv_seqlen"}, {3: "qk_matmul_output"}, ("softcap",))
    query, key, value = (call.value(i) for i in range(3))
    ops = Composition(call)
    is_flat = len(query.shape) == 3
    past = 0
    if call.has(4) or call.has(5) or call.output(1) or call.output(2):
        if is_flat:
            raise NodeError("past keys of three axes are not read", _WRITE_OUT)
        if call.has(4):
            past = _rows(call.shape(4))
            key = ops.joined("keys", [call.value(4), key], 2)
            value = ops.joined("values", [call.value(5), value], 2)
        ops.give(1, key, key.shape)
        ops.give(2, value, value.shape)
    heads = _Heads(
        query=query,
        key=key,
        value=value,
        queries=call.integer("q_num_heads") if is_flat else query.shape[1],
        keys=call.integer("kv_num_heads") if is_flat else key.shape[1],
    )
    masks = [call.value(3)] if call.has(3) else []
    if call.flag("is_causal"):
        masks.append(_causal(ops, heads, past))
    return _attended(ops, heads, masks)


def _multi_head_attention(call: Call) -> list[Step]:
    past = {6: "past_key", 7: "past_value"}
    _refuse(call, {4: "key_padding_mask", **past}, {1: "present_key", 3: "qk"}, ())
    if not call.has(1) or not call.has(2) or any(len(call.shape(i)) != 3 for i in range(3)):
        raise NodeError("keys and values packed with others are not read", _WRITE_OUT)
    ops = Composition(call)
    given = [call.value(i) for i in range(3)]
    if call.has(3):
        given = _with_bias(ops, given, call.value(3))
    count = call.integer("num_heads")
    heads = _Heads(query=given[0], key=given[1], value=given[2], queries=count, keys=count)
    return _attended(ops, heads, _ms_masks(ops, heads))


def _projected_attention(call: Call) -> list[Step]:
    _refuse(call, {3: "mask_index", 4: "past"}, {1: "present"}, ("do_rotary",))
    ops = Composition(call)
    data, weights = call.value(0), call.value(1)
    nest, values = matmul(data.shape, weights.shape), [data, weights]
    if call.has(2):
        nest = replace(nest, inputs=(*nest.inputs, (along_dim("K"),)))
        values.append(call.value(2))
    made = ops.add("matmul", "projected", nest, values)
    sizes = call.integers("qkv_hidden_sizes") or (weights.shape[1] // 3,) * 3
    ends = [sum(sizes[:i]) for i in range(4)]
    if len(data.shape) != 3 or len(sizes) != 3 or ends[3] != weights.shape[1]:
        raise ValueError(f"weights of shape {weights.shape} for an input of shape {data.shape}")
    query, key, value = (
        ops.part(label, made, {2: (ends[i], ends[i + 1])})
        for i, label in enumerate(("queries", "keys", "values"))
    )
    count = call.integer("num_heads")
    heads = _Heads(query=query, key=key, value=value, queries=count, keys=count)
    return _attended(ops, heads, _ms_masks(ops, heads))


def _group_query_attention(call: Call) -> list[Step]:
    """Causal, over a past whose rows all count: what lengths say at run time is not looked at."""
    others = {9: "position_ids", 11: "head_sink", 12: "k_scale", 13: "v_scale"}
    _refuse(call, others, {3: "output_qk"}, ("softcap", "smooth_softmax"))
    if call.integer("local_window_size", -1) != -1:
        raise NodeError("it has 'local_window_size', which is not read", _WRITE_OUT)
    ops = Composition(call)
    queries, keys = call.integer("num_heads"), call.integer("kv_num_heads")
    query, key, value = _with_head_axes(ops, queries, keys)
    past = _rows(call.shape(3)) if call.has(3) else 0
    if call.flag("do_rotary"):
        query, key = (
            _turned_behind(ops, past, label, given)
            for label, given in (("queries", query), ("keys", key))
        )
    whole = []
    for position, label, given in ((3, "keys", key), (4, "values", value)):
        by_head = transpose(given.shape, (0, 2, 1, 3))
        rows = ops.add("transpose", f"{label} by head", by_head, [given], {"perm": (0, 2, 1, 3)})
        before = [call.value(position)] if call.has(position) else []
        whole.append(ops.joined(f"all {label}", [*before, rows], 2))
        ops.give(position - 2, whole[-1], whole[-1].shape)
    flat = ops.shaped("flat queries", query, (*query.shape[:2], queries * query.shape[3]))
    heads = _Heads(query=flat, key=whole[0], value=whole[1], queries=queries, keys=keys)
    masks = [call.value(10)] if call.has(10) else []
    return _attended(ops, heads, [*masks, _causal(ops, heads, past)])


def _with_head_axes(ops: Composition, queries: int, keys: int) -> list[Value]:
    """Queries, keys and values as (batch, rows, heads, columns), from one tensor or three."""
    call, counts = ops.call, (queries, keys, keys)
    labels = ("queries", "keys", "values")
    if any(len(value.shape) != 3 for value in call.inputs[:3] if value) or min(counts) < 1:
        raise ValueError(f"{queries} and {keys} heads of data of shape {call.shape(0)}")
    if call.has(1):
        flat = [call.value(i) for i in range(3)]
    else:
        columns = call.shape(0)[2] // sum(counts)
        ends = [columns * sum(counts[:i]) for i in range(4)]
        flat = [
            ops.part(label, call.value(0), {2: (ends[i], ends[i + 1])})
            for i, label in enumerate(labels)
        ]
    odd = [v.shape for v, count in zip(flat, counts, strict=True) if v.shape[2] % count]
    if odd:
        raise ValueError(f"{queries} and {keys} heads of data of shape {odd[0]}")
    return [
        ops.shaped(f"heads of {label}", v, (*v.shape[:2], count, v.shape[2] // count))
        for label, v, count in zip(labels, flat, counts, strict=True)
    ]


def _turned_behind(ops: Composition, past: int, label: str, data: Value) -> Value:
    """Rows turned by their places behind the past; tables have a row for each place."""
    rows = data.shape[1]
    tables = []
    for position, name in ((7, "cosines"), (8, "sines")):
        table = ops.call.value(position)
        if len(table.shape) != 2 or past + rows > table.shape[0]:
            raise ValueError(f"{past} + {rows} places in a table of shape {table.shape}")
        used = ops.part(f"{label}, {name}", table, {0: (past, past + rows)})
        lying = (1, rows, 1, table.shape[1])
        tables.append(ops.shaped(f"{label}, {name} of rows", used, lying))
    is_interleaved = ops.call.flag("rotary_interleaved")
    turn = Turn(
        data=data,
        cosines=tables[0],
        sines=tables[1],
        is_interleaved=is_interleaved,
        label=f"{label}, ",
    )
    return turned(ops, turn)


def _ms_masks(ops: Composition, heads: _Heads) -> list[Value]:
    """What Microsoft's operators add to the scores."""
    masks = [ops.call.value(5)] if ops.call.has(5) else []
    return [*masks, _causal(ops, heads, 0)] if ops.call.flag("unidirectional") else masks


def _with_bias(ops: Composition, given: list[Value], bias: Value) -> list[Value]:
    """Queries, keys and values with their parts of one bias."""
    widths = [value.shape[-1] for value in given]
    if bias.shape != (sum(widths),) or not bias.is_constant:
        raise ValueError(f"its bias is no constant of {sum(widths)} elements")

    def part(label: str, start: int, width: int) -> Value:
        name = f"bias of {label}"
        return ops.constant(name, (width,), bias, lambda stored: stored[start : start + width])

    return [
        ops.each("add", label, value, part(label, sum(widths[:i]), widths[i]))
        for i, (label, value) in enumerate(zip(("queries", "keys", "values"), given, strict=True))
    ]


def _causal(ops: Composition, heads: _Heads, past: int) -> Value:
    """A constant that is 0 for keys up to a query's own place, and minus infinity behind it."""
    rows, keys = _rows(heads.query.shape), _rows(heads.key.shape)

    def mask() -> Array:
        behind = np.arange(keys) > np.arange(rows)[:, None] + past
        return np.where(behind, -np.inf, 0).astype(np.float32)

    return ops.worked_out("mask", (rows, keys), mask)


def _attended(ops: Composition, heads: _Heads, masks: list[Value]) -> list[Step]:
    """The steps from queries, keys and values on."""
    nest = _scores(heads)
    scale = ops.call.number("scale", 0) or 1 / math.sqrt(heads.columns)
    scores = ops.add("matmul", "scores", nest, [heads.query, heads.key], {"alpha": scale})
    for number, mask in enumerate(masks):
        label = f"masked {number}"
        if mask.element == BOOL:
            least = ops.worked_out("least", (), lambda: np.array(-np.inf, np.float32))
            scores = ops.each("where", label, mask, scores, least)
        else:
            scores = ops.each("add", label, scores, mask)
        if scores.shape != nest.shape:
            raise ValueError(f"a mask of shape {mask.shape} for scores of shape {nest.shape}")
    axes: Mapping[str, AttributeValue] = {"axes": (3,)}
    weights = ops.add("softmax", "weights", along(scores.shape, [3]), [scores], axes)
    name = ops.call.output(0)
    if not name:
        raise ValueError("its first result has no name")
    ops.add("matmul", "result", _result(heads), [weights, heads.value], name=name)
    return ops.steps


def _scores(heads: _Heads) -> Nest:
    """(batch, heads of queries, queries, keys)."""
    query, key = heads.query.shape, heads.key.shape
    dims = _dims(heads, {"D": _rows(query), "K": _rows(key), "C": heads.columns})
    if _columns(key, heads.keys) != heads.columns or query[0] != key[0]:
        raise ValueError(f"queries of shape {query} and keys of shape {key}")
    return Nest(
        dims=dims,
        shape=(query[0], heads.queries, _rows(query), _rows(key)),
        output=_placed(heads.sharing, "D", "K", 0),
        inputs=(
            _placed(heads.sharing, "D", "C", heads.columns if len(query) == 3 else 0),
            _placed(1, "K", "C", heads.columns if len(key) == 3 else 0),
        ),
    )


def _result(heads: _Heads) -> Nest:
    """What queries are made of, or flat if they are."""
    query, value = heads.query.shape, heads.value.shape
    rows, columns = _rows(query), _columns(value, heads.keys)
    if (value[0], _rows(value)) != (heads.key.shape[0], _rows(heads.key.shape)):
        raise ValueError(f"keys of shape {heads.key.shape} and values of shape {value}")
    flat = (query[0], rows, heads.queries * columns)
    return Nest(
        dims=_dims(heads, {"D": rows, "K": columns, "C": _rows(value)}),
        shape=flat if len(query) == 3 else (query[0], heads.queries, rows, columns),
        output=_placed(heads.sharing, "D", "K", columns if len(query) == 3 else 0),
        inputs=(
            _placed(heads.sharing, "D", "C", 0),
            _placed(1, "C", "K", columns if len(value) == 3 else 0),
        ),
    )


def _dims(heads: _Heads, others: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """Batch, heads of keys, heads of queries for each of them, and the others."""
    shared = (("B3", heads.sharing),) if heads.sharing > 1 else ()
    return (("B", heads.query.shape[0]), ("H", heads.keys), *shared, *others.items())


def _placed(sharing: int, row: str, column: str, flat_columns: int) -> Indices:
    """The index into a tensor with an axis of heads, or with so many columns of each in a row."""
    head = (("H", sharing), ("B3", 1)) if sharing > 1 else (("H", 1),)
    if not flat_columns:
        return along_dim("B"), Index(head), along_dim(row), along_dim(column)
    wide = tuple((dim, factor * flat_columns) for dim, factor in head)
    return along_dim("B"), along_dim(row), Index((*wide, (column, 1)))


def _refuse(
    call: Call, inputs: Mapping[int, str], outputs: Mapping[int, str], flags: tuple[str, ...]
) -> None:
    """NodeError with the first thing that is given or asked for and is not read."""
    found = [name for position, name in inputs.items() if call.has(position)]
    found += [name for position, name in outputs.items() if call.output(position)]
    found += [name for name in flags if call.number(name, 0)]
    if found:
        raise NodeError(f"it has {found[0]!r}, which is not read", _WRITE_OUT)
