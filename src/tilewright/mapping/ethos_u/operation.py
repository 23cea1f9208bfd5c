"""An operation as the hardware runs it, and where its feature maps lie."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, NamedTuple

from tilewright.mapping.ethos_u.configuration import Shape
from tilewright.records import quickly_made

Engine = Literal[
    "convolution", "depthwise", "vector_product", "pooling", "reduce_sum", "elementwise"
]
Arithmetic = Literal["product", "addition", "maximum", "other"]
Activation = Literal["none", "clamp", "table"]
Upscaling = Literal["none", "nearest", "zeros"]
Format = Literal["linear", "bricks"]
"""Linear: height, width, channels. Bricks: height, groups of 16 channels, width, the 16."""

BRICK_DEPTH = 16
SUB_KERNEL = 8
"""A kernel is run in parts of at most this height and width."""


@quickly_made
class Operation(NamedTuple):
    """One operation of the hardware; pairs are (height, width).

    Thousands are made for tiles that are only compared: tuples are made in a third of the time.
    """

    engine: Engine
    input: Shape
    output: Shape
    second_input: Shape | None = None
    input_bits: int = 8
    output_bits: int = 8
    kernel: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    arithmetic: Arithmetic = "other"
    activation: Activation = "none"
    upscaling: Upscaling = "none"
    has_scalar: bool = False
    """Whether one input is a number in a register, which takes no room."""
    is_scaled: bool = True
    weight_bits: int = 8
    """Of which the hardware has no others; what a network has in more takes longer to come."""

    @property
    def has_weights(self) -> bool:
        """Whether weights, and with them scales, are read."""
        return self.engine in ("convolution", "depthwise", "vector_product")

    @property
    def keeps_depth(self) -> bool:
        """Whether an output channel depends on the same input channel only."""
        return self.engine in ("elementwise", "pooling", "depthwise")

    @property
    def sums_depth(self) -> bool:
        """Whether an output depends on all input channels."""
        return not self.keeps_depth

    @property
    def kernel_elements(self) -> int:
        """Elements of the kernel, without the gaps of a dilation."""
        return self.kernel[0] * self.kernel[1]

    @property
    def sub_kernels(self) -> tuple[int, ...]:
        """Elements of each part in which the kernel is run."""
        if max(self.kernel) <= SUB_KERNEL:
            return (self.kernel_elements,)
        heights, widths = (
            [min(SUB_KERNEL, size - start) for start in range(0, size, SUB_KERNEL)]
            for size in self.kernel
        )
        return tuple(height * width for height in heights for width in widths)

    @property
    def accumulator_bits(self) -> int:
        """Width of a partial sum."""
        wide = self.input_bits == 16 and self.engine != "pooling" and self.is_scaled
        return 40 if wide else 32


@dataclass(frozen=True, slots=True)
class MemoryTiming:
    """How fast a memory is, seen from the hardware's ports."""

    name: str
    bytes_per_cycle: Fraction
    burst_bytes: int
    read_latency_cycles: int
    write_latency_cycles: int

    def __hash__(self) -> int:
        # Fractions take long to hash.
        return hash(self.name)


@quickly_made
@dataclass(frozen=True, slots=True)
class Storage:
    """Where a feature map lies, and in which format."""

    memory: MemoryTiming
    format: Format = "linear"


@dataclass(frozen=True, slots=True, kw_only=True)
class Storages:
    """Where the feature maps and the weights of an operation lie while it runs."""

    input: Storage
    output: Storage
    second_input: Storage
    scales: MemoryTiming
    weights: MemoryTiming | None = None
    """Where weights come from while the operation runs; None: they lie beside the feature maps, and
    reading them there does not count."""


def stored_depth(depth: int, storage_format: Format) -> int:
    """Channels that a feature map takes room for."""
    if storage_format == "linear":
        return depth
    return -(-depth // BRICK_DEPTH) * BRICK_DEPTH
