"""From what stands in a file to a network, operator by operator, collecting all problems."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tilewright.errors import InputError, Problem
from tilewright.network.build import NetworkBuilder
from tilewright.network.graph import AttributeValue, Network
from tilewright.network.nests import Shape
from tilewright.network.tflite_reader import faults, tensors
from tilewright.network.tflite_reader.call import Call, HintedError, Result, Step, Value
from tilewright.network.tflite_reader.folding import (
    Known,
    folded,
    known_beforehand,
    n_points,
    reads_constants,
)
from tilewright.network.tflite_reader.raw import RawModel, RawOperator
from tilewright.network.tflite_reader.registry import READINGS

_LOGGER = logging.getLogger(__name__)

# Working results out costs about 3 µs a point; what files carry along needs a few thousand.
_MAX_POINTS = 4096
_MAX_POINTS_IN_ALL = 200_000

_UNPACKING = ("DEQUANTIZE", "DENSIFY")
_BEFORE_ALL = -1


@dataclass(kw_only=True)
class _State:
    """How far the reading got: values by tensor, and what was wrong by operator."""

    file: str
    model: RawModel
    names: tuple[str, ...]
    makers: Mapping[int, int]
    inputs: frozenset[int]
    outputs: frozenset[int]
    builder: NetworkBuilder
    is_resized: bool = False
    values: dict[int, Value] = field(default_factory=dict)
    problems: dict[int, list[Problem]] = field(default_factory=dict)
    unsupported: dict[str, list[int]] = field(default_factory=dict)
    points_left: int = _MAX_POINTS_IN_ALL

    def complain(self, position: int, message: str, hint: str) -> None:
        self.add(position, Problem(file=self.file, message=message, hint=hint))

    def add(self, position: int, problem: Problem) -> None:
        self.problems.setdefault(position, []).append(problem)

    def where(self, position: int) -> str:
        return f"operator {position} ({self.model.operators[position].name})"


def interpret(model: RawModel, path: Path, dims: Mapping[str, int]) -> Network:
    """The network that a file's main subgraph describes; raises InputError with all problems."""
    makers: dict[int, int] = {}
    for position, operator in enumerate(model.operators):
        for output in operator.outputs:
            makers.setdefault(output, position)
    state = _State(
        file=str(path),
        model=model,
        names=tensors.unique_names(model.tensors),
        makers=makers,
        inputs=frozenset(model.inputs),
        outputs=frozenset(model.outputs),
        builder=NetworkBuilder(path.stem, source=str(path)),
    )
    if model.n_subgraphs > 1:
        _LOGGER.warning("%s: of %d subgraphs only the first is read", path, model.n_subgraphs)
    _read_inputs(state, dims)
    for position in range(len(model.operators)):
        _read_operator(state, position)
    outputs = _outputs(state)
    _report_unsupported(state)
    if state.problems:
        raise InputError(*faults.first_problems(state.file, state.problems))
    return state.builder.finish(outputs)


def _read_inputs(state: _State, dims: Mapping[str, int]) -> None:
    known: list[str] = []
    for index in dict.fromkeys(state.model.inputs):
        if not 0 <= index < len(state.names):
            count = len(state.names)
            message = f"input: there is no tensor {index} among {count}"
            state.complain(_BEFORE_ALL, message, faults.DAMAGED)
            continue
        tensor, name = state.model.tensors[index], state.names[index]
        known.extend(f"{name}.{axis}" for axis in range(len(tensor.shape)))
        try:
            value = tensors.sized(tensor, name, dims)
        except ValueError as error:
            state.complain(_BEFORE_ALL, str(error), _hint(state, error))
            value = tensors.stand_in(tensor, name)
        state.values[index] = value
        state.is_resized |= value.shape != tensor.shape
        state.builder.tensor(name, value.shape, bits=value.bits, role="input", dtype=value.dtype)
    for key in sorted(dims.keys() - set(known)):
        choices = faults.listed(known, 8) if known else "none"
        state.complain(_BEFORE_ALL, f"no input has an axis {key!r}", f"there are {choices}")


