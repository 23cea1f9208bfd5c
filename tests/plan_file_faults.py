"""Ways to forge a plan file: what a replay from the file must not accept.

Each way changes the data of a `plan.json`, and keeps what goes with it in step where a forger
would: totals after a cheaper task, the slot of a shorter one.
"""

import random
from collections.abc import Callable
from math import fsum
from typing import Any

Data = dict[str, Any]
Way = Callable[[Data, random.Random], bool]
"""Changes the data of a plan file; whether a place was found for the change."""


def _drawn(items: list[Any], draw: random.Random) -> Any:
    return draw.choice(items) if items else None


def _tasks(data: Data, *kinds: str) -> list[Data]:
    return [task for task in data["task_list"] if not kinds or task["kind"] in kinds]


def _mapped(data: Data) -> list[Data]:
    return [task for task in data["task_list"] if "mapping" in task]


def _add_up(data: Data) -> None:
    """Totals as tasks say now."""
    energies: dict[str, list[float]] = {}
    traffic: dict[str, Data] = {}
    for task in data["task_list"]:
        for memory, read, written, energy_pj in task["charges"]:
            energies.setdefault(memory, []).append(energy_pj)
            if memory not in ("array", "vector"):
                moved = traffic.setdefault(memory, {"read": 0, "write": 0})
                moved["read"] += read
                moved["write"] += written
    by_memory = {memory: fsum(parts) for memory, parts in energies.items()}
    data["totals"] |= {
        "cycles": max(task["end_cycle"] for task in data["task_list"]),
        "energy_pj": fsum(by_memory.values()),
        "energy_pj_by_memory": by_memory,
        "traffic_bytes": traffic,
    }


def arrays_as_vector_units(data: Data, draw: random.Random) -> bool:
    """All tasks of arrays are on the vector units of their cores."""
    names = {engine["name"] for engine in data["engines"]}
    found = [task for task in _tasks(data, "compute") if task["engine"] + ".vector" in names]
    keeps_mappings = draw.random() < 0.5
    for task in found:
        task["engine"] += ".vector"
        if not keeps_mappings:
            task.pop("mapping", None)
    return bool(found)


def bounds_of_figures(data: Data, draw: random.Random) -> bool:
    """Some bound is what the plan takes: it seems to be the best that there is."""
    totals = data["totals"]
    ends = {s["memory"] for s in data["spaces"] if s["kind"] != "scratchpad"}
    moved = sum(sum(totals["traffic_bytes"].get(end, {}).values()) for end in ends)
    forged = {"cycles": totals["cycles"], "roofline_cycles": totals["cycles"]}
    forged |= {"path_cycles": totals["cycles"], "traffic_bytes": moved}
    places = [(data["bounds"], key) for key in forged if key in data["bounds"]]
    places += [
        (inner, key)
        for inner in data["bounds"].values()
        if isinstance(inner, dict)
        for key in forged
        if key in inner
    ]
    places = [(inner, key) for inner, key in places if inner[key] != forged[key]]
    place = _drawn(places, draw)
    if place is None:
        return False
    place[0][place[1]] = forged[place[1]]
    return True


def quicker_mapping(data: Data, draw: random.Random) -> bool:
    """A mapping takes half the cycles, and so do all of its tasks."""
    number = draw.randrange(max(1, len(data["mapping_costs"])))
    tasks = [task for task in _mapped(data) if task["mapping"] == number]
    if not tasks or tasks[0]["end_cycle"] - tasks[0]["start_cycle"] < 2:
        return False
    cost = data["mapping_costs"][number]
    for key in ("compute_cycles", "stall_cycles", "onload_cycles", "offload_cycles"):
        cost[key] /= 2
    for task in tasks:
        task["end_cycle"] -= (task["end_cycle"] - task["start_cycle"]) // 2
    _add_up(data)
    return True


