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
    return _scaled(values, fixed, shift)


def averaged(sums: Array, count: int, real: float) -> Whole:
    """Sums of so many numbers, divided by their count and times a real number.

    TFLite divides the fixed-point number by the count, not the real one, and its bits to spare take
    up what would be rounded a second time.
    """
    fixed, shift = quantised_multiplier(real)
    spare = min(count.bit_length() - 1, 32, 31 + shift)
    return _scaled(sums, np.asarray((fixed << spare) // count), np.asarray(shift - spare))


def hard_swish(steps: Array, own_scale: float, scale: float) -> Whole:
    """x × relu6(x + 3) / 6 of steps behind zero points, in 16 bit with a fraction of 15."""
    fine = steps.astype(np.int64) << 7
    fixed, shift = quantised_multiplier(own_scale / 128 / scale)
    data = _high_product(fine, np.asarray(_narrowed(fixed)), bits=15)
    # The second factor, from 0 to 1, is x / 3 from -1 to 1 at first.
    slope, left = quantised_multiplier(own_scale / 128 / (3 / 2**15))
    share = _saturated(fine << max(0, left - 1))
    share = _high_product(share, np.asarray(_narrowed(slope)), bits=15)
    share = _saturated(share << 1) if left > 0 else _rounded_shift(share, np.asarray(-left))
    product = ((share + 2**15) >> 1) * data
    # C++ divides towards zero.
    halved = np.where(product >= 0, product >> 15, -(-product >> 15))
    return _rounded_shift(halved, np.asarray(-shift))


def _narrowed(fixed: int) -> int:
    """A fraction of 31 bits in 15."""
    return min((fixed + 2**15) >> 16, 2**15 - 1)


def _saturated(values: Whole) -> Whole:
    return np.clip(values, -(2**15), 2**15 - 1)


def multiplied_once(values: Array, reals: Array) -> Whole:
    """Like `multiplied`, but rounded only once, ties upwards: FULLY_CONNECTED of LiteRT."""
    pairs = [quantised_multiplier(float(real)) for real in reals.reshape(-1)]
    fixed = np.array([pair[0] for pair in pairs], dtype=np.int64).reshape(reals.shape)
    shift = 31 - np.array([pair[1] for pair in pairs], dtype=np.int64).reshape(reals.shape)
    return (values.astype(np.int64) * fixed + (np.int64(1) << (shift - 1))) >> shift


def _scaled(values: Array, fixed: Whole, shift: Whole) -> Whole:
    left, right = np.maximum(shift, 0), np.maximum(-shift, 0)
    return _rounded_shift(_high_product(values.astype(np.int64) << left, fixed), right)


def _high_product(values: Whole, fixed: Whole, bits: int = 31) -> Whole:
    """values × fixed / 2^bits, rounded, ties away from zero (gemmlowp's doubling high product)."""
    product = values * fixed
    half = 1 << (bits - 1)
    nudged = product + np.where(product >= 0, half, 1 - half)
    # C++ divides towards zero.
    return np.where(nudged >= 0, nudged >> bits, -(-nudged >> bits))


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
