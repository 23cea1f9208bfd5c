"""What the stages before a stage mean for it: tiles to keep step with, and time for copies."""

from collections.abc import Mapping, Sequence

from tilewright.network.graph import Operand
from tilewright.program.places import Places
from tilewright.program.stages import Stage
from tilewright.program.tile import Tiling

LEAST_POINTS = 2048
"""A vector op is cut no finer than this to keep step with another engine."""

LOOK_BACK = 4
"""Constants are thought to come while one of so many stages before is at work (measured)."""

Tilings = Mapping[int, Tiling | None]
"""By stage, as far as stages have been looked at."""


def in_step(stages: Sequence[Stage], tilings: Tilings, number: int) -> dict[str, int]:
    """Tile lengths with which a vector op keeps step with the tiles of the op before it.

    Another engine then works on the next tile meanwhile.
    """
    stage = stages[number]
    found = _producer(stages, number) if stage.worker == "vector" else None
    if found is None:
        return {}
    producer, operand = found
    tiling, result = tilings.get(producer), stages[producer].results[0]
    if tiling is None or operand.index is None or result.index is None:
        return {}
    for axis, made in zip(operand.index, result.index, strict=True):
        for loop, _ in made.terms:
            cut = tiling.lengths[loop] < stages[producer].op.sizes[loop]
            if cut and len(axis.terms) == 1 and axis.terms[0][0] in stage.tileable[1]:
                dim = axis.terms[0][0]
                least = -(-LEAST_POINTS * stage.op.sizes[dim] // stage.op.points)
                return {dim: max(1, least, tiling.lengths[loop])}
    return {}


def behind(stages: Sequence[Stage]) -> list[set[int]]:
    """By stage, the stages behind it to which its tiles may matter."""
    makers = {made.tensor: n for n, stage in enumerate(stages) for made in stage.results}
    found = [{*range(n + 1, min(n + 1 + LOOK_BACK, len(stages)))} for n in range(len(stages))]
    for number, stage in enumerate(stages):
        for operand in stage.op.inputs:
            maker = makers.get(operand.tensor, number)
            if maker < number:
                found[maker].add(number)
    return found


def _producer(stages: Sequence[Stage], number: int) -> tuple[int, Operand] | None:
    """The last stage that makes an input of a stage, and that input."""
    for before in range(number - 1, -1, -1):
        for operand in stages[number].op.inputs:
            if any(operand.tensor == made.tensor for made in stages[before].results):
                return before, operand
    return None


def lead_cycles(places: Places, tilings: Tilings, number: int, room: Mapping[str, int]) -> int:
    """How long transfers have nothing to do before a stage; no more than there is room for.

    Nobody knows that without a model of the core.
    """
    home, origin = places.home("I2"), places.origin("I2")
    if home is None or origin is None:
        return 0
    lead = 0.0
    for before in range(max(0, number - LOOK_BACK), number):
        tiling = tilings.get(before)
        if tiling is not None:
            # What streams leaves no time for transfers.
            busy = tiling.cycles if tiling.streams else tiling.moving_cycles
            lead = max(0.0, lead + tiling.cycles - busy)
    route = places.routes[origin.name, places.named(home.name, 0).name]
    lead = min(lead, max(0, room[home.name]) / 2 / float(route.bytes_per_cycle))
    # Rounded down to a power of two: stages that are alike then share their choice of tiles.
    return 1 << int(lead).bit_length() - 1 if lead >= 1 else 0
