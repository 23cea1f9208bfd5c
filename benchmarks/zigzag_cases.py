"""Random small machines, layers and mapping files in ZigZag's YAML, the same for the same seed."""

import json
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

Data = dict[str, Any]

DIRECTIONS = {"I1": ("fh", "tl"), "I2": ("fh", "tl"), "O": ("fh", "tl", "fl", "th")}
READS = ("tl", "th")
LINKS = {"O": "O", "W": "I2", "I": "I1"}


@dataclass(frozen=True, kw_only=True)
class Case:
    """One run of both tools: three files and the options of ZigZag's API."""

    name: str
    folder: Path
    options: Data

    @property
    def files(self) -> dict[str, str]:
        return {
            kind: str(self.folder / f"{kind}.yaml")
            for kind in ("workload", "accelerator", "mapping")
        }


def write_cases(count: int, seed: int, folder: Path) -> list[Case]:
    """`count` cases, each in a folder of its own."""
    return [write_case(number, seed, folder / f"case{number}") for number in range(count)]


def write_case(number: int, seed: int, folder: Path) -> Case:
    random = Random(f"{seed}/{number}")
    machine = random_machine(random)
    layers = random_layers(random)
    folder.mkdir(parents=True, exist_ok=True)
    case = Case(name=f"{seed}/{number}", folder=folder, options=random_options(random, len(layers)))
    contents = (layers, machine, random_mapping(random, machine, layers))
    for path, data in zip(case.files.values(), contents, strict=True):
        # JSON is YAML, and needs no library in either environment.
        Path(path).write_text(json.dumps(data, indent=1), encoding="utf-8")
    return case


def random_options(random: Random, layers: int) -> Data:
    return {
        "opt": random.choice(["latency", "energy", "EDP"]),
        "lpf_limit": random.choice([2, 3, 3, 4]),
        "temporal_mapping_type": random.choice(["uneven"] * 5 + ["even"]),
        "nb_spatial_mappings_generated": random.choice([1, 2, 3]),
        "enable_mix_spatial_mapping": random.random() < 0.1,
        "exploit_data_locality": layers > 1 and random.random() < 0.5,
    }


def random_machine(random: Random) -> Data:
    dims = [f"D{i + 1}" for i in range(random.choice([1, 2, 2, 3]))]
    memories: dict[str, Data] = {}
    for operand in ("I2", "O", "I1"):
        if random.random() < 0.6:
            some = [dim for dim in dims if random.random() < 0.4]
            size = random.choice([1, 1, 2, 4, 16, 64]) * random.choice([16, 32, 24])
            memories[f"reg_{operand}"] = random_memory(random, size, [operand], some, scale=0.02)
    for level in range(random.choice([0, 1, 1, 2])):
        for operands in random_sharing(random):
            size = random.choice([1, 2, 3, 8, 40]) * 2 ** random.randint(9, 13) * 16**level
            served = dims if random.random() < 0.85 else dims[:-1]
            name = f"mid{level}_" + "".join(operands)
            memories[name] = random_memory(random, size, operands, served, scale=1 + 9 * level)
    tops = [["I1", "I2", "O"]] if random.random() < 0.8 else random_sharing(random)
    for operands in tops:
        memories["top_" + "".join(operands)] = random_memory(
            random, 10**10, operands, dims, scale=100
        )
    return {
        "name": "random",
        "operational_array": {
            "unit_energy": round(random.uniform(0, 1), 2),
            "unit_area": 1,
            "dimensions": dims,
            "sizes": [random.choice([1, 2, 3, 4, 4, 5, 6, 7, 8, 12, 16]) for _ in dims],
            "systolic_dimensions": [dim for dim in dims if random.random() < 0.2],
        },
        "memories": memories,
    }


def random_sharing(random: Random) -> list[list[str]]:
    """The three operands, dealt out to one, two or three memories, in any order."""
    operands = ["I1", "I2", "O"]
    if random.random() < 0.5:
        random.shuffle(operands)
    return random.choice(
        [
            [operands],
            [operands[:2], operands[2:]],
            [operands[:1], operands[1:]],
            [[o] for o in operands],
        ]
    )


def random_memory(
    random: Random, size: int, operands: list[str], served: list[str], scale: float
) -> Data:
    cost = random.uniform(0.5, 2) * scale
    return {
        "size": size,
        "r_cost": round(cost, 3),
        "w_cost": round(cost * random.uniform(0.8, 1.5), 3),
        "area": 0,
        "latency": 1,
        "operands": operands,
        "ports": random_ports(random, operands),
        "served_dimensions": served,
        "force_double_buffering": random.random() < 0.08,
    }


