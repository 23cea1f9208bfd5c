"""A stage by itself, with everything that it touches in scratchpads."""

from dataclasses import dataclass

from tilewright.strategy.cuts import State
from tilewright.strategy.room import Usage
from tilewright.strategy.scene import Scene
from tilewright.strategy.units import Cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Alone:
    """A stage by itself, everything that it touches kept."""

    touched: State
    replaced: State
    """The tensor whose place its result takes."""
    constants: Usage
    cost: Cost


def alone_of(scene: Scene, number: int) -> Alone:
    """A stage by itself: constants come as it goes along."""
    stage = scene.prepared.stages[number]
    lives, storage = scene.lives, scene.prepared.storage
    replaced = scene.replaced(number)
    constants = sum(constant.size_bytes for constant in scene.constants(number, ""))
    going = sum(
        scene.prepared.network.by_name[o.tensor].size_bytes
        for o in stage.results
        if storage[o.tensor].root not in lives or lives[storage[o.tensor].root].is_result
    )
    prices = ((scene.constant, constants), (scene.going, going))
    moving = sum(size * price.cycles_per_byte for price, size in prices)
    return Alone(
        touched=scene.mask(storage[o.tensor].root for o in (*stage.inputs, *stage.results)),
        replaced=0 if replaced is None else scene.mask([replaced]),
        constants=scene.room.uses(scene.least_constants(number)),
        cost=Cost(
            moved_bytes=constants + going,
            energy_pj=sum(size * price.pj_per_byte for price, size in prices),
            cycles=max(scene.compute_cycles(number, "", 0, 1), moving),
        ),
    )
