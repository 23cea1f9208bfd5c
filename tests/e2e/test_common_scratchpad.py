"""Several cores that see one and the same scratchpad: what all of them read lies there once."""

from dataclasses import replace
from functools import cache

import pytest
from tests.small_machines import Kind, Small, small_machine

import tilewright
from tilewright.machine.model import Machine
from tilewright.network import windows
from tilewright.network.graph import Network
from tilewright.network.zoo import layers
from tilewright.planner import Plan, PlanOptions
from tilewright.program.model import Access, Timetable
from tilewright.replay.check import problems
from tilewright.replay.verify import verify
from tilewright.report.cascades import cascades_of


def common_machine(size_bytes: int, *, kind: str = "one", cores: int = 3) -> Machine:
    """The small machine with its scratchpad above all cores."""
    one = small_machine(Small(kind=kind, size_bytes=size_bytes, cores=cores))  # type: ignore[arg-type]
    (core,) = one.cores
    own = tuple(memory for memory in core.memories if memory.role == "local")
    banks = tuple(memory for memory in core.memories if memory.role == "scratchpad")
    return replace(one, cores=(replace(core, memories=own),), shared=(*banks, *one.shared))


def network(rows: int = 12) -> Network:
    """Two convolutions whose windows meet where cores share them out, and a sum around them."""
    net = layers.draft("pair", 8)
    data = layers.given(net, "x", (1, 4, rows, 12))
    first = layers.conv(net, "first", data, 8, layers.square(3, pad=1))
    second = layers.conv(net, "second", first, 4, layers.square(3, pad=1))
    return net.builder.finish([layers.add(net, "sum", data, second).name])


@cache
def planned(size_bytes: int, objective: str) -> Plan:
    options = PlanOptions(objective=objective)  # type: ignore[arg-type]
    return tilewright.plan(network(), common_machine(size_bytes), options)


def copies_at_once(plan: Plan) -> list[str]:
    """Tasks that write one box of a tensor to one space more than once."""
    buffers = plan.program.buffers
    found = []
    for task in plan.program.tasks:
        places = [(buffers[a.buffer].space, buffers[a.buffer].tensor, a.box) for a in task.writes]
        found += [task.name] if len(set(places)) < len(places) else []
    return found


@pytest.mark.parametrize(("objective", "size_bytes"), [("energy", 4096), ("traffic", 1000)])
def test_a_tensor_lies_in_a_common_scratchpad_once(objective: str, size_bytes: int) -> None:
    plan = planned(size_bytes, objective)
    assert copies_at_once(plan) == []
    assert verify(plan.timetable, plan.network, machine=plan.machine).agrees


def test_cores_go_through_one_rolling_buffer() -> None:
    """`first` makes 8 x 48 x 12 = 4,608 bytes, which are never there as a whole."""
    machine = common_machine(3000, kind="ends")
    plan = tilewright.plan(network(48), machine, PlanOptions(objective="traffic"))
    assert any({"first", "second"} <= {*cascade.ops} for cascade in cascades_of(plan))
    assert copies_at_once(plan) == []
    assert verify(plan.timetable, plan.network, machine=plan.machine).agrees


def test_all_cores_have_work_and_none_a_copy_of_its_own() -> None:
    """All that there is takes 576 + 1,152 + 576 + 576 bytes, and constants 584: once each."""
    plan = planned(64 * 1024, "latency")
    arrays = {task.engine for task in plan.program.tasks if task.engine.endswith("]")}
    assert arrays == {"core[0]", "core[1]", "core[2]"}
    assert plan.peak_bytes["bank"] <= 576 + 1152 + 576 + 576 + 584


def with_second_copy(plan: Plan, number: int) -> Timetable:
    """The plan with a task that writes what it makes to a second place of the same scratchpad."""
    program = plan.program
    task = program.tasks[number]
    ((buffer, box),) = task.writes
    free = plan.peak_bytes["bank"]
    twin = replace(program.buffers[buffer], name="twin", view=None)
    tasks = list(program.tasks)
    tasks[number] = replace(task, writes=(*task.writes, Access(len(program.buffers), box)))
    wrong = replace(program, tasks=tuple(tasks), buffers=(*program.buffers, twin))
    return replace(plan.timetable, program=wrong, addresses=(*plan.timetable.addresses, free))


@pytest.mark.parametrize("kind", ["compute", "load"])
def test_a_second_copy_in_the_time_of_one_is_refused(kind: str) -> None:
    plan = planned(64 * 1024, "latency")
    number = next(
        number
        for number, task in enumerate(plan.program.tasks)
        if task.kind == kind
        and len(task.writes) == 1
        and (kind == "load" or task.mapping is not None)
        and plan.program.buffers[task.writes[0].buffer].box == task.writes[0].box
    )
    wrong = problems(with_second_copy(plan, number), plan.network, plan.machine)
    name = plan.program.tasks[number].name
    said = "twice, in the time of once" if kind == "compute" else "bytes from ddr to bank take"
    assert any(name in problem.message and said in problem.message for problem in wrong)


def kept_and_given_away() -> Network:
    """A product that is an output, and that is read by channels though it is made by columns."""
    net = layers.draft("kept", 8)
    data = layers.given(net, "x", (1, 6, 5, 8))
    product = layers.matmul(net, "product", data, layers.constant(net, "w", (8, 6)))
    whole = [windows.Window(kernel=5), windows.Window(kernel=6)]
    nest = windows.pool(product.shape, whole)
    net.builder.op("pool", "average_pool", nest, [product.name], {"pool": (8, "")})
    return net.builder.finish(["product", "pool"])


@pytest.mark.parametrize("kind", ["one", "ends", "split"])
def test_what_cores_keep_in_parts_goes_out_from_there(kind: Kind) -> None:
    """What a core makes and others keep was written a second time at home, to be taken outside."""
    machine = small_machine(Small(kind=kind, cores=3, size_bytes=4096))
    plan = tilewright.plan(kept_and_given_away(), machine)
    assert verify(plan.timetable, plan.network, machine=machine).agrees
