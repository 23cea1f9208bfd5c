"""Every operand is followed from where it enters to the array and back."""

from typing import Any

import pytest
from tests.machine_builder import (
    BANK_BITS,
    DDR_BITS,
    Data,
    hints,
    memory,
    messages,
    reading,
    sound_machine,
)

from tilewright.machine.datapath import data_path_problems

EVERY = ["I1", "I2", "O"]
SOURCES: list[Data] = [
    {"name": "camera", "kind": "sensor", "memory": "bank", "operands": ["I1"], "width": 8},
    {"name": "flash", "kind": "rom", "memory": "bank", "operands": ["I2"]},
]
SINKS: list[Data] = [{"name": "host", "kind": "host", "memory": "bank", "operands": ["O"]}]


def without(name: str, *uses: str) -> Data:
    """The sound machine, a memory of which lacks some uses."""
    data = sound_machine()
    allocation = data["memories"][name]["ports"][0]["allocation"]
    for use in uses:
        allocation.remove(use)
    return data


def on_chip() -> Data:
    """The sound machine without its ddr: the bank is filled by sources and emptied by a sink."""
    data = sound_machine() | {"sources": SOURCES, "sinks": SINKS}
    del data["memories"]["ddr"]
    return data


def test_a_machine_on_which_everything_can_move_has_no_problem() -> None:
    assert list(data_path_problems(reading(sound_machine()))) == []
    assert messages(on_chip()) == []


@pytest.mark.parametrize(
    ("name", "use", "message"),
    [
        ("reg", "I2, tl", "(I2): no `tl` port: weights cannot go down to the array"),
        ("reg", "I2, fh", "(I2): no `fh` port: nothing can fill it with weights from bank"),
        ("bank", "I1, tl", "(I1): no `tl` port: inputs cannot go down to the array"),
        ("bank", "I2, tl", "(I2): no `tl` port: weights cannot go down to reg"),
        ("bank", "I1, fh", "(I1): no `fh` port: nothing can fill it with inputs from ddr"),
        ("bank", "O, fl", "(O): no `fl` port: outputs cannot enter it from the array"),
        ("bank", "O, th", "(O): no `th` port: outputs cannot leave it to ddr"),
        ("ddr", "I1, tl", "(I1): no `tl` port: inputs cannot go down to bank"),
        ("ddr", "O, fl", "(O): no `fl` port: outputs cannot enter it from bank"),
    ],
)
def test_a_direction_without_which_an_operand_is_stuck_is_an_error_and_is_added(
    name: str, use: str, message: str
) -> None:
    data = without(name, use)
    assert messages(data) == [f"memories.{name}.ports {message}"]
    assert hints(data)[-1] == f"add to memories.{name}.ports[0].allocation: '{use}'"


@pytest.mark.parametrize(
    ("name", "use", "message"),
    [
        (
            "bank",
            "O, tl",
            "no `tl` port for O: partial sums cannot be read back, "
            "so each output must be finished before it enters bank",
        ),
        (
            "bank",
            "O, fh",
            "no `fh` port for O: partial sums that went up to ddr cannot come back, "
            "so each output must be finished in bank",
        ),
        (
            "ddr",
            "O, tl",
            "no `tl` port for O: partial sums cannot be read back, "
            "so each output must be finished before it enters ddr",
        ),
    ],
)
def test_partial_sums_that_cannot_come_back_are_a_warning(
    name: str, use: str, message: str
) -> None:
    data = without(name, use)
    assert messages(data) == [f"warning: memories.{name}.ports: {message}"]
    assert hints(data) == [f"add to memories.{name}.ports[0].allocation: '{use}'"]


def test_two_lacks_of_partial_sums_are_one_warning() -> None:
    data = without("bank", "O, tl", "O, fh")
    (message,) = messages(data)
    assert "no `tl` port for O" in message
    assert "no `fh` port for O" in message
    assert hints(data) == [
        "add to memories.bank.ports[0].allocation: 'O, fh'",
        "add to memories.bank.ports[0].allocation: 'O, tl'",
    ]


@pytest.mark.parametrize("use", ["I1, fh", "I2, fh", "O, fh", "O, th"])
def test_nothing_stands_above_an_external_memory(use: str) -> None:
    assert messages(without("ddr", use)) == []


@pytest.mark.parametrize(
    ("use", "message"),
    [
        ("I1, fh", "(I1): no `fh` port: nothing can fill it with inputs from a source outside"),
        ("O, th", "(O): no `th` port: outputs cannot leave it to a sink outside"),
    ],
)
def test_a_top_memory_on_the_chip_needs_a_way_to_the_outside(use: str, message: str) -> None:
    data = on_chip()
    data["memories"]["bank"]["ports"][0]["allocation"].remove(use)
    assert messages(data) == [f"memories.bank.ports {message}"]


