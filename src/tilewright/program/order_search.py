"""The order of least peak: region by region, exact where the budget suffices, else improved."""

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.program.order import Order, OrderProblem, depth_first, live_bytes, peak_bytes
from tilewright.program.order_beam import beam
from tilewright.program.order_exact import search
from tilewright.program.order_region import cuts, floor_bytes, region_of


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderOptions:
    """How much is searched; a step is one op tried as the next one after some that have run."""

    steps: int = 1_000_000
    """For the exact search of all regions together."""
    beam_steps: int = 300_000
    """For the beam search of a region that the exact search left open."""
    window_ops: int = 48
    """The length of the stretch around the peak that is then searched again on its own."""
    window_steps: int = 20_000
    few_alive: bool = False
    """Whether, of orders with the same peak, that one is taken that has fewer bytes alive over
    time: where ops run as cascades the peak is elsewhere, and all that waits beside them counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordered:
    """An order, its peak, and a bound that no order can be below."""

    order: Order
    peak_bytes: int
    bound_bytes: int

    @property
    def proven(self) -> bool:
        """Whether no order has a lower peak."""
        return self.peak_bytes == self.bound_bytes


def least_peak(problem: OrderProblem, options: OrderOptions | None = None) -> Ordered:
    """An order of least peak, or the best one found; never worse than that of `problem.ops`."""
    options = options or OrderOptions()
    order, stretches = first_order(problem, few_alive=options.few_alive)
    bound, steps = 0, options.steps
    for peak, start, end in sorted(stretches, key=lambda stretch: (-stretch[0], stretch[1])):
        if peak <= bound:
            break
        region = region_of(problem, order, start, end)
        floor = max(bound, floor_bytes(region))
        outcome = search(region, floor, peak, steps)
        steps -= outcome.steps
        bound = outcome.bound_bytes
        if outcome.order is None and bound < peak:
            _improve(problem, order, (start, end), options)
        elif outcome.order is not None:
            order[start:end] = (region.ops[number] for number in outcome.order)
    return Ordered(order=tuple(order), peak_bytes=peak_bytes(problem, order), bound_bytes=bound)


def first_order(
    problem: OrderProblem, *, few_alive: bool
) -> tuple[list[int], list[tuple[int, int, int]]]:
    """Stretch by stretch the better of the order given and the depth-first one, with its peak."""
    candidates = (tuple(range(len(problem.ops))), depth_first(problem))
    profiles = [[during for _, during in live_bytes(problem, order)] for order in candidates]
    best: list[int] = []
    stretches = []
    for start, end in cuts(problem, candidates[0]):
        alive = [profile[start:end] for profile in profiles]
        peak, _, better = min((max(a), few_alive * sum(a), at) for at, a in enumerate(alive))
        best += candidates[better][start:end]
        stretches.append((peak, start, end))
    return best, stretches


def _improve(
    problem: OrderProblem, order: list[int], stretch: tuple[int, int], options: OrderOptions
) -> None:
    """Lower the peak of a stretch of the order, in place, as far as beam and windows can."""
    start, end = stretch
    region = region_of(problem, order, start, end)
    floor = floor_bytes(region)
    ceiling = _peak(problem, order, start, end)[0]
    found = beam(region, floor, ceiling, options.beam_steps)
    if found is not None:
        order[start:end] = (region.ops[number] for number in found)
    while _improve_window(problem, order, stretch, options):
        pass


def _improve_window(
    problem: OrderProblem, order: list[int], stretch: tuple[int, int], options: OrderOptions
) -> bool:
    """Search the ops around the first place of highest peak again; whether that lowered it.

    Every success removes one place from those with the highest peak, so successes come to an end.
    """
    peak, place = _peak(problem, order, *stretch)
    length = options.window_ops
    for before in (length // 2, length - 1, 0):
        start = max(stretch[0], place - before)
        end = min(stretch[1], start + length)
        region = region_of(problem, order, start, end)
        floor = floor_bytes(region)
        outcome = search(region, floor, peak, options.window_steps)
        if outcome.order is not None:
            order[start:end] = (region.ops[number] for number in outcome.order)
            return True
    return False


def _peak(problem: OrderProblem, order: Sequence[int], start: int, end: int) -> tuple[int, int]:
    """The peak of a stretch and the first place that has it."""
    during = [during for _, during in live_bytes(problem, order[:end])][start:]
    peak = max(during)
    return peak, start + during.index(peak)
