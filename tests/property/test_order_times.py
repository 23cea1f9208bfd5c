"""Program order by the compiled clock and by the one in Python: the same times."""

from dataclasses import replace

import pytest
from tests.schedule_emulator import check_timetable
from tests.schedule_programs import random_program
from tests.schedule_rich_programs import rich_program

from tilewright.program.model import Program
from tilewright.schedule import order_times
from tilewright.schedule.order_times import is_compiled
from tilewright.schedule.schedule import schedule_in_order

SIZES_BYTES = (24, 40, 64, 100, 160, 400, 1000)


def with_pads_of(program: Program, size_bytes: int, lanes: int) -> Program:
    """The program with all scratchpads of one size, and as many lanes on every engine."""
    spaces = [
        replace(space, size_bytes=size_bytes) if space.kind == "scratchpad" else space
        for space in program.spaces
    ]
    engines = [replace(engine, count=lanes) for engine in program.engines]
    return replace(program, spaces=tuple(spaces), engines=tuple(engines))


@pytest.mark.skipif(not is_compiled(), reason="the kernel is not compiled here")
@pytest.mark.parametrize("seed", range(30))
def test_the_kernel_and_python_start_every_task_at_the_same_cycle(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitting = 0
    for program in (rich_program(seed, 3 + seed % 14), random_program(seed, 8 + seed % 40)):
        for number, size_bytes in enumerate(SIZES_BYTES):
            tried = with_pads_of(program, size_bytes, 1 + (seed + number) % 3)
            found = schedule_in_order(tried)
            with monkeypatch.context() as patch:
                patch.setattr(order_times, "kernel", None)
                assert schedule_in_order(tried) == found
            if found is not None:
                fitting += 1
                check_timetable(tried, found)
    assert fitting > 0
