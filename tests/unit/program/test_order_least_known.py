"""Branchy networks whose least peaks are known: cells of searched and of random architectures."""

import csv
import json
from pathlib import Path

import pytest
from tests.order_graphs import obvious_peak
from tests.reference_data import ABSENT, REFERENCE_DATA

from tilewright.program.order import OrderOp, OrderProblem, faults
from tilewright.program.order_search import OrderOptions, least_peak

FOLDER = REFERENCE_DATA / "bench" / "order"
ELEMENT_WISE = ("Relu", "Add", "Mul", "Sigmoid")


def instances() -> list[tuple[Path, bool, int]]:
    if not FOLDER.exists():
        return []
    with (FOLDER / "best.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [
        (FOLDER / f"{row['graph']}.json", in_place, int(row[column]))
        for row in rows
        for in_place, column in ((False, "best_peak_bytes"), (True, "best_peak_bytes_in_place"))
    ]


def problem_of_file(path: Path, *, in_place: bool) -> OrderProblem:
    graph = json.loads(path.read_text("utf-8"))
    number = {name: position for position, name in enumerate(graph["tensors"])}

    def numbers(listed: list[str]) -> tuple[int, ...]:
        return tuple(dict.fromkeys(number[name] for name in listed))

    return OrderProblem(
        ops=tuple(
            OrderOp(
                name=str(position),
                reads=numbers(op["inputs"]),
                writes=numbers(op["outputs"]),
                in_place=in_place and op["type"] in ELEMENT_WISE,
            )
            for position, op in enumerate(graph["ops"])
        ),
        sizes_bytes=tuple(graph["tensors"].values()),
        inputs=numbers(graph["inputs"]),
        outputs=numbers(graph["outputs"]),
    )


@pytest.mark.skipif(not FOLDER.exists(), reason=ABSENT)
def test_there_are_networks_to_order() -> None:
    assert len(instances()) >= 24


@pytest.mark.parametrize(
    ("path", "in_place", "best_known"),
    instances(),
    ids=lambda value: value.stem if isinstance(value, Path) else None,
)
def test_the_best_known_peak_is_reached(path: Path, in_place: bool, best_known: int) -> None:
    problem = problem_of_file(path, in_place=in_place)
    found = least_peak(problem)
    assert list(faults(problem, found.order)) == []
    assert obvious_peak(problem, found.order) == found.peak_bytes <= best_known
    assert found.proven


@pytest.mark.parametrize(
    ("path", "in_place", "best_known"),
    instances(),
    ids=lambda value: value.stem if isinstance(value, Path) else None,
)
def test_a_small_budget_gives_a_valid_order_and_a_valid_bound(
    path: Path, in_place: bool, best_known: int
) -> None:
    problem = problem_of_file(path, in_place=in_place)
    found = least_peak(problem, OrderOptions(steps=1000, beam_steps=1000, window_steps=500))
    assert list(faults(problem, found.order)) == []
    assert found.bound_bytes <= best_known
    assert found.peak_bytes <= obvious_peak(problem, range(len(problem.ops)))