def _read_operator(state: _State, position: int) -> None:
    operator = state.model.operators[position]
    if operator.name not in READINGS:
        state.unsupported.setdefault(operator.name, []).append(position)
    else:
        try:
            call = _call(state, position, operator)
            if not any(value is not None and value.is_guess for value in call.inputs):
                _convert(state, position, operator, call)
        except ValueError as error:
            state.complain(position, f"{state.where(position)}: {error}", _hint(state, error))
    for output in operator.outputs:
        if 0 <= output < len(state.names) and output not in state.values:
            tensor, name = state.model.tensors[output], state.names[output]
            state.values[output] = tensors.stand_in(tensor, name)


def _hint(state: _State, error: ValueError) -> str:
    default = faults.RESIZED if state.is_resized else faults.DAMAGED
    return error.hint if isinstance(error, HintedError) else default


def _call(state: _State, position: int, operator: RawOperator) -> Call:
    """The operator with its inputs; HintedError with all that is wrong with them."""
    wrong = [ValueError(operator.fault)] if operator.fault else []
    inputs: list[Value | None] = []
    for index in operator.inputs:
        try:
            inputs.append(None if index == -1 else _value(state, index))
        except ValueError as error:
            wrong.append(error)
    results: list[Result] = []
    for index in operator.outputs:
        try:
            results.append(_result(state, position, index))
        except ValueError as error:
            wrong.append(error)
    if len(set(operator.outputs)) != len(operator.outputs):
        wrong.append(ValueError("makes a tensor twice"))
    if not operator.outputs:
        wrong.append(ValueError("makes nothing"))
    if wrong:
        messages = dict.fromkeys(str(error) for error in wrong)
        raise HintedError("; ".join(messages), _hint(state, wrong[0]))
    return Call(
        operator=operator.name,
        inputs=tuple(inputs),
        results=tuple(results),
        options=operator.options,
    )


def _result(state: _State, position: int, index: int) -> Result:
    if not 0 <= index < len(state.names):
        raise ValueError(f"makes tensor {index}, but there are {len(state.names)}")
    name = state.names[index]
    if index in state.values or state.makers[index] != position:
        raise ValueError(f"makes tensor {name!r}, which is there already")
    return tensors.result(state.model.tensors[index], name, is_recorded=not state.is_resized)


def _value(state: _State, index: int) -> Value:
    """What an operator reads at `index`; a problem with it is raised, once, as ValueError."""
    if not 0 <= index < len(state.names):
        raise ValueError(f"reads tensor {index}, but there are {len(state.names)}")
    if index in state.values:
        return state.values[index]
    tensor, name = state.model.tensors[index], state.names[index]
    if index in state.makers:
        raise ValueError(f"reads {name!r} before operator {state.makers[index]} makes it")
    state.values[index] = tensors.stand_in(tensor, name)
    if tensor.is_variable:
        raise HintedError(f"reads {name!r}, which is kept from one run to the next", faults.STATE)
    if not len(tensor.data) and 0 not in tensor.shape:
        raise ValueError(f"reads {name!r}, which no operator makes and which holds no data")
    state.values[index] = tensors.constant(tensor, name)
    return state.values[index]


def _convert(state: _State, position: int, operator: RawOperator, call: Call) -> None:
    """Work the operator's results out, or add its steps to the network."""
    reading = READINGS[operator.name]
    if reading.n_results not in (None, len(call.results)):
        raise ValueError(f"makes {len(call.results)} tensors, not {reading.n_results}")
    indices = dict(zip((result.name for result in call.results), operator.outputs, strict=True))
    source = call.inputs[0] if call.inputs else None
    is_output = not state.outputs.isdisjoint(operator.outputs)
    unpacks = operator.name in _UNPACKING and source is not None and source.is_constant
    if unpacks and source is not None and not is_output:
        _check_shape(state, position, call.results[0], source.shape)
        state.values[operator.outputs[0]] = source
        return
    known = known_beforehand(call)
    if known is not None:
        _keep(state, position, call, {call.results[0].name: known}, indices)
        return
    steps = reading.steps(call, reading.kind)
    worked_out = None if is_output else _worked_out(state, steps)
    if worked_out is not None:
        _keep(state, position, call, worked_out, indices)
        return
    for step in steps:
        _add_step(state, position, step, indices)


