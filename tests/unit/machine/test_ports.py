"""Ports in ZigZag's two dialects, and what is said about those that cannot be."""

from typing import Any

import pytest
from ruamel.yaml import YAML
from tests.machine_builder import Data, hints, machine_of, messages, reading, sound_machine

from tilewright.document.file_model import read_model
from tilewright.machine.files import OldMemoryFile
from tilewright.machine.model import Direction, Port
from tilewright.machine.ports import declared_ports, flow_entry, suggested_entry

OLD_DIALECT = """\
name: snipe
operational_array: {unit_energy: 0.05, unit_area: 1, dimensions: [D1, D2], sizes: [8, 4]}
memories:
  acc:
    size: 48
    r_bw: 24
    w_bw: 16
    r_cost: 0.02
    w_cost: 0.03
    r_port: 2
    w_port: 1
    rw_port: 0
    operands: [O]
    ports:
      - {fh: w_port_1, tl: r_port_1, fl: w_port_1, th: r_port_2}
    served_dimensions: [D2]
  bank:
    size: 524288
    r_bw: 256
    w_bw: 256
    min_r_granularity: 64
    min_w_granularity: 64
    r_cost: 20
    w_cost: 22
    r_port: 1
    w_port: 0
    rw_port: 1
    operands: [I1, I2, O]
    ports:
      - {fh: rw_port_1, tl: r_port_1}
      - {fh: rw_port_1, tl: rw_port_1}
      - {fh: rw_port_1, tl: r_port_1, fl: rw_port_1, th: r_port_1}
    served_dimensions: [D1, D2]
  ddr:
    size: 10000000000
    r_bw: 64
    w_bw: 64
    r_cost: 700
    w_cost: 750
    r_port: 0
    w_port: 0
    rw_port: 1
    operands: [I1, I2, O]
    ports:
      - {tl: rw_port_1}
      - {tl: rw_port_1}
      - {tl: rw_port_1, fl: rw_port_1}
    served_dimensions: [D1, D2]
"""
# read ports have the read width and granule, write ports the write ones, read-write ports the read
# ones; where no granule is given it is the width
NEW_DIALECT = """\
name: snipe
operational_array: {unit_energy: 0.05, unit_area: 1, dimensions: [D1, D2], sizes: [8, 4]}
memories:
  acc:
    size: 48
    r_cost: 0.02
    w_cost: 0.03
    operands: [O]
    ports:
      - {name: r_port_1, type: read, bandwidth_max: 24, allocation: ["O, tl"]}
      - {name: r_port_2, type: read, bandwidth_max: 24, allocation: ["O, th"]}
      - {name: w_port_1, type: write, bandwidth_max: 16, allocation: ["O, fh", "O, fl"]}
    served_dimensions: [D2]
  bank:
    size: 524288
    r_cost: 20
    w_cost: 22
    operands: [I1, I2, O]
    ports:
      - name: r_port_1
        type: read
        bandwidth_min: 64
        bandwidth_max: 256
        allocation: ["I1, tl", "O, tl", "O, th"]
      - name: rw_port_1
        type: read_write
        bandwidth_min: 64
        bandwidth_max: 256
        allocation: ["I1,fh", "I2 , fh", "I2, tl", "O, fh", "O, fl"]
    served_dimensions: [D1, D2]
  ddr:
    size: 10000000000
    r_cost: 700
    w_cost: 750
    operands: [I1, I2, O]
    ports:
      - {name: rw_port_1, type: read_write, bandwidth_max: 64,
         allocation: ["I1, tl", "I2, tl", "O, tl", "O, fl"]}
    served_dimensions: [D1, D2]
"""


def parsed(text: str) -> Data:
    data = YAML(typ="safe", pure=True).load(text)
    assert isinstance(data, dict)
    return data


def old_machine() -> Data:
    return parsed(OLD_DIALECT)


def test_both_dialects_give_the_same_machine() -> None:
    assert messages(parsed(OLD_DIALECT)) == []
    assert messages(parsed(NEW_DIALECT)) == []
    assert machine_of(parsed(OLD_DIALECT)).cores == machine_of(parsed(NEW_DIALECT)).cores


