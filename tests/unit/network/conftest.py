from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.unit.network.tflite_models import ModelSpec

from tilewright.network.graph import Network
from tilewright.network.tflite_reader import read_tflite


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., Network]:
    """Write a model to a file and read it."""

    def reading(model: ModelSpec, dims: Mapping[str, int] | None = None) -> Network:
        return read_tflite(model.save(tmp_path), dims=dims or {})

    return reading
