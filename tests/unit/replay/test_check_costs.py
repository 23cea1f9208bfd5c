"""Tasks without a mapping are no shorter and no cheaper than what they do, worked out by hand."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest
from tests.timetable_builder import CMX, DRAM, Draft

import tilewright
from tilewright.machine.model import Array, Core, Machine, Memory, Port, PortKind, VectorUnit
from tilewright.network.build import NetworkBuilder
from tilewright.network.graph import Network
from tilewright.network.moves import transpose
from tilewright.network.nests import elementwise, matmul
from tilewright.planner import Plan
from tilewright.program.model import Access, Charge, Task, Timetable
from tilewright.replay.check import problems
from tilewright.replay.verify import verify

WHOLE = ((0, 4), (0, 8))


def memory(name: str, *ports: PortKind, bits: int) -> Memory:
    return Memory(
        name=name,
        size_bits=8192,
        operands=("I1", "I2", "O"),
        ports=tuple(
            Port(name=kind, kind=kind, bits_per_cycle=bits, granularity_bits=8, uses=())
            for kind in ports
        ),
        served_dims=(),
        read_pj=2.0,
        write_pj=3.0,
        role="scratchpad",
    )


def machine(*ports: PortKind, lanes: int = 8) -> Machine:
    """A vector unit of 0.5 pJ an operation at a memory of 32 bit a cycle."""
    core = Core(
        name="core",
        array=Array(dims=(("D1", 2),), mac_pj=1.0),
        memories=(memory("cmx", *ports, bits=32),),
        vector=VectorUnit(lanes=lanes, op_pj=0.5),
    )
    return Machine(name="bench", cores=(core,), shared=(memory("dram", "read_write", bits=32),))


def network() -> Network:
    builder = NetworkBuilder("net")
    builder.tensor("x", (4, 8), bits=8, role="input")
    builder.op("exp", "exp", elementwise((4, 8)), ["x"], {"e": (8, "")})
    builder.op("turn", "transpose", transpose((4, 8), (1, 0)), ["e"], {"y": (8, "")})
    return builder.finish(["y"])


def timetable(change: Callable[[Task], Task] = lambda task: task, at: str = "exp") -> Timetable:
    """x is loaded, made e in 16 cycles, and turned on its way to the DRAM in 5 cycles.

    32 bytes are read and written at 4 bytes a cycle, 8 cycles each. A way has two cycles to set up
    and moves 32 bytes in three.
    """
    draft = Draft(spaces=(DRAM, replace(CMX, reserved=())))
    x, y = draft.buffer("x@dram", WHOLE, 0), draft.buffer("y@dram", ((0, 8), (0, 4)), 32)
    near, e = draft.buffer("x@cmx[0]", WHOLE, 0), draft.buffer("e@cmx[0]", WHOLE, 32)
    draft.given.append(x)
    draft.results.append(y)
    draft.task("load x", ("dma", 0, 5), (Access(x, WHOLE),), (Access(near, WHOLE),), kind="load")
    tile = (("D", 0, 4), ("K", 0, 8))
    reads, writes = (Access(near, WHOLE),), (Access(e, WHOLE),)
    draft.task("exp", ("core[0].vector", 5, 16), reads, writes, tile=tile)
    turned = (Access(y, ((0, 8), (0, 4))),)
    draft.task("turn", ("dma", 21, 5), writes, turned, tile=(("D", 0, 8), ("K", 0, 4)))
    found = draft.timetable()
    # 32 operations of 0.5 pJ; 8 reads of 32 bit at 2 pJ and 8 writes at 3 pJ.
    charges = (Charge("vector", 0, 0, 16.0), Charge("cmx", 32, 32, 40.0))
    tasks = [replace(t, charges=charges) if t.name == "exp" else t for t in found.program.tasks]
    tasks = [change(task) if task.name == at else task for task in tasks]
    slots = [
        replace(slot, end_cycle=slot.start_cycle + task.cycles)
        for slot, task in zip(found.slots, tasks, strict=True)
    ]
    return replace(found, program=replace(found.program, tasks=tuple(tasks)), slots=tuple(slots))


def said(found: Timetable, on: Machine | None) -> list[str]:
    return [problem.message for problem in problems(found, network(), on)]


def charged(place: int, charge: Charge) -> Callable[[Task], Task]:
    """Another one of a task's charges."""

    def change(task: Task) -> Task:
        return replace(task, charges=(*task.charges[:place], charge, *task.charges[place + 1 :]))

    return change


