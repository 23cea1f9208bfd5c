"""Machines of several cores, and what stands around them: engines, links, sources and sinks."""

from typing import Any

import pytest
from tests.machine_builder import (
    BANK_BITS,
    Data,
    changed,
    machine_of,
    marked,
    memory,
    messages,
    sound_machine,
)

from tilewright.machine.model import VectorUnit

EVERY = ["I1", "I2", "O"]


def test_core_count_copies_the_core_and_lifts_its_shared_memories() -> None:
    data = sound_machine() | {"core_count": 4}
    data["memories"]["bank"]["shared"] = True
    data["memories"]["ddr"]["shared"] = True
    machine = machine_of(data)
    assert machine.cores[0].count == 4
    assert [m.name for m in machine.cores[0].memories] == ["reg"]
    assert [m.name for m in machine.shared] == ["bank", "ddr"]
    assert [m.name for m in machine.levels(machine.cores[0])] == ["reg", "bank", "ddr"]
    assert messages(data) == []


def test_a_private_memory_above_a_shared_one_is_refused() -> None:
    data = sound_machine() | {"core_count": 4}
    data["memories"]["bank"]["shared"] = True
    assert messages(data) == ["memories.ddr: a core's own memory cannot stand above a shared one"]


def two_kinds() -> Data:
    """Core `a` (8 x 4) with registers and a bank, two cores `b` (16) with a bank, a shared ddr."""
    sound = sound_machine()
    reg, bank = sound["memories"]["reg"], sound["memories"]["bank"]
    other = memory(BANK_BITS // 4, EVERY, width=64, read_pj=3.2) | {"served_dimensions": ["D1"]}
    array = sound["operational_array"]
    return {
        "name": "pair",
        "cores": {
            "a": {"operational_array": array, "memories": {"reg": reg, "bank": bank}},
            "b": {
                "count": 2,
                "operational_array": array | {"dimensions": ["D1"], "sizes": [16]},
                "memories": {"other": other},
                "vector_unit": {"lanes": 4, "energy": 0.1},
            },
        },
        "memories": {"ddr": sound["memories"]["ddr"]},
    }


def test_kinds_of_core_keep_their_own_arrays_and_share_what_stands_outside() -> None:
    machine = machine_of(two_kinds())
    a, b = machine.cores
    assert [(core.name, core.count, core.array.units) for core in (a, b)] == [
        ("a", 1, 32),
        ("b", 2, 16),
    ]
    assert (a.vector, b.vector) == (None, VectorUnit(lanes=4, op_pj=0.1))
    assert [m.name for m in machine.levels(a)] == ["reg", "bank", "ddr"]
    assert [m.name for m in machine.levels(b)] == ["other", "ddr"]
    assert messages(two_kinds()) == [
        "warning: cores.b: is not used: only cores of the kind 'a', the first listed, compute"
    ]


def test_a_cores_memories_below_a_shared_one_are_not_its_top() -> None:
    data = two_kinds()
    del data["cores"]["a"]["memories"]["bank"]
    roles = {m.name: m.role for m in machine_of(data).memories}
    assert roles == {"reg": "local", "other": "scratchpad", "ddr": "external"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("operational_array", {"dimensions": ["D1"], "sizes": [1], "unit_energy": 1}),
        ("core_count", 2),
        ("vector_unit", {"lanes": 1, "energy": 1}),
    ],
)
def test_what_describes_one_core_has_no_meaning_beside_cores(key: str, value: Any) -> None:
    assert messages(two_kinds() | {key: value}) == [f"{key}: has no meaning beside `cores`"]


def test_a_memory_inside_a_core_cannot_be_shared() -> None:
    data = changed(two_kinds(), "cores/a/memories/bank/shared", True)
    assert messages(data) == ["cores.a.memories.bank.shared: a memory of one core is not shared"]


def test_two_memories_of_one_name_are_refused_and_cause_no_other_message() -> None:
    data = two_kinds()
    data["cores"]["b"]["memories"]["bank"] = data["cores"]["b"]["memories"].pop("other")
    assert messages(data) == ["cores.b.memories.bank: another memory has this name already"]


def test_faults_inside_a_core_carry_its_path() -> None:
    data = changed(two_kinds(), "cores/b/memories/other/ports/0/type", "both")
    assert messages(data) == [
        "cores.b.memories.other.ports[0].type: expected 'read', 'write' or 'read_write'"
    ]


