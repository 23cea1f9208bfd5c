"""Small nests, memories and loop orders for tests of the mapping model."""

from collections.abc import Sequence

from hypothesis import strategies as st

from tilewright.machine.model import Array, Core, Direction, Machine, Memory, Port
from tilewright.mapping.attach import attach
from tilewright.mapping.evaluate import Loops, Setup
from tilewright.mapping.hierarchy import hierarchy_of
from tilewright.mapping.nest import LoopNest, NestOperand, Relation

CARRIERS = {"O": "O", "W": "I2", "I": "I1"}
ALL: tuple[Direction, ...] = ("fh", "tl", "fl", "th")


def conv_nest(
    sizes: dict[str, int], *, stride: int = 1, bits: tuple[int, int] = (16, 8)
) -> LoopNest:
    """A convolution along one axis; loops B, K, C, OX, FX."""
    partial, final = bits
    width = (sizes["OX"] - 1) * stride + sizes["FX"]
    return LoopNest(
        dims=tuple((d, sizes[d]) for d in ("B", "K", "C", "OX", "FX")),
        operands=(
            NestOperand("O", ("B", "K", "OX"), partial),
            NestOperand("W", ("K", "C", "FX"), 8),
            NestOperand("I", ("B", "C", "IX"), 8),
        ),
        relations=(Relation("IX", (("OX", stride), ("FX", 1)), width),),
        final_bits=final,
    )


def product_nest(rows: int, inner: int, columns: int) -> LoopNest:
    """A matrix product; loops D, K, C."""
    return LoopNest(
        dims=(("D", rows), ("K", columns), ("C", inner)),
        operands=(
            NestOperand("O", ("D", "K"), 16),
            NestOperand("I", ("D", "C"), 8),
            NestOperand("W", ("C", "K"), 8),
        ),
        relations=(),
        final_bits=8,
    )


def memory(
    name: str, operands: Sequence[str], *, bits: int = 1 << 30, width: int = 64, pj: float = 1.0
) -> Memory:
    """A memory over all of a one-dimensional array, with a port of its own for every use."""
    ports = tuple(
        Port(
            name=f"{operand}_{direction}",
            kind="read" if direction in ("tl", "th") else "write",
            bits_per_cycle=width,
            granularity_bits=8,
            uses=((operand, direction),),
        )
        for operand in operands
        for direction in ALL
    )
    return Memory(
        name=name,
        size_bits=bits,
        operands=tuple(operands),
        ports=ports,
        served_dims=("D1",),
        read_pj=pj,
        write_pj=pj * 1.5,
        role="scratchpad",
    )


def machine(*memories: Memory, units: int = 1) -> Machine:
    """A machine with one core and one array dim."""
    array = Array(dims=(("D1", units),), mac_pj=0.5)
    return Machine(name="test", cores=(Core(name="core", array=array, memories=memories),))


def three_levels(*, width: int = 64, bits: int = 1 << 30) -> Machine:
    """Registers per operand, one shared memory, one outer memory."""
    return machine(
        *(
            memory(f"reg_{operand}", [operand], width=width, bits=bits, pj=0.1)
            for operand in ("I1", "I2", "O")
        ),
        memory("sram", ["I1", "I2", "O"], width=width, bits=bits),
        memory("dram", ["I1", "I2", "O"], width=width, pj=10.0),
    )


def setup_of(nest: LoopNest, where: Machine, unroll: Sequence[tuple[str, int]] = ()) -> Setup:
    """The nest on the machine's core with the given unrolling of D1."""
    links = {operand.letter: CARRIERS[operand.letter] for operand in nest.operands}
    hierarchy = hierarchy_of(where, where.cores[0], links)
    return Setup(nest, hierarchy, attach(nest, hierarchy, (("D1", tuple(unroll)),)))


@st.composite
def nests(draw: st.DrawFn) -> LoopNest:
    """Tiny convolutions and products."""
    small = st.integers(1, 3)
    if draw(st.booleans()):
        return product_nest(draw(small), draw(small), draw(small))
    sizes = {d: draw(small) for d in ("B", "K", "C", "OX", "FX")}
    return conv_nest(sizes, stride=draw(st.integers(1, 2)))


@st.composite
def loops_for(draw: st.DrawFn, setup: Setup) -> Loops:
    """A random order of the temporal loops with random, ascending level ends."""
    order = tuple(draw(st.permutations(list(setup.spatial.temporal)))) or (
        (setup.nest.dims[0][0], 1),
    )
    ends = []
    for operand in setup.nest.operands:
        levels = len(setup.hierarchy.chains[operand.letter])
        cuts = sorted(draw(st.integers(0, len(order))) for _ in range(levels - 1))
        ends.append((operand.letter, (*cuts, len(order))))
    return Loops(order, tuple(ends))
