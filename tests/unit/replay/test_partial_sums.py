"""Sums that one task leaves unfinished, that leave the scratchpad, and that another finishes."""

from dataclasses import replace
from fractions import Fraction

import numpy as np

from tilewright.network import nests
from tilewright.network.build import NetworkBuilder
from tilewright.network.graph import Network
from tilewright.program.model import (
    Access,
    Buffer,
    Engine,
    Program,
    Route,
    Slot,
    Space,
    Task,
    TaskKind,
    Timetable,
)
from tilewright.replay.emulate import replay
from tilewright.replay.kernels import sums
from tilewright.replay.kernels.whole import whole_tile
from tilewright.replay.values import Values

X, W, Y = ((0, 1), (0, 4)), ((0, 4), (0, 2)), ((0, 1), (0, 2))
VALUES = Values(
    arrays={
        "x": np.array([[1, 0, 3, 0]], dtype=np.float32),
        "w": np.arange(8, dtype=np.float32).reshape(4, 2),
    }
)


def network() -> Network:
    builder = NetworkBuilder("net")
    builder.tensor("x", (1, 4), bits=8, role="input")
    builder.tensor("w", (4, 2), bits=8, role="constant")
    builder.op("mm", "matmul", nests.matmul((1, 4), (4, 2)), ["x", "w"], {"y": (8, "")})
    return builder.finish(["y"])


def product(begin: int, end: int, sums: tuple[Access, ...], target: Access, after: int) -> Task:
    """Half of a matrix product, straight from the external memory."""
    reads = (Access(0, ((0, 1), (begin, end))), Access(1, ((begin, end), (0, 2))), *sums)
    return Task(
        name=f"mm {begin}",
        kind="compute",
        engine="core[0]",
        cycles=1,
        reads=reads,
        writes=(target,),
        after=(after,) if after >= 0 else (),
        op="mm",
        tile=(("D", 0, 1), ("K", 0, 2), ("C", begin, end)),
    )


def copy(kind: TaskKind, source: int, target: int, after: int) -> Task:
    return Task(
        name=kind,
        kind=kind,
        engine="dma",
        cycles=1,
        reads=(Access(source, Y),),
        writes=(Access(target, Y),),
        after=(after,),
    )


def timetable() -> Timetable:
    names = (("x", X, "dram", 4), ("w", W, "dram", 8), ("y", Y, "dram", 2))
    buffers = [
        Buffer(name=n, tensor=n, box=box, space=space, size_bytes=size)
        for n, box, space, size in names
    ]
    for suffix, space in (("", "sram"), ("#saved0", "dram"), ("#1", "sram")):
        name = f"y partial sums{suffix}"
        buffers.append(Buffer(name=name, tensor="y", box=Y, space=space, size_bytes=8))
    tasks = (
        product(0, 2, (), Access(3, Y), -1),
        copy("store", 3, 4, 0),
        copy("load", 4, 5, 1),
        product(2, 4, (Access(5, Y),), Access(2, Y), 2),
    )
    route = Route(
        source="sram", target="dram", engine="dma", setup_cycles=0, bytes_per_cycle=Fraction(8)
    )
    program = Program(
        name="net",
        spaces=(
            Space(name="dram", memory="dram", kind="external", size_bytes=64),
            Space(name="sram", memory="sram", kind="scratchpad", size_bytes=32),
        ),
        engines=(Engine(name="core[0]"), Engine(name="dma")),
        routes=(route, replace(route, source="dram", target="sram")),
        buffers=tuple(buffers),
        tasks=tasks,
        given=(0, 1),
        results=(2,),
    )
    slots = tuple(Slot(start_cycle=n, end_cycle=n + 1) for n in range(len(tasks)))
    return Timetable(program=program, slots=slots, addresses=(0, 8, 16, 0, 24, 16))


def messages(plan: Timetable) -> str:
    return "\n".join(problem.message for problem in replay(plan, network(), VALUES).problems)


def free_of_charge(text: str) -> str:
    """Without what is said of bytes: the copies here claim none."""
    return "\n".join(line for line in text.splitlines() if "claims" not in line)


def test_sums_go_on_where_they_were_left_even_after_a_journey() -> None:
    found = replay(timetable(), network(), VALUES)
    # 1 x (0, 1) + 3 x (4, 5).
    np.testing.assert_array_equal(found.outputs["y"], [[12, 16]])
    assert free_of_charge(messages(timetable())) == ""


def test_sums_of_values_that_are_no_numbers_go_on_in_silence() -> None:
    """Such as a maximum of padding alone is, which no value of the input is less than."""
    below = {"x": np.array([[-np.inf, -np.inf, -np.inf, 0]], dtype=np.float32)}
    weights = {"w": np.array([[1, 1], [1, -1], [-1, 1], [0, 0]], dtype=np.float32)}
    found = replay(timetable(), network(), Values(arrays=below | weights))
    # All of them infinite: -1 -1 +1, and -1 +1 -1.
    np.testing.assert_array_equal(found.outputs["y"], [[np.nan, np.nan]])


def test_sums_that_lack_a_product_are_noticed_even_if_it_is_zero() -> None:
    plan = timetable()
    tasks = list(plan.program.tasks)
    # x[1] is 0, so no value differs.
    tasks[0] = replace(tasks[0], tile=(("D", 0, 1), ("K", 0, 2), ("C", 0, 1)))
    wrong = replace(plan, program=replace(plan.program, tasks=tuple(tasks)))
    assert "task mm 2 (cycles 3 to 4) adds up 3 products, not 4" in messages(wrong)


def test_sums_that_are_cut_anywhere_round_to_the_same_floats() -> None:
    # Behind a quantiser one bit of a sum may be a whole step of the result.
    summands, columns = 96, 8
    builder = NetworkBuilder("net")
    builder.tensor("x", (1, summands), bits=32, role="input", dtype="float32")
    builder.tensor("w", (summands, columns), bits=32, role="constant", dtype="float32")
    nest = nests.matmul((1, summands), (summands, columns))
    builder.op("mm", "matmul", nest, ["x", "w"], {"y": (32, "float32")})
    made = builder.finish(["y"])
    random = np.random.default_rng(0)
    arrays = {t.name: random.standard_normal(t.shape).astype(np.float32) for t in made.tensors[:2]}
    tile = whole_tile(made, made.ops[0], arrays, {})
    whole = sums.finish(tile, sums.accumulate(tile, None))
    assert whole.dtype == np.float32
    for cut in range(1, summands):
        total = None
        for ends in ((0, cut), (cut, summands)):
            total = sums.accumulate(replace(tile, ranges={**tile.ranges, "C": ends}), total)
        assert total is not None
        np.testing.assert_array_equal(sums.finish(tile, total), whole)
