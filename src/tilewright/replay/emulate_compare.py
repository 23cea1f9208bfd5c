"""How well two computations of a tensor agree."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tilewright.replay.kernels.tile import Array

TOLERANCE = 1e-4
"""Of floats, relative to the range of the tensor; whole numbers have to be equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """The largest difference of one tensor: of floats relative to the tensor's range."""

    name: str
    max_error: float
    agrees: bool


def agreements(
    outputs: Mapping[str, Array], expected: Mapping[str, Array]
) -> tuple[Agreement, ...]:
    """Every output against what is expected of it; one that is not expected does not agree."""
    return tuple(
        agreement(name, array, expected[name])
        if name in expected
        else Agreement(name=name, max_error=float("inf"), agrees=False)
        for name, array in outputs.items()
    )


def agreement(name: str, found: Array, expected: Array) -> Agreement:
    """One tensor against another."""
    if found.shape != expected.shape:
        return Agreement(name=name, max_error=float("inf"), agrees=False)
    error = largest_error(found, expected, value_range(expected))
    whole = expected.dtype.kind in "iub"
    return Agreement(name=name, max_error=error, agrees=error <= (0 if whole else TOLERANCE))


def value_range(values: Array) -> float:
    """What errors are relative to: the largest magnitude of floats, 1 for whole numbers."""
    if values.dtype.kind in "iub" or not values.size:
        return 1.0
    finite = np.abs(values[np.isfinite(values)])
    return float(finite.max(initial=0)) or 1.0


def largest_error(found: Array, expected: Array, scale: float) -> float:
    """The largest difference of two boxes; what is not finite must be the same."""
    a, b = found.astype(np.float64), expected.astype(np.float64)
    with np.errstate(invalid="ignore"):
        difference = np.abs(a - b)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    difference = np.where(same, 0, np.where(np.isnan(difference), np.inf, difference))
    return float(difference.max(initial=0)) / scale
