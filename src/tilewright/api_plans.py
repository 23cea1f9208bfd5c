"""What can be done with a plan from Python: values and files alike."""

from collections.abc import Mapping
from pathlib import Path

from tilewright.api import network_of
from tilewright.network.graph import Network
from tilewright.plan_model import Plan
from tilewright.replay.verify import Verified, refuse
from tilewright.report import compare as comparing
from tilewright.report import explain as explaining
from tilewright.report import exports
from tilewright.report.compare import Comparison
from tilewright.report.explain import Explanation
from tilewright.report.plan import plan_figures
from tilewright.report.plan_files import plan_source
from tilewright.report.plan_replay import replayed_plan
from tilewright.report.record import PlanRecord, read_record, record_of
from tilewright.report.replay_file import replay_file


def replay(
    plan: Plan | str | Path,
    network: Network | str | Path | None = None,
    *,
    dims: Mapping[str, int] | None = None,
    bits: int | None = None,
    seed: int = 0,
    input_file: str | Path | None = None,
) -> Verified:
    """Run a plan on an emulated machine and compare what it computes with its network.

    A plan is a value, a `plan.json`, or the folder that holds one. `network` is needed only where
    the plan names a file that has moved; `dims` and `bits` belong to it. `input_file` (`.npz`)
    gives input arrays by tensor name; what no file gives is drawn with `seed`.

    Raises:
        InputError: it is no plan, or it is of another network.
        LimitError: the plan is wrong; every reason is in it.
    """
    inputs = None if input_file is None else Path(input_file)
    if isinstance(plan, Plan):
        graph = plan.network if network is None else network_of(network, dims, bits)
        found = replayed_plan(plan, graph, seed=seed, input_file=inputs)
    else:
        source = network.source if isinstance(network, Network) else network
        found = replay_file(
            str(plan),
            model=None if source is None else str(source),
            dims=dims or {},
            bits=bits,
            seed=seed,
            input_file=inputs,
        )
    refuse(found)
    return found


def explain(plan: Plan | str | Path, op: str = "") -> Explanation:
    """Why a plan, or one of its ops, takes as long as it does, and what would help first.

    Raises:
        InputError: it is no plan, or has no such op.
    """
    return explaining.explain(_record(plan), op)


def compare(before: Plan | str | Path, after: Plan | str | Path) -> Comparison:
    """What changed between two plans, op by op.

    Raises:
        InputError: one of them is no plan.
    """
    return comparing.compare(_record(before), _record(after))


def export(plan: Plan | str | Path, to: exports.Format, folder: str | Path) -> list[Path]:
    """Write a plan for other tools (`csv`, `minimalloc`, `model-explorer`, `onnx`) into a folder.

    Returns the files written.

    Raises:
        InputError: it is no plan, or nothing can be written there.
    """
    return exports.export(_record(plan), to, Path(folder))


def _record(plan: Plan | str | Path) -> PlanRecord:
    if not isinstance(plan, Plan):
        return read_record(plan)
    return record_of(plan, {**plan_figures(plan), "source": plan_source(plan)})
