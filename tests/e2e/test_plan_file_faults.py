"""Forged plan files of every sort: a replay accepts none of them."""

import json
import random
from functools import cache
from pathlib import Path

import pytest
from tests.plan_file_faults import WAYS, Data, Way, loops_in_another_order
from tests.small_machines import Small, small_machine

import tilewright
from tilewright.errors import InputError
from tilewright.machine.load import load_machine
from tilewright.machine.model import Machine
from tilewright.network.graph import Network
from tilewright.network.zoo import layers
from tilewright.replay.verify import Verified
from tilewright.report.plan_files import plan_json
from tilewright.report.plan_replay import replayed
from tilewright.report.record import read_record

HARMLESS_SOMETIMES = (loops_in_another_order,)
CERTAIN = tuple(way for way in WAYS if way not in HARMLESS_SOMETIMES)
A_FEW = 3
MANY = 40


@cache
def network() -> Network:
    """Convolutions, a sum around one of them, and an op of the vector unit."""
    net = layers.draft("pair", 8)
    data = layers.given(net, "x", (1, 4, 12, 10))
    first = layers.relu6(net, "relu", layers.conv(net, "first", data, 8, layers.square(3, pad=1)))
    second = layers.conv(net, "second", first, 4, layers.square(3, pad=1))
    joined = layers.add(net, "sum", data, second)
    return net.builder.finish([layers.softmax(net, "soft", joined).name])


@cache
def machine() -> Machine:
    return small_machine(Small(size_bytes=1200, cores=2, alignment_bytes=4, dma=True))


@cache
def text() -> str:
    return json.dumps(plan_json(tilewright.plan(network(), machine())))


def replay_of(data: Data, folder: Path) -> Verified:
    (folder / "plan.json").write_text(json.dumps(data), "utf-8")
    named = data["source"]["machine"]
    is_own = not named.startswith("library:")
    on = machine() if is_own else load_machine(named.removeprefix("library:"))
    return replayed(read_record(folder), network(), on)


def is_accepted(data: Data, folder: Path) -> bool:
    try:
        return replay_of(data, folder).agrees
    except InputError:
        return False


def forged(way: Way, count: int) -> list[Data]:
    """Changed files, as many as asked for; each is another than the plan's."""
    found: list[Data] = []
    for seed in range(20 * count):
        data: Data = json.loads(text())
        if way(data, random.Random(seed)) and data != json.loads(text()):
            found.append(data)
        if len(found) == count:
            break
    return found


def test_the_file_as_it_was_written_is_right(tmp_path: Path) -> None:
    found = replay_of(json.loads(text()), tmp_path)
    assert found.problems == ()
    assert found.agrees


def accepted(way: Way, count: int, folder: Path) -> list[int]:
    return [at for at, data in enumerate(forged(way, count)) if is_accepted(data, folder)]


@pytest.mark.parametrize("way", CERTAIN, ids=lambda way: way.__name__)
def test_no_forged_file_is_accepted(way: Way, tmp_path: Path) -> None:
    assert len(forged(way, A_FEW)) == A_FEW
    assert accepted(way, A_FEW, tmp_path) == []


def test_another_order_of_loops_is_accepted_where_it_costs_as_much(tmp_path: Path) -> None:
    """It is another mapping of the same tile, and just as right."""
    (way,) = HARMLESS_SOMETIMES
    assert 0 < len(accepted(way, 8, tmp_path)) < 8


@pytest.mark.slow
@pytest.mark.parametrize("way", CERTAIN, ids=lambda way: way.__name__)
def test_none_of_many_forged_files_is_accepted(way: Way, tmp_path: Path) -> None:
    assert accepted(way, MANY, tmp_path) == []
