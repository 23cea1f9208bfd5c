"""What would make a network fit: how it is run, bit widths, cores, streamed weights, memory."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import Final, Literal

from tilewright.network.graph import Network, Operand
from tilewright.network.load import with_bits
from tilewright.program.stages import Stage
from tilewright.strategy.ladder.cells import Work, work_of
from tilewright.strategy.ladder.fit import Fit, Rooms, Verdict, verdict
from tilewright.strategy.ladder.liveness import alive_bytes, peak_of
from tilewright.strategy.ladder.manners import in_place, line_buffered
from tilewright.strategy.ladder.rungs import RUNGS, computed_share, granularity_of, ladder
from tilewright.strategy.ladder.steps import run_of
from tilewright.units import packed_bytes

RemedyKind = Literal[
    "rung", "stripes", "weight_bits", "bits", "cores", "streamed_weights", "memory"
]
NARROWER: Final = (8, 4, 2, 1)
MOST_CORES: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """A change, what the network needs then, and whether that fits."""

    kind: RemedyKind
    what: str
    total_bytes: int
    verdict: Verdict
    macs_factor: float = 1.0


def remedies(found: Fit) -> tuple[Remedy, ...]:
    """What would help, what fits first, then what needs least beyond what there is."""
    if found.rooms is None:
        return ()
    kinds: dict[RemedyKind, list[Remedy]] = {}
    for remedy in _candidates(found, found.rooms):
        kinds.setdefault(remedy.kind, []).append(remedy)
    listed = [remedy for group in kinds.values() for remedy in group]
    place = {id(remedy): number for number, remedy in enumerate(listed)}

    def rank(remedy: Remedy) -> tuple[int, int, int]:
        told = remedy.verdict
        level = 0 if told.fits else 1 if told.fits_together else 2
        return level, 0 if told.fits else told.short_bytes, place[id(remedy)]

    return tuple(sorted(listed, key=rank))


def _candidates(found: Fit, rooms: Rooms) -> Iterator[Remedy]:
    work = work_of(found.network, machine=found.machine)
    for rung in found.ladder.rungs[1:-1]:
        told = found.verdicts[rung.name]
        if told.fits:
            yield Remedy(
                kind="rung",
                what=f"run it {rung.name}",
                total_bytes=rung.total_bytes,
                verdict=told,
                macs_factor=rung.macs_factor,
            )
            break
    yield from _stripes(rooms, work)
    yield from _narrower(found, rooms)
    yield from _more_cores(found, rooms, work)
    yield _streamed(rooms, work)
    yield from _larger_memory(found, rooms)


def _stripes(rooms: Rooms, work: Work) -> Iterator[Remedy]:
    """Whole rows at a time, where the ladder looks at pixels."""
    if granularity_of(work) == "row":
        return
    manner = line_buffered(work, "row", is_cropped=True)
    size = peak_of(run_of(work, manner)).size_bytes
    yield Remedy(
        kind="stripes",
        what="cascade everything in stripes of one row, dead rows left out",
        total_bytes=work.constant_bytes + size,
        verdict=verdict(rooms, work.constant_bytes, size),
        macs_factor=computed_share(work, manner),
    )


def _narrower(found: Fit, rooms: Rooms) -> Iterator[Remedy]:
    """Fewer bits: the widest of weights alone and of everything that fits, and the first step."""
    narrowed = {t.name for t in with_weight_bits(found.network, 1).tensors if t.bits == 1}
    widest = max((t.bits for t in found.network.tensors if t.name in narrowed), default=0)
    for kind in ("weight_bits", "bits"):
        has_first = False
        for bits in NARROWER:
            if bits >= widest:
                continue
            remedy = _with_fewer_bits(found, rooms, bits, weights_only=kind == "weight_bits")
            if not has_first or remedy.verdict.fits:
                yield remedy
            if remedy.verdict.fits:
                break
            has_first = True


def _with_fewer_bits(found: Fit, rooms: Rooms, bits: int, *, weights_only: bool) -> Remedy:
    if weights_only:
        changed = with_weight_bits(found.network, bits)
        weights = work_of(changed).constant_bytes
        rung = found.smallest
        size, name = rung.activation_bytes, rung.name
        plain = found.line_buffered.activation_bytes
        what = f"weights of {bits} bit, {name} ({weights + plain:,} B line_buffered)"
        if name == "line_buffered":
            what = f"weights of {bits} bit, {name}"
    else:
        changed = with_bits(found.network, bits)
        other = ladder(changed, machine=found.machine)
        rung = replace(found, ladder=other).smallest
        weights, size = other.weight_bytes, rung.activation_bytes
        what = f"weights and activations of {bits} bit, {rung.name}"
    return Remedy(
        kind="weight_bits" if weights_only else "bits",
        what=what,
        total_bytes=weights + size,
        verdict=verdict(rooms, weights, size),
        macs_factor=rung.macs_factor,
    )


def with_weight_bits(network: Network, bits: int) -> Network:
    """The network with weights of at most `bits`; biases and activations stay."""
    narrowed = {t.name: t.bits for t in with_bits(network, bits).tensors}
    tensors = tuple(
        replace(t, bits=bits, dtype="")
        if t.role == "constant" and narrowed[t.name] == bits < t.bits
        else t
        for t in network.tensors
    )
    return replace(network, tensors=tensors)


def _more_cores(found: Fit, rooms: Rooms, work: Work) -> Iterator[Remedy]:
    """Cores of this size that share the filters of every op; each has all line buffers."""
    rung = found.smallest

    def told(cores: int) -> Verdict:
        return verdict(rooms, share_bytes(work, cores), rung.activation_bytes)

    if told(1).fits or not told(MOST_CORES).fits:
        return
    too_few, enough = 1, MOST_CORES
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        too_few, enough = (too_few, middle) if told(middle).fits else (middle, enough)
    need = share_bytes(work, enough) + rung.activation_bytes
    yield Remedy(
        kind="cores",
        what=f"{enough} such cores, each with its filters of every op: {need:,} B a core",
        total_bytes=enough * need,
        verdict=told(enough),
        macs_factor=rung.macs_factor,
    )


def share_bytes(work: Work, cores: int) -> int:
    """Bytes of constants of the core that has most, if cores share the result's channels."""
    total, seen = 0, set()
    for stage in work.stages:
        for operand in stage.inputs:
            tensor = work.network.by_name[operand.tensor]
            if tensor.role == "constant" and tensor.name not in seen:
                seen.add(tensor.name)
                steps = _channels(stage, operand)
                part = -(-steps // cores)
                total += packed_bytes(tensor.elements // steps * part, tensor.bits)
    return total


def _channels(stage: Stage, operand: Operand) -> int:
    """Steps of a constant along the result's channels; 1 if it has no such axis."""
    shape = [d for axis in stage.op.outputs[0].index or () for d, _ in axis.terms]
    own = [d for axis in operand.index or () for d, _ in axis.terms]
    dims = [d for d in dict.fromkeys(own) if d in shape and d in ("K", "G")]
    return max(1, prod(stage.op.sizes[d] for d in dims))


def _streamed(rooms: Rooms, work: Work) -> Remedy:
    """Each op's weights come from outside filter by filter, once, while it runs in place."""
    run = run_of(work, in_place(work, granularity_of(work)))
    alive = alive_bytes(run)
    filters = [_filter_bytes(work, stage) for stage in work.stages]
    sizes = [
        (alive[n] + (filters[step.stage] if step.stage >= 0 else 0), n)
        for n, step in enumerate(run.steps)
    ]
    total, at = max(sizes, key=lambda pair: (pair[0], -pair[1]), default=(0, 0))
    return Remedy(
        kind="streamed_weights",
        what="weights streamed from outside filter by filter, op by op in place",
        total_bytes=total,
        verdict=verdict(rooms, total - alive[at], alive[at]),
    )


def _filter_bytes(work: Work, stage: Stage) -> int:
    total = 0
    for operand in stage.inputs:
        tensor = work.network.by_name[operand.tensor]
        if tensor.role == "constant":
            total += packed_bytes(tensor.elements // _channels(stage, operand), tensor.bits)
    return total


def _larger_memory(found: Fit, rooms: Rooms) -> Iterator[Remedy]:
    if (found.first is None or found.first.name not in RUNGS) and rooms.rooms:
        rung = found.smallest
        yield Remedy(
            kind="memory",
            what=f"one memory of {rung.total_bytes:,} B for all operands, {rung.name}",
            total_bytes=rung.total_bytes,
            verdict=Verdict(fits=True, fits_together=True),
            macs_factor=rung.macs_factor,
        )
