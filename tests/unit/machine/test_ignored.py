"""What a file declares and plans do not use: warned of by `check`, and told by every plan."""

from copy import deepcopy

import pytest
from tests.machine_builder import Data, machine_of, marked, memory, messages, sound_machine

from tilewright.errors import InfeasibleError
from tilewright.machine.ignored import ignored_lines
from tilewright.machine.load import load_machine
from tilewright.mapping.network import map_network
from tilewright.network.load import load_network
from tilewright.planner import plan
from tilewright.program.places import places_of

EVERY = ["I1", "I2", "O"]


def told(data: Data) -> list[str]:
    """What `check` warns of; a plan must assume the same, if it leaves something out."""
    found = [message.removeprefix("warning: ") for message in messages(data)]
    lines = list(ignored_lines(machine_of(data)))
    assert set(lines) <= set(places_of(machine_of(data)).assumptions)
    for line in lines:
        places, _, why = line.partition(": ")
        assert {f"{place}: {why}" for place in places.split(", ")} <= set(found)
    return found


def four_cores() -> Data:
    data = marked(sound_machine()) | {"core_count": 4}
    data["memories"]["ddr"]["shared"] = True
    return data


def link(**changes: object) -> Data:
    mesh = {"name": "noc", "kind": "mesh", "width": "64 bit", "connects": ["core"]}
    return four_cores() | {"links": [mesh | {"rows": 2, "columns": 2} | changes]}


def test_a_machine_of_which_all_is_used_assumes_nothing() -> None:
    assert told(marked(sound_machine())) == []


@pytest.mark.parametrize("changes", [{}, {"width": "1 bit", "hop_cycles": 1_000_000}])
def test_a_mesh_of_whatever_speed_is_not_used(changes: Data) -> None:
    assert told(link(**changes)) == [
        "links[0]: nothing goes over the link noc: DMA engines move everything"
    ]


def test_a_link_that_connects_nothing_is_suspicious() -> None:
    assert "links[0].connects: is empty, so the link connects nothing" in told(link(connects=[]))


def test_a_mesh_has_as_many_places_as_it_connects() -> None:
    found = told(link(rows=5, columns=7))
    assert "links[0].rows: 5 x 7 = 35 places for 4 to connect" in found
    assert "links[0].rows: a ring has no rows and columns" in told(link(kind="ring"))


def hierarchy() -> Data:
    """L3, L2 of 512 KiB and L1 of 64 KiB, each with an engine of its own below it."""
    data = sound_machine()
    data["memories"] = {
        "reg": data["memories"]["reg"],
        "l1": memory(8 * 64 * 1024, EVERY, width=128, read_pj=12.8),
        "l2": memory(8 * 512 * 1024, EVERY, width=64, read_pj=25.6),
        "l3": data["memories"]["ddr"],
    }
    data = marked(data)
    outer = {"name": "outer", "width": "32 bit", "routes": [["l3", "l2"], ["l2", "l3"]]}
    inner = {"name": "inner", "width": "64 bit", "routes": [["l2", "l1"], ["l1", "l2"]]}
    return data | {"dma": [outer, inner]}


def test_a_second_level_of_scratchpads_is_said_to_be_left_to_mappings() -> None:
    assert told(hierarchy()) == [
        "memories.l1: is a second level of scratchpads for I1, I2, O: buffers lie in l2; here, "
        "data come and go as mappings say, without transfers, addresses and engines",
        "dma[1]: is never used: wider engines serve its routes, or none joins two with buffers",
    ]


def test_other_kinds_of_core_are_not_used() -> None:
    data = marked(sound_machine())
    ddr = data["memories"].pop("ddr")
    inside = {key: data.pop(key) for key in ("operational_array", "memories")}
    renamed = deepcopy(inside)
    renamed["memories"] = {f"small_{name}": m for name, m in inside["memories"].items()}
    data |= {"cores": {"large": inside, "small": renamed}, "memories": {"ddr": ddr}}
    assert told(data) == [
        "cores.small: is not used: only cores of the kind 'large', the first listed, compute"
    ]


def test_ends_beside_an_external_memory_are_not_used() -> None:
    data = marked(sound_machine())
    camera = {"name": "camera", "kind": "sensor", "memory": "bank", "operands": ["I1"]}
    radio = {"name": "radio", "kind": "rom", "memory": "bank", "operands": ["O"]}
    assert told(data | {"sources": [camera], "sinks": [radio]}) == [
        "sources[0]: is not used for I1: inputs come from ddr",
        "sinks[0]: is not used for O: results go to ddr",
        "sinks[0].kind: a rom takes no results",
    ]


def test_of_two_memories_outside_the_upper_one_is_used() -> None:
    data = marked(sound_machine())
    data["memories"]["ddr"]["role"] = "external"
    data["memories"]["flash"] = deepcopy(data["memories"]["ddr"])
    assert told(data) == ["memories.ddr: is not used for I1, I2, O: all of it lies in flash above"]


