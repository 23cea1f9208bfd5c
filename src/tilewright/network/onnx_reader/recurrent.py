"""Recurrent layers, unrolled: one product for the inputs of all steps, then each step's ops."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from tilewright.network.graph import Index
from tilewright.network.nests import Nest, along_dim
from tilewright.network.onnx_reader.call import Call, NodeError, Rule, Step, Value, known_array
from tilewright.network.onnx_reader.composition import Composition
from tilewright.network.onnx_reader.stored import Array

MAX_STEPS: Final = 1000
"""Steps of all directions that are unrolled: each becomes some ten ops."""

_ACTIVATIONS: Final = ("sigmoid", "tanh", "relu")
_UNROLL: Final = "export it unrolled, as matrix products and element-wise operators"


def rules() -> dict[str, Rule]:
    """Rules by operator."""
    return {
        "LSTM": Rule("matmul", _lstm),
        "GRU": Rule("matmul", _gru),
        "RNN": Rule("matmul", _rnn),
    }


@dataclass(frozen=True, slots=True)
class _State:
    """What a step leaves for the next, each (1, batch, hidden); None where it is all zeros."""

    hidden: Value | None
    cell: Value | None = None


@dataclass(frozen=True, slots=True)
class _Bias:
    """What is added to the sums of the inputs, and, where a reset gate scales it, to a state's."""

    at_once: Value | None = None
    with_state: Value | None = None
    of_reset: Value | None = None
    """The part of `with_state` that is not zeros."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layer:
    """One direction of a layer: its sizes, activations, and the products of all inputs."""

    ops: Composition
    direction: int
    gates: int
    hidden: int
    activations: tuple[str, ...]
    bias: _Bias
    projected: Value
    """(steps, batch, gates × hidden)."""

    @property
    def own(self) -> tuple[int, int]:
        """Where this direction lies along an axis of directions."""
        return self.direction, self.direction + 1

    def label(self, what: str, step: int) -> str:
        """What tells an op of this direction and step from others."""
        return f"{self.direction}:{step} {what}"

    def gate(self, what: str, step: int, value: Value, first: int, last: int) -> Value:
        """Some of the gates, which lie side by side."""
        ends = (first * self.hidden, last * self.hidden)
        return self.ops.part(self.label(what, step), value, {len(value.shape) - 1: ends})

    def each(self, kind: str, what: str, step: int, *values: Value) -> Value:
        """An op element by element."""
        return self.ops.each(kind, self.label(what, step), *values)


_Cell = Callable[[_Layer, _State, int], _State]


def _lstm(call: Call) -> list[Step]:
    if call.has(7):
        raise NodeError("it has peepholes, which are not read", _UNROLL)
    if call.flag("input_forget"):
        raise NodeError("its input and forget gates are one, which is not read", _UNROLL)
    return _unrolled(call, 4, ("sigmoid", "tanh", "tanh"), _lstm_step)


def _gru(call: Call) -> list[Step]:
    return _unrolled(call, 3, ("sigmoid", "tanh"), _gru_step)


def _rnn(call: Call) -> list[Step]:
    return _unrolled(call, 1, ("tanh",), _rnn_step)


def _unrolled(call: Call, gates: int, defaults: Sequence[str], cell: _Cell) -> list[Step]:
    """All steps of all directions, then the results: states of all steps, and the last ones."""
    reversals = _reversals(call)
    steps, batch, hidden = _sizes(call, gates, len(reversals))
    names = _activations(call, defaults, len(reversals))
    ops = Composition(call)
    histories, lasts = [], []
    for direction, is_reversed in enumerate(reversals):
        bias = _biases(ops, direction, gates * hidden)
        layer = _Layer(
            ops=ops,
            direction=direction,
            gates=gates,
            hidden=hidden,
            activations=names[direction * len(defaults) :][: len(defaults)],
            bias=bias,
            projected=_projected(ops, direction, bias, gates * hidden),
        )
        history, last = _run(layer, cell, steps, is_reversed=is_reversed)
        shape = (steps, 1, batch, hidden)
        histories.append(ops.shaped(f"{direction}: states of one", history, shape))
        lasts.append(last)
    ops.give(0, ops.joined("states", histories, 1), (steps, len(reversals), batch, hidden))
    for position, ends in ((1, [s.hidden for s in lasts]), (2, [s.cell for s in lasts])):
        given = [value for value in ends if value is not None]
        if given and call.output(position):
            joined = ops.joined(f"last {position}", given, 0)
            ops.give(position, joined, (len(reversals), batch, hidden))
    return ops.steps


def _run(layer: _Layer, cell: _Cell, steps: int, *, is_reversed: bool) -> tuple[Value, _State]:
    """The states of all steps, (steps, batch, hidden), and the last one."""
    state = _State(_initial(layer, 5), _initial(layer, 6))
    made: dict[int, Value] = {}
    for step in reversed(range(steps)) if is_reversed else range(steps):
        state = cell(layer, state, step)
        assert state.hidden is not None
        made[step] = state.hidden
    states = [made[step] for step in range(steps)]
    return layer.ops.joined(f"{layer.direction}: states", states, 0), state


def _lstm_step(layer: _Layer, state: _State, step: int) -> _State:
    """Gates lie as input, output, forget, cell."""
    gate, squash, squash_cell = layer.activations
    sums = _sums(layer, state.hidden, step)
    opened = layer.each(gate, "gates", step, layer.gate("first three", step, sums, 0, 3))
    fresh = layer.each(squash, "fresh", step, layer.gate("last", step, sums, 3, 4))
    cell = layer.each("mul", "enters", step, layer.gate("input", step, opened, 0, 1), fresh)
    if state.cell is not None:
        forget = layer.gate("forget", step, opened, 2, 3)
        cell = layer.each(
            "add", "cell", step, layer.each("mul", "stays", step, forget, state.cell), cell
        )
    shown = layer.each(squash_cell, "shown", step, cell)
    leaves = layer.gate("output", step, opened, 1, 2)
    return _State(layer.each("mul", "hidden", step, leaves, shown), cell)


def _gru_step(layer: _Layer, state: _State, step: int) -> _State:
    """Gates lie as update, reset, hidden; the reset comes behind the weights of a state or before.

    The new state is fresh + update × (last - fresh).
    """
    gate, squash = layer.activations
    own, hidden = _given(layer, step), state.hidden
    resets_late = _resets_late(layer.ops.call)
    fed = _fed(layer, "fed", step, hidden, (0, 3 if resets_late else 2))
    sums = layer.gate("first two", step, own, 0, 2)
    if fed is not None:
        sums = layer.each("add", "sums", step, sums, layer.gate("fed two", step, fed, 0, 2))
    opened = layer.each(gate, "gates", step, sums)
    reset = layer.gate("reset", step, opened, 1, 2)
    if resets_late:
        last = layer.bias.of_reset
        if fed is not None:
            last = layer.gate("fed last", step, fed, 2, 3)
        fed = None if last is None else layer.each("mul", "after reset", step, reset, last)
    elif hidden is not None:
        kept = layer.each("mul", "after reset", step, reset, hidden)
        fed = _fed(layer, "fed last", step, kept, (2, 3))
    fresh = layer.gate("last", step, own, 2, 3)
    if fed is not None:
        fresh = layer.each("add", "fresh sums", step, fresh, fed)
    fresh = layer.each(squash, "fresh", step, fresh)
    update = layer.gate("update", step, opened, 0, 1)
    if hidden is None:
        less = layer.each("mul", "less", step, update, fresh)
        return _State(layer.each("sub", "hidden", step, fresh, less))
    change = layer.each("sub", "change", step, hidden, fresh)
    stays = layer.each("mul", "stays", step, update, change)
    return _State(layer.each("add", "hidden", step, fresh, stays))


def _resets_late(call: Call) -> bool:
    """Whether the reset gate scales what a state's weights made of it, not the state."""
    return call.node.op_type == "GRU" and call.flag("linear_before_reset")


