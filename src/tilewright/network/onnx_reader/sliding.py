"""Windows over spatial axes as ONNX describes them: kernels, strides, dilations and padding."""

from collections.abc import Sequence
from itertools import chain

from tilewright.network.graph import AttributeValue
from tilewright.network.nests import SPATIAL, Shape
from tilewright.network.onnx_reader.call import Call
from tilewright.network.windows import Window, same_window

_AUTO_PADS = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")


def spatial_axes(data: Shape) -> Shape:
    """The axes behind batch and channels, of which there must be one to six."""
    if not 3 <= len(data) <= 2 + len(SPATIAL):
        raise ValueError(
            f"an input of shape {data}; batch, channels and one to {len(SPATIAL)} spatial axes "
            "are needed"
        )
    return data[2:]


def per_axis(call: Call, key: str, rank: int, default: int) -> tuple[int, ...]:
    """An attribute with one whole number per spatial axis."""
    values = call.integers(key) or (default,) * rank
    if len(values) != rank:
        raise ValueError(f"attribute {key!r} has {len(values)} entries for {rank} spatial axes")
    return values


def explicit_pads(call: Call, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Padding before and behind each spatial axis, as the node gives it."""
    pads = call.integers("pads") or (0,) * (2 * rank)
    if len(pads) != 2 * rank:
        raise ValueError(f"attribute 'pads' has {len(pads)} entries for {rank} spatial axes")
    return pads[:rank], pads[rank:]


def auto_pad(call: Call) -> str:
    """The way in which padding is worked out; `NOTSET` where it is given."""
    return call.choice("auto_pad", _AUTO_PADS)


def windows_over(call: Call, sizes: Shape, kernel: Shape) -> tuple[Window, ...]:
    """One window per spatial axis, with the padding that the node's `auto_pad` asks for."""
    rank = len(sizes)
    strides = per_axis(call, "strides", rank, 1)
    dilations = per_axis(call, "dilations", rank, 1)
    begins, ends = explicit_pads(call, rank)
    mode = auto_pad(call)
    round_up = call.flag("ceil_mode")
    windows = []
    for i in range(rank):
        if mode.startswith("SAME"):
            upper = mode == "SAME_UPPER"
            window = same_window(sizes[i], kernel[i], strides[i], dilations[i], upper=upper)
        else:
            padded = mode == "NOTSET"
            window = Window(
                kernel=kernel[i],
                stride=strides[i],
                dilation=dilations[i],
                pad_begin=begins[i] if padded else 0,
                pad_end=ends[i] if padded else 0,
                round_up=round_up,
            )
        windows.append(window)
    return tuple(windows)


def window_attributes(windows: Sequence[Window]) -> dict[str, AttributeValue]:
    """What a kernel needs to know of the windows; pads as ONNX orders them, all begins first."""
    begins, ends = [w.pad_begin for w in windows], [w.pad_end for w in windows]
    return {
        "kernel_shape": tuple(w.kernel for w in windows),
        "strides": tuple(w.stride for w in windows),
        "dilations": tuple(w.dilation for w in windows),
        "pads": tuple(chain(begins, ends)),
    }
