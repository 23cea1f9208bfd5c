"""What cores have of rows, results and constants, worked out by hand."""

from tests.cascade_cases import prepared
from tests.small_machines import Small, small_machine

from tilewright.network.graph import Network
from tilewright.network.zoo import layers
from tilewright.strategy.kept_sizes import larger_than_believed
from tilewright.strategy.scene import Scene, scene_of


def network() -> Network:
    """A map of 8 x 16 x 16 bytes that two convolutions of windows of 3 x 3 read."""
    net = layers.draft("fork", 8)
    window = layers.square(3, 1, 1)
    data = layers.conv(net, "map", layers.given(net, "x", (1, 8, 16, 16)), 8, window)
    one, other = (layers.conv(net, name, data, 8, window) for name in ("one", "other"))
    return net.finish(layers.add(net, "sum", one, other))


def scene(cores: int) -> Scene:
    found = scene_of(prepared(network(), small_machine(Small(cores=cores))))
    assert found is not None
    return found


def test_two_cores_have_half_of_a_row_and_the_column_beside_it() -> None:
    parts = scene(2).core_parts
    assert [part["OX"] for part in parts.ranges(1, "OY")] == [(0, 8), (8, 16)]
    # Nine of sixteen columns of eight channels are read; eight are made.
    assert parts.row_elements("map", 2, ((1, "OY"), (2, "OY")), "bank") == 9 * 8
    assert parts.made_elements(1, "OY", "bank") == 8 * 8


def test_one_core_has_everything() -> None:
    parts = scene(1).core_parts
    assert parts.row_elements("map", 2, ((1, "OY"), (2, "OY")), "bank") == 16 * 8
    assert parts.made_elements(1, "OY", "bank") == 16 * 8


def test_cores_that_share_columns_have_all_weights() -> None:
    on = scene(2)
    weights = on.constants(1, "OY")[0]
    assert (weights.size_bytes, weights.core_bytes) == (8 * 8 * 9, 8 * 8 * 9)


def test_a_map_that_one_reads_by_rows_and_another_by_columns_is_kept_as_a_whole() -> None:
    on = scene(2)
    # By themselves both are shared out by rows: nine of sixteen.
    assert on.lives["map"].size_bytes == on.kept_bytes("map", {}) == 8 * 9 * 16
    assert on.kept_bytes("map", {1: "OY", 2: "OY"}) == 8 * 16 * 9
    mask = on.mask(["map"])
    assert larger_than_believed(on, mask, {1: "OY", 2: "OY"}) == {}
    assert larger_than_believed(on, mask, {1: "OY"}) == {"map": 8 * 16 * 16}
    assert on.believing({"map": 8 * 16 * 16}).lives["map"].size_bytes == 8 * 16 * 16
