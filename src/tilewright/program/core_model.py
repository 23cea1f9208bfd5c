"""Cores whose tiles take as long as a model made for them says, instead of as their mappings do."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tilewright.machine.model import OUTPUT_OPERAND, WEIGHTS
from tilewright.mapping.ethos_u.configuration import CONFIGURATIONS
from tilewright.mapping.ethos_u.formats import (
    brick_axes,
    feature_map_formats,
    whole_brick_multiples,
)
from tilewright.mapping.ethos_u.tile_cycles import (
    EthosU,
    fewest_cycles,
    memory_timing,
    tile_cycles,
)
from tilewright.mapping.ethos_u.translate import Tile, TiledOp
from tilewright.network.graph import Network, Op
from tilewright.program.places import Places
from tilewright.program.stage_kinds import StageKinds
from tilewright.program.stages import Stage

Sums = tuple[bool, bool]
"""Whether a tile goes on from sums, and whether it leaves some unfinished."""


@dataclass
class CoreModelCosts:
    """Finds and remembers the cycles of every distinct tile."""

    network: Network
    ethos_u: EthosU
    kinds: StageKinds
    holds_weights: bool
    """Whether weights lie in a scratchpad, unless a stage lets them stream."""
    _found: dict[tuple[int, Sums], dict[tuple[int, ...], int | None]] = field(default_factory=dict)
    """By kind of stage and what is known of sums, and by the lengths of loops."""
    _ops: dict[str, tuple[TiledOp, ...]] = field(default_factory=dict)
    _fewest: dict[str, float | None] = field(default_factory=dict)

    def cycles(
        self, stage: Stage, lengths: Mapping[str, int], sums: Sums = (False, False)
    ) -> int | None:
        """Cycles of a tile, whose sums may be continued and left unfinished; None: not its work."""
        return self.asking(stage, sums)(lengths)

    def asking(
        self, stage: Stage, sums: Sums = (False, False)
    ) -> Callable[[Mapping[str, int]], int | None]:
        """The same for many tiles of a stage."""
        known = self._found.setdefault((self.kinds.kind(stage), sums), {})
        of, *fused = self._tiled_ops(stage)
        streams = stage.streams or not self.holds_weights

        def cycles(lengths: Mapping[str, int]) -> int | None:
            key = tuple(lengths.values())
            if key not in known:
                tile = Tile(
                    of=of,
                    fused=tuple(fused),
                    lengths=lengths,
                    is_continued=sums[0],
                    is_unfinished=sums[1],
                    streams=streams,
                )
                known[key] = tile_cycles(tile, self.ethos_u)
            return known[key]

        return cycles

    def _tiled_ops(self, stage: Stage) -> tuple[TiledOp, ...]:
        """The op of a stage, and those that are applied to its result."""
        name = stage.op.name
        if name not in self._ops:
            ops = (stage.op, *stage.fused)
            self._ops[name] = tuple(TiledOp(op=op, network=self.network) for op in ops)
        return self._ops[name]

    def fewest_cycles(self, op: Op) -> float | None:
        """What an op takes at least, however it is cut; None: not its work."""
        if op.name not in self._fewest:
            self._fewest[op.name] = fewest_cycles(op, self.network, self.ethos_u)
        return self._fewest[op.name]


def core_model_costs(network: Network, places: Places) -> CoreModelCosts | None:
    """The model that a machine names for its core, if it names one."""
    model = places.core.model
    near = places.home(OUTPUT_OPERAND) or places.home("I1")
    if model is None or near is None:
        return None
    origin = places.origin(WEIGHTS)
    external = [m for m in places.machine.memories if origin and m.name == origin.memory]
    formats = feature_map_formats(network)
    ethos_u = EthosU(
        configuration=CONFIGURATIONS[model.configuration],
        near=memory_timing(near),
        far=memory_timing(external[0] if external else near),
        formats=formats,
    )
    holds_weights = places.home(WEIGHTS) is not None
    return CoreModelCosts(network, ethos_u, StageKinds(network, formats), holds_weights)


def addressable(stages: Sequence[Stage], network: Network, places: Places) -> tuple[Stage, ...]:
    """The stages, which are cut only where the core can address what their tiles touch."""
    if places.core.model is None:
        return tuple(stages)
    axes = brick_axes(network)
    return tuple(
        replace(stage, multiples=whole_brick_multiples((*stage.inputs, *stage.results), axes))
        for stage in stages
    )