def test_a_port_has_the_width_and_granule_of_its_kind() -> None:
    acc, bank, _ = machine_of(old_machine()).memories
    assert [(p.name, p.kind, p.bits_per_cycle, p.granularity_bits) for p in acc.ports] == [
        ("r_port_1", "read", 24, 24),
        ("r_port_2", "read", 24, 24),
        ("w_port_1", "write", 16, 16),
    ]
    assert bank.ports[1] == Port(
        name="rw_port_1",
        kind="read_write",
        bits_per_cycle=256,
        granularity_bits=64,
        uses=(("I1", "fh"), ("I2", "fh"), ("I2", "tl"), ("O", "fh"), ("O", "fl")),
    )
    assert bank.port("O", "th") == bank.ports[0]
    assert bank.port("I1", "th") is None


def test_the_width_of_write_ports_says_nothing_without_one() -> None:
    data = old_machine()
    data["memories"]["bank"]["w_bw"] = 128
    assert machine_of(data).memories[1].ports[1].bits_per_cycle == 256
    assert messages(data) == [
        "warning: memories.bank.w_bw: is not used: without a write port, that of a port that does "
        "both counts"
    ]


def test_a_granule_is_never_wider_than_its_port() -> None:
    data = old_machine()
    data["memories"]["bank"]["min_r_granularity"] = 512
    assert machine_of(data).memories[1].ports[0].granularity_bits == 256


def with_entry(position: int, entry: dict[str, str]) -> Data:
    data = old_machine()
    data["memories"]["bank"]["ports"][position] = entry
    return data


@pytest.mark.parametrize(
    ("entry", "message", "fix"),
    [
        (
            {"fh": "w_port_2", "tl": "r_port_1"},
            "port 'w_port_2' is not declared (declared: r_port_1, rw_port_1), "
            "so nothing can enter it from above",
            ["write memories.bank.w_port: 2"],
        ),
        (
            {"fh": "rw_port_1", "tl": "r_port_3"},
            "port 'r_port_3' is not declared (declared: r_port_1, rw_port_1), "
            "so nothing can go down to the array",
            ["write memories.bank.r_port: 3"],
        ),
        (
            {"fh": "r_port_1", "tl": "r_port_1"},
            "fh is written from the level above, and 'r_port_1' cannot do that",
            ["write memories.bank.ports[0].fh: rw_port_1"],
        ),
        (  # declaring r_port_2 would not help: it could not be written
            {"fh": "r_port_2", "tl": "r_port_1"},
            "port 'r_port_2' is not declared (declared: r_port_1, rw_port_1), "
            "so nothing can enter it from above",
            ["write memories.bank.ports[0].fh: rw_port_1"],
        ),
        *(
            (
                {"fh": name, "tl": "r_port_1"},
                f"port {name!r} is not declared (declared: r_port_1, rw_port_1), "
                "so nothing can enter it from above",
                ["write memories.bank.ports[0].fh: rw_port_1"],
            )
            for name in ("w_port_0", "w_port_01", "w_port_²", "w_port_1000", "input", "")
        ),
    ],
)
def test_a_port_that_is_not_there_or_cannot_do_it_gets_the_one_fix(
    entry: dict[str, str], message: str, fix: list[str]
) -> None:
    data = with_entry(0, entry)
    (found,) = [m for m in messages(data) if not m.startswith("warning")]
    assert found.partition(": ")[2] == message
    assert hints(data)[: len(fix)] == fix


def test_where_no_port_can_do_it_one_is_declared() -> None:
    data = old_machine()
    data["memories"]["acc"] |= {"w_port": 0}
    data["memories"]["acc"]["ports"] = [
        {"fh": "r_port_1", "tl": "r_port_1", "fl": "r_port_1", "th": "r_port_2"}
    ]
    assert messages(data) == [
        "memories.acc.ports[0].fh: fh is written from the level above, "
        "and 'r_port_1' cannot do that",
        "memories.acc.ports[0].fl: fl is written from the level below, "
        "and 'r_port_1' cannot do that",
    ]
    assert hints(data) == [
        "write memories.acc.w_port: 1",
        "write memories.acc.ports[0].fh: w_port_1",
        "write memories.acc.w_port: 1",
        "write memories.acc.ports[0].fl: w_port_1",
    ]


def test_several_undeclared_ports_ask_for_the_highest_count_each_time() -> None:
    data = old_machine()
    data["memories"]["bank"]["ports"] = [
        {"fh": "rw_port_1", "tl": "r_port_4"},
        {"fh": "rw_port_1", "tl": "r_port_2"},
        {"fh": "rw_port_1", "tl": "r_port_1", "fl": "rw_port_1", "th": "r_port_1"},
    ]
    assert [hint for hint in hints(data) if "r_port:" in hint] == [
        "write memories.bank.r_port: 4",
        "write memories.bank.r_port: 4",
    ]


