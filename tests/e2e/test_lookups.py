"""Look-ups in data that are larger than the scratchpad."""

from pathlib import Path

import numpy as np
import pytest
from tests.onnx_models import Given, model, node, saved
from tests.reference_data import ABSENT, REFERENCE_DATA
from tests.small_machines import Small, small_machine

import tilewright
from tilewright.errors import InfeasibleError
from tilewright.network.graph import Network
from tilewright.network.zoo import layers
from tilewright.planner import PlanOptions, plan
from tilewright.replay.verify import verify

MOVENET = REFERENCE_DATA / "models" / "coral_movenet_single_pose_lightning_ptq.tflite"


def rows_of_data(rows: int, columns: int) -> Network:
    """Four rows, at places that come as an input, of data that come as another one."""
    net = layers.draft("looked_up", 8)
    data = layers.given(net, "data", (rows, columns))
    places = layers.given(net, "places", (4,))
    return net.finish(layers.look_up(net, "gather", data, places))


def test_data_larger_than_the_scratchpad_are_searched_some_columns_at_a_time() -> None:
    # 64 x 96 B of data; of each column, 64 B of data and 4 B of the result have to be there.
    network = rows_of_data(64, 96)
    machine = small_machine(Small(size_bytes=1024))
    made = plan(network, machine, PlanOptions())
    columns = [
        end - start
        for task in made.program.tasks
        if task.kind == "compute"
        for dim, start, end in task.tile
        if dim == network.ops[0].dims[1][0]
    ]
    assert sum(columns) == 96
    assert max(columns) <= 1024 // 68
    assert verify(made.timetable, network).agrees


def test_data_of_which_not_even_a_column_fits_are_searched_some_rows_at_a_time() -> None:
    network = rows_of_data(200, 3)
    made = plan(network, small_machine(Small(size_bytes=160)), PlanOptions())
    assert len([task for task in made.program.tasks if task.op == "gather"]) > 200 * 3 // 160
    assert made.peak_bytes["bank"] <= 160
    assert verify(made.timetable, network).agrees


def test_what_is_found_has_to_fit() -> None:
    # A row of 4 elements at least, their places, and the row of the data in which they may be.
    with pytest.raises(InfeasibleError, match="gather"):
        plan(rows_of_data(2048, 3), small_machine(Small(size_bytes=8)), PlanOptions())


@pytest.mark.parametrize("cores", [1, 2])
def test_of_a_table_outside_only_the_rows_that_are_found_are_read(cores: int) -> None:
    # 4 rows of 16 B of a table of 1,024 rows, at 4 places of 4 B; the rows are the result.
    net = layers.draft("table", 8)
    table = layers.constant(net, "table", (1024, 16))
    places = layers.given_indices(net, "places", (4,))
    made = plan(
        net.finish(layers.look_up(net, "gather", table, places)), small_machine(Small(cores=cores))
    )
    assert made.traffic_bytes["ddr"] == (4 * 16 + 4 * 4, 4 * 16)
    assert made.cycles < 1024


@pytest.mark.slow
@pytest.mark.skipif(not MOVENET.exists(), reason=ABSENT)
def test_movenet_runs_in_64_kib_and_replays() -> None:
    network = tilewright.load_network(MOVENET)
    machine = tilewright.load_machine("ethos_u65_256")
    options = PlanOptions(smaller_tasks=0, memory_limits=(("sram", 64 * 1024),))
    made = plan(network, machine, options)
    assert verify(made.timetable, network).agrees


@pytest.mark.slow
@pytest.mark.skipif(not MOVENET.exists(), reason=ABSENT)
def test_heads_that_come_late_leave_room_for_each_other() -> None:
    # Op by op in the order of the file the heads alone hold 412,880 B at once.
    network = tilewright.load_network(MOVENET)
    machine = tilewright.load_machine("ethos_u55_128")
    options = PlanOptions(smaller_tasks=0, memory_limits=(("sram", 384 * 1024),))
    made = plan(network, machine, options)
    assert made.peak_bytes["sram"] <= 384 * 1024
    assert verify(made.timetable, network).agrees


def test_known_places_along_two_axes_come_from_a_memory_that_only_gives(tmp_path: Path) -> None:
    # 5 pairs of places; `seneca` gets its constants from a memory that no op reads directly.
    gather = node("GatherND", ["x", "places"], ["y"])
    places = np.array([[0, 1], [2, 2], [1, 0], [0, 0], [2, 1]])
    proto = model([gather], {"x": Given(shape=(3, 3, 4))}, ["y"], {"places": places})
    network = tilewright.load_network(saved(proto, tmp_path))
    made = tilewright.plan(network, tilewright.load_machine("seneca"))
    assert verify(made.timetable, network).agrees
