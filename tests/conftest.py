from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.random_cases import look_at_all, look_at_few

from tilewright.mapping import kernel


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite golden files")


def pytest_configure(config: pytest.Config) -> None:
    if config.option.markexpr == "not slow":
        look_at_few()
    else:
        look_at_all()


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare text with tests/golden/<name>; `--update-golden` rewrites it."""

    def check(name: str, actual: str) -> None:
        path = Path(__file__).parent / "golden" / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(actual, encoding="utf-8")
        expected = path.read_text(encoding="utf-8") if path.exists() else ""
        assert actual == expected, f"{name} changed; --update-golden?"

    return check


@pytest.fixture(scope="module", params=["kernel", "numpy"])
def both_evaluations(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run a test with the compiled kernel, where it was built, and with NumPy."""
    if request.param == "kernel" and not kernel.is_used():
        pytest.skip("the kernel was not built")
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "numpy":
            patch.setattr(kernel, "is_used", lambda: False)
        yield
