"""One plan in a process of its own: its figures, printed as JSON.

    python benchmarks/vela_plan.py NETWORK MACHINE OBJECTIVE [SRAM_BYTES]

`plan_cpu_s` is the CPU of planning alone, with everything imported and the files read.
"""

import json
import sys
import time
from typing import Any

import tilewright
from tilewright.errors import TilewrightError
from tilewright.planner import PlanOptions, plan


def main(arguments: list[str]) -> None:
    network = tilewright.load_network(arguments[0])
    machine = tilewright.load_machine(arguments[1])
    limits = tuple(("sram", int(size)) for size in arguments[3:])
    options = PlanOptions(objective=arguments[2], memory_limits=limits)  # type: ignore[arg-type]
    start = time.process_time()
    try:
        made = plan(network, machine, options)
    except TilewrightError as error:
        figures = {"error": error.problems[0].message}
    else:
        figures = told(made)
    print(json.dumps({**figures, "plan_cpu_s": time.process_time() - start}))


def told(made: tilewright.Plan) -> dict[str, Any]:
    network = made.network
    return {
        "cycles": made.cycles,
        "sram_bytes": made.peak_bytes["sram"],
        "input_output_bytes": sum(
            tensor.size_bytes for tensor in network.tensors if tensor.role in ("input", "output")
        ),
        "feature_map_bytes": feature_map_bytes(made),
        "host_bytes": sum(made.traffic_bytes.get("host_in", (0, 0))),
        "cascades": len(made.strategy.cascades),
        "tasks": len(made.program.tasks),
    }


def feature_map_bytes(made: tilewright.Plan) -> int:
    """Bytes of anything but constants that are read from and written to external memories."""
    program = made.program
    constants = {t.name for t in made.network.tensors if t.role == "constant"}
    outside = {space.memory for space in program.spaces if space.kind == "external"}
    total = 0
    for task in program.tasks:
        moved = sum(c.read_bytes + c.write_bytes for c in task.charges if c.memory in outside)
        if moved and program.buffers[task.reads[0].buffer].tensor not in constants:
            total += moved
    return total


if __name__ == "__main__":
    main(sys.argv[1:])
