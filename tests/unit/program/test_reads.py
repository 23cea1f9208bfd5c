"""Where tasks find what they read: what a core holds is not handed to other cores."""

from tests.cascade_cases import QUICK
from tests.small_machines import Small, small_machine

from tilewright.network.zoo import layers
from tilewright.program.lower import lower, prepare


def test_what_a_core_keeps_is_moved_to_its_own_memories_alone() -> None:
    # Results and inputs lie in different scratchpads: all that the second convolution reads is
    # moved, and both cores read all channels of the first one's result.
    net = layers.draft("pair", 8)
    first = layers.conv(net, "first", layers.given(net, "x", (1, 4, 6, 6)), 16, layers.square(1))
    network = net.finish(layers.conv(net, "second", first, 16, layers.square(3, 1, 1)))
    machine = small_machine(Small(kind="split", cores=2, dma=True))
    program = lower(prepare(network, machine, network.ops, QUICK), "latency").program
    core_of = {space.name: space.core for space in program.spaces}
    moves = [task for task in program.tasks if task.kind == "move"]
    assert {core_of[program.buffers[m.writes[0].buffer].space] for m in moves} == {0, 1}
    for move in moves:
        ends = [program.buffers[access.buffer].space for access in (*move.reads, *move.writes)]
        assert len({core_of[space] for space in ends}) == 1
