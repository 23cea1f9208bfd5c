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
    _by_op: dict[tuple[str, bool], int] = field(default_factory=dict)
    """By op, and whether its constants stream."""

    def kind(self, stage: Stage) -> int:
        """The number of a stage's kind."""
        key = stage.op.name, stage.streams
        if key not in self._by_op:
            ops = tuple(self._without_names(op) for op in (stage.op, *stage.fused))
            kind = stage.worker, stage.streams, ops
            self._by_op[key] = self._kinds.setdefault(kind, len(self._kinds))
        return self._by_op[key]

    def _without_names(self, op: Op) -> object:
        """Everything about an op that its tiles and their cycles depend on."""
        operands = []
        for operand in op.operands:
            tensor = self.network.by_name[operand.tensor]
            facts = (tensor.shape, tensor.bits, tensor.role, self.formats.get(operand.tensor))
            operands.append((operand.name, operand.index, *facts))
        shape = (op.kind, op.dims, op.coupled, op.attributes, len(op.outputs))
        return (*shape, op.accumulator_bits, tuple(operands))
