"""The `tilewright` command: parse flags, call the library, print, map errors to exit codes.

Every command imports its code when it runs: `--help` stays instant.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import click

from tilewright import __version__
from tilewright.errors import InputError, Problem, TilewrightError

_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
_DIMS = click.option(
    "--dim", "dims", multiple=True, metavar="NAME=SIZE", help="A dynamic dimension or zoo option."
)
_BITS = click.option("--bits", type=int, help="Make activations and weights this wide.")


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__)
def tilewright() -> None:
    """Plan how a neural network runs on an accelerator."""


@tilewright.command()
@click.argument("what", metavar="NETWORK|MACHINE")
@_DIMS
@_BITS
@_JSON
def show(what: str, dims: tuple[str, ...], bits: int | None, as_json: bool) -> None:
    """Show a network or a machine, given as a file or by its built-in name."""

    def run() -> None:
        if _is_machine(what):
            from tilewright.machine.load import load_machine
            from tilewright.report.machine import machine_json, machine_view

            _refuse_for_machine(dims, bits)
            machine = load_machine(what)
            _print(lambda: machine_json(machine), lambda: machine_view(machine), as_json)
            return
        from tilewright.network.load import load_network
        from tilewright.report.network import network_json, network_view

        network = load_network(what, dims=_sizes(dims), bits=bits)
        _print(lambda: network_json(network), lambda: network_view(network), as_json)

    _exit_with(run, as_json=as_json)


@tilewright.command(name="list")
@click.argument("what", type=click.Choice(["networks", "machines", "ops"]))
@_JSON
def list_(what: str, as_json: bool) -> None:
    """List built-in networks or machines, or the ops that readers know."""

    def run() -> None:
        from tilewright.report.listing import listing_json, listing_view

        _print(lambda: listing_json(what), lambda: listing_view(what), as_json)

    _exit_with(run, as_json=as_json)


@tilewright.command()
@click.argument("machine")
@click.argument("network", required=False)
@click.option("--mapping", metavar="FILE", help="A mapping file to check with them.")
@_DIMS
@_BITS
@_JSON
def check(
    machine: str,
    network: str | None,
    mapping: str | None,
    dims: tuple[str, ...],
    bits: int | None,
    as_json: bool,
) -> None:
    """Say all that is wrong with a machine, and with a network and a mapping file beside it.

    Prints nothing if there is nothing to say. Exit code 2 if there is an error.
    """

    def run() -> None:
        from tilewright.mapping.check import all_problems

        problems = all_problems(machine, network, mapping, dims=_sizes(dims), bits=bits)
        if as_json:
            _print_json({"problems": [_problem_json(p) for p in problems]})
        elif problems:
            click.echo("\n".join(map(str, problems)))
        if any(p.severity == "error" for p in problems):
            raise SystemExit(InputError.exit_code)

    _exit_with(run, as_json=as_json)


@tilewright.command(name="map")
@click.argument("network")
@click.option("--on", "machine", metavar="MACHINE", required=True, help="The machine to map on.")
@click.option("--mapping", metavar="FILE", help="Constraints (ZigZag YAML), or saved mappings.")
@click.option("--objective", type=click.Choice(["latency", "energy", "edp"]), default="latency")
@click.option(
    "--search", type=click.Choice(["loma", "anneal", "complete"]), default="loma",
    help="All orders of few factors, annealing over all factors, or all with proof.",
)  # fmt: skip
@click.option("--lpf-limit", type=click.IntRange(1, 12), default=6, help="Factors LOMA permutes.")
@click.option("--budget", type=click.IntRange(1), default=200_000, help="Candidates to cost.")
@click.option("--seed", type=int, default=0, help="Seed of the annealing search.")
@click.option(
    "--model", type=click.Choice(["tilewright", "zigzag-3.9"]), default="tilewright",
    help="Whose rules count: ours, or ZigZag's to the digit.",
)  # fmt: skip
@click.option("-o", "--output", metavar="FILE", help="Write the mappings as text to read back.")
@_DIMS
@_BITS
@_JSON
def map_(  # noqa: PLR0913  # one parameter per flag
    network: str,
    machine: str,
    mapping: str | None,
    objective: Literal["latency", "energy", "edp"],
    search: Literal["loma", "anneal", "complete"],
    lpf_limit: int,
    budget: int,
    seed: int,
    model: Literal["tilewright", "zigzag-3.9"],
    output: str | None,
    dims: tuple[str, ...],
    bits: int | None,
    as_json: bool,
) -> None:
    """Map every op of a network on a core: the best unrolling and loop order, and their cost."""

    def run() -> None:
        from tilewright.machine.load import load_machine
        from tilewright.mapping.network import MapOptions, map_network
        from tilewright.mapping.saved import read_mapping_file, save_mappings
        from tilewright.mapping.search import SearchOptions
        from tilewright.mapping.searches import search_named
        from tilewright.network.load import load_network
        from tilewright.report.mapping import mapping_json, mapping_view

        constraints, given = read_mapping_file(mapping)
        how = MapOptions(
            search=search_named(search),
            options=SearchOptions(
                objective=objective,
                lpf_limit=lpf_limit,
                budget=budget,
                seed=seed,
                round_off=model == "zigzag-3.9",
            ),
            model=model,
            constraints=constraints,
            given=given,
        )
        layers = load_network(network, dims=_sizes(dims), bits=bits)
        with _progress("mapping", quiet=as_json) as step:
            result = map_network(layers, load_machine(machine), how, step)
        if output is not None:
            save_mappings(result, output)
        _print(lambda: mapping_json(result), lambda: mapping_view(result), as_json)

    _exit_with(run, as_json=as_json)


@tilewright.command(name="plan")
@click.argument("network")
@click.option("--on", "machine", required=True, metavar="MACHINE", help="A file or built-in name.")
@click.option(
    "--objective",
    type=click.Choice(["latency", "energy", "traffic", "memory"]),
    default="latency",
    help="What to make small.",
)
@click.option(
    "--memory-limit",
    "limits",
    multiple=True,
    metavar="NAME=SIZE",
    help="Plan as if a memory had this size, such as cmx='512 KiB'.",
)
@click.option("-o", "folder", type=click.Path(file_okay=False), help="Write plan, trace, report.")
@_DIMS
@_BITS
@_JSON
def plan_(  # noqa: PLR0913  # one parameter per flag
    network: str,
    machine: str,
    objective: Literal["latency", "energy", "traffic", "memory"],
    limits: tuple[str, ...],
    folder: str | None,
    dims: tuple[str, ...],
    bits: int | None,
    as_json: bool,
) -> None:
    """Plan a network on a machine: every tile, transfer, address and cycle."""

    def run() -> None:
        from tilewright.machine.load import load_machine
        from tilewright.network.load import load_network
        from tilewright.planner import PlanOptions, plan
        from tilewright.report.plan import plan_figures, plan_view

        options = PlanOptions(objective=objective, memory_limits=_byte_sizes(limits))
        made = plan(
            load_network(network, dims=_sizes(dims), bits=bits), load_machine(machine), options
        )
        if folder is not None:
            made.save(folder)
        _print(lambda: plan_figures(made), lambda: plan_view(made), as_json)

    _exit_with(run, as_json=as_json)


@tilewright.command()
@click.argument("file", metavar="FILE.csv")
@click.option("--capacity", metavar="SIZE", help="Bytes, or such as '512 KiB'; else the smallest.")
@click.option("--draw", metavar="FILE", help="Draw time and addresses as SVG.")
@click.option("-o", "--output", metavar="FILE", help="Write the CSV with a column of addresses.")
@click.option("--budget", type=click.IntRange(0), default=2_000_000, help="Nodes to search.")
@click.option("--seed", type=int, default=0, help="Seed of the orders that are tried.")
@_JSON
def place(  # noqa: PLR0913  # one parameter per flag
    file: str,
    capacity: str | None,
    draw: str | None,
    output: str | None,
    budget: int,
    seed: int,
    as_json: bool,
) -> None:
    """Give buffers with known lives and sizes their addresses, packed as tight as can be.

    FILE.csv has the columns id, lower, upper, size. Exit code 3 if they do not fit.
    """

    def run() -> None:
        from pathlib import Path

        from tilewright.placement.diagnose import require_fit
        from tilewright.placement.files import read_csv, to_csv
        from tilewright.placement.pack import PackOptions, pack
        from tilewright.report.placement import placement_json, placement_view

        options = PackOptions(node_budget=budget, seed=seed)
        packing = pack(read_csv(file, _capacity(capacity)), options)
        title = Path(file).name
        if draw is not None:
            from tilewright.report.placement_drawing import placement_svg

            _write(draw, placement_svg(packing, title))
        require_fit(packing, file, options)
        if output is not None:
            _write(output, to_csv(packing))
        _print(lambda: placement_json(packing), lambda: placement_view(packing, title), as_json)

    _exit_with(run, as_json=as_json)


@tilewright.command(name="explain")
@click.argument("plan")
@click.option("--op", default="", metavar="NAME", help="Why this op takes as long as it does.")
@_JSON
def explain_(plan: str, op: str, as_json: bool) -> None:
    """Say why a plan (plan.json, or its folder) takes so long, and what would help first."""

    def run() -> None:
        from tilewright.report.explain import explain, explanation_json, explanation_view
        from tilewright.report.record import read_record

        found = explain(read_record(plan), op)
        _print(lambda: explanation_json(found), lambda: explanation_view(found), as_json)

    _exit_with(run, as_json=as_json)


@tilewright.command(name="compare")
@click.argument("before")
@click.argument("after")
@click.option(
    "--fail-if", "limits", multiple=True, metavar="LIMIT", help="Such as 'cycles>+1%': exit code 4."
)
@_JSON
def compare_(before: str, after: str, limits: tuple[str, ...], as_json: bool) -> None:
    """Say what changed between two plans, op by op."""

    def run() -> None:
        from tilewright.report.compare import compare, comparison_json, comparison_view, require
        from tilewright.report.record import read_record

        found = compare(read_record(before), read_record(after))
        _print(lambda: comparison_json(found), lambda: comparison_view(found), as_json)
        require(found, limits)

    _exit_with(run, as_json=as_json and not limits)


@tilewright.command(name="export")
@click.argument("plan")
@click.option(
    "--to", required=True, type=click.Choice(["csv", "minimalloc", "model-explorer", "onnx"])
)
@click.option("-o", "folder", required=True, type=click.Path(file_okay=False), help="Where to.")
def export_(
    plan: str, to: Literal["csv", "minimalloc", "model-explorer", "onnx"], folder: str
) -> None:
    """Write a plan for other tools: tables, live ranges, data for graph viewers."""

    def run() -> None:
        from pathlib import Path

        from tilewright.report.exports import export
        from tilewright.report.record import read_record

        for path in export(read_record(plan), to, Path(folder)):
            click.echo(path)

    _exit_with(run, as_json=False)


@tilewright.command()
@click.argument("what", type=click.Choice(["machine"]))
def schema(what: str) -> None:
    """Print the JSON schema of a file format, for editors and other tools."""

    def run() -> None:
        import json

        from tilewright.document.json_schema import json_schema
        from tilewright.machine.schema import MachineSchema

        click.echo(json.dumps(json_schema({"machine": MachineSchema}[what]), indent=2))

    _exit_with(run, as_json=False)


def main() -> None:
    """Entry point of the console script."""
    # Nothing here multiplies large matrices: a pool of threads for it would only cost start-up.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    tilewright(prog_name="tilewright")


def _is_machine(what: str) -> bool:
    """Whether an argument names a machine; a file is opened to see."""
    from pathlib import Path

    path = Path(what)
    if path.suffix in (".yaml", ".yml"):
        from tilewright.document import read_document

        data = read_document(path, last_key_wins=True).data
        return isinstance(data, dict)
    if path.suffix or path.is_file():
        return False
    from tilewright.machine.load import library_names
    from tilewright.network.zoo import names

    if what in library_names():
        return True
    if what not in names():
        from tilewright.document import suggestion

        known = [*names(), *library_names()]
        message = f"{what!r} is no file, no network of the zoo and no machine of the library"
        raise InputError(Problem(message=message, hint=suggestion(what, known)))
    return False


def _refuse_for_machine(dims: tuple[str, ...], bits: int | None) -> None:
    if dims or bits is not None:
        raise InputError(Problem(message="--dim and --bits belong to networks"))


def _sizes(pairs: Sequence[str]) -> dict[str, int]:
    result = {}
    for pair in pairs:
        name, _, size = pair.rpartition("=")
        if not name or not size.isdecimal() or len(size) > 12:
            message = f"--dim {pair!r}: expected a name and a size"
            raise InputError(Problem(message=message, hint="such as --dim batch=1"))
        result[name] = int(size)
    return result


def _byte_sizes(pairs: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """NAME=SIZE flags with sizes such as `64 KiB`, in bytes."""
    from tilewright.units import parse_bits

    found = []
    for pair in pairs:
        name, _, size = pair.partition("=")
        try:
            found.append((name, parse_bits(size) // 8))
        except ValueError as error:
            message = f"--memory-limit {pair!r}: {error}"
            raise InputError(Problem(message=message, hint="write it as cmx='512 KiB'")) from None
    return tuple(found)


def _capacity(text: str | None) -> int | None:
    if text is None or (text.isascii() and text.isdecimal() and len(text) < 19):
        return None if text is None else int(text)
    from tilewright.units import parse_bits

    try:
        return parse_bits(text) // 8
    except ValueError:
        message = f"--capacity {text!r}: expected bytes, or a size with its unit"
        hint = "such as --capacity 1048576 or --capacity '1 MiB'"
        raise InputError(Problem(message=message, hint=hint)) from None


def _write(path: str, text: str) -> None:
    from pathlib import Path

    try:
        Path(path).write_text(text, "utf-8")
    except OSError as error:
        message = f"cannot be written: {error.strerror}"
        raise InputError(Problem(file=path, message=message)) from None


def _print(data: Callable[[], dict[str, Any]], view: Callable[[], Any], as_json: bool) -> None:
    if as_json:
        _print_json(data())
        return
    from tilewright.report.tables import show as show_view

    show_view(view())


@contextmanager
def _progress(what: str, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on a terminal, nothing elsewhere."""
    if quiet or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _print_json(data: dict[str, Any]) -> None:
    import json

    click.echo(json.dumps({"schema": 1, "tilewright_version": __version__, **data}))


def _problem_json(problem: Problem) -> dict[str, Any]:
    keys = ("file", "line", "column", "severity", "message", "hint")
    return {key: getattr(problem, key) for key in keys}


def _exit_with(run: Callable[[], None], *, as_json: bool) -> None:
    """Run a command; errors that a user caused are told without a traceback."""
    try:
        run()
    except TilewrightError as error:
        if as_json:
            _print_json({"problems": [_problem_json(p) for p in error.problems]})
        else:
            click.echo("\n".join(f"error: {p}" for p in error.problems), err=True)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        import signal

        # Whoever read the output has gone: end as a signal would, without a word.
        sys.stderr.close()
        sys.exit(128 + signal.SIGPIPE)