def shorter(task: Task) -> Task:
    return replace(task, cycles=task.cycles - 1)


def test_what_takes_as_long_and_costs_as_much_as_it_does_is_right() -> None:
    assert said(timetable(), machine("read_write")) == []
    assert said(timetable(), None) == []


def test_what_is_fused_behind_an_op_of_the_vector_unit_takes_time() -> None:
    builder = NetworkBuilder("net")
    builder.tensor("x", (4, 16), bits=8, role="input")
    builder.op("exp", "exp", elementwise((4, 16)), ["x"], {"e": (8, "")})
    builder.op("relu", "relu", elementwise((4, 16)), ["e"], {"y": (8, "")})
    net, on = builder.finish(["y"]), tilewright.load_machine("edge_tpu_like")
    found = tilewright.plan(net, on).timetable
    tasks = [
        replace(task, cycles=task.cycles // 2) if task.fused else task
        for task in found.program.tasks
    ]
    slots = [
        replace(slot, end_cycle=slot.start_cycle + task.cycles)
        for slot, task in zip(found.slots, tasks, strict=True)
    ]
    quicker = replace(found, program=replace(found.program, tasks=tuple(tasks)), slots=tuple(slots))
    messages = [problem.message for problem in problems(quicker, net, on)]
    assert any("operations and what they read and write take" in message for message in messages)


def test_a_task_may_take_longer() -> None:
    longer = timetable(lambda task: replace(task, cycles=task.cycles + 1), at="turn")
    assert said(longer, machine("read_write")) == []


@pytest.mark.parametrize(
    ("ports", "lanes", "message"),
    [
        (
            ("read_write",),
            8,
            "task exp takes 15 cycles, and 32 operations and what they read and write take 16",
        ),
        (
            ("read", "write"),
            8,
            "task exp takes 7 cycles, and 32 operations and what they read and write take 8",
        ),
        (
            ("read", "write"),
            2,
            "task exp takes 15 cycles, and 32 operations and what they read and write take 16",
        ),
    ],
    ids=["reads and writes in turn", "reads and writes at once", "few lanes"],
)
def test_the_slowest_part_decides(ports: tuple[PortKind, ...], lanes: int, message: str) -> None:
    bench, cycles = machine(*ports, lanes=lanes), int(message.split()[-1])
    assert said(timetable(lambda task: replace(task, cycles=cycles)), bench) == []
    assert said(timetable(lambda task: replace(task, cycles=cycles - 1)), bench) == [message]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            charged(0, Charge("vector", 0, 0, 15.5)),
            "task exp is charged for 0 bytes read, 0 written and 15.5 pJ at vector, and does 0, 0 "
            "and 16 pJ",
        ),
        (
            charged(1, Charge("cmx", 32, 32, 39.0)),
            "task exp is charged for 32 bytes read, 32 written and 39 pJ at cmx, and does 32, 32 "
            "and 40 pJ",
        ),
        (
            charged(1, Charge("cmx", 31, 32, 40.0)),
            "task exp is charged for 31 bytes read, 32 written and 40 pJ at cmx, and does 32, 32 "
            "and 40 pJ",
        ),
        (
            charged(1, Charge("dram", 32, 32, 40.0)),
            "task exp is charged for 32 bytes read, 32 written and 40 pJ at dram, and does 0, 0 "
            "and 0 pJ",
        ),
    ],
)
def test_a_vector_unit_is_charged_for_what_it_does(
    change: Callable[[Task], Task], message: str
) -> None:
    assert message in said(timetable(change), machine("read_write"))


def test_without_a_machine_bytes_are_known() -> None:
    wrong = timetable(charged(1, Charge("cmx", 32, 33, 40.0)))
    assert said(wrong, None) == [
        "task exp is charged for 32 bytes read, 33 written and 40 pJ at cmx, and does 32, 32 and "
        "40 pJ"
    ]


