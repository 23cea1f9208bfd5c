"""Windows that slide over spatial axes: convolutions and pools as loop nests."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilewright.network.graph import Index, Network, Op
from tilewright.network.nests import SPATIAL, Indices, Nest, Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """How a kernel slides over one spatial axis."""

    kernel: int
    stride: int = 1
    dilation: int = 1
    pad_begin: int = 0
    pad_end: int = 0
    round_up: bool = False

    def __post_init__(self) -> None:
        if self.kernel < 1 or self.stride < 1 or self.dilation < 1:
            raise ValueError(
                f"kernel {self.kernel}, stride {self.stride} and dilation {self.dilation} "
                "must each be at least 1"
            )

    @property
    def reach(self) -> int:
        """Input elements from the first to the last tap."""
        return self.dilation * (self.kernel - 1) + 1

    def output_size(self, size: int) -> int:
        """Positions of the window along an axis of `size` elements."""
        room = size + self.pad_begin + self.pad_end - self.reach
        if room < 0:
            raise ValueError(
                f"a kernel that reaches over {self.reach} elements does not fit into "
                f"{size} + {self.pad_begin} + {self.pad_end} of padding"
            )
        positions = (-(-room // self.stride) if self.round_up else room // self.stride) + 1
        # With rounding up, a window that would start in the padding behind the input is left out.
        if self.round_up and (positions - 1) * self.stride >= size + self.pad_begin:
            positions -= 1
        return positions

    def transposed_size(self, size: int) -> int:
        """Size of the result when the window scatters instead of gathers; pads crop it."""
        result = (size - 1) * self.stride + self.reach - self.pad_begin - self.pad_end
        if result < 1:
            raise ValueError(f"cropping {self.pad_begin} + {self.pad_end} leaves nothing")
        return result


def same_window(
    size: int, kernel: int, stride: int, dilation: int, *, upper: bool = True
) -> Window:
    """The window that gives ceil(size / stride) positions; the odd pad goes behind if `upper`."""
    if kernel < 1 or stride < 1 or dilation < 1:
        return Window(kernel=kernel, stride=stride, dilation=dilation)
    reach = dilation * (kernel - 1) + 1
    total = max(0, (-(-size // stride) - 1) * stride + reach - size)
    small, large = total // 2, total - total // 2
    begin, end = (small, large) if upper else (large, small)
    return Window(kernel=kernel, stride=stride, dilation=dilation, pad_begin=begin, pad_end=end)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvLayout:
    """The order of axes. Letters: B batch, C all input channels, K all output channels, S the
    spatial axes, c and k the channels of one group, 1 an axis of size one.
    """

    data: str
    weights: str
    result: str


ONNX_CONV = ConvLayout(data="BCS", weights="KcS", result="BKS")
ONNX_CONV_TRANSPOSE = ConvLayout(data="BCS", weights="CkS", result="BKS")
TFLITE_CONV = ConvLayout(data="BSC", weights="KSc", result="BSK")
TFLITE_DEPTHWISE = ConvLayout(data="BSC", weights="1SK", result="BSK")
TFLITE_CONV_TRANSPOSE = ConvLayout(data="BSC", weights="KSC", result="BSK")


def conv(
    data: Shape,
    channels: int,
    groups: int,
    windows: Sequence[Window],
    layout: ConvLayout,
    *,
    bias: bool = False,
) -> Nest:
    """A convolution with `channels` output channels; gathers its input."""
    axes = _conv_axes(data, channels, groups, windows, layout)
    outs = tuple(w.output_size(s) for w, s in zip(windows, axes.spatial, strict=True))
    slide = _sliding("O", outs, windows)
    indices = (slide.stretched, slide.taps, slide.plain)
    return _conv_nest(axes.channel_dims + slide.dims, axes, outs, layout, indices, bias=bias)


def conv_transpose(
    data: Shape,
    channels: int,
    groups: int,
    windows: Sequence[Window],
    layout: ConvLayout,
    *,
    bias: bool = False,
) -> Nest:
    """A transposed convolution. A negative `pad_end` makes room behind it.

    It scatters its input. Where windows overlap it walks over its result instead, so that it can be
    cut there: each element is gathered from those windows that reach it.
    """
    axes = _conv_axes(data, channels, groups, windows, layout)
    outs = tuple(w.transposed_size(s) for w, s in zip(windows, axes.spatial, strict=True))
    if any(s > 1 and w.reach > w.stride for w, s in zip(windows, axes.spatial, strict=True)):
        slide = _sliding("O", outs, windows)
        gathered = tuple(
            Index(((position, 1), (tap, -w.dilation)), w.pad_begin, w.stride)
            for (position, _), (tap, _), w in zip(
                slide.positions, slide.windows, windows, strict=True
            )
        )
        indices = (gathered, slide.taps, slide.plain)
        return _conv_nest(axes.channel_dims + slide.dims, axes, outs, layout, indices, bias=bias)
    slide = _sliding("I", axes.spatial, windows)
    # Between windows, and behind the last, lie elements without a sum: whoever is before them
    # writes them.
    result = tuple(
        replace(index, reach=max(0, w.stride - w.reach, -w.pad_end))
        for index, w in zip(slide.stretched, windows, strict=True)
    )
    indices = (slide.plain, slide.taps, result)
    return _conv_nest(axes.channel_dims + slide.dims, axes, outs, layout, indices, bias=bias)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interleaved:
    """An axis of a transposed convolution that walks over its result.

    Of `stride` elements of the result in a row each tap reaches one, so that most points of the
    nest are no work: an array goes over the input instead, with all taps at every step.
    """

    loop: str
    tap: str
    index: Index
    """Into the input."""
    size: int
    """Of the input."""

    @property
    def stride(self) -> int:
        """From one window to the next, in elements of the result."""
        return self.index.divisor

    @property
    def dilation(self) -> int:
        """From one tap of a window to the next, in elements of the result."""
        return -dict(self.index.terms)[self.tap]

    @property
    def walked(self) -> str:
        """The loop over the input."""
        return f"I{self.loop[1:]}"

    def steps(self, length: int) -> int:
        """Steps over the input in which every tap has made all that it makes of some elements.

        >>> index = Index((("OY", 1), ("FY", -1)), 1, 2)
        >>> axis = Interleaved(loop="OY", tap="FY", index=index, size=8)
        >>> axis.steps(2), axis.steps(3), axis.steps(17)
        (1, 2, 8)
        """
        return max(1, min(-(-length // self.stride), self.size))

    def seen(self, length: int, taps: int) -> int:
        """Elements of the input that some elements of the result are made of, at most."""
        return min(self.size, (length - 1 + self.dilation * (taps - 1)) // self.stride + 1)


def interleaved(op: Op, network: Network) -> tuple[Interleaved, ...]:
    """The axes along which a transposed convolution walks over its result; of other ops none."""
    if op.kind != "conv_transpose":
        return ()
    data = next(operand for operand in op.inputs if operand.name == "I")
    return tuple(
        Interleaved(loop=index.terms[0][0], tap=index.terms[1][0], index=index, size=size)
        for index, size in zip(data.index or (), network.by_name[data.tensor].shape, strict=False)
        if len(index.terms) == 2 and index.terms[1][1] < 0
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sliding:
    """Loops of windows over spatial axes: positions, taps, and where both together land."""

    positions: tuple[tuple[str, int], ...]
    windows: tuple[tuple[str, int], ...]
    plain: Indices
    taps: Indices
    stretched: Indices

    @property
    def dims(self) -> tuple[tuple[str, int], ...]:
        """All loops, those over windows innermost."""
        return self.positions + self.windows


def _sliding(letter: str, sizes: Shape, windows: Sequence[Window]) -> _Sliding:
    """Loops `letter`X, `letter`Y … over `sizes` positions, and FX, FY … over the taps."""
    names = SPATIAL[-len(windows) :] if windows else ()
    positions = tuple((f"{letter}{n}", size) for n, size in zip(names, sizes, strict=True))
    taps = tuple((f"F{n}", w.kernel) for n, w in zip(names, windows, strict=True))
    return _Sliding(
        positions=positions,
        windows=taps,
        plain=tuple(Index(((dim, 1),)) for dim, _ in positions),
        taps=tuple(Index(((dim, 1),)) for dim, _ in taps),
        stretched=tuple(
            Index(((f"{letter}{n}", w.stride), (f"F{n}", w.dilation)), -w.pad_begin)
            for n, w in zip(names, windows, strict=True)
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _ConvAxes:
    channel_dims: tuple[tuple[str, int], ...]
    spatial: Shape
    batch: int
    channels: int
    groups: int
    per_group: tuple[int, int]
    """Input and output channels of one group."""


def _conv_axes(
    data: Shape, channels: int, groups: int, windows: Sequence[Window], layout: ConvLayout
) -> _ConvAxes:
    if len(data) != len(windows) + 2:
        raise ValueError(f"{len(windows)}-D windows do not slide over an input of shape {data}")
    channel_axis = 1 if layout.data == "BCS" else len(data) - 1
    spatial = data[2:] if channel_axis == 1 else data[1:-1]
    inputs = data[channel_axis]
    if groups < 1 or inputs % groups or channels % groups:
        raise ValueError(f"{inputs} input and {channels} output channels in {groups} groups")
    per_group = (inputs // groups, channels // groups)
    dims = (("B", data[0]), ("G", groups), ("K", per_group[1]), ("C", per_group[0]))
    return _ConvAxes(
        channel_dims=tuple(d for d in dims if d[0] != "G" or groups > 1),
        spatial=spatial,
        batch=data[0],
        channels=channels,
        groups=groups,
        per_group=per_group,
    )


def _conv_nest(
    dims: tuple[tuple[str, int], ...],
    axes: _ConvAxes,
    outs: Shape,
    layout: ConvLayout,
    spatial: tuple[Indices, Indices, Indices],
    *,
    bias: bool,
) -> Nest:
    grouped = axes.groups > 1
    c_group, k_group = axes.per_group
    all_c = Index((("G", c_group), ("C", 1)) if grouped else (("C", 1),))
    all_k = Index((("G", k_group), ("K", 1)) if grouped else (("K", 1),))
    letters = {
        "B": Index((("B", 1),)),
        "C": all_c,
        "K": all_k,
        "c": Index((("C", 1),)),
        "k": Index((("K", 1),)),
        "1": Index(()),
    }

    def order(axes_order: str, spatial_indices: Indices) -> Indices:
        parts = (spatial_indices if a == "S" else (letters[a],) for a in axes_order)
        return tuple(index for part in parts for index in part)

    data, taps, result = spatial
    sizes = {"B": (axes.batch,), "K": (axes.channels,), "S": outs}
    inputs = (order(layout.data, data), order(layout.weights, taps))
    return Nest(
        dims=dims,
        shape=tuple(size for letter in layout.result for size in sizes[letter]),
        output=order(layout.result, result),
        inputs=inputs + (((all_k,),) if bias else ()),
    )


def pool(data: Shape, windows: Sequence[Window], *, channels_last: bool = False) -> Nest:
    """A pooling window over the spatial axes."""
    if len(data) != len(windows) + 2:
        raise ValueError(f"{len(windows)}-D windows do not slide over an input of shape {data}")
    spatial = data[1:-1] if channels_last else data[2:]
    channels = data[-1] if channels_last else data[1]
    outs = tuple(w.output_size(s) for w, s in zip(windows, spatial, strict=True))
    slide = _sliding("O", outs, windows)
    dims = (("B", data[0]), ("G", channels), *slide.dims)
    batch, channel = Index((("B", 1),)), Index((("G", 1),))
    if channels_last:
        shape = (data[0], *outs, channels)
        return Nest(
            dims=dims,
            shape=shape,
            output=(batch, *slide.plain, channel),
            inputs=((batch, *slide.stretched, channel),),
        )
    return Nest(
        dims=dims,
        shape=(data[0], channels, *outs),
        output=(batch, channel, *slide.plain),
        inputs=((batch, channel, *slide.stretched),),
    )
