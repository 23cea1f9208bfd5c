"""Sharing an op out over cores: along one loop, so that the busiest core has the fewest steps."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf

from tilewright.network.graph import Network, Op, Operand, Role
from tilewright.program.boxes import Ranges, around, covering, meet, size_bytes, touched, whole
from tilewright.program.coming_once import loops_read_together
from tilewright.program.homes import Homes
from tilewright.program.model import Box
from tilewright.program.places import Places
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
    apart: tuple[tuple[tuple[int, int], ...], ...]
    """By stage, for each input and result, how many parts cores have of it, and the bytes of the
    largest."""
    uncut: tuple[frozenset[str], ...]
    """By stage, loops that tiles do not cut: they would read again what comes once."""


@dataclass(frozen=True, slots=True)
class Way:
    """How data comes to the cores from outside."""

    setup_cycles: int
    bytes_per_cycle: float
    transfers: int
    """How many can be under way at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Share:
    """How far a core goes along a loop, and what a stage takes then."""

    dim: str
    length: int
    computing_cycles: int
    setup_cycles: float
    """Of the transfers that bring what cores need, and take away what they make."""
    moving_cycles: float

    @property
    def cycles(self) -> tuple[float, float, int]:
        """What takes longest, as work and transfers of several stages go on at the same time.

        Where bytes take longest, however they are shared out, it is what takes longest beside them.
        """
        longest = max(self.computing_cycles, self.setup_cycles)
        return max(longest, self.moving_cycles), longest, self.computing_cycles


def shared_out(
    homes: Homes, costs: TileCosts, stages: Sequence[Stage], rows: Sequence[str]
) -> Shares:
    """All stages shared out; `rows` are the loops, by stage, along which cascades go."""
    way = way_of(homes.places)
    unrolled = [costs.unrolled(s.op) if s.worker == "array" else _at_once(s.op) for s in stages]
    parts = [
        shares(homes, stage, factors, way, loop)
        for stage, factors, loop in zip(stages, unrolled, rows, strict=True)
    ]
    return Shares(
        unrolled=tuple(unrolled),
        parts=tuple(parts),
        boxes=boxes_read(homes, stages, parts),
        apart=tuple([_apart(homes, stage, own) for stage, own in zip(stages, parts, strict=True)]),
        uncut=tuple([loops_read_together(homes, stage) for stage in stages]),
    )


def _apart(homes: Homes, stage: Stage, parts: Sequence[Ranges]) -> tuple[tuple[int, int], ...]:
    """For each input and result how many parts cores have of it, and the bytes of the largest."""
    found = []
    for operand in (*stage.inputs, *stage.results):
        tensor = homes.network.by_name[operand.tensor]
        boxes = {touched(operand, part, tensor.shape) for part in parts}
        found.append((len(boxes), max(size_bytes(box, tensor) for box in boxes)))
    return tuple(found)


def _at_once(op: Op) -> dict[str, int]:
    """Loops that take no steps of their own: a look-up goes where it finds something."""
    return {dim: op.sizes[dim] for dim in op.searched}


def way_of(places: Places) -> Way:
    """How weights come to a core; at once if they stream."""
    origin, home = places.origin("I2"), places.home("I2")
    if origin is not None and home is not None:
        route = places.routes.get((origin.name, places.named(home.name, 0).name))
        if route is not None:
            lanes = {engine.name: engine.count for engine in places.engines}
            return Way(route.setup_cycles, float(route.bytes_per_cycle), lanes[route.engine])
    return Way(0, inf, 1)


def shares(
    homes: Homes, stage: Stage, unrolled: Mapping[str, int], way: Way, rows: str = ""
) -> tuple[Ranges, ...]:
    """The ranges of each core's part; fewer parts than cores where more would not help.

    An op that takes less than it takes to set up one more transfer stays on one core, and every
    core that gets weights or data of its own from outside takes a transfer more. The loop `rows`,
    along which all cores go through a cascade together, is not shared out, nor is one along which
    several cores would read what comes only once.
    """
    sizes = stage.op.sizes
    full: Ranges = {dim: (0, size) for dim, size in stage.op.dims}
    whole = _steps(sizes, unrolled)
    if homes.places.cores == 1 or (stage.worker == "array" and whole <= homes.places.setup_cycles):
        return (full,)
    weights, rest, _ = stage.tileable
    is_heavy = _is_heavy(homes.network, stage)
    found = [
        share
        for dim in ((*weights, *rest) if is_heavy else (*rest, *weights))
        if dim != rows
        for share in _shares_along(dim, homes, stage, unrolled, way)
    ]
    once = _coming_once(homes, stage)
    if once:
        found = [
            share for share in found if _is_read_apart(homes, stage, once, _parts(full, share))
        ]
    # Of those that take the same, the first loop's.
    best = min(found, key=lambda share: share.cycles, default=None)
    return (full,) if best is None else _parts(full, best)


