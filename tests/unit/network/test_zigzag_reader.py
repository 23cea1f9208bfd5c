from pathlib import Path

import pytest

from tilewright.document import parse_document
from tilewright.network.counts import macs, weight_bytes
from tilewright.network.graph import Network
from tilewright.network.reading import NetworkReading
from tilewright.network.zigzag_reader import read_zigzag

CONV = """\
- id: {id}
  name: conv
  operator_type: Conv
  equation: O[b][k][oy][ox]+=W[k][c][fy][fx]*I[b][c][iy][ix]
  dimension_relations: [{relations}]
  loop_dims: [B, K, C, {y}, {x}, FY, FX]
  loop_sizes: [1, {k}, {c}, {size}, {size}, 3, 3]
  operand_precision: {{W: 8, I: 8, O: 24, O_final: 8}}
  operand_source: {{I: {source}, W: {id}}}
"""


def conv(number: int, k: int, c: int, size: int, *, source: int, stride: int = 1) -> str:
    relations = f"ix={stride}*ox+1*fx, iy={stride}*oy+1*fy"
    return CONV.format(
        id=number, k=k, c=c, size=size, source=source, relations=relations, y="OY", x="OX"
    )


def scatter(number: int, k: int, c: int, size: int, *, source: int, stride: int = 1) -> str:
    relations = f"ox={stride}*ix+1*fx, oy={stride}*iy+1*fy"
    return CONV.format(
        id=number, k=k, c=c, size=size, source=source, relations=relations, y="IY", x="IX"
    )


def read(text: str) -> NetworkReading:
    return read_zigzag(parse_document(text, "layers.yaml"), "layers")


def network(text: str) -> Network:
    result = read(text).network
    assert result is not None, [str(p) for p in read(text).problems]
    return result


def test_a_convolution_is_counted_and_sized() -> None:
    layers = network(conv(0, 16, 3, 30, source=0))
    (op,) = layers.ops
    # 16 kernels x 3 channels x 30 x 30 positions x 3 x 3 taps
    assert macs(op, layers) == 16 * 3 * 30 * 30 * 9
    assert weight_bytes(layers) == 16 * 3 * 9
    assert op.accumulator_bits == 24
    assert layers.by_name["0.O"].bits == 8
    # 29 steps of 1 and 3 taps: 32 elements along each axis
    assert layers.by_name["0.I"].shape == (1, 3, 32, 32)


def test_a_reader_of_more_than_its_source_makes_has_padding() -> None:
    layers = network(conv(0, 16, 3, 30, source=0) + conv(1, 8, 16, 30, source=0))
    index = layers.ops[1].inputs[0].index
    assert index is not None
    assert layers.ops[1].inputs[0].tensor == "0.O"
    # 32 elements are read where 30 are made: one before, one behind
    assert [i.offset for i in index] == [0, 0, -1, -1]


def test_padding_that_the_file_gives_is_used() -> None:
    text = conv(0, 16, 3, 30, source=0) + "  pr_loop_dims: [IX, IY]\n  padding: [[2, 0], [2, 0]]\n"
    layers = network(text)
    assert layers.by_name["0.I"].shape == (1, 3, 30, 30)
    index = layers.ops[0].inputs[0].index
    assert index is not None
    assert [i.offset for i in index[2:]] == [-2, -2]


def test_a_scatter_nest_counts_only_what_lands_on_an_output() -> None:
    # 32 inputs and 3 taps give 30 outputs: 30 x 3 of the 32 x 3 points of each axis land.
    reading = read(scatter(0, 16, 1, 32, source=0))
    assert reading.network is not None
    (op,) = reading.network.ops
    assert macs(op, reading.network) == 16 * (30 * 3) ** 2 == 129_600
    assert reading.network.by_name["0.O"].shape == (1, 16, 30, 30)
    (warning,) = reading.problems
    assert warning.severity == "warning"
    assert "129,600 MACs" in warning.message
    assert "147,456 points" in warning.message


def indices_of(network: Network) -> list[list[str]]:
    (op,) = network.ops
    return [[str(index) for index in operand.index or ()] for operand in op.operands]