def _worked_out(state: _State, steps: tuple[Step, ...]) -> dict[str, Known] | None:
    points = n_points(steps)
    if points > min(_MAX_POINTS, state.points_left) or not reads_constants(steps):
        return None
    state.points_left -= points
    return folded(steps)


def _keep(
    state: _State,
    position: int,
    call: Call,
    known: Mapping[str, Known],
    indices: Mapping[str, int],
) -> None:
    """Results that are known beforehand become constants."""
    for result in call.results:
        found = known[result.name]
        _check_shape(state, position, result, found.shape)
        state.values[indices[result.name]] = Value(
            name=result.name,
            shape=found.shape,
            dtype=result.dtype,
            bits=result.bits,
            is_constant=True,
            numbers=found.numbers,
        )


def _add_step(state: _State, position: int, step: Step, indices: Mapping[str, int]) -> None:
    shape = step.nest.shape
    tensors.require_possible(step.results[0].name, shape)
    for result in step.results:
        if result.name in indices:
            _check_shape(state, position, result, shape)
            state.values[indices[result.name]] = Value(
                name=result.name, shape=shape, dtype=result.dtype, bits=result.bits
            )
    if state.problems or state.unsupported:
        return
    for value in step.inputs:
        if value.is_constant:
            _declare_constant(state.builder, value)
    state.builder.op(
        step.results[0].name,
        step.kind,
        step.nest,
        [value.name for value in step.inputs],
        {result.name: (result.bits, result.dtype) for result in step.results},
        attributes={**step.attributes, **_worked_out_inputs(step)},
    )


def _declare_constant(builder: NetworkBuilder, value: Value) -> None:
    known = builder.tensors.get(value.name)
    if known is None:
        builder.tensor(value.name, value.shape, bits=value.bits, role="constant", dtype=value.dtype)
    elif known.role != "constant":
        raise ValueError(f"reads {value.name!r}, a name that another tensor needs")


def _worked_out_inputs(step: Step) -> dict[str, AttributeValue]:
    """Constants that stand in no file, as attributes `constant_input_<position>`."""
    attributes: dict[str, AttributeValue] = {}
    for i, value in enumerate(step.inputs):
        if value.numbers is not None:
            whole = value.dtype != "float32"
            attributes[f"constant_input_{i}"] = (
                tuple(int(number) for number in value.numbers)
                if whole
                else tuple(float(number) for number in value.numbers)
            )
    return attributes


def _check_shape(state: _State, position: int, result: Result, shape: Shape) -> None:
    if not tensors.agrees(shape, result.recorded):
        where = state.where(position)
        problem = faults.misfit(state.file, where, result.name, shape, result.recorded)
        state.add(position, problem)


def _outputs(state: _State) -> list[str]:
    """The tensors that ops make for the outside; inputs and constants need no op."""
    end = len(state.model.operators)
    names = []
    for index in dict.fromkeys(state.model.outputs):
        if not 0 <= index < len(state.names):
            message = f"output: there is no tensor {index} among {len(state.names)}"
            state.complain(end, message, faults.DAMAGED)
            continue
        name, value = state.names[index], state.values.get(index)
        is_constant = value.is_constant if value else bool(len(state.model.tensors[index].data))
        if index in state.makers and not is_constant:
            names.append(name)
        elif is_constant or index in state.inputs:
            _LOGGER.warning("%s: output %r needs no op and is left out", state.file, name)
        else:
            state.complain(end, f"output: no operator makes {name!r}", faults.DAMAGED)
    if not names and not state.problems:
        message = "no operator makes an output: there is nothing to run"
        state.complain(end, message, faults.DAMAGED)
    return names


def _report_unsupported(state: _State) -> None:
    for name, positions in state.unsupported.items():
        operator = state.model.operators[positions[0]]
        reads = [
            state.names[index]
            for index in dict.fromkeys(operator.inputs)
            if index in state.inputs or index in state.makers
            if 0 <= index < len(state.names)
        ]
        problem = faults.unsupported(state.file, name, positions, reads)
        state.add(positions[0], problem)
