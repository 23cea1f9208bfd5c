"""Cores whose tiles take as long as a model made for them says, instead of as their mappings do."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tilewright.machine.model import OUTPUT_OPERAND
from tilewright.mapping.ethos_u.configuration import CONFIGURATIONS
from tilewright.mapping.ethos_u.formats import feature_map_formats
from tilewright.mapping.ethos_u.tile_cycles import (
    EthosU,
    fewest_cycles,
    memory_timing,
    tile_cycles,
)
from tilewright.mapping.ethos_u.translate import Tile
from tilewright.network.graph import Network, Op
from tilewright.program.places import Places
from tilewright.program.stages import Stage


@dataclass
class CoreModelCosts:
    """Finds and remembers the cycles of every distinct tile."""

    network: Network
    ethos_u: EthosU
    _found: dict[object, int | None] = field(default_factory=dict)
    _alike: dict[str, int] = field(default_factory=dict)
    """By op, a number that stages have in common whose tiles take equally long."""
    _kinds: dict[object, int] = field(default_factory=dict)
    _told: dict[int, dict[object, dict[int, int | None]]] = field(default_factory=dict)

    def cycles(
        self, stage: Stage, lengths: Mapping[str, int], sums: tuple[bool, bool] = (False, False)
    ) -> int | None:
        """Cycles of a tile, whose sums may be continued and left unfinished; None: not its work."""
        key = (self._kind(stage), tuple(lengths.items()), sums)
        if key not in self._found:
            tile = Tile(
                op=stage.op,
                fused=stage.fused,
                lengths=lengths,
                is_continued=sums[0],
                is_unfinished=sums[1],
            )
            self._found[key] = tile_cycles(tile, self.network, self.ethos_u)
        return self._found[key]

    def told_of(self, stage: Stage) -> dict[object, dict[int, int | None]]:
        """Where the choice of tiles remembers what it was told of stages like this one."""
        return self._told.setdefault(self._kind(stage), {})

    def _kind(self, stage: Stage) -> int:
        name = stage.op.name
        if name not in self._alike:
            ops = tuple(self._without_names(op) for op in (stage.op, *stage.fused))
            self._alike[name] = self._kinds.setdefault(ops, len(self._kinds))
        return self._alike[name]

    def _without_names(self, op: Op) -> object:
        """Everything about an op that the model looks at."""
        operands = []
        for operand in op.operands:
            tensor = self.network.by_name[operand.tensor]
            lies = self.ethos_u.formats.get(operand.tensor)
            facts = (tensor.shape, tensor.bits, tensor.role, lies)
            operands.append((operand.name, operand.index, *facts))
        return op.kind, op.dims, op.coupled, op.attributes, len(op.outputs), tuple(operands)

    def fewest_cycles(self, op: Op) -> float | None:
        """What an op takes at least, however it is cut; None: not its work."""
        return fewest_cycles(op, self.network, self.ethos_u)


def core_model_costs(network: Network, places: Places) -> CoreModelCosts | None:
    """The model that a machine names for its core, if it names one."""
    model = places.core.model
    near = places.home(OUTPUT_OPERAND) or places.home("I1")
    if model is None or near is None:
        return None
    origin = places.origin("I2")
    external = [m for m in places.machine.memories if origin and m.name == origin.memory]
    ethos_u = EthosU(
        configuration=CONFIGURATIONS[model.configuration],
        near=memory_timing(near),
        far=memory_timing(external[0] if external else near),
        formats=feature_map_formats(network),
    )
    return CoreModelCosts(network=network, ethos_u=ethos_u)
