"""One plan in a process of its own: its figures, printed as JSON.

    python benchmarks/vela_plan.py NETWORK MACHINE OBJECTIVE [SRAM_BYTES]

`plan_cpu_s` is the CPU of planning alone, with everything imported and the files read, and
`check_cpu_s` that part of it in which the finished plan is checked. What is refused is planned
again with `thorough`, and the CPU of both counts. Vela leaves the conversion of a floating-point
input or output to the CPU and does not count its traffic: with the objective `traffic` the plan is
of the network without them; `conversions` says how many.
"""

import json
import sys
import time
from dataclasses import replace
from fractions import Fraction
from math import ceil, inf, prod
from typing import Any, Literal

import tilewright
from tilewright.errors import TilewrightError
from tilewright.planner import PlanOptions, plan
from tilewright.program.model import Access, Box, Program
from tilewright.schedule.packed import buffer_lives


def main(arguments: list[str]) -> None:
    read = tilewright.load_network(arguments[0])
    network = without_conversions(read) if arguments[2] == "traffic" else read
    machine = tilewright.load_machine(arguments[1])
    limits = tuple(("sram", int(size)) for size in arguments[3:])
    options = PlanOptions(objective=arguments[2], memory_limits=limits)  # type: ignore[arg-type]
    figures: dict[str, Any] = {}
    start = time.process_time()
    for thorough in (False, True):
        steps: dict[str, float] = {}
        watch = lambda step, to=steps: to.update({step: time.process_time()})  # noqa: E731
        try:
            made = plan(network, machine, replace(options, thorough=thorough), watch)
        except TilewrightError as error:
            end = time.process_time()
            figures = {"error": error.problems[0].message}
        else:
            end = time.process_time()
            figures = {**told(made), "conversions": len(read.ops) - len(network.ops)}
            break
    spent = {"plan_cpu_s": end - start, "check_cpu_s": end - steps.get("check", end)}
    print(json.dumps({**figures, **spent, "thorough": thorough}))


def without_conversions(network: tilewright.Network) -> tilewright.Network:
    """The network between the conversions at its ends."""
    inputs, outputs = ({t.name for t in ends} for ends in (network.inputs, network.outputs))
    ends = [
        op
        for op in network.ops
        if (op.kind == "quantize" and op.inputs[0].tensor in inputs)
        or (op.kind == "dequantize" and op.outputs[0].tensor in outputs)
    ]
    role_of: dict[str, Literal["input", "output"]] = {
        **{op.outputs[0].tensor: "input" for op in ends if op.kind == "quantize"},
        **{op.inputs[0].tensor: "output" for op in ends if op.kind == "dequantize"},
    }
    ops = tuple(op for op in network.ops if op not in ends)
    used = {operand.tensor for op in ops for operand in op.operands}
    tensors = [
        replace(tensor, role=role_of.get(tensor.name, tensor.role))
        for tensor in network.tensors
        if tensor.name in used
    ]
    tensors.sort(key=lambda tensor: tensor.role != "input")
    return replace(network, tensors=tuple(tensors), ops=ops)


def told(made: tilewright.Plan) -> dict[str, Any]:
    return {
        "cycles": made.cycles,
        "sram_bytes": made.peak_bytes["sram"],
        "whole_sram_bytes": whole_sram_bytes(made),
        "feature_map_bytes": feature_map_bytes(made),
        "off_chip_bytes": off_chip_bytes(made),
        "cascades": len(made.strategy.cascades),
        "tasks": len(made.program.tasks),
        "input_output_bytes": sum(
            t.size_bytes for t in made.network.tensors if t.role in ("input", "output")
        ),
    }


def off_chip_bytes(made: tilewright.Plan) -> int:
    """All bytes from and to external memories, sources and sinks."""
    outside = [space.name for space in made.program.spaces if space.kind != "scratchpad"]
    return sum(sum(made.traffic_bytes.get(name, (0, 0))) for name in outside)


def whole_sram_bytes(made: tilewright.Plan) -> int:
    """Peak SRAM if inputs lay there whole until all is read, and outputs from the first byte on.

    They come on top of what the plan has there meanwhile, so that a better packing may take less.
    """
    program, slots = made.program, made.timetable.slots
    lives = buffer_lives(made.timetable)
    placed = [
        (start, end, made.timetable.addresses[number] + program.buffers[number].size_bytes)
        for number, (start, end) in lives.items()
        if program.buffers[number].space == "sram"
    ]
    for tensor in made.network.tensors:
        if tensor.role not in ("input", "output"):
            continue
        users = [
            slots[number]
            for number, task in enumerate(program.tasks)
            for access in (task.reads if tensor.role == "input" else task.writes)
            if program.buffers[access.buffer].tensor == tensor.name
            and program.space[program.buffers[access.buffer].space].kind in ("source", "sink")
        ]
        if users:
            start = 0 if tensor.role == "input" else min(slot.start_cycle for slot in users)
            end = made.cycles if tensor.role == "output" else max(slot.end_cycle for slot in users)
            tops = [top for begin, close, top in placed if begin < end and start < close]
            placed.append((start, end, max(tops, default=0) + tensor.size_bytes))
    return max(top for _, _, top in placed)


def size_of(program: Program, access: Access) -> int:
    """Bytes of an access; partial sums are wider than the tensor's elements."""
    buffer = program.buffers[access.buffer]
    return ceil(buffer.size_bytes * Fraction(elements(access.box), elements(buffer.box)))


def feature_map_bytes(made: tilewright.Plan) -> int:
    """Bytes of anything but constants that are read from and written to external memories.

    A transfer may carry several tensors, so accesses are counted, and compared with what the tasks
    are charged for.
    """
    program = made.program
    roles = {tensor.name: tensor.role for tensor in made.network.tensors}
    outside = {space.name for space in program.spaces if space.kind == "external"}
    bytes_of = {"constant": 0, "other": 0}
    look_ups = {op.name for op in made.network.ops if op.kind == "gather"}
    for task in program.tasks:
        # Of a table no more is read than is found in it.
        found = size_of(program, task.writes[0]) if task.op in look_ups else inf
        for access in (*task.reads, *task.writes):
            buffer = program.buffers[access.buffer]
            if buffer.space in outside:
                role = "constant" if roles[buffer.tensor] == "constant" else "other"
                bytes_of[role] += int(min(size_of(program, access), found))
    charged = sum(sum(made.traffic_bytes.get(name, (0, 0))) for name in outside)
    # Weights that stream are read again for every block.
    if sum(bytes_of.values()) > charged:
        raise SystemExit(f"transfers of {bytes_of} bytes are charged as {charged}")
    return bytes_of["other"]


def elements(box: Box) -> int:
    return prod(end - start for start, end in box)


if __name__ == "__main__":
    main(sys.argv[1:])
