"""Bytes that every plan moves between the chip and what lies outside, how fast and at what price.

A constant, and what is read of an input, comes at least once from where it lies; every byte of a
result goes at least once to where results are wanted. Outputs that share storage go together. Of
what elements are looked up in comes no more than is found.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, inf, prod

from tilewright.machine.model import INPUT_OPERANDS, OUTPUT_OPERAND
from tilewright.network.graph import Network, Operand, Tensor
from tilewright.program.boxes import shifted, whole
from tilewright.program.homes import ANYWHERE, Homes
from tilewright.program.model import Box, Space
from tilewright.program.needed import Needed
from tilewright.program.places import Places
from tilewright.program.stages import Stage, Storage
from tilewright.units import packed_bytes

Way = tuple[tuple[str, ...], Fraction]
"""What bytes hold on their way, and how many of them come in a cycle over each lane."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """Bytes that have to come from a space outside the scratchpads, or to go there."""

    space: str
    leaves: bool
    straight: bool
    """Whether a task may read or write them there itself, without a transfer."""
    size_bytes: int


def crossings(
    stages: Sequence[Stage], homes: Homes, needed: Needed
) -> tuple[tuple[Crossing, ...], tuple[int, ...]]:
    """What must cross, and the bytes of constants that each stage is the first to read."""
    network = homes.network
    sizes: dict[tuple[str, bool, bool], int] = {}
    first = [0] * len(stages)
    coming: dict[str, tuple[int, int, bool]] = {}
    for number, stage in enumerate(stages):
        for operand in stage.inputs:
            root = homes.root(operand.tensor)
            if network.by_name[root].role in ("input", "constant"):
                size = _read_bytes(network, stage, operand, needed)
                since, most, straight = coming.get(root, (number, 0, False))
                straight = straight or _may_go_past(stage, operand, homes)
                coming[root] = since, max(most, size), straight
    for root, (since, size, straight) in coming.items():
        if root in homes.given:
            continue
        if network.by_name[root].role == "constant":
            first[since] += size
        _add(sizes, homes.outside(root), (False, straight), size)
    writers = [(stage, operand) for stage in stages for operand in stage.results]
    past = {homes.root(o.tensor) for stage, o in writers if homes.where(stage, o) is None}
    for root, size in _leaving_bytes(network, homes.storage).items():
        if root in homes.staying:
            continue
        _add(sizes, homes.outside(root), (True, root in past), size)
    return tuple(
        Crossing(space=space, leaves=leaves, straight=straight, size_bytes=size)
        for (space, leaves, straight), size in sizes.items()
    ), tuple(first)


def _add(
    sizes: dict[tuple[str, bool, bool], int], space: Space | None, how: tuple[bool, bool], size: int
) -> None:
    key = ("" if space is None else space.name, *how)
    sizes[key] = sizes.get(key, 0) + size


def _read_bytes(network: Network, stage: Stage, operand: Operand, needed: Needed) -> int:
    """Bytes of an operand that a stage reads; of a table, no more than it finds."""
    bits = network.by_name[operand.tensor].bits
    ops = (stage.op, *stage.fused)
    # A view that reads all of a tensor moves nothing: only what stages read counts.
    read = max(needed.reads.get((op.name, operand.tensor), 0) for op in ops)
    if stage.op.kind == "gather" and stage.op.searches(operand):
        read = min(read, needed.points[stage.op.name])
    return packed_bytes(read, bits)


def _may_go_past(stage: Stage, operand: Operand, homes: Homes) -> bool:
    """Whether a stage may read an operand where it lies outside."""
    wanted = [homes.where(stage, operand)]
    if homes.may_stream(stage):
        wanted.append(homes.where(stage.streaming, operand))
    nowhere = homes.places.home(INPUT_OPERANDS[0]) is None
    return any(memory is None or (memory == ANYWHERE and nowhere) for memory in wanted)


def _leaving_bytes(network: Network, storage: Mapping[str, Storage]) -> dict[str, int]:
    """By storage the bytes of results in it; of those that overlap, the largest counts."""
    found: dict[str, list[Box]] = {}
    for tensor in sorted(network.outputs, key=lambda t: -t.elements):
        lies = storage[tensor.name]
        box = _box(tensor, lies, network)
        others = found.setdefault(lies.root, [])
        if not any(_overlap(box, other) for other in others):
            others.append(box)
    return {
        root: packed_bytes(
            sum(prod(end - begin for begin, end in box) for box in boxes),
            network.by_name[root].bits,
        )
        for root, boxes in found.items()
    }


def _box(tensor: Tensor, lies: Storage, network: Network) -> Box:
    if lies.origin is None:
        return whole(network.by_name[lies.root].shape)
    return shifted(whole(tensor.shape), lies.origin)


def _overlap(some: Box, other: Box) -> bool:
    return all(a < d and c < b for (a, b), (c, d) in zip(some, other, strict=True))


def least_cycles(moved: Sequence[Crossing], places: Places) -> int:
    """Cycles that no plan can do without to move what must cross, however it overlaps."""
    groups = [moved, *([c for c in moved if c.space == s] for s in {c.space: 0 for c in moved})]
    groups += [[crossing] for crossing in moved]
    most = 0
    for group in groups:
        rate = rate_of(group, places)
        most = max(most, ceil(sum(crossing.size_bytes for crossing in group) / rate))
    return most


def rate_of(moved: Sequence[Crossing], places: Places) -> float:
    """Bytes a cycle that can cross at once; without end where nothing says how some of them do."""
    ways = [tuple(_ways(crossing, places)) for crossing in moved]
    if not all(ways):
        return inf
    return _rate([way for ways_of_one in ways for way in ways_of_one], places) or inf


def _ways(crossing: Crossing, places: Places) -> Iterator[Way]:
    """The routes that bytes may take, and the port through which a task reads or writes them."""
    for route in places.routes.values():
        if crossing.space == (route.target if crossing.leaves else route.source):
            yield (route.engine, *route.ports), route.bytes_per_cycle
    if crossing.straight and crossing.space:
        # All lanes together are as wide as all ports that may be one of them.
        held = places.held(crossing.space, reads=not crossing.leaves)
        unfit = "read" if crossing.leaves else "write"
        ports = [p for p in places.levels[crossing.space].ports if p.kind != unfit]
        yield held[:1], Fraction(sum(port.bits_per_cycle for port in ports), 8 * len(held))


def _rate(ways: Iterable[Way], places: Places) -> float:
    """Bytes a cycle over all of some ways at once: as all that they hold let through, or their
    engines, or their ports."""
    lanes = {engine.name: engine.count for engine in places.engines}
    alike: dict[tuple[str, ...], Fraction] = {}
    engines: dict[str, Fraction] = {}
    ports: dict[str, Fraction] = {}
    for held, rate in ways:
        alike[held] = max(alike.get(held, Fraction(0)), min(lanes[name] for name in held) * rate)
        for found, name in ((engines, held[0]), (ports, held[-1])):
            found[name] = max(found.get(name, Fraction(0)), lanes[name] * rate)
    return float(min(sum(found.values()) for found in (alike, engines, ports)))


def least_pj(moved: Sequence[Crossing], places: Places) -> float:
    """Energy that it takes to move what must cross, each byte the cheapest way."""
    return sum(crossing.size_bytes * _price(crossing, places) for crossing in moved)


def _price(crossing: Crossing, places: Places) -> float:
    prices = [
        route.read_pj_per_byte + route.write_pj_per_byte
        for route in places.routes.values()
        if crossing.space == (route.target if crossing.leaves else route.source)
    ]
    if crossing.straight:
        # What a mapping writes straight to the outside is counted in whole accesses, rounded down.
        memory = places.levels.get(crossing.space)
        ports = [] if memory is None or crossing.leaves else memory.ports
        prices += [8 * memory.read_pj / port.bits_per_cycle for port in ports if memory]
        prices += [] if ports else [0.0]
    return min(prices, default=0.0)


def carriers_have_homes(places: Places) -> bool:
    """Whether every operand of the array lies in a scratchpad while it is used."""
    return all(places.home(carrier) is not None for carrier in (*INPUT_OPERANDS, OUTPUT_OPERAND))