def _rnn_step(layer: _Layer, state: _State, step: int) -> _State:
    sums = _sums(layer, state.hidden, step)
    return _State(layer.each(layer.activations[0], "hidden", step, sums))


def _sums(layer: _Layer, hidden: Value | None, step: int) -> Value:
    """What all gates get: from the input, and from the last state."""
    own, fed = _given(layer, step), _fed(layer, "fed", step, hidden, (0, layer.gates))
    return own if fed is None else layer.each("add", "sums", step, own, fed)


def _given(layer: _Layer, step: int) -> Value:
    """What a step's input gives to all gates: (1, batch, gates × hidden)."""
    return layer.ops.part(layer.label("given", step), layer.projected, {0: (step, step + 1)})


def _projected(ops: Composition, direction: int, bias: _Bias, columns: int) -> Value:
    """Every step's input times the weights, and what of the biases goes to the sums at once."""
    data, weights = ops.call.value(0), ops.call.value(1)
    steps, batch, inner = data.shape
    dims = (("B", steps), ("D", batch), ("K", columns), ("C", inner))
    batched, row, column, summed = (along_dim(dim) for dim, _ in dims)
    nest = Nest(
        dims=dims,
        shape=(steps, batch, columns),
        output=(batched, row, column),
        inputs=((batched, row, summed), (Index((), direction), column, summed)),
    )
    return _product(ops, f"{direction}: inputs", nest, [data, weights], bias.at_once)


