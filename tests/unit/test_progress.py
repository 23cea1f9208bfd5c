"""Progress of slow commands: on a terminal only, and only after a while."""

import os
import pty
import select
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tilewright import cli_support
from tilewright.cli_support import progress_bar, progress_steps
from tilewright.machine.load import load_machine
from tilewright.network.load import load_network
from tilewright.planner import PlanOptions, plan

Shown = Callable[[], str]

# Shorter than a bar's time from one refresh to the next, longer than what was sent takes to arrive.
SILENCE_SECONDS = 0.05


@contextmanager
def terminal() -> Iterator[Shown]:
    """A terminal in place of standard error; the value reads what it was sent since last read."""
    ours, theirs = pty.openpty()

    def shown() -> str:
        # A terminal hands over 4 KiB at most at a time, and not at once: read until it is silent.
        parts = []
        while select.select([ours], [], [], SILENCE_SECONDS)[0]:
            parts.append(os.read(ours, 1 << 16))
        return b"".join(parts).decode()

    before = sys.stderr
    with os.fdopen(theirs, "w") as stream:
        sys.stderr = stream
        try:
            yield shown
        finally:
            sys.stderr = before
    os.close(ours)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_support, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setenv("TERM", "xterm")


@pytest.mark.usefixtures("impatient")
def test_a_slow_command_names_the_step_and_leaves_nothing() -> None:
    with terminal() as shown:
        with progress_steps("planning", quiet=False) as step:
            step("addresses")
            time.sleep(0.5)
            assert "planning: addresses" in shown()
        # The line is erased at the end.
        assert shown().endswith("\x1b[2K")


@pytest.mark.usefixtures("impatient")
def test_a_bar_is_shown_on_a_terminal() -> None:
    with terminal() as shown, progress_bar("mapping", quiet=False) as step:
        step(1, 2)
        time.sleep(0.5)
        assert "mapping" in shown()


@pytest.mark.usefixtures("impatient")
def test_what_is_printed_meanwhile_goes_to_standard_output(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with terminal() as shown, progress_steps("planning", quiet=False):
        time.sleep(0.2)
        sys.stdout.write("a result\n")
        assert "a result" not in shown()
    assert capsys.readouterr().out == "a result\n"


def test_a_quick_command_shows_nothing() -> None:
    with terminal() as shown:
        with progress_steps("planning", quiet=False) as step:
            step("check")
        assert shown() == ""


@pytest.mark.usefixtures("impatient")
def test_json_shows_nothing() -> None:
    with terminal() as shown:
        with progress_steps("planning", quiet=True) as step:
            step("check")
            time.sleep(0.1)
        assert shown() == ""


@pytest.mark.usefixtures("impatient")
def test_what_is_no_terminal_gets_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with progress_steps("planning", quiet=False) as step:
        step("check")
        time.sleep(0.1)
    assert capfd.readouterr() == ("", "")


def test_a_plan_tells_its_steps_in_their_order() -> None:
    steps: list[str] = []
    options = PlanOptions(smaller_tasks=0, cascades=False)
    plan(load_network("lenet5"), load_machine("npe8"), options, watcher=steps.append)
    assert steps == ["compute order", "tiles and mappings", "times", "addresses", "check"]