def test_engines_links_and_ends_arrive_with_their_values() -> None:
    data = marked(sound_machine()) | {
        "dma": [
            {"name": "d", "width": "64 bit", "ports": 2, "setup": 30, "routes": [["ddr", "bank"]]}
        ],
        "links": [
            {
                "name": "noc",
                "kind": "mesh",
                "width": "4 B",
                "connects": ["core", "bank"],
                "energy": "8 pJ",
                "rows": 2,
                "columns": 3,
                "multicast": True,
            }
        ],
        "sources": [
            {
                "name": "camera",
                "kind": "sensor",
                "memory": "bank",
                "operands": ["I1"],
                "width": "8 bit",
                "energy": "3 pJ",
            }
        ],
        "sinks": [
            {"name": "host", "kind": "host", "memory": "ddr", "operands": ["O"]},
        ],
    }
    assert [message.partition(": ")[2].partition(":")[0] for message in messages(data)] == [
        "links[0]",  # nothing goes over it
        "links[0].rows",  # six places for a core and a memory
        "sources[0]",  # inputs come from ddr
        "sinks[0]",  # and results go there
    ]
    machine = machine_of(data)
    (engine,), (link,) = machine.dma, machine.links
    assert (engine.ports, engine.queues, engine.bits_per_cycle, engine.setup_cycles) == (
        2,
        1,
        64,
        30,
    )
    assert engine.routes == (("ddr", "bank"),)
    assert (link.kind, link.bits_per_cycle, link.rows, link.columns) == ("mesh", 32, 2, 3)
    assert link.pj_per_bit_hop == 0.25  # 8 pJ for 32 bits
    assert link.connects == ("core", "bank")
    assert link.multicast
    (camera,), (host,) = machine.sources, machine.sinks
    assert (camera.bits_per_cycle, camera.pj_per_bit) == (8, 0.375)  # 3 pJ for 8 bits
    assert (host.bits_per_cycle, host.pj_per_bit) == (None, 0.0)


CAMERA = {"name": "camera", "kind": "sensor", "memory": "bank", "operands": ["I1"]}


@pytest.mark.parametrize(
    ("key", "entries", "wanted"),
    [
        ("dma", [{"name": "d"}], "dma[0].width: is missing"),
        (
            "dma",
            [{"name": "d", "width": 8, "routes": [["bank", "flash"]]}],
            "dma[0].routes[0]: there is no memory 'flash'",
        ),
        (
            "dma",
            [{"name": "d", "width": 8, "routes": [["bank"]]}],
            "dma[0].routes[0]: must have at least 2 items",
        ),
        (
            "dma",
            [{"name": "d", "width": 8}, {"name": "d", "width": 8}],
            "dma[1].name: d stands here a second time",
        ),
        (
            "links",
            [{"name": "l", "kind": "bus", "width": 8, "connects": ["core", "bnak"]}],
            "links[0].connects[1]: there is no memory or core 'bnak'",
        ),
        (
            "links",
            [{"name": "l", "kind": "star", "width": 8}],
            "links[0].kind: expected 'bus', 'ring' or 'mesh'",
        ),
        ("sources", [CAMERA | {"memory": "bnk"}], "sources[0].memory: there is no memory 'bnk'"),
        (
            "sources",
            [CAMERA | {"memory": "reg"}],
            "sources[0].operands[0]: reg does not hold I1",
        ),
        (
            "sources",
            [CAMERA | {"operands": ["O"]}],
            "sources[0].operands[0]: O does not belong into sources",
        ),
        ("sinks", [CAMERA], "sinks[0].operands[0]: I1 does not belong into sinks"),
        (
            "sources",
            [CAMERA | {"energy": 3}],
            "sources[0].energy: an energy per access needs a `width`",
        ),
        ("sources", [CAMERA, CAMERA], "sources[1].name: camera stands here a second time"),
        ("sources", [CAMERA | {"operands": []}], "sources[0].operands: must not be empty"),
        ("sources", CAMERA, "sources: expected a list"),
    ],
)
def test_a_wrong_engine_link_or_end_is_the_only_thing_reported(
    key: str, entries: Any, wanted: str
) -> None:
    assert messages(sound_machine() | {key: entries}) == [wanted]


def test_an_end_may_name_a_memory_that_could_not_be_read() -> None:
    data = sound_machine() | {"sources": [CAMERA]}
    data["memories"]["bank"]["size"] = "large"
    (message,) = messages(data)
    assert message.startswith("memories.bank.size: expected a size")
