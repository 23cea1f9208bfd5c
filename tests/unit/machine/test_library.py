"""The machine library: every file is sound, and its figures are those of its sources."""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from tests.reference_data import ABSENT, REFERENCE_DATA

from tilewright.machine.load import (
    check_machine,
    library_names,
    load_machine,
    machine_path,
    reading_of,
)
from tilewright.machine.model import Machine, Memory, Operand, Sharing

ROOT = Path(__file__).parents[3]
ZIGZAG_FILES = REFERENCE_DATA / "oracle" / "zigzag" / "inputs" / "hardware"
PAGE = ROOT / "docs" / "reference" / "machine-library.md"

ZIGZAG = {
    "ascend_like": "ascend_like",
    "edge_tpu_like": "edge_tpu_like",
    "eyeriss_like": "eyeriss_like",
    "meta_prototype_like": "meta_prototype",
    "tesla_npu_like": "tesla_npu_like",
    "tpu_like": "tpu_like",
}
"""Library name, and name of ZigZag's example file."""

DEAR_REGISTERS = [
    "memories.rf_64B_A.r_cost: a register of 64 B at 125 fJ a bit is dearer than sram_8KB",
    "memories.rf_64B_W.r_cost: a register of 64 B at 125 fJ a bit is dearer than sram_8KB",
]
TRUE_TO_SOURCE = {
    "ascend_like": ["memories.dram.served_dimensions: does not serve D3, D4"],
    "eyeriss_like": DEAR_REGISTERS,
    "row_stationary": DEAR_REGISTERS,
    "seneca": ["links[0]: nothing goes over the link noc"],
}
"""Warnings that stay because the suspicious figure is the source's own."""

PEAK_MACS = {
    "ascend_like": 16 * 16 * 2 * 2,
    "edge_tpu_like": 8 * 8 * 4 * 4,
    "ethos_u55_128": 2 * 1 * 8 * 8,  # output micro-block, and 8 input channels for each element
    "ethos_u55_256": 2 * 2 * 8 * 8,
    "ethos_u65_256": 2 * 2 * 8 * 8,
    "eyeriss_like": 14 * 12,
    "meta_prototype_like": 32 * 2 * 4 * 4,
    "npe8": 8,
    "npu_30xx": 4 * 5 * 256,  # clusters, DPUs, MACs each
    "npu_37xx": 2 * 1 * 2048,
    "npu_40xx": 6 * 1 * 2048,
    "row_stationary": 14 * 12,
    "seneca": 8,
    "tesla_npu_like": 32 * 32 * 4,
    "tpu_like": 32 * 32,
}

SCRATCHPAD_BYTES = {
    "ascend_like": {"sram_1MB_A": 1_048_576, "sram_1MB_W": 1_048_576},
    "edge_tpu_like": {"sram_32KB": 32_768, "sram_2MB": 2_097_152},
    "ethos_u55_128": {"sram": 2_097_152},
    "ethos_u55_256": {"sram": 2_097_152},
    "ethos_u65_256": {"sram": 393_216},  # Dedicated_Sram, 384 KiB
    "eyeriss_like": {"sram_64KB": 65_536, "sram_1M": 1_048_576},
    "meta_prototype_like": {"sram_1MB_A": 1_048_576, "sram_1MB_W": 1_048_576},
    "npe8": {"input_memory": 16_384, "weight_output_memory": 16_384},
    "npu_30xx": {"cmx": 917_504},
    "npu_37xx": {"cmx": 1_982_464},
    "npu_40xx": {"cmx": 1_474_560},
    "row_stationary": {"sram_64KB": 65_536, "sram_1M": 1_048_576},
    "seneca": {"data_memory": 262_144},  # 8 blocks of 256 kbit
    "tesla_npu_like": {"sram_1MB_A": 1_048_576, "sram_1MB_W": 1_048_576},
    "tpu_like": {"sram_2MB": 2_097_152},
}

