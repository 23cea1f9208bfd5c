"""Arrays that compute inside their memory cells: energy, clock period and area of one macro.

The model is ZigZag 3.9's unit-gate model at 28 nm. The first array dim by name runs along the word
lines (columns), the second along the bit lines (rows), the others count banks. Activations enter
`bit_serial_bits` at a time. An analog macro adds along a bit line as charge and converts the sum;
a digital one has an adder tree of single-bit full adders under every column.
"""

from dataclasses import astuple, dataclass
from math import log2, prod
from typing import Final

from tilewright.machine.model import Array
from tilewright.mapping.attach import Unrolling
from tilewright.mapping.nest import LoopNest

_SQUARED_VOLTS: Final = 0.9**2
_NAND_PF: Final = 0.7e-3
_XOR_PF: Final = 1.5 * _NAND_PF
_FLIP_FLOP_PF: Final = 3 * _NAND_PF
_LINE_PF: Final = _NAND_PF / 2
"""Load of one cell on its word line, and as much on its bit line."""

_NAND_MM2: Final = 0.614e-6
_XOR_MM2: Final = 2.4 * _NAND_MM2
_FLIP_FLOP_MM2: Final = 6 * _NAND_MM2
_NAND_NS: Final = 0.0478
_XOR_NS: Final = 2.4 * _NAND_NS

# A full adder is 3 NANDs and 2 XORs; with one input at rest only the XORs switch. A multiplier is
# a gate of which one input, the weight, rests.
_ADDER_PJ: Final = (3 * _NAND_PF + 2 * _XOR_PF) * _SQUARED_VOLTS
_HALF_ACTIVE_ADDER_PJ: Final = 2 * _XOR_PF * _SQUARED_VOLTS
_FLIP_FLOP_PJ: Final = _FLIP_FLOP_PF * _SQUARED_VOLTS
_MULTIPLIER_PJ: Final = 0.5 * _NAND_PF * _SQUARED_VOLTS
_ADDER_MM2: Final = 3 * _NAND_MM2 + 2 * _XOR_MM2
_INPUT_TO_SUM_NS: Final = 2 * _XOR_NS
_INPUT_TO_CARRY_NS: Final = _XOR_NS + 2 * _NAND_NS
_CARRY_TO_CARRY_NS: Final = 2 * _NAND_NS


