"""Programs of small networks, looked at task by task."""

from collections.abc import Callable, Sequence

import pytest
from tests.program_faults import faults
from tests.small_machines import Small, small_machine
from tests.small_networks import op

from tilewright.errors import InfeasibleError
from tilewright.machine.load import load_machine
from tilewright.machine.model import Machine
from tilewright.mapping.search import SearchOptions
from tilewright.network import moves, nests
from tilewright.network.graph import Network, Tensor
from tilewright.network.zoo import layers
from tilewright.network.zoo.layers import Draft
from tilewright.program.lower import Lowered, lower, prepare
from tilewright.program.model import Task

QUICK = SearchOptions(lpf_limit=3, unrollings=2)


def lowered(network: Network, machine: Machine | Small) -> Lowered:
    on = small_machine(machine) if isinstance(machine, Small) else machine
    found = lower(prepare(network, on, network.ops, QUICK), "latency")
    assert faults(found.program, network) == []
    return found


def tasks(found: Lowered, name: str) -> list[Task]:
    """Compute tasks of an op, or transfers by their name."""
    return [t for t in found.program.tasks if name in (t.op, t.name)]


def spaces(found: Lowered, task: Task, *, reads: bool) -> list[str]:
    accesses = task.reads if reads else task.writes
    return [found.program.buffers[a.buffer].space for a in accesses]


def chain(*steps: Callable[[Draft, str, Tensor], Tensor], shape: Sequence[int]) -> Network:
    net = layers.draft("chain", 8)
    data = layers.given(net, "x", tuple(shape))
    for number, step in enumerate(steps):
        data = step(net, f"op{number}", data)
    return net.finish(data)


def exp(net: Draft, name: str, data: Tensor) -> Tensor:
    return layers.activation(net, name, data, "exp")


