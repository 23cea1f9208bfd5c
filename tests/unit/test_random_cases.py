"""How random cases are looked at."""

from time import sleep

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def slowly(number: int) -> int:
    sleep(0.25)
    return number


@settings(max_examples=1)
@given(st.integers().map(slowly))
def test_a_case_may_take_long_where_other_tests_run_beside_it(number: int) -> None:
    sleep(0.25)


def test_cases_that_take_long_to_draw_are_no_fault() -> None:
    assert HealthCheck.too_slow in settings().suppress_health_check
