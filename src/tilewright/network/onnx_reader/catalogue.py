"""Every operator that can be read, with the kind of op it becomes."""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from tilewright.network.onnx_reader import (
    attention,
    constants,
    convolutions,
    layout,
    lookups,
    normalisations,
    packed,
    pointwise,
    pools,
    products,
    quantisation,
    recurrent,
    reductions,
    resizing,
    rotary,
    sampling,
    spectra,
)
from tilewright.network.onnx_reader.call import Rule

CONSTANT = "constant"
"""What stands for a kind where an operator never becomes an op."""


@cache
def op_rules() -> Mapping[str, Rule]:
    """Rules by operator; one of another domain than ONNX's has its domain before it and a dot."""
    found: dict[str, Rule] = {}
    for module in (
        convolutions,
        pools,
        products,
        packed,
        pointwise,
        normalisations,
        reductions,
        layout,
        lookups,
        resizing,
        quantisation,
        recurrent,
        attention,
        rotary,
        sampling,
        spectra,
    ):
        found |= module.rules()
    return MappingProxyType(found)


@cache
def constant_rules() -> Mapping[str, constants.ConstantRule]:
    """Rules of the operators whose result is known when the file is read."""
    return MappingProxyType(constants.rules())


def supported_ops() -> Mapping[str, str]:
    """The kind each ONNX operator becomes, by the operator's name, sorted.

    Operators of other domains have the domain before their name (`com.microsoft.QLinearAdd`).
    `constant` stands for those that are worked out while the file is read.
    """
    kinds = {name: rule.kind for name, rule in op_rules().items()}
    kinds |= dict.fromkeys((*constant_rules(), "If"), CONSTANT)
    return MappingProxyType(dict(sorted(kinds.items())))
