"""From a network to a program: tiles become tasks, copies are put in where they are needed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from tilewright.machine.model import OUTPUT_OPERAND, Machine
from tilewright.mapping.search import SearchOptions
from tilewright.network.graph import Network, Op
from tilewright.program.bounds import LeastWork, NetworkBounds, bounds_of, least_work
from tilewright.program.build import Builder
from tilewright.program.cascade import PLAIN, Cascade, Flow, Strategy, flow_of
from tilewright.program.coming_once import refuse_reading_again
from tilewright.program.core_model import addressable
from tilewright.program.cores import Shares
from tilewright.program.emit import Emitter, KnownTiles
from tilewright.program.homes import Homes
from tilewright.program.layout import Layout
from tilewright.program.model import Program
from tilewright.program.places import Places, places_of
from tilewright.program.residence import Residence
from tilewright.program.rolling import Rolling
from tilewright.program.rows import Rows
from tilewright.program.stages import Stage, Storage, stages_of, storages
from tilewright.program.tile import Goal, Tenant
from tilewright.program.tile_cost import TileCosts
from tilewright.program.tiles import MOST_TILES, refuse_too_many

REMEMBERED_TASKS: Final = 100_000
"""Programs are remembered up to so many tasks in all, which take about a hundred megabytes."""


@dataclass(frozen=True, kw_only=True)
class Lowered:
    """A program and what was decided on the way to it."""

    program: Program
    stages: tuple[Stage, ...]
    layout: Layout
    bounds: NetworkBounds


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A network's stages on a machine, before it is decided how they are cut."""

    network: Network
    places: Places
    costs: TileCosts
    stages: tuple[Stage, ...]
    storage: Mapping[str, Storage]
    rows: Rows
    remembered: dict[object, dict[tuple[int, int, int], object]] = field(
        default_factory=dict, compare=False, repr=False
    )
    """What is worked out about stages that go together, for machines that are alike: those with
    other sizes of scratchpads have the same tables."""

    shares: dict[tuple[str, ...], Shares] = field(default_factory=dict, compare=False, repr=False)
    """How stages are shared out over the cores, by the loops along which cascades go: the same
    whatever the sizes of scratchpads."""
    tenants: dict[tuple[int, int, bool, bool, int], Tenant] = field(
        default_factory=dict, compare=False, repr=False
    )
    """Operands of stages as the choice of tiles sees them: see `Residence`."""
    rollings: dict[tuple[Cascade, ...], Rolling] = field(
        default_factory=dict, compare=False, repr=False
    )
    """Rows that cascades hold."""
    tiles: KnownTiles = field(default_factory=dict, compare=False, repr=False)
    """Tiles of stages, and what they touch."""
    flows: dict[Cascade, Flow | None] = field(default_factory=dict, compare=False, repr=False)
    """Cascades step by step."""
    programs: dict[object, Program] = field(default_factory=dict, compare=False, repr=False)
    """What was emitted, by all that was decided: smaller scratchpads often change nothing."""

    least: list[LeastWork] = field(default_factory=list, compare=False, repr=False)
    """What every plan has to do, once it is known."""

    @cached_property
    def bounds(self) -> NetworkBounds:
        """What no plan can do better."""
        if not self.least:
            places, costs = self.places, self.costs
            self.least.append(least_work(self.network, self.stages, self.storage, places, costs))
        return bounds_of(self.least[0], self.places)


def prepare(
    network: Network, machine: Machine, order: Sequence[Op], options: SearchOptions
) -> Prepared:
    """The stages of a network on a machine, its ops in the given order."""
    places = places_of(machine)
    homes = [places.home(carrier) for carrier in ("I1", "I2", OUTPUT_OPERAND)]
    joins = homes[0] is not None and all(home == homes[0] for home in homes)
    sizes = () if places.core.model else tuple(m.size_bits for m in places.core.memories)
    bits = min(sizes, default=None)
    made = stages_of(network, order, joins_on_array=joins, joined_bits=bits)
    storage, left = storages(network, made)
    stages = addressable(left, network, places)
    known = Homes(network, places, storage)
    streams = {stage.op.name: found for stage in stages if (found := known.streams(stage))}
    return Prepared(
        network=network,
        places=places,
        costs=TileCosts(network=network, places=places, options=options, streams=streams),
        stages=stages,
        storage=storage,
        rows=Rows(network, stages, storage),
    )


