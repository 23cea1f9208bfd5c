"""Which strategies the search for a plan looks at."""

from types import SimpleNamespace
from typing import cast

import pytest

from tilewright.plan_drafts import Drafts
from tilewright.plan_search import _strategies
from tilewright.program.cascade import Cascade, Strategy
from tilewright.strategy.choose import Chosen

SHORT = Strategy(cascades=(Cascade(first=0, last=1, axis=2, step=4),))
LONG = Strategy(cascades=(Cascade(first=0, last=3, axis=2, step=1),))
BOUND_BYTES = 100


def choosing(quick: tuple[Strategy, int], slow: tuple[Strategy, int]) -> Drafts:
    """Drafts for which strategies are chosen that move so many bytes."""

    def chosen(aim: str, *, quickly: bool = False) -> Chosen:
        strategy, moved = quick if quickly else slow
        return Chosen(strategy=strategy, moved_bytes=moved, cycles=1.0, share=0.5)

    bounds = SimpleNamespace(traffic_bytes=BOUND_BYTES)
    return cast(Drafts, SimpleNamespace(chosen=chosen, prepared=SimpleNamespace(bounds=bounds)))


@pytest.mark.parametrize(
    ("quick", "slow", "found"),
    [
        ((SHORT, 100), (SHORT, 100), [SHORT]),
        ((SHORT, 100), (LONG, 100), [SHORT, LONG]),
        ((SHORT, 120), (LONG, 110), [LONG]),
        ((SHORT, 120), (SHORT, 120), [SHORT]),
    ],
    ids=["same", "both", "longer", "same although more is moved than must be"],
)
def test_what_moves_least_is_looked_at_once(
    quick: tuple[Strategy, int], slow: tuple[Strategy, int], found: list[Strategy]
) -> None:
    assert [*_strategies(choosing(quick, slow), "traffic")] == found
