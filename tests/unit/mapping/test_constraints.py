from dataclasses import replace
from pathlib import Path

import pytest
from tests.e2e.test_transposed_plans import transposed
from tests.mapping_cases import machine, memory

from tilewright.document import parse_document
from tilewright.machine import load as load_module
from tilewright.machine.model import Array, Core, Machine, Memory, Sharing
from tilewright.mapping.check import all_problems, mapping_problems
from tilewright.mapping.constraints import ConstraintReading, constraint_for, read_constraints
from tilewright.mapping.saved import read_mapping_file
from tilewright.network.load import load_network
from tilewright.network.windows import Window
from tilewright.network.zoo import layers

GOOD = """\
- name: default
  spatial_mapping: {D1: ['K, 8', 'C, 2']}
  spatial_mapping_hint: {D2: [OX, OY]}
  temporal_ordering: [[OX, 14], [K, '*'], ['*', '*'], [C, 4]]
- name: Add
  memory_operand_links: {O: O, W: I1, I: I2}
"""


def read(text: str) -> ConstraintReading:
    return read_constraints(parse_document(text, "map.yaml"))


def test_entries_are_read_as_written() -> None:
    default, add = read(GOOD).constraints
    assert default.spatial == (("D1", (("K", 8), ("C", 2))),)
    assert default.hints == (("D2", ("OX", "OY")),)
    assert default.order == (("OX", 14), ("K", None), ("*", None), ("C", 4))
    assert dict(default.links) == {"O": "O", "W": "I2", "I": "I1"}
    assert dict(add.links) == {"O": "O", "W": "I1", "I": "I2"}


def test_an_op_takes_the_entry_of_its_name_then_type_then_default() -> None:
    network = load_network("lenet5")
    entries = {c.name: c for c in read(GOOD).constraints}
    named = entries | {network.ops[0].name: entries["Add"]}
    chosen = constraint_for(network.ops[0], entries)
    assert chosen is not None
    assert chosen.name == "default"
    assert constraint_for(network.ops[0], named) is entries["Add"]
    assert constraint_for(network.ops[0], {}) is None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("'K, 8'", "'K 8'", "'K 8' is no loop and factor"),
        ("'K, 8'", "'K, 0'", "'K, 0' is no loop and factor"),
        ("[OX, 14]", "[OX, -1]", "is no loop and size"),
        ("[OX, 14]", "[OX]", "temporal_ordering"),
        ("D1:", "X1:", "spatial_mapping"),
        ("W: I1", "W: I3", "memory_operand_links"),
        ("W: I1", "W: I2", "I2 carries W and I"),
        ("spatial_mapping_hint", "spatial_hint", "unknown key"),
        ("name: default", "name: other", "no entry `default`"),
    ],
)
def test_faults_stand_at_their_place(old: str, new: str, message: str) -> None:
    problems = [p for p in read(GOOD.replace(old, new, 1)).problems if p.severity == "error"]
    assert len(problems) == 1
    assert message in problems[0].message
    line = GOOD[: GOOD.index(old)].count("\n") + 1
    assert problems[0].line in (line, 1)


def test_an_unrolling_wider_than_the_array_is_an_error() -> None:
    small = machine(memory("m", ["I1", "I2", "O"]), units=8)
    (problem,) = mapping_problems(read(GOOD), small, None)
    assert "K 8 x C 2 = 16 units on D1, which has 8" in problem.message
    assert problem.line == 2


def test_an_unrolling_wider_than_its_port_is_a_warning() -> None:
    # notes_cnn has 16-bit data: 8 weights and 8 results a cycle take 128 bits, the port has 64.
    narrow = machine(memory("m", ["I1", "I2", "O"], width=64), units=16)
    text = "- name: default\n  spatial_mapping: {D1: ['K, 8']}\n"
    problems = list(mapping_problems(read(text), narrow, load_network("notes_cnn")))
    assert {p.severity for p in problems} == {"warning"}
    assert any("needs 128 bits of W a cycle from m" in p.message for p in problems)
    wide = machine(memory("m", ["I1", "I2", "O"], width=512), units=16)
    assert list(mapping_problems(read(text), wide, load_network("notes_cnn"))) == []


