"""Feeds changed files to every reader and command: nothing but our own errors may come of it.

    python benchmarks/fuzz.py --cases 1000 [--first 0] [-o FOLDER]

A case changes one good file (ONNX, TFLite, machine, workload, mapping, CSV, plan) and runs one
command on it, in a process with a limit of CPU and memory. Wrong are a traceback, exit code 1, a
signal, a character that steers a terminal, and more than the limits. The exit code is then 1.
"""

import argparse
import json
import re
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import onnx
from drawn import limited_run
from drawn_networks import drawn_network
from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parents[1]
CPU_SECONDS = 10
MEMORY_BYTES = 2**30
STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")
ODD: list[Any] = [
    None, True, -1, 0, 1, 2**31, 2**63, 2**64, 1e308, -0.0, "", "x", "\x1b]0;t\x07", "\u202ename",
    [], {}, [[]], {"a": 1}, "9" * 40, "1 KiB", "../../out", [1] * 1000, "I1", "O", "-5 bit", 0.5,
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("-o", dest="folder", type=Path, help="where wrong cases are kept")
    given = parser.parse_args()
    import tilewright.planner  # before the fork, so that no case need import it
    import tilewright.replay.verify  # noqa: F401

    tally: Counter[str] = Counter()
    wrong = 0
    with TemporaryDirectory() as place:
        seeds = Seeds(Path(place))
        for seed in range(given.first, given.first + given.cases):
            command, file = seeds.case(Random(seed), Path(place))
            verdict, told = judged(command, file.parent)
            tally[f"{file.suffix or file.name} {verdict}"] += 1
            if verdict.startswith("WRONG"):
                wrong += 1
                print(f"{seed}: {' '.join(command)}: {verdict}: {told[-300:]!r}", flush=True)
                if given.folder is not None:
                    given.folder.mkdir(parents=True, exist_ok=True)
                    shutil.copy(file, given.folder / f"{seed}{file.suffix}")
    for name, count in sorted(tally.items()):
        print(f"{count:6} {name}")
    sys.exit(wrong > 0)


def judged(command: list[str], folder: Path) -> tuple[str, str]:
    """What a command comes to, and what it said."""
    code, out, err = limited_run(command, CPU_SECONDS, MEMORY_BYTES)
    told = out + err
    if code not in (0, 2, 3, 4):
        return f"WRONG exit {code}", told
    if "Traceback" in told:
        return "WRONG traceback", told
    if STEERING.search(told):
        return "WRONG control character", told
    outside = [path.name for path in folder.parent.iterdir() if path.name not in KEPT]
    if outside:
        return f"WRONG written outside: {outside}", told
    return f"exit {code}", told


KEPT = ("case", "seeds")


class Seeds:
    """Good files, and what is run on each kind when it was changed."""

    def __init__(self, place: Path) -> None:
        folder = place / "seeds"
        folder.mkdir()
        self.onnx = [drawn_network(Random(n)) for n in range(40)]
        self.tflite = _tflite_models()
        library = ROOT / "src" / "tilewright" / "machine" / "library"
        files = [*library.glob("*.yaml"), *ROOT.glob("examples/**/*machine*.yaml")]
        files += ROOT.glob("examples/my_npu/*.yaml")
        self.machines = [_yaml(path) for path in sorted(files)]
        self.workload = _yaml(ROOT / "examples" / "zigzag" / "fixed" / "workload.yaml")
        self.mapping = _yaml(ROOT / "examples" / "zigzag" / "fixed" / "mapping.yaml")
        self.rows = (ROOT / "examples" / "residual_block.csv").read_text()
        self.plan, self.text = self._plan(folder)

    @staticmethod
    def _plan(folder: Path) -> tuple[dict[str, Any], str]:
        code, _, err = limited_run(
            ["plan", "lenet5", "--on", "npu_37xx", "-o", str(folder)], 60, 2**33
        )
        assert code == 0, err
        text = (folder / "plan.json").read_text()
        return json.loads(text), text

    def case(self, chance: Random, place: Path) -> tuple[list[str], Path]:
        """A command and the changed file that it reads."""
        folder = place / "case"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        makers: list[Callable[[Random, Path], tuple[list[str], Path]]] = [
            self._onnx_case, self._tflite_case, self._machine_case, self._workload_case,
            self._mapping_case, self._csv_case, self._plan_case,
        ]  # fmt: skip
        return chance.choice(makers)(chance, folder)

    def _onnx_case(self, chance: Random, folder: Path) -> tuple[list[str], Path]:
        file = folder / "n.onnx"
        model = onnx.ModelProto()
        model.CopyFrom(chance.choice(self.onnx))
        if chance.random() < 0.5:
            for _ in range(chance.choice([1, 1, 1, 2, 3])):
                change_message(chance, model)
            file.write_bytes(model.SerializeToString())
        else:
            file.write_bytes(change_bytes(chance, model.SerializeToString()))
        return _on_network(chance, file), file

    def _tflite_case(self, chance: Random, folder: Path) -> tuple[list[str], Path]:
        file = folder / "n.tflite"
        file.write_bytes(change_bytes(chance, chance.choice(self.tflite)))
        return _on_network(chance, file), file

    def _machine_case(self, chance: Random, folder: Path) -> tuple[list[str], Path]:
        file = folder / "m.yaml"
        _write_tree(chance, chance.choice(self.machines), file)
        commands = [
            ["check", str(file)], ["check", str(file), "lenet5"], ["show", str(file)],
            ["map", "lenet5", "--on", str(file), "--lpf-limit", "3"],
            ["plan", "lenet5", "--on", str(file)], ["fit", "lenet5", "--on", str(file)],
        ]  # fmt: skip
        return chance.choice(commands), file

    def _workload_case(self, chance: Random, folder: Path) -> tuple[list[str], Path]:
        file = folder / "w.yaml"
        _write_tree(chance, self.workload, file)
        return _on_network(chance, file), file

    def _mapping_case(self, chance: Random, folder: Path) -> tuple[list[str], Path]:
        file = folder / "p.yaml"
        _write_tree(chance, self.mapping, file)
        with_it = ["--mapping", str(file)]
        commands = [
            ["check", "npe8", "lenet5", *with_it],
            ["map", "lenet5", "--on", "npe8", "--lpf-limit", "3", *with_it],
        ]
        return chance.choice(commands), file

    def _csv_case(self, chance: Random, folder: Path) -> tuple[list[str], Path]:
        file = folder / "r.csv"
        file.write_bytes(change_bytes(chance, self.rows.encode()))
        return ["place", str(file), "--budget", "1000"], file

    def _plan_case(self, chance: Random, folder: Path) -> tuple[list[str], Path]:
        file = folder / "plan.json"
        if chance.random() < 0.8:
            tree = json.loads(self.text)
            for _ in range(chance.choice([1, 1, 1, 2, 3])):
                tree = change_tree(chance, tree)
            file.write_text(json.dumps(tree))
        else:
            file.write_bytes(change_bytes(chance, self.text.encode()))
        target = ["-o", str(folder / "out")]
        commands = [
            ["replay", str(file)], ["replay", str(file)], ["explain", str(file)],
            ["explain", str(file), "--op", "conv1"], ["compare", str(file), str(file)],
            *(["export", str(file), "--to", to, *target]
              for to in ("csv", "minimalloc", "model-explorer", "onnx")),
        ]  # fmt: skip
        return chance.choice(commands), file


def _on_network(chance: Random, file: Path) -> list[str]:
    commands = [
        ["show", str(file)], ["check", "npe8", str(file)], ["fit", str(file)],
        ["map", str(file), "--on", "edge_tpu_like", "--lpf-limit", "3"],
        ["plan", str(file), "--on", chance.choice(["npu_37xx", "ethos_u55_128", "npe8"])],
        ["plan", str(file), "--on", "edge_tpu_like", "--bits", "8", "--verify"],
    ]  # fmt: skip
    return chance.choice(commands)


def _yaml(path: Path) -> Any:
    return YAML(typ="safe").load(path.read_text())


def _tflite_models() -> list[bytes]:
    """The small models of the tests, one for each operator."""
    sys.path.insert(0, str(ROOT))
    from tests.unit.network.tflite_cases import CASES
    from tests.unit.network.tflite_models import model_bytes

    return [model_bytes(case.model) for case in CASES.values()]


def _write_tree(chance: Random, tree: Any, file: Path) -> None:
    """Write a changed tree as JSON, which is YAML, or its changed bytes."""
    copy = json.loads(json.dumps(tree))
    if chance.random() < 0.85:
        for _ in range(chance.choice([1, 1, 1, 2, 3])):
            copy = change_tree(chance, copy)
        file.write_text(json.dumps(copy, indent=1))
    else:
        file.write_bytes(change_bytes(chance, json.dumps(copy, indent=1).encode()))


def change_bytes(chance: Random, content: bytes) -> bytes:
    """Bytes changed, left out, repeated, or cut off."""
    data = bytearray(content)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(max(1, len(data)))
        length = chance.choice([1, 1, 2, 4, 16, 200])
        match chance.randrange(5):
            case 0:
                data[place : place + length] = chance.randbytes(length)
            case 1:
                del data[place : place + length]
            case 2:
                data[place:place] = data[place : place + length] * chance.choice([1, 3, 1000])
            case 3:
                data[place : place + 1] = bytes([chance.choice([0, 1, 0x1B, 0x7F, 0x80, 0xFF])])
            case _:
                data = data[: chance.randrange(len(data) + 1)] if chance.random() < 0.2 else data
    return bytes(data)


def change_tree(chance: Random, tree: Any) -> Any:
    """One value somewhere in a tree replaced, left out, put elsewhere, or nested too deep."""
    places = list(_places(tree))
    if not places:
        return tree
    # Lists are long: a place by its key, not by how many there are of its kind.
    wanted = chance.choice(sorted({str(key) for _, key in places}))
    node, key = chance.choice([place for place in places if str(place[1]) == wanted])
    is_keyed = isinstance(node, dict)
    is_number = isinstance(node[key], int | float) and not isinstance(node[key], bool)
    match chance.randrange(8):
        case 0 if is_keyed:
            del node[key]
        case 1:
            other, place = chance.choice(places)
            node[key] = json.loads(json.dumps(other[place]))
        case 2 if is_keyed:
            node[str(chance.choice(ODD))] = node.pop(key)
        case 3 if is_number:
            node[key] = chance.choice([node[key] + 1, -node[key], node[key] * 1000, 0, 2**40])
        case 4 if chance.random() < 0.1:
            node[key] = json.loads("[" * 400 + "]" * 400)
        case _:
            node[key] = json.loads(json.dumps(chance.choice(ODD)))
    return tree


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every place of a tree as what holds it and the key there."""
    if not isinstance(tree, dict | list):
        return
    for key, value in list(tree.items() if isinstance(tree, dict) else enumerate(tree)):
        yield tree, key
        yield from _places(value)


def change_message(chance: Random, message: Any) -> None:
    """One field somewhere in a protobuf message changed, left out, or repeated."""
    while True:
        fields = message.ListFields()
        if not fields:
            return
        field, value = chance.choice(fields)
        if field.message_type is not None and chance.random() < 0.85:
            message = chance.choice(list(value)) if field.is_repeated else value
            continue
        break
    if chance.random() < 0.25:
        message.ClearField(field.name)
        return
    if field.is_repeated:
        if field.message_type is not None:
            value.add().CopyFrom(chance.choice(list(value)))
            return
        odd = _odd_for(chance, value[0])
        if odd is not None:
            value[chance.randrange(len(value))] = odd
        return
    if field.message_type is None:
        odd = _odd_for(chance, value)
        if odd is not None:
            with suppress(ValueError):  # no such word, where a word is meant
                setattr(message, field.name, odd)


def _odd_for(chance: Random, value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int():
            return chance.choice([0, 1, 2, 3, 7, value + 1, 255, 70_000, 2**31 - 1])
        case float():
            return chance.choice([0.0, -1.0, 1e30, float("nan"), float("inf")])
        case str():
            return chance.choice(["", "x", "\x1b]0;t\x07", "t0", "Relu", "Loop", "a" * 5000])
        case bytes():
            return change_bytes(chance, value)
    return None


if __name__ == "__main__":
    main()
