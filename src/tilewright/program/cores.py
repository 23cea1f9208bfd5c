"""Sharing an op out over cores: along one loop, so that the busiest core has the fewest steps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilewright.network.graph import Network
from tilewright.program.boxes import Ranges, around, covering, touched
from tilewright.program.homes import Homes
from tilewright.program.model import Box
from tilewright.program.stages import Stage
from tilewright.program.tile_cost import TileCosts


@dataclass(frozen=True, kw_only=True)
class Shares:
    """How stages are shared out over the cores, and what each core then reads."""

    unrolled: tuple[Mapping[str, int], ...]
    """By stage, how many steps of each loop the array takes at once."""
    parts: tuple[tuple[Ranges, ...], ...]
    """By stage, the ranges of each core."""
    boxes: Mapping[tuple[str, int], Box]
    """Per root and core all that the core's ops read of it."""


def shared_out(
    homes: Homes, costs: TileCosts, stages: Sequence[Stage], rows: Sequence[str]
) -> Shares:
    """All stages shared out; `rows` are the loops, by stage, along which cascades go."""
    cores, setup = homes.places.cores, homes.places.setup_cycles
    unrolled = [costs.unrolled(s.op) if s.worker == "array" else {} for s in stages]
    parts = [
        shares(homes.network, stage, factors, cores, setup, loop)
        for stage, factors, loop in zip(stages, unrolled, rows, strict=True)
    ]
    return Shares(
        unrolled=tuple(unrolled), parts=tuple(parts), boxes=boxes_read(homes, stages, parts)
    )


def shares(
    network: Network,
    stage: Stage,
    unrolled: Mapping[str, int],
    cores: int,
    setup_cycles: int,
    rows: str = "",
) -> tuple[Ranges, ...]:
    """The ranges of each core's part; fewer parts than cores where more would not help.

    An op that takes less than it takes to set up one more transfer stays on one core. The loop
    `rows`, along which all cores go through a cascade together, is not shared out.
    """
    sizes = stage.op.sizes
    full: Ranges = {dim: (0, size) for dim, size in stage.op.dims}
    best: tuple[Ranges, ...] = (full,)
    if cores == 1:
        return best
    weights, rest, _ = stage.tileable
    least = _steps(sizes, unrolled)
    if stage.worker == "array" and least <= setup_cycles:
        return best
    for dim in (*weights, *rest) if _is_heavy(network, stage) else (*rest, *weights):
        if dim == rows:
            continue
        chunk = _largest_share(sizes[dim], cores, unrolled.get(dim, 1))
        steps = _steps({**sizes, dim: chunk}, unrolled)
        if steps < least:
            least = steps
            best = tuple(
                {**full, dim: (start, min(start + chunk, sizes[dim]))}
                for start in range(0, sizes[dim], chunk)
            )
    return best


def _is_heavy(network: Network, stage: Stage) -> bool:
    """Whether an op has more weights than data: then cores rather hold fewer weights each."""
    names = dict.fromkeys(o.tensor for o in (*stage.inputs, *stage.results))
    tensors = [network.by_name[name] for name in names]
    constants = sum(t.size_bytes for t in tensors if t.role == "constant")
    return 2 * constants > sum(t.size_bytes for t in tensors)


def _steps(sizes: Mapping[str, int], unrolled: Mapping[str, int]) -> int:
    """Steps that an unrolled array takes through a nest."""
    steps = 1
    for dim, size in sizes.items():
        steps *= -(-size // unrolled.get(dim, 1))
    return steps


def _largest_share(size: int, cores: int, unit: int) -> int:
    """The largest share of a loop when cores take about as much each, in whole units."""
    even = -(-size // cores)
    return min(size, -(-even // unit) * unit) if even >= unit else even


def boxes_read(
    homes: Homes, stages: Sequence[Stage], parts: Sequence[tuple[Ranges, ...]]
) -> dict[tuple[str, int], Box]:
    """Per tensor with storage of its own and core, the box around all that the core's ops read.

    Elements that nobody reads go to a core that reads their neighbours.
    """
    boxes: dict[str, dict[int, Box]] = {}
    for stage, ranges_by_core in zip(stages, parts, strict=True):
        for core, ranges in enumerate(ranges_by_core):
            for operand in stage.inputs:
                shape = homes.network.by_name[operand.tensor].shape
                root, box = homes.root_box(operand.tensor, touched(operand, ranges, shape))
                if not homes.is_constant(root):
                    known = boxes.setdefault(root, {})
                    known[core] = around(known[core], box) if core in known else box
    found = {}
    for root, known in boxes.items():
        covered = covering(list(known.values()), homes.network.by_name[root].shape)
        found.update({(root, core): box for core, box in zip(known, covered, strict=True)})
    return found
