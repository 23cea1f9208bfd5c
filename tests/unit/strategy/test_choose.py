"""The choice of cascades: its estimates against lowered programs, and its optimum against all."""

from itertools import product
from pathlib import Path

import pytest

from tilewright.errors import InfeasibleError
from tilewright.machine.limits import with_memory_limits
from tilewright.machine.load import load_machine
from tilewright.mapping.search import SearchOptions
from tilewright.network.load import load_network
from tilewright.program.cascade import Cascade, Strategy, flow_of
from tilewright.program.lower import Lowered, Prepared, lower, prepare
from tilewright.schedule.bounds import bounds
from tilewright.strategy.choose import Aim, ChooseOptions, Chosen, choose
from tilewright.strategy.scene import scene_of
from tilewright.strategy.spans import span_of

MACHINE = Path(__file__).parents[2] / "one_core.yaml"
QUICK = SearchOptions(lpf_limit=3, unrollings=2)


def prepared(network: str, buffer_bytes: int) -> Prepared:
    machine = with_memory_limits(load_machine(MACHINE), (("buffer", buffer_bytes),))
    loaded = load_network(network)
    return prepare(loaded, machine, loaded.ops, QUICK)


def chosen(on: Prepared, aim: Aim) -> Chosen:
    scene = scene_of(on)
    assert scene is not None
    found = choose(scene, aim, ChooseOptions())
    assert found is not None
    return found


def moved_bytes(lowered: Lowered) -> int:
    """Bytes to and from the DRAM, counted task by task."""
    return sum(
        charge.read_bytes + charge.write_bytes
        for task in lowered.program.tasks
        for charge in task.charges
        if charge.memory == "dram"
    )


@pytest.mark.parametrize("buffer_bytes", [8_192, 11_050, 16_384, 65_536])
def test_a_lowered_strategy_moves_what_was_estimated(buffer_bytes: int) -> None:
    on = prepared("notes_cnn", buffer_bytes)
    found = chosen(on, "traffic")
    lowered = lower(on, "traffic", found.strategy)
    assert moved_bytes(lowered) == found.moved_bytes
    assert bounds(lowered.program).live_peak_bytes["buffer"] <= buffer_bytes


@pytest.mark.parametrize("network", ["lenet5", pytest.param("ds_cnn", marks=pytest.mark.slow)])
def test_the_least_memory_is_what_the_lowered_program_holds(network: str) -> None:
    """On a machine that cannot write anything out."""
    machine, loaded = load_machine("ethos_u55_128"), load_network(network)
    whole = next(m.size_bytes for m in machine.memories if m.name == "sram")
    found = chosen(prepare(loaded, machine, loaded.ops, QUICK), "memory")
    # A little more than the estimate, for tiles of constants above the smallest.
    limit = -int(-found.share * whole * 1.05 // 16) * 16
    limited = with_memory_limits(machine, (("sram", limit),))
    lowered = lower(prepare(loaded, limited, loaded.ops, QUICK), "latency", found.strategy)
    assert bounds(lowered.program).live_peak_bytes["sram"] <= limit


def test_rows_are_made_in_slices_where_there_is_no_room_for_whole_ones() -> None:
    """On a machine that cannot write anything out; whole rows would take 147,328 B."""
    loaded, limit = load_network("mobilenetv2"), 131_072
    machine = with_memory_limits(load_machine("ethos_u55_128"), (("sram", limit),))
    on = prepare(loaded, machine, loaded.ops, QUICK)
    found = chosen(on, "memory").strategy
    assert any(cascade.on_demand for cascade in found.cascades)
    lowered = lower(on, "latency", found)
    assert bounds(lowered.program).live_peak_bytes["sram"] <= limit


def test_units_that_need_little_take_whole_rows_and_larger_steps_than_the_largest() -> None:
    loaded, machine = load_network("mobilenetv2"), load_machine("ethos_u55_128")
    found = chosen(prepare(loaded, machine, loaded.ops, QUICK), "memory").strategy
    by_rows = [cascade for cascade in found.cascades if not cascade.eager]
    assert by_rows
    assert len(by_rows) < len(found.cascades)
    assert not any(cascade.on_demand for cascade in found.cascades)


@pytest.mark.slow
def test_no_other_strategy_of_a_small_network_moves_less() -> None:
    """All ways to cut five layers into up to three units, whatever waits outside."""
    on = prepared("notes_cnn", 11_050)
    count = len(on.stages)
    best = None
    for cuts in product((False, True), repeat=count - 1):
        if sum(cuts) > 2:
            continue
        ends = [n for n, cut in enumerate(cuts) if cut] + [count - 1]
        spans = list(zip([0, *(end + 1 for end in ends[:-1])], ends, strict=True))
        for axes in product((0, 1, 2), repeat=len(spans)):
            for gone in ((), ("pool1",), ("pool2",), ("pool1", "pool2")):
                moved = _moved(on, spans, axes, gone)
                if moved is not None and (best is None or moved < best):
                    best = moved
    assert best is not None
    assert chosen(on, "traffic").moved_bytes <= best


def _moved(
    on: Prepared, spans: list[tuple[int, int]], axes: tuple[int, ...], gone: tuple[str, ...]
) -> int | None:
    """What a strategy moves, its cascades one row at a time; None if it does not fit."""
    cascades = []
    for (first, last), axis in zip(spans, axes, strict=True):
        if axis == 0 and first == last:
            continue
        cascade = Cascade(first=first, last=last, axis=axis, step=1)
        if flow_of(on.rows, cascade) is None:
            return None
        cascades.append(cascade)
    try:
        lowered = lower(on, "traffic", Strategy(cascades=tuple(cascades), gone=("input", *gone)))
    except InfeasibleError:
        return None
    fits = bounds(lowered.program).live_peak_bytes["buffer"] <= 11_050
    return moved_bytes(lowered) if fits else None


@pytest.mark.parametrize("network", ["resnet18", "mobilenetv2", "squeezenet"])
def test_rows_held_are_those_of_the_flow(network: str) -> None:
    """The formula for the long run against the flow, step by step, row by row."""
    on = prepared(network, 1 << 20)
    checked = 0
    for first in range(0, len(on.stages), 3):
        for last in range(first, min(first + 7, len(on.stages))):
            span = span_of(on.rows, first, last, 2)
            flow = flow_of(on.rows, Cascade(first=first, last=last, axis=2, step=1, eager=False))
            assert (span is None) == (flow is None)
            if span is None or flow is None:
                continue
            for root, roll in {**flow.rolls, **flow.inputs}.items():
                held = span.holds[root].rows(1, eager=False)
                assert roll.rows <= held <= roll.rows + 1
                checked += 1
    assert checked > 50