def test_a_direction_that_is_none_is_named() -> None:
    data = with_entry(0, {"fh": "rw_port_1", "tl": "r_port_1", "down": "r_port_1"})
    assert messages(data) == ["memories.bank.ports[0].down: no such direction"]
    assert hints(data) == ["directions: fh, tl, fl, th"]


def test_more_entries_than_operands_are_refused() -> None:
    data = old_machine()
    data["memories"]["acc"]["ports"].append({"fh": "w_port_1"})
    assert messages(data) == ["memories.acc.ports[1]: there are only 1 operands"]


def test_a_missing_count_of_read_write_ports_is_a_warning() -> None:
    data = old_machine()
    del data["memories"]["acc"]["rw_port"]
    assert messages(data) == [
        "warning: memories.acc.rw_port: is missing; ZigZag wants it, here it counts as 0"
    ]


def test_the_entry_tells_the_dialect_where_the_counts_are_left_out() -> None:
    data = old_machine()
    for key in ("r_bw", "w_bw", "r_port", "w_port", "rw_port"):
        del data["memories"]["acc"][key]
    assert messages(data) == [
        f"memories.acc.{key}: is missing" for key in ("r_bw", "r_port", "w_bw", "w_port")
    ]


def test_counts_beside_ports_of_the_new_dialect_are_one_fault() -> None:
    data = parsed(NEW_DIALECT)
    data["memories"]["acc"] |= {"r_bw": 24, "rw_port": 0}
    assert messages(data) == [
        "memories.acc: r_bw, rw_port count ports, but `ports` names each with its bandwidth"
    ]


def with_allocation(allocation: list[str], kind: str = "read_write") -> Data:
    data = sound_machine()
    port = data["memories"]["bank"]["ports"][0]
    port |= {"allocation": allocation, "type": kind}
    return data


ALL_USES = ["I1, fh", "I1, tl", "I2, fh", "I2, tl", "O, fh", "O, tl", "O, fl", "O, th"]


@pytest.mark.parametrize(
    ("text", "message", "fix"),
    [
        (
            "W, tl",
            "this memory holds I1, I2, O and no 'W'",
            "correct the operand, or add it to the operands of the memory",
        ),
        ("I1, up", "no such direction: 'up'", "directions: fh, tl, fl, th"),
        ("O", "the direction is missing", "directions: fh, tl, fl, th"),
        (
            "",
            "this memory holds I1, I2, O and no ''",
            "correct the operand, or add it to the operands of the memory",
        ),
    ],
)
def test_an_allocation_that_says_nothing_is_refused(text: str, message: str, fix: str) -> None:
    data = with_allocation([*ALL_USES, text])
    assert messages(data) == [f"memories.bank.ports[0].allocation[8]: {message}"]
    assert hints(data) == [fix]


def test_a_misspelt_direction_is_taken_for_the_one_that_is_left() -> None:
    data = with_allocation(["I1, fh", "I1, down", *ALL_USES[2:]])
    assert messages(data) == ["memories.bank.ports[0].allocation[1]: no such direction: 'down'"]
    assert hints(data) == ["write memories.bank.ports[0].allocation[1]: 'I1, tl'"]


def test_a_direction_that_another_port_serves_is_not_left() -> None:
    data = with_allocation(["I1, down", *ALL_USES[2:]])
    data["memories"]["bank"]["ports"].append(
        {
            "name": "more",
            "type": "read_write",
            "bandwidth_max": 128,
            "allocation": ["I1, fh", "I1, tl"],
        }
    )
    assert messages(data) == ["memories.bank.ports[0].allocation[0]: no such direction: 'down'"]
    assert hints(data) == ["directions: fh, tl, fl, th"]


def test_a_direction_on_a_port_that_cannot_do_it_is_told_once() -> None:
    data = with_allocation([use for use in ALL_USES if use[-2:] in ("tl", "th")], "write")
    data["memories"]["bank"]["ports"].append(
        {
            "name": "in",
            "type": "write",
            "bandwidth_max": 128,
            "allocation": [use for use in ALL_USES if use[-2:] in ("fh", "fl")],
        }
    )
    found = messages(data)
    assert found[0] == (
        "memories.bank.ports[0].allocation[0]: tl (read to the level below) on a write port"
    )
    assert len(found) == 4  # I1 tl, I2 tl, O tl, O th, and no complaint about a lack of them
    assert set(hints(data)) == {
        "write memories.bank.ports[0].type: read_write",
        "or move it to a read port",
    }


