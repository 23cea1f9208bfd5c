from functools import cache

import pytest
from tests.cascade_cases import prepared

from tilewright.machine.load import load_machine
from tilewright.network.load import load_network
from tilewright.network.zoo import layers
from tilewright.program.cascade import Cascade, flow_of
from tilewright.program.rows import Rows
from tilewright.strategy.spans import span_of

HEIGHT = 2


@cache
def rows_of(name: str) -> Rows:
    return prepared(load_network(name), load_machine("ethos_u65_256")).rows


def test_held_rows_are_the_window_that_stays_and_what_a_step_adds() -> None:
    """A pool of windows of 2 rows, a stride of 2, behind a convolution of 3 x 3.

    The pool needs no row twice, and takes 2 rows for each of its own. Of a convolution's three
    rows of input two are needed again.
    """
    span = span_of(rows_of("notes_cnn"), 0, 1, HEIGHT)
    assert span is not None
    steps = {step: span.holds["conv1"].rows(step, eager=True) for step in (1, 4, 100)}
    assert steps == {1: 2, 4: 8, 100: 30}
    assert [span.holds["input"].rows(step, eager=True) for step in (1, 4, 100)] == [4, 10, 32]
    # One row of the convolution at a time takes one more row of the input.
    assert span.holds["input"].rows(1, eager=False) == 3


@pytest.mark.parametrize("name", ["resnet18", "squeezenet", "tiny_yolov3"])
def test_held_rows_are_never_fewer_than_a_cascade_holds(name: str) -> None:
    rows = rows_of(name)
    compared = exact = 0
    for first in range(0, len(rows.stages), 3):
        for last in range(first, min(len(rows.stages), first + 5)):
            span = span_of(rows, first, last, HEIGHT)
            for step, eager in ((1, False), (1, True), (4, True)) if span else ():
                flow = flow_of(
                    rows, Cascade(first=first, last=last, axis=HEIGHT, step=step, eager=eager)
                )
                assert flow is not None
                assert span is not None
                for root, roll in {**flow.inputs, **flow.rolls}.items():
                    held = span.holds[root].rows(step, eager=eager)
                    assert roll.rows <= held <= roll.rows + 3, (first, last, step, root)
                    compared += 1
                    exact += held == roll.rows
    assert exact > 0.9 * compared > 0


def test_parts_of_a_concatenation_that_are_there_before_a_span_come_from_outside() -> None:
    net = layers.draft("parts", 8)
    data = layers.given(net, "x", (1, 4, 6, 6))
    early = layers.conv(net, "early", data, 4, layers.square(3, 1, 1))
    small = layers.max_pool(net, "small", early, layers.square(2, 2))
    late = layers.upsample(net, "late", small, 2)
    both = layers.concat(net, "both", [early, late], 1)
    network = net.finish(layers.conv(net, "end", both, 4, layers.square(1)))
    rows = prepared(network, load_machine("ethos_u65_256")).rows
    # Stages early, small, late, end: of `both`, the first half is made by early.
    spans = [span_of(rows, first, 3, HEIGHT) for first in (3, 2, 1, 0)]
    assert [span and span.inputs for span in spans] == [
        ("both",),
        ("both", "small"),
        ("both",),
        ("x",),
    ]