def test_windows_that_overlap_are_unrolled_over_their_input() -> None:
    window = Window(kernel=3, stride=2, pad_begin=1)
    network = transposed(window, channels=4, kernels=2, size=6)
    wide = machine(memory("m", ["I1", "I2", "O"], width=64), units=16)
    text = "- name: default\n  spatial_mapping: {D1: ['IX, 8']}\n"
    found = [problem.message for problem in mapping_problems(read(text), wide, network)]
    assert not any("has a loop IX" in message for message in found)
    other = mapping_problems(read(text.replace("IX", "OX")), wide, network)
    assert "no op of transposed has a loop OX" in next(other).message


@pytest.mark.parametrize(
    ("unrolling", "needed", "over_wires"),
    [
        # 8 outputs with windows of 5: 40 inputs of 8 bit, or 8 + 5 - 1 = 12 of them over wires.
        ("{D1: ['OX, 8'], D2: ['FX, 5']}", 320, 96),
        # Units on a diagonal want different inputs: every unit gets its own, wires or not.
        ("{D1: ['OX, 8'], D2: ['OY, 8']}", 512, 512),
    ],
)
def test_a_port_feeds_what_wires_do_not_join(unrolling: str, needed: int, over_wires: int) -> None:
    apart = replace(memory("m", ["I1"], width=8), served_dims=("D1", "D2"))
    wires = (Sharing(operand="I1", terms=(("D1", 1), ("D2", 1))),)
    rest = replace(memory("rest", ["I2", "O"], width=1 << 20), served_dims=("D1", "D2"))
    net = layers.draft("one", 8)
    data = layers.given(net, "x", (1, 3, 32, 32))
    network = net.finish(layers.conv(net, "conv", data, 4, layers.square(5, 1, 2)))

    def told(lowest: Memory) -> list[str]:
        array = Array(dims=(("D1", 8), ("D2", 8)), mac_pj=0.0)
        core = Core(name="core", array=array, memories=(lowest, rest))
        entry = read(f"- name: default\n  spatial_mapping: {unrolling}\n")
        return [
            problem.message
            for problem in mapping_problems(entry, Machine(name="test", cores=(core,)), network)
        ]

    assert f"needs {needed} bits of I a cycle from m" in told(apart)[0]
    *reasons, port = sorted(told(replace(apart, sharing=wires)))
    assert f"needs {over_wires} bits of I a cycle from m" in port
    assert ["I cannot use the wires D1 + D2" in r for r in reasons] == [True] * (
        needed == over_wires
    )


def test_all_files_are_checked_together(tmp_path: Path) -> None:
    mapping = tmp_path / "map.yaml"
    mapping.write_text("- name: default\n  spatial_mapping: {D1: ['K 8']}\n", encoding="utf-8")
    problems = all_problems(
        str(tmp_path / "none.yaml"), "no_such_net", str(mapping), dims={}, bits=None
    )
    told = "\n".join(map(str, problems))
    for part in ("none.yaml: cannot be read", "no_such_net", "map.yaml:2"):
        assert part in told


def test_too_wide_an_element_is_an_error(tmp_path: Path) -> None:
    # edge_tpu_like's weight register has 8 bits.
    problems = all_problems("edge_tpu_like", "lenet5", None, dims={}, bits=16)
    assert any("memories.rf_1B.size: 8 bits" in p.message for p in problems)


def test_both_kinds_of_mapping_file_are_told_apart(tmp_path: Path) -> None:
    yaml = tmp_path / "map.yaml"
    yaml.write_text(GOOD, encoding="utf-8")
    constraints, given = read_mapping_file(str(yaml))
    assert len(constraints) == 2
    assert given == {}
    assert read_mapping_file(None) == ((), {})


def test_a_cycle_model_of_another_size_than_the_array_is_a_warning(tmp_path: Path) -> None:
    library = Path(load_module.__file__).parent / "library" / "ethos_u55_128.yaml"
    file = tmp_path / "mine.yaml"
    file.write_text(library.read_text().replace("configuration: u55-128", "configuration: u55-64"))
    (problem,) = all_problems(str(file), None, None, dims={}, bits=None)
    assert problem.severity == "warning"
    assert problem.message.startswith(
        "core_model.configuration: u55-64 multiplies 64 times a cycle, and the array has 128"
    )
    file.write_text(file.read_text().replace("sizes: [8, 8, 2]", "sizes: [8, 8, 1]"))
    assert all_problems(str(file), None, None, dims={}, bits=None) == []
