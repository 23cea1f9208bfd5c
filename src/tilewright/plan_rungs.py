"""Plans of the capacity ladder: a network pixel by pixel, in a scratchpad it would not fit else."""

from dataclasses import replace
from typing import Final

from tilewright.errors import InfeasibleError, Problem
from tilewright.plan_model import Plan, PlanOptions, Watcher
from tilewright.program.lower import Prepared
from tilewright.program.model import Timetable
from tilewright.replay.check import check
from tilewright.schedule.bounds import bounds
from tilewright.schedule.control_edges import control_edges
from tilewright.schedule.external import external_addresses
from tilewright.schedule.packed import packed
from tilewright.strategy.ladder.cells import Work, work_of_stages
from tilewright.strategy.ladder.liveness import peak_of
from tilewright.strategy.ladder.program import only_scratchpad, timetable_of
from tilewright.strategy.ladder.rungs import RungName, rung_run
from tilewright.strategy.ladder.steps import Run

LAST_RESORTS: Final[tuple[RungName, ...]] = (
    "in_place",
    "fused_pools",
    "line_buffered",
    "line_buffered_cropped",
    "recompute",
)
"""What is tried, in this order, where no tiling fits and nothing can wait outside."""

SUMS_OF_RUNGS = "accumulators of a pool are as wide as its result, other sums at least 16 bit"
"""What a plan of a rung assumes beside what is assumed of its machine."""


def plan_of_rung(
    prepared: Prepared, name: RungName, options: PlanOptions, watcher: Watcher
) -> Plan:
    """The plan of one rung, its steps one after the other.

    Raises:
        InfeasibleError: it does not fit, it has too many steps, or operands lie in two memories.
        LimitError: the plan did not pass its check, which is a fault of Tilewright.
    """
    watcher(f"steps of {name}")
    run = _run(prepared, name)
    if run is None:
        message = f"{prepared.network.name}: {name} has too many steps for a plan"
        raise InfeasibleError(Problem(message=message))
    return _plan(prepared, run, options, watcher)


def last_resort(prepared: Prepared, options: PlanOptions, watcher: Watcher) -> Plan | None:
    """The plan of the first rung that fits where everything has to stay in one scratchpad.

    None where there is none, or where an external memory takes what does not fit.
    """
    space = only_scratchpad(prepared)
    if space is None or prepared.places.overflow() is not None:
        return None
    constants = _work(prepared).constant_bytes
    # Long steps are not worked out where constants alone take all the room.
    for name in LAST_RESORTS if constants < space.size_bytes else ():
        watcher(f"steps of {name}")
        run = _run(prepared, name)
        if run is not None and constants + peak_of(run).size_bytes <= space.size_bytes:
            try:
                return _plan(prepared, run, options, watcher)
            except InfeasibleError:
                continue
    return None


def _run(prepared: Prepared, name: RungName) -> Run | None:
    return rung_run(_work(prepared), name)


def _work(prepared: Prepared) -> Work:
    machine = prepared.places.machine
    return work_of_stages(prepared.network, prepared.stages, prepared.storage, machine)


def _plan(prepared: Prepared, run: Run, options: PlanOptions, watcher: Watcher) -> Plan:
    watcher("tiles and mappings")
    timetable = _with_external(timetable_of(prepared, run))
    watcher("addresses")
    timetable, fills = packed(timetable, options.packing)
    timetable = replace(timetable, edges=control_edges(timetable))
    if options.checked:
        watcher("check")
        check(timetable, prepared.network, prepared.places.machine)
    network, places = prepared.network, prepared.places
    return Plan(
        network=network,
        machine=places.machine,
        options=options,
        stages=prepared.stages,
        timetable=timetable,
        fills=fills,
        bounds=bounds(timetable.program),
        roofline=prepared.bounds,
        assumptions=(
            *places.assumptions,
            SUMS_OF_RUNGS,
        ),
    )


def _with_external(timetable: Timetable) -> Timetable:
    """The timetable with addresses in external memories, where a run has none of its own."""
    program = timetable.program
    known = external_addresses(program, list(timetable.slots))
    addresses = tuple(
        address + known.get(program.root(number), 0)
        for number, address in enumerate(timetable.addresses)
    )
    return replace(timetable, addresses=addresses)