@pytest.mark.parametrize(
    ("use", "key", "end"), [("I1, fh", "sources", "sensor"), ("O, th", "sinks", "noc")]
)
def test_a_chip_that_declares_no_outside_can_be_used_without_a_way_there(
    use: str, key: str, end: str
) -> None:
    # As ZigZag's files have it: ops are mapped one at a time, and nothing stands above the top.
    data = on_chip()
    data[key] = [other for other in data[key] if use[0:2].strip(",") not in other["operands"]]
    data["memories"]["bank"]["ports"][0]["allocation"].remove(use)
    found = messages(data)
    assert len(found) == 2
    assert all(message.startswith("warning: ") for message in found)
    assert any(f"no `{use[-2:]}` port" in message for message in found)
    assert any(f"kind: {end}" in hint for hint in hints(data))


def test_outputs_at_the_top_of_a_chip_need_not_come_back_from_above() -> None:
    data = on_chip()
    data["memories"]["bank"]["ports"][0]["allocation"].remove("O, fh")
    assert messages(data) == []


def test_a_memory_that_can_only_be_read_says_so() -> None:
    data = sound_machine()
    data["memories"]["reg"]["ports"] = [
        {"name": "out", "type": "read", "bandwidth_max": 8, "allocation": ["I2, tl"]}
    ]
    (message,) = messages(data)
    assert message.endswith("from bank, and it has no write port at all")
    assert hints(data) == [
        "add to memories.reg.ports: {name: write_I2, type: write, bandwidth_max: 8, "
        "allocation: ['I2, fh']}"
    ]


def test_an_inputs_mixed_up_direction_is_replaced() -> None:
    data = sound_machine()
    data["memories"]["reg"]["ports"][0]["allocation"] = ["I2, fl", "I2, th"]
    (message,) = messages(data)
    assert "so `fh` was meant" in message
    assert "so `tl` was meant" in message
    assert hints(data) == [
        "write memories.reg.ports[0].allocation[0]: 'I2, fh'",
        "write memories.reg.ports[0].allocation[1]: 'I2, tl'",
    ]


def test_a_needless_direction_of_an_input_is_a_warning() -> None:
    data = sound_machine()
    data["memories"]["reg"]["ports"][0]["allocation"].append("I2, th")
    assert messages(data) == [
        "warning: memories.reg.ports (I2): `th` (read to the level above) is for outputs; "
        "weights only come down"
    ]


@pytest.mark.parametrize(("ports", "what"), [(None, "is empty"), ([], "is empty")])
def test_an_empty_list_of_ports_is_one_problem_with_the_whole_list(ports: Any, what: str) -> None:
    data = sound_machine()
    data["memories"]["bank"]["ports"] = ports
    assert messages(data) == [f"memories.bank.ports: {what}, so nothing can enter or leave bank"]
    assert hints(data) == [
        "write memories.bank.ports: [{name: in, type: write, bandwidth_max: 64, allocation: "
        "['I1, fh', 'I2, fh', 'O, fh', 'O, fl']}, {name: out, type: read, bandwidth_max: 64, "
        "allocation: ['I1, tl', 'I2, tl', 'O, tl', 'O, th']}]"
    ]


def test_a_missing_list_of_ports_is_placed_at_its_memory() -> None:
    data = sound_machine()
    del data["memories"]["ddr"]["ports"]
    read = reading(data)
    (problem,) = data_path_problems(read)
    place = read.document.places["memories", "ddr"]
    assert (problem.line, problem.column) == place
    assert problem.message == "memories.ddr.ports: is missing, so nothing can enter or leave ddr"


def test_an_operand_that_no_memory_holds_is_an_error() -> None:
    data = sound_machine()
    data["memories"] = {"ddr": memory(DDR_BITS, ["I1", "O"], width=32, read_pj=320)}
    assert messages(data) == ["memories: none holds I2 (weights), so no op can run"]


def test_weights_that_the_external_memory_does_not_hold_come_from_nowhere() -> None:
    data = sound_machine()
    data["memories"]["ddr"] = memory(DDR_BITS, ["I1", "O"], width=32, read_pj=320)
    assert messages(data) == [
        "weights (I2, top memory bank) come from nowhere: no memory above, no source; "
        "ddr does not hold I2"
    ]
    assert hints(data) == [
        "write sources: [{name: weights, kind: rom, memory: bank, operands: [I2]}]",
        "or let ddr hold I2: add to its operands and ports",
    ]
    assert messages(data | {"sources": [SOURCES[1]]}) == []


def test_a_source_may_fill_any_memory_on_the_way() -> None:
    data = sound_machine()
    data["memories"]["ddr"] = memory(DDR_BITS, ["I1", "O"], width=32, read_pj=320)
    assert messages(data | {"sources": [SOURCES[1] | {"memory": "reg"}]}) == []


