"""How many random cases a test looks at: all of them, or a quarter where slow ones are left out.

`conftest.py` says which of both it is before any test is read.
"""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

repeatable = settings(
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
ALL, QUICK = "all", "quick"
for profile in (ALL, QUICK):
    # How long something takes says nothing where other tests run beside it.
    settings.register_profile(profile, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def look_at_all() -> None:
    """From here on `examples` gives all."""
    settings.load_profile(ALL)


def look_at_few() -> None:
    """From here on `examples` gives a quarter."""
    settings.load_profile(QUICK)


def examples(number: int) -> int:
    """The number of examples of a property, which a quarter of them must be enough to refute."""
    return number // 4 if settings.get_current_profile_name() == QUICK else number


def first_few(values: Sequence[object], few: int) -> list[Any]:
    """Values of a parameter, those behind the first few for slow tests."""
    marks = [pytest.mark.slow]
    return [*values[:few], *(pytest.param(value, marks=marks) for value in values[few:])]
