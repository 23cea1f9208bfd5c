"""The capacity ladder of a network: what it needs, from layer by layer to the weights alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from tilewright.machine.model import Machine
from tilewright.network.counts import macs
from tilewright.network.graph import Network, Op
from tilewright.strategy.ladder.cells import Granularity, Work, grid_of, work_of
from tilewright.strategy.ladder.liveness import Alive, Peak, peak_of
from tilewright.strategy.ladder.manners import (
    NO_LOOPS,
    fused_pools,
    in_place,
    layer_by_layer,
    line_buffered,
)
from tilewright.strategy.ladder.recompute import Recompute, macs_factor, n_steps, recomputed
from tilewright.strategy.ladder.recompute_size import recompute_peak
from tilewright.strategy.ladder.steps import Manner, Run, run_of

ResidentRung = Literal[
    "layer_by_layer",
    "in_place",
    "fused_pools",
    "line_buffered",
    "line_buffered_cropped",
    "recompute",
    "weights",
]
RungName = ResidentRung | Literal["cascades"]
"""`cascades`: the plan in the least memory of a machine; on all others weights are resident."""
RUNGS: Final[tuple[ResidentRung, ...]] = get_args(ResidentRung)

MOST_PIXELS: Final = 50_000
"""Networks with more pixels, over all tensors, are looked at row by row."""
FEW_STEPS: Final = 5_000
"""Longer runs of recomputing are not gone through to know what they need."""
MOST_STEPS: Final = 150_000
"""Longer runs are not made into plans."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One way to run a network, and what it needs with all constants resident."""

    name: RungName
    activation_bytes: int
    total_bytes: int
    macs_factor: float
    """Multiplications, as a multiple of the network's."""
    granularity: Granularity | None
    """What is computed at a time where an op is cut."""
    alive: tuple[Alive, ...]
    """Activations at the peak, the largest first."""


@dataclass(frozen=True, kw_only=True)
class Ladder:
    """Rungs, none of which needs more than the one before it."""

    network: Network
    weight_bytes: int
    """All constants: weights, biases, tables."""
    rungs: tuple[Rung, ...]

    def rung(self, name: RungName) -> Rung:
        """The rung of that name."""
        return next(rung for rung in self.rungs if rung.name == name)


def ladder(
    network: Network,
    *,
    order: Sequence[Op] | None = None,
    machine: Machine | None = None,
    granularity: Granularity | None = None,
) -> Ladder:
    """The ladder of a network, its ops in the given order; pixels are rows where they are many.

    What needs more than a simpler way to run the network is left out.

    With a machine, its array says how wide partial sums are that wait.
    """
    work = work_of(network, order, machine)
    chosen = granularity or granularity_of(work)
    return Ladder(
        network=network,
        weight_bytes=work.constant_bytes,
        rungs=descending([_rung(work, name, chosen) for name in RUNGS]),
    )


def rung_alone(
    network: Network,
    name: ResidentRung,
    machine: Machine | None = None,
    granularity: Granularity | None = None,
) -> Rung:
    """One rung, whatever the others need."""
    work = work_of(network, None, machine)
    return _rung(work, name, granularity or granularity_of(work))


def descending(rungs: Sequence[Rung]) -> tuple[Rung, ...]:
    """Rungs without those that need more than one before them."""
    kept: list[Rung] = []
    for rung in rungs:
        if not kept or rung.total_bytes <= kept[-1].total_bytes:
            kept.append(rung)
    return tuple(kept)


def with_rung(rungs: Sequence[Rung], found: Rung) -> tuple[Rung, ...]:
    """A ladder with one more rung where its bytes belong; the same ladder where it needs more than
    what is known to be enough with all weights resident."""
    enough = min(rung.total_bytes for rung in rungs if rung.name != "weights")
    if found.total_bytes > enough:
        return tuple(rungs)
    before = [rung for rung in rungs if rung.total_bytes >= found.total_bytes]
    return (*before, found, *(rung for rung in rungs if rung not in before))


def granularity_of(work: Work) -> Granularity:
    """Pixels for small networks, rows for others."""
    grids = [grid_of(held, "pixel") for held in work.held.values()]
    return "pixel" if sum(grid.rows * grid.columns for grid in grids) <= MOST_PIXELS else "row"


def manner_of(work: Work, name: RungName, granularity: Granularity) -> Manner:
    """How a rung other than the last two runs."""
    match name:
        case "layer_by_layer":
            return layer_by_layer(work)
        case "in_place":
            return in_place(work, granularity)
        case "fused_pools":
            return fused_pools(work, granularity)
        case _:
            is_cropped = name == "line_buffered_cropped"
            return line_buffered(work, granularity, is_cropped=is_cropped)


def rung_run(work: Work, name: RungName, granularity: Granularity | None = None) -> Run | None:
    """The steps of a rung; None where there are none, or too many."""
    if name in ("weights", "cascades"):
        return None
    if name == "recompute":
        plan = Recompute(work=work)
        return recomputed(plan) if n_steps(plan) <= MOST_STEPS else None
    run = run_of(work, manner_of(work, name, granularity or granularity_of(work)))
    return run if len(run.steps) <= MOST_STEPS else None


def _rung(work: Work, name: RungName, granularity: Granularity) -> Rung:
    factor = 1.0
    cut: Granularity | None = None
    if name == "weights":
        peak = Peak(size_bytes=0, step=0, alive=())
        factor = 0.0
    elif name == "recompute":
        plan = Recompute(work=work)
        peak = _recompute_peak(plan)
        factor, cut = macs_factor(plan), "pixel"
    else:
        manner = manner_of(work, name, granularity)
        peak = peak_of(run_of(work, manner))
        factor = computed_share(work, manner)
        is_cut = any(loops != NO_LOOPS for loops in manner.loops.values())
        cut = granularity if is_cut else None
    return Rung(
        name=name,
        activation_bytes=peak.size_bytes,
        total_bytes=work.constant_bytes + peak.size_bytes,
        macs_factor=factor,
        granularity=cut,
        alive=peak.alive,
    )


def _recompute_peak(plan: Recompute) -> Peak:
    """Step by step where there are few; otherwise at most so much."""
    if n_steps(plan) <= FEW_STEPS:
        return peak_of(recomputed(plan))
    size, alive = recompute_peak(plan)
    return Peak(size_bytes=size, step=0, alive=alive)


def computed_share(work: Work, manner: Manner) -> float:
    """Multiplications of the cells that are computed, as a part of all."""
    total = made = 0.0
    for stage in work.stages:
        own = macs(stage.op, work.network)
        name = stage.results[0].tensor
        (top, bottom), (left, right) = manner.needed[name]
        grid = manner.grids[name]
        total += own
        made += own * (bottom - top) * (right - left) / (grid.rows * grid.columns)
    return made / total if total else 1.0
