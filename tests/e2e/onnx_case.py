"""How a table of single nodes is written."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from tests.onnx_models import Array, Case, Given

Operand = Given | Array | None


def x(*shape: int, dtype: str = "float32") -> Given:
    return Given(shape=shape, dtype=dtype)


def weights(*shape: int) -> Array:
    count = int(np.prod(shape))
    values = (np.arange(count) * 7919 % 23 - 11).reshape(shape)
    return values.astype(np.float32)


def case(
    name: str,
    op: str,
    operands: Sequence[Operand],
    attributes: dict[str, Any] | None = None,
    opset: int = 13,
    results: int = 1,
) -> Case:
    domain, _, op_type = op.rpartition(".")
    return Case(
        name=name,
        op=op_type,
        operands=tuple(operands),
        attributes=attributes or {},
        opset=opset,
        results=results,
        domain=domain,
    )


def scalar(value: float, dtype: str = "float32") -> Array:
    return np.array(value, dtype=dtype)