def random_ports(random: Random, operands: list[str]) -> list[Data]:
    """One port for all, or one or two for reads and one or two for writes."""
    uses = [(o, d) for o in operands for d in DIRECTIONS[o]]
    if random.random() < 0.3:
        random.shuffle(uses)
    if random.random() < 0.4:
        return [random_port(random, "read_write", "rw_port_1", uses)]
    ports = []
    for letter, kind, wanted in (("r", "read", True), ("w", "write", False)):
        mine = [use for use in uses if (use[1] in READS) == wanted]
        halves = [mine]
        if random.random() < 0.5:
            chosen = [random.random() < 0.5 for _ in mine]
            halves = [
                [use for use, is_first in zip(mine, chosen, strict=True) if is_first == half]
                for half in (True, False)
            ]
        ports += [
            random_port(random, kind, f"{letter}_port_{i + 1}", half)
            for i, half in enumerate(halves)
            if half
        ]
    return ports


def random_port(random: Random, kind: str, name: str, uses: list[tuple[str, str]]) -> Data:
    least = random.choice([8, 8, 16, 16, 24, 32, 64])
    return {
        "name": name,
        "type": kind,
        "bandwidth_min": least,
        "bandwidth_max": least * random.choice([1, 1, 2, 3, 4, 16]),
        "allocation": [f"{operand}, {direction}" for operand, direction in uses],
    }


def random_layers(random: Random) -> list[Data]:
    """One layer, or a short chain of layers; some have two inputs from the layer before."""
    count = random.choice([1, 1, 1, 2, 3])
    kinds = (conv, conv, depthwise, gemm, gemm, square, pool, add, scatter, scatter)
    layers = []
    for number in range(count):
        layer = random.choice(kinds)(random)
        joins = layer["operator_type"] == "Add" or random.random() < 0.2
        source = {"I": max(number - 1, 0), "W": max(number - 1, 0) if joins else number}
        layers.append({"id": number, **layer, "operand_source": source})
    return layers


def precisions(random: Random, weight_bits: int | None = None) -> Data:
    final = random.choice([8, 8, 16])
    return {
        "I": random.choice([4, 8, 8, 16]),
        "W": random.choice([2, 4, 8, 8, 16]) if weight_bits is None else weight_bits,
        "O": random.choice([16, 20, 24, 32]),
        "O_final": final,
    }


def size(random: Random) -> int:
    return random.choice([1, 1, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 25, 32])


def _thinned(random: Random, sizes: Data) -> Data:
    """At most five loops longer than 1: ZigZag orders every loop, and takes 5 ms for each order."""
    long = [loop for loop in sizes if sizes[loop] > 1]
    random.shuffle(long)
    return {loop: 1 if loop in long[5:] else size for loop, size in sizes.items()}


