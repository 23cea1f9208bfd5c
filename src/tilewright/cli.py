"""The `tilewright` command: parse flags, call the library, print, map errors to exit codes.

Every command imports its code when it runs: `--help` stays instant.
"""

import gc
import os
import sys
from io import TextIOWrapper
from typing import Literal

import click

from tilewright import __version__, cli_plans
from tilewright.cli_names import (
    EITHER,
    FILE,
    MACHINE,
    NETWORK,
    roles,
    told_apart,
)
from tilewright.cli_support import (
    BITS_OPTION,
    DIMS_OPTION,
    JSON_OPTION,
    SEED,
    exit_with,
    print_json,
    print_result,
    problem_json,
    progress_bar,
    sizes,
)
from tilewright.errors import InputError, Problem
from tilewright.roles import machine_names, role_of, zoo_names


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__)
def tilewright() -> None:
    """Plan how a neural network runs on an accelerator."""


@tilewright.command()
@click.argument("what", metavar="NETWORK|MACHINE", type=EITHER)
@DIMS_OPTION
@BITS_OPTION
@JSON_OPTION
def show(what: str, dims: tuple[str, ...], bits: int | None, as_json: bool) -> None:
    """Show a network or a machine, given as a file or by its built-in name."""

    def run() -> None:
        if _is_machine(what):
            from tilewright.machine.load import load_machine
            from tilewright.report.machine import machine_json, machine_view

            _refuse_for_machine(dims, bits)
            machine = load_machine(what)
            print_result(lambda: machine_json(machine), lambda: machine_view(machine), as_json)
            return
        from tilewright.network.load import load_network
        from tilewright.report.network import network_json, network_view

        network = load_network(what, dims=sizes(dims), bits=bits)
        print_result(lambda: network_json(network), lambda: network_view(network), as_json)

    exit_with(run, as_json=as_json)


@tilewright.command(name="list")
@click.argument("what", type=click.Choice(["networks", "machines", "ops"]))
@JSON_OPTION
def list_(what: str, as_json: bool) -> None:
    """List built-in networks or machines, or the ops that readers know."""

    def run() -> None:
        from tilewright.report.listing import listing_json, listing_view

        print_result(lambda: listing_json(what), lambda: listing_view(what), as_json)

    exit_with(run, as_json=as_json)


@tilewright.command()
@click.argument("first", metavar="[NETWORK]", required=False, type=EITHER)
@click.argument("second", metavar="MACHINE", required=False, type=EITHER)
@click.option("--on", "machine", metavar="MACHINE", type=MACHINE, help="The machine, if not named.")
@click.option("--mapping", metavar="FILE", type=FILE, help="A mapping file to check with them.")
@DIMS_OPTION
@BITS_OPTION
@JSON_OPTION
def check(  # noqa: PLR0913  # one parameter per flag
    first: str | None,
    second: str | None,
    machine: str | None,
    mapping: str | None,
    dims: tuple[str, ...],
    bits: int | None,
    as_json: bool,
) -> None:
    """Say all that is wrong with a machine, and with a network and a mapping file beside it.

    Prints nothing if there is nothing to say. Exit code 2 if there is an error. The two may stand
    in either order; the network may be left out.
    """

    def run() -> None:
        from tilewright.mapping.check import all_problems

        shape = sizes(dims)
        try:
            the_machine, network = roles(first, second, machine)
            problems = all_problems(the_machine, network, mapping, dims=shape, bits=bits)
        except InputError as error:
            problems = list(error.problems)
        if as_json:
            print_json({"problems": [problem_json(p) for p in problems]})
        elif problems:
            click.echo("\n".join(map(str, problems)))
        if any(p.severity == "error" for p in problems):
            raise SystemExit(InputError.exit_code)

    exit_with(run, as_json=as_json)


@tilewright.command(name="map")
@click.argument("network", type=NETWORK)
@click.option(
    "--on",
    "machine",
    metavar="MACHINE",
    required=True,
    type=MACHINE,
    help="A file or built-in name.",
)
@click.option(
    "--mapping", metavar="FILE", type=FILE, help="Constraints (ZigZag YAML), or saved mappings."
)
@click.option("--objective", type=click.Choice(["latency", "energy", "edp"]), default="latency")
@click.option(
    "--search", type=click.Choice(["loma", "anneal", "complete"]), default="loma",
    help="All orders of few factors, annealing over all factors, or all with proof.",
)  # fmt: skip
@click.option("--lpf-limit", type=click.IntRange(1, 12), default=6, help="Factors LOMA permutes.")
@click.option("--budget", type=click.IntRange(1), default=200_000, help="Candidates to cost.")
@click.option("--seed", type=SEED, default=0, help="Seed of the annealing search.")
@click.option(
    "--model", type=click.Choice(["tilewright", "zigzag-3.9"]), default="tilewright",
    help="Whose rules count: ours, or ZigZag's to the digit.",
)  # fmt: skip
@click.option(
    "-o", "--output", metavar="FILE", type=FILE, help="Write the mappings as text to read back."
)
@DIMS_OPTION
@BITS_OPTION
@JSON_OPTION
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
        with told_apart("map", network, machine):
            layers = load_network(network, dims=sizes(dims), bits=bits)
            where = load_machine(machine)
        with progress_bar("mapping", quiet=as_json) as step:
            result = map_network(layers, where, how, step)
        if output is not None:
            save_mappings(result, output)
        print_result(lambda: mapping_json(result), lambda: mapping_view(result), as_json)

    exit_with(run, as_json=as_json)


@tilewright.command()
@click.argument("what", type=click.Choice(["machine"]))
def schema(what: str) -> None:
    """Print the JSON schema of a file format, for editors and other tools."""

    def run() -> None:
        import json

        from tilewright.document.json_schema import json_schema
        from tilewright.machine.schema import MachineSchema

        click.echo(json.dumps(json_schema({"machine": MachineSchema}[what]), indent=2))

    exit_with(run, as_json=False)


for command in cli_plans.COMMANDS:
    tilewright.add_command(command)


def main() -> None:
    """Entry point of the console script."""
    # Nothing here multiplies large matrices: a pool of threads for it would only cost start-up.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # What a command makes is needed until it ends: looking for garbage, in between and when Python
    # ends, takes a tenth of the time of `plan`, and without it memory stays the same.
    gc.disable()
    if isinstance(sys.stdout, TextIOWrapper):
        # A name that the locale has no letters for must not cost the whole result.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        tilewright(prog_name="tilewright")
    finally:
        gc.freeze()


def _is_machine(what: str) -> bool:
    """Whether an argument names a machine."""
    from pathlib import Path

    role, path = role_of(what), Path(what)
    if role is None and not (path.suffix or os.path.isfile(what) or len(path.parts) > 1):
        from tilewright.document import suggestion

        known = [*zoo_names(), *machine_names()]
        message = f"{what!r} is no file, no network of the zoo and no machine of the library"
        raise InputError(Problem(message=message, hint=suggestion(what, known)))
    return role == "machine"


def _refuse_for_machine(dims: tuple[str, ...], bits: int | None) -> None:
    if dims or bits is not None:
        raise InputError(Problem(message="--dim and --bits belong to networks"))
