"""Runs inside ZigZag's Python: reads jobs as JSON from stdin, prints results as JSON lines.

A job has the keys `workload`, `accelerator`, `mapping`, `options` and, if files are to be kept,
`dump_folder`. Every line of the result has the layers with their costs, or the error. With
`--record` one list is printed instead, for tests: jobs with their results, without times.
"""

import contextlib
import io
import json
import logging
import re
import sys
import tempfile
import time
import warnings
from typing import Any

import zigzag.stages.results.visualization as pictures
from zigzag.api import get_hardware_performance_zigzag
from zigzag.opt.loma.memory_allocator import MemoryAllocator

_TRIED = [0]


def count_mappings() -> None:
    """Have every loop order counted that ZigZag allocates."""
    allocate = MemoryAllocator.run

    def counted(self: MemoryAllocator) -> Any:
        _TRIED[0] += 1
        return allocate(self)

    MemoryAllocator.run = counted


def layer_costs(cme: Any) -> dict[str, Any]:
    return {
        "name": cme.layer.name,
        "energy": cme.energy_total,
        "mac_energy": cme.mac_energy,
        "compute": cme.ideal_temporal_cycle,
        "stall": cme.stall_slack_comb,
        "onload": cme.data_onloading_cycle,
        "offload": cme.data_offloading_cycle,
        "drain": cme.systolic_drain_cycle,
        "latency": cme.latency_total2,
        "unrolling": str(cme.layer.spatial_mapping),
        "temporal": str(cme.temporal_mapping),
    }


def result_of(job: dict[str, Any]) -> dict[str, Any]:
    before, start = _TRIED[0], time.process_time()
    result: dict[str, Any] = {"layers": []}
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        try:
            answer = get_hardware_performance_zigzag(
                job["workload"],
                job["accelerator"],
                job["mapping"],
                dump_folder=job.get("dump_folder", folder),
                loma_show_progress_bar=False,
                **job["options"],
            )
            result["layers"] = [layer_costs(cme) for cme, _ in answer[-1][0][1]]
            result["totals"] = list(answer[:-1])
        except Exception as error:  # every way in which it can fail is to be counted
            text = re.sub(r" for layer \S+|\d+|\{.*", "_", str(error).strip().split("\n")[0])
            result["error"] = f"{type(error).__name__}: {text[:60]}"
    result["mappings"] = _TRIED[0] - before
    result["cpu_s"] = time.process_time() - start
    return result


def main() -> None:
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    jobs = json.load(sys.stdin)
    count_mappings()
    if len(jobs) > 1:
        pictures.visualize_memory_hierarchy_graph = lambda *args, **options: None
    if sys.argv[1:] == ["--record"]:
        results = [{**job, **result_of(job)} for job in jobs]
        for result in results:
            del result["cpu_s"]
        print(json.dumps(results, indent=1))
        return
    for job in jobs:
        print(json.dumps(result_of(job)), flush=True)


if __name__ == "__main__":
    main()
