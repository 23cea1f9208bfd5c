"""TFLite's fixed-point multiplication: whole numbers times real ones, rounded as it rounds.

Functions bear the names of what they do in TFLite's `common.h` and gemmlowp, in our style.
"""

import math

import numpy as np
import numpy.typing as npt

from tilewright.replay.kernels.tile import Array

Whole = npt.NDArray[np.int64]


def quantised_multiplier(real: float) -> tuple[int, int]:
    """A number as fixed-point fraction of 31 bits and a power of two (`QuantizeMultiplier`).

    >>> quantised_multiplier(0.75), quantised_multiplier(2.0)
    ((1610612736, 0), (1073741824, 2))
    """
    if real == 0:
        return 0, 0
    fraction, shift = math.frexp(real)
    fixed = math.floor(fraction * 2**31 + 0.5)
    if fixed == 2**31:
        fixed, shift = fixed // 2, shift + 1
    if shift < -31:
        return 0, 0
    return fixed, shift


def multiplied(values: Array, reals: Array) -> Whole:
    """Whole numbers times real ones, of the same shape or broadcast (`MultiplyByQuantized…`)."""
    pairs = [quantised_multiplier(float(real)) for real in reals.reshape(-1)]
    fixed = np.array([pair[0] for pair in pairs], dtype=np.int64).reshape(reals.shape)
    shift = np.array([pair[1] for pair in pairs], dtype=np.int64).reshape(reals.shape)
    left, right = np.maximum(shift, 0), np.maximum(-shift, 0)
    shifted = values.astype(np.int64) << left
    return _rounded_shift(_high_product(shifted, fixed), right)


def multiplied_once(values: Array, reals: Array) -> Whole:
    """Like `multiplied`, but rounded only once, ties upwards: what LiteRT's matrix products do."""
    pairs = [quantised_multiplier(float(real)) for real in reals.reshape(-1)]
    fixed = np.array([pair[0] for pair in pairs], dtype=np.int64).reshape(reals.shape)
    shift = 31 - np.array([pair[1] for pair in pairs], dtype=np.int64).reshape(reals.shape)
    return (values.astype(np.int64) * fixed + (np.int64(1) << (shift - 1))) >> shift


def _high_product(values: Whole, fixed: Whole) -> Whole:
    """values × fixed / 2^31, rounded, ties away from zero (gemmlowp's doubling high product)."""
    product = values * fixed
    nudged = product + np.where(product >= 0, 2**30, 1 - 2**30)
    # C++ divides towards zero.
    return np.where(nudged >= 0, nudged >> 31, -(-nudged >> 31))


def _rounded_shift(values: Whole, shift: Whole) -> Whole:
    """values / 2^shift, rounded to nearest, ties away from zero."""
    mask = (np.int64(1) << shift) - 1
    rest = values & mask
    threshold = (mask >> 1) + (values < 0)
    return (values >> shift) + (rest > threshold)


def round_away(values: Array) -> Array:
    """Rounded to whole numbers, ties away from zero: C's `round`."""
    return np.asarray(np.copysign(np.floor(np.abs(values) + 0.5), values))


def divided_away(values: Array, count: Array) -> Whole:
    """values / count, rounded as TFLite's average pool does: half the count away from zero."""
    whole, by = values.astype(np.int64), count.astype(np.int64)
    half = by // 2
    return np.where(whole > 0, (whole + half) // by, -((half - whole) // by))
