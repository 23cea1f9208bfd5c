"""Whole-number arithmetic as TFLite's reference kernels define it."""

from collections.abc import Callable

import numpy as np

from tilewright.replay.kernels.tile import Array, KernelError, Part, Tile


def zero_point(part: Part) -> Array:
    raise KernelError("later")


requantised_sums = pooled = unary = binary = prelu = requantised = dequantised_part = softmax = (
    reduced
) = rescaled = zero_point
