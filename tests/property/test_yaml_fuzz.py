"""Whatever a machine file holds, reading it ends in problems or in `InputError`, never otherwise.

TILEWRIGHT_FUZZ sets the number of examples of each test, and leaves them to chance.
"""

import copy
import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML
from tests.applied_fixes import apply_fixes, printed_fixes
from tests.machine_builder import sound_machine
from tests.random_cases import examples

from tilewright.errors import InputError, Problem
from tilewright.machine.load import (
    check_machine,
    library_names,
    load_machine,
    machine_path,
    reading_of,
)
from tilewright.machine.model import Machine

Path_ = tuple[str | int, ...]

OWN_FILES = Path(__file__).parents[1] / "machine_files"
FUZZ = settings(
    max_examples=int(os.environ.get("TILEWRIGHT_FUZZ", examples(150))),
    derandomize="TILEWRIGHT_FUZZ" not in os.environ,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
WORDS = (
    *(
        "I1",
        "I2",
        "O",
        "W",
        "D1",
        "D2",
        "D3",
        "D99",
        "fh",
        "tl",
        "fl",
        "th",
        "I1, tl",
        "O, fl",
        "O,",
    ),
    *("512 KiB", "1 bit", "0 B", "-1 B", "0.3 B", "1e99 GiB", "1 pJ", "1 pJ/bit", "/bit", "1 MHz"),
    *("r_port_1", "w_port_2", "rw_port_9", "r_port_0", "w_port_²", "r_port_", "_port_1"),
    *(
        "read",
        "write",
        "read_write",
        "sram",
        "bank",
        "ddr",
        "reg",
        "core",
        "mesh",
        "rom",
        "external",
    ),
    *(
        "D1 + D2",
        "2*D1",
        "D1 + D1",
        "99*D1",
        "",
        " ",
        "\n",
        "\t",
        "é",
        "\x7f",
        "{",
        "]",
        "%",
        "null",
    ),
)
KEYS = (
    *("tilewright", "name", "clock", "core_count", "cores", "memories", "operational_array"),
    *("dma", "links", "sources", "sinks", "dataflows", "vector_unit", "lanes", "energy", "count"),
    *("size", "sizes", "dimensions", "unit_energy", "is_imc", "imc_type", "bit_serial_precision"),
    *("adc_resolution", "input_precision", "systolic_dimensions", "operands", "ports", "sharing"),
    *("served_dimensions", "r_cost", "w_cost", "r_bw", "w_bw", "r_port", "w_port", "rw_port"),
    *("min_r_granularity", "shared", "role", "alignment", "banks", "latency", "allocation", "type"),
    *("bandwidth_min", "bandwidth_max", "auto_cost_extraction", "routes", "width", "connects"),
)

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, 1, -1, 8, 8191, 2**27, 2**60, 2**60 + 1, 10**30, -(10**30), 10**350]),
    st.integers(-5, 5000),
    st.floats(),
    st.sampled_from([0.5, 1e308, 5e-324, math.nan, math.inf, -math.inf]),
    st.sampled_from(WORDS),
    st.text(max_size=5),
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from((*KEYS, *WORDS)), inner, max_size=3)
    ),
    max_leaves=6,
)


def flow(value: Any) -> str:
    """The value as YAML, as tools write it that do not care how it looks."""
    match value:
        case dict():
            return "{" + ", ".join(f"{flow(str(k))}: {flow(v)}" for k, v in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(flow, value)) + "]"
        case float() if math.isnan(value):
            return ".nan"
        case float() if math.isinf(value):
            return ".inf" if value > 0 else "-.inf"
        case float() | int() if not isinstance(value, bool):
            return repr(value)
        case _:
            return json.dumps(value, ensure_ascii=False)


def block(data: Any) -> str:
    """A machine, one line for each key at the top and each memory, so that places differ."""
    if not isinstance(data, dict):
        return flow(data)
    lines = []
    for key, value in data.items():
        if isinstance(value, dict) and value:
            lines.append(f"{flow(str(key))}:")
            lines += [f"  {flow(str(inner))}: {flow(v)}" for inner, v in value.items()]
        else:
            lines.append(f"{flow(str(key))}: {flow(value)}")
    return "\n".join(lines) + "\n"


def seed_texts() -> list[str]:
    files = [*sorted(OWN_FILES.glob("*.yaml")), *(machine_path(name) for name in library_names())]
    return [block(sound_machine()), *(path.read_text(encoding="utf-8") for path in files)]


def loaded(text: str) -> Any:
    yaml = YAML(typ="safe", pure=True)
    yaml.allow_duplicate_keys = True
    try:
        return yaml.load(text)
    except Exception:  # a seed that is broken on purpose is mutated as text only
        return None


TEXTS = seed_texts()
MACHINES = [data for data in map(loaded, TEXTS) if isinstance(data, dict)]


def paths(data: Any, at: Path_ = ()) -> Iterator[Path_]:
    yield at
    if isinstance(data, dict):
        for key, value in data.items():
            yield from paths(value, (*at, key))
    elif isinstance(data, list):
        for i, value in enumerate(data):
            yield from paths(value, (*at, i))


