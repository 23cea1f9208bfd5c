"""Stages that are alike: the same but for the names of their ops and tensors."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tilewright.network.graph import Network, Op
from tilewright.program.stages import Stage


@dataclass
class StageKinds:
    """Numbers the kinds of a network's stages, so that what is found out of one serves all."""

    network: Network
    formats: Mapping[str, str] = field(default_factory=dict)
    """By tensor, how its elements lie, where a core makes a difference between that."""
    _kinds: dict[object, int] = field(default_factory=dict)
    _by_op: dict[str, int] = field(default_factory=dict)

    def kind(self, stage: Stage) -> int:
        """The number of a stage's kind."""
        name = stage.op.name
        if name not in self._by_op:
            ops = tuple(self._without_names(op) for op in (stage.op, *stage.fused))
            self._by_op[name] = self._kinds.setdefault((stage.worker, ops), len(self._kinds))
        return self._by_op[name]

    def _without_names(self, op: Op) -> object:
        """Everything about an op that its tiles and their cycles depend on."""
        operands = []
        for operand in op.operands:
            tensor = self.network.by_name[operand.tensor]
            facts = (tensor.shape, tensor.bits, tensor.role, self.formats.get(operand.tensor))
            operands.append((operand.name, operand.index, *facts))
        shape = (op.kind, op.dims, op.coupled, op.attributes, len(op.outputs))
        return (*shape, op.accumulator_bits, tuple(operands))
