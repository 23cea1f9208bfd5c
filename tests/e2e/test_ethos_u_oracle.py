"""Agreement with Arm's Vela 5.2.0 (its Python core), operation by operation.

The runs of Vela lie outside the repository: networks on three members of the family, optimised for
speed and for size. Of each operation they tell the shapes, where its feature maps lay and in which
format, the blocks chosen, the elements accessed and the cycles.
"""

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import isclose
from typing import Any, Final

import pytest
from tests.reference_data import ABSENT, REFERENCE_DATA

import tilewright
from tilewright.mapping.ethos_u.accesses import access_cycles, element_accesses
from tilewright.mapping.ethos_u.blocks import BlockChoice, choose_block
from tilewright.mapping.ethos_u.configuration import CONFIGURATIONS, Configuration, Shape
from tilewright.mapping.ethos_u.cycles import SCALE_BYTES, operation_cycles
from tilewright.mapping.ethos_u.operation import (
    Activation,
    Arithmetic,
    Engine,
    Format,
    MemoryTiming,
    Operation,
    Storage,
    Storages,
)
from tilewright.mapping.ethos_u.translate import Tile, TiledOp, tile_steps
from tilewright.network.graph import Network
from tilewright.program.stages import Stage, stages_of
from tilewright.program.stages import storages as storages_of

ORACLE = REFERENCE_DATA / "oracle" / "vela" / "ops"
RUNS = sorted(path.name.removesuffix(".json.gz") for path in ORACLE.glob("*.json.gz"))

WHOLLY_ON_NPU = (
    "coral_mobilenet_v1_0.5_160_quant",
    "coral_mobilenet_v2_1.0_224_quant",
    "mlperf_tiny_ad01_int8",
    "mlperf_tiny_kws_dscnn_int8",
    "mlperf_tiny_resnet8_int8",
    "mlperf_tiny_vww96_int8",
    "tflm_person_detect",
)
"""Networks of which Vela leaves nothing to the CPU, and folds no padding of its own op away."""

pytestmark = pytest.mark.skipif(not RUNS, reason=ABSENT)

ENGINES: Final[dict[str, Engine]] = {
    "ConvolutionMxN": "convolution",
    "ConvolutionDepthWise": "depthwise",
    "VectorProduct": "vector_product",
    "Pooling": "pooling",
    "ReduceSum": "reduce_sum",
    "ElementWise": "elementwise",
}
ARITHMETIC: Final[dict[str, Arithmetic]] = {
    "Mul": "product",
    "Add": "addition",
    "Sub": "addition",
    "MaxPool": "maximum",
}
FORMATS: Final[dict[str, Format]] = {"NHWC": "linear", "NHCWB16": "bricks"}
# Vela's system configurations Ethos_U55_High_End_Embedded and Ethos_U65_Client_Server.
MEMORIES: Final = {
    "u55": {
        "Sram": MemoryTiming("Sram", Fraction(8), 32, 32, 32),
        "OffChipFlash": MemoryTiming("OffChipFlash", Fraction(1), 128, 64, 64),
    },
    "u65": {
        "Sram": MemoryTiming("Sram", Fraction(16), 32, 32, 32),
        "Dram": MemoryTiming("Dram", Fraction(12), 128, 500, 250),
    },
}
ACCESS_COLUMNS: Final = {
    "Sram": "sram_access",
    "Dram": "dram_access",
    "OffChipFlash": "off_chip_flash_access",
}


def records(run: str) -> tuple[Configuration, list[Any]]:
    told = json.loads(gzip.decompress((ORACLE / f"{run}.json.gz").read_bytes()))
    configuration = CONFIGURATIONS[told["accelerator"].removeprefix("ethos-")]
    return configuration, [op for op in told["ops"] if op["block_type"] != "Dma"]


def shape(sizes: list[int]) -> Shape:
    return Shape(*sizes[1:])


def activation(op: Any) -> Activation:
    if op["lut"]:
        return "table"
    return "clamp" if op["act"] else "none"


def operation(op: Any, sizes: tuple[list[int], list[int]]) -> Operation:
    """An operation of the record, with the sizes of its first input and of its result."""
    return Operation(
        engine=ENGINES[op["block_type"]],
        input=shape(sizes[0]),
        output=shape(sizes[1]),
        second_input=shape(op["ifm2"]) if op["ifm2"] else None,
        input_bits=op["ifm_bits"],
        output_bits=op["ofm_bits"],
        kernel=(op["kernel"][0], op["kernel"][1]),
        stride=(op["stride"][0], op["stride"][1]),
        dilation=(op["dilation"][0], op["dilation"][1]),
        arithmetic=ARITHMETIC.get(op["type"], "other"),
        activation=activation(op),
        upscaling="nearest" if op["resampling"].endswith("NEAREST") else "none",
        has_scalar=op["uses_scalar"],
        is_scaled=op["scaled"],
    )


