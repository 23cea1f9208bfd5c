"""What commands share: their common flags, printing, progress and exit codes."""

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from tilewright import __version__
from tilewright.errors import InfeasibleError, InputError, Problem, TilewrightError

if TYPE_CHECKING:  # imported when something is slow
    from rich.progress import Progress

PATIENCE_SECONDS = 1.0
"""What takes less shows no progress."""
JSON_OPTION = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
DIMS_OPTION = click.option(
    "--dim", "dims", multiple=True, metavar="NAME=SIZE", help="A dynamic dimension or zoo option."
)
SEED = click.IntRange(0)
"""What NumPy's generators take."""
BITS_OPTION = click.option("--bits", type=int, help="Make activations and weights this wide.")


def sizes(pairs: Sequence[str]) -> dict[str, int]:
    """NAME=SIZE flags as sizes by name."""
    result: dict[str, int] = {}
    for pair in pairs:
        name, _, size = pair.rpartition("=")
        if not name or not size.isdecimal() or len(size) > 12:
            message = f"--dim {pair!r}: expected a name and a size"
            raise InputError(Problem(message=message, hint="such as --dim batch=1"))
        refuse_second("--dim", name, result)
        result[name] = int(size)
    return result


def refuse_second(flag: str, name: str, known: Collection[str]) -> None:
    """Raise InputError if a flag gives a name that it gave before: which one is meant?"""
    if name in known:
        message = f"{flag} gives {name!r} twice"
        raise InputError(Problem(message=message, hint="leave one of them out"))


def folder_to_write(folder: str | None) -> None:
    """Raise InputError before any work is done if its result could not be written there."""
    if folder is None:
        return
    from pathlib import Path

    from tilewright.document import refuse_unwritable

    if not folder:
        raise InputError(Problem(message="-o: expected a folder, got an empty name"))
    refuse_unwritable(Path(folder))


def print_result(
    data: Callable[[], dict[str, Any]], view: Callable[[], Any], as_json: bool
) -> None:
    """Print a result as JSON or as a view, whichever is wanted."""
    if as_json:
        print_json(data())
        return
    from tilewright.report.tables import show as show_view

    show_view(view())


@contextmanager
def progress_bar(what: str, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """A bar of what is done for what lasts above a second; on a terminal only."""
    if quiet or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    with _shown_when_slow() as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def progress_steps(what: str, *, quiet: bool) -> Iterator[Callable[[str], None]]:
    """The step that is under way, for what lasts above a second; on a terminal only."""
    if quiet or not sys.stderr.isatty():
        yield lambda step: None
        return
    with _shown_when_slow() as bar:
        task = bar.add_task(what, total=None)
        yield lambda step: bar.update(task, description=f"{what}: {step}")


@contextmanager
def _shown_when_slow() -> Iterator["Progress"]:
    """A progress display on standard error that appears after a second and leaves nothing."""
    from threading import Timer

    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    # Standard output stays as it is: rich would send what is printed there to standard error.
    bar = Progress(*columns, console=console, transient=True, redirect_stdout=False)
    timer = Timer(PATIENCE_SECONDS, bar.start)
    timer.start()
    try:
        yield bar
    finally:
        timer.cancel()
        timer.join()
        bar.stop()


def print_json(data: dict[str, Any]) -> None:
    """Print one object, with the version that made it."""
    import json

    click.echo(json.dumps({"schema": 1, "tilewright_version": __version__, **data}))


def problem_json(problem: Problem) -> dict[str, Any]:
    """A problem under its documented keys."""
    keys = ("file", "line", "column", "severity", "message", "hint")
    return {key: getattr(problem, key) for key in keys}


def exit_with(run: Callable[[], None], *, as_json: bool) -> None:
    """Run a command; errors that a user caused are told without a traceback."""
    try:
        run()
    except TilewrightError as error:
        if as_json:
            print_json({"problems": [problem_json(p) for p in error.problems]})
        else:
            click.echo("\n".join(f"error: {p}" for p in error.problems), err=True)
        sys.exit(error.exit_code)
    except MemoryError:
        message = "there is not enough memory on this computer for that"
        hint = "a smaller network, or larger scratchpads in the machine file, take fewer tasks"
        problem = Problem(message=message, hint=hint)
        if as_json:
            print_json({"problems": [problem_json(problem)]})
        else:
            click.echo(f"error: {problem}", err=True)
        sys.exit(InfeasibleError.exit_code)
    except KeyboardInterrupt as interrupt:
        import signal

        told = str(interrupt) or "nothing more is written"
        click.echo(f"interrupted: {told}", err=True)
        sys.exit(128 + signal.SIGINT)
    except BrokenPipeError:
        import signal

        # Whoever read the output has gone: end as a signal would, without a word.
        sys.stderr.close()
        sys.exit(128 + signal.SIGPIPE)
    except OSError as error:
        # What has no name is standard output: files are told where they are written.
        if error.filename is not None:
            raise
        message = f"the result cannot be printed: {error.strerror or error}"
        click.echo(f"error: {Problem(message=message)}", err=True)
        sys.exit(InputError.exit_code)
