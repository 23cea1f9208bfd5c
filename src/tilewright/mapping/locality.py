"""Data that stays on the chip between layers: the lowest memory in which each operand may live.

The rules are those of ZigZag 3.9's `exploit_data_locality`. Layers form one chain from a first to a
last one, with branches inside. Between two neighbours of the chain a result stays in the lowest
memory that serves both and holds a whole input and output, beside all weights of the network where
it serves weights too; around branches it goes to the top. Weights move together, to the lowest
memory that serves the whole array and holds all of them. The network's first input and last output
are taken to be on the chip.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from tilewright.errors import InfeasibleError, InputError, Problem
from tilewright.machine.model import Array, Core, Machine, Memory
from tilewright.mapping.constraints import DEFAULT_LINKS, Constraint, constraint_for
from tilewright.mapping.diagnose import operand_elements
from tilewright.mapping.nest import ARRAY_KINDS, LoopNest, nest_of, zigzag_nest
from tilewright.mapping.network import Model
from tilewright.network.graph import Network, Op
from tilewright.network.kinds import is_mac
from tilewright.units import format_bits

Tops = dict[str, dict[str, str]]
"""Per op and letter the top memory. Letters stand in the order in which ZigZag then meets them."""


def resident_tops(
    network: Network, machine: Machine, constraints: Sequence[Constraint], model: Model
) -> Tops:
    """The top memory of every operand of every layer, for `MapOptions.tops`.

    Raises:
        InfeasibleError: the layers are no chain, or no memory holds what one of them needs.
        InputError: a layer cannot be mapped at all, or an operand of it is linked to no memory.
    """
    layers = _layers(network, constraints, model)
    if not layers:
        return {}
    _check_chain(layers)
    levels = _Levels.of(machine, machine.cores[0])
    found = _search(layers, levels)
    return {layer.name: dict(_tops(layer, levels, found)) for layer in layers}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layer:
    """An op on the array: its operands by role, what they take, and its neighbours by name."""

    name: str
    carriers: Mapping[str, str]
    data: str
    """Letter of the input that comes from the layer before."""
    weights: str | None
    has_constant: bool
    bits: Mapping[str, int]
    before: tuple[str, ...]
    after: tuple[str, ...]

    @property
    def data_bits(self) -> int:
        """What the inputs that are no weights take."""
        if self.has_constant or self.weights is None:
            return self.bits[self.data]
        return self.bits[self.data] + self.bits[self.weights]


@dataclass(frozen=True, slots=True)
class _Levels:
    """The memories of a core, bottom-up, and the array that they serve."""

    memories: tuple[Memory, ...]
    array: Array

    @staticmethod
    def of(machine: Machine, core: Core) -> "_Levels":
        return _Levels(machine.levels(core), core.array)

    def top(self, carrier: str) -> int:
        """The highest level that serves an operand of the machine, or -1."""
        return max((i for i, m in enumerate(self.memories) if carrier in m.operands), default=-1)

    def total_bits(self, level: int) -> int:
        """What all copies of a memory hold together."""
        served = self.memories[level].served_dims
        copies = prod(size for dim, size in self.array.dims if dim not in served)
        return self.memories[level].size_bits * copies

    def serves_all_units(self, level: int) -> bool:
        """Whether one copy of a memory serves the whole array."""
        return all(dim in self.memories[level].served_dims for dim, _ in self.array.dims)


@dataclass(frozen=True, slots=True)
class _Found:
    """Highest levels in use: per layer for its input and its result, and one for all weights."""

    inputs: Mapping[str, int]
    outputs: Mapping[str, int]
    weights: int


def _search(layers: Sequence[_Layer], levels: _Levels) -> _Found:
    by_name = {layer.name: layer for layer in layers}
    all_weights = sum(
        layer.bits[layer.weights] for layer in layers if layer.has_constant and layer.weights
    )
    first = layers[0]
    top_output = levels.top(first.carriers["O"])
    weights_level = levels.top(first.carriers[first.weights]) if first.weights else -1
    inputs: dict[str, int] = {}
    outputs: dict[str, int] = {}
    for layer in layers:
        if layer.before:
            inputs[layer.name] = outputs[layer.before[0]]
        if _is_at_a_branch(layer, by_name):
            inputs.setdefault(layer.name, levels.top(first.carriers[first.data]))
            outputs[layer.name] = top_output
            continue
        reader = by_name[layer.after[0]] if layer.after else layer
        fits = [
            level
            for level in range(len(levels.memories))
            if _holds(layer, levels, level, reader.carriers[reader.data], all_weights)
        ]
        both = {reader.carriers[reader.data], layer.carriers["O"]}
        stays = [level for level in fits if both <= set(levels.memories[level].operands)]
        if not stays:
            raise InfeasibleError(_no_home(layer, levels, all_weights))
        inputs.setdefault(layer.name, stays[0])
        outputs[layer.name] = stays[0]
        weights_level = min([weights_level, *_weight_levels(layer, levels, fits)])
    return _Found(inputs, outputs, weights_level)


def _is_at_a_branch(layer: _Layer, by_name: Mapping[str, _Layer]) -> bool:
    """Whether several layers read the result, or its reader reads several."""
    if len(layer.after) != 1:
        return len(layer.after) > 1
    return len(by_name[layer.after[0]].before) > 1


def _holds(layer: _Layer, levels: _Levels, level: int, read_as: str, all_weights: int) -> bool:
    """Whether a memory holds what it would have to for this layer, all copies counted.

    As in ZigZag, a memory that serves weights has to hold those of the whole network, and what it
    serves of the layer's input and result, even if only the weights are to stay there.
    """
    served = levels.memories[level].operands
    both = read_as in served and layer.carriers["O"] in served
    weights = layer.carriers[layer.weights] if layer.weights else None
    if not both and weights not in served:
        return False
    if both and not layer.has_constant:
        served = (layer.carriers["O"], layer.carriers[layer.data])
    sizes = {layer.carriers[layer.data]: layer.data_bits, layer.carriers["O"]: layer.bits["O"]}
    need = sum(sizes.get(carrier, 0) for carrier in served if carrier != weights)
    return need + (all_weights if weights in served else 0) <= levels.total_bits(level)


def _weight_levels(layer: _Layer, levels: _Levels, fits: Sequence[int]) -> Iterator[int]:
    """Levels of those that fit which could be the home of all weights."""
    carrier = layer.carriers[layer.weights] if layer.weights else None
    for level in fits:
        if carrier in levels.memories[level].operands and levels.serves_all_units(level):
            yield level


def _tops(layer: _Layer, levels: _Levels, found: _Found) -> Iterator[tuple[str, str]]:
    data_level = found.inputs[layer.name]
    targets = {layer.data: data_level}
    if layer.weights:
        targets[layer.weights] = found.weights if layer.has_constant else data_level
    targets["O"] = found.outputs[layer.name]
    for letter, target in targets.items():
        carrier = layer.carriers[letter]
        held = [m.name for m in levels.memories[: target + 1] if carrier in m.operands]
        if not held:
            message = (
                f"layer {layer.name!r}: {letter} would have to stay in "
                f"{levels.memories[target].name} or below, where nothing holds {carrier}"
            )
            raise InfeasibleError(Problem(message=message, hint=_WITHOUT))
        yield letter, held[-1]


_WITHOUT = "map without data locality, or with a memory that serves I1, I2 and O above them"


def _no_home(layer: _Layer, levels: _Levels, all_weights: int) -> Problem:
    parts = f"{format_bits(layer.data_bits)} of input, {format_bits(layer.bits['O'])} of result"
    memories = ", ".join(
        f"{m.name} {format_bits(levels.total_bits(i))}" for i, m in enumerate(levels.memories)
    )
    message = (
        f"layer {layer.name!r}: no memory serves its result and the next layer's input and holds "
        f"{parts} and, where it serves weights, {format_bits(all_weights)} of weights ({memories})"
    )
    return Problem(message=message, hint=_WITHOUT)


def _check_chain(layers: Sequence[_Layer]) -> None:
    """One layer alone reads from outside, and one alone is read by none."""
    starts = [layer.name for layer in layers if not layer.before]
    ends = [layer.name for layer in layers if not layer.after]
    for names, what in ((starts, "start from an input"), (ends, "end in an output")):
        if len(names) > 1:
            listed = ", ".join(map(repr, names[:4])) + (", …" if len(names) > 4 else "")
            message = f"data locality follows one chain of layers; {len(names)} {what}: {listed}"
            raise InfeasibleError(Problem(message=message, hint="map without data locality"))


def _layers(network: Network, constraints: Sequence[Constraint], model: Model) -> list[_Layer]:
    entries = {constraint.name: constraint for constraint in reversed(constraints)}
    ops = [op for op in network.ops if _is_layer(op, model)]
    before = _layers_before(network, {op.name for op in ops})
    after: dict[str, list[str]] = {op.name: [] for op in ops}
    for op in ops:
        for name in before[op.name]:
            after[name].append(op.name)
    made = {operand.tensor for op in network.ops for operand in op.outputs}
    layers = []
    for op in ops:
        nest = _nest(op, network, model)
        sources = {operand.name: operand.tensor for operand in op.inputs}
        constants = [o.letter for o in nest.inputs if sources.get(o.letter) not in made]
        data, weights = _roles(nest, constants)
        layers.append(
            _Layer(
                name=op.name,
                carriers=_carriers(op, nest, constraint_for(op, entries)),
                data=data,
                weights=weights,
                has_constant=bool(constants),
                bits={
                    o.letter: int(operand_elements(nest, o, nest.sizes) * o.bits)
                    for o in nest.operands
                },
                before=before[op.name],
                after=tuple(after[op.name]),
            )
        )
    return layers


def _nest(op: Op, network: Network, model: Model) -> LoopNest:
    try:
        return (zigzag_nest if model == "zigzag-3.9" else nest_of)(op, network)
    except ValueError as error:
        raise InputError(Problem(message=f"layer {op.name!r}: {error}")) from None


def _is_layer(op: Op, model: Model) -> bool:
    if model == "zigzag-3.9" and not op.attribute("zigzag_type"):
        return is_mac(op.kind) and op.kind != "conv_transpose"
    return op.kind in ARRAY_KINDS


def _layers_before(network: Network, layers: set[str]) -> dict[str, tuple[str, ...]]:
    """Per layer those whose results reach it, through any number of ops that are no layers.

    As in ZigZag an op in between that joins more than two results has only the first two.
    """
    sources: dict[str, tuple[str, ...]] = {}
    result: dict[str, tuple[str, ...]] = {}
    for op in network.ops:
        made = [o.tensor for o in op.inputs if o.tensor in sources]
        if op.name in layers:
            made = [o.tensor for o in op.inputs if o.tensor in sources and o.name in ("I", "W")]
        elif len(made) > 2:
            made = made[:2]
        reach = tuple(dict.fromkeys(name for tensor in made for name in sources[tensor]))
        if op.name in layers:
            result[op.name] = reach
            reach = (op.name,)
        for operand in op.outputs:
            sources[operand.tensor] = reach
    return result


def _roles(nest: LoopNest, constants: Sequence[str]) -> tuple[str, str | None]:
    """Letters of the input that flows from layer to layer and of the weights."""
    letters = [operand.letter for operand in nest.inputs]
    if len(letters) == 1:
        return letters[0], None
    first, second = letters
    if len(constants) == 1:
        return (second, first) if constants[0] == first else (first, second)
    if not constants:
        return second, first
    window = nest.relations[0].target if nest.relations else ""
    slides = [operand.letter for operand in nest.inputs if window in operand.axes]
    return (second, first) if slides[-1:] == [second] else (first, second)


def _carriers(op: Op, nest: LoopNest, constraint: Constraint | None) -> dict[str, str]:
    links = dict(constraint.links if constraint is not None else DEFAULT_LINKS)
    missing = [operand.letter for operand in nest.operands if operand.letter not in links]
    if missing:
        message = f"layer {op.name!r}: memory_operand_links has no operand {missing[0]}"
        hint = "write memory_operand_links: {O: O, W: I2, I: I1}"
        raise InputError(Problem(message=message, hint=hint))
    return {operand.letter: links[operand.letter] for operand in nest.operands}
