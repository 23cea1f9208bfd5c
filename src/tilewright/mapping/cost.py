"""What a batch of mappings costs: accesses and energy of every link, cycles with all stalls.

The formulas are ZigZag's, as the model `zigzag-3.9` has them. Ports work in parallel; what shares a
port competes for its cycles; a memory that is at most half full, effectively, loads its next data
while the present ones are in use.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce

import numpy as np

from tilewright.machine.model import Port
from tilewright.mapping.batch import Bools, Floats
from tilewright.mapping.hierarchy import Hierarchy
from tilewright.mapping.movement import Link, Movement, links_of
from tilewright.mapping.nest import LoopNest


@dataclass(frozen=True, eq=False)
class Costs:
    """Cost of every candidate, (N,) each; `possible` marks those whose data can move at all."""

    possible: Bools
    accesses: Floats
    """Accesses of a full port width, (links, N)."""
    link_pj: Floats
    memory_pj: Floats
    compute_cycles: Floats
    stall_cycles: Floats
    port_stalls: Floats
    """Cycles each port holds the array up, (ports, N); the largest is the stall."""
    onload_cycles: Floats
    offload_cycles: Floats
    drain_cycles: int

    @property
    def cycles(self) -> Floats:
        """All cycles, from the first load to the last store."""
        busy = self.compute_cycles + self.stall_cycles + self.onload_cycles
        return busy + (self.offload_cycles + self.drain_cycles)


@dataclass(frozen=True, slots=True)
class PortGroup:
    """A physical port and the rows of the links that use it."""

    memory: str
    port: str
    bits_per_cycle: int
    rows: tuple[int, ...]
    letters: tuple[str, ...]
    """Operands of this level that the port serves in any direction, also where nothing moves."""


def costs(
    nest: LoopNest,
    hierarchy: Hierarchy,
    moves: Movement,
    *,
    drain_cycles: int,
    op_cycles: float = 1.0,
) -> Costs:
    """Cost a batch; `op_cycles` is what one multiplication takes (more than 1 in memory)."""
    widths = np.array([link.port.bits_per_cycle if link.port else 0 for link in moves.links])
    no_port = widths == 0
    moving = moves.exists & (moves.amount > 0) & (moves.bits > 0)
    accesses = _accesses(moves, moving)
    link_pj = accesses * np.array(
        [link.memory.read_pj if link.is_read else link.memory.write_pj for link in moves.links]
    )[:, None]  # fmt: skip
    bits = moves.whole_amount * moves.whole_bits
    real = np.where(no_port[:, None], 0.0, np.ceil(bits / np.maximum(widths, 1)[:, None]))
    real = np.where(moves.whole_exists, real, 0.0)
    allowed = _allowed(nest, hierarchy, moves, op_cycles)
    wires = wiring(nest.letters, hierarchy)
    groups = wires.groups
    port_stalls = _port_stalls(groups, moves, real, allowed, op_cycles)
    stall = np.maximum(port_stalls.max(axis=0), 0.0)
    compute = moves.iterations * op_cycles
    times = _loading(groups, moves, real, np.ceil(compute) + stall, op_cycles)
    return Costs(
        possible=~(moving & no_port[:, None]).any(axis=0),
        accesses=accesses,
        link_pj=link_pj,
        # Row by row: a sum over an axis adds in an order that depends on the batch's width.
        memory_pj=reduce(np.add, link_pj),
        compute_cycles=compute,
        stall_cycles=stall,
        port_stalls=port_stalls,
        onload_cycles=_onload(wires.loads, times),
        offload_cycles=_offload(wires.store, times),
        drain_cycles=drain_cycles,
    )


def _accesses(moves: Movement, moving: Bools) -> Floats:
    ports = [link.port for link in moves.links]
    least = np.array([p.granularity_bits if p else 1 for p in ports], dtype=np.float64)[:, None]
    most = np.array([p.bits_per_cycle if p else 1 for p in ports], dtype=np.float64)[:, None]
    copies = np.array(moves.instances, dtype=np.float64)[:, None]
    granules = np.ceil(moves.amount * moves.bits / least)
    counted = np.floor(granules * (least / most) * moves.periods * copies)
    result: Floats = np.where(moving, counted, 0.0)
    return result


def port_groups(links: Sequence[Link], hierarchy: Hierarchy) -> list[PortGroup]:
    """Links by the physical port they use: operands in the order of their memory's level, each in
    the order in which the port lists its uses. The order decides between loads of equal length.
    """
    carriers = dict(hierarchy.links)
    rows: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
    ports: dict[tuple[str, str], tuple[Port, tuple[str, ...]]] = {}
    for row, link in enumerate(links):
        if link.port is None:
            continue
        _, held = hierarchy.levels[hierarchy.chains[link.letter][link.level]]
        key = (link.memory.name, link.port.name)
        place = link.port.uses.index((carriers[link.letter], link.direction))
        rows.setdefault(key, []).append((held.index(link.letter), place, row))
        used = [carrier for carrier, _ in link.port.uses]
        ports[key] = (link.port, tuple(x for x in held if carriers[x] in used))
    return [
        PortGroup(
            memory, name, port.bits_per_cycle, tuple(row[-1] for row in sorted(placed)), letters
        )
        for (memory, name), placed in rows.items()
        for port, letters in [ports[(memory, name)]]
    ]


@dataclass(frozen=True, slots=True)
class Step:
    """Data on their way between two neighbouring memories: rows of the links they pass.

    `shared` says how many of the two links are on ports that serve several inputs.
    """

    lower: int
    upper: int
    shared: int


@dataclass(frozen=True, eq=False)
class Wiring:
    """What the memories of a core decide alone: links, the ports that they share, and paths."""

    links: tuple[Link, ...]
    groups: tuple[PortGroup, ...]
    loads: tuple[tuple[Step, ...], ...]
    """Per input, its steps from the lowest memory upwards; `store` has those of the result."""
    store: tuple[Step, ...]


@lru_cache(maxsize=64)
def wiring(letters: tuple[str, ...], hierarchy: Hierarchy) -> Wiring:
    """The wiring for operands in the order of their nest, the result first."""
    links = links_of(letters, hierarchy)
    groups = port_groups(links, hierarchy)
    loads = _load_paths(letters[1:], links, groups)
    return Wiring(links, tuple(groups), loads, _store_path(links))


def _load_paths(
    letters: Sequence[str], links: Sequence[Link], groups: Sequence[PortGroup]
) -> tuple[tuple[Step, ...], ...]:
    rows = {(link.letter, link.level, link.direction): i for i, link in enumerate(links)}
    shared = {
        row
        for group in groups
        if sum(letter in letters for letter in group.letters) > 1
        for row in group.rows
    }
    paths = []
    for letter in letters:
        steps: list[Step] = []
        while (letter, len(steps) + 1, "tl") in rows:
            lower = rows[(letter, len(steps), "fh")]
            upper = rows[(letter, len(steps) + 1, "tl")]
            steps.append(Step(lower, upper, (lower in shared) + (upper in shared)))
        paths.append(tuple(steps))
    return tuple(paths)


def _store_path(links: Sequence[Link]) -> tuple[Step, ...]:
    rows = {(link.level, link.direction): i for i, link in enumerate(links) if link.letter == "O"}
    steps: list[Step] = []
    while (len(steps) + 1, "fl") in rows:
        lower, upper = rows[(len(steps), "th")], rows[(len(steps) + 1, "fl")]
        steps.append(Step(lower, upper, 0))
    return tuple(steps)


def double_buffered(nest: LoopNest, hierarchy: Hierarchy, moves: Movement) -> Mapping[str, Bools]:
    """Per operand, whether each of its levels can load ahead, (levels, N)."""
    alone: dict[tuple[str, int], Floats] = {}
    shared: dict[int, Floats] = {}
    for operand in nest.operands:
        held = moves.held[operand.letter]
        for level, index in enumerate(hierarchy.chains[operand.letter]):
            need = np.floor(held.elements[level] * held.bits[level] / held.top_relevant[level])
            alone[(operand.letter, level)] = need / hierarchy.levels[index][0].size_bits
    for index, (_, letters) in enumerate(hierarchy.levels):
        parts = [alone[(x, hierarchy.chains[x].index(index))] for x in letters]
        shared[index] = sum(parts[1:], parts[0])
    result: dict[str, Bools] = {}
    for operand in nest.operands:
        flags = []
        for level, index in enumerate(hierarchy.chains[operand.letter]):
            mine, all_of_it = alone[(operand.letter, level)], shared[index]
            roomy = all_of_it <= 0.5
            squeezed = ~roomy & (mine <= 1 - all_of_it)
            shared[index] = np.where(squeezed, all_of_it + mine, all_of_it)
            flags.append(roomy | squeezed)
        result[operand.letter] = np.array(flags)
    return result


def _allowed(nest: LoopNest, hierarchy: Hierarchy, moves: Movement, op_cycles: float) -> Floats:
    """Cycles of each period in which a link may work without holding anything up."""
    flags = double_buffered(nest, hierarchy, moves)
    rows = []
    for row, link in enumerate(moves.links):
        lower = link.level - 1 if link.is_below else link.level
        window = moves.window[row]
        if lower >= 0:
            window = np.where(flags[link.letter][lower], moves.period[row], window)
        rows.append(np.ceil(op_cycles * window))
    return np.array(rows)


def _port_stalls(
    groups: Sequence[PortGroup], moves: Movement, real: Floats, allowed: Floats, op_cycles: float
) -> Floats:
    """Cycles by which the links of each port together overrun what they may take, (ports, N)."""
    again = np.where(moves.whole_exists, moves.periods - 1, 0.0)
    late = (real - allowed) * again
    # Adding 0 leaves no -0.0, which would show up in reports.
    overrun = np.maximum(late, 0.0) + 0.0
    slack_and_windows = np.minimum(late, 0.0) + allowed * again
    period = np.ceil(moves.period * op_cycles)
    result = np.empty((len(groups), late.shape[1]))
    for number, group in enumerate(groups):
        rows = list(group.rows)
        if len(rows) == 1:
            result[number] = overrun[rows[0]]
            continue
        exists = moves.whole_exists[rows]
        union = _union(
            period[rows], np.where(exists, allowed[rows], 0.0), moves.periods[rows], exists
        )
        shared = np.maximum(0.0, reduce(np.add, slack_and_windows[rows]) - union)
        result[number] = reduce(np.add, overrun[rows]) + shared
    return result


def _union(period: Floats, allowed: Floats, periods: Floats, exists: Bools) -> Floats:
    """Cycles of the whole run that lie in the window of at least one link."""
    columns = np.arange(period.shape[1])
    always = exists & (allowed == period)
    first = np.argmax(always, axis=0)
    simple = always.any(axis=0)
    union = np.where(simple, (period * periods)[first, columns], 0.0)
    hard = np.flatnonzero(~simple & exists.any(axis=0))
    if hard.size:
        union[hard] = _covered(period[:, hard], allowed[:, hard], periods[:, hard], exists[:, hard])
    return union


def _covered(period: Floats, allowed: Floats, periods: Floats, exists: Bools) -> Floats:
    """Covered cycles of one longest period, times how often that comes round.

    A window is the first `allowed` cycles of each `period`, and the periods divide one another.
    With windows sorted by period, u_k(x) counts the cycles before x that the first k leave free:
    u_k(x) = ⌊x / P_k⌋ · o_k(P_k) + o_k(x mod P_k) and o_k(y) = u_{k-1}(y) - u_{k-1}(min(y, A_k)).
    """
    span = np.where(exists, period, 1.0)
    longest = np.where(exists, period, 0.0)
    which, columns = np.argmax(longest, axis=0), np.arange(period.shape[1])
    order = np.argsort(span, axis=0, kind="stable")
    p = np.take_along_axis(span, order, axis=0)
    a = np.take_along_axis(np.where(exists, allowed, 0.0), order, axis=0)
    in_window: list[Floats] = []
    per_period: list[Floats] = []

    def free(upto: int, x: Floats) -> Floats:
        """u_upto(x)."""
        total = np.zeros_like(x)
        for k in range(upto - 1, -1, -1):
            whole, rest = np.divmod(x, p[k])
            beyond = rest > a[k]
            total = total + whole * per_period[k] - np.where(beyond, in_window[k], 0.0)
            x = np.where(beyond, rest, 0.0)
        return total + x

    for k in range(p.shape[0]):
        in_window.append(free(k, np.minimum(a[k], p[k])))
        per_period.append(free(k, p[k]) - in_window[k])
    span_longest = longest[which, columns]
    covered: Floats = (span_longest - free(p.shape[0], span_longest)) * periods[which, columns]
    return covered


def _loading(
    groups: Sequence[PortGroup], moves: Movement, real: Floats, busy: Floats, op_cycles: float
) -> Floats:
    """Cycles that each link needs before or after the run, (links, N).

    What is moved only once may overlap with the run as far as its port has cycles to spare, but the
    first tile of the lowest memory has to be there before anything starts.
    """
    times = real.copy()
    for group in groups:
        rows = [r for r in group.rows if not moves.links[r].comes_back]
        if not rows:
            continue
        exists, periods = moves.whole_exists[rows], moves.periods[rows]
        once = exists & (periods == 1)
        if not once.any():
            continue
        steady = np.where(exists & (periods > 1), np.ceil(moves.average[rows] / op_cycles), 0.0)
        width = group.bits_per_cycle
        surplus = np.maximum(0.0, (width - reduce(np.add, steady)) / width * busy)
        _hide(times, rows, once, _first_tile(moves, rows, width), surplus)
    return times


def _hide(times: Floats, rows: Sequence[int], once: Bools, least: Floats, surplus: Floats) -> None:
    """Shorten the loads of one port, the longest first, by the surplus of its cycles."""
    columns = np.arange(times.shape[1])
    order = np.argsort(-np.where(once, times[rows], -1.0), axis=0, kind="stable")
    numbers = np.array(rows)
    for place in order:
        row = numbers[place]
        time = times[row, columns]
        gain = np.minimum(np.maximum(time - least[place, columns], 0.0), surplus)
        gain = np.where(once[place, columns], gain, 0.0)
        times[row, columns] = time - gain
        surplus = surplus - gain


def _first_tile(moves: Movement, rows: Sequence[int], width: int) -> Floats:
    """Cycles to move what one instance of the operand's lowest memory holds."""
    helds = (moves.whole_held[moves.links[row].letter] for row in rows)
    return np.array([np.ceil(held.elements[0] * held.bits[0] / width) for held in helds])


def _onload(paths: Sequence[Sequence[Step]], times: Floats) -> Floats:
    """Cycles until the first multiplication: inputs on ports of their own load side by side."""
    zero = np.zeros(times.shape[1])
    own, half, both = ([zero] * len(paths) for _ in range(3))
    for i, path in enumerate(paths):
        for step in path:
            time = np.maximum(times[step.lower], times[step.upper])
            if step.shared == 0:
                own[i] = own[i] + time
            elif step.shared == 2:
                both[i] = both[i] + time
            else:
                half[i] = time
    if len(paths) == 1:
        return own[0]
    after_first = np.maximum(both[1] + half[1] + own[1], half[0] + own[0])
    after_second = np.maximum(both[0] + half[0] + own[0], half[1] + own[1])
    result: Floats = np.minimum(both[0] + after_first, both[1] + after_second)
    return result


def _offload(path: Sequence[Step], times: Floats) -> Floats:
    """Cycles from the last multiplication until the result is where it belongs."""
    total = np.zeros(times.shape[1])
    for step in path:
        total = total + np.maximum(times[step.lower], times[step.upper])
    return total
