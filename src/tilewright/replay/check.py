"""Is a plan correct? Every promise of a timetable, looked up again from scratch.

Nothing here is shared with what makes timetables: the obvious way, one after the other.
"""

from tilewright.errors import LimitError, Problem
from tilewright.machine.model import Machine
from tilewright.network.graph import Network
from tilewright.program.model import Timetable
from tilewright.replay.check_accesses import accesses_of
from tilewright.replay.check_costs import cost_problems
from tilewright.replay.check_data import data_problems
from tilewright.replay.check_given import given_problems
from tilewright.replay.check_made import made_problems
from tilewright.replay.check_mappings import mapping_problems
from tilewright.replay.check_memory import memory_problems
from tilewright.replay.check_network import network_problems, same_data_of, tensor_problems
from tilewright.replay.check_offsets import offsets_of
from tilewright.replay.check_ops import op_problems
from tilewright.replay.check_routes import route_problems
from tilewright.replay.check_streams import stream_problems
from tilewright.replay.check_structure import structure_problems
from tilewright.replay.check_tiles import tile_problems, tiles_of
from tilewright.replay.check_time import time_problems
from tilewright.replay.check_transfers import transfer_problems

MOST_SHOWN = 50
"""One fault can have thousands of consequences; the first ones tell what it is."""


def problems(
    timetable: Timetable, network: Network | None = None, machine: Machine | None = None
) -> list[Problem]:
    """Everything that is wrong with a timetable; with a network, also whether it computes that.

    With a machine, also whether tasks without a mapping cost what they do there.
    If a timetable names things that do not exist, or boxes outside their buffers, only that is
    reported: nothing else would mean anything.
    """
    try:
        return _problems(timetable, network, machine)
    except OverflowError:
        return [Problem(message="there is a number of more than 64 bits, which no machine counts")]


def _problems(
    timetable: Timetable, network: Network | None, machine: Machine | None
) -> list[Problem]:
    accesses = accesses_of(timetable.program)
    broken = list(structure_problems(timetable, accesses))
    if network is not None:
        broken += tensor_problems(timetable.program, network)
    if broken:
        return broken
    found = [
        *time_problems(timetable),
        *transfer_problems(timetable.program, accesses),
        *memory_problems(timetable, accesses),
        *data_problems(
            timetable,
            accesses,
            same_data_of(timetable.program, network),
            offsets_of(network) if network is not None else {},
        ),
    ]
    if network is not None:
        tiles = tiles_of(timetable.program, network)
        found += [
            *network_problems(timetable.program, network, tiles),
            *tile_problems(timetable.program, network, accesses, tiles),
            *op_problems(timetable, network, tiles),
            *made_problems(timetable, network, accesses, tiles),
            *given_problems(timetable.program, network),
            *route_problems(timetable.program, network),
            *stream_problems(timetable.program),
            *mapping_problems(timetable.program, network, tiles),
            *cost_problems(timetable.program, network, machine, tiles),
        ]
    return found


def check(
    timetable: Timetable, network: Network | None = None, machine: Machine | None = None
) -> None:
    """Make sure that a timetable is correct; see `problems`.

    Raises:
        LimitError: it is not; its problems say what clashes with what, where and when.
    """
    found = problems(timetable, network, machine)
    if not found:
        return
    rest = len(found) - MOST_SHOWN
    more = [Problem(message=f"and {rest} more problems of this plan")] if rest > 0 else []
    raise LimitError(*found[:MOST_SHOWN], *more)
