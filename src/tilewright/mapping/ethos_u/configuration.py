"""What the members of the family differ in: sizes of blocks and of the SHRAM, and its rates."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, NamedTuple

from tilewright.records import quickly_made

BANK_BYTES: Final = 1024
OUTPUT_BANKS: Final = 2
"""Banks of the SHRAM that the output unit keeps to itself."""
TABLE_BANKS: Final = 2
"""Banks that a look-up table takes."""


@quickly_made
class Shape(NamedTuple):
    """Height, width and depth (channels) of a feature map or of a block of one."""

    height: int
    width: int
    depth: int

    @property
    def area(self) -> int:
        """Positions of one channel."""
        return self.height * self.width

    @property
    def elements(self) -> int:
        """Elements in all."""
        return self.height * self.width * self.depth

    def within(self, other: "Shape") -> "Shape":
        """The shape, no larger than another one along any axis."""
        return Shape(
            min(self.height, other.height),
            min(self.width, other.width),
            min(self.depth, other.depth),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Granules:
    """How many banks of the SHRAM are given out at a time, by what lies in them."""

    inputs: int
    """Of 8 and 16 bit; `wide_inputs`: of 32 bit."""
    wide_inputs: int
    accumulators: int
    """Of 32 bit; `wide_accumulators`: of 40 bit."""
    wide_accumulators: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputCycles:
    """Cycles that the output unit needs for an element, by what it does to it."""

    wide_binary: Fraction
    """Element-wise on 32-bit inputs, two of them; `wide_unary`: one."""
    wide_unary: Fraction
    wide_product: Fraction
    product: Fraction
    """Also of everything that accumulates in 40 bit."""
    addition: Fraction
    max_pool: Fraction
    other: Fraction
    table: Fraction
    """Activation by a look-up table; `clamp`: by limits."""
    clamp: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """One member of the family."""

    name: str
    micro_block: Shape
    """Outputs that are worked at in a cycle, each with a dot product over 8 input channels."""
    shram_banks: int
    granules: Granules
    output_cycles: OutputCycles
    cores: int = 1

    @property
    def macs_per_cycle(self) -> int:
        """Multiplications in a cycle over all cores."""
        return 8 * self.micro_block.elements * self.cores

    @property
    def usable_banks(self) -> int:
        """Banks for inputs and accumulators where no look-up table is needed."""
        at_the_end = 2 if self.shram_banks > 16 else 0
        return self.shram_banks - OUTPUT_BANKS - at_the_end

    @property
    def banks_beside_a_table(self) -> int:
        """Banks for inputs and accumulators beside a look-up table, which lies at the end."""
        return min(self.usable_banks, self.shram_banks - OUTPUT_BANKS - TABLE_BANKS)


def _output_cycles(*figures: str) -> OutputCycles:
    (
        wide_binary,
        wide_unary,
        wide_product,
        product,
        addition,
        max_pool,
        other,
        table,
        clamp,
    ) = (Fraction(figure) for figure in figures)
    return OutputCycles(
        wide_binary=wide_binary,
        wide_unary=wide_unary,
        wide_product=wide_product,
        product=product,
        addition=addition,
        max_pool=max_pool,
        other=other,
        table=table,
        clamp=clamp,
    )


def _granules(inputs: int, wide_inputs: int, accumulators: int, wide_accumulators: int) -> Granules:
    return Granules(
        inputs=inputs,
        wide_inputs=wide_inputs,
        accumulators=accumulators,
        wide_accumulators=wide_accumulators,
    )


_U55_256: Final = Configuration(
    name="u55-256",
    micro_block=Shape(2, 2, 8),
    shram_banks=48,
    granules=_granules(8, 16, 16, 20),
    output_cycles=_output_cycles(
        "0.625", "1.125", "0.5", "0.375", "0.75", "0.125", "0.25", "1", "0.25"
    ),
)

_ALL: Final = (
    Configuration(
        name="u55-32",
        micro_block=Shape(1, 1, 4),
        shram_banks=16,
        granules=_granules(2, 4, 4, 4),
        output_cycles=_output_cycles("2", "3", "3", "3", "6", "1", "2", "1", "1"),
    ),
    Configuration(
        name="u55-64",
        micro_block=Shape(1, 1, 8),
        shram_banks=16,
        granules=_granules(2, 4, 4, 8),
        output_cycles=_output_cycles("1", "1.5", "1.5", "1.5", "3", "0.5", "1", "1", "1"),
    ),
    Configuration(
        name="u55-128",
        micro_block=Shape(1, 2, 8),
        shram_banks=24,
        granules=_granules(4, 8, 8, 12),
        output_cycles=_output_cycles(
            "0.75", "1.25", "0.75", "0.75", "1.5", "0.25", "0.5", "1", "0.5"
        ),
    ),
    _U55_256,
    replace(_U55_256, name="u65-256"),
    replace(
        _U55_256,
        name="u65-512",
        output_cycles=_output_cycles(
            "0.3125", "0.5625", "0.25", "0.1875", "0.375", "0.0625", "0.125", "0.5", "0.125"
        ),
        cores=2,
    ),
)
CONFIGURATIONS: Final[Mapping[str, Configuration]] = {c.name: c for c in _ALL}
"""The family by name."""