def laid_out(prepared: Prepared, goal: Goal, strategy: Strategy = PLAIN) -> Layout:
    """How the ops of a network are cut on a machine, and what is kept.

    Raises:
        InfeasibleError: an op does not fit.
    """
    flows = [_flow_of(prepared, cascade) for cascade in strategy.cascades]
    by_stage = {number: flow for flow in flows if flow for number in flow.cascade.stages}
    on_all = strategy.cores is None
    places = prepared.places if on_all else _with_cores(prepared.places, strategy.cores)
    residence = Residence(
        prepared.network,
        places,
        prepared.costs,
        prepared.stages,
        prepared.storage,
        goal,
        flows=by_stage,
        waiting=strategy.gone,
        shares=prepared.shares if on_all else {},
        tenants=prepared.tenants,
        rollings=prepared.rollings if on_all else {},
    )
    return residence.layout()


def _with_cores(places: Places, cores: int | None) -> Places:
    """The places with so many cores at most: the first ones."""
    count = places.cores if cores is None else min(cores, places.cores)
    return replace(places, core=replace(places.core, count=count))


def _flow_of(prepared: Prepared, cascade: Cascade) -> Flow | None:
    if cascade not in prepared.flows:
        prepared.flows[cascade] = flow_of(prepared.rows, cascade)
    return prepared.flows[cascade]


def lower(
    prepared: Prepared,
    goal: Goal,
    strategy: Strategy = PLAIN,
    most_tiles: int = MOST_TILES,
    layout: Layout | None = None,
) -> Lowered:
    """The program of a network on a machine; its layout may be known already.

    Raises:
        InfeasibleError: an op does not fit, or cannot be mapped.
    """
    layout = layout or laid_out(prepared, goal, strategy)
    refuse_too_many(prepared.stages, layout, most_tiles)
    homes = Homes(prepared.network, prepared.places, prepared.storage)
    key = (strategy.frugal, layout.decisions, _come_whole(homes, prepared.stages))
    program = prepared.programs.get(key)
    if program is None:
        program = _emitted(prepared, homes, layout, frugal=strategy.frugal)
        _remember(prepared.programs, key, program)
    elif program.spaces != prepared.places.spaces:
        program = replace(program, spaces=prepared.places.spaces)
    return Lowered(
        program=program,
        stages=prepared.stages,
        layout=layout,
        bounds=prepared.bounds,
    )


def _remember(programs: dict[object, Program], key: object, program: Program) -> None:
    known = sum(len(other.tasks) for other in programs.values())
    if known + len(program.tasks) > REMEMBERED_TASKS:
        programs.clear()
    programs[key] = program


def _come_whole(homes: Homes, stages: Sequence[Stage]) -> tuple[bool, ...]:
    """Which constants come once for all tiles of a core: here sizes of scratchpads matter too."""
    return tuple([homes.comes_whole(stage, o) for stage in stages for o in stage.inputs])


def _emitted(prepared: Prepared, homes: Homes, layout: Layout, *, frugal: bool) -> Program:
    builder = Builder(prepared.network, prepared.places, prepared.storage)
    stages = layout.as_run(prepared.stages)
    emitter = Emitter(homes, prepared.costs, stages, layout, builder, frugal, prepared.tiles)
    emitter.emit()
    return emitted_program(prepared, builder, emitter.results())


def emitted_program(prepared: Prepared, builder: Builder, results: tuple[int, ...]) -> Program:
    """What was emitted, with the mappings that it uses, numbered anew."""
    used = sorted({task.mapping for task in builder.tasks if task.mapping is not None})
    new = {mapping: position for position, mapping in enumerate(used)}
    made = Program(
        name=prepared.network.name,
        spaces=prepared.places.spaces,
        engines=prepared.places.engines,
        routes=tuple(prepared.places.routes.values()),
        buffers=tuple(builder.buffers),
        tasks=tuple(
            task
            if task.mapping is None or new[task.mapping] == task.mapping
            else replace(task, mapping=new[task.mapping])
            for task in builder.tasks
        ),
        given=tuple(builder.given),
        results=results,
        mappings=tuple(prepared.costs.mappings[mapping] for mapping in used),
        leakage=prepared.places.leakage,
    )
    refuse_reading_again(made)
    return with_engines_held(made)


def with_engines_held(program: Program) -> Program:
    """A program whose transfers hold their engine like a port, where ops that stream hold it: a
    source, a sink or a DMA engine then does one or the other."""
    moving = {route.engine for route in program.routes}
    ports = {port for task in program.tasks if task.kind == "compute" for port in task.ports}
    held = moving & ports
    if not held:
        return program
    return replace(
        program,
        routes=tuple(
            [
                replace(way, ports=(way.engine, *way.ports)) if way.engine in held else way
                for way in program.routes
            ]
        ),
        tasks=tuple(
            [
                replace(task, ports=(task.engine, *task.ports)) if task.engine in held else task
                for task in program.tasks
            ]
        ),
    )