def _parts(full: Ranges, share: _Share) -> tuple[Ranges, ...]:
    """The ranges of a stage, cut along a loop."""
    dim, length, (_, size) = share.dim, share.length, full[share.dim]
    starts = range(0, size, length)
    return tuple({**full, dim: (start, min(start + length, size))} for start in starts)


def _coming_once(homes: Homes, stage: Stage) -> list[Operand]:
    """Inputs of the network that a stage reads and whose source hands out every value once."""
    origin = homes.places.origin("I1")
    if origin is None or origin.rereadable:
        return []
    roots = [homes.network.by_name[homes.root(operand.tensor)] for operand in stage.inputs]
    return [o for o, root in zip(stage.inputs, roots, strict=True) if root.role == "input"]


def _is_read_apart(
    homes: Homes, stage: Stage, operands: Sequence[Operand], parts: Sequence[Ranges]
) -> bool:
    """Whether nothing is read twice: no two cores read the same elements, or all the same ones,
    which are brought to them at once; what others read too is not told apart."""
    if len(parts) == 1:
        return True
    tensors = [operand.tensor for operand in operands]
    readers = [o.tensor for op in homes.network.ops for o in op.inputs]
    if any(homes.root(name) != name or readers.count(name) > 1 for name in tensors):
        return False
    for operand in operands:
        shape = homes.network.by_name[operand.tensor].shape
        boxes = [touched(operand, part, shape) for part in parts]
        is_brought = not homes.is_read_outside(stage, operand)
        is_shared = is_brought and all(box == boxes[0] for box in boxes)
        if not is_shared and any(meet(*both) for both in combinations(boxes, 2)):
            return False
    return True


def _shares_along(
    dim: str, homes: Homes, stage: Stage, unrolled: Mapping[str, int], way: Way
) -> Iterator[_Share]:
    """A stage shared out along a loop over all cores, and over ever fewer."""
    size, unit = stage.op.sizes[dim], unrolled.get(dim, 1)
    moved = _moved(homes.network, stage)
    own = sum(any(_walks(o, dim) for o in operands) for operands in moved)
    common = sum(1 for operands in moved if operands) - own
    tensors = [homes.network.by_name[o.tensor] for operands in moved for o in operands]
    moving_cycles = sum(tensor.size_bytes for tensor in tensors) / way.bytes_per_cycle
    multiple = stage.multiple(dim)
    even = (_largest_share(size, n, unit) for n in range(homes.places.cores, 0, -1))
    lengths = (min(size, -(-share // multiple) * multiple) for share in even)
    for length in dict.fromkeys(lengths):
        transfers = common + own * -(-size // length)
        yield _Share(
            dim=dim,
            length=length,
            computing_cycles=_steps({**stage.op.sizes, dim: length}, unrolled),
            setup_cycles=transfers * way.setup_cycles / way.transfers,
            moving_cycles=moving_cycles,
        )


def _moved(network: Network, stage: Stage) -> tuple[list[Operand], ...]:
    """Constants, inputs and outputs of a network that a stage touches; those of a kind go together.

    What is made and used inside the network is thought to be kept.
    """
    operands = (*stage.inputs, *stage.results)
    roles: tuple[Role, ...] = ("constant", "input", "output")
    return tuple([o for o in operands if network.by_name[o.tensor].role == r] for r in roles)


def _walks(operand: Operand, dim: str) -> bool:
    """Whether cores that share a loop out need different parts of an operand."""
    return any(d == dim for axis in operand.index or () for d, _ in axis.terms)


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

    Elements that nobody reads go to a core that reads their neighbours. What lies in a scratchpad
    that all cores see is all of the tensor, for each of them.
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
        shape = homes.network.by_name[root].shape
        covered = covering(list(known.values()), shape)
        if homes.is_kept_once(root):
            covered = [whole(shape)] * len(known)
        found.update({(root, core): box for core, box in zip(known, covered, strict=True)})
    return found


def whole_boxes(homes: Homes) -> dict[tuple[str, int], Box]:
    """What lies in a scratchpad from the start, or stays in one to the end, whole and by core."""
    return {
        (root, core): whole(homes.network.by_name[root].shape)
        for root in sorted(homes.given | homes.staying)
        for core in range(homes.places.cores)
    }