def _fed(
    layer: _Layer, what: str, step: int, hidden: Value | None, gates: tuple[int, int]
) -> Value | None:
    """The last state times the weights of some gates; None where the state is zeros."""
    if hidden is None:
        return None
    size = layer.hidden
    begin, columns = gates[0] * size, (gates[1] - gates[0]) * size
    dims = (("D", hidden.shape[1]), ("K", columns), ("C", size))
    row, column, summed = (along_dim(dim) for dim, _ in dims)
    weights = (Index((), layer.direction), Index((("K", 1),), begin), summed)
    nest = Nest(
        dims=dims,
        shape=(1, hidden.shape[1], columns),
        output=(Index(()), row, column),
        inputs=((Index(()), row, summed), weights),
    )
    values = [hidden, layer.ops.call.value(2)]
    return _product(layer.ops, layer.label(what, step), nest, values, layer.bias.with_state)


def _product(
    ops: Composition, label: str, nest: Nest, values: Sequence[Value], bias: Value | None
) -> Value:
    if bias is None:
        return ops.add("matmul", label, nest, values)
    nest = replace(nest, inputs=(*nest.inputs, (along_dim("K"),)))
    return ops.add("matmul", label, nest, [*values, bias])


def _biases(ops: Composition, direction: int, columns: int) -> _Bias:
    """The two biases of a direction, added as far as both go to the same sums."""
    stated = ops.call.get(3)
    if stated is None:
        return _Bias()
    if not stated.is_constant:
        raise NodeError("its biases are computed at run time", _UNROLL)

    def kept(what: str, size: int, work_out: Callable[[Array, Array], Array]) -> Value:
        def own(values: Array) -> Array:
            return work_out(values[direction, :columns], values[direction, columns:])

        return ops.constant(f"{direction}: {what}", (size,), stated, own)

    if not _resets_late(ops.call):
        return _Bias(kept("bias", columns, np.add))
    is_scaled = np.arange(columns) >= columns // 3 * 2
    return _Bias(
        kept("bias", columns, lambda first, second: first + second * ~is_scaled),
        kept("bias of products", columns, lambda _, second: second * is_scaled),
        kept("bias of reset", columns // 3, lambda _, second: second[is_scaled]),
    )


def _initial(layer: _Layer, position: int) -> Value | None:
    """The state before the first step; None where it is not given or zeros."""
    value = layer.ops.call.get(position)
    if value is None or _is_all(value, 0):
        return None
    return layer.ops.part(f"{layer.direction}: initial {position}", value, {0: layer.own})


def _is_all(value: Value, number: int) -> bool:
    """Whether a constant's values are known and are all this number."""
    if not value.is_constant:
        return False
    try:
        return bool((known_array(value) == number).all())
    except ValueError:
        return False


def _sizes(call: Call, gates: int, directions: int) -> tuple[int, int, int]:
    """Steps, batch and hidden size; ValueError where shapes do not go together."""
    data, recurrent = call.shape(0), call.shape(2)
    if call.flag("layout"):
        raise NodeError("its batch comes first (layout 1), which is not read", _UNROLL)
    if len(data) != 3 or len(recurrent) != 3:
        raise ValueError(f"an input of shape {data} and weights of shape {recurrent}")
    steps, batch, inner = data
    hidden = recurrent[2]
    wanted = {
        1: (directions, gates * hidden, inner),
        2: (directions, gates * hidden, hidden),
        3: (directions, 2 * gates * hidden),
        5: (directions, batch, hidden),
        6: (directions, batch, hidden),
    }
    for position, shape in wanted.items():
        if call.has(position) and call.shape(position) != shape:
            raise ValueError(f"input {position} has shape {call.shape(position)}, not {shape}")
    if call.has(4) and not _is_all(call.value(4), steps):
        raise NodeError(
            f"its sequences may be shorter than {steps} steps", "leave sequence_lens out"
        )
    if not 1 <= steps * directions <= MAX_STEPS:
        raise NodeError(
            f"{steps * directions} steps are not unrolled, {MAX_STEPS} are the most",
            "plan for a part of the sequence: its steps are alike",
        )
    return steps, batch, hidden


def _reversals(call: Call) -> tuple[bool, ...]:
    """For each direction, whether it starts at the end."""
    direction = call.choice("direction", ("forward", "reverse", "bidirectional"))
    return {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}[direction]


def _activations(call: Call, defaults: Sequence[str], directions: int) -> tuple[str, ...]:
    """Kinds of the activations of all directions, one direction behind the other."""
    stated = call.node.attributes.get("activations")
    if "clip" in call.node.attributes:
        raise NodeError("it clips its sums, which is not read", _UNROLL)
    if stated is None:
        return (*defaults,) * directions
    names = tuple(str(name).lower() for name in stated) if isinstance(stated, tuple) else ()
    if len(names) != len(defaults) * directions or any(n not in _ACTIVATIONS for n in names):
        known = ", ".join(_ACTIVATIONS)
        raise NodeError(f"its activations are {stated}; {known} are read", _UNROLL)
    return names
