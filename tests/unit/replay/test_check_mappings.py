"""Tasks against their mappings: whose tile it is, on which engine, how long and how dear."""

from dataclasses import replace

import pytest
from tests.small_machines import Small, small_machine
from tests.timetable_builder import Draft

from tilewright import plan
from tilewright.mapping.search import Mapped, SearchOptions
from tilewright.network.build import NetworkBuilder
from tilewright.network.graph import Network
from tilewright.network.nests import matmul
from tilewright.network.zoo import layers
from tilewright.program.lower import prepare
from tilewright.program.model import Access, Charge, Program, Task
from tilewright.replay.check import problems
from tilewright.replay.check_kinds import kinds_of
from tilewright.replay.check_mappings import mapping_problems
from tilewright.replay.check_tiles import tiles_of


def product_network() -> Network:
    builder = NetworkBuilder("product")
    builder.tensor("p", (2, 4), bits=8, role="input")
    builder.tensor("q", (4, 2), bits=8, role="constant")
    builder.op("product", "matmul", matmul((2, 4), (4, 2)), ["p", "q"], {"m": (8, "")})
    return builder.finish(["m"])


def mapping() -> Mapped:
    """One of the whole product, as if it took 10 cycles, 3 pJ for products, 5 pJ at a memory."""
    network = product_network()
    prepared = prepare(network, small_machine(Small()), network.ops, SearchOptions(lpf_limit=3))
    prepared.costs.on_array(network.ops[0], {"D": 2, "K": 2, "C": 4})
    (mapped,) = prepared.costs.mappings
    first = mapped.cost.links[0]
    links = (
        replace(first, memory="cmx", direction="tl", bits=41, energy_pj=2.0),
        replace(first, memory="cmx", direction="th", bits=22, energy_pj=1.0),
        replace(first, memory="cmx", direction="fl", bits=32, energy_pj=2.0),
    )
    cost = replace(mapped.cost, cycles=9.5, mac_pj=3.0, links=links)
    return replace(mapped, cost=cost)


def product() -> Task:
    """A task that does the whole product."""
    draft = Draft()
    m = draft.buffer("m@cmx[0]", ((0, 2), (0, 2)), 0)
    tile = (("D", 0, 2), ("K", 0, 2), ("C", 0, 4))
    draft.task("product", ("core[0]", 0, 10), (), (Access(m, ((0, 2), (0, 2))),), tile=tile)
    charges = (Charge("array", 0, 0, 3.0), Charge("cmx", 8, 4, 5.0))
    return replace(draft.tasks[0], mapping=0, charges=charges)


def said(task: Task) -> list[str]:
    program: Program = replace(Draft().timetable().program, tasks=(task,), mappings=(mapping(),))
    network = product_network()
    tiles = tiles_of(program, network, kinds_of(program))
    found = mapping_problems(program, network, None, tiles, range(len(program.tasks)))
    return [problem.message for problem in found]


def test_a_task_may_be_as_good_as_its_mapping_or_worse() -> None:
    assert said(product()) == []
    dear = (*product().charges, Charge("vector", 0, 0, 1.0))
    assert said(replace(product(), cycles=11, charges=dear)) == []


def test_a_task_is_as_long_as_its_mapping() -> None:
    assert said(replace(product(), cycles=9)) == [
        "task product takes 9 cycles, and its mapping takes 10"
    ]


@pytest.mark.parametrize(
    ("charges", "message"),
    [
        (
            (Charge("array", 0, 0, 3.0),),
            "task product is charged for 0 bytes read, 0 written and 0 pJ at cmx, and its mapping "
            "does 8, 4 and 5 pJ",
        ),
        (
            (Charge("array", 0, 0, 2.5), Charge("cmx", 8, 4, 5.5)),
            "task product is charged for 0 bytes read, 0 written and 2.5 pJ at array, and its "
            "mapping does 0, 0 and 3 pJ",
        ),
        (
            (Charge("array", 0, 0, 3.0), Charge("cmx", 7, 5, 5.0)),
            "task product is charged for 7 bytes read, 5 written and 5 pJ at cmx, and its mapping "
            "does 8, 4 and 5 pJ",
        ),
        (
            (Charge("array", 0, 0, 3.0), Charge("cmx", 8, 3, 5.0)),
            "task product is charged for 8 bytes read, 3 written and 5 pJ at cmx, and its mapping "
            "does 8, 4 and 5 pJ",
        ),
    ],
)
def test_a_task_costs_as_much_as_its_mapping_at_every_memory(
    charges: tuple[Charge, ...], message: str
) -> None:
    """63 bits are read there, in eight bytes."""
    assert said(replace(product(), charges=charges)) == [message]


def test_a_task_is_of_its_mappings_tile() -> None:
    half = replace(product(), tile=(("D", 0, 2), ("K", 0, 2), ("C", 2, 4)))
    assert said(half) == [
        "task product runs loops of D 2, K 2, C 2, and its mapping is one of D 2, K 2, C 4"
    ]


def test_only_an_array_runs_mappings() -> None:
    assert said(replace(product(), engine="core[0].vector")) == [
        "task product has a mapping and is on core[0].vector, no array"
    ]


@pytest.mark.parametrize("number", [-1, 1])
def test_the_mapping_is_there(number: int) -> None:
    assert said(replace(product(), mapping=number)) == [
        f"task product has mapping {number}, which does not exist"
    ]


@pytest.mark.parametrize(
    ("read_bytes", "energy_pj", "message"),
    [
        (
            183,
            22400.0,
            "task first is charged for 183 bytes read, 96 written and 22400 pJ at ddr, and its "
            "mapping and its bias take 184, 96 and 22400 pJ",
        ),
        (
            184,
            22399.0,
            "task first is charged for 184 bytes read, 96 written and 22399 pJ at ddr, and its "
            "mapping and its bias take 184, 96 and 22400 pJ",
        ),
    ],
)
def test_biases_that_stream_come_beside_what_a_mapping_moves(
    read_bytes: int, energy_pj: float, message: str
) -> None:
    """Where no scratchpad is: 6 biases of 4 B lie outside, too."""
    net = layers.draft("net", 8)
    data = layers.given(net, "x", (1, 4, 4, 4))
    network = net.finish(layers.conv(net, "first", data, 6, layers.square(1)))
    machine = small_machine(Small(kind="none"))
    made = plan(network, machine).timetable
    (task,) = made.program.tasks
    others = tuple(charge for charge in task.charges if charge.memory != "ddr")
    # Weights are read once for each row, 96 B, inputs once, 64 B; 96 B leave. A word of 4 B costs
    # 320 pJ.
    charges = (*others, Charge("ddr", read_bytes, 96, energy_pj))
    changed = replace(made.program, tasks=(replace(task, charges=charges),))
    assert problems(made, network, machine) == []
    told = [p.message for p in problems(replace(made, program=changed), network, machine)]
    assert told == [message]
