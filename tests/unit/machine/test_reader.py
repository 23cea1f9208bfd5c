"""From machine files to machines: values, roles, arrays, units, sharing; what a fault hides."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.machine_builder import (
    DDR_BITS,
    Data,
    changed,
    hints,
    machine_of,
    marked,
    memory,
    memory_of,
    messages,
    reading,
    sound_machine,
)

from tilewright.errors import InputError
from tilewright.machine.load import check_machine, load_machine, machine_path, reading_of
from tilewright.machine.model import InMemoryCompute, MemoryRole, Sharing, VectorUnit
from tilewright.machine.sharing import distinct_elements

EVERY = ["I1", "I2", "O"]


def test_a_sound_machine_has_no_problem_and_every_value_of_its_file() -> None:
    data = sound_machine()
    assert messages(data) == []
    machine = machine_of(data)
    (core,) = machine.cores
    assert (machine.name, core.name, core.count) == ("plover", "core", 1)
    assert core.array.dims == (("D1", 8), ("D2", 4))
    assert core.array.units == 32
    assert core.array.mac_pj == 0.05
    assert [m.name for m in core.memories] == ["reg", "bank", "ddr"]
    bank = core.memories[1]
    assert (bank.size_bits, bank.size_bytes) == (524_288, 65_536)
    assert (bank.read_pj, bank.write_pj) == (12.8, 12.8)
    assert bank.served_dims == ("D1", "D2")
    assert bank.ports[0].bits_per_cycle == bank.ports[0].granularity_bits == 128
    assert [m.name for m in machine.chain(core, "I1")] == ["bank", "ddr"]
    assert [m.name for m in machine.chain(core, "I2")] == ["reg", "bank", "ddr"]


def test_the_same_figures_with_units_make_the_same_machine() -> None:
    assert machine_of(marked(sound_machine())).cores == machine_of(sound_machine()).cores


@pytest.mark.parametrize(
    ("size_bits", "served", "role"),
    [
        (8_192, ["D1", "D2"], "scratchpad"),  # 1 KiB over all dims
        (8_191, ["D1", "D2"], "local"),
        (8_192, ["D1"], "local"),  # one per column
        (8_192, [], "local"),
        (134_217_728, ["D1", "D2"], "scratchpad"),  # 16 MiB, but ddr stands above
    ],
)
def test_a_memory_between_is_a_scratchpad_if_it_serves_every_dim_and_has_1_kib(
    size_bits: int, served: list[str], role: MemoryRole
) -> None:
    data = changed(sound_machine(), "memories/bank/size", size_bits)
    data = changed(data, "memories/bank/served_dimensions", served)
    assert memory_of(data, "bank").role == role


@pytest.mark.parametrize(
    ("size_bits", "served", "role"),
    [
        (134_217_728, ["D1", "D2"], "external"),  # 16 x 2^20 x 8
        (134_217_727, ["D1", "D2"], "scratchpad"),
        (134_217_728, [], "external"),
        (8_192, [], "scratchpad"),  # a source fills it, a sink empties it
        (8_191, ["D1", "D2"], "local"),  # what they bring passes through registers
    ],
)
def test_a_top_memory_is_external_from_16_mib_on_and_else_a_scratchpad_from_1_kib_on(
    size_bits: int, served: list[str], role: MemoryRole
) -> None:
    data = sound_machine()
    data["memories"] = {"top": memory(size_bits, EVERY, width=8, read_pj=1)}
    data = changed(data, "memories/top/served_dimensions", served)
    assert memory_of(data, "top").role == role


def test_being_at_the_top_for_one_operand_is_enough() -> None:
    data = sound_machine()
    data["memories"]["ddr"] = memory(DDR_BITS, ["I1", "O"], width=32, read_pj=320)
    data["memories"]["bank"]["size"] = 134_217_728
    assert memory_of(data, "bank").role == "external"  # nothing above it holds I2


def test_the_top_is_found_also_where_memories_are_listed_top_down() -> None:
    data = sound_machine()
    data["memories"] = dict(reversed(data["memories"].items()))
    roles = {m.name: m.role for m in machine_of(data).memories}
    assert roles == {"ddr": "external", "bank": "scratchpad", "reg": "local"}


def test_a_role_that_is_written_is_kept() -> None:
    data = changed(sound_machine(), "memories/bank/role", "local")
    assert memory_of(data, "bank").role == "local"


def test_an_energy_per_bit_counts_for_the_widest_port_of_its_kind() -> None:
    data = sound_machine()
    bank = data["memories"]["bank"]
    bank["ports"] = [
        {"name": "in", "type": "write", "bandwidth_max": 32, "allocation": ["I1, fh", "O, fl"]},
        {"name": "out", "type": "read", "bandwidth_max": 64, "allocation": ["I1, tl", "O, th"]},
        {"name": "slow", "type": "read", "bandwidth_max": 8, "allocation": ["I2, tl"]},
    ]
    bank |= {"r_cost": "20 fJ/bit", "w_cost": "0.5 pJ/bit"}
    read = reading(data).machine
    assert read is not None
    found = read.memories[1]
    assert found.read_pj == pytest.approx(1.28)  # 64 bit x 0.02 pJ
    assert found.write_pj == pytest.approx(16.0)  # 32 bit x 0.5 pJ


def test_optional_values_of_a_memory_arrive_in_their_units() -> None:
    data = sound_machine()
    data["memories"]["bank"] |= {
        "alignment": "64 B",
        "banks": 4,
        "latency": 3,
        "leakage_pw_per_bit": 0.5,
        "area": 0.25,
        "force_double_buffering": True,
    }
    bank = memory_of(data, "bank")
    assert (bank.alignment_bytes, bank.banks, bank.latency_cycles) == (64, 4, 3)
    assert (bank.leakage_pw_per_bit, bank.area_mm2) == (0.5, 0.25)
    assert bank.forces_double_buffering


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf")])
def test_an_area_is_a_number_from_0_up(value: float) -> None:
    (message,) = messages(changed(sound_machine(), "memories/bank/area", value))
    assert message.startswith("memories.bank.area: ")


def test_a_name_is_one_line_of_plain_text() -> None:
    data = changed(sound_machine(), "memories/bank/ports/0/name", "a\nb")
    assert messages(data) == ["memories.bank.ports[0].name: must be one line of plain text"]


def test_what_a_link_or_a_memory_does_not_say_has_its_stated_default() -> None:
    data = sound_machine() | {"links": [{"name": "l", "kind": "bus", "width": 8}]}
    (link,) = machine_of(data).links
    assert (link.hop_cycles, link.pj_per_bit_hop, link.rows, link.columns) == (1, 0.0, 1, 1)
    assert (link.connects, link.multicast) == ((), False)
    bank = memory_of(data, "bank")
    assert (bank.latency_cycles, bank.area_mm2, bank.leakage_pw_per_bit) == (1, 0.0, 0.0)
    assert (bank.alignment_bytes, bank.banks, bank.sharing) == (1, 1, ())
    assert not bank.forces_double_buffering


def test_an_alignment_that_is_no_whole_byte_is_refused() -> None:
    data = changed(sound_machine(), "memories/bank/alignment", 12)
    assert messages(data) == ["memories.bank.alignment: 12 bit are no whole bytes"]
    assert hints(data) == ["write memories.bank.alignment: 16"]


def test_clock_and_vector_unit_are_read() -> None:
    data = sound_machine() | {"clock": "1.3 GHz", "vector_unit": {"lanes": 16, "energy": "90 fJ"}}
    machine = machine_of(data)
    assert machine.clock_hz == 1_300_000_000
    assert machine.cores[0].vector == VectorUnit(lanes=16, op_pj=0.09)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("clock", 500),
        ("operational_array/unit_energy", 0.05),
        ("memories/bank/size", 65536),
        ("memories/bank/r_cost", 2),
        ("memories/bank/ports/0/bandwidth_max", 64),
        ("memories/bank/alignment", 64),
    ],
)
def test_in_a_marked_file_a_figure_without_its_unit_is_refused(path: str, value: float) -> None:
    data = changed(marked(sound_machine()), path, value)
    (message,) = messages(data)
    assert message.endswith(f": {value} has no unit")


@pytest.mark.parametrize(
    ("array", "wanted"),
    [
        ({"dimensions": ["D1", "D2"], "sizes": [8]}, "2 dimensions and 1 sizes do not match"),
        ({"dimensions": ["D1", "D1"], "sizes": [8, 4]}, "D1 stands here a second time"),
        ({"dimensions": [], "sizes": []}, "dimensions: must not be empty"),
        ({"systolic_dimensions": ["D3"]}, "there is no array dimension 'D3'"),
        ({"imc_type": "analog"}, "belongs to an array with `is_imc: true`"),
        ({"unit_energy": None}, "every multiplication would cost nothing"),
        ({"input_precision": [8]}, "must have at least 2 items"),
        ({"sizes": [8, 0]}, "sizes[1]: must be 1 or more"),
    ],
)
def test_an_array_that_cannot_be_is_refused(array: Data, wanted: str) -> None:
    data = sound_machine()
    data["operational_array"] |= array
    found = [message for message in messages(data) if message.startswith("operational_array")]
    assert len(found) == 1
    assert wanted in found[0]


def test_an_array_that_computes_in_memory_needs_no_energy_of_a_unit() -> None:
    data = sound_machine()
    data["operational_array"] = {
        "dimensions": ["D1", "D2"],
        "sizes": [8, 4],
        "is_imc": True,
        "imc_type": "analog",
        "input_precision": [8, 4],
        "bit_serial_precision": 2,
        "adc_resolution": 6.0,
    }
    array = machine_of(data).cores[0].array
    assert array.in_memory == InMemoryCompute(kind="analog", bit_serial_bits=2, adc_bits=6)
    assert array.input_bits == (8, 4)
    assert messages(data) == []


@pytest.mark.parametrize("key", ["imc_type", "bit_serial_precision", "input_precision"])
def test_an_array_in_memory_is_asked_for_what_it_lacks(key: str) -> None:
    data = sound_machine()
    data["operational_array"] |= {
        "is_imc": True,
        "imc_type": "digital",
        "input_precision": [8, 8],
        "bit_serial_precision": 1,
    }
    del data["operational_array"][key]
    wanted = "is missing; an array that computes in memory needs it"
    del data["operational_array"]["unit_energy"]
    assert messages(data) == [f"operational_array.{key}: {wanted}"]


@pytest.mark.parametrize("bits", [1.5, float("nan"), float("inf")])
def test_bits_of_an_array_in_memory_are_whole(bits: float) -> None:
    data = sound_machine()
    data["operational_array"] |= {
        "is_imc": True,
        "imc_type": "digital",
        "input_precision": [8, 8],
        "bit_serial_precision": bits,
    }
    del data["operational_array"]["unit_energy"]
    (message,) = messages(data)
    assert message.startswith("operational_array.bit_serial_precision: ")


def test_a_fault_at_the_top_does_not_hide_those_further_down() -> None:
    data = sound_machine() | {"clok": "1 GHz", "dma": "fast"}
    data["memories"]["bank"]["ports"][0]["allocation"].remove("I1, fh")
    assert [message.partition(":")[0] for message in messages(data)] == [
        "memories.bank.ports (I1)",
        "clok",
        "dma",
    ]


def test_where_even_the_memories_are_none_the_array_is_still_looked_at() -> None:
    data = sound_machine() | {"memories": ["bank"]}
    data["operational_array"]["sizes"] = [8]
    assert messages(data) == [
        "operational_array.sizes: 2 dimensions and 1 sizes do not match",
        "memories: expected a mapping (`key: value` lines)",
    ]


@pytest.mark.parametrize("key", ["memories", "operational_array"])
def test_a_machine_without_array_or_memories_is_refused(key: str) -> None:
    data = sound_machine()
    del data[key]
    (message,) = messages(data)
    assert message.startswith(f"{key}: is missing")


def test_a_memory_that_cannot_be_read_is_not_reported_as_absent() -> None:
    data = sound_machine()
    data["memories"]["ddr"]["sise"] = data["memories"]["ddr"].pop("size")
    assert messages(data) == ["memories.ddr.sise: unknown key"]


def test_only_operands_of_an_unread_memory_are_left_alone() -> None:
    data = sound_machine()
    data["memories"]["reg"]["size"] = -1
    data["memories"]["bank"]["ports"][0]["allocation"].remove("I1, fh")
    assert reading(data).unread_operands == {"I2"}
    assert [message.partition(":")[0] for message in messages(data)] == [
        "memories.reg.size",
        "memories.bank.ports (I1)",
    ]


@pytest.mark.parametrize("operands", ["I1", ["I1", "W"], None, [[]]])
def test_where_even_the_operands_are_unreadable_nothing_is_followed(operands: Any) -> None:
    data = changed(sound_machine(), "memories/reg/operands", operands)
    assert reading(data).unread_operands == {"I1", "I2", "O"}


def test_a_memory_that_holds_an_operand_twice_is_refused() -> None:
    data = changed(sound_machine(), "memories/reg/operands", ["I2", "I2"])
    assert messages(data) == ["memories.reg.operands[1]: I2 stands here a second time"]


def test_a_dimension_that_the_array_has_not_is_refused_where_it_stands() -> None:
    data = changed(sound_machine(), "memories/reg/served_dimensions", ["D1", "D3"])
    assert messages(data) == ["memories.reg.served_dimensions[1]: there is no array dimension 'D3'"]


@pytest.mark.parametrize("key", ["r_cost", "w_cost"])
@pytest.mark.parametrize(("with_units", "value"), [(False, "1.0"), (True, "1.0 pJ")])
def test_a_missing_energy_is_asked_for_in_the_units_of_the_file(
    key: str, value: str, *, with_units: bool
) -> None:
    data = marked(sound_machine()) if with_units else sound_machine()
    del data["memories"]["bank"][key]
    assert messages(data) == [f"memories.bank.{key}: is missing: every access would cost nothing"]
    assert hints(data) == [f"write memories.bank.{key}: {value}"]


@pytest.mark.parametrize(
    "cost",
    [-1, True, "2", [2], float("inf"), float("nan"), pytest.param(10**300, id="googol")],
)
def test_an_energy_that_is_none_is_refused(cost: Any) -> None:
    data = changed(sound_machine(), "memories/bank/r_cost", cost)
    (message,) = messages(data)
    assert message.startswith("memories.bank.r_cost: ")


def test_diagonal_sharing_needs_15_elements_on_an_8_by_8_array() -> None:
    data = sound_machine()
    data["operational_array"]["sizes"] = [8, 8]
    data["memories"]["bank"]["sharing"] = {"I1": "D1 + D2", "O": "3*D1"}
    sharing = memory_of(data, "bank").sharing
    assert sharing == (
        Sharing(operand="I1", terms=(("D1", 1), ("D2", 1))),
        Sharing(operand="O", terms=(("D1", 3),)),
    )
    sizes = {"D1": 8, "D2": 8}
    assert [distinct_elements(s, sizes) for s in sharing] == [15, 8]  # 0..14; 0, 3, .., 21


def test_a_dimension_named_twice_is_summed() -> None:
    data = changed(sound_machine(), "memories/bank/sharing", {"I1": "D1 + 2*D1"})
    (sharing,) = memory_of(data, "bank").sharing
    assert sharing.terms == (("D1", 3),)
    assert distinct_elements(sharing, {"D1": 8}) == 8


@pytest.mark.parametrize(
    ("sharing", "wanted"),
    [
        ({"I1": "D1 - D2"}, "sharing.I1: 'D1 - D2' is no sum of array dimensions"),
        ({"I1": "D3"}, "sharing.I1: 'D3' is no sum of array dimensions"),
        ({"I1": ""}, "sharing.I1: '' is no sum of array dimensions"),
        ({"I1": "100*D1"}, "sharing.I1: '100*D1' is no sum of array dimensions"),
        ({"W": "D1"}, "sharing.W: this memory holds no 'W'"),
    ],
)
def test_sharing_along_nothing_is_refused(sharing: Data, wanted: str) -> None:
    (message,) = messages(changed(sound_machine(), "memories/bank/sharing", sharing))
    assert message.startswith(f"memories.bank.{wanted}")


@given(
    st.dictionaries(
        st.sampled_from(["D1", "D2", "D3"]),
        st.tuples(st.integers(0, 12), st.integers(1, 7)),
        min_size=1,
    )
)
def test_distinct_elements_are_those_that_counting_finds(
    dims: dict[str, tuple[int, int]],
) -> None:
    sharing = Sharing(operand="I1", terms=tuple((d, factor) for d, (factor, _) in dims.items()))
    sizes = {dim: size for dim, (_, size) in dims.items()}
    factors = [factor for factor, _ in dims.values()]
    positions = product(*(range(size) for _, size in dims.values()))
    counted = {sum(f * x for f, x in zip(factors, at, strict=True)) for at in positions}
    assert distinct_elements(sharing, sizes) == len(counted)


def test_loading_refuses_errors_alone_and_accepts_warnings(tmp_path: Path) -> None:
    path = tmp_path / "twice.yaml"
    text = (
        "name: one\nname: two\noperational_array:\n  {unit_energy: 1, unit_area: 1, "
        "dimensions: [D1], sizes: [2]}\nmemories:\n  top: {size: SIZE, r_cost: 1, w_cost: 1, "
        "operands: [I1, I2, O], served_dimensions: [D1]}\n"
    )
    path.write_text(text.replace("SIZE", "8192"))
    assert load_machine(path).name == "two"
    assert load_machine(str(path)).source == str(path)
    path.write_text(text.replace("SIZE", "-1"))
    with pytest.raises(InputError) as caught:
        load_machine(path)
    (problem,) = caught.value.problems
    assert problem.message == "memories.top.size: must be more than 0"
    assert [p.severity for p in check_machine(reading_of(path))] == ["error", "warning"]


@pytest.mark.parametrize("name", ["", "no_such_machine", "x" * 300, "a\0b"])
def test_a_name_that_is_neither_file_nor_in_the_library_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="neither a file nor a name of the library"):
        load_machine(name)


@pytest.mark.parametrize("name", ["none.yaml", "none.yml", "here/none", "x" * 300 + ".yaml"])
def test_what_looks_like_a_path_is_taken_as_one(name: str) -> None:
    assert machine_path(name) == Path(name)
    with pytest.raises(InputError, match="cannot be read"):
        load_machine(name)
