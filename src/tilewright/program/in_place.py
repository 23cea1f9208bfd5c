"""Results that may take the place of an input."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilewright.machine.model import OUTPUT_OPERAND
from tilewright.program.homes import ANYWHERE, Homes
from tilewright.program.model import Box
from tilewright.program.stages import Stage


@dataclass(frozen=True, slots=True)
class Replacement:
    """A result, and the inputs of its stage whose place it may take if both are kept."""

    made: str
    inputs: tuple[str, ...]


def replacements(
    homes: Homes, stages: Sequence[Stage], boxes: Mapping[tuple[str, int], Box]
) -> dict[int, Replacement]:
    """By stage, what its result may take the place of; `boxes` has what each core reads."""
    home = homes.places.home(OUTPUT_OPERAND)
    if home is None:
        return {}
    names = Counter(lies.root for lies in homes.storage.values())
    readers = Counter(o.tensor for stage in stages for o in stage.op.inputs)
    found = {}
    for number, stage in enumerate(stages):
        result = stage.results[0]
        made = result.tensor
        if len(stage.op.outputs) != 1 or stage.worker == "move":
            continue
        if homes.root(made) != made or names[made] != 1 or (made, 0) not in boxes:
            continue
        inputs = tuple(
            operand.tensor
            for operand in stage.inputs
            if operand.index == result.index
            and names[operand.tensor] == 1
            and readers[operand.tensor] == 1
            and homes.network.by_name[operand.tensor].role == "activation"
            and homes.where(stage, operand) in (ANYWHERE, home.name)
            and _is_same_size(homes, boxes, operand.tensor, made)
        )
        if inputs:
            found[number] = Replacement(made, inputs)
    return found


def _is_same_size(
    homes: Homes, boxes: Mapping[tuple[str, int], Box], name: str, other_name: str
) -> bool:
    one, other = homes.network.by_name[name], homes.network.by_name[other_name]
    return (
        one.shape == other.shape
        and one.bits == other.bits
        and all(
            boxes.get((name, core)) == boxes.get((other_name, core))
            for core in range(homes.places.cores)
        )
    )
