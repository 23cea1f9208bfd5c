"""How a fault is printed, and with which exit code each error ends."""

import pytest

from tilewright.errors import (
    InfeasibleError,
    InputError,
    LimitError,
    Problem,
    TilewrightError,
)


def test_a_problem_is_printed_with_its_place_and_each_hint_on_its_own_line() -> None:
    problem = Problem(
        file="m.yaml", line=8, column=5, message="size: is missing", hint="write size: 1\nor not"
    )
    assert str(problem) == ("m.yaml:8:5: size: is missing\n  hint: write size: 1\n  hint: or not")


def test_a_warning_says_so_after_its_place() -> None:
    problem = Problem(file="m.yaml", line=1, column=1, message="odd", severity="warning")
    assert str(problem) == "m.yaml:1:1: warning: odd"


@pytest.mark.parametrize(
    ("problem", "where"),
    [
        (Problem(message="x"), ""),
        (Problem(message="x", file="m.yaml"), "m.yaml"),
        (Problem(message="x", file="m.yaml", line=3), "m.yaml:3"),
        (Problem(message="x", file="m.yaml", line=3, column=7), "m.yaml:3:7"),
    ],
)
def test_a_place_is_written_as_far_as_it_is_known(problem: Problem, where: str) -> None:
    assert problem.where == where
    assert str(problem) == (f"{where}: x" if where else "x")


def test_an_error_prints_all_its_problems_and_keeps_them() -> None:
    problems = (Problem(message="first"), Problem(message="second", hint="third"))
    error = InputError(*problems)
    assert str(error) == "first\nsecond\n  hint: third"
    assert error.problems == problems


@pytest.mark.parametrize(
    ("kind", "exit_code"),
    [(TilewrightError, 1), (InputError, 2), (InfeasibleError, 3), (LimitError, 4)],
)
def test_every_error_has_the_exit_code_that_is_promised(
    kind: type[TilewrightError], exit_code: int
) -> None:
    assert kind.exit_code == exit_code
    assert issubclass(kind, TilewrightError)
    assert isinstance(kind(Problem(message="x")), Exception)