EXTERNAL = {
    **{name: ["dram"] for name in (*ZIGZAG, "row_stationary")},
    "ethos_u55_128": ["flash"],
    "ethos_u55_256": ["flash"],
    "ethos_u65_256": ["dram"],
    "npe8": [],
    "npu_30xx": ["ddr"],
    "npu_37xx": ["ddr"],
    "npu_40xx": ["ddr"],
    "seneca": [],
}

CLOCK_HZ = {
    "ethos_u55_128": 500_000_000,
    "ethos_u55_256": 500_000_000,
    "ethos_u65_256": 1_000_000_000,
    "npu_30xx": 700_000_000,
    "npu_37xx": 1_300_000_000,
    "npu_40xx": 1_700_000_000,
    "seneca": 500_000_000,
}

all_machines = pytest.mark.parametrize("name", library_names())


@cache
def machine(name: str) -> Machine:
    return load_machine(name)


def memory(name: str, memory_name: str) -> Memory:
    return next(m for m in machine(name).memories if m.name == memory_name)


def names_with_role(name: str, role: str) -> list[str]:
    return [m.name for m in machine(name).memories if m.role == role]


def widths(of: Memory) -> dict[tuple[Operand, str], tuple[int, int]]:
    """Width and granularity in bits, by operand and direction."""
    return {use: (p.bits_per_cycle, p.granularity_bits) for p in of.ports for use in p.uses}


def test_the_library_has_the_promised_machines() -> None:
    assert library_names() == tuple(sorted(PEAK_MACS))


@all_machines
def test_every_machine_is_sound(name: str) -> None:
    problems = check_machine(reading_of(name))
    assert [p.message for p in problems if p.severity == "error"] == []
    expected = TRUE_TO_SOURCE.get(name, [])
    found = [p.message for p in problems]
    assert len(found) == len(expected)
    assert all(text.startswith(want) for text, want in zip(found, expected, strict=True))


@all_machines
def test_every_file_is_in_our_format_and_describes_itself(name: str) -> None:
    document = reading_of(name).document
    assert document.data["tilewright"] == 1
    assert document.data["name"] == name
    assert re.fullmatch(r"[A-Z0-9][^.]{20,}\.", machine(name).description)


@all_machines
def test_peak_macs_a_cycle(name: str) -> None:
    assert sum(core.count * core.array.units for core in machine(name).cores) == PEAK_MACS[name]


@all_machines
def test_scratchpads_are_those_of_the_source(name: str) -> None:
    found = {m.name: m.size_bytes for m in machine(name).memories if m.role == "scratchpad"}
    assert found == SCRATCHPAD_BYTES[name]


@all_machines
def test_external_memories_are_those_of_the_source(name: str) -> None:
    assert names_with_role(name, "external") == EXTERNAL[name]


@all_machines
def test_clock(name: str) -> None:
    assert machine(name).clock_hz == CLOCK_HZ.get(name)


@all_machines
def test_no_local_memory_stands_above_a_scratchpad(name: str) -> None:
    """Mappings rule below, addresses above: on every operand's way the roles change once."""
    rank = {"local": 0, "scratchpad": 1, "external": 2}
    for core in machine(name).cores:
        for operand in ("I1", "I2", "O"):
            ranks = [rank[m.role] for m in machine(name).chain(core, operand)]
            assert ranks == sorted(ranks)
            assert ranks.count(1) <= 1


@all_machines
def test_ports_of_one_direction_are_equally_wide(name: str) -> None:
    """A cost is per access of a full width: at different widths a bit would cost differently."""
    for m in machine(name).memories:
        assert len({p.bits_per_cycle for p in m.ports if p.kind != "write"}) == 1
        assert len({p.bits_per_cycle for p in m.ports if p.kind != "read"}) <= 1


