"""Replaying a plan from its file: what it says of itself is compared with network and machine."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilewright.errors import InputError
from tilewright.machine.load import load_machine
from tilewright.machine.model import Machine
from tilewright.network.graph import Network
from tilewright.network.load import load_network
from tilewright.replay.verify import Verified
from tilewright.report.plan_faults import faults_told, refuse_faults
from tilewright.report.plan_replay import replayed
from tilewright.report.record import read_record


def replay_file(
    plan: str,
    *,
    model: str | None = None,
    dims: Mapping[str, int],
    bits: int | None = None,
    seed: int = 0,
    input_file: Path | None = None,
) -> Verified:
    """What a replay of a `plan.json`, or of the folder that holds one, comes to.

    `model` is the network's file if the plan names another; `dims` and `bits` are then its own.

    Raises:
        InputError: it is no plan, it is of another network, or a value is missing.
    """
    with faults_told(plan):
        record = read_record(Path(plan))
        refuse_faults(plan, record.figures)
        network = _planned_network(record.figures, model, dims, bits)
        machine = _named_machine(record.figures["source"]["machine"])
    with faults_told(plan):
        return replayed(record, network, machine, seed=seed, input_file=input_file)


def _planned_network(
    figures: Mapping[str, Any], model: str | None, dims: Mapping[str, int], bits: int | None
) -> Network:
    """The network that a plan is of, with its sizes and bits but for those that are given.

    A model that is given may be written with sizes of its own: of it, only what is given counts.
    """
    if model is not None:
        return load_network(model, dims=dims, bits=bits)
    source = figures["source"]
    name = str(source["network"] or figures["network"])
    if name.startswith("zoo:"):
        name = name.removeprefix("zoo:").partition("?")[0]
    # Plans of earlier versions do not say them.
    wide = bits if bits is not None or "bits" in dims else source.get("bits")
    return load_network(name, dims={**source.get("dims", {}), **dims}, bits=wide)


def _named_machine(source: str) -> Machine | None:
    """The machine that a plan is for, if it can still be read: a replay does without it."""
    try:
        return load_machine(source.removeprefix("library:"))
    except InputError:
        return None
