"""Putting a network together, op by op: what every reader and the zoo use."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tilewright.network.graph import AttributeValue, Network, Op, Operand, Role, Tensor
from tilewright.network.kinds import KIND_CLASSES, is_mac
from tilewright.network.nests import Nest, with_search_loops

_LETTERS = ("I", "W", "B")


class NetworkBuilder:
    """Collects tensors and ops in topological order; `finish` makes the frozen network."""

    def __init__(self, name: str, source: str = "") -> None:
        self.name = name
        self.source = source
        self.tensors: dict[str, Tensor] = {}
        self.ops: list[Op] = []
        self._name_uses: dict[str, int] = {}

    def tensor(
        self, name: str, shape: Sequence[int], *, bits: int, role: Role, dtype: str = ""
    ) -> Tensor:
        """Declare a tensor that no op makes: role `input` or `constant`."""
        if name in self.tensors:
            raise ValueError(f"tensor {name!r} is made twice")
        tensor = Tensor(name=name, shape=tuple(shape), bits=bits, role=role, dtype=dtype)
        self.tensors[name] = tensor
        return tensor

    def op(
        self,
        name: str,
        kind: str,
        nest: Nest,
        inputs: Sequence[str],
        outputs: Mapping[str, tuple[int, str]],
        *,
        attributes: Mapping[str, AttributeValue] | None = None,
    ) -> Tensor:
        """Add an op; `outputs` maps each result's name to its bits and element type.

        All results have the nest's shape; the first is returned. An op's name that was used before
        gets a number. An input without a name is left out, and so is its letter.
        """
        if kind not in KIND_CLASSES:
            raise ValueError(f"op {name!r}: no kind {kind!r}")
        if kind == "gather" and self.tensors[inputs[0]].role != "constant":
            nest = with_search_loops(nest)
        if len(inputs) != len(nest.inputs):
            raise ValueError(f"op {name!r}: {len(inputs)} inputs, nest of {len(nest.inputs)}")
        made = []
        for output, (bits, dtype) in outputs.items():
            if output in self.tensors:
                raise ValueError(f"tensor {output!r} is made twice")
            tensor = Tensor(
                name=output, shape=nest.shape, bits=bits, role="activation", dtype=dtype
            )
            self.tensors[output] = tensor
            made.append(tensor)
        self.ops.append(
            Op(
                name=self._unique(name),
                kind=kind,
                # Scalars have no axes, but what is computed takes a step.
                dims=nest.dims or (("K", 1),),
                inputs=tuple(
                    Operand(name=letter, tensor=tensor, index=index)
                    for letter, tensor, index in zip(
                        _letters(len(inputs)), inputs, nest.inputs, strict=True
                    )
                    if tensor
                ),
                outputs=tuple(
                    Operand(name="O" if i == 0 else f"O{i + 1}", tensor=t.name, index=nest.output)
                    for i, t in enumerate(made)
                ),
                accumulator_bits=accumulator_bits(kind, made[0].bits, made[0].dtype),
                attributes=tuple(sorted((attributes or {}).items())),
                coupled=nest.coupled,
            )
        )
        return made[0]

    def finish(self, outputs: Iterable[str]) -> Network:
        """The network; what leads to none of the outputs is left out, but for inputs."""
        results = dict.fromkeys(outputs)
        ops = _leading_to(self.ops, results)
        touched = {operand.tensor for op in ops for operand in op.operands}
        inputs, middle, last = [], [], {}
        for name, tensor in self.tensors.items():
            if tensor.role == "input":
                inputs.append(tensor)
            elif name in results and tensor.role == "activation":
                last[name] = replace(tensor, role="output")
            elif name in touched:
                middle.append(tensor)
        ordered = (*inputs, *middle, *(last[name] for name in results if name in last))
        return Network(name=self.name, tensors=ordered, ops=ops, source=self.source)

    def _unique(self, name: str) -> str:
        uses = self._name_uses[name] = self._name_uses.get(name, 0) + 1
        while uses > 1:
            name = f"{name}_{uses}"
            uses = self._name_uses[name] = self._name_uses.get(name, 0) + 1
        return name


def _leading_to(ops: Sequence[Op], results: Iterable[str]) -> tuple[Op, ...]:
    """The ops on whose results the given tensors hang; further results that nobody reads go."""
    wanted = set(results)
    kept: list[Op] = []
    for op in reversed(ops):
        made = [operand for operand in op.outputs if operand.tensor in wanted]
        if made:
            first = op.outputs[0]
            kept.append(replace(op, outputs=(first, *(o for o in made if o is not first))))
            wanted.update(operand.tensor for operand in op.inputs)
    return tuple(reversed(kept))


def accumulator_bits(kind: str, bits: int, dtype: str = "") -> int:
    """Width of a partial sum: 32 bits, 64 for 16-bit integers as TFLite has it, or the result's."""
    if not is_mac(kind):
        return bits
    return max(64 if dtype == "int16" else 32, bits)


def _letters(count: int) -> list[str]:
    """Operand letters of `count` inputs: I, W, B, then X3, X4, …"""
    return [_LETTERS[i] if i < len(_LETTERS) else f"X{i}" for i in range(count)]
