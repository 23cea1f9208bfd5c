"""The files that ZigZag leaves behind: results of every layer and of the whole, and loop orders."""

import json
import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilewright.compat.zigzag_results import CostModelEvaluation, LoopLevels
from tilewright.document import make_folder, write_files, write_texts
from tilewright.machine.model import Machine, Memory
from tilewright.mapping.network import MappedNetwork
from tilewright.mapping.saved import save_mappings


def write_dumps(
    folder: Path,
    total: CostModelEvaluation,
    layers: Sequence[CostModelEvaluation],
    mapped: MappedNetwork,
) -> None:
    """Write `overall_simple.json`, `<layer>_complete.json` and `loop_ordering.txt`.

    Raises:
        InputError: the folder cannot be written.
    """
    texts = {"overall_simple.json": _json(simple(total))}
    for layer in layers:
        name = str(layer.layer).replace("/", "_")
        texts[f"{name}_complete.json"] = _json(complete(layer, mapped.machine))
    write_texts(folder, texts)
    save_mappings(mapped, str(folder / "loop_ordering.txt"))


def write_pickle(file: Path, layers: Sequence[CostModelEvaluation]) -> None:
    """Write the layers' evaluations as one pickled list.

    Raises:
        InputError: the file cannot be written.
    """
    make_folder(file.parent)
    write_files({file: pickle.dumps(list(layers))})


def simple(cost: CostModelEvaluation) -> dict[str, Any]:
    """Energy and latency; clock and area too where the array computes in memory."""
    result = {"energy": cost.energy_total, "latency": cost.latency_total2}
    if cost.tclk is not None and cost.area_total is not None:
        return {**result, "tclk (ns)": cost.tclk, "area": cost.area_total}
    return result


def complete(cost: CostModelEvaluation, machine: Machine) -> dict[str, Any]:
    """All of a layer's figures under ZigZag's keys."""
    return {
        "outputs": {
            "memory": {
                "utilization": cost.mem_utili_shared,
                "word_accesses": cost.memory_word_access,
            },
            "energy": _energy(cost),
            "latency": {
                "data_onloading": cost.data_onloading_cycle,
                "computation": cost.latency_total0,
                "data_offloading": cost.data_offloading_cycle + cost.systolic_drain_cycle,
                "computation_breakdown": {
                    "mac_computation": cost.ideal_temporal_cycle,
                    "memory_stalling": cost.stall_slack_comb,
                },
            },
            "spatial": {
                "mac_utilization": {
                    "ideal": cost.mac_spatial_utilization,
                    "stalls": cost.mac_utilization0,
                    "stalls_onloading": cost.mac_utilization1,
                    "stalls_onloading_offloading": cost.mac_utilization2,
                }
            },
            **_in_memory(cost),
        },
        "inputs": {
            "accelerator": _accelerator(machine),
            "layer": _layer(cost),
            "spatial_mapping": _levels(cost.spatial_mapping_int),
            "temporal_mapping": _levels(cost.temporal_mapping),
        },
    }


def _energy(cost: CostModelEvaluation) -> dict[str, Any]:
    inside = cost.mac_energy_breakdown
    return {
        "energy_total": cost.energy_total,
        "operational_energy": cost.mac_energy,
        **({"operational_energy_breakdown": inside} if inside is not None else {}),
        "memory_energy": cost.mem_energy,
        "memory_energy_breakdown_per_level": cost.mem_energy_breakdown,
        "memory_energy_breakdown_per_level_per_operand": cost.mem_energy_breakdown_further,
    }


def _in_memory(cost: CostModelEvaluation) -> dict[str, Any]:
    if cost.tclk is None:
        return {}
    return {
        "clock": {"tclk (ns)": cost.tclk},
        "area (mm^2)": {"total_area": cost.area_total},
    }


def _accelerator(machine: Machine) -> dict[str, Any]:
    core = machine.cores[0]
    memories = machine.levels(core)
    carriers = ("O", "I1", "I2")
    return {
        "id": 0,
        "name": machine.name,
        "operational_array": {
            "operational_unit": {
                "energy_cost": core.array.mac_pj,
                "area": core.array.area_mm2_per_unit,
            },
            "dimensions": core.array.sizes,
            "systolic_dimensions": list(core.array.systolic_dims),
        },
        "memory_hierarchy": [_memory(m) for m in memories],
        "mem_hierarchy_dict": {
            carrier: [_memory(m) for m in memories if carrier in m.operands] for carrier in carriers
        },
        "mem_size_dict": {
            carrier: [m.size_bits for m in memories if carrier in m.operands]
            for carrier in carriers
        },
    }


def _memory(memory: Memory) -> str:
    operands, dims = ", ".join(memory.operands), ", ".join(memory.served_dims)
    served = f"{{{dims}}}"
    return f"MemoryLevel(instance={memory.name},operands=[{operands}], served_dimensions={served})"


def _layer(cost: CostModelEvaluation) -> dict[str, Any]:
    layer = cost.layer
    assert layer is not None, "a sum has no complete file"
    return {
        "name": layer.name,
        "type": layer.type,
        "equation": layer.equation,
        "equation_relations": list(layer.dimension_relations),
        "loop_dimensions": layer.layer_dim_sizes,
        "operand_precision": layer.operand_precision,
        "user_spatial_mapping": layer.spatial_mapping,
        "memory_operand_links": layer.memory_operand_links,
    }


def _levels(levels: Mapping[str, LoopLevels]) -> dict[str, list[list[str]]]:
    return {
        letter: [[f"({loop}, {size})" for loop, size in level] for level in all_levels]
        for letter, all_levels in levels.items()
    }


def _json(data: Mapping[str, Any]) -> str:
    return json.dumps(data, indent=4)
