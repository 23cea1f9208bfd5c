"""Tilewright plans how a neural network runs on an accelerator (NPU).

>>> import tilewright
>>> network = tilewright.load_network("lenet5")
>>> len(network.ops) > 5
True
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the names below are imported on first use: `import tilewright` is instant
    from tilewright.api import fit, map_network, plan
    from tilewright.api_plans import compare, explain, export, replay
    from tilewright.errors import InfeasibleError, InputError, LimitError, TilewrightError
    from tilewright.machine.load import load_machine
    from tilewright.machine.model import Machine
    from tilewright.mapping.network import MapOptions, MappedNetwork
    from tilewright.mapping.search import SearchOptions
    from tilewright.network.graph import Network
    from tilewright.network.load import load_network
    from tilewright.plan_model import Plan, PlanOptions
    from tilewright.strategy.ladder.fit import Fit

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
    "Plan": "tilewright.plan_model",
    "PlanOptions": "tilewright.plan_model",
    "SearchOptions": "tilewright.mapping.search",
    "TilewrightError": "tilewright.errors",
    "compare": "tilewright.api_plans",
    "explain": "tilewright.api_plans",
    "export": "tilewright.api_plans",
    "fit": "tilewright.api",
    "load_machine": "tilewright.machine.load",
    "load_network": "tilewright.network.load",
    "map_network": "tilewright.api",
    "plan": "tilewright.api",
    "replay": "tilewright.api_plans",
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
    "compare",
    "explain",
    "export",
    "fit",
    "load_machine",
    "load_network",
    "map_network",
    "plan",
    "replay",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'tilewright' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


class _Package(ModuleType):
    """This package: a folder of it that is imported does not hide a function of the same name."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
