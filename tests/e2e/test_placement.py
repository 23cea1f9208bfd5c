"""`tilewright place`: exit codes, JSON, files; the published instances; a second opinion."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result
from tests.placement_cases import random_buffers
from tests.reference_data import ABSENT, REFERENCE_DATA

from tilewright.cli import tilewright
from tilewright.placement.check import violations
from tilewright.placement.files import read_csv
from tilewright.placement.pack import PackOptions, pack
from tilewright.placement.problem import Buffer, Packing, PlacementProblem
from tilewright.placement.search import is_compiled

HARD = REFERENCE_DATA / "bench" / "minimalloc"
LIVES = REFERENCE_DATA / "bench" / "liveranges"
SVG = "{http://www.w3.org/2000/svg}"
# Five buffers of 4 bytes; b1, b3 and b5 are alive in cycle 0: 12 bytes.
EXAMPLE = "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n"
BROKEN = "id,lower,upper,size,gaps\na,0,x,1,\nb,5,5,1,\nc,0,9,1,3-12\nd,0,1,1,\nd,0,1,1,\n"

needs_kernel = pytest.mark.skipif(not is_compiled(), reason="slow without the compiled search")


@pytest.fixture
def example(tmp_path: Path) -> Path:
    path = tmp_path / "example.csv"
    path.write_text(EXAMPLE, "utf-8")
    return path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(tilewright, ["place", *arguments], prog_name="tilewright")


def as_json(result: Result) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(result.stdout)
    return data


def checked(packing: Packing) -> Packing:
    assert [str(p) for p in violations(packing.problem, packing.address_of())] == []
    return packing


def test_json_has_the_promised_keys(example: Path) -> None:
    result = run(str(example), "--json")
    assert result.exit_code == 0
    data = as_json(result)
    assert (data["peak_bytes"], data["bound_bytes"], data["proven"]) == (12, 12, True)
    assert list(violations(read_csv(example, 12), data["addresses"])) == []


def test_the_table_says_how_tight_it_is(example: Path) -> None:
    result = run(str(example), "--capacity", "16")
    assert result.exit_code == 0
    assert "12 B, reached: no placement is smaller" in result.stdout
    assert "16 B, 4 B left over" in result.stdout


def test_what_does_not_fit_exits_with_3(example: Path) -> None:
    result = run(str(example), "--capacity", "11", "--json")
    assert result.exit_code == 3
    assert "1 B too many (volume)" in as_json(result)["problems"][0]["message"]


@pytest.mark.parametrize("size", ["12 bytes", "-1", "1.5", "x"])
def test_a_capacity_that_is_no_size_exits_with_2(example: Path, size: str) -> None:
    result = run(str(example), f"--capacity={size}")
    assert result.exit_code == 2
    assert "such as --capacity 1048576" in result.stderr


def test_a_capacity_may_carry_its_unit(example: Path) -> None:
    data = as_json(run(str(example), "--capacity", "1 KiB", "--json"))
    assert data["capacity_bytes"] == 1024


def test_the_written_file_holds_the_addresses(example: Path, tmp_path: Path) -> None:
    written = tmp_path / "out.csv"
    data = as_json(run(str(example), "--json", "-o", str(written)))
    rows = list(csv.DictReader(written.read_text("utf-8").splitlines()))
    assert {row["id"]: int(row["offset"]) for row in rows} == data["addresses"]


def test_an_unwritable_file_exits_with_2(example: Path, tmp_path: Path) -> None:
    result = run(str(example), "--draw", str(tmp_path / "no" / "out.svg"))
    assert result.exit_code == 2
    assert "cannot be written" in result.stderr


def test_the_drawing_shows_every_life_once_and_no_two_overlap(tmp_path: Path) -> None:
    path, drawing = tmp_path / "a<b.csv", tmp_path / "out.svg"
    path.write_text(EXAMPLE.replace("size\n", "size,gaps\n").replace(",4\n", ",4,\n"), "utf-8")
    assert run(str(path), "--draw", str(drawing), "--capacity", "16").exit_code == 0
    root = ElementTree.parse(drawing).getroot()
    assert root.findtext(f"{SVG}title") == "a<b.csv"
    boxes = [
        tuple(float(box.get(key, "")) for key in ("x", "y", "width", "height"))
        for box in root.iter(f"{SVG}rect")
        if box.get("class") == "buffer"
    ]
    assert len(boxes) == 5
    for number, (x, y, width, height) in enumerate(boxes):
        for other_x, other_y, other_width, other_height in boxes[:number]:
            across = min(x + width, other_x + other_width) - max(x, other_x)
            along = min(y + height, other_y + other_height) - max(y, other_y)
            assert across < 0.02 or along < 0.02
    texts = ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
    assert {"b1", "b5", "capacity", "16 B", "peak = bound", "12 B"} <= set(texts)


def test_every_fault_of_a_file_is_told_at_once(
    tmp_path: Path, golden: Callable[[str, str], None]
) -> None:
    path = tmp_path / "broken.csv"
    path.write_text(BROKEN, "utf-8")
    result = run(str(path))
    assert result.exit_code == 2
    golden("errors/placement_file.txt", result.stderr.replace(str(tmp_path) + "/", ""))


def test_what_does_not_fit_is_explained(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    path = tmp_path / "lives.csv"
    path.write_text("id,lower,upper,size\na,0,5,10\nb,2,3,6\nc,2,4,4\n", "utf-8")
    result = run(str(path), "--capacity", "16")
    assert result.exit_code == 3
    golden("errors/placement_volume.txt", result.stderr.replace(str(tmp_path) + "/", ""))


def test_fragmentation_is_explained(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    path = tmp_path / "lives.csv"
    path.write_text(
        "id,lower,upper,size,gaps\nw,0,2,1,\nx,1,4,1,2-3\ny,1,6,1,2-5\np,0,1,2,\nq,3,4,2,\nr,5,6,2,\n",
        "utf-8",
    )
    result = run(str(path), "--capacity", "3")
    assert result.exit_code == 3
    golden("errors/placement_fragmentation.txt", result.stderr.replace(str(tmp_path) + "/", ""))


@needs_kernel
@pytest.mark.skipif(not HARD.is_dir(), reason=ABSENT)
@pytest.mark.parametrize("name", ["A", "B", "C", "D", "E", "F"])
def test_the_hard_instances_fit_their_capacity(name: str) -> None:
    packing = checked(pack(read_csv(HARD / f"{name}.1048576.csv", 1_048_576)))
    assert packing.fits


@needs_kernel
@pytest.mark.skipif(not HARD.is_dir(), reason=ABSENT)
def test_one_of_them_is_packed_to_its_bound() -> None:
    packing = checked(pack(read_csv(HARD / "C.1048576.csv")))
    assert (packing.peak_bytes, packing.proven) == (1_039_360, True)


@needs_kernel
@pytest.mark.slow
@pytest.mark.skipif(not HARD.is_dir(), reason=ABSENT)
def test_another_fits_much_less_than_its_capacity() -> None:
    problem = read_csv(HARD / "D.1048576.csv", 1_026_047)
    assert checked(pack(problem, PackOptions(node_budget=2_000_000))).fits


@pytest.mark.skipif(not LIVES.is_dir(), reason=ABSENT)
def test_live_ranges_of_real_networks_are_packed_to_their_bound() -> None:
    index = csv.DictReader((LIVES / "index.csv").read_text("utf-8").splitlines())
    volumes = {row["instance"]: int(row["lower_bound_max_live"]) for row in index}
    paths = [path for path in sorted(LIVES.glob("*.csv")) if path.name != "index.csv"]
    assert paths
    for path in paths:
        packing = checked(pack(read_csv(path)))
        assert packing.proven, path.name
        assert packing.peak_bytes >= volumes.get(path.stem, 0), path.name


@pytest.mark.parametrize("seed", range(12))
def test_cp_sat_finds_the_same_smallest_peak(seed: int) -> None:
    pytest.importorskip("ortools", reason="the extra `solve` is not installed")
    buffers = random_buffers(seed + 10_000, most=12)
    packing = pack(PlacementProblem(buffers=tuple(buffers)), PackOptions(node_budget=300_000))
    assert packing.bound_bytes <= cp_sat_peak(buffers) <= packing.peak_bytes


def cp_sat_peak(buffers: list[Buffer]) -> int:
    """The smallest peak according to CP-SAT: boxes that must not overlap."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    room = sum(b.size_bytes + b.alignment_bytes + (b.address or 0) for b in buffers)
    peak = model.new_int_var(0, room, "peak")
    times, places = [], []
    for buffer in buffers:
        size, alignment = buffer.size_bytes, buffer.alignment_bytes
        multiple = model.new_int_var(0, room // alignment, buffer.name)
        begin = alignment * multiple
        if buffer.address is not None:
            model.add(begin == buffer.address)
        model.add(begin + size <= peak)
        for start, end in buffer.lives:
            times.append(model.new_fixed_size_interval_var(start, end - start, ""))
            places.append(model.new_fixed_size_interval_var(begin, size, ""))
    model.add_no_overlap_2d(times, places)
    model.minimize(peak)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model) == cp_model.OPTIMAL
    return int(solver.objective_value)