@pytest.mark.skipif(not ZIGZAG_FILES.is_dir(), reason=ABSENT)
@pytest.mark.parametrize("name", ZIGZAG)
def test_figures_equal_zigzags(name: str) -> None:
    theirs = load_machine(ZIGZAG_FILES / f"{ZIGZAG[name]}.yaml")
    (core,), (their_core,) = machine(name).cores, theirs.cores
    assert core.array.dims == their_core.array.dims
    assert core.array.mac_pj == their_core.array.mac_pj
    assert core.array.input_bits == their_core.array.input_bits
    assert core.array.systolic_dims == their_core.array.systolic_dims
    assert [m.name for m in core.memories] == [m.name for m in their_core.memories]
    for own, other in zip(core.memories, their_core.memories, strict=True):
        assert own.size_bits == other.size_bits
        assert own.operands == other.operands
        assert own.served_dims == other.served_dims
        assert own.read_pj == other.read_pj
        assert own.write_pj == other.write_pj
        assert widths(own) == widths(other)
        assert [(p.name, p.kind) for p in own.ports] == [(p.name, p.kind) for p in other.ports]
        assert own.forces_double_buffering == other.forces_double_buffering


def test_zigzags_edge_tpu_by_hand() -> None:
    """Holds where ZigZag's files are absent."""
    sram = memory("edge_tpu_like", "sram_2MB")
    assert (sram.size_bits, sram.read_pj, sram.write_pj) == (16_777_216, 416.16, 378.4)
    assert widths(sram)["I1", "tl"] == (2048, 64)
    assert widths(memory("edge_tpu_like", "dram"))["O", "fl"] == (64, 64)
    assert machine("edge_tpu_like").cores[0].array.dims == (
        ("D1", 8),
        ("D2", 8),
        ("D3", 4),
        ("D4", 4),
    )


@pytest.mark.parametrize(
    ("name", "banks", "input_granule", "accumulator_granule", "micro_block"),
    [
        ("ethos_u55_128", 24, 4, 8, 2 * 1 * 8),
        ("ethos_u55_256", 48, 8, 16, 2 * 2 * 8),
        ("ethos_u65_256", 48, 8, 16, 2 * 2 * 8),
    ],
)
def test_shram_is_cut_into_whole_granules(
    name: str, banks: int, input_granule: int, accumulator_granule: int, micro_block: int
) -> None:
    """2 banks of 1 KiB serve the output unit and 2 the look-up tables, the rest is shared out."""
    inputs, accumulators = memory(name, "shram_inputs"), memory(name, "shram_accumulators")
    input_banks, input_rest = divmod(inputs.size_bytes, 1024)
    accumulator_banks, accumulator_rest = divmod(accumulators.size_bytes, 1024)
    assert input_rest == accumulator_rest == 0
    assert input_banks % input_granule == accumulator_banks % accumulator_granule == 0
    spare = banks - 4 - input_banks - accumulator_banks
    assert 0 <= spare < input_granule
    assert widths(inputs)["I1", "tl"][0] == 8 * micro_block
    assert widths(accumulators)["O", "fl"][0] == 32 * micro_block
    assert inputs.forces_double_buffering
    assert accumulators.forces_double_buffering


@pytest.mark.parametrize(
    ("name", "sram_bytes_a_cycle", "outer", "outer_bytes_a_cycle"),
    [
        ("ethos_u55_128", 8, "flash", 1),
        ("ethos_u55_256", 8, "flash", 1),
        ("ethos_u65_256", 16, "dram", 12),
    ],
)
def test_ethos_memories_have_velas_bandwidths(
    name: str, sram_bytes_a_cycle: int, outer: str, outer_bytes_a_cycle: int
) -> None:
    assert memory(name, "sram").alignment_bytes == 16
    assert widths(memory(name, "sram"))["I1", "tl"][0] == 8 * sram_bytes_a_cycle
    assert widths(memory(name, outer))["I2", "tl"][0] == 8 * outer_bytes_a_cycle


