"""Spectra of short stretches of a signal, as convolutions with windowed cosines and sines."""

import numpy as np

from tilewright.network.moves import transpose
from tilewright.network.onnx_reader.call import Call, NodeError, Rule, Step, known_array
from tilewright.network.onnx_reader.composition import Composition
from tilewright.network.onnx_reader.sliding import window_attributes
from tilewright.network.onnx_reader.stored import Array
from tilewright.network.windows import ONNX_CONV, Window, conv


def rules() -> dict[str, Rule]:
    """Rules by operator."""
    return {"STFT": Rule("conv", _short_time_fourier_transform)}


def _short_time_fourier_transform(call: Call) -> list[Step]:
    """A channel for the real and one for the imaginary part of each frequency."""
    signal, step = call.value(0), call.integer_at(1)
    if len(signal.shape) not in (2, 3) or signal.shape[2:] not in ((), (1,)):
        hint = "give it a real signal: batch x samples x 1"
        raise NodeError(f"a signal of shape {signal.shape} is not read", hint)
    length = call.integer_at(3) if call.has(3) else call.shape(2)[0]
    if length < 1 or (call.has(2) and call.shape(2) != (length,)):
        raise ValueError(f"a window of shape {call.shape(2)} for {length} samples")
    if call.has(2) and not call.value(2).is_constant:
        raise NodeError("its window is computed at run time", "make it a constant")
    bins = length // 2 + 1 if call.flag("onesided", default=True) else length
    ops = Composition(call)

    def waves() -> Array:
        shape = known_array(call.value(2)) if call.has(2) else np.ones(length)
        angles = 2 * np.pi / length * np.outer(np.arange(bins), np.arange(length))
        parts = np.stack([np.cos(angles), -np.sin(angles)], axis=1) * shape
        made: Array = parts.reshape(2 * bins, 1, length).astype(np.float32)
        return made

    batch, samples = signal.shape[:2]
    windows = (Window(kernel=length, stride=step),)
    row = ops.shaped("signal", signal, (batch, 1, samples))
    nest = conv(row.shape, 2 * bins, 1, windows, ONNX_CONV)
    waved = ops.worked_out("waves", (2 * bins, 1, length), waves)
    attributes = {**window_attributes(windows), "group": 1}
    made = ops.add("conv", "spectra", nest, [row, waved], attributes)
    turned = transpose(made.shape, (0, 2, 1))
    made = ops.add("transpose", "by stretch", turned, [made], {"perm": (0, 2, 1)})
    ops.give(0, made, (*made.shape[:2], bins, 2))
    return ops.steps