def test_what_is_rearranged_on_its_way_takes_as_long_as_the_way() -> None:
    assert said(timetable(shorter, at="turn"), None) == [
        "task turn takes 4 cycles, and 32 bytes from cmx[0] to dram take 5"
    ]
    assert said(timetable(charged(0, Charge("cmx", 0, 0, 0.0)), at="turn"), None) == [
        "task turn is charged for 0 bytes read, 0 written and 0 pJ at cmx, and does 32, 0 and 0 pJ"
    ]


def test_a_memory_that_the_machine_does_not_have_is_named() -> None:
    (core,) = machine("read_write").cores
    other = replace(core, memories=(replace(core.memories[0], name="sram"),))
    bench = replace(machine("read_write"), cores=(other,))
    assert said(timetable(), bench) == ["task exp touches cmx, and bench has none"]


def test_tasks_that_do_as_much_cost_the_same() -> None:
    builder = NetworkBuilder("net")
    builder.tensor("x", (4, 8), bits=8, role="input")
    builder.op("exp", "exp", elementwise((4, 8)), ["x"], {"e": (8, "")})
    halves = builder.finish(["e"])
    draft = Draft(spaces=(DRAM,))
    x, e = draft.buffer("x@dram", WHOLE, 0), draft.buffer("e@dram", WHOLE, 32)
    draft.given.append(x)
    draft.results.append(e)
    for number, cycles in enumerate((9, 8)):
        box = ((2 * number, 2 * number + 2), (0, 8))
        tile = (("D", 2 * number, 2 * number + 2), ("K", 0, 8))
        at = ("core[0].vector", 10 * number, cycles)
        draft.task(f"exp[{number}]", at, (Access(x, box),), (Access(e, box),), tile=tile)
    assert [problem.message for problem in problems(draft.timetable(), halves)] == [
        "task exp[1] takes 8 cycles and 0 pJ, and exp[0], which does as much, 9 and 0"
    ]


@cache
def on_ethos() -> Plan:
    network = tilewright.load_network("ds_cnn")
    return tilewright.plan(network, tilewright.load_machine("ethos_u55_128"))


def on_ethos_with(op: str, change: Callable[[Task], Task]) -> Timetable:
    found = on_ethos().timetable
    tasks = [change(task) if task.op == op else task for task in found.program.tasks]
    slots = [
        replace(slot, end_cycle=slot.start_cycle + task.cycles)
        for slot, task in zip(found.slots, tasks, strict=True)
    ]
    return replace(found, program=replace(found.program, tasks=tuple(tasks)), slots=tuple(slots))


def cheap(memory: str) -> Callable[[Task], Task]:
    return lambda task: replace(task, charges=tuple(c for c in task.charges if c.memory != memory))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        # 25 x 5 positions of 64 channels, each of 64 products.
        (
            lambda task: replace(task, cycles=3_999),
            "task block1.pointwise takes 3999 cycles, and 512000 products, 128 at once, take 4000",
        ),
        # 25 x 5 x 64 elements pass an activation of 0.04 pJ.
        (
            cheap("vector"),
            "task block1.pointwise is charged 0 pJ at vector, and what it does there costs 320 pJ",
        ),
    ],
)
def test_a_core_with_a_model_of_its_own_does_nothing_for_nothing(
    change: Callable[[Task], Task], message: str
) -> None:
    wrong = on_ethos_with("block1.pointwise", change)
    found = problems(wrong, on_ethos().network, on_ethos().machine)
    assert message in [problem.message for problem in found]


def test_a_tile_of_nothing_is_told_and_asks_no_model() -> None:
    def emptied(task: Task) -> Task:
        first, (dim, begin, _), *rest = task.tile
        return replace(task, tile=(first, (dim, begin, begin), *rest))

    wrong = on_ethos_with("block1.pointwise", emptied)
    found = problems(wrong, on_ethos().network, on_ethos().machine)
    assert any(problem.message.startswith("no task computes ") for problem in found)


def test_products_are_charged() -> None:
    wrong = on_ethos_with("block1.pointwise", charged(0, Charge("array", 0, 0, 1.0)))
    found = problems(wrong, on_ethos().network, on_ethos().machine)
    # 512,000 products of 0.04 pJ.
    assert (
        "task block1.pointwise is charged 1 pJ at array, and what it does there costs 20480 pJ"
        in [problem.message for problem in found]
    )