def cheaper_mapping(data: Data, draw: random.Random) -> bool:
    """A mapping takes half the energy, and so do all of its tasks."""
    number = draw.randrange(max(1, len(data["mapping_costs"])))
    tasks = [task for task in _mapped(data) if task["mapping"] == number]
    cost = data["mapping_costs"][number] if tasks else {"energy_pj": []}
    if not any(energy_pj for *_, energy_pj in cost["energy_pj"]):
        return False
    cost["energy_pj"] = [[one, memory, pj / 2] for one, memory, pj in cost["energy_pj"]]
    for task in tasks:
        task["charges"] = [[m, read, written, pj / 2] for m, read, written, pj in task["charges"]]
    _add_up(data)
    return True


def _rows(data: Data, draw: random.Random) -> tuple[int, list[str]] | None:
    """A mapping of several loops, line by line; the loops begin behind the fourth line."""
    found = [n for n, text in enumerate(data["mappings"]) if len(text.rstrip().split("\n")) > 5]
    number = _drawn(found, draw)
    return None if number is None else (number, data["mappings"][number].split("\n"))


def loops_in_another_order(data: Data, draw: random.Random) -> bool:
    """The outermost loop of a mapping is its innermost."""
    found = _rows(data, draw)
    if found is None:
        return False
    number, lines = found
    rows = [line for line in lines[4:] if line]
    turned = [*rows[1:], rows[0]]
    data["mappings"][number] = "\n".join([*lines[:4], *turned, ""])
    return turned != rows


def more_units(data: Data, draw: random.Random) -> bool:
    """A mapping unrolls a loop further, and takes fewer steps in time."""
    found = _rows(data, draw)
    if found is None:
        return False
    number, lines = found
    loop, size = lines[4].split()[:2]
    lines[2] += f", {loop} {size}" if not lines[2].endswith("-") else ""
    lines[2] = lines[2][:-1] + f"{loop} {size}" if lines[2].endswith("-") else lines[2]
    del lines[4]
    data["mappings"][number] = "\n".join(lines)
    return True


def nearer_memory(data: Data, draw: random.Random) -> bool:
    """A mapping keeps all loops of an operand in its lowest memory, whatever that holds."""
    found = _rows(data, draw)
    if found is None:
        return False
    number, lines = found
    cells = [line.split() for line in lines[4:] if line]
    column = draw.randrange(2, len(cells[0]))
    if any(len(row) != len(cells[0]) for row in cells) or cells[0][column] == cells[-1][column]:
        return False
    for row in cells:
        row[column] = cells[-1][column]
    data["mappings"][number] = "\n".join([*lines[:4], *("  ".join(row) for row in cells), ""])
    return True


def mapping_of_another_nest(data: Data, draw: random.Random) -> bool:
    """A mapping's nest has a loop that is a step shorter."""
    found = _rows(data, draw)
    if found is None:
        return False
    number, lines = found
    loops = [part.split() for part in lines[1].removeprefix("nest ").split(", ")]
    long = [loop for loop in loops if int(loop[1]) > 1]
    if not long:
        return False
    loop = draw.choice(long)
    loop[1] = str(int(loop[1]) - 1)
    lines[1] = "nest " + ", ".join(" ".join(loop) for loop in loops)
    data["mappings"][number] = "\n".join(lines)
    return True


def another_mapping(data: Data, draw: random.Random) -> bool:
    """A task names the mapping of other tiles."""
    task = _drawn(_mapped(data), draw)
    nests = [text.split("\n")[1] for text in data["mappings"]]
    others = [n for n, nest in enumerate(nests) if task and nest != nests[task["mapping"]]]
    if not others:
        return False
    task["mapping"] = draw.choice(others)
    return True


