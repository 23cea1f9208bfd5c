"""The commands about plans: making, replaying, explaining, comparing and exporting them."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import click

from tilewright.cli_names import FILE, MACHINE, NETWORK, told_apart
from tilewright.cli_support import (
    BITS_OPTION,
    DIMS_OPTION,
    JSON_OPTION,
    SEED,
    exit_with,
    folder_to_write,
    print_result,
    progress_steps,
    refuse_second,
    sizes,
)
from tilewright.errors import InputError, LimitError, Problem

if TYPE_CHECKING:  # imported when a command runs
    from tilewright.planner import Plan


@click.command(name="plan")
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
@click.option(
    "--thorough", is_flag=True, help="Plan for smaller scratchpads, too, and take what is best."
)
@click.option("--verify", is_flag=True, help="Replay the plan before it is reported.")
@DIMS_OPTION
@BITS_OPTION
@JSON_OPTION
def plan_(  # noqa: PLR0913  # one parameter per flag
    network: str,
    machine: str,
    objective: Literal["latency", "energy", "traffic", "memory"],
    limits: tuple[str, ...],
    folder: str | None,
    thorough: bool,
    verify: bool,
    dims: tuple[str, ...],
    bits: int | None,
    as_json: bool,
) -> None:
    """Plan a network on a machine: every tile, transfer, address and cycle."""

    def run() -> None:
        from tilewright.machine.limits import with_memory_limits
        from tilewright.machine.load import load_sound_machine
        from tilewright.machine.order import order_named
        from tilewright.mapping.obstacles import refuse_impossible
        from tilewright.network.load import load_network

        folder_to_write(folder)
        sized = _byte_sizes(limits)
        with told_apart("plan", network, machine):
            graph = load_network(network, dims=sizes(dims), bits=bits)
            whole = load_sound_machine(machine)
        # The planner looks, too: here, a refusal need not wait until it is imported.
        with order_named(whole):
            refuse_impossible(graph, with_memory_limits(whole, sized))
        from tilewright.planner import PlanOptions, plan
        from tilewright.report.plan import plan_figures, plan_view

        options = PlanOptions(objective=objective, memory_limits=sized, thorough=thorough)
        with progress_steps("planning", quiet=as_json) as step:
            made = plan(graph, whole, options, step)
            if verify:
                step("replay")
                made = _verified(made)
            if folder is not None:
                step("files")
                made.save(folder)
        print_result(lambda: plan_figures(made), lambda: plan_view(made), as_json)
        if made.interrupted:
            told = "this is the best plan so far" + (f", written to {folder}" if folder else "")
            raise KeyboardInterrupt(told)

    exit_with(run, as_json=as_json)


@click.command()
@click.argument("file", metavar="FILE.csv", type=FILE)
@click.option("--capacity", metavar="SIZE", help="Bytes, or such as '512 KiB'; else the smallest.")
@click.option("--draw", metavar="FILE", type=FILE, help="Draw time and addresses as SVG.")
@click.option(
    "-o", "--output", metavar="FILE", type=FILE, help="Write the CSV with a column of addresses."
)
@click.option("--budget", type=click.IntRange(0), default=2_000_000, help="Nodes to search.")
@click.option("--seed", type=SEED, default=0, help="Seed of the orders that are tried.")
@JSON_OPTION
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

        from tilewright.document import write_text
        from tilewright.placement.diagnose import require_fit
        from tilewright.placement.files import read_csv, to_csv
        from tilewright.placement.pack import PackOptions, pack
        from tilewright.report.placement import placement_json, placement_view

        options = PackOptions(node_budget=budget, seed=seed)
        with progress_steps("placing", quiet=as_json):
            packing = pack(read_csv(file, _capacity(capacity)), options)
        title = Path(file).name
        if draw is not None:
            from tilewright.report.placement_drawing import placement_svg

            write_text(Path(draw), placement_svg(packing, title))
        require_fit(packing, file, options)
        if output is not None:
            write_text(Path(output), to_csv(packing))
        print_result(
            lambda: placement_json(packing), lambda: placement_view(packing, title), as_json
        )

    exit_with(run, as_json=as_json)


@click.command(name="replay")
@click.argument("plan", type=FILE)
@click.option(
    "--model", metavar="FILE", type=FILE, help="The network's file, if the plan names another."
)
@click.option(
    "--input", "input_file", metavar="FILE.npz", type=FILE, help="Input arrays by tensor name."
)
@click.option("--seed", type=SEED, default=0, help="Draws the values that no file gives.")
@DIMS_OPTION
@BITS_OPTION
@JSON_OPTION
def replay_(  # noqa: PLR0913  # one parameter per flag
    plan: str,
    model: str | None,
    input_file: str | None,
    seed: int,
    dims: tuple[str, ...],
    bits: int | None,
    as_json: bool,
) -> None:
    """Run a plan on an emulated machine and compare what it computes with the network."""

    def run() -> None:
        from pathlib import Path

        from tilewright.replay.verify import refuse
        from tilewright.report.replay import replay_json, replay_view
        from tilewright.report.replay_file import replay_file

        inputs = Path(input_file) if input_file else None
        with progress_steps("replaying", quiet=as_json):
            found = replay_file(
                plan, model=model, dims=sizes(dims), bits=bits, seed=seed, input_file=inputs
            )
        print_result(lambda: replay_json(found), lambda: replay_view(found), as_json)
        if as_json and not found.agrees:
            # What is wrong has been printed with the rest.
            sys.exit(LimitError.exit_code)
        refuse(found)

    exit_with(run, as_json=as_json)


@click.command(name="explain")
@click.argument("plan", type=FILE)
@click.option("--op", default="", metavar="NAME", help="Why this op takes as long as it does.")
@JSON_OPTION
def explain_(plan: str, op: str, as_json: bool) -> None:
    """Say why a plan (plan.json, or its folder) takes so long, and what would help first."""

    def run() -> None:
        from tilewright.report.explain import explain, explanation_json, explanation_view
        from tilewright.report.plan_faults import faults_told
        from tilewright.report.record import read_record

        with progress_steps("explaining", quiet=as_json), faults_told(plan):
            found = explain(read_record(plan), op)
        with faults_told(plan):
            print_result(lambda: explanation_json(found), lambda: explanation_view(found), as_json)

    exit_with(run, as_json=as_json)


@click.command(name="compare")
@click.argument("before", type=FILE)
@click.argument("after", type=FILE)
@click.option(
    "--fail-if", "limits", multiple=True, metavar="LIMIT", help="Such as 'cycles>+1%': exit code 4."
)
@JSON_OPTION
def compare_(before: str, after: str, limits: tuple[str, ...], as_json: bool) -> None:
    """Say what changed between two plans, op by op."""

    def run() -> None:
        from tilewright.report.compare import compare, comparison_json, comparison_view, require
        from tilewright.report.plan_faults import faults_told
        from tilewright.report.record import read_record

        with progress_steps("comparing", quiet=as_json), faults_told(before, after):
            found = compare(read_record(before), read_record(after))
        with faults_told(before, after):
            print_result(lambda: comparison_json(found), lambda: comparison_view(found), as_json)
        require(found, limits)

    exit_with(run, as_json=as_json and not limits)


@click.command(name="export")
@click.argument("plan", type=FILE)
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
        from tilewright.report.plan_faults import faults_told
        from tilewright.report.record import read_record

        folder_to_write(folder)
        with faults_told(plan):
            written = export(read_record(plan), to, Path(folder))
        for path in written:
            click.echo(path)

    exit_with(run, as_json=False)


def _byte_sizes(pairs: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """NAME=SIZE flags with sizes such as `64 KiB`, in bytes."""
    from tilewright.units import parse_bits

    found: dict[str, int] = {}
    for pair in pairs:
        name, _, size = (part.strip() for part in pair.partition("="))
        if not name or not size:
            message = f"--memory-limit {pair!r}: expected the name of a memory and a size"
            raise InputError(Problem(message=message, hint="such as --memory-limit sram='512 KiB'"))
        refuse_second("--memory-limit", name, found)
        try:
            found[name] = parse_bits(size) // 8
            if not found[name]:
                raise ValueError("a memory has at least 1 B")
        except ValueError as error:
            meant = f"{size} B" if size.isdecimal() and int(size) else "512 KiB"
            message, hint = f"--memory-limit {pair!r}: {error}", f"write it as {name}='{meant}'"
            raise InputError(Problem(message=message, hint=hint)) from None
    return tuple(found.items())


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


def _verified(made: "Plan") -> "Plan":
    """The plan, marked as replayed; what is wrong with it is raised."""
    from dataclasses import replace

    from tilewright.replay.verify import refuse
    from tilewright.report.plan_replay import replayed_plan

    try:
        found = replayed_plan(made)
    except InputError as error:
        hint = "the plan itself was made and checked: leave --verify out to get it"
        told = [replace(p, hint="\n".join(filter(None, (p.hint, hint)))) for p in error.problems]
        raise InputError(*told) from None
    refuse(found)
    return replace(made, verified=True)


@click.command(name="fit")
@click.argument("network", type=NETWORK)
@click.option("--on", "machine", metavar="MACHINE", type=MACHINE, help="A file or built-in name.")
@click.option("-o", "folder", type=click.Path(file_okay=False), help="Write the plan that fits.")
@DIMS_OPTION
@BITS_OPTION
@JSON_OPTION
def fit_(
    network: str,
    machine: str | None,
    folder: str | None,
    dims: tuple[str, ...],
    bits: int | None,
    as_json: bool,
) -> None:
    """Say how much memory a network needs, from layer by layer to its weights alone.

    With a machine: the first way of running it that fits, and what would make it fit.
    """

    def run() -> None:
        from tilewright.machine.load import load_machine
        from tilewright.network.load import load_network
        from tilewright.plan_fit import fit, plan_of_fit
        from tilewright.report.fit import fit_json, fit_view

        if folder is not None and machine is None:
            message = "-o writes a plan, and a plan is for a machine"
            raise InputError(Problem(message=message, hint="name one with --on"))
        folder_to_write(folder)
        with told_apart("fit", network, machine):
            graph = load_network(network, dims=sizes(dims), bits=bits)
            where = None if machine is None else load_machine(machine)
        with progress_steps("fitting", quiet=as_json) as step:
            found = fit(graph, where, step)
            made = plan_of_fit(found, step) if folder is not None else None
            if made is not None and folder is not None:
                made.save(folder)
        print_result(lambda: fit_json(found, made), lambda: fit_view(found, made), as_json)

    exit_with(run, as_json=as_json)


COMMANDS = (plan_, fit_, replay_, explain_, compare_, export_, place)
