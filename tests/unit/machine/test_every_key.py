"""Nothing that a machine file declares is ignored: each key counts, is refused, or is told."""

from collections.abc import Callable
from functools import cache
from math import fsum

import pytest
from tests.machine_builder import Data, machine_of, messages, reading
from tests.unit.machine.keys_in_use import CHANGES, Change

from tilewright.document import dotted
from tilewright.document.file_model import FileModel, keys_of
from tilewright.errors import InfeasibleError, InputError
from tilewright.machine import files
from tilewright.machine.ignored import ignored_lines
from tilewright.mapping.network import map_network
from tilewright.network.graph import Network
from tilewright.network.zoo import layers
from tilewright.planner import PlanOptions, plan
from tilewright.report.machine import machine_json

MODELS = (
    files.PortFile, files.MemoryFile, files.OldMemoryFile, files.ArrayFile, files.VectorFile,
    files.CoreModelFile, files.CoreFile, files.DmaFile, files.LinkFile, files.EndFile,
    files.GivenFile,
    files.MachineFile,
)  # fmt: skip


@cache
def small_network() -> Network:
    """A convolution, which is the array's work, and a softmax, which is the vector unit's."""
    net = layers.draft("small", 8)
    data = layers.given(net, "x", (1, 4, 8, 8))
    made = layers.conv(net, "first", data, 12, layers.square(3))
    return net.finish(layers.softmax(net, "last", made))


QUICKLY = PlanOptions(cascades=False, order_steps=10, lpf_limit=4)


def mapped(data: Data) -> tuple[float, float]:
    found = map_network(small_network(), machine_of(data))
    return found.cycles, found.energy_pj


def planned(data: Data) -> tuple[object, ...] | str:
    try:
        made = plan(small_network(), machine_of(data), QUICKLY)
    except InfeasibleError as refusal:
        return str(refusal)
    return made.cycles, fsum(made.energy_pj.values()), tuple(made.peak_bytes.items())


def is_refused(data: Data) -> bool:
    """Whether an error or a refusal tells of it, or a warning that data cannot get in or out."""
    if any(not message.startswith("warning: ") for message in messages(data)):
        return True
    try:
        plan(small_network(), machine_of(data), QUICKLY)
    except (InfeasibleError, InputError):
        return True
    return False


def is_told(change: Change) -> bool:
    """Whether `check` warns at the key, at what has it, or at the ports that it counts."""
    path = [int(step) if step.isdecimal() else step for step in change.path.split("/")]
    *parents, _ = path
    within = [path, parents, [*parents, "ports"], [*path, 0]]
    places = {dotted(tuple(place)) for place in within}
    found = [message.removeprefix("warning: ") for message in messages(change.data())]
    return any(message.startswith(f"{place}: ") for message in found for place in places)


def shown(data: Data) -> object:
    read = reading(data).machine
    assert read is not None
    return machine_json(read)


@cache
def of_base(figure: Callable[[Data], object], base: Callable[[], Data]) -> object:
    """A figure of a machine before it changes."""
    return figure(base())


@pytest.mark.parametrize("change", CHANGES, ids=lambda c: f"{c.base.__name__}/{c.path}/{c.effect}")
def test_a_change_does_not_pass_unnoticed(change: Change) -> None:
    after = change.data()
    match change.effect:
        case "map":
            assert mapped(after) != of_base(mapped, change.base)
        case "plan":
            assert planned(after) != of_base(planned, change.base)
        case "refused":
            assert is_refused(after)
            assert not of_base(is_refused, change.base)
        case "warned":
            assert is_told(change)
        case "shown":
            assert shown(after) != shown(change.base())


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_key_of_a_file_is_looked_at(model: type[FileModel]) -> None:
    looked_at = {c.key for c in CHANGES if issubclass(model, c.model) or issubclass(c.model, model)}
    if model is files.OldMemoryFile:
        looked_at |= {c.key for c in CHANGES if c.model is files.MemoryFile}
    assert set(keys_of(model)) <= looked_at


def test_no_model_of_a_file_is_left_out() -> None:
    every = {m for m in vars(files).values() if isinstance(m, type) and issubclass(m, FileModel)}
    assert {m for m in every if not m.__name__.startswith("_")} - {FileModel} == set(MODELS)


def test_what_is_told_is_assumed_by_plans() -> None:
    """Suspicions aside, of which there are none here."""
    for change in CHANGES:
        if change.effect != "warned" or change.base.__name__ != "plain":
            continue
        data = change.data()
        told = {message.removeprefix("warning: ") for message in messages(data)}
        assert told == set(ignored_lines(machine_of(data))), change.path
