"""Tilewright plans how a neural network runs on an accelerator (NPU).

>>> import tilewright
>>> network = tilewright.load_network("lenet5")
>>> len(network.ops) > 5
True
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the names below are imported on first use: `import tilewright` is instant
    from tilewright.errors import InfeasibleError, InputError, LimitError, TilewrightError
    from tilewright.machine.load import load_machine
    from tilewright.machine.model import Machine
    from tilewright.mapping.network import MapOptions, MappedNetwork, map_network
    from tilewright.mapping.search import SearchOptions
    from tilewright.network.graph import Network
    from tilewright.network.load import load_network
    from tilewright.planner import Plan, PlanOptions, plan
    from tilewright.strategy.ladder.fit import Fit, fit

__version__ = "0.1.0"

_HOMES = {
    "Fit": "tilewright.strategy.ladder.fit",
    "InfeasibleError": "tilewright.errors",
    "InputError": "tilewright.errors",
    "LimitError": "tilewright.errors",
    "Machine": "tilewright.machine.model",
    "MapOptions": "tilewright.mapping.network",
    "MappedNetwork": "tilewright.mapping.network",
    "Network": "tilewright.network.graph",
    "Plan": "tilewright.planner",
    "PlanOptions": "tilewright.planner",
    "SearchOptions": "tilewright.mapping.search",
    "TilewrightError": "tilewright.errors",
    "fit": "tilewright.strategy.ladder.fit",
    "load_machine": "tilewright.machine.load",
    "load_network": "tilewright.network.load",
    "map_network": "tilewright.mapping.network",
    "plan": "tilewright.planner",
}

__all__ = [
    "Fit",
    "InfeasibleError",
    "InputError",
    "LimitError",
    "Machine",
    "MapOptions",
    "MappedNetwork",
    "Network",
    "Plan",
    "PlanOptions",
    "SearchOptions",
    "TilewrightError",
    "__version__",
    "fit",
    "load_machine",
    "load_network",
    "map_network",
    "plan",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'tilewright' has no attribute {name!r}")
