"""ZigZag workload files: a list of layers, each an equation over named loops.

Layers are linked by `operand_source`. The files know windows only through relations such as
`ix=2*ox+1*fx`; where a layer reads more than its producer makes, the difference is padding.

A relation may also stand the other way round (`ox=1*ix+1*fx` over loops IX and FX): the nest walks
over inputs and scatters. It is read as the convolution `ix=1*ox+1*fx`, whose op has a loop OX in
place of IX, unless its full extent is what the next layer reads or the file gives. What is written
stays in the attributes of the op.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from math import prod

from tilewright.document import Document, Location, in_file_order, suggestion, validate
from tilewright.errors import Problem, Severity
from tilewright.network.build import NetworkBuilder
from tilewright.network.counts import active_points
from tilewright.network.graph import Index, Network, Role, Tensor
from tilewright.network.kinds import is_mac
from tilewright.network.moves import anywhere
from tilewright.network.nests import Nest
from tilewright.network.reading import NetworkReading
from tilewright.network.zigzag_layer import Layer, LayerFile, Relation, layer_of

_POOLS = ("max_pool", "average_pool")
_WEIGHTED = ("conv", "conv_transpose", "matmul")


@dataclass(frozen=True, slots=True)
class _Axes:
    """Every index name of a layer, and the loops of its op."""

    extents: Mapping[str, int]
    indices: Mapping[str, Index]
    dims: tuple[tuple[str, int], ...]

    def shape(self, names: Sequence[str]) -> tuple[int, ...]:
        """The shape of an operand with these index names."""
        return tuple(self.extents[name] for name in names)


@dataclass(frozen=True, slots=True)
class _Turned:
    """A relation that scatters, as the gather that it stands for: a loop over its target."""

    target: str
    walked: str
    """The loop over the input, which the op lacks."""
    extent: int
    index: Index
    """Where the gather reads along the axis of the loop that it lacks."""


def is_workload(data: object) -> bool:
    """Whether a YAML document looks like a ZigZag workload: a list of layers."""
    return isinstance(data, list) and any(
        isinstance(item, dict) and ("equation" in item or "operator_type" in item) for item in data
    )


def read_zigzag(document: Document, name: str) -> NetworkReading:
    """Read a workload file; all faults of all layers are found."""
    reader = _Reader(document, list(document.warnings))
    network = reader.network(reader.ordered(reader.layers()), name)
    failed = any(p.severity == "error" for p in reader.problems)
    return NetworkReading(None if failed else network, tuple(in_file_order(reader.problems)))


@dataclass
class _Reader:
    document: Document
    problems: list[Problem]
    places: dict[int, int] = field(default_factory=dict)
    """Position in the file by layer id."""

    def note(
        self, layer: int, key: str, text: str, hint: str = "", *, severity: Severity = "error"
    ) -> None:
        place = self.places.get(layer, 0)
        at: Location = (place, key) if key else (place,)
        message = f"layer {layer}: {key}: {text}" if key else f"layer {layer}: {text}"
        self.problems.append(self.document.problem(at, message, hint=hint, severity=severity))

    def layers(self) -> list[Layer]:
        result: list[Layer] = []
        for position in range(len(self.document.data)):
            file, faults = validate(self.document, LayerFile, None, (position,))
            self.problems += faults
            if file is None:
                continue
            if file.id in self.places:
                message = f"layer {file.id}: the id stands twice"
                hint = "give each layer an id of its own"
                self.problems.append(self.document.problem((position, "id"), message, hint=hint))
                continue
            self.places[file.id] = position
            layer, mistakes = layer_of(file)
            for key, text, advice in mistakes:
                self.note(file.id, key, text, advice)
            if layer is not None:
                result.append(layer)
        return result

    def ordered(self, layers: list[Layer]) -> list[Layer]:
        """Layers in topological order, ties in the order of the file."""
        by_id = {layer.id: layer for layer in layers}
        edges: dict[int, list[int]] = {layer.id: [] for layer in layers}
        for layer in layers:
            letters = [letter for letter, _ in layer.operands[1:]]
            for letter, source in layer.sources.items():
                if letter not in letters:
                    text = f"the equation has no operand {letter!r}"
                    self.note(layer.id, "operand_source", text, suggestion(letter, letters))
                elif source not in self.places:
                    text = f"{letter} comes from layer {source}, which is not in the file"
                    hint = f"write {letter}: {layer.id} if it comes from no layer"
                    self.note(layer.id, "operand_source", text, hint)
                elif source in by_id and source != layer.id:
                    edges[layer.id].append(source)
        try:
            return [by_id[i] for i in TopologicalSorter(edges).static_order()]
        except CycleError as error:
            ring = " -> ".join(map(str, error.args[1][:20]))
            self.note(error.args[1][0], "operand_source", f"layers feed each other: {ring}")
            return []

    def network(self, layers: list[Layer], name: str) -> Network:
        builder = NetworkBuilder(name, self.document.file)
        readers: dict[int, list[tuple[Layer, str]]] = {}
        for layer in layers:
            for letter, source in layer.sources.items():
                if source != layer.id:
                    readers.setdefault(source, []).append((layer, letter))
        for layer in layers:
            try:
                self._add(builder, layer, _axes(layer, readers.get(layer.id, ())))
            except ValueError as error:
                self.note(layer.id, "", str(error))
        read = {operand.tensor for op in builder.ops for operand in op.inputs}
        made = [operand.tensor for op in builder.ops for operand in op.outputs]
        return builder.finish(tensor for tensor in made if tensor not in read)

    def _add(self, builder: NetworkBuilder, layer: Layer, axes: _Axes) -> None:
        tensors, indices = [], []
        for letter, names in _data_operands(layer):
            tensor, pads = self._source(builder, layer, letter, axes)
            tensors.append(tensor)
            indices.append(tuple(_shifted(axes.indices[n], pads.get(n, 0)) for n in names))
        names = layer.operands[0][1]
        nest = Nest(
            dims=axes.dims,
            shape=axes.shape(names),
            output=tuple(axes.indices[n] for n in names),
            inputs=tuple(indices),
        )
        result = builder.op(
            layer.name,
            layer.kind,
            nest,
            tensors,
            {f"{layer.id}.O": (layer.precision["O_final"], "")},
            attributes=_attributes(layer),
        )
        builder.ops[-1] = replace(builder.ops[-1], accumulator_bits=layer.precision["O"])
        self._say_what_is_counted(builder, layer, result)

    def _source(
        self, builder: NetworkBuilder, layer: Layer, letter: str, axes: _Axes
    ) -> tuple[str, dict[str, int]]:
        """The tensor that an operand reads, and the padding it needs before each index."""
        names = dict(layer.operands)[letter]
        shape = axes.shape(names)
        source = layer.sources.get(letter, layer.id)
        made = builder.tensors.get(f"{source}.O")
        name = f"{layer.id}.{letter}"
        if source == layer.id or made is None:
            given: Role = "constant" if letter != "I" and layer.kind in _WEIGHTED else "input"
            builder.tensor(name, shape, bits=layer.precision[letter], role=given)
            return name, {}
        if len(made.shape) == len(shape) and all(
            have == need or layer.relation(n) is not None
            for n, have, need in zip(names, made.shape, shape, strict=True)
        ):
            return made.name, {
                n: (need - have) // 2
                for n, have, need in zip(names, made.shape, shape, strict=True)
                if need > have and n not in layer.pads
            }
        if made.elements != prod(shape):
            text = f"{letter} is read as {shape} where layer {source} makes {made.shape}"
            hint = "the figures of both layers stand as written; check loop_sizes"
            self.note(layer.id, "loop_sizes", text, hint, severity="warning")
        reshaped = {name: (made.bits, made.dtype)}
        builder.op(f"{layer.name}.{letter}", "reshape", anywhere(shape), [made.name], reshaped)
        return name, {}

    def _say_what_is_counted(self, builder: NetworkBuilder, layer: Layer, result: Tensor) -> None:
        scattered = [r for r in layer.relations if r.target in layer.operands[0][1]]
        short = [r for r in scattered if _room(layer, r) < 0]
        if short and layer.kind != "conv_transpose":
            self.note(
                layer.id,
                "dimension_relations",
                f"{', '.join(map(str, short))} walks over inputs and scatters, and its window is "
                "longer than they are: no convolution, so it is read as it is written",
                "give pr_loop_dims and padding if there is padding around the inputs",
                severity="warning",
            )
        op = builder.ops[-1]
        scattered = [r for r in scattered if r.target in op.sizes]
        counted = active_points(op, result.shape)
        written = prod(layer.sizes.values())
        if not scattered or counted == written:
            return
        read_as = ", ".join(_turned(relation, layer) for relation in scattered)
        unit = "MACs" if is_mac(op.kind) else "points"
        self.note(
            layer.id,
            "dimension_relations",
            f"{', '.join(map(str, scattered))} walks over inputs and scatters; read as {read_as}: "
            f"a result of {' x '.join(map(str, result.shape))} and {counted:,} {unit}, where the "
            f"nest as written has {written:,} points",
            "relate the input instead, with loops over the output, to say the same",
            severity="warning",
        )


def _data_operands(layer: Layer) -> list[tuple[str, tuple[str, ...]]]:
    """Operands that hold data, inputs first: the weights of a pool only say how far it reaches."""
    operands = [
        (letter, names)
        for letter, names in layer.operands[1:]
        if layer.precision[letter] and not (layer.kind in _POOLS and letter != "I")
    ]
    return sorted(operands, key=lambda operand: operand[0] != "I")


def _axes(layer: Layer, readers: Sequence[tuple[Layer, str]]) -> _Axes:
    extents = layer.sizes
    indices = {dim: Index(((dim, 1),)) for dim in extents}
    turned: dict[str, _Turned] = {}
    for relation in layer.relations:
        before, behind = layer.pads.get(relation.target, (0, 0))
        full = relation.span(layer.sizes) - before - behind
        gather = _gather(layer, relation, readers)
        if gather is not None:
            turned[gather.walked] = gather
            extents[relation.target] = gather.extent
            indices |= {
                relation.target: Index(((relation.target, 1),)),
                gather.walked: gather.index,
            }
        else:
            extents[relation.target] = layer.sizes_given.get(relation.target) or full
            indices[relation.target] = Index(relation.terms, -before)
        if extents[relation.target] < 1:
            raise ValueError(f"{relation}: nothing is left of it")
    dims = tuple(
        (turned[dim].target, turned[dim].extent) if dim in turned else (dim, size)
        for dim, size in layer.dims
    )
    return _Axes(extents, indices, dims)


def _gather(
    layer: Layer, relation: Relation, readers: Sequence[tuple[Layer, str]]
) -> _Turned | None:
    """The gather that a relation stands for, or None if it gathers itself or is meant literally."""
    (walked, stride), (tap, dilation) = _walk_and_tap(relation, layer)
    result = layer.operands[0][1]
    related = [dim for r in layer.relations if r != relation for dim, _ in r.terms]
    if relation.target not in result or walked in result or walked in related:
        return None
    before, behind = layer.pads.get(relation.target, (0, 0))
    full = relation.span(layer.sizes) - before - behind
    room = _room(layer, relation)
    if room < 0:
        return None
    gathered = room // stride + 1
    given = layer.sizes_given.get(relation.target)
    wanted = {given} if given else {_extent_read(r, a, layer, relation.target) for r, a in readers}
    literal = layer.kind == "conv_transpose" or (full in wanted and gathered not in wanted)
    if literal:
        return None
    index = Index(((relation.target, stride), (tap, dilation)), -before)
    return _Turned(relation.target, walked, given or gathered, index)


def _room(layer: Layer, relation: Relation) -> int:
    """How far a window can be moved along the padded input; below 0 if it does not fit."""
    (walked, _), (tap, dilation) = _walk_and_tap(relation, layer)
    padded = layer.sizes[walked] + sum(layer.pads.get(relation.target, (0, 0)))
    return padded - dilation * (layer.sizes[tap] - 1) - 1


def _walk_and_tap(relation: Relation, layer: Layer) -> tuple[tuple[str, int], tuple[str, int]]:
    """The term whose loop walks over the input, then the one that is the window's."""
    walked = {n for letter, names in layer.operands[1:] if letter == "I" for n in names}
    first, second = relation.terms
    return (first, second) if first[0] in walked or second[0] not in walked else (second, first)


