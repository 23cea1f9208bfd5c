"""What is legal and looks like a mistake: each fires on one change to a file without any."""

import pytest
from tests.machine_builder import Data, memory, messages, sound_machine

EVERY = ["I1", "I2", "O"]


def with_bank(changes: Data) -> Data:
    data = sound_machine()
    data["memories"]["bank"] |= changes
    return data


def test_the_sound_machine_is_not_suspicious() -> None:
    assert messages(sound_machine()) == []


def test_a_port_that_is_never_used_is_suspicious() -> None:
    data = sound_machine()
    spare = {"name": "spare", "type": "read", "bandwidth_max": 128}
    data["memories"]["bank"]["ports"].append(spare)
    assert messages(data) == ["warning: memories.bank.ports: spare: declared and never used"]


def test_a_port_wider_than_its_memory_is_suspicious() -> None:
    data = sound_machine()
    port = data["memories"]["reg"]["ports"][0]
    port["bandwidth_max"] = 8
    assert messages(data) == []
    port["bandwidth_max"] = 9
    assert messages(data) == [
        "warning: memories.reg: a port (both) moves 9 bits a cycle, "
        "more than the 8 bits that the memory has"
    ]


def test_ports_wider_than_their_memory_are_one_warning() -> None:
    data = sound_machine()
    port = {"bandwidth_max": 16}
    data["memories"]["reg"]["ports"] = [
        port | {"name": "in", "type": "write", "allocation": ["I2, fh"]},
        port | {"name": "out", "type": "read", "allocation": ["I2, tl"], "bandwidth_max": 32},
    ]
    (message,) = messages(data)
    assert "a port (in, out) moves 32 bits a cycle" in message


@pytest.mark.parametrize(("cycles", "suspicious"), [(0, False), (1, False), (2, True)])
def test_a_latency_is_suspicious_since_no_model_uses_it(cycles: int, *, suspicious: bool) -> None:
    wanted = f"warning: memories.bank.latency: latency of {cycles} cycles is never used"
    found = messages(with_bank({"latency": cycles}))
    assert [message.startswith(wanted) for message in found] == [True] * suspicious


def test_an_external_memory_that_exists_several_times_is_suspicious() -> None:
    data = sound_machine()
    data["memories"]["ddr"]["served_dimensions"] = ["D1"]
    assert messages(data) == [
        "warning: memories.ddr.served_dimensions: does not serve D2: there are 4 of this memory, "
        "and plans use one"
    ]
    data["memories"]["ddr"]["served_dimensions"] = []
    assert "does not serve D1, D2: there are 32 of this memory" in messages(data)[0]


def test_a_register_dearer_than_a_large_memory_is_suspicious() -> None:
    data = sound_machine()
    data["memories"]["reg"]["r_cost"] = 0.8  # 0.8 pJ / 8 bit: as the bank's 12.8 pJ / 128 bit
    assert messages(data) == []
    data["memories"]["reg"]["r_cost"] = 0.808  # fJ written as pJ would be further off
    assert messages(data) == [
        "warning: memories.reg.r_cost: a register of 1 B at 101 fJ a bit is dearer than "
        "bank (64 KiB) at 100 fJ"
    ]


def test_a_register_below_1_kib_is_one_and_a_memory_of_1_kib_is_not() -> None:
    data = sound_machine()
    data["memories"]["reg"] |= {"size": 8191, "r_cost": 1.6}
    assert "a register of 8191 bit at 200 fJ" in messages(data)[0]
    data["memories"]["reg"] |= {"size": 8192}
    assert messages(data) == [
        "warning: memories.reg.r_cost: energy a bit falls with size: 200 fJ here, "
        "100 fJ in the larger bank"
    ]


def test_energy_that_falls_with_size_is_suspicious_once_a_pair() -> None:
    data = with_bank({"r_cost": 1280})  # 10 pJ a bit, as much as ddr
    assert messages(data) == []
    data = with_bank({"r_cost": 1408})
    assert messages(data) == [
        "warning: memories.bank.r_cost: energy a bit falls with size: 11 pJ here, "
        "10 pJ in the larger ddr"
    ]


def test_memories_of_equal_size_may_differ_in_energy() -> None:
    data = sound_machine()
    memories = data["memories"]
    twin = memory(memories["bank"]["size"], EVERY, width=128, read_pj=6.4)
    data["memories"] = {"bank": memories["bank"], "twin": twin, "ddr": memories["ddr"]}
    assert not [message for message in messages(data) if "energy" in message]


def test_a_memory_without_ports_or_energy_says_nothing_about_a_bit() -> None:
    data = with_bank({"ports": []})
    assert not [message for message in messages(data) if "a bit" in message]
    data = with_bank({"r_cost": 0})
    assert messages(data) == []


def test_keys_that_zigzag_wants_or_does_not_use_are_warned_of() -> None:
    data = sound_machine() | {"dataflows": [{"D1": "K, 8"}]}
    del data["operational_array"]["unit_area"]
    assert messages(data) == [
        "warning: operational_array.unit_area: is missing; ZigZag wants it, here it counts as 0",
        "warning: dataflows: is not used; a mapping file says how ops are unrolled",
    ]