@pytest.mark.parametrize(
    ("left_out", "message", "fix"),
    [
        (
            "camera",
            "warning: inputs (I1, top memory bank) come from nowhere: no memory above, no source; "
            "the machine has no external memory",
            "add to sources: {name: input, kind: sensor, memory: bank, operands: [I1]}",
        ),
        (
            "host",
            "warning: outputs (O, top memory bank) have nowhere to go: no memory above, no sink; "
            "the machine has no external memory",
            "write sinks: [{name: result, kind: noc, memory: bank, operands: [O]}]",
        ),
    ],
)
def test_a_machine_on_one_chip_is_warned_of_each_open_end(
    left_out: str, message: str, fix: str
) -> None:
    data = on_chip()
    for key in ("sources", "sinks"):
        data[key] = [end for end in data[key] if end["name"] != left_out]
    assert messages(data) == [message]
    assert hints(data) == [fix]


def test_a_fix_of_an_open_end_does_not_take_a_name_that_is_taken() -> None:
    data = on_chip()
    data["sources"] = [SOURCES[0] | {"name": "weights"}]
    assert hints(data) == [
        "add to sources: {name: weights_bank, kind: rom, memory: bank, operands: [I2]}"
    ]


def test_open_ends_of_several_cores_are_one_problem() -> None:
    sound = sound_machine()
    bank = sound["memories"]["bank"]
    array = sound["operational_array"]
    data = {
        "name": "pair",
        "cores": {
            name: {"operational_array": array, "memories": {f"{name}_bank": bank}}
            for name in ("left", "right")
        },
    }
    found = messages(data)
    assert len(found) == 3  # sources, sinks, and a kind of core that is not used
    assert "left_bank" in found[0]
    assert "right_bank" in found[0]
    assert hints(data)[1] == (
        "write sinks: [{name: result_left_bank, kind: noc, memory: left_bank, operands: [O]}, "
        "{name: result_right_bank, kind: noc, memory: right_bank, operands: [O]}]"
    )


def test_memories_listed_top_down_are_one_warning_with_the_right_order() -> None:
    data = sound_machine()
    data["memories"] = dict(reversed(data["memories"].items()))
    assert messages(data) == [
        "warning: memories are listed top-down: ddr (256 MiB) stands below bank (64 KiB) on the "
        "way of I1, and the first listed is taken as the one next to the array"
    ]
    assert hints(data) == ["write memories in the order: reg, bank, ddr"]


def test_no_order_is_given_that_would_lack_a_memory() -> None:
    data = sound_machine()
    data["memories"] = dict(reversed(data["memories"].items()))
    data["memories"]["reg"]["size"] = 0
    assert messages(data) == ["memories.reg.size: must be more than 0"]


def test_an_order_inside_a_core_is_mended_there() -> None:
    sound = sound_machine()
    memories = sound["memories"]
    data = {
        "name": "one",
        "cores": {
            "a": {
                "operational_array": sound["operational_array"],
                "memories": {"bank": memories["bank"], "reg": memories["reg"]},
            }
        },
        "memories": {"ddr": memories["ddr"]},
    }
    assert hints(data) == ["write cores.a.memories in the order: reg, bank"]


def test_a_shared_memory_smaller_than_a_cores_own_is_asked_about() -> None:
    sound = sound_machine()
    memories = sound["memories"]
    data = {
        "name": "one",
        "cores": {
            "a": {
                "operational_array": sound["operational_array"],
                "memories": {"bank": memories["bank"]},
            }
        },
        "memories": {
            "buffer": memory(8192, EVERY, width=64, read_pj=6.4),
            "ddr": memories["ddr"],
        },
    }
    assert "check both sizes: buffer is shared, and so stands above" in hints(data)


def test_an_external_memory_may_be_smaller_than_the_one_below_it() -> None:
    """A flash beside a large SRAM, say: it stands at the top, is dear, and holds what it holds."""
    data = sound_machine()
    flash = memory(BANK_BITS // 2, EVERY, width=32, read_pj=320.0)
    data["memories"]["ddr"] = flash | {"role": "external"}
    assert messages(data) == []
    order = [data["memories"][name] for name in ("ddr", "bank", "reg")]
    data["memories"] = dict(zip(("ddr", "bank", "reg"), order, strict=True))
    assert hints(data) == ["write memories in the order: reg, bank, ddr"]


def test_memories_of_different_operands_have_no_order_among_them() -> None:
    data = sound_machine()
    data["memories"] = {
        "bank": data["memories"]["bank"] | memory(8192 * 8, ["I1", "O"], width=64, read_pj=6.4),
        "reg": data["memories"]["reg"],
        "ddr": data["memories"]["ddr"],
    }
    assert messages(data) == []
