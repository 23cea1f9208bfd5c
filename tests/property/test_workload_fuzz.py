"""Whatever a workload or mapping file holds, reading it ends in problems or in `InputError`.

TILEWRIGHT_FUZZ sets the number of examples of each test, and leaves them to chance.
"""

import copy
import json
import os
from collections.abc import Iterator
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.random_cases import examples

from tilewright.document import Document, parse_document
from tilewright.errors import InputError
from tilewright.mapping.constraints import read_constraints
from tilewright.network.counts import macs
from tilewright.network.zigzag_reader import is_workload, read_zigzag

FUZZ = settings(
    max_examples=int(os.environ.get("TILEWRIGHT_FUZZ", examples(150))),
    derandomize="TILEWRIGHT_FUZZ" not in os.environ,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
LAYERS: list[dict[str, Any]] = [
    {
        "id": 0,
        "name": "conv",
        "operator_type": "Conv",
        "equation": "O[b][k][oy][ox]+=W[k][c][fy][fx]*I[b][c][iy][ix]",
        "dimension_relations": ["ix=2*ox+1*fx", "iy=1*oy+1*fy"],
        "loop_dims": ["B", "K", "C", "OY", "OX", "FY", "FX"],
        "loop_sizes": [1, 16, 3, 30, 30, 3, 3],
        "operand_precision": {"W": 8, "I": 8, "O": 16, "O_final": 8},
        "operand_source": {"I": 0, "W": 0},
        "pr_loop_dims": ["IX", "IY"],
        "pr_loop_sizes": [60, 31],
        "padding": [[1, 0], [1, 0]],
    },
    {
        "id": 1,
        "operator_type": "Pooling",
        "equation": "O[b][g][oy][ox]+=W[fy][fx]*I[b][g][iy][ix]",
        "dimension_relations": ["ox=2*ix+1*fx", "oy=2*iy+1*fy"],
        "loop_dims": ["B", "G", "IY", "IX", "FY", "FX"],
        "loop_sizes": [1, 16, 30, 30, 2, 2],
        "operand_precision": {"W": 0, "I": 8, "O": 8, "O_final": 8},
        "operand_source": {"I": 0, "W": 1},
    },
    {
        "id": 2,
        "operator_type": "Gemm",
        "equation": "O[d][k]+=I[d][c]*W[c][k]",
        "loop_dims": ["D", "K", "C"],
        "loop_sizes": [1, 10, 3600],
        "operand_precision": {"W": 8, "I": 8, "O": 32, "O_final": 8},
        "operand_source": {"I": 1, "W": 2},
    },
]
ENTRIES: list[dict[str, Any]] = [
    {
        "name": "default",
        "spatial_mapping": {"D1": ["K, 8"], "D2": ["C, 8", "FX, 2"]},
        "spatial_mapping_hint": {"D3": ["OX"]},
        "temporal_ordering": [["OX", 14], ["K", "*"], ["*", "*"]],
        "memory_operand_links": {"O": "O", "W": "I2", "I": "I1"},
    }
]
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 70),
    st.sampled_from([0, -1, 2**31, 2**40, 2**62, 10**30]),
    st.floats(),
    st.sampled_from(["", "K", "OX", "ox=1*ix+0*fx", "ix=ox+ox", "O[k]+=I[k]", "Conv", "*", "K, 0"]),
    st.text(max_size=8),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


def places(data: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in nested data."""
    yield at
    if isinstance(data, dict):
        for key, value in data.items():
            yield from places(value, (*at, key))
    elif isinstance(data, list):
        for i, value in enumerate(data):
            yield from places(value, (*at, i))


@st.composite
def broken(draw: st.DrawFn, sound: list[dict[str, Any]]) -> str:
    """A file with a few values replaced or removed, and perhaps its text cut or changed."""
    data: Any = copy.deepcopy(sound)
    for _ in range(draw(st.integers(1, 4))):
        where = draw(st.sampled_from(list(places(data))[1:]))
        parent = data
        for step in where[:-1]:
            parent = parent[step]
        if draw(st.booleans()):
            parent[where[-1]] = draw(VALUES)
        else:
            del parent[where[-1]]
        if not data:
            break
    text = json.dumps(data)
    if draw(st.integers(0, 3)) == 0:
        cut = draw(st.integers(0, len(text)))
        text = text[:cut] + draw(st.text(max_size=3)) + text[cut + draw(st.integers(0, 3)) :]
    return text


def document(text: str) -> Document | None:
    try:
        return parse_document(text, "file.yaml")
    except InputError:
        return None


@FUZZ
@given(broken(LAYERS))
def test_broken_workloads_give_problems_or_a_network(text: str) -> None:
    read = document(text)
    if read is None or not is_workload(read.data):
        return
    reading = read_zigzag(read, "fuzzed")
    failed = any(p.severity == "error" for p in reading.problems)
    assert (reading.network is None) == failed
    if reading.network is not None:
        assert all(macs(op, reading.network) >= 0 for op in reading.network.ops)


@FUZZ
@given(broken(ENTRIES))
def test_broken_mapping_files_give_problems_or_constraints(text: str) -> None:
    read = document(text)
    if read is not None:
        reading = read_constraints(read)
        assert reading.problems or reading.constraints