def _extent_read(reader: Layer, letter: str, maker: Layer, name: str) -> int:
    """How far a reader reaches along one axis of the maker's result; 0 if that is unknown."""
    axis = maker.operands[0][1].index(name)
    names = dict(reader.operands).get(letter, ())
    if axis >= len(names):
        return 0
    relation = reader.relation(names[axis])
    if relation is None:
        return reader.sizes.get(names[axis], 0)
    return reader.sizes_given.get(names[axis]) or relation.span(reader.sizes)


def _turned(relation: Relation, layer: Layer) -> str:
    """The relation as a convolution has it."""
    (walked, stride), (tap, dilation) = _walk_and_tap(relation, layer)
    return f"{walked}={stride}*{relation.target}+{dilation}*{tap}"


def _shifted(index: Index, pad: int) -> Index:
    return replace(index, offset=index.offset - pad) if pad else index


def _attributes(layer: Layer) -> dict[str, str | tuple[str, ...]]:
    """What the file says and the nest does not: kept for models that count as ZigZag does."""
    sizes = {r.target: layer.sizes_given.get(r.target) for r in layer.relations}
    for relation in layer.relations:
        pads = layer.pads.get(relation.target, (0, 0))
        if sizes[relation.target] is None:
            sizes[relation.target] = relation.distinct(layer.sizes) - sum(pads)
    equation = ["".join((letter, *(f"[{n}]" for n in names))) for letter, names in layer.operands]
    return {
        "zigzag_type": layer.type,
        "zigzag_loops": tuple(f"{name}={size}" for name, size in layer.dims),
        "zigzag_operands": tuple(equation),
        "zigzag_relations": tuple(map(str, layer.relations)),
        "zigzag_sizes": tuple(f"{name}={size}" for name, size in sizes.items()),
        "zigzag_precision": tuple(f"{k}={v}" for k, v in layer.precision.items()),
    }
