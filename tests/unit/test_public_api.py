"""The names that others may build on, and that importing them costs nothing."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import tilewright

PUBLIC = (
    "Fit",
    "InfeasibleError",
    "InputError",
    "LimitError",
    "Machine",
    "MapOptions",
    "MappedNetwork",
    "Network",
    "Plan",
    "PlanOptions",
    "SearchOptions",
    "TilewrightError",
    "__version__",
    "compare",
    "explain",
    "export",
    "fit",
    "load_machine",
    "load_network",
    "map_network",
    "plan",
    "replay",
)
HEAVY = ("numpy", "onnx", "pydantic", "rich", "ruamel", "tflite")
FILES = Path(__file__).parents[1] / "zigzag_files"
REPORT = f"""
import sys
print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)
"""


def heavy_modules_after(code: str) -> str:
    """The heavy packages that a fresh interpreter has loaded after some code."""
    finished = subprocess.run(
        [sys.executable, "-c", code + REPORT], capture_output=True, text=True, check=True
    )
    return finished.stderr.strip()


def test_public_names_are_exactly_these() -> None:
    assert tuple(tilewright.__all__) == PUBLIC


def test_a_listing_of_the_package_has_the_public_names_and_no_others() -> None:
    assert dir(tilewright) == sorted(PUBLIC)


def test_a_folder_of_the_package_does_not_hide_the_function_of_its_name() -> None:
    module = import_module("tilewright.replay")
    assert callable(tilewright.replay)
    assert module.__name__ == "tilewright.replay"


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_can_be_had(name: str) -> None:
    assert getattr(tilewright, name) is not None


def test_every_public_name_has_a_docstring() -> None:
    public = [getattr(tilewright, name) for name in PUBLIC if name != "__version__"]
    assert [value.__name__ for value in public if not value.__doc__] == []


def test_public_names_are_those_of_the_modules_they_live_in() -> None:
    load = import_module("tilewright.machine.load")
    assert tilewright.load_machine is load.load_machine
    assert issubclass(tilewright.InputError, tilewright.TilewrightError)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'load_netwrok'"):
        _ = tilewright.load_netwrok


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert heavy_modules_after("import tilewright") == "[]"


def test_asking_for_help_loads_nothing_heavy() -> None:
    code = """
import sys
from tilewright.cli import main
sys.argv = ["tilewright", "--help"]
try:
    main()
except SystemExit as error:
    assert error.code == 0
"""
    assert heavy_modules_after(code) == "[]"


def test_the_check_for_heavy_modules_can_fail() -> None:
    assert "'numpy'" in heavy_modules_after("import tilewright; tilewright.map_network")


def modules_after(*arguments: str) -> set[str]:
    """What a fresh interpreter has loaded after a command whose output is piped."""
    code = f"""
import sys
from tilewright.cli import main
sys.argv = ["tilewright", *{arguments!r}]
try:
    main()
except SystemExit as error:
    assert error.code == 0
print(*sys.modules, file=sys.stderr)
"""
    finished = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return set(finished.stderr.split())


def test_mapping_a_network_loads_nothing_that_it_does_not_need() -> None:
    network, machine = FILES / "block.yaml", FILES / "bunting.yaml"
    loaded = modules_after("map", str(network), "--on", str(machine))
    assert "tilewright.mapping.search" in loaded
    unneeded = {*HEAVY, "importlib.resources", "tilewright.machine.datapath"} - {"numpy"}
    unneeded |= {"tilewright.mapping.anneal", "tilewright.mapping.complete"}
    assert sorted(unneeded & loaded) == []


def test_showing_a_network_of_the_zoo_loads_nothing_heavy() -> None:
    assert sorted(set(HEAVY) & modules_after("show", "resnet50")) == []


def test_a_file_that_is_not_plain_is_read_with_the_yaml_library(tmp_path: Path) -> None:
    machine = tmp_path / "machine.yaml"
    text = (FILES / "bunting.yaml").read_text(encoding="utf-8")
    machine.write_text(f"---\n{text}", encoding="utf-8")
    assert "ruamel.yaml" in modules_after("show", str(machine))


def test_types_are_shipped() -> None:
    assert (Path(tilewright.__file__).parent / "py.typed").is_file()