@pytest.mark.parametrize("name", ["ethos_u55_128", "ethos_u55_256"])
def test_on_the_u55_only_weights_are_in_flash(name: str) -> None:
    flash = memory(name, "flash")
    assert flash.operands == ("I2",)
    assert all(port.kind == "read" for port in flash.ports)
    assert [(e.kind, e.memory, e.operands) for e in machine(name).sources] == [
        ("host", "sram", ("I1",))
    ]
    assert [(e.kind, e.memory, e.operands) for e in machine(name).sinks] == [
        ("host", "sram", ("O",))
    ]


@pytest.mark.parametrize(
    ("name", "ports", "queues", "bits_a_cycle", "setup_cycles"),
    [
        ("ethos_u55_128", 1, 1, 64, 64),
        ("ethos_u55_256", 1, 1, 64, 64),
        ("ethos_u65_256", 1, 2, 128, 500),
        ("npu_30xx", 1, 1, 8 * 32 * 700 // 700, round(956 * 0.7)),
        ("npu_37xx", 2, 1, 8 * 32 * 975 // 1300, round(956 * 1.3)),
        ("npu_40xx", 2, 2, 8 * 64 * 971 // 1700, round(300 * 1.7)),
    ],
)
def test_dma(name: str, ports: int, queues: int, bits_a_cycle: int, setup_cycles: int) -> None:
    (engine,) = machine(name).dma
    found = (engine.ports, engine.queues, engine.bits_per_cycle, engine.setup_cycles)
    assert found == (ports, queues, bits_a_cycle, setup_cycles)


@pytest.mark.parametrize(
    ("name", "clusters", "dram_mb_per_s", "dpu_mhz", "shaves_a_cluster"),
    [
        ("npu_30xx", 4, 20_000, 700, 4),
        ("npu_37xx", 2, 27_000, 1300, 2),
        ("npu_40xx", 6, 136_000, 1700, 2),
    ],
)
def test_npu_clusters_share_a_dram(
    name: str, clusters: int, dram_mb_per_s: int, dpu_mhz: int, shaves_a_cluster: int
) -> None:
    (core,) = machine(name).cores
    assert core.count == clusters
    assert core.vector is not None
    assert core.vector.lanes == 8 * shaves_a_cluster
    (ddr,) = machine(name).shared
    assert widths(ddr)["I1", "tl"][0] == 8 * dram_mb_per_s // dpu_mhz
    assert memory(name, "cmx").alignment_bytes == 64


def test_a_mac_of_seneca_costs_what_its_instructions_cost() -> None:
    """Load, MUL and ADD take 3.7 + 1.4 + 1.4 = 6.5 pJ in Table 8; the model comes within 3 %."""
    registers, data = memory("seneca", "registers"), memory("seneca", "data_memory")
    assert registers.read_pj == pytest.approx(16 * 0.012)
    assert data.read_pj == pytest.approx(128 * 0.180)
    assert data.write_pj == pytest.approx(128 * 0.220)
    # Of the registers: three operands read, the state and the loaded weight written.
    mac = machine("seneca").cores[0].array.mac_pj
    model = mac + data.read_pj * 16 / 128 + 3 * registers.read_pj + 2 * registers.write_pj
    assert model == pytest.approx(6.64)
    assert model == pytest.approx(6.5, rel=0.03)


def test_seneca_leaks_and_talks_over_a_mesh() -> None:
    assert memory("seneca", "registers").leakage_pw_per_bit == 600
    assert memory("seneca", "data_memory").leakage_pw_per_bit == 10
    (noc,) = machine("seneca").links
    assert (noc.kind, noc.multicast) == ("mesh", True)
    assert noc.pj_per_bit_hop == pytest.approx(2 / 32)
    assert [(e.kind, e.operands) for e in machine("seneca").sources] == [
        ("noc", ("I1",)),
        ("rom", ("I2",)),
    ]
    assert [(e.kind, e.operands) for e in machine("seneca").sinks] == [("noc", ("O",))]


def test_npe8_can_be_filled_and_emptied() -> None:
    inputs, rest = memory("npe8", "input_memory"), memory("npe8", "weight_output_memory")
    assert set(widths(inputs)) == {("I1", "fh"), ("I1", "tl")}
    assert set(widths(rest)) == {("I2", "fh"), ("I2", "tl"), ("O", "tl"), ("O", "fl"), ("O", "th")}
    assert {w for m in (inputs, rest) for w in widths(m).values()} == {(128, 128)}
    assert (inputs.read_pj, inputs.write_pj) == (rest.read_pj, rest.write_pj) == (10.5, 12.8)
    assert machine("npe8").cores[0].array.mac_pj == 0.04
    ends = [(e.kind, e.memory) for e in machine("npe8").sources + machine("npe8").sinks]
    assert ends == [
        ("sensor", "input_memory"),
        ("rom", "weight_output_memory"),
        ("noc", "weight_output_memory"),
    ]


def test_row_stationary_is_eyeriss_like_with_the_wires_of_its_dataflow() -> None:
    (own,), (other,) = machine("row_stationary").cores, machine("eyeriss_like").cores
    assert own.array == other.array
    assert memory("row_stationary", "rf_64B_A").sharing == (
        Sharing(operand="I1", terms=(("D1", 1), ("D2", 1))),
    )
    assert [replace(m, sharing=()) for m in own.memories] == [
        replace(m, sharing=()) for m in other.memories
    ]


@pytest.mark.parametrize("name", ZIGZAG)
def test_what_comes_from_zigzag_shares_as_zigzag_counts(name: str) -> None:
    (core,) = machine(name).cores
    for operand in ("I1", "O"):
        lowest = machine(name).chain(core, operand)[0]
        assert lowest.sharing == (Sharing(operand=operand, is_union=True),)


def test_the_files_name_no_place_outside_the_repository() -> None:
    for name in library_names():
        text = machine_path(name).read_text(encoding="utf-8")
        assert not re.search(r"(^|[\s`])/\w|\.\./", text), name


def documented_row(m: Machine) -> str:
    """The machine's line of the table in the documentation."""
    core = m.cores[0]
    array = " x ".join(str(size) for _, size in core.array.dims)
    cores = f"{core.count} x ({array})" if core.count > 1 else array
    clock = f"{m.clock_hz / 1e6:,.0f} MHz" if m.clock_hz else "not given"
    pads = "; ".join(_memory_text(x) for x in m.memories if x.role == "scratchpad")
    outer = "; ".join(
        f"`{x.name}` {max(p.bits_per_cycle for p in x.ports)} bit ({', '.join(x.operands)})"
        for x in m.memories
        if x.role == "external"
    )
    peak = f"{core.count * core.array.units:,}"
    mac = f"{core.array.mac_pj:g} pJ"
    return f"| `{m.name}` | {cores} | {peak} | {clock} | {pads} | {outer or 'none'} | {mac} |"


def _memory_text(x: Memory) -> str:
    return f"`{x.name}` {x.size_bytes // 1024:,} KiB ({', '.join(x.operands)})"


def test_the_documentation_shows_the_figures(request: pytest.FixtureRequest) -> None:
    """`--update-golden` rewrites the table's lines."""
    rows = [documented_row(machine(name)) for name in library_names()]
    text = PAGE.read_text(encoding="utf-8")
    block = re.compile(r"(?<=\| --- \| --- \| --- \| --- \| --- \| --- \| --- \|\n)(\| `.*\|\n)*")
    if request.config.getoption("--update-golden"):
        text = block.sub(lambda _: "".join(f"{row}\n" for row in rows), text, count=1)
        PAGE.write_text(text, encoding="utf-8")
    found = block.search(text)
    assert found is not None
    assert found[0].splitlines() == rows
