"""The ways to run a network that the capacity ladder compares."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from tilewright.network.kinds import KIND_CLASSES
from tilewright.strategy.ladder.cells import (
    POOLS,
    Granularity,
    Grid,
    Loops,
    Span,
    Window,
    Work,
    grid_of,
    loops_of,
    reaches_of,
    windows_of,
)
from tilewright.strategy.ladder.steps import Manner, steps_for

NO_LOOPS: Loops = (None, None)


def layer_by_layer(work: Work) -> Manner:
    """Every stage in one step, every tensor whole."""
    return replace(_manner(work, {}, frozenset(), {}, {}), in_place={})


def in_place(work: Work, granularity: Granularity) -> Manner:
    """Element-wise ops overwrite an input; results of pools take the room of what they have read.

    A pool's input and result are held cell by cell for that; all else is whole.
    """
    return _with_pools_cut(work, granularity, fused={})


def fused_pools(work: Work, granularity: Granularity) -> Manner:
    """A pool takes its input cell by cell as it is computed; tensors between such pairs are whole.

    Pools that have nobody to be fused with run in place.
    """
    return _with_pools_cut(work, granularity, fused=_fusable(work, granularity))


def line_buffered(work: Work, granularity: Granularity, *, is_cropped: bool) -> Manner:
    """All stages at once, cell by cell, as early as possible; inputs stream in, results out.

    Cropped, cells that nothing reads are neither loaded nor computed.
    """
    cut = cuttable(work, granularity)
    names = [work.stages[n].results[0].tensor for n in cut]
    names += [n for n in work.inputs if work.held[n].place != NO_LOOPS]
    by_cell = frozenset(n for n in names if not work.held[n].is_seen_as_one)
    grids = {n: grid_of(h, granularity if n in names else None) for n, h in work.held.items()}
    loops = {n: cut.get(n, NO_LOOPS) for n in range(len(work.stages))}
    running = {n: w for n in cut if (w := _running(work, n, grids, cut[n], by_cell)) is not None}
    needed = {name: ((0, g.rows), (0, g.columns)) for name, g in grids.items()}
    return Manner(
        grids=grids,
        loops=loops,
        by_cell=by_cell,
        running=running,
        in_place={},
        groups=(tuple(range(len(work.stages))),),
        is_streamed=True,
        needed=needed_cells(work, grids, loops) if is_cropped else needed,
    )


def needed_cells(
    work: Work, grids: Mapping[str, Grid], loops: Mapping[int, Loops]
) -> dict[str, tuple[Span, Span]]:
    """By held tensor the rows and columns of cells that some result depends on."""
    none = ((0, 0), (0, 0))
    needed: dict[str, tuple[Span, Span]] = dict.fromkeys(grids, none)
    for name in work.outputs:
        needed[name] = ((0, grids[name].rows), (0, grids[name].columns))
    for number in reversed(range(len(work.stages))):
        stage = work.stages[number]
        rows, columns = steps_for(stage, loops[number], needed[stage.results[0].tensor])
        for reach in reaches_of(work, number, loops[number], grids):
            inner = (
                _spanned(reach.rows if loops[number][0] is None else reach.rows[slice(*rows)]),
                _spanned(
                    reach.columns if loops[number][1] is None else reach.columns[slice(*columns)]
                ),
            )
            if not stage_is_dead(needed, [o.tensor for o in stage.results]):
                old = needed[reach.tensor]
                needed[reach.tensor] = (
                    _spanned((old[0], inner[0])),
                    _spanned((old[1], inner[1])),
                )
    return {name: _all_if_one(work, grids[name], spans) for name, spans in needed.items()}


def stage_is_dead(needed: Mapping[str, tuple[Span, Span]], results: Sequence[str]) -> bool:
    """Whether no result depends on a stage."""
    return all(prod(stop - start for start, stop in needed[name]) == 0 for name in results)


def _all_if_one(work: Work, grid: Grid, spans: tuple[Span, Span]) -> tuple[Span, Span]:
    """What is read under another shape is needed whole."""
    if work.held[grid.held.tensor].is_seen_as_one and any(a < b for a, b in spans):
        return (0, grid.rows), (0, grid.columns)
    return spans


def _spanned(spans: Sequence[Span]) -> Span:
    solid = [span for span in spans if span[0] < span[1]]
    if not solid:
        return 0, 0
    return min(start for start, _ in solid), max(stop for _, stop in solid)


def _with_pools_cut(work: Work, granularity: Granularity, fused: Mapping[int, int]) -> Manner:
    """Pools cell by cell; those that are `fused` (by their input's maker) together with it."""
    able = cuttable(work, granularity)
    pools = {
        number: able[number]
        for number, stage in enumerate(work.stages)
        if stage.op.kind in POOLS and number in able and _only_piece(work, number) is not None
    }
    cut = {**pools, **{maker: able[maker] for maker in fused.values()}}
    names: dict[str, None] = {}
    for number in pools:
        names[_only_piece(work, number) or ""] = None
        names[work.stages[number].results[0].tensor] = None
    between = {_only_piece(work, number) for number in fused}
    # Around a fused pair tensors are whole, unless another pool frees them cell by cell.
    unfused = {n for number in pools if number not in fused for n in _ends(work, number)}
    by_cell = frozenset(
        name
        for name in names
        if (name in between or name in unfused) and not work.held[name].is_seen_as_one
    )
    return _manner(work, cut, by_cell, fused, names, granularity)


def _ends(work: Work, number: int) -> tuple[str, str]:
    return _only_piece(work, number) or "", work.stages[number].results[0].tensor


def _manner(
    work: Work,
    cut: Mapping[int, Loops],
    by_cell: frozenset[str],
    fused: Mapping[int, int],
    names: Mapping[str, None],
    granularity: Granularity = "pixel",
) -> Manner:
    """Group after group, each with its inputs whole or, where `by_cell`, cell by cell."""
    grids = {n: grid_of(h, granularity if n in names else None) for n, h in work.held.items()}
    running = {}
    for number in fused:
        window = _running(work, number, grids, cut[number], by_cell)
        if window is not None:
            running[number] = window
    is_second = set(running)
    pairs = {fused[n]: n for n in running}
    groups = tuple(
        (n, pairs[n]) if n in pairs else (n,) for n in range(len(work.stages)) if n not in is_second
    )
    return Manner(
        grids=grids,
        loops={n: cut.get(n, NO_LOOPS) for n in range(len(work.stages))},
        by_cell=by_cell,
        running=running,
        in_place=_overwritten(work, grids, by_cell),
        groups=groups,
        is_streamed=False,
        needed={name: ((0, grid.rows), (0, grid.columns)) for name, grid in grids.items()},
    )


def cuttable(work: Work, granularity: Granularity) -> dict[int, Loops]:
    """Stages that can go cell by cell, with the loops that they go along."""
    found = {}
    for number, stage in enumerate(work.stages):
        loops = loops_of(stage)
        if loops is not None:
            loops = loops if granularity == "pixel" else (loops[0], None)
            if loops != NO_LOOPS and not _sees_nothing(work, number, loops):
                found[number] = loops
    return found


def _sees_nothing(work: Work, number: int, loops: Loops) -> bool:
    """Whether some window of a pool has nothing but padding: there is no maximum of that."""
    if work.stages[number].op.kind not in POOLS:
        return False
    grids = {name: grid_of(held, "pixel") for name, held in work.held.items()}
    reaches = reaches_of(work, number, loops, grids)
    spans = [span for reach in reaches for span in (*reach.rows, *reach.columns)]
    return not reaches or any(start >= stop for start, stop in spans)


def _only_piece(work: Work, number: int) -> str | None:
    """The held tensor that a stage reads, if it is one and all of it."""
    operands = work.stages[number].op.inputs
    pieces = work.pieces(operands[0].tensor)
    is_plain = len(operands) == 1 and len(pieces) == 1 and operands[0].tensor == pieces[0]
    return pieces[0] if is_plain else None


def _fusable(work: Work, granularity: Granularity) -> dict[int, int]:
    """Pools and the stages that make their inputs, which nobody else reads."""
    able, found = cuttable(work, granularity), {}
    for number, stage in enumerate(work.stages):
        name = _only_piece(work, number) if stage.op.kind in POOLS else None
        if name is None or name not in work.makers or name in work.outputs:
            continue
        maker = work.makers[name]
        if (
            work.readers[name] == (number,)
            and number in able
            and maker in able
            and work.stages[maker].op.kind not in POOLS
            and not work.held[name].is_seen_as_one
            and _shrinks(work, number, name)
            and windows_of(stage, work.held[name].shape, able[number]) is not None
        ):
            found[number] = maker
    return found


def _shrinks(work: Work, number: int, name: str) -> bool:
    """Whether a pool has fewer results than inputs; else accumulators would take more room."""
    result = work.held[work.stages[number].results[0].tensor]
    return prod(result.shape) < prod(work.held[name].shape)


def _running(
    work: Work, number: int, grids: Mapping[str, Grid], loops: Loops, by_cell: frozenset[str]
) -> tuple[Window, Window] | None:
    stage = work.stages[number]
    name = _only_piece(work, number) if stage.op.kind in POOLS else None
    if name is None or name not in by_cell or not _shrinks(work, number, name):
        return None
    return windows_of(stage, grids[name].held.shape, loops)


def _overwritten(work: Work, grids: Mapping[str, Grid], by_cell: frozenset[str]) -> dict[str, str]:
    """Results of element-wise stages, and the input that each takes the place of."""
    found: dict[str, str] = {}
    for number, stage in enumerate(work.stages):
        result = work.held[stage.results[0].tensor]
        if KIND_CLASSES[stage.op.kind] != "vector" or stage.op.coupled:
            continue
        for operand in stage.op.inputs:
            name = operand.tensor
            held = work.held.get(name)
            if (
                held is not None
                and name in work.makers
                and name not in work.outputs
                and operand.index is not None
                and operand.index == stage.op.outputs[0].index
                and work.is_alone(name)
                and work.is_alone(result.tensor)
                and max(work.readers[name]) == number
                and (held.shape, held.bits) == (result.shape, result.bits)
                and (grids[name].rows, grids[name].columns)
                == (grids[result.tensor].rows, grids[result.tensor].columns)
                and (name in by_cell) == (result.tensor in by_cell)
            ):
                found[result.tensor] = name
                break
    return found
