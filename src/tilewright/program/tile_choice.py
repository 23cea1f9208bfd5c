"""How a stage is cut, with constants that are brought or stream; what is known is looked up."""

from dataclasses import dataclass, field, replace
from typing import Final

from tilewright.program.mapped_tiles import as_mapped
from tilewright.program.stages import Stage
from tilewright.program.tile import Goal, Tiling, Work, choose
from tilewright.program.tile_cost import TileCosts
from tilewright.program.work import NEARLY

FAR_BETTER: Final = 1.25
"""Constants stream if that is better by this factor: what is brought may come while other stages
are at work, which an estimate of one stage hardly knows (measured)."""


@dataclass(frozen=True)
class TileChoice:
    """Chooses tiles for a goal, and remembers them."""

    costs: TileCosts
    goal: Goal
    _known: dict[object, tuple[Tiling | None]] = field(default_factory=dict)

    def of(self, stage: Stage, work: Work) -> Tiling | None:
        """How a stage is cut; None if it does not fit."""
        key = work.key
        known = self._known.get(key)
        if known is None:
            # Looked up only once more: the key takes long to hash.
            known = self._known[key] = (self._chosen(stage, work),)
        return known[0]

    def _chosen(self, stage: Stage, work: Work) -> Tiling | None:
        found, quick = choose(work, self.goal), self.costs.cycles_of(stage, quickly=True)
        exact = self.costs.cycles_of(stage, quickly=False)
        if found is not None and quick is not None and exact is not None:
            found = as_mapped(work, found, quick, exact) if self.goal == "latency" else found
        return replace(found, streams=True) if found is not None and stage.streams else found


def better_of(brought: Tiling | None, streamed: Tiling | None, *, in_turns: bool) -> Tiling | None:
    """The better way to cut a stage: with constants that are brought, or that stream.

    If the stage has several turns, they would come again in each of them.
    """
    if brought is None or streamed is None:
        return brought or streamed
    better = NEARLY if in_turns else FAR_BETTER
    return streamed if streamed.value * better < brought.value else brought
