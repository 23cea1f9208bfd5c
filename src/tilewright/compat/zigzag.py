"""ZigZag's API: `from tilewright.compat.zigzag import get_hardware_performance_zigzag`.

The functions take the parameters of `zigzag.api` in ZigZag 3.9.1, read the same files and return
the same figures in the same shape. What differs:

* Results are frozen values that hold plain data: operands, loops and memories are strings, not
  ZigZag's classes; a layer's `accelerator` is the machine's name.
* Faults of the input are told as `InputError` or `InfeasibleError`, with a place and a remedy,
  where ZigZag ends in an assertion, a `KeyError` or "no valid loop ordering". Machine files in the
  port dialect of ZigZag 3.8.1 and before are read too.
* A layer without a mapping for one generated unrolling is mapped with the others; ZigZag gives up.
* `salsa` is our own annealing search, with a fixed seed; it looks for what `opt` says.
* `get_hardware_performance_zigzag_imc` takes the options by keyword, too.
* Layers stand in the order of the file, also where ZigZag goes by their distance from the input;
  those from ONNX are numbered by their place in the network, not by their node in the file.
* `loop_ordering.txt` is written anew, in a form that `tilewright map --mapping` reads back;
  `mem_hierarchy.png` is not drawn; the pickle holds our values. Nothing is logged or shown on the
  way, whatever `loma_show_progress_bar` says.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal, Protocol

from tilewright.compat.zigzag_files import write_dumps, write_pickle
from tilewright.compat.zigzag_results import CostModelEvaluation, LayerNode, evaluation, sum_of
from tilewright.document import parse_document
from tilewright.errors import InputError, Problem
from tilewright.machine.load import load_machine
from tilewright.machine.model import Machine
from tilewright.mapping.locality import resident_tops
from tilewright.mapping.network import MapOptions, MappedNetwork, MappedOp, map_network
from tilewright.mapping.saved import read_mapping_file
from tilewright.mapping.search import Objective, SearchOptions
from tilewright.mapping.searches import search_named
from tilewright.network.graph import Network
from tilewright.network.load import load_network
from tilewright.network.zigzag_reader import read_zigzag

Layers = list[tuple[CostModelEvaluation, tuple[LayerNode, list[Any]]]]
Evaluations = list[tuple[CostModelEvaluation, Layers]]
"""One entry: all layers together, and every layer with its cost. The inner list stays empty."""

_OBJECTIVES: Final[Mapping[str, Objective]] = {
    "energy": "energy",
    "latency": "latency",
    "EDP": "edp",
}
_NOT_IN_MEMORY = ("Pooling", "Add")
"""Types of layer that an array which computes in memory leaves out."""

_SALSA_CANDIDATES = 10_000
"""Mappings that `salsa` costs for a layer, ten times what ZigZag's does; `loma` costs all."""

_DUMP_FOLDER = f"outputs/{datetime.now()}"


class OnnxModel(Protocol):
    """An `onnx.ModelProto`, without the time it takes to import onnx."""

    def SerializeToString(self) -> bytes:  # noqa: N802  # protobuf's name
        """The model as the bytes of a file."""


def get_hardware_performance_zigzag(  # noqa: PLR0913  # the parameters of zigzag.api
    workload: str | list[dict[str, Any]] | OnnxModel,
    accelerator: str,
    mapping: str,
    *,
    temporal_mapping_search_engine: Literal["loma", "salsa"] = "loma",
    temporal_mapping_type: Literal["uneven", "even"] = "uneven",
    opt: str = "latency",
    dump_folder: str = _DUMP_FOLDER,
    pickle_filename: str | None = None,
    lpf_limit: int = 6,
    nb_spatial_mappings_generated: int = 3,
    in_memory_compute: bool = False,
    exploit_data_locality: bool = False,
    enable_mix_spatial_mapping: bool = False,
    loma_show_progress_bar: bool = True,
) -> tuple[float, float, Evaluations] | tuple[float, float, float, float, Evaluations]:
    """Energy in pJ, latency in cycles, and the costs they are made of, as ZigZag 3.9.1 has them.

    With `in_memory_compute` the clock period in ns and the area in mm² stand after the latency.
    `opt` is `energy`, `latency` or `EDP`. A workload is a file (ONNX or YAML), an ONNX model, or
    the layers of a YAML file as data. Mixing unrollings and computing in memory keep data on the
    chip between layers, as `exploit_data_locality` does.

    Raises:
        InputError: a file or an option is wrong.
        InfeasibleError: a layer has no mapping, or data locality finds no home for a tensor.
    """
    mixed = in_memory_compute or enable_mix_spatial_mapping
    engine = _one_of(temporal_mapping_search_engine, ("loma", "salsa"), "search engine")
    options = SearchOptions(
        objective=_OBJECTIVES[_one_of(opt, tuple(_OBJECTIVES), "opt")],
        lpf_limit=_positive(lpf_limit, "lpf_limit"),
        even=_one_of(temporal_mapping_type, ("uneven", "even"), "mapping type") == "even",
        mixed_unrolling=mixed,
        unrollings=_positive(nb_spatial_mappings_generated, "nb_spatial_mappings_generated"),
        budget=_SALSA_CANDIDATES,
        round_off=True,
    )
    search = search_named("anneal" if engine == "salsa" else "loma")
    how = MapOptions(search=search, options=options, model="zigzag-3.9")
    machine = load_machine(accelerator)
    if in_memory_compute:
        _refuse_other_arrays(machine)
    mapped = _mapped(_network(workload), machine, mapping, how, mixed or exploit_data_locality)
    layers = [
        evaluation(_layer_node(op, mapped), op.mapped, machine.name)
        for op in mapped.ops
        if op.mapped is not None
    ]
    total = sum_of(layers, machine.name)
    write_dumps(Path(dump_folder), total, layers, mapped)
    write_pickle(Path(pickle_filename or f"{dump_folder}/list_of_cmes.pickle"), layers)
    entries: Evaluations = [(total, [(cost, (_node(cost), [])) for cost in layers])]
    if not in_memory_compute:
        return total.energy_total, total.latency_total2, entries
    return total.energy_total, total.latency_total2, *_clock_and_area(layers), entries


