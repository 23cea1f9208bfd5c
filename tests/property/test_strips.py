"""Random networks in strips: they compute the same, and their plans are plans of the network."""

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from tests.random_cases import examples, repeatable
from tests.small_machines import Small, small_machine
from tests.strip_cases import in_strips, stretches, strip_arrays, wide_networks

from tilewright.errors import InfeasibleError
from tilewright.network.graph import Network
from tilewright.replay.check import problems
from tilewright.replay.kernels.whole import computed
from tilewright.replay.values import seeded_arrays
from tilewright.replay.verify import verify
from tilewright.strategy.columns import Stretch
from tilewright.strategy.patches import patched


def drawn_strips(
    network: Network, data: st.DataObject, *, by_themselves: bool = False
) -> tuple[tuple[Stretch, int], ...]:
    """One stretch, or two that follow each other, long ones as likely as short ones."""
    found = [stretch for stretch in stretches(network) if stretch.columns > 1]
    found = [stretch for stretch in found if not by_themselves or is_computable(stretch)]
    if not found:
        reject()
    length = data.draw(st.sampled_from(sorted({len(stretch.walks) for stretch in found})))
    first = data.draw(st.sampled_from([s for s in found if len(s.walks) == length]))
    place = {op.name: number for number, op in enumerate(network.ops)}
    behind = [s for s in found if place[s.walks[0].op.name] > place[first.walks[-1].op.name]]
    both = [first, *([data.draw(st.sampled_from(behind))] if behind else [])]
    return tuple((stretch, data.draw(st.integers(2, stretch.columns))) for stretch in both)


def is_computable(stretch: Stretch) -> bool:
    """Whether its strips make what the network makes when they are computed by themselves.

    What is not finished has no counterpart in the network, and a resize finds the places that it
    reads by the sizes of whole tensors, which plans are about.
    """
    return not stretch.reduces and all(walk.op.kind != "resize" for walk in stretch.walks)


@settings(repeatable, max_examples=examples(200))
@given(wide_networks(), st.data())
def test_every_tensor_of_a_strip_is_the_same_as_in_the_network(
    network: Network, data: st.DataObject
) -> None:
    strips = drawn_strips(network, data, by_themselves=True)
    patches = patched(network, network.ops, strips)
    if patches is None:
        reject()
    arrays = seeded_arrays(network, seed=1)
    expected = computed(network, arrays, {})
    found = computed(patches.network, strip_arrays(patches, arrays), {})
    for tensor in patches.network.tensors:
        part = patches.tensors.get(tensor.name)
        whole = expected[tensor.name if part is None else part.tensor]
        if part is not None:
            columns = range(part.start, part.start + tensor.shape[part.axis])
            whole = whole.take(columns, axis=part.axis)
        # Sums of float32 numbers may be added up in another order.
        np.testing.assert_allclose(found[tensor.name], whole, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("cores", [1, 2])
@settings(repeatable, max_examples=examples(100))
@given(network=wide_networks(), data=st.data())
def test_a_plan_in_strips_is_a_correct_plan_of_the_network(
    cores: int, network: Network, data: st.DataObject
) -> None:
    machine = small_machine(Small(kind="ends", size_bytes=16 * 1024, cores=cores, dma=True))
    try:
        made = in_strips(network, machine, drawn_strips(network, data))
    except InfeasibleError:
        reject()
    if made is None:
        reject()
    assert problems(made.timetable, network) == []
    assert verify(made.timetable, network).agrees