def conv(channels: int, kernel: int) -> Callable[[Draft, str, Tensor], Tensor]:
    def made(net: Draft, name: str, data: Tensor) -> Tensor:
        return layers.conv(net, name, data, channels, layers.square(kernel, 1, kernel // 2))

    return made


def test_with_room_a_tensor_between_two_ops_never_leaves() -> None:
    found = lowered(chain(conv(4, 3), conv(4, 3), shape=(1, 4, 8, 8)), Small())
    assert ("op0", 0) in found.layout.kept
    assert not tasks(found, "op0 out")
    (out,) = tasks(found, "op1 out")
    assert spaces(found, out, reads=False) == ["ddr"]


def test_a_tensor_that_leaves_no_room_goes_out_and_comes_back() -> None:
    network = chain(conv(16, 3), conv(2, 3), shape=(1, 2, 16, 16))
    # 16 x 16 x 16 B between the two do not fit in 2 KiB.
    found = lowered(network, Small(size_bytes=2048))
    assert ("op0", 0) not in found.layout.kept
    out = [c for t in tasks(found, "op0 out") for c in t.charges]
    assert sum(charge.read_bytes for charge in out) == 16 * 16 * 16
    assert tasks(found, "op0 in")


def test_an_elementwise_op_writes_over_its_input() -> None:
    found = lowered(chain(exp, exp, exp, shape=(1, 4, 8, 8)), Small())
    assert found.layout.in_place == {1: "op0"}
    buffers = found.program.buffers
    (target,) = {a.buffer for t in tasks(found, "op1") for a in t.writes}
    view = buffers[target].view
    assert view is not None
    assert buffers[view.buffer].tensor == "op0"


def test_every_core_writes_over_its_own_input() -> None:
    found = lowered(chain(exp, exp, exp, shape=(1, 4, 8, 8)), Small(cores=3))
    kept = [b for b in found.program.buffers if b.tensor == "op1" and b.space != "ddr"]
    assert len(kept) > 1
    assert all(buffer.view is not None for buffer in kept)


def test_an_input_that_is_read_again_is_not_written_over() -> None:
    net = layers.draft("twice", 8)
    first = exp(net, "first", layers.given(net, "x", (1, 4, 8, 8)))
    second = exp(net, "second", first)
    network = net.finish(layers.add(net, "add", second, first))
    assert 1 not in lowered(network, Small()).layout.in_place


def test_cores_keep_their_halo_and_get_it_from_whoever_computes_it() -> None:
    found = lowered(chain(conv(4, 3), conv(4, 3), shape=(1, 4, 16, 8)), Small(cores=2))
    assert [part[0]["OY"] for part in zip(*found.layout.parts, strict=True)] == [(0, 8), (8, 16)]
    assert [found.layout.kept["op0", core][2] for core in (0, 1)] == [(0, 9), (7, 16)]
    for task in tasks(found, "op0"):
        (own,) = [span[1:] for span in task.tile if span[0] == "OY"]
        for access in task.writes:
            assert found.program.buffers[access.buffer].tensor == "op0"
            assert own[0] <= access.box[2][0] < access.box[2][1] <= own[1]
    # Row 7 is made by core 0 and row 8 by core 1; both keep both.
    writes = [a for t in tasks(found, "op0") for a in t.writes]
    for row in (7, 8):
        holders = [
            found.program.buffers[a.buffer].space
            for a in writes
            if a.box[2][0] <= row < a.box[2][1]
        ]
        assert sorted(set(holders)) == ["bank[0]", "bank[1]"]


def test_weights_that_all_cores_want_come_in_one_transfer() -> None:
    found = lowered(chain(conv(4, 3), shape=(1, 4, 16, 8)), Small(cores=2))
    loads = [
        t
        for t in found.program.tasks
        if t.kind == "load"
        and any(found.program.buffers[a.buffer].tensor == "op0.weight" for a in t.reads)
    ]
    assert len(loads) == 1
    targets = [
        found.program.buffers[a.buffer].space
        for a in loads[0].writes
        if found.program.buffers[a.buffer].tensor == "op0.weight"
    ]
    assert sorted(targets) == ["bank[0]", "bank[1]"]


def test_a_sum_that_does_not_fit_is_cut_and_goes_on_from_its_parts() -> None:
    # The weights of one output channel are 128 * 9 B, the memory has 512 B.
    found = lowered(chain(conv(2, 3), shape=(1, 128, 4, 4)), Small(size_bytes=512))
    buffers = found.program.buffers
    sums = [n for n, b in enumerate(buffers) if b.name == "op0 partial sums"]
    assert sums
    for number in sums:
        users = [
            (any(a.buffer == number for a in t.reads), any(a.buffer == number for a in t.writes))
            for t in tasks(found, "op0")
            if any(a.buffer == number for a in (*t.reads, *t.writes))
        ]
        # The first only leaves sums, the last only takes them up, those between do both.
        assert users[0] == (False, True)
        assert users[-1] == (True, False)
        assert all(user == (True, True) for user in users[1:-1])


def test_streamed_weights_hold_a_port_while_the_op_runs() -> None:
    found = lowered(chain(conv(4, 3), shape=(1, 4, 8, 8)), load_machine("tpu_like"))
    (task,) = tasks(found, "op0")
    read = {
        found.program.buffers[a.buffer].tensor: found.program.buffers[a.buffer].space
        for a in task.reads
    }
    assert read["op0.weight"] == "dram"
    assert task.ports == ("dram.rw_port_1",)


def test_a_tile_of_padding_alone_needs_no_data() -> None:
    def pad(net: Draft, name: str, data: Tensor) -> Tensor:
        return op(net, name, "pad", moves.pad(data.shape, (0, 0, 6, 0), (0, 0, 6, 0)), data)

    found = lowered(chain(pad, shape=(1, 4, 8, 8)), Small(size_bytes=130))
    padded = [t for t in tasks(found, "op0") if not t.reads]
    assert padded
    assert all(t.engine == "core[0].vector" for t in padded)


def test_what_a_core_hands_out_but_does_not_keep_has_room_too() -> None:
    # The product is cut along D, its reader along channels: neither core keeps all that it makes.
    net = layers.draft("crossed", 8)
    weights = layers.constant(net, "w", (9, 14))
    made = layers.matmul(net, "made", layers.given(net, "y", (1, 5, 12, 9)), weights)
    network = net.finish(made, layers.add(net, "sum", made, made))
    for size in (256, 512, 1024):
        lowered(network, Small(kind="split", size_bytes=size, cores=2))


def test_a_constant_seen_through_a_view_is_loaded() -> None:
    net = layers.draft("view", 8)
    table = layers.constant(net, "table", (8, 4, 4))
    part = layers.take(net, "part", table, 0, (2, 6))
    data = layers.given(net, "x", (4, 4, 4))
    sum_ = op(net, "sum", "add", nests.elementwise(data.shape, part.shape), data, part)
    found = lowered(net.finish(sum_), Small())
    assert not [key for key in found.layout.kept if key[0] == "table"]


def test_two_ops_alike_in_all_but_their_axes_are_cut_as_each_may_be() -> None:
    net = layers.draft("reductions", 8)
    data = layers.given(net, "x", (16, 16))
    copy = exp(net, "copy", data)
    results = [
        op(net, f"sum{axis}", "reduce_sum", nests.reduce(copy.shape, [axis], keep_dims=True), copy)
        for axis in (0, 1)
    ]
    for size in (280, 300, 400):
        lowered(net.finish(*results), Small(size_bytes=size))


def test_a_long_chain_of_vector_ops_is_lowered() -> None:
    found = lowered(chain(*[exp] * 300, shape=(1, 2, 4, 4)), Small())
    assert len([t for t in found.program.tasks if t.kind == "compute"]) >= 300


def test_shared_weights_and_unread_input_count_once_and_not_at_all_in_bounds() -> None:
    net = layers.draft("shared", 8)
    data = layers.given(net, "x", (1, 8, 8, 8))
    part = layers.take(net, "part", data, 1, (0, 4))
    weights = layers.constant(net, "w", (8, 8))
    one = layers.matmul(net, "one", part, weights)
    network = net.finish(layers.matmul(net, "two", one, weights))
    found = lowered(network, Small())
    # 4 * 64 B of the input and 64 B of weights come, 4 * 64 B go, at 4 B a cycle.
    assert found.bounds.traffic_bytes == 256 + 64 + 256
    assert found.bounds.transfer_cycles == (256 + 64) // 4


def test_an_op_that_does_not_fit_says_what_is_needed(golden: Callable[[str, str], None]) -> None:
    network = chain(conv(16, 3), layers.softmax, shape=(1, 16, 4, 40))
    texts = []
    for kind, size in (("one", 48), ("split", 32), ("ends", 300)):
        small = Small(kind=kind, size_bytes=size)  # type: ignore[arg-type]  # all are kinds
        with pytest.raises(InfeasibleError) as refused:
            lowered(network, small)
        texts.append(f"{kind}, {size} B:\n{refused.value}\n")
    golden("errors/op_does_not_fit.txt", "\n".join(texts))


@pytest.mark.parametrize("size", [40, 48, 64, 79])
def test_the_size_that_is_asked_for_is_the_smallest_that_will_do(size: int) -> None:
    network = chain(layers.softmax, shape=(1, 4, 4, 40))
    with pytest.raises(InfeasibleError, match="at least 80 B"):
        lowered(network, Small(size_bytes=size))
    lowered(network, Small(size_bytes=80))
