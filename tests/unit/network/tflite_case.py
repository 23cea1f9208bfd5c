"""What a tiny model of one operator is, with the shape of its result worked out by hand."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from tests.unit.network.tflite_models import ModelSpec, Options, TensorSpec, constant, single


@dataclass(frozen=True, kw_only=True)
class Case:
    model: ModelSpec
    kind: str
    """Of the last op."""
    n_ops: int = 1
    is_affine: bool = True
    """Whether its nests alone say what is computed."""


def case_of(
    op: str,
    inputs: Mapping[str, TensorSpec],
    shapes: tuple[int, ...] | list[tuple[int, ...]],
    kind: str,
    options: Options | None = None,
    *,
    dtype: str = "float32",
) -> Case:
    results = shapes if isinstance(shapes, list) else [shapes]
    outputs = {f"y{i}": TensorSpec(shape=shape, dtype=dtype) for i, shape in enumerate(results)}
    return Case(model=single(op, inputs, outputs, options), kind=kind)


def opaque(case: Case) -> Case:
    return replace(case, is_affine=False)


def in_steps(n_ops: int, case: Case) -> Case:
    return replace(case, n_ops=n_ops)


def data(*shape: int, dtype: str = "float32") -> TensorSpec:
    return TensorSpec(shape=shape, dtype=dtype)


def weights(*shape: int) -> TensorSpec:
    return constant(np.arange(np.prod(shape)).reshape(shape) % 5 - 2, "float32")
