"""The scheduler's front: a program in, the best timetable of several simulations out."""

from dataclasses import replace

from tilewright.garbage import without_garbage_collection
from tilewright.program.model import Program, Timetable
from tilewright.schedule.beginning import with_beginning, without_beginning
from tilewright.schedule.bounds import Bounds
from tilewright.schedule.claims import StuckError
from tilewright.schedule.external import too_full
from tilewright.schedule.in_order import in_order
from tilewright.schedule.infeasible import full_scratchpad, stuck, too_large
from tilewright.schedule.options import ScheduleOptions
from tilewright.schedule.order import order_of
from tilewright.schedule.result import timetable_of
from tilewright.schedule.search import best_run
from tilewright.schedule.state import TooSlowError
from tilewright.schedule.tables import Tables, tables_of

DEFAULT_OPTIONS = ScheduleOptions()


def schedule(
    program: Program, options: ScheduleOptions = DEFAULT_OPTIONS, known: Bounds | None = None
) -> Timetable:
    """Times and addresses for a program; raises InfeasibleError if none are found.

    `known` are the program's bounds, if the caller has them already.

    Where data can be written out to an external memory and back, they are found whenever the
    operands of every single task fit. Where it cannot, other orders of the compute tasks are
    tried too, all of them for a small program.
    """
    with without_garbage_collection():
        tables = tables_of(with_beginning(program)) if known is None else known.tables
        error = too_large(tables) or too_full(program)
        if error is not None:
            raise error
        lower_bound = _lower_bound(tables, options, known)
        try:
            found = timetable_of(best_run(tables, options, lower_bound).state)
        except StuckError as failed:
            ordered = in_order(tables, options.packing_nodes)
            if ordered is None:
                raise stuck(tables, failed, _enough_bytes(tables, options, failed)) from None
            found = ordered
        return without_beginning(found, program)


def schedule_below(
    program: Program,
    cycles: int,
    options: ScheduleOptions = DEFAULT_OPTIONS,
    known: Bounds | None = None,
) -> Timetable | None:
    """Times and addresses that take fewer cycles; None, soon, if none are found.

    A program that does not fit has none.
    """
    with without_garbage_collection():
        tables = tables_of(with_beginning(program)) if known is None else known.tables
        if too_large(tables) is not None or too_full(program) is not None:
            return None
        lower_bound = _lower_bound(tables, options, known)
        if lower_bound >= cycles:
            return None
        try:
            state = best_run(tables, options, lower_bound, (cycles, 0)).state
        except (StuckError, TooSlowError):
            return None
        return without_beginning(timetable_of(state), program)


def _lower_bound(tables: Tables, options: ScheduleOptions, known: Bounds | None) -> int:
    """What no schedule goes below that may be tried."""
    least = known or Bounds(tables)
    is_small = len(tables.engine) <= options.small_tasks
    return least.cycles if is_small else least.order_cycles


def schedule_in_order(
    program: Program,
    options: ScheduleOptions = DEFAULT_OPTIONS,
    known: Bounds | None = None,
    *,
    tight: bool = False,
) -> Timetable | None:
    """Times and addresses without any added transfer, in program order; None if it does not fit.

    `known` are the program's bounds, if the caller has them already. With `tight` addresses, the
    scratchpads are filled from below, as far as they have to be.
    """
    with without_garbage_collection():
        tables = tables_of(with_beginning(program)) if known is None else known.tables
        found = in_order(tables, options.packing_nodes, tight=tight)
        return None if found is None else without_beginning(found, program)


def _enough_bytes(tables: Tables, options: ScheduleOptions, failed: StuckError) -> int | None:
    """The smallest size of the full scratchpad, as far as a few trials tell, that is enough."""
    if not tables.touched[failed.task]:
        return None
    pad = full_scratchpad(tables, failed)
    name = tables.scratchpads[pad]
    order = order_of(tables, range(len(tables.engine)))
    too_small = tables.program.space[name].size_bytes
    reserved_bytes = too_small - tables.room_bytes[pad]
    enough = max(too_small + 1, max(order.live_bytes[pad]) + reserved_bytes)
    for _ in range(options.explain_trials):
        if _fits(tables, options, name, enough):
            break
        too_small, enough = enough, enough + enough // 8 + 1
    else:
        return None
    for _ in range(options.explain_trials):
        middle = (too_small + enough) // 2
        if middle == too_small:
            break
        if _fits(tables, options, name, middle):
            enough = middle
        else:
            too_small = middle
    return enough


def _fits(tables: Tables, options: ScheduleOptions, name: str, size_bytes: int) -> bool:
    """Whether a schedule is found if a scratchpad has another size."""
    spaces = tuple(
        replace(space, size_bytes=size_bytes) if space.name == name else space
        for space in tables.program.spaces
    )
    changed = tables_of(replace(tables.program, spaces=spaces))
    try:
        best_run(changed, replace(options, small_tasks=0, rules_in_vain=0), 0)
    except StuckError:
        return False
    return True