def test_a_replay_compares_costs_with_the_machine() -> None:
    wrong = on_ethos_with("softmax", charged(0, Charge("vector", 0, 0, 0.0)))
    read = replace(wrong, program=replace(wrong.program, mappings=()))
    assert verify(read, on_ethos().network).agrees
    assert not verify(read, on_ethos().network, machine=on_ethos().machine).agrees


def test_the_model_of_a_core_says_how_long_a_task_takes() -> None:
    (planned,) = (t for t in on_ethos().program.tasks if t.op == "softmax")
    wrong = on_ethos_with("softmax", shorter)
    assert [p.message for p in problems(wrong, on_ethos().network, on_ethos().machine)] == [
        f"task softmax takes {planned.cycles - 1} cycles, and the model of its core says "
        f"{planned.cycles}"
    ]


def test_a_core_with_a_model_runs_everything_on_its_array() -> None:
    wrong = on_ethos_with("softmax", lambda task: replace(task, engine="core[0].vector"))
    assert "task softmax is on core[0].vector, and ethos_u55_128 runs all ops on its arrays" in [
        problem.message for problem in problems(wrong, on_ethos().network, on_ethos().machine)
    ]


def test_an_array_without_a_model_has_mappings() -> None:
    bench = machine("read_write")
    wrong = timetable(lambda task: replace(task, engine="core[0]"))
    assert said(wrong, bench) == ["task exp is on core[0] and has no mapping"]
    # A file does not say which cores have a model, but there is none where others have mappings.
    assert said(wrong, None) == []
    other = timetable(lambda task: replace(task, mapping=0), at="turn")
    tasks = [replace(t, engine="core[0]") if t.name == "exp" else t for t in other.program.tasks]
    mixed = replace(other, program=replace(other.program, tasks=tuple(tasks)))
    assert "task exp is on core[0] and has no mapping" in said(mixed, None)


def test_sums_that_wait_are_as_wide_as_the_array_makes_them() -> None:
    """Of 16 bit on this machine, whose registers take 16 bit at once."""
    plan = tilewright.plan(
        tilewright.load_network("lenet5"), tilewright.load_machine("edge_tpu_like")
    )
    found = plan.timetable
    (at,) = (n for n, b in enumerate(found.program.buffers) if b.name == "fc4 partial sums")
    buffers = list(found.program.buffers)
    assert buffers[at].size_bytes == 2 * 84
    buffers[at] = replace(buffers[at], size_bytes=2 * 84 - 1)
    wrong = replace(found, program=replace(found.program, buffers=tuple(buffers)))
    messages = [problem.message for problem in problems(wrong, plan.network, plan.machine)]
    assert (
        "task fc4 [C0:8] has sums of 16 bits, and buffer fc4 partial sums has 167 bytes for 84 of "
        "them" in messages
    )


def test_products_are_the_work_of_an_array() -> None:
    builder = NetworkBuilder("net")
    builder.tensor("x", (4, 8), bits=8, role="input")
    builder.tensor("w", (8, 2), bits=8, role="constant")
    builder.op("product", "matmul", matmul((4, 8), (8, 2)), ["x", "w"], {"y": (8, "")})
    draft = Draft(spaces=(DRAM, replace(CMX, reserved=())))
    x, w = draft.buffer("x@cmx[0]", WHOLE, 0), draft.buffer("w@cmx[0]", ((0, 8), (0, 2)), 32)
    y = draft.buffer("y@cmx[0]", ((0, 4), (0, 2)), 48)
    tile = (("D", 0, 4), ("K", 0, 2), ("C", 0, 8))
    reads = Access(x, WHOLE), Access(w, ((0, 8), (0, 2)))
    writes = (Access(y, ((0, 4), (0, 2))),)
    draft.task("product", ("core[0].vector", 0, 64), reads, writes, tile=tile)
    found = problems(draft.timetable(), builder.finish(["y"]), machine("read_write"))
    assert (
        "task product does product, a matmul, on core[0].vector: products are an array's work"
        in [problem.message for problem in found]
    )