def storages(op: Any, configuration: Configuration) -> Storages:
    """Where feature maps lay; of a second input it is told only whether it is constant."""
    memories = MEMORIES[configuration.name[:3]]
    query = op["query"]
    source = Storage(memories[query["ifm_area"]], FORMATS[query["ifm_fmt"]])
    return Storages(
        input=source,
        output=Storage(memories[query["ofm_area"]], FORMATS[query["ofm_fmt"]]),
        second_input=Storage(list(memories.values())[1]) if op["ifm2_const"] else source,
        scales=memories[query["const_area"] or "Sram"],
    )


def recorded_block(op: Any) -> BlockChoice:
    return BlockChoice(
        output=shape(op["ofm_block"]),
        input=shape(op["ifm_block"]),
        part_kernel_first=op["partkernel"],
    )


def whole(op: Any) -> Operation:
    return operation(op, (op["query"]["ifm"], op["query"]["ofm"]))


@pytest.mark.parametrize("run", RUNS)
def test_the_same_blocks_are_chosen_for_every_stripe(run: str) -> None:
    configuration, ops = records(run)
    for op in ops:
        stripe = operation(op, (op["stripe_in"], op["stripe"]))
        assert choose_block(stripe, configuration) == recorded_block(op), op["name"]


@pytest.mark.parametrize("run", RUNS)
def test_operations_take_exactly_the_same_cycles(run: str) -> None:
    configuration, ops = records(run)
    for op in ops:
        block, lies = recorded_block(op), storages(op, configuration)
        cycles = operation_cycles(whole(op), block, configuration, lies)
        assert cycles == op["raw_op_cycles"], op["name"]


@pytest.mark.parametrize("run", RUNS)
def test_operations_access_the_same_elements(run: str) -> None:
    configuration, ops = records(run)
    for op in ops:
        lies = storages(op, configuration)
        found = element_accesses(whole(op), recorded_block(op), lies)
        told = [found.input, found.second_input, found.output, found.weights, found.scales]
        assert told == op["access"][:5], op["name"]


@pytest.mark.parametrize("run", RUNS)
def test_memories_are_busy_as_long_with_feature_maps(run: str) -> None:
    configuration, ops = records(run)
    for op in with_known_places(ops):
        lies = storages(op, configuration)
        busy = dict.fromkeys(MEMORIES[configuration.name[:3]], 0.0)
        for memory, cycles in access_cycles(whole(op), recorded_block(op), configuration, lies):
            busy[memory.name] += cycles
        told = {name: op["cyc"][ACCESS_COLUMNS[name]] for name in busy}
        assert all(isclose(busy[name], told[name], rel_tol=1e-9) for name in busy), op["name"]


@pytest.mark.parametrize("run", RUNS)
def test_weights_that_stream_keep_their_memory_busy_as_long(run: str) -> None:
    configuration, ops = records(run)
    for op in ops:
        if op["wbuf"] or not op["enc_weights"] or "Flash" not in op.get("w_area", ""):
            continue
        lies = storages(op, configuration)
        streams = replace(lies, weights=lies.scales)
        found = dict(access_cycles(whole(op), recorded_block(op), configuration, streams))
        *_, weights, scales = op["access"][:5]
        # What Vela reads is encoded, all but the scales.
        encoded = (op["enc_weights"] - SCALE_BYTES * scales) / op["w_orig"]
        told = op["cyc"]["off_chip_flash_access"] - SCALE_BYTES * scales
        ours = found[lies.scales] - SCALE_BYTES * scales
        assert isclose(ours * encoded, told, rel_tol=1e-9), op["name"]
        assert ours == weights


def with_known_places(ops: list[Any]) -> Iterator[Any]:
    """Operations of which it is told where all lay, and whose weights were copied beforehand."""
    for op in ops:
        two_maps = op["ifm2"] is not None and not op["ifm2_const"]
        if not two_maps and (op["wbuf"] or not op["enc_weights"]):
            yield op


@pytest.mark.parametrize("name", WHOLLY_ON_NPU)
def test_whole_ops_are_translated_to_the_same_operations(name: str) -> None:
    _, ops = records(f"{name}__legacy__u55-256__perf-default")
    network = tilewright.load_network(str(REFERENCE_DATA / "models" / f"{name}.tflite"))
    found: Counter[Operation] = Counter()
    for stage in left_stages(network):
        of, *fused = (TiledOp(op=op, network=network) for op in (stage.op, *stage.fused))
        tile = Tile(of=of, fused=tuple(fused), lengths=stage.op.sizes)
        for step in tile_steps(tile):
            found[comparable(step.operation)] += step.times
    assert found == Counter(comparable(whole(op)) for op in ops)


def left_stages(network: Network) -> list[Stage]:
    """The stages of a network without those that only say where elements lie."""
    return storages_of(network, stages_of(network, network.ops, joins_on_array=True))[1]


def comparable(found: Operation) -> Operation:
    """On 32-bit elements all two-input arithmetic takes equally long, and is not told apart."""
    wide = found.engine == "elementwise" and found.input_bits == 32
    return found._replace(arithmetic="other", is_scaled=True) if wide else found