@pytest.mark.parametrize(
    ("memory_name", "key", "value", "why"),
    [
        ("bank", "latency", 3, "latency of 3 cycles is never used"),
        ("bank", "banks", 4, "banks are not told apart"),
        ("bank", "burst", "16 B", "is not used: only a `core_model` asks for it"),
        ("bank", "read_latency", 4, "is not used: only a `core_model` asks for it"),
        ("ddr", "write_latency", 4, "is not used: only a `core_model` asks for it"),
        ("reg", "alignment", "8 B", "is not used: only buffers"),
        ("bank", "force_double_buffering", True, "plans buffer twice where that pays"),
        ("bank", "double_buffering_support", True, "is not used; `force_double_buffering` is"),
        ("bank", "auto_cost_extraction", True, "is not used: the costs are given"),
        ("bank", "mem_type", "dram", "dram says nothing: the role is scratchpad"),
        ("ddr", "mem_type", "sram", "sram says nothing: the role is external"),
        ("reg", "bypass", ["I2"], "nothing can be read past it"),
    ],
)
def test_a_key_that_says_nothing_is_told(
    memory_name: str, key: str, value: object, why: str
) -> None:
    data = marked(sound_machine())
    data["memories"][memory_name][key] = value
    (line,) = told(data)
    assert line.startswith(f"memories.{memory_name}.{key}: {why}")


def test_a_memory_type_that_agrees_with_the_role_is_not_told() -> None:
    data = marked(sound_machine())
    for name, kind in (("reg", "rf"), ("bank", "sram"), ("ddr", "dram")):
        data["memories"][name]["mem_type"] = kind
    assert told(data) == []


def test_a_scratchpad_of_which_there_are_several_is_used_once() -> None:
    data = marked(sound_machine())
    data["memories"]["bank"] |= {"served_dimensions": ["D1"], "role": "scratchpad"}
    (line,) = told(data)
    assert line.startswith("memories.bank.served_dimensions: does not serve D2: there are 4 of")


def test_more_than_two_queues_are_not_used() -> None:
    data = marked(sound_machine()) | {"dma": [{"name": "d", "width": "32 bit", "queues": 3}]}
    assert told(data) == [
        "dma[0].queues: of the queues two are used: one for what comes in, one for all else"
    ]


def test_many_cores_do_not_exchange_data() -> None:
    data = four_cores() | {"core_count": 17}
    (line,) = told(data)
    assert line.startswith("core_count: with more than 16 cores, nothing is moved")
    assert told(data | {"core_count": 16}) == []


def test_few_bits_beside_the_array_that_all_units_share_are_suspicious() -> None:
    data = marked(sound_machine())
    data["memories"]["reg"]["size"] = "256 bit"
    data["memories"]["reg"]["served_dimensions"] = ["D1", "D2"]
    assert told(data) == [
        "memories.reg.served_dimensions: all 32 units share these 256 bits, 8 each"
    ]
    data["memories"]["reg"]["served_dimensions"] = []
    assert told(data) == []


def test_the_order_of_memories_is_named_where_nothing_can_be_planned() -> None:
    data = marked(sound_machine())
    bank, ddr = data["memories"]["bank"], data["memories"]["ddr"]
    bank["role"] = "scratchpad"
    data["memories"] = {"ddr": ddr, "bank": bank, "reg": data["memories"]["reg"]}
    machine = machine_of(data)
    why = "memories are listed top-down: ddr (256 MiB) stands below bank (64 KiB) on the way of I1"
    for refuse in (plan, map_network):
        with pytest.raises(InfeasibleError) as refused:
            refuse(load_network("lenet5", bits=16), machine)
        first = refused.value.problems[0]
        assert first.message.startswith(why)
        assert first.hint == "write memories in the order: reg, bank, ddr"
        assert len(refused.value.problems) > 1


def test_seneca_says_that_nothing_goes_over_its_network() -> None:
    (line,) = ignored_lines(load_machine("seneca"))
    assert line == "links[0]: nothing goes over the link noc: DMA engines move everything"


def test_wires_above_a_memory_that_serves_the_units_already_are_not_used() -> None:
    data = marked(sound_machine())
    data["memories"]["ddr"]["sharing"] = {"I1": "D1 + D2", "I2": "D1 + D2"}
    data["memories"]["bank"]["sharing"] = {"I2": "D1 + D2"}  # I2's registers serve D1 alone
    assert told(data) == [
        "memories.ddr.sharing.I1: is not used for I1: units along D1, D2 take it from bank",
        "memories.ddr.sharing.I2: is not used for I2: units along D1, D2 take it from reg, bank",
    ]