def another_op(data: Data, draw: random.Random) -> bool:
    """An op of the list has another kind, worker, size, or reads something else."""
    op = draw.choice(data["op_list"])
    key = draw.choice(["kind", "worker", "macs", "dims", "fused", "reads", "writes"])
    if key == "kind":
        op[key] = "tanh" if op[key] != "tanh" else "conv"
    elif key == "worker":
        op[key] = "vector" if op[key] != "vector" else "array"
    elif key == "macs":
        op[key] += 1
    elif key == "dims":
        op[key] = [[loop, size + 1] for loop, size in op[key]] or [["X", 1]]
    else:
        op[key] = op[key][:-1] if op[key] else ["nothing"]
    return True


def op_missing(data: Data, draw: random.Random) -> bool:
    """An op with tasks is in neither list."""
    op = draw.choice(data["op_list"])
    if any(
        task["kind"] == "compute" and task.get("op") == op["name"] for task in data["task_list"]
    ):
        data["op_list"] = [other for other in data["op_list"] if other is not op]
        return True
    return False


def another_machine(data: Data, draw: random.Random) -> bool:
    """The plan is said to be for another machine, by its name or by its file."""
    if draw.random() < 0.5:
        data["machine"] += " II"
    else:
        data["source"]["machine"] = "library:tpu_like"
    return True


def another_network(data: Data, draw: random.Random) -> bool:
    """The plan is said to be of a network of another name."""
    data["network"] += " II"
    return True


def no_objective(data: Data, draw: random.Random) -> bool:
    """The objective is one that there is not."""
    data["objective"] = draw.choice(["speed", "", "Latency"])
    return True


def other_assumptions(data: Data, draw: random.Random) -> bool:
    """Something else is assumed, or nothing is any more."""
    said = data["assumptions"]
    if said and draw.random() < 0.5:
        said.pop(draw.randrange(len(said)))
    else:
        said.append("transfers are free")
    return True


