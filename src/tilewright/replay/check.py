"""Is a plan correct? Every promise of a timetable, looked up again from scratch.

Nothing here is shared with what makes timetables: the obvious way, one after the other.
"""

from collections.abc import Iterable, Iterator

from tilewright.errors import LimitError, Problem
from tilewright.garbage import without_garbage_collection
from tilewright.machine.model import Machine
from tilewright.network.graph import Network
from tilewright.program.model import Timetable
from tilewright.replay.check_accesses import Accesses, accesses_of
from tilewright.replay.check_alike import unlike_tasks
from tilewright.replay.check_bare import bare_problems
from tilewright.replay.check_bricks import brick_problems
from tilewright.replay.check_costs import cost_problems
from tilewright.replay.check_data import data_problems
from tilewright.replay.check_given import given_problems
from tilewright.replay.check_made import made_boxes, made_problems, sharing_ops
from tilewright.replay.check_mappings import mapping_problems
from tilewright.replay.check_memory import memory_problems
from tilewright.replay.check_network import network_problems, same_data_of, tensor_problems
from tilewright.replay.check_offsets import offsets_of
from tilewright.replay.check_ops import op_problems
from tilewright.replay.check_routes import route_problems
from tilewright.replay.check_streams import stream_problems, streamed_weight_problems
from tilewright.replay.check_structure import structure_problems
from tilewright.replay.check_tiles import tile_problems, tiles_of
from tilewright.replay.check_time import time_problems
from tilewright.replay.check_transfers import transfer_problems
from tilewright.replay.check_twice import twice_problems
from tilewright.replay.check_widths import width_problems

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
        with without_garbage_collection():
            return _problems(timetable, network, machine)
    except OverflowError:
        return [Problem(message="there is a number of more than 64 bits, which no machine counts")]


def _problems(
    timetable: Timetable, network: Network | None, machine: Machine | None
) -> list[Problem]:
    program = timetable.program
    shapes = [len(tensor.shape) for tensor in network.tensors] if network is not None else []
    accesses = accesses_of(program, max(shapes, default=1))
    broken = list(structure_problems(timetable, accesses))
    if network is not None:
        broken += tensor_problems(program, network)
    if broken:
        return broken
    same_data = same_data_of(program, network)
    offsets = offsets_of(network) if network is not None else {}
    found = [
        *time_problems(timetable, accesses.kinds),
        *transfer_problems(program, accesses),
        *twice_problems(program, accesses),
        *memory_problems(timetable, accesses),
        *data_problems(timetable, accesses, same_data, offsets),
    ]
    if network is not None:
        found += _problems_of_network(timetable, network, machine, accesses)
    return found


def _problems_of_network(
    timetable: Timetable, network: Network, machine: Machine | None, accesses: Accesses
) -> Iterator[Problem]:
    program, kinds = timetable.program, accesses.kinds
    tiles = tiles_of(program, network, kinds)
    made = made_boxes(network, tiles, accesses)
    sharing = sharing_ops(tiles, accesses, made)
    near = None if machine is None else machine.given.outputs
    yield from network_problems(program, network, accesses, tiles, near)
    yield from tile_problems(program, network, accesses, tiles, made)
    yield from op_problems(timetable, network, kinds, tiles, sharing)
    yield from made_problems(timetable, network, accesses, tiles, (made, sharing))
    yield from given_problems(program, network, machine)
    yield from brick_problems(program, network, machine, accesses)
    if machine is not None:
        yield from width_problems(program, machine)

    def alone(numbers: Iterable[int]) -> Iterator[Problem]:
        """What is wrong with tasks, each looked at alone."""
        yield from route_problems(program, network, numbers)
        yield from stream_problems(program, numbers)
        if machine is not None:
            yield from streamed_weight_problems(program, network, machine, numbers)
            yield from bare_problems(program, network, machine, numbers)
        yield from mapping_problems(program, network, machine, tiles, numbers)
        yield from cost_problems(program, network, machine, tiles, (kinds, numbers))

    # One of those that are alike speaks for all; if any is wrong, all are heard.
    if any(True for _ in alone(unlike_tasks(program, network, accesses, tiles, made))):
        yield from alone(range(len(program.tasks)))


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
