"""Linear lower bounds on energy and latency.

Energy is linear in a chain's totals. Latency is a maximum over ports and over ways in which loads
follow one another; each of its terms is a linear bound:

    none:     run + loads                       nothing stalls
    overrun:  run + overrun[p] + loads          transfers of port p exceed their windows
    busy:     run + overrun[p] + busy[p] - port_cycles + loads
    hide:     drain + compute * steady[p] / width[p] - first_transfer[p] + all loads of port p

where `run = compute + drain`. Convex combinations of them bound latency too (`dual`).
"""

from collections.abc import Sequence
from math import ceil

import numpy as np

from tilewright.mapping.complete.cost_to_go import LinearBounds, StageGraph
from tilewright.mapping.complete.relaxation import Relaxation, Stage


def energy_bounds(graph: StageGraph) -> LinearBounds:
    """The energy itself, which is linear."""
    relaxation = graph.relaxation
    weights = np.zeros((relaxation.columns.count, 1))
    weights[0] = 1.0
    ends = [
        sum(
            float(increment[-1, 0])
            for done, increments in zip(stage, relaxation.increments, strict=True)
            for increment in increments[done:]
        )
        if relaxation.may_end(stage)
        else np.inf
        for stage in graph.stages
    ]
    return LinearBounds(weights, np.zeros(1), np.array(ends)[:, None])


def latency_bounds(graph: StageGraph) -> LinearBounds:
    """Bounds on latency: for every port that may matter and every way of counting loads."""
    relaxation = graph.relaxation
    columns = relaxation.columns
    weights, constants, ends = [], [], []
    by_stage = [_SingleTransferBounds(relaxation, stage) for stage in graph.stages]
    may_end = [relaxation.may_end(stage) for stage in graph.stages]
    for load_case in _load_cases(relaxation):
        for kind, port in _stall_cases(relaxation):
            row = np.zeros(columns.count)
            row[list(load_case)] = 1.0
            constant = relaxation.run_cycles
            if kind in ("overrun", "busy"):
                row[columns.overrun(port)] = 1.0
            if kind == "busy":
                row[columns.busy_cycles(port)] = 1.0
                constant -= relaxation.port_cycles
            if kind == "hide":
                work = ceil(relaxation.tables.compute_cycles)
                row[columns.steady(port)] = work / relaxation.width(port)
                row[columns.first_transfer(port)] = -1.0
                constant -= work
            weights.append(row)
            constants.append(constant)
            ends.append(
                [
                    single.least(load_case, kind, port) if end else np.inf
                    for single, end in zip(by_stage, may_end, strict=True)
                ]
            )
    load_cases = len(_load_cases(relaxation))
    return LinearBounds(np.array(weights).T, np.array(constants), np.array(ends).T, load_cases)


def _load_cases(relaxation: Relaxation) -> list[tuple[int, ...]]:
    """Sets of load columns whose sum is never above the loading time."""
    columns = relaxation.columns
    pairs = [
        (columns.load(i, together=False), columns.load(i, together=True), columns.store)
        for i in range(min(columns.inputs, 2))
    ]
    if columns.inputs == 1:
        return [(pairs[0][0], columns.store)]
    both = (pairs[0][1], pairs[1][1], columns.store)
    counted = {
        load.column for mine in relaxation.single_transfers for load in mine if load is not None
    }
    return [*pairs, both] if counted & set(both[:2]) else list(pairs)


def _stall_cases(relaxation: Relaxation) -> list[tuple[str, int]]:
    """What a bound counts besides loads: a kind and a port.

    `overrun` and `busy`: cycles by which a port stalls the array, because each transfer or all of
    them together take too long. `hide`: all that a port has to move has to fit into the time there
    is; it needs whole bits a cycle that are not rounded up.
    """
    ports = relaxation.columns.ports
    several = [p for p in ports if len(relaxation.tables.groups[p].rows) > 1]
    hiding = relaxation.columns.hiding if relaxation.setup.op_cycles == 1 else ()
    return [
        ("none", -1),
        *(("overrun", port) for port in ports),
        *(("busy", port) for port in several),
        *(("hide", port) for port in hiding),
    ]


class _SingleTransferBounds:
    """The least cycles of what is moved once if a stage is the last one."""

    def __init__(self, relaxation: Relaxation, stage: Stage) -> None:
        self.relaxation = relaxation
        self.work = ceil(relaxation.tables.compute_cycles)
        self.single = relaxation.moved_once(stage)
        first = _first_bits(relaxation, stage)
        self.floors = [
            [self._floor(link, first[load.operand]) for link in load.links] for load in self.single
        ]

    def _floor(self, link: tuple[int, int, float], first_bits: float) -> float:
        port, _, cycles = link
        if port < 0:
            return cycles
        return min(cycles, float(ceil(first_bits / self.relaxation.width(port))))

    def least(self, load_case: Sequence[int], kind: str, port: int) -> float:
        """Cycles of the load columns of a case."""
        if kind == "hide":
            return sum(self._through(load_case, port)[:2])
        floor = sum(
            max(floors)
            for load, floors in zip(self.single, self.floors, strict=True)
            if load.column in load_case
        )
        if kind != "none":
            return floor
        best = floor
        for hiding in self.relaxation.columns.hiding:
            other, cycles, shortest = self._through(load_case, hiding)
            best = max(best, other + max(shortest, cycles - self.work))
        return best

    def _through(self, load_case: Sequence[int], port: int) -> tuple[float, float, float]:
        """Least cycles of loads by other ports; cycles by this one; and the least of those."""
        other = cycles = shortest = 0.0
        for load, floors in zip(self.single, self.floors, strict=True):
            mine = [j for j, link in enumerate(load.links) if link[0] == port]
            if load.column not in load_case:
                continue
            if mine:
                cycles += sum(load.links[j][2] for j in mine)
                shortest += sum(floors[j] for j in mine)
            else:
                other += max(floors)
        return other, cycles, shortest


def _first_bits(relaxation: Relaxation, stage: Stage) -> list[float]:
    """Per operand the least bits of its lowest memory's first tile."""
    result = []
    for operand, cuts in enumerate(relaxation.tables.cuts):
        found = 0.0
        for j, cut in enumerate(cuts):
            if cut.arch == 1:
                placed = stage[operand] > j
                inside = relaxation.possible[operand][j].copy()
                inside[-1] = False
                bits = cut.first_bits[inside] if placed else cut.first_bits[-1:]
                found = float(np.min(bits, initial=cut.first_bits[-1]))
        result.append(found)
    return result