def second_copy(data: Data, draw: random.Random) -> bool:
    """A task writes what it makes to a second place of a scratchpad, in the same time."""
    spaces = {space["name"]: space for space in data["spaces"] if space["kind"] == "scratchpad"}
    whole = [
        task
        for task in data["task_list"]
        if len(task["writes"]) == 1
        and (task["kind"] == "load" or "mapping" in task)
        and (buffer := data["buffer_list"][task["writes"][0]["buffer"]])["space"] in spaces
        and buffer["box"] == task["writes"][0]["box"]
    ]
    task = _drawn(whole, draw)
    if task is None:
        return False
    buffer = data["buffer_list"][task["writes"][0]["buffer"]]
    twin = {key: value for key, value in buffer.items() if key != "view"}
    memory = spaces[buffer["space"]]["memory"]
    step = spaces[buffer["space"]]["alignment_bytes"]
    peak = -(-data["totals"]["peak_bytes"][memory] // step) * step
    data["buffer_list"].append(twin | {"name": buffer["tensor"], "address": peak})
    data["buffers"] += 1
    task["writes"].append({"buffer": len(data["buffer_list"]) - 1, "box": buffer["box"]})
    if task["kind"] == "load":
        charge = next(c for c in task["charges"] if c[0] == memory)
        charge[2:] = [2 * charge[2], 2 * charge[3]]
    data["totals"]["peak_bytes"][memory] = peak + buffer["size_bytes"]
    _add_up(data)
    return True


def shorter_task(data: Data, draw: random.Random) -> bool:
    """A task takes half its cycles."""
    found = [task for task in data["task_list"] if task["end_cycle"] - task["start_cycle"] > 1]
    task = _drawn(found, draw)
    if task is None:
        return False
    task["end_cycle"] -= (task["end_cycle"] - task["start_cycle"]) // 2
    _add_up(data)
    return True


def less_energy(data: Data, draw: random.Random) -> bool:
    """A task claims less energy at a memory than it takes there."""
    charges = [c for task in data["task_list"] for c in task["charges"] if c[3] > 0]
    charge = _drawn(charges, draw)
    if charge is None:
        return False
    charge[3] *= 0.9
    _add_up(data)
    return True


def fewer_bytes(data: Data, draw: random.Random) -> bool:
    """A task claims a byte less at a memory than it reads there."""
    charges = [c for task in data["task_list"] for c in task["charges"] if c[1] > 0]
    charge = _drawn(charges, draw)
    if charge is None:
        return False
    charge[1] -= 1
    _add_up(data)
    return True


def other_totals(data: Data, draw: random.Random) -> bool:
    """A total is smaller than its parts."""
    key = draw.choice(["cycles", "energy_pj"])
    data["totals"][key] -= 1
    return True


def onto_another(data: Data, draw: random.Random) -> bool:
    """A buffer lies a few bytes further than views of it, or than its neighbour leaves room."""
    spaces = {space["name"]: space for space in data["spaces"]}
    used = {a["buffer"] for task in data["task_list"] for a in (*task["reads"], *task["writes"])}
    found = [
        buffer
        for number, buffer in enumerate(data["buffer_list"])
        if number in used and spaces[buffer["space"]]["kind"] == "scratchpad" and "view" in buffer
    ]
    buffer = _drawn(found, draw)
    if buffer is None:
        return False
    buffer["address"] += spaces[buffer["space"]]["alignment_bytes"]
    return True


def less_room(data: Data, draw: random.Random) -> bool:
    """A buffer has fewer bytes than its elements take."""
    found = [b for b in data["buffer_list"] if b["size_bytes"] > 1 and "view" not in b]
    buffer = _drawn(found, draw)
    if buffer is None:
        return False
    buffer["size_bytes"] -= draw.randint(1, buffer["size_bytes"] // 2)
    return True


def too_early(data: Data, draw: random.Random) -> bool:
    """A task starts before what it waits for has ended."""
    tasks = data["task_list"]
    found = [task for task in tasks if task["after"]]
    task = _drawn(found, draw)
    if task is None:
        return False
    start = max(tasks[other]["end_cycle"] for other in task["after"]) - draw.randint(1, 3)
    cycles = task["end_cycle"] - task["start_cycle"]
    task["start_cycle"], task["end_cycle"] = start, start + cycles
    return bool(start >= 0)


def idle_task(data: Data, draw: random.Random) -> bool:
    """A task does nothing."""
    task = draw.choice(_tasks(data, "load", "compute"))
    task |= {"reads": [], "writes": [], "charges": [], "kind": "compute"}
    return True


def smaller_tile(data: Data, draw: random.Random) -> bool:
    """A tile ends a step too early."""
    found = [
        span for task in _tasks(data, "compute") for span in task["tile"] if span[2] - span[1] > 1
    ]
    span = _drawn(found, draw)
    if span is None:
        return False
    span[2] -= 1
    return True


def without_a_row(data: Data, draw: random.Random) -> bool:
    """A tile on an array does not read a row of what it multiplies."""
    found = [
        span
        for task in _mapped(data)
        if len({access["buffer"] for access in task["reads"]}) == len(task["reads"])
        for access in task["reads"][:2]
        for span in access["box"]
        if span[1] - span[0] > 1
    ]
    span = _drawn(found, draw)
    if span is None:
        return False
    span[1] -= 1
    return True


def wider_way(data: Data, draw: random.Random) -> bool:
    """A way is twice as wide, and a transfer on it half as long."""
    route = _drawn(data["routes"], draw)
    if route is None:
        return False
    route["bits_per_cycle"] *= 2
    return True


def more_engines(data: Data, draw: random.Random) -> bool:
    """There is one more of an engine."""
    draw.choice(data["engines"])["count"] += 1
    return True


def larger_memory(data: Data, draw: random.Random) -> bool:
    """A memory is larger, or packs more tightly."""
    spaces = [space for space in data["spaces"] if space["kind"] in ("scratchpad", "external")]
    space = _drawn(spaces, draw)
    if space is None:
        return False
    if space["alignment_bytes"] > 1 and draw.random() < 0.5:
        space["alignment_bytes"] = 1
    else:
        space["size_bytes"] *= 2
    return True


def other_tensor(data: Data, draw: random.Random) -> bool:
    """A tensor has fewer bits, or another shape or role."""
    tensor = draw.choice(data["tensors"])
    key = draw.choice(["bits", "shape", "role"])
    if key == "bits":
        tensor[key] += 1
    elif key == "shape":
        tensor[key] = [*tensor[key], 1]
    else:
        tensor[key] = "constant" if tensor[key] != "constant" else "activation"
    return True


def no_result(data: Data, draw: random.Random) -> bool:
    """An output is not handed out, or what is computed is said to be given."""
    if draw.random() < 0.5:
        data["results"] = data["results"][:-1]
    else:
        data["given"] = [*data["given"], data["results"][0]]
    return True


def without_waits(data: Data, draw: random.Random) -> bool:
    """A task does not wait for who makes what it reads, and nothing else holds it up."""
    made = {
        access["buffer"]: number
        for number, task in enumerate(data["task_list"])
        for access in task["writes"]
    }
    found = [
        (number, before)
        for number, task in enumerate(data["task_list"])
        for before in task["after"]
        if any(made.get(access["buffer"]) == before for access in task["reads"])
    ]
    place: tuple[int, int] | None = _drawn(found, draw)
    if place is None:
        return False
    number, before = place
    data["task_list"][number]["after"].remove(before)
    return not _is_ordered(data, before, number)


def _is_ordered(data: Data, first: int, second: int) -> bool:
    """Whether a task waits for another one: for others that do, or behind it on its engine."""
    tasks = data["task_list"]
    waits = [list(task["after"]) for task in tasks]
    for before, after in data["control_edges"]:
        waits[after].append(before)
    last: dict[tuple[str, int], int] = {}
    for n in sorted(range(len(tasks)), key=lambda n: (tasks[n]["start_cycle"], n)):
        key = tasks[n]["engine"], tasks[n]["instance"]
        waits[n] += [last[key]] if key in last else []
        last[key] = n
    seen, stack = {second}, [second]
    while stack:
        new = {before for before in waits[stack.pop()] if before not in seen}
        seen |= new
        stack += new
    return first in seen


def without_edge(data: Data, draw: random.Random) -> bool:
    """A place is used again without a wait for who used it before."""
    edge = _drawn(data["control_edges"], draw)
    if edge is None:
        return False
    data["control_edges"].remove(edge)
    return not _is_ordered(data, *edge)


def another_limit(data: Data, draw: random.Random) -> bool:
    """What the bytes of a way pass is said to be wider."""
    limit = _drawn([limit for route in data["routes"] for limit in route["limits"]], draw)
    if limit is None:
        return False
    limit[1] *= 2
    return True


def another_count(data: Data, draw: random.Random) -> bool:
    """There are said to be fewer tasks, buffers, or products."""
    place = draw.choice([data, data["totals"]])
    key = "macs_executed" if place is not data else draw.choice(["tasks", "buffers"])
    place[key] -= 1
    return True


WAYS: tuple[Way, ...] = (
    arrays_as_vector_units,
    bounds_of_figures,
    quicker_mapping,
    cheaper_mapping,
    loops_in_another_order,
    more_units,
    nearer_memory,
    mapping_of_another_nest,
    another_mapping,
    another_op,
    op_missing,
    another_machine,
    another_network,
    no_objective,
    other_assumptions,
    second_copy,
    shorter_task,
    less_energy,
    fewer_bytes,
    other_totals,
    onto_another,
    less_room,
    too_early,
    idle_task,
    smaller_tile,
    without_a_row,
    wider_way,
    more_engines,
    larger_memory,
    other_tensor,
    no_result,
    without_waits,
    without_edge,
    another_limit,
    another_count,
)