@pytest.mark.parametrize(("mark", "fix"), [({}, "64"), ({"tilewright": 1}, "64 bit")])
def test_a_granule_above_the_width_is_refused_in_the_units_of_the_file(
    mark: dict[str, Any], fix: str
) -> None:
    port = {"name": "p", "type": "read_write", "bandwidth_min": "65 bit", "bandwidth_max": "8 B"}
    data = mark | {
        "name": "x",
        "operational_array": {
            "unit_energy": "1 pJ",
            "unit_area": 1,
            "dimensions": ["D1"],
            "sizes": [1],
        },
        "memories": {
            "ddr": {
                "size": "1 GiB",
                "r_cost": "1 pJ",
                "w_cost": "1 pJ",
                "operands": ["I1", "I2", "O"],
                "ports": [port | {"allocation": ALL_USES}],
                "served_dimensions": ["D1"],
            }
        },
    }
    assert messages(data) == [
        "memories.ddr.ports[0].bandwidth_min: 65 bit is above bandwidth_max, 64 bit"
    ]
    assert hints(data) == [f"write memories.ddr.ports[0].bandwidth_min: {fix}"]


def test_two_ports_of_one_name_are_refused() -> None:
    data = sound_machine()
    data["memories"]["bank"]["ports"] *= 2
    assert messages(data) == [
        "memories.bank.ports[1].name: another port of this memory has this name"
    ]


def counted(read: int, write: int, both: int, ports: list[dict[str, str]]) -> OldMemoryFile:
    data = {
        "size": 64,
        "r_bw": 8,
        "w_bw": 8,
        "r_port": read,
        "w_port": write,
        "rw_port": both,
        "operands": ["I1", "I2", "O"],
        "ports": ports,
        "served_dimensions": [],
    }
    file, _ = read_model(OldMemoryFile, data)
    assert file is not None
    return file


def test_ports_are_named_by_kind_and_number() -> None:
    assert declared_ports(counted(2, 1, 1, [])) == ["r_port_1", "r_port_2", "w_port_1", "rw_port_1"]


@pytest.mark.parametrize(
    ("file", "position", "wanted", "entry", "counts"),
    [
        # operands take turns
        (counted(3, 2, 0, []), 1, ("fh", "tl"), {"fh": "w_port_2", "tl": "r_port_2"}, {}),
        (counted(3, 2, 0, []), 2, ("fh", "tl"), {"fh": "w_port_1", "tl": "r_port_3"}, {}),
        # a mixed-up direction keeps its port
        (
            counted(2, 2, 0, [{"tl": "r_port_2", "fl": "w_port_2"}]),
            0,
            ("fh", "tl"),
            {"fh": "w_port_2", "tl": "r_port_2"},
            {},
        ),
        # one that is right keeps its own, not the first that the entry names
        (
            counted(2, 1, 0, [{"tl": "r_port_2", "th": "r_port_1"}]),
            0,
            ("tl", "th"),
            {"tl": "r_port_2", "th": "r_port_1"},
            {},
        ),
        # a port of the wrong kind is not kept
        (
            counted(1, 1, 0, [{"fh": "r_port_1"}]),
            0,
            ("fh",),
            {"fh": "w_port_1"},
            {},
        ),
        # none there: declared
        (
            counted(1, 0, 0, []),
            0,
            ("fh", "tl"),
            {"fh": "w_port_1", "tl": "r_port_1"},
            {"w_port": 1},
        ),
        (counted(0, 0, 1, []), 2, ("fh", "tl"), {"fh": "rw_port_1", "tl": "rw_port_1"}, {}),
    ],
)
def test_the_entry_that_should_have_been_written(
    file: OldMemoryFile,
    position: int,
    wanted: tuple[Direction, ...],
    entry: dict[str, str],
    counts: dict[str, int],
) -> None:
    assert suggested_entry(file, position, wanted) == (entry, counts)


def test_an_entry_is_written_as_one_line_of_yaml() -> None:
    assert flow_entry({"fh": "w_port_1", "tl": "r_port_1"}) == "{fh: w_port_1, tl: r_port_1}"


def test_an_undeclared_port_is_kept_so_that_its_lack_is_not_told_twice() -> None:
    data = with_entry(0, {"fh": "w_port_9", "tl": "r_port_1"})
    machine = reading(data).machine
    assert machine is not None
    assert machine.memories[1].port("I1", "fh") is not None
    assert len([m for m in messages(data) if not m.startswith("warning")]) == 1
