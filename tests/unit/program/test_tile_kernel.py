"""The choice among combinations of tile lengths, by hand, with the compiled search and NumPy."""

import pytest

from tilewright.network.graph import Index, Op, Operand
from tilewright.program import tile_grid, tile_kernel
from tilewright.program.tile import cheapest
from tilewright.program.work import Goal, Tenant, Tiling, Trial, Work


@pytest.fixture(params=["compiled", "numpy"])
def compiled(request: pytest.FixtureRequest) -> bool:
    if request.param == "compiled" and not tile_kernel.is_used():
        pytest.skip("the search was not built")
    return bool(request.param == "compiled")


def tilings(trial: Trial, *, compiled: bool) -> list[Tiling]:
    found = tile_kernel.tilings(trial, lambda at: None) if compiled else None
    if found is not None:
        return found
    return [cheapest(trial, c, lambda at: None) for c in tile_grid.candidates(trial)]


def work_of(lengths: dict[str, int], tenant: Tenant, room: int, unrolled: dict[str, int]) -> Work:
    dims = tuple(lengths.items())
    return Work(
        op=Op(name="op", kind="conv", dims=dims, inputs=(), outputs=(), accumulator_bits=32),
        lengths=lengths,
        tenants=(tenant,),
        room={"bank": room},
        unrolled=unrolled,
    )


def tenant_of(shape: dict[str, int], bytes_per_cycle: float) -> Tenant:
    """A byte an element."""
    index = tuple(Index(((dim, 1),)) for dim in shape)
    return Tenant(
        operand=Operand(name="W", tensor="W", index=index),
        shape=tuple(shape.values()),
        bits=8,
        memory="bank",
        bytes_per_cycle=bytes_per_cycle,
        setup_cycles=0,
        pj_per_byte=1.0,
    )


def trial_of(work: Work, choices: dict[str, tuple[int, ...]], goal: Goal) -> Trial:
    loops = tuple(choices)
    return Trial(
        work=work, loops=loops, choices=tuple(choices.values()), orders=(loops,), goal=goal
    )


def test_of_equally_few_tiles_the_quickest_are_taken(compiled: bool) -> None:
    # 64 B do not fit, 32 B do: two tiles of 8 x 4, or of 4 x 8. With C unrolled by 8 the first take
    # 8 * 1 steps each and the second 4 * 1; nothing is moved, so traffic does not tell them apart.
    shape = {"K": 8, "C": 8}
    work = work_of(shape, tenant_of(shape, 0.0), 32, {"C": 8})
    (found,) = tilings(trial_of(work, {"K": (8, 4), "C": (8, 4)}, "traffic"), compiled=compiled)
    assert found.lengths == {"K": 4, "C": 8}
    assert found.cycles == 2 * (4 + 32)


@pytest.mark.parametrize(("room", "moved"), [(8, 4.0), (7, 8.0)])
def test_tiles_stay_if_all_take_no_more_than_half_the_room(
    compiled: bool, room: int, moved: float
) -> None:
    # Two tiles of 2 B for each of two tiles of Y: together they take 4 B. In 8 B they come once;
    # in 7 B they come again for the second tile of Y.
    work = work_of({"Y": 4, "K": 4}, tenant_of({"K": 4}, 1.0), room, {})
    found = tilings(trial_of(work, {"Y": (2,), "K": (2,)}, "latency"), compiled=compiled)
    assert [tiling.moved_bytes for tiling in found] == [moved, moved]
    assert [tiling.doubled for tiling in found] == [True, False]
    # Four tiles of 2 * 2 steps; moving adds to them, or hides behind them but for an eighth of the
    # shorter side and half of the first tile's 2 cycles.
    assert [tiling.cycles for tiling in found] == [
        4 * (4 + 32) + moved / 8 + 2 / 2,
        4 * (4 + 32) + moved,
    ]
