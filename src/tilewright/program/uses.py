"""Operands as all tiles of a stage use them: what does not change from one tile to the next."""

from dataclasses import dataclass

from tilewright.machine.model import OUTPUT_OPERAND, WEIGHTS
from tilewright.network.graph import BIAS, SUMS_SO_FAR, Operand
from tilewright.program.boxes import Footprint
from tilewright.program.homes import Homes
from tilewright.program.stages import Stage
from tilewright.program.streams import CARRIERS
from tilewright.records import quickly_made


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """An operand of a stage, the storage it lies in, and the memory in which tiles want it."""

    tensor: str
    root: str
    memory: str | None
    """As `Homes.where` has it."""
    footprint: Footprint
    letter: str = ""
    """What the op calls it."""
    comes_whole: bool = False
    """Whether it is a small constant, which comes once for all tiles of a core."""
    is_constant: bool = False
    is_weight: bool = False
    """Whether it is what the array multiplies with."""
    is_sum: bool = False
    """Whether only the first tiles of all read it, to go on from there."""
    is_last: bool = False
    """Whether only the last tiles of a sum read it: a bias, or what a fused op applies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageUses:
    """Everything that the tiles of a stage read and write."""

    stage: Stage
    fused: tuple[str, ...]
    """Names of the ops that are applied to the result before it is written."""
    inputs: tuple[Use, ...]
    results: tuple[Use, ...]
    sums: Use
    """The result of the stage's op while its sums are unfinished."""

    streams: bool
    """Whether tiles may read or write some of it where it lies outside the scratchpads."""

    @property
    def constants(self) -> tuple[str, ...]:
        """Constants that are read."""
        return tuple([use.tensor for use in self.inputs if use.is_constant])


def stage_uses(homes: Homes, stage: Stage) -> StageUses:
    """What the tiles of a stage use."""
    home = homes.places.home(OUTPUT_OPERAND)
    inputs = tuple(_input(homes, stage, operand) for operand in stage.inputs)
    results = tuple(_use(homes, o, homes.where(stage, o)) for o in stage.results)
    return StageUses(
        stage=stage,
        fused=tuple(op.name for op in stage.fused),
        inputs=inputs,
        results=results,
        streams=not all(use.memory for use in (*inputs, *results)),
        sums=_use(homes, stage.op.outputs[0], None if home is None else home.name),
    )


def _input(homes: Homes, stage: Stage, operand: Operand) -> Use:
    return Use(
        tensor=operand.tensor,
        root=homes.root(operand.tensor),
        memory=homes.where(stage, operand),
        footprint=_footprint(homes, operand),
        letter=operand.name,
        comes_whole=homes.comes_whole(stage, operand),
        is_constant=homes.is_constant(operand.tensor),
        is_weight=CARRIERS.get(operand.name) == WEIGHTS,
        is_sum=operand.name == SUMS_SO_FAR,
        is_last=operand.name == BIAS,
    )


def _use(homes: Homes, operand: Operand, memory: str | None) -> Use:
    tensor = operand.tensor
    footprint = _footprint(homes, operand)
    return Use(tensor=tensor, root=homes.root(tensor), memory=memory, footprint=footprint)


def _footprint(homes: Homes, operand: Operand) -> Footprint:
    return Footprint(operand, homes.network.by_name[operand.tensor].shape)
