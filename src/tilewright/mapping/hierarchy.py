"""A core's memories as a mapping sees them: per operand a chain of levels, each with its ports."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from tilewright.machine.model import (
    OUTPUT_OPERAND,
    SCRATCHPAD_BITS,
    Array,
    Core,
    Direction,
    Machine,
    Memory,
    Port,
    Sharing,
)

DIRECTIONS: Final[tuple[Direction, ...]] = ("tl", "fl", "th", "fh")
"""Read to the lower, written by the lower, read to the higher, written by the higher level."""


@dataclass(frozen=True)
class Hierarchy:
    """The levels that serve the operands of a nest, bottom-up, up to the top of each operand.

    `levels[i]` is one memory and the letters of the operands it holds, in the memory's order.
    """

    array: Array
    levels: tuple[tuple[Memory, tuple[str, ...]], ...]
    links: tuple[tuple[str, str], ...]
    """Letters of the nest with the machine operands (I1, I2, O) that carry them."""
    unions: tuple[str, ...] = ()
    """Letters of which units get a common element together, whatever the memories say."""

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Worked out once: what depends on nothing but the memories is looked up by them."""
        return hash((self.array, self.levels, self.links, self.unions))

    @cached_property
    def chains(self) -> Mapping[str, tuple[int, ...]]:
        """Per letter, the indices of its levels, bottom-up."""
        letters = [letter for letter, _ in self.links]
        return {
            letter: tuple(i for i, (_, held) in enumerate(self.levels) if letter in held)
            for letter in letters
        }

    @cached_property
    def serving(self) -> Mapping[str, Mapping[str, int]]:
        """Per letter and array dim, the lowest level whose memory serves units along the dim.

        The number of its levels where none does.
        """
        found: dict[str, dict[str, int]] = {}
        for letter, chain in self.chains.items():
            found[letter] = {dim: len(chain) for dim, _ in self.array.dims}
            for level, index in reversed(list(enumerate(chain))):
                served = self.levels[index][0].served_dims
                found[letter].update((dim, level) for dim in served)
        return found

    @cached_property
    def sharing(self) -> Mapping[str, tuple[Sharing | None, ...]]:
        """Per letter and level, how units share the ways to all that is below; None: not at all.

        What a memory says holds for the way to the units that it serves, and for the way down to
        its own copies.
        """
        found: dict[str, tuple[Sharing | None, ...]] = {}
        for letter, carrier in self.links:
            said = Sharing(operand=carrier, is_union=True) if letter in self.unions else None
            ways = []
            for index in self.chains[letter]:
                here = () if letter in self.unions else self.levels[index][0].sharing
                said = next((s for s in here if s.operand == carrier), said)
                ways.append(said)
            found[letter] = tuple(ways)
        return found

    def memory(self, letter: str, level: int) -> Memory:
        """The memory at a level of an operand, 0 being next to the array."""
        return self.levels[self.chains[letter][level]][0]

    def port(self, letter: str, level: int, direction: Direction) -> Port | None:
        """The port that an operand uses at a level in a direction."""
        return self.memory(letter, level).port(dict(self.links)[letter], direction)


def partial_sum_bits(machine: Machine, core: Core, wanted: int) -> int:
    """How wide a core keeps partial sums of which `wanted` bits would be exact.

    The array's `accumulator` says; where a file does not, a register that takes the array's results
    does: it holds what its port takes in one cycle.
    """
    if core.array.accumulator_bits is not None:
        return min(wanted, core.array.accumulator_bits)
    chain = machine.chain(core, OUTPUT_OPERAND)
    port = chain[0].port(OUTPUT_OPERAND, "fl") if chain else None
    # A scratchpad is none, nor is one of which a plan takes so little.
    if port is None or chain[0].role != "local" or chain[0].size_bits >= SCRATCHPAD_BITS:
        return wanted
    return min(wanted, port.bits_per_cycle, chain[0].size_bits)


def hierarchy_of(
    machine: Machine,
    core: Core,
    links: Mapping[str, str],
    tops: Mapping[str, str] | None = None,
    passed: Mapping[str, str] | None = None,
    *,
    as_zigzag: bool = False,
) -> Hierarchy:
    """The levels of a core for operands linked as `links`; `tops` names an operand's top memory.

    An operand without an entry in `tops` is streamed from the topmost memory that holds it, past
    the memory that `passed` names. Letters of a level stand in the order of `tops`, then in the
    memory's order. With `as_zigzag`, units share windows that overlap whatever
    the machine says.

    Raises:
        ValueError: an operand has no memory at all, or not the one that should be its top.
    """
    reach: dict[str, int] = {}
    memories = machine.levels(core)
    for letter, carrier in links.items():
        held = [i for i, memory in enumerate(memories) if carrier in memory.operands]
        if not held:
            raise ValueError(f"no memory holds {carrier}, which carries {letter}")
        top = (tops or {}).get(letter)
        named = [i for i in held if memories[i].name == top]
        if top is not None and not named:
            raise ValueError(f"{top} does not hold {carrier}, which carries {letter}")
        reach[letter] = named[0] if named else held[-1]
    levels = []
    for i, memory in enumerate(memories):
        first = [links[letter] for letter in tops or () if letter in links]
        letters = [
            letter
            for carrier in dict.fromkeys([*first, *memory.operands])
            for letter in links
            if links[letter] == carrier in memory.operands and i <= reach[letter]
            if memory.name != (passed or {}).get(letter)
        ]
        if letters:
            levels.append((memory, tuple(letters)))
    unions = tuple(x for x, carrier in links.items() if as_zigzag or carrier in machine.unions)
    return Hierarchy(core.array, tuple(levels), tuple(links.items()), unions)