def _windows(random: Random, sizes: Data, walked: str = "O") -> Data:
    """Relations of both axes, with the tensor's size, its padding, or neither.

    The loops go over the result, or over the input, which then scatters into the result.
    """
    met = "I" if walked == "O" else "O"
    steps = [random.choice([1, 1, 2, 3]) for _ in range(2)]
    taps = [random.choice([1, 1, 1, 2]) for _ in range(2)]
    result: Data = {
        "dimension_relations": [
            f"{met}x={steps[0]}*{walked}x+{taps[0]}*fx".lower(),
            f"{met}y={steps[1]}*{walked}y+{taps[1]}*fy".lower(),
        ]
    }
    reach = [
        s * (sizes[f"{walked}{axis}"] - 1) + t * (sizes[f"F{axis}"] - 1) + 1
        for s, t, axis in zip(steps, taps, "XY", strict=True)
    ]
    choice = random.random()
    if choice < 0.4:
        pads = [random.randint(0, min(1, (r - 1) // 2)) for r in reach]
        result |= {"pr_loop_dims": [f"{met}X", f"{met}Y"], "padding": [[p, p] for p in pads]}
        if choice < 0.2:
            result["pr_loop_sizes"] = [r - 2 * p for r, p in zip(reach, pads, strict=True)]
    return result


def _layer(kind: str, equation: str, sizes: Data, precision: Data, more: Data) -> Data:
    return {
        "operator_type": kind,
        "equation": equation,
        "dimension_relations": [],
        "loop_dims": list(sizes),
        "loop_sizes": list(sizes.values()),
        "operand_precision": precision,
        **more,
    }


def conv(random: Random) -> Data:
    taps = random.choice([1, 2, 3, 3, 5])
    sizes = {"B": random.choice([1, 1, 2]), "K": size(random), "C": size(random)}
    sizes |= {"OY": size(random), "OX": size(random), "FY": taps, "FX": random.choice([taps, 1])}
    sizes = _thinned(random, sizes)
    return _layer(
        "Conv",
        "O[b][k][oy][ox]+=W[k][c][fy][fx]*I[b][c][iy][ix]",
        sizes,
        precisions(random),
        _windows(random, sizes),
    )


def depthwise(random: Random) -> Data:
    sizes = {"B": 1, "G": size(random), "K": random.choice([1, 2]), "C": random.choice([1, 3])}
    sizes |= {"OX": size(random), "OY": size(random), "FX": 3, "FY": random.choice([1, 3])}
    sizes = _thinned(random, sizes)
    return _layer(
        "Conv",
        "O[b][g][k][oy][ox]+=W[g][k][c][fy][fx]*I[b][g][c][iy][ix]",
        sizes,
        precisions(random),
        _windows(random, sizes),
    )


def gemm(random: Random) -> Data:
    sizes = {"C": size(random), "D": size(random), "K": size(random)}
    equation = "O[d][k]+=I[d][c]*W[c][k]"
    if random.random() < 0.3:
        sizes["B"] = random.choice([2, 3])
        equation = "O[b][d][k]+=I[b][d][c]*W[b][c][k]"
    return _layer("Gemm", equation, sizes, precisions(random), {})


def square(random: Random) -> Data:
    """A product of square matrices of bytes: many orders and cuts cost the same."""
    sizes = dict.fromkeys(("C", "D", "K"), random.choice([4, 8, 16]))
    bits = {"I": 8, "W": 8, "O": random.choice([8, 16]), "O_final": 8}
    return _layer("Gemm", "O[d][k]+=I[d][c]*W[c][k]", sizes, bits, {})


def pool(random: Random) -> Data:
    sizes = {"B": 1, "G": size(random), "OY": size(random), "OX": size(random)}
    sizes |= {"FX": random.choice([2, 3]), "FY": random.choice([2, 3])}
    return _layer(
        "Pooling",
        "O[b][g][oy][ox]+=W[fx][fy]*I[b][g][iy][ix]",
        sizes,
        precisions(random, weight_bits=0),
        _windows(random, sizes),
    )


def scatter(random: Random) -> Data:
    """A convolution or pool with loops over its inputs: `ox=2*ix+1*fx`."""
    taps = random.choice([1, 2, 2, 3, 3, 5])
    is_pool = random.random() < 0.4
    sizes = {"B": 1, "G": size(random)} if is_pool else {"K": size(random), "C": size(random)}
    sizes |= {"IY": size(random), "IX": size(random)}
    sizes |= {"FY": random.choice([taps, 1]), "FX": taps}
    sizes = _thinned(random, sizes)
    channels = "b][g" if is_pool else "k"
    weights = "W[fy][fx]" if is_pool else "W[k][c][fy][fx]"
    data = "I[b][g][iy][ix]" if is_pool else "I[c][iy][ix]"
    return _layer(
        "Pooling" if is_pool else "Conv",
        f"O[{channels}][oy][ox]+={weights}*{data}",
        sizes,
        precisions(random, weight_bits=random.choice([0, 8]) if is_pool else None),
        _windows(random, sizes, walked="I"),
    )


def add(random: Random) -> Data:
    sizes = {"B": 1, "G": size(random), "OY": size(random), "OX": size(random)}
    return _layer(
        "Add",
        "O[b][g][oy][ox]=W[b][g][oy][ox]+I[b][g][oy][ox]",
        sizes,
        precisions(random),
        {},
    )


def random_mapping(random: Random, machine: Data, layers: list[Data]) -> list[Data]:
    """A default entry, and often one for a type or a layer, with an order of loops now and then."""
    loops = sorted({loop for layer in layers for loop in layer["loop_dims"]})
    entries = [{"name": "default", **_entry(random, machine, loops)}]
    if random.random() < 0.5:
        layer = random.choice(layers)
        name = random.choice([layer["operator_type"], f"Layer{layer['id']}"])
        entries.append({"name": name, **_entry(random, machine, layer["loop_dims"])})
    return entries


def _entry(random: Random, machine: Data, loops: list[str]) -> Data:
    array = machine["operational_array"]
    swapped = {"O": "O", "W": "I1", "I": "I2"}
    entry: Data = {"memory_operand_links": swapped if random.random() < 0.1 else dict(LINKS)}
    given: dict[str, list[str]] = {}
    hints: dict[str, list[str]] = {}
    style = random.choice(["given", "given", "hinted", "either", "none"])
    for dim, units in zip(array["dimensions"], array["sizes"], strict=True):
        chosen = random.sample(loops, random.choice([1, 1, 2]))
        if style == "given" or (style == "either" and random.random() < 0.5):
            factors = [random.randint(1, units) if len(chosen) > 1 else units for _ in chosen]
            given[dim] = [f"{loop}, {f}" for loop, f in zip(chosen, factors, strict=True)]
        elif style in ("hinted", "either"):
            hints[dim] = chosen
    if given:
        entry["spatial_mapping"] = given
    if hints:
        entry["spatial_mapping_hint"] = hints
    if random.random() < 0.08:
        entry["temporal_ordering"] = [[random.choice(loops), "*"], ["*", "*"]]
    return entry