@dataclass(frozen=True, slots=True, kw_only=True)
class ImcEnergy:
    """Energy of all multiplications and additions of a nest, by part of the macro."""

    precharge_pj: float
    dac_pj: float
    adc_pj: float
    multiplier_pj: float
    bit_line_pj: float
    adder_tree_pj: float
    place_value_pj: float
    accumulator_pj: float

    @property
    def total_pj(self) -> float:
        """All parts together."""
        return float(sum(astuple(self)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ImcDelay:
    """The path of one clock period through the macro."""

    adc_ns: float
    multiplier_ns: float
    adder_tree_ns: float
    place_value_ns: float
    accumulator_ns: float

    @property
    def total_ns(self) -> float:
        """The whole path."""
        return float(sum(astuple(self)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ImcArea:
    """Area of all macros, without the registers at their inputs and outputs."""

    cell_mm2: float
    adc_mm2: float
    multiplier_mm2: float
    adder_tree_mm2: float
    place_value_mm2: float
    accumulator_mm2: float

    @property
    def total_mm2(self) -> float:
        """All parts together."""
        return float(sum(astuple(self)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Macro:
    """An in-memory array in the model's terms; `adc_bits` is 0 in a digital one."""

    is_analog: bool
    word_line: str
    bit_line: str
    columns: int
    rows: int
    banks: int
    activation_bits: int
    weight_bits: int
    serial_bits: int
    adc_bits: int

    @property
    def passes(self) -> float:
        """Cycles in which a whole activation enters."""
        return self.activation_bits / self.serial_bits

    @property
    def tree_depth(self) -> int:
        """Stages of the adder tree under a column."""
        return (self.rows - 1).bit_length()

    @property
    def tree_bits(self) -> int:
        """Width of what leaves the bit line: a converter's word or the adder tree's sum."""
        return self.adc_bits if self.is_analog else self.weight_bits + self.tree_depth

    @property
    def place_values(self) -> int:
        """Results of different place value to be added: per weight bit or per activation bit."""
        return self.weight_bits if self.is_analog else self.serial_bits

    @property
    def accumulator_bits(self) -> float:
        """Width of the sum over passes; 0 if an activation enters at once."""
        if self.serial_bits >= self.activation_bits:
            return 0
        width = self.adc_bits if self.is_analog else log2(self.rows)
        return self.activation_bits + width + self.weight_bits


def cycles_per_op(array: Array) -> float:
    """Cycles of one multiplication: 1, or the passes in which an activation enters a macro."""
    return 1.0 if array.in_memory is None else _macro(array).passes


def imc_energy(
    nest: LoopNest,
    array: Array,
    unrolling: Unrolling,
    *,
    group_depth: int = 1,
    precharges: float = 0.0,
) -> ImcEnergy:
    """Energy of computing a nest in memory.

    With `group_depth` weights behind one multiplier, a bit line is charged each time that the
    multiplier turns to another weight: `precharges` times in all, counted per unit.

    Raises:
        ValueError: the array does not compute in memory.
    """
    macro = _macro(array)
    columns, rows = _mapped(nest, macro, unrolling)
    inside = prod(
        factor
        for dim, pairs in unrolling
        if dim in (macro.word_line, macro.bit_line)
        for _, factor in pairs
    )
    firings = nest.points / inside * macro.passes
    analog = float(macro.is_analog)
    multipliers = macro.weight_bits * macro.columns
    multipliers *= rows if macro.is_analog else macro.serial_bits * macro.rows
    tree_pj = 0.0 if macro.is_analog else macro.serial_bits * _adder_tree_pj(macro, rows)
    line_pj = _LINE_PF * _SQUARED_VOLTS * macro.weight_bits
    return ImcEnergy(
        precharge_pj=line_pj * (1 + group_depth) * precharges if group_depth > 1 else 0.0,
        dac_pj=analog * _dac_pj(macro) * rows * firings,
        adc_pj=analog * _adc_pj(macro) * macro.weight_bits * columns * firings,
        multiplier_pj=_MULTIPLIER_PJ * multipliers * firings,
        bit_line_pj=analog * line_pj * columns * macro.rows * firings,
        adder_tree_pj=tree_pj * columns * firings,
        place_value_pj=_ADDER_PJ * _place_value_adders(macro) * columns * firings,
        accumulator_pj=(_ADDER_PJ + _FLIP_FLOP_PJ) * macro.accumulator_bits * columns * firings,
    )


def imc_clock_ns(array: Array) -> float:
    """The shortest clock period.

    Raises:
        ValueError: the array does not compute in memory.
    """
    return imc_delay(array).total_ns


def imc_delay(array: Array) -> ImcDelay:
    """The clock period, part by part.

    Raises:
        ValueError: the array does not compute in memory.
    """
    macro = _macro(array)
    tree = place_value = accumulator = 0.0
    width = macro.tree_bits
    if not macro.is_analog and macro.tree_depth:
        tree = _ripple_ns(macro.tree_depth, width - 2)
    if macro.place_values > 1:
        place_value = _ripple_ns((macro.place_values - 1).bit_length(), macro.place_values - 1)
        width += macro.place_values
    if macro.accumulator_bits:
        accumulator = _ripple_ns(1, macro.accumulator_bits - width - 1)
    return ImcDelay(
        # Fitted by ZigZag's authors; R × (k3 × rows + k4) with R = adc_bits.
        adc_ns=macro.adc_bits * (0.00653 * macro.rows + 0.640),
        multiplier_ns=_NAND_NS,
        adder_tree_ns=tree,
        place_value_ns=place_value,
        accumulator_ns=accumulator,
    )


def imc_area_mm2(array: Array, cell_mm2: float = 0.0) -> float:
    """Area of all macros; `cell_mm2` is that of the weight cells behind one multiplier.

    Raises:
        ValueError: the array does not compute in memory.
    """
    return imc_area(array, cell_mm2).total_mm2


def imc_area(array: Array, cell_mm2: float = 0.0) -> ImcArea:
    """The area of all macros, part by part.

    Raises:
        ValueError: the array does not compute in memory.
    """
    macro = _macro(array)
    columns = macro.columns * macro.banks
    lanes = 1 if macro.is_analog else macro.serial_bits
    # Fitted by ZigZag's authors to three 28 nm macros; 10^(k1 R + k2) × 2^R µm².
    adc = 10 ** (-0.0369 * macro.adc_bits + 1.206) * 2**macro.adc_bits * 1e-6
    tree = 0 if macro.is_analog else _full_adders(2**macro.tree_depth, macro.weight_bits)
    return ImcArea(
        cell_mm2=array.units * cell_mm2,
        adc_mm2=adc * macro.weight_bits * columns if macro.adc_bits > 1 else 0.0,
        multiplier_mm2=_NAND_MM2 * lanes * macro.weight_bits * columns * macro.rows,
        adder_tree_mm2=_ADDER_MM2 * tree * lanes * columns,
        place_value_mm2=_ADDER_MM2 * _place_value_adders(macro) * columns,
        accumulator_mm2=(_ADDER_MM2 + _FLIP_FLOP_MM2) * macro.accumulator_bits * columns,
    )


def _macro(array: Array) -> _Macro:
    if array.in_memory is None or array.input_bits is None:
        raise ValueError("the array does not compute in memory, or not with a known precision")
    dims = [*sorted(array.dims), ("", 1), ("", 1)]
    is_analog = array.in_memory.kind == "analog"
    return _Macro(
        is_analog=is_analog,
        word_line=dims[0][0],
        bit_line=dims[1][0],
        columns=dims[0][1],
        rows=dims[1][1],
        banks=prod(size for _, size in dims[2:]),
        activation_bits=array.input_bits[0],
        weight_bits=array.input_bits[1],
        serial_bits=array.in_memory.bit_serial_bits,
        adc_bits=array.in_memory.adc_bits if is_analog else 0,
    )


def _mapped(nest: LoopNest, macro: _Macro, unrolling: Unrolling) -> tuple[int, int]:
    """Columns and rows in use.

    A loop over columns that leaves the weights the same (OX) shifts its partner (FX) from column
    to column: the rows then hold the whole diagonal.
    """
    factors = dict(unrolling)
    across = dict(factors.get(macro.word_line, ()))
    down = factors.get(macro.bit_line, ())
    rows = prod(factor for _, factor in down)
    if rows > 1:
        shifts = _shifts(nest, across)
        rows = prod(factor + shifts.get(loop, 0) for loop, factor in down)
    return prod(across.values()), rows


def _shifts(nest: LoopNest, across: dict[str, int]) -> dict[str, int]:
    """Per loop the further rows that its partner's unrolling over columns takes."""
    same = [loop for o in nest.operands if o.letter == "W" for loop in nest.irrelevant(o)]
    shifts: dict[str, int] = {}
    for relation in nest.relations:
        (first, _), (second, _) = relation.terms
        moving, still = (first, second) if first in same else (second, first)
        if moving in same:
            shifts[still] = across.get(moving, 1) - 1
    return shifts


def _dac_pj(macro: _Macro) -> float:
    """One conversion of an input; a single bit needs none."""
    return 50e-3 * macro.serial_bits * _SQUARED_VOLTS if macro.serial_bits > 1 else 0.0


def _adc_pj(macro: _Macro) -> float:
    """One conversion of a bit line's sum: (100 R + 0.001 × 4^R) fF × V²."""
    bits = macro.adc_bits
    return (100 * bits + 0.001 * 4**bits) * 1e-3 * _SQUARED_VOLTS if bits else 0.0


def _place_value_adders(macro: _Macro) -> float:
    """Full adders that sum `n` results, each shifted by one bit against the one before."""
    count = macro.place_values
    if count == 1:
        return 0.0
    return macro.tree_bits * (count - 1) + count * (log2(count) - 0.5)


def _full_adders(inputs: int, bits: int) -> int:
    """Full adders of a tree over a power of two of inputs, each stage one bit wider."""
    depth = inputs.bit_length() - 1
    return inputs * (bits + 1) - (bits + depth + 1)


def _adder_tree_pj(macro: _Macro, active: int) -> float:
    """One sum of an adder tree of which the first inputs are in use."""
    full, half = _active_adders(2**macro.tree_depth, active, macro.weight_bits)
    return full * _ADDER_PJ + half * _HALF_ACTIVE_ADDER_PJ


def _active_adders(inputs: int, active: int, bits: int) -> tuple[int, int]:
    """Full adders with both and with one of their inputs in use."""
    if active >= inputs:
        return _full_adders(inputs, bits), 0
    side = inputs // 2
    last = bits + side.bit_length() - 1
    if active <= side:
        full, half = _active_adders(side, active, bits)
        return full, half + last
    full, half = _active_adders(side, active - side, bits)
    return full + _full_adders(side, bits) + last, half


def _ripple_ns(stages: int, carries: float) -> float:
    """The longest path through stages of ripple-carry adders, then along the last one's carries."""
    return (stages - 1) * _INPUT_TO_SUM_NS + _INPUT_TO_CARRY_NS + carries * _CARRY_TO_CARRY_NS