def test_a_scatter_nest_is_the_gather_that_it_undoes() -> None:
    # 31 inputs, 3 taps, stride 2: 15 outputs, which is what the other form says outright.
    scattered = network(scatter(0, 4, 1, 31, source=0, stride=2))
    gathered = network(conv(0, 4, 1, 15, source=0, stride=2))
    assert scattered.ops[0].dims == gathered.ops[0].dims
    assert scattered.ops[0].dims[3:] == (("OY", 15), ("OX", 15), ("FY", 3), ("FX", 3))
    assert indices_of(scattered) == indices_of(gathered)
    assert scattered.tensors == gathered.tensors


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("size", [3, 4, 7, 10])
def test_a_scatter_nest_has_the_points_that_land_on_a_result(size: int, stride: int) -> None:
    layers = network(scatter(0, 1, 1, size, source=0, stride=stride))
    # Input ix meets tap fx in result (ix - fx) / stride, if that is a whole number and the window
    # of that result lies within the inputs.
    landing = [
        (ix, fx)
        for ix in range(size)
        for fx in range(3)
        if (ix - fx) % stride == 0 and ix - fx >= 0 and ix - fx + 3 <= size
    ]
    assert layers.ops[0].points == len(landing) ** 2


def test_what_is_written_of_a_scatter_nest_is_kept() -> None:
    (op,) = network(scatter(0, 4, 1, 31, source=0, stride=2)).ops
    kept = ("B=1", "K=4", "C=1", "IY=31", "IX=31", "FY=3", "FX=3")
    assert op.attribute("zigzag_loops") == kept


def test_padding_of_a_scatter_nest_is_the_gathers() -> None:
    # 14 inputs and 1 + 1 of padding: 16 - 3 + 1 outputs, the first of which begins at -1.
    text = scatter(0, 4, 1, 14, source=0)
    text += "  pr_loop_dims: [OX, OY]\n  padding: [[1, 1], [1, 1]]\n"
    layers = network(text)
    assert layers.by_name["0.O"].shape == (1, 4, 14, 14)
    assert indices_of(layers)[1][2:] == ["OY + FY - 1", "OX + FX - 1"]
    # Of 14 x 3 points 2 read padding, which counts as for any convolution.
    assert macs(layers.ops[0], layers) == 4 * (14 * 3) ** 2


@pytest.mark.parametrize(
    ("equation", "relations"),
    [
        # The result goes along the input's loop itself, too.
        ("O[k][ix][ox]+=W[k][fx]*I[ix]", "ox=1*ix+1*fx"),
        # Two relations share that loop.
        ("O[k][oz][ox]+=W[k][fx]*I[ix]", "ox=1*ix+1*fx, oz=1*ix+1*k"),
    ],
)
def test_what_is_no_convolution_keeps_its_loops(equation: str, relations: str) -> None:
    layers = network(
        f"- id: 0\n  operator_type: Conv\n  equation: {equation}\n"
        f"  dimension_relations: [{relations}]\n  loop_dims: [K, IX, FX]\n"
        "  loop_sizes: [2, 9, 3]\n  operand_precision: {W: 8, I: 8, O: 24, O_final: 8}\n"
    )
    assert layers.ops[0].dims == (("K", 2), ("IX", 9), ("FX", 3))


def test_a_window_longer_than_the_inputs_is_read_as_written() -> None:
    # 2 inputs and 3 taps: no window fits, and 2 + 3 - 1 results of the nest as it stands.
    reading = read(scatter(0, 4, 1, 2, source=0))
    assert reading.network is not None
    assert reading.network.by_name["0.O"].shape == (1, 4, 4, 4)
    (warning,) = reading.problems
    assert warning.severity == "warning"
    assert "longer than they are" in warning.message


def test_a_strided_scatter_nest_is_the_strided_convolution() -> None:
    # floor((31 - 3) / 2) + 1 = 15 outputs with 3 taps each
    layers = network(scatter(0, 4, 1, 31, source=0, stride=2))
    assert layers.by_name["0.O"].shape == (1, 4, 15, 15)
    assert macs(layers.ops[0], layers) == 4 * (15 * 3) ** 2


