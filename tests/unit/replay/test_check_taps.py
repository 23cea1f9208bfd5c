"""Products of a transposed convolution that walks over its result, counted by hand."""

from dataclasses import replace
from functools import cache

import pytest
from tests.e2e.test_transposed_plans import transposed
from tests.small_machines import Small, small_machine

import tilewright
from tilewright.network.windows import Window
from tilewright.plan_model import Plan
from tilewright.program.model import Box, Charge, Program
from tilewright.replay.check import problems
from tilewright.replay.check_accesses import accesses_of
from tilewright.replay.check_alike import unlike_tasks
from tilewright.replay.check_made import made_boxes
from tilewright.replay.check_taps import mapped_loops, products, taps_of
from tilewright.replay.check_tiles import tiles_of

NETWORK = transposed(Window(kernel=3, stride=2, pad_begin=1), channels=4, kernels=2, size=6)
"""Rows 2i - 1, 2i and 2i + 1 of 12 are made of row i of 6: odd rows of two, even ones of one."""
UP = NETWORK.ops[0]


def tile(rows: tuple[int, int], columns: tuple[int, int]) -> Box:
    ranges = {"OY": rows, "OX": columns}
    return tuple(ranges.get(dim, (0, size)) for dim, size in UP.dims)


@pytest.mark.parametrize(
    ("rows", "taps", "steps"),
    [
        ((0, 1), 1, 1),
        ((1, 2), 2, 1),
        ((0, 2), 3, 1),
        ((1, 4), 5, 2),
        # The last row lies behind all windows but the last.
        ((10, 12), 2, 1),
        ((11, 12), 1, 1),
        ((0, 12), 17, 6),
    ],
)
def test_products_and_steps_of_some_rows(rows: tuple[int, int], taps: int, steps: int) -> None:
    box = tile(rows, (0, 2))
    found = taps_of(UP, NETWORK)
    # Two columns have three products for each of 4 x 2 pairs of channels.
    assert products(UP, found, box) == taps * 3 * 4 * 2
    lengths, least = mapped_loops(UP, found, box)
    assert least == {"IY", "IX"}
    assert lengths == {"B": 1, "K": 2, "C": 4, "IY": steps, "IX": 1, "FY": 3, "FX": 3}


@cache
def planned() -> Plan:
    return tilewright.plan(NETWORK, small_machine(Small(size_bytes=200)))


def said(task: int, program: Program) -> list[str]:
    """What is said about a task of the plan with another program."""
    timetable = replace(planned().timetable, program=program)
    found = problems(timetable, NETWORK, planned().machine)
    return [p.message for p in found if program.tasks[task].name in p.message]


def first_mapped() -> int:
    tasks = planned().program.tasks
    return next(number for number, task in enumerate(tasks) if task.mapping is not None)


def test_the_plan_is_right() -> None:
    assert said(first_mapped(), planned().program) == []


@pytest.mark.parametrize(("by", "is_right"), [(-1, False), (1, True)])
def test_a_mapping_has_no_fewer_steps_than_a_tap_reaches_rows(by: int, is_right: bool) -> None:
    number, program = first_mapped(), planned().program
    mappings = [*program.mappings]
    at = program.tasks[number].mapping or 0
    setup = mappings[at].setup
    dims = tuple((dim, size + by if dim == "IY" else size) for dim, size in setup.nest.dims)
    mappings[at] = replace(mappings[at], setup=replace(setup, nest=replace(setup.nest, dims=dims)))
    found = said(number, replace(program, mappings=tuple(mappings)))
    assert any("and its mapping is one of" in message for message in found) != is_right


def test_products_that_are_not_charged_are_found() -> None:
    number, program = first_mapped(), planned().program
    task = program.tasks[number]
    charges = [c for c in task.charges if c.memory != "array"]
    free = replace(task, charges=(Charge("array", 0, 0, 0.0), *charges))
    tasks = (*program.tasks[:number], free, *program.tasks[number + 1 :])
    found = said(number, replace(program, tasks=tasks))
    assert any("0 pJ at array" in message for message in found)


def test_tiles_as_large_as_others_are_not_alike_between_other_rows() -> None:
    # Row 0 is made of one row, row 1 of two: no tile of the op speaks for another one.
    program = planned().program
    accesses = accesses_of(program, 4)
    tiles = tiles_of(program, NETWORK, accesses.kinds)
    unlike = unlike_tasks(program, NETWORK, accesses, tiles, made_boxes(NETWORK, tiles, accesses))
    assert {*unlike} >= {n for n, task in enumerate(program.tasks) if task.op == UP.name}
