"""A search in vain leaves nothing behind that only a search for garbage would free."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from tests.schedule_programs import random_program

from tilewright.program.model import Program
from tilewright.schedule.bounds import bounds
from tilewright.schedule.schedule import schedule_below


@contextmanager
def without_looking() -> Iterator[None]:
    """Nobody looks for garbage but who is asked to."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def is_in_vain(program: Program) -> bool:
    """Whether no schedule is found that takes hardly longer than the bound."""
    return schedule_below(program, bounds(program).order_cycles + 1) is None


def test_runs_that_are_too_slow_form_no_cycles() -> None:
    is_in_vain(random_program(0))  # What is made once and stays is not counted.
    with without_looking():
        tried = [is_in_vain(random_program(seed)) for seed in range(12)]
        assert gc.collect() == 0
    assert tried.count(True) > 2