def test_a_scatter_nest_whose_whole_extent_is_read_is_taken_literally() -> None:
    # The next layer reads 34 = 32 + 3 - 1 elements, so every point lands.
    reading = read(scatter(0, 4, 1, 32, source=0) + conv(1, 2, 4, 32, source=0))
    assert reading.network is not None
    assert reading.problems == ()
    assert reading.network.by_name["0.O"].shape == (1, 4, 34, 34)
    assert macs(reading.network.ops[0], reading.network) == 4 * (32 * 3) ** 2


def test_pools_have_no_weights_and_no_multiplications() -> None:
    text = conv(0, 16, 3, 30, source=0) + (
        "- id: 1\n  operator_type: Pooling\n"
        "  equation: O[b][g][oy][ox]+=W[fx][fy]*I[b][g][iy][ix]\n"
        "  dimension_relations: [ix=2*ox+1*fx, iy=2*oy+1*fy]\n"
        "  loop_dims: [B, G, OY, OX, FX, FY]\n  loop_sizes: [1, 16, 15, 15, 2, 2]\n"
        "  operand_precision: {I: 8, W: 16, O: 16, O_final: 8}\n  operand_source: {I: 0, W: 1}\n"
    )
    layers = network(text)
    pool = layers.ops[1]
    assert pool.kind == "max_pool"
    assert [o.tensor for o in pool.inputs] == ["0.O"]
    assert macs(pool, layers) == 0


def test_layers_may_share_a_name_and_stand_in_any_order() -> None:
    layers = network(conv(7, 8, 16, 28, source=3) + conv(3, 16, 3, 30, source=3))
    assert [op.outputs[0].tensor for op in layers.ops] == ["3.O", "7.O"]
    assert [op.name for op in layers.ops] == ["conv", "conv_2"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (conv(0, 1, 1, 3, source=5), "operand_source: I comes from layer 5, which is not"),
        (conv(0, 1, 1, 3, source=0) * 2, "layer 0: the id stands twice"),
        (conv(0, 1, 1, 3, source=1) + conv(1, 1, 1, 3, source=0), "layers feed each other"),
        (conv(0, 1, 1, 3, source=0).replace("oy+1", "oz+1"), "OZ is no loop"),
        (conv(0, 1, 1, 3, source=0).replace("[iy][ix]", "[iy][iq]"), "index 'iq' is neither"),
        (conv(0, 1, 1, 3, source=0).replace("Conv", "Convolve"), "'Convolve' is not known"),
        (conv(0, 1, 1, 3, source=0).replace(" O_final: 8", ""), "precision of O_final is missing"),
        (conv(0, 1, 1, 3, source=0).replace("+=", "=>"), "cannot be read"),
        (conv(0, 1, 1, 3, source=0).replace("3, 3]", "3]"), "do not match"),
        (conv(0, -1, 1, 3, source=0), "must be 1 or more"),
    ],
)
def test_faults_name_the_layer_and_the_cause(text: str, message: str) -> None:
    reading = read(text)
    assert reading.network is None
    told = "\n".join(map(str, reading.problems))
    assert message in told
    assert all(p.line for p in reading.problems)


def test_all_faults_are_told_at_once_in_file_order() -> None:
    bad = conv(0, 1, 1, 3, source=9) + conv(1, 1, 1, 3, source=8).replace("Conv", "Con")
    problems = read(bad).problems
    assert [p.line for p in problems] == sorted(p.line or 0 for p in problems)
    assert len(problems) == 2


def test_ready_made_file_can_be_loaded_by_path(tmp_path: Path) -> None:
    from tilewright import load_network

    path = tmp_path / "layers.yaml"
    path.write_text(conv(0, 16, 3, 30, source=0), encoding="utf-8")
    assert len(load_network(path).ops) == 1
    assert load_network(path, bits=4).by_name["0.I"].bits == 4