@st.composite
def mutated_machines(draw: st.DrawFn) -> str:
    """A machine with one to four places changed: replaced, removed, renamed, copied or added to."""
    data = copy.deepcopy(draw(st.sampled_from(MACHINES)))
    for _ in range(draw(st.integers(1, 4))):
        places = [path for path in paths(data) if path]
        if not places:
            break
        *parents, last = draw(st.sampled_from(places))
        inner = data
        for step in parents:
            inner = inner[step]
        _change(draw, inner, last, data)
    return block(data)


def _change(draw: st.DrawFn, inner: Any, last: str | int, data: Any) -> None:
    how = draw(st.sampled_from(["replace", "replace", "remove", "rename", "copy", "add"]))
    if how == "replace":
        inner[last] = draw(values)
    elif how == "remove":
        del inner[last]
    elif how == "rename" and isinstance(inner, dict):
        inner[draw(st.sampled_from((*KEYS, "bank", "I1", "fl", "x.y", "é")))] = inner.pop(last)
    elif how == "copy":
        source = data
        for step in draw(st.sampled_from(list(paths(data)))):
            source = source[step]
        inner[last] = copy.deepcopy(source)
    elif isinstance(inner, list):
        inner.append(draw(values))
    else:
        inner[draw(st.sampled_from(KEYS))] = draw(values)


@st.composite
def mutated_texts(draw: st.DrawFn) -> str:
    """A file with lines removed, doubled or swapped, characters put in, or its end cut off."""
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 40)))
        lines = text.splitlines(keepends=True) or [""]
        i, j = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
        match draw(st.sampled_from(["cut", "put", "double", "drop", "swap", "repeat"])):
            case "cut":
                text = text[:start]
            case "put":
                put = draw(st.one_of(st.sampled_from(WORDS), st.text(max_size=6), marks))
                text = text[:start] + put + text[end:]
            case "double":
                text = "".join([*lines[: i + 1], *lines[i:]])
            case "drop":
                text = "".join([*lines[:i], *lines[i + 1 :]])
            case "swap":
                lines[i], lines[j] = lines[j], lines[i]
                text = "".join(lines)
            case _:
                text = text[:end] + text[start:]
    return text


marks = st.text("{}[],:-&*#?|>@`'\"%!~\n\t \\0123456789.eExX_\0\x1b\u2028\ufeff", max_size=8)
random_texts = st.one_of(
    marks,
    st.text(max_size=60),
    st.lists(st.one_of(marks, st.sampled_from((*KEYS, *WORDS))), max_size=30).map("".join),
    values.map(flow),
    st.dictionaries(st.sampled_from(KEYS), values, max_size=6).map(block),
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "machine.yaml"


def outcome(path: Path) -> list[Problem]:
    """All problems of a file, those of a refusal included; checked to be fit for printing."""
    try:
        problems = check_machine(reading_of(path))
    except InputError as error:
        problems = list(error.problems)
        assert problems
    for problem in problems:
        assert problem.message
        assert "\n" not in problem.message
        assert (problem.line or 1) >= 1
        assert (problem.column or 1) >= 1
        assert str(problem).encode("utf-8")
    severities = [problem.severity for problem in problems]
    assert severities == sorted(severities)  # "error" comes before "warning"
    assert len(set(problems)) == len(problems)
    return problems


def assert_sound_or_refused(text: str, path: Path) -> None:
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    problems = outcome(path)
    if any(problem.severity == "error" for problem in problems):
        return
    machine = load_machine(path)
    assert_usable(machine)


def assert_usable(machine: Machine) -> None:
    """What later steps take for granted of every machine that loads."""
    assert hash(machine.cores) == hash(machine.cores)
    names = [memory.name for memory in machine.memories]
    assert len(names) == len(set(names))
    for core in machine.cores:
        assert core.array.units >= 1
        assert math.isfinite(core.array.mac_pj)
        for memory in machine.levels(core):
            assert memory.size_bits >= 1
            assert math.isfinite(memory.read_pj + memory.write_pj)
            assert all(0 < p.granularity_bits <= p.bits_per_cycle for p in memory.ports)
        for operand in ("I1", "I2", "O"):
            assert machine.chain(core, operand)


@FUZZ
@given(text=mutated_machines())
def test_a_machine_with_values_changed_at_random_is_read_or_refused(file: Path, text: str) -> None:
    assert_sound_or_refused(text, file)


@FUZZ
@given(text=mutated_texts())
def test_a_machine_file_damaged_at_random_is_read_or_refused(file: Path, text: str) -> None:
    assert_sound_or_refused(text, file)


@FUZZ
@given(text=random_texts)
def test_a_random_text_is_read_or_refused(file: Path, text: str) -> None:
    assert_sound_or_refused(text, file)


@FUZZ
@given(raw=st.binary(max_size=200))
def test_random_bytes_are_read_or_refused(file: Path, raw: bytes) -> None:
    file.write_bytes(raw)
    assert any(problem.severity == "error" for problem in outcome(file))


@FUZZ
@given(text=mutated_machines())
def test_doing_what_is_printed_comes_to_an_end(file: Path, text: str) -> None:
    """Fixes may uncover what an unreadable memory hid, but never go round in circles."""
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    for _ in range(4):
        fixes = printed_fixes("\n".join(map(str, outcome(file))))
        if not fixes:
            return
        apply_fixes(fixes, file, file)
    assert printed_fixes("\n".join(map(str, outcome(file)))) == []
