"""Latency of a complete chain: stalls, and what of the single transfers cannot be hidden.

    latency = compute + drain + largest stall of a port + loading + storing

What is moved once may be moved while the array computes, as far as its ports have cycles to spare.
"""

from collections.abc import Sequence
from math import ceil

import numpy as np

from tilewright.mapping.batch import Floats
from tilewright.mapping.complete.relaxation import Columns, Relaxation, SingleTransfer, Stage


def latency_lower_bound(relaxation: Relaxation, stage: Stage, totals: Floats) -> Floats:
    """Cycles of complete chains whose other cuts lie at the whole nest, (N,), or a little less.

    A longer stall hides more of what is moved once. As long as that counts for one port only, the
    sum of both cannot shrink, so the bound lets one port at a time hide what it can and the others
    hide everything; the largest of these bounds holds.
    """
    columns, tables = relaxation.columns, relaxation.tables
    stall = np.zeros(len(totals))
    for port in columns.ports:
        excess = np.maximum(totals[:, columns.busy_cycles(port)] - relaxation.port_cycles, 0.0)
        stall = np.maximum(stall, totals[:, columns.overrun(port)] + excess)
    busy = ceil(tables.compute_cycles) + stall
    single = relaxation.moved_once(stage)
    used = {group for load in single for group, _, _ in load.links}
    scarce: list[int | None] = [None, *(port for port in columns.hiding if port in used)]
    result = np.zeros(len(totals))
    for hiding in scarce:
        loads = totals.copy()
        times = _single_cycles(relaxation, single, totals, busy, hiding)
        for load, time in zip(single, times, strict=True):
            if load.column is not None:
                loads[:, load.column] += time
        result = np.maximum(result, _loading(columns, loads))
    total: Floats = relaxation.run_cycles + stall + result
    return total


def _loading(columns: Columns, loads: Floats) -> Floats:
    """Cycles before and after computing; inputs over ports of their own load side by side."""
    apart = [loads[:, columns.load(i, together=False)] for i in range(columns.inputs)]
    both = [loads[:, columns.load(i, together=True)] for i in range(columns.inputs)]
    store: Floats = loads[:, columns.store]
    if columns.inputs == 1:
        alone: Floats = apart[0] + store
        return alone
    after_a = np.maximum(both[1] + apart[1], apart[0])
    after_b = np.maximum(both[0] + apart[0], apart[1])
    result: Floats = np.minimum(both[0] + after_a, both[1] + after_b) + store
    return result


def _single_cycles(
    relaxation: Relaxation,
    single: Sequence[SingleTransfer],
    totals: Floats,
    busy: Floats,
    hiding: int | None,
) -> list[Floats]:
    """Cycles of every single transfer, if the port `hiding` has only its spare cycles."""
    columns = relaxation.columns
    least = [[_least(relaxation, load, link, totals) for link in load.links] for load in single]
    if hiding is not None:
        width = relaxation.width(hiding)
        surplus = np.maximum(0.0, (width - totals[:, columns.steady(hiding)]) / width * busy)
        for i, j in _longest_first(single, hiding):
            cycles = single[i].links[j][2]
            gain = np.minimum(cycles - least[i][j], surplus)
            least[i][j] = cycles - gain
            surplus = surplus - gain
    return [np.maximum.reduce(times) for times in least]


def _least(
    relaxation: Relaxation, load: SingleTransfer, link: tuple[int, int, float], totals: Floats
) -> Floats:
    """Cycles that can never be hidden: the first tile of the lowest memory."""
    port, _, cycles = link
    if port < 0:
        return np.full(len(totals), cycles)
    first = totals[:, relaxation.columns.first(load.operand)]
    return np.minimum(np.ceil(first / relaxation.width(port)), cycles)


def _longest_first(single: Sequence[SingleTransfer], port: int) -> list[tuple[int, int]]:
    """(load, link) of a port in the order in which they are hidden."""
    found = [
        (-cycles, place, i, j)
        for i, load in enumerate(single)
        for j, (group, place, cycles) in enumerate(load.links)
        if group == port
    ]
    return [(i, j) for _, _, i, j in sorted(found)]
