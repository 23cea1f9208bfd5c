"""Proof by running: a plan's results against those of the network computed op by op."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tilewright.errors import InputError, LimitError, Problem
from tilewright.machine.model import Machine
from tilewright.network.graph import Network
from tilewright.program.model import Timetable
from tilewright.replay.check import MOST_SHOWN
from tilewright.replay.check import problems as check_problems
from tilewright.replay.emulate import replay
from tilewright.replay.emulate_compare import Agreement, agreements
from tilewright.replay.emulate_traffic import Traffic
from tilewright.replay.kernels.tile import KernelError
from tilewright.replay.kernels.whole import computed
from tilewright.replay.timing import timing
from tilewright.replay.values import values_of

FILES_WITH_VALUES = (".onnx", ".tflite")


@dataclass(frozen=True, kw_only=True)
class Verified:
    """What a replay found: how outputs agree, what was wrong, and what was moved."""

    outputs: tuple[Agreement, ...]
    problems: tuple[Problem, ...]
    traffic: Mapping[str, Traffic]
    planned_cycles: int
    replayed_cycles: int
    machine: str | None = None
    """The machine whose memories, ways and costs the plan was compared with, if one was at hand."""

    @property
    def agrees(self) -> bool:
        """Whether everything was as planned and all outputs are right."""
        return not self.problems and all(output.agrees for output in self.outputs)


def verify(
    timetable: Timetable,
    network: Network,
    *,
    machine: Machine | None = None,
    seed: int = 0,
    input_file: Path | None = None,
) -> Verified:
    """Replay a plan with the values of the network's file, or with values from a seed.

    With a machine, costs are compared with it that no values show.

    Raises:
        InputError: the plan is of another network, a value is missing, or an op is not emulated.
    """
    _refuse_another(timetable, network)
    path = Path(network.source)
    model = path if path.suffix in FILES_WITH_VALUES and path.is_file() else None
    values = values_of(network, model, seed=seed, input_file=input_file)
    try:
        expected = computed(network, values.arrays, values.quantisation)
    except KernelError as error:
        raise InputError(Problem(message=f"this network cannot be replayed: {error}")) from None
    found = replay(timetable, network, values, expected=expected)
    # A file may have been changed since it was checked: times, ports and costs leave no trace in
    # values.
    wrong = found.problems or tuple(check_problems(timetable, network, machine)[:MOST_SHOWN])
    return Verified(
        outputs=agreements(found.outputs, expected),
        problems=wrong,
        traffic=found.traffic,
        planned_cycles=timetable.cycles,
        replayed_cycles=timing(timetable),
        machine=None if machine is None else machine.name,
    )


def refuse(found: Verified) -> None:
    """Raise LimitError with whatever does not agree."""
    wrong = [
        Problem(message=f"output {output.name} differs by {output.max_error:.3g}")
        for output in found.outputs
        if not output.agrees
    ]
    if found.problems or wrong:
        raise LimitError(*found.problems, *wrong)


def _refuse_another(timetable: Timetable, network: Network) -> None:
    """A plan of another network, or of other sizes of it, proves nothing."""
    ops = {op.name for op in network.ops}
    for task in timetable.program.tasks:
        unknown = [name for name in (task.op, *task.fused) if name and name not in ops]
        if unknown:
            message = f"the plan computes op {unknown[0]!r}, which {network.name!r} does not have"
            raise InputError(Problem(message=message, hint="give its file with --model"))
    for buffer in timetable.program.buffers:
        tensor = network.by_name.get(buffer.tensor)
        outside = tensor is None or len(tensor.shape) != len(buffer.box)
        if (
            tensor is None
            or outside
            or any(stop > size for (_, stop), size in zip(buffer.box, tensor.shape, strict=True))
        ):
            message = f"the plan holds a part of {buffer.tensor!r} that {network.name!r} lacks"
            hint = "give its file with --model, and its --dim and --bits as for the plan"
            raise InputError(Problem(message=message, hint=hint))