def get_hardware_performance_zigzag_imc(  # noqa: PLR0913  # the parameters of zigzag.api
    workload: str | list[dict[str, Any]] | OnnxModel,
    accelerator: str,
    mapping: str,
    *,
    temporal_mapping_search_engine: Literal["loma", "salsa"] = "loma",
    temporal_mapping_type: Literal["uneven", "even"] = "uneven",
    opt: str = "latency",
    dump_folder: str = _DUMP_FOLDER,
    pickle_filename: str | None = None,
    lpf_limit: int = 6,
    nb_spatial_mappings_generated: int = 3,
    loma_show_progress_bar: bool = True,
) -> tuple[float, float, float, float, Evaluations]:
    """`get_hardware_performance_zigzag` with `in_memory_compute`, which it implies."""
    result = get_hardware_performance_zigzag(
        workload,
        accelerator,
        mapping,
        temporal_mapping_search_engine=temporal_mapping_search_engine,
        temporal_mapping_type=temporal_mapping_type,
        opt=opt,
        dump_folder=dump_folder,
        pickle_filename=pickle_filename,
        lpf_limit=lpf_limit,
        nb_spatial_mappings_generated=nb_spatial_mappings_generated,
        in_memory_compute=True,
        loma_show_progress_bar=loma_show_progress_bar,
    )
    assert len(result) == 5
    return result


def _mapped(
    network: Network, machine: Machine, mapping: str, how: MapOptions, keep_on_chip: bool
) -> MappedNetwork:
    constraints, given = read_mapping_file(mapping)
    tops = resident_tops(network, machine, constraints, how.model) if keep_on_chip else None
    how = replace(how, constraints=constraints, given=given, tops=tops)
    return map_network(_on_the_array(network, machine), machine, how)


def _one_of(value: str, known: tuple[str, ...], what: str) -> str:
    if value not in known:
        message = f"{what}={value!r}: it is one of {', '.join(known)}"
        raise InputError(Problem(message=message))
    return value


def _positive(value: int, what: str) -> int:
    if value < 1:
        raise InputError(Problem(message=f"{what}={value}: it is 1 or more"))
    return value


def _network(workload: str | list[dict[str, Any]] | OnnxModel) -> Network:
    if isinstance(workload, str):
        return load_network(workload)
    if isinstance(workload, list):
        text = json.dumps(workload)
        reading = read_zigzag(parse_document(text, "workload"), "workload")
        if reading.network is None:
            raise InputError(*(p for p in reading.problems if p.severity == "error"))
        return reading.network
    with TemporaryDirectory() as folder:
        path = Path(folder) / "workload.onnx"
        path.write_bytes(workload.SerializeToString())
        return load_network(path)


def _on_the_array(network: Network, machine: Machine) -> Network:
    """The network; for an array that computes in memory without the layers that it leaves out.

    What those would have made is then given from outside.
    """
    left_out = [op for op in network.ops if op.attribute("zigzag_type") in _NOT_IN_MEMORY]
    if machine.cores[0].array.in_memory is None or not left_out:
        return network
    made = {operand.tensor for op in left_out for operand in op.outputs}
    return replace(
        network,
        ops=tuple(op for op in network.ops if op not in left_out),
        tensors=tuple(replace(t, role="input") if t.name in made else t for t in network.tensors),
    )


def _refuse_other_arrays(machine: Machine) -> None:
    if machine.cores[0].array.in_memory is None:
        message = f"{machine.name}: its array does not compute in memory"
        hint = "leave out in_memory_compute, or write `is_imc: True` into operational_array"
        raise InputError(Problem(file=machine.source, message=message, hint=hint))


def _clock_and_area(layers: list[CostModelEvaluation]) -> tuple[float, float]:
    """Of the first layer, as ZigZag has it; nothing if there is none."""
    first = layers[0] if layers else None
    if first is None or first.tclk is None or first.area_total is None:
        return 0.0, 0.0
    return first.tclk, first.area_total


def _layer_node(op: MappedOp, mapped: MappedNetwork) -> LayerNode:
    assert op.mapped is not None
    setup = op.mapped.setup
    nest = setup.nest
    position = next(i for i, other in enumerate(mapped.network.ops) if other.name == op.name)
    source = mapped.network.ops[position]
    written = str(source.attribute("zigzag_type"))
    sign = " + " if op.kind == "add" else " * "
    output, *inputs = (
        o.letter + "".join(f"[{axis.lower()}]" for axis in o.axes) for o in nest.operands
    )
    return LayerNode(
        id=int(source.outputs[0].tensor.partition(".")[0]) if written else position,
        name=op.name,
        type=written or str(source.attribute("onnx_op")),
        equation=f"{output} = {sign.join(inputs)}",
        dimension_relations=tuple(map(str, nest.relations)),
        layer_dim_sizes=nest.sizes,
        pr_layer_dim_sizes={relation.target: relation.size for relation in nest.relations},
        operand_precision={o.letter: o.bits for o in nest.operands} | {"O_final": nest.final_bits},
        memory_operand_links=dict(setup.hierarchy.links),
        spatial_mapping={dim: dict(pairs) for dim, pairs in setup.spatial.unrolling},
        total_mac_count=nest.points,
    )


def _node(cost: CostModelEvaluation) -> LayerNode:
    assert cost.layer is not None, "only a sum has no layer"
    return cost.layer
