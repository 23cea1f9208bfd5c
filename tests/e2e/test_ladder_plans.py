"""Plans of the ladder: their placements prove the rungs, and they run."""

from dataclasses import replace
from functools import cache

import pytest
from tests.ladder_cases import QUICK, Layer, chain, one_memory, prepared_on

from tilewright.errors import InfeasibleError
from tilewright.machine.limits import with_memory_limits
from tilewright.machine.load import load_machine
from tilewright.network.load import load_network
from tilewright.plan_model import Plan, PlanObjective, PlanOptions
from tilewright.plan_rungs import last_resort, plan_of_rung
from tilewright.planner import plan
from tilewright.program.lower import prepare
from tilewright.replay.verify import verify
from tilewright.strategy.ladder.allocation import allocate
from tilewright.strategy.ladder.cells import work_of
from tilewright.strategy.ladder.liveness import lives_of, peak_of
from tilewright.strategy.ladder.program import timetable_of
from tilewright.strategy.ladder.rungs import RungName, rung_alone, rung_run

NOTES_CNN = (
    ("layer_by_layer", 82_368),
    ("in_place", 77_216),
    # Small chains are planned on every rung in `property/test_ladder.py`, and `fit` writes a plan
    # of this network in lines and replays it in `test_fit.py`.
    pytest.param("fused_pools", 56_320, marks=pytest.mark.slow),
    pytest.param("line_buffered", 49_156, marks=pytest.mark.slow),
    pytest.param("line_buffered_cropped", 49_052, marks=pytest.mark.slow),
)
OPTIONS = PlanOptions()


def quiet(step: str) -> None:
    """Nobody watches."""


@cache
def notes_cnn_plan(name: RungName, size_bytes: int) -> Plan:
    return plan_of_rung(prepared_on(load_network("notes_cnn"), size_bytes), name, OPTIONS, quiet)


@pytest.mark.parametrize(("name", "total_bytes"), NOTES_CNN)
def test_a_rung_of_notes_cnn_is_placed_in_as_many_bytes(name: RungName, total_bytes: int) -> None:
    # The memory has not a byte more, so addresses prove the figure; the plan is checked.
    found = notes_cnn_plan(name, total_bytes)
    assert found.peak_bytes["memory"] == total_bytes
    assert verify(found.timetable, found.network).agrees


@pytest.mark.slow
def test_recomputing_notes_cnn_is_placed_in_as_many_bytes() -> None:
    assert notes_cnn_plan("recompute", 48_736).peak_bytes["memory"] == 48_736


def test_recomputing_replays() -> None:
    layers = (
        Layer(is_pool=False, channels=3, kernel=2, stride=1, pad=0),
        Layer(is_pool=True, channels=0, kernel=2, stride=2, pad=0),
        Layer(is_pool=False, channels=2, kernel=2, stride=1, pad=0),
    )
    network = chain((7, 7), 1, layers)
    found = plan_of_rung(prepared_on(network, 4_096), "recompute", OPTIONS, quiet)
    assert any("#" in task.name for task in found.program.tasks)
    assert verify(found.timetable, network).agrees


def test_sums_that_wait_are_as_wide_as_the_array_makes_them() -> None:
    layers = (
        Layer(is_pool=False, channels=3, kernel=2, stride=1, pad=0),
        Layer(is_pool=False, channels=2, kernel=2, stride=1, pad=0),
    )
    network, narrow = chain((5, 5), 1, layers), one_memory(4_096)
    (core,) = narrow.cores
    wide = replace(narrow, cores=(replace(core, array=replace(core.array, accumulator_bits=None)),))
    least = {
        machine: rung_alone(network, "recompute", machine).total_bytes for machine in (narrow, wide)
    }
    # A pixel of 2 channels: its sums have 32 bits instead of 16, and its result, 16 bits wide, can
    # no longer take their place.
    assert least[wide] == least[narrow] + 2 * 2 + 2 * 2
    limited = with_memory_limits(wide, (("memory", least[wide]),))
    prepared = prepare(network, limited, network.ops, QUICK)
    found = plan_of_rung(prepared, "recompute", OPTIONS, quiet)
    assert found.peak_bytes["memory"] == least[wide]
    assert verify(found.timetable, network).agrees


def test_one_byte_less_is_refused() -> None:
    with pytest.raises(InfeasibleError, match="49,052 B of memory at once, 1 B more than it has"):
        notes_cnn_plan("line_buffered_cropped", 49_051)


def test_weights_stay_to_the_end() -> None:
    found = notes_cnn_plan("line_buffered", 49_156)
    results = [found.program.buffers[number].tensor for number in found.program.results]
    assert {"conv1.weight", "conv2.weight", "conv3.weight"} <= set(results)


@pytest.mark.parametrize("objective", ["latency", "energy", "traffic", "memory"])
def test_where_no_tiling_fits_the_network_runs_pixel_by_pixel(objective: PlanObjective) -> None:
    layers = (
        Layer(is_pool=False, channels=8, kernel=3, stride=1, pad=1),
        Layer(is_pool=False, channels=1, kernel=3, stride=1, pad=1),
    )
    network = chain((24, 24), 1, layers)
    run = rung_run(work_of(network), "line_buffered")
    assert run is not None
    size = run.work.constant_bytes + peak_of(run).size_bytes
    found = plan(network, one_memory(size), PlanOptions(objective=objective))
    assert found.peak_bytes["memory"] == size
    assert verify(found.timetable, network).agrees


@pytest.mark.slow
def test_nothing_is_left_to_try_below_the_last_rung() -> None:
    assert last_resort(prepared_on(load_network("notes_cnn"), 46_368), OPTIONS, quiet) is None


def test_two_memories_are_refused() -> None:
    network = load_network("notes_cnn")
    prepared = prepare(network, load_machine("npe8"), network.ops, QUICK)
    with pytest.raises(InfeasibleError, match="one scratchpad"):
        plan_of_rung(prepared, "line_buffered", OPTIONS, quiet)


def test_cut_chunks_fill_holes_without_overlap() -> None:
    run = rung_run(work_of(load_network("notes_cnn")), "line_buffered")
    assert run is not None
    found, lives = allocate(run), lives_of(run)
    assert found.peak_bytes == peak_of(run).size_bytes
    assert max(len(pieces) for pieces in found.pieces) > 1
    born = sorted((life[0], n) for n, life in enumerate(lives) if life is not None)
    taken_until: dict[int, int] = {}
    for start, number in born:
        life = lives[number]
        assert life is not None
        for piece in found.pieces[number]:
            for byte in range(piece.address, piece.address + piece.size_bytes):
                assert taken_until.get(byte, -1) < start
                taken_until[byte] = life[1]


def test_pieces_of_a_chunk_are_all_of_it() -> None:
    run = rung_run(work_of(load_network("notes_cnn")), "line_buffered_cropped")
    assert run is not None
    for chunk, pieces in zip(run.chunks, allocate(run).pieces, strict=True):
        if pieces:
            assert sum(piece.size_bytes for piece in pieces) == chunk.size_bytes


def test_alignment_rounds_every_piece_up() -> None:
    run = rung_run(work_of(load_network("notes_cnn")), "line_buffered")
    assert run is not None
    found = allocate(run, alignment_bytes=4)
    # 66 pixels of 2 B take 4 B each.
    assert found.peak_bytes == 2_788 + 66 * 2
    assert all(piece.address % 4 == 0 for pieces in found.pieces for piece in pieces)


def test_times_may_be_anything_that_the_waits_allow() -> None:
    network = chain((5, 5), 1, (Layer(is_pool=True, channels=0, kernel=2, stride=2, pad=0),))
    prepared = prepared_on(network, 1_024)
    run = rung_run(work_of(network), "line_buffered")
    assert run is not None
    found = timetable_of(prepared, run)
    # Without control edges a pixel could be loaded over one that is still read.
    assert not verify(replace(found, edges=()), network).agrees
