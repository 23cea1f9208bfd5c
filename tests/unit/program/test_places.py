"""Where a machine holds buffers, and what moves them."""

from dataclasses import replace
from fractions import Fraction

import pytest
from tests.machine_builder import machine_of, marked, sound_machine
from tests.small_machines import Small, small_machine

from tilewright.machine.load import library_names, load_machine
from tilewright.machine.model import End, Machine, Memory, Port
from tilewright.program.model import Program, Route
from tilewright.program.places import places_of, remedy
from tilewright.replay.check_widths import width_problems
from tilewright.report.record import route_limits


def routes(machine: str) -> dict[tuple[str, str], Route]:
    return dict(places_of(load_machine(machine)).routes)


def widest_bits(memory: Memory, directions: tuple[str, ...]) -> int:
    uses = [(port.bits_per_cycle, use) for port in memory.ports for _, use in port.uses]
    return max((bits for bits, use in uses if use in directions), default=0)


def slowest_bits(machine: Machine, route: Route) -> int:
    """The narrowest of the engine and the ports at both ends, looked up in the machine's file."""
    memory = {space.name: space.memory for space in places_of(machine).spaces}
    ends = {end.name: end for end in (*machine.sources, *machine.sinks)}
    found = []
    sides = ((memory[route.source], ("tl", "th")), (memory[route.target], ("fh", "fl")))
    for name, directions in sides:
        if name in ends:
            found.append(ends[name].bits_per_cycle or 2**30)
        else:
            (level,) = [m for m in machine.memories if m.name == name]
            found.append(widest_bits(level, directions))
    found += [e.bits_per_cycle for e in machine.dma if route.engine.split(".")[0] == e.name]
    if not machine.dma and route.engine == "dma":
        # The engine that is assumed is as wide as the external memory.
        found += [
            p.bits_per_cycle for m in machine.memories if m.role == "external" for p in m.ports
        ]
    return min(found)


@pytest.mark.parametrize("name", library_names())
def test_a_route_is_as_fast_as_the_slowest_of_its_engine_and_ports(name: str) -> None:
    machine = load_machine(name)
    found = routes(name)
    assert found
    for route in found.values():
        assert route.bytes_per_cycle == Fraction(slowest_bits(machine, route), 8), route


@pytest.mark.parametrize("name", library_names())
def test_every_route_has_a_scratchpad_at_one_end_and_known_engines(name: str) -> None:
    places = places_of(load_machine(name))
    kind = {space.name: space.kind for space in places.spaces}
    engines = [engine.name for engine in places.engines]
    assert len(set(engines)) == len(engines)
    for route in places.routes.values():
        assert "scratchpad" in (kind[route.source], kind[route.target])
        assert kind[route.source] != "sink"
        assert kind[route.target] != "source"
        assert {route.engine, *route.ports} <= set(engines)


def test_nothing_is_written_to_a_flash() -> None:
    # Its one port has I2, tl only; feature maps come from the host and go to it.
    found = routes("ethos_u55_128")
    assert sorted(found) == [("flash", "sram"), ("host_in", "sram"), ("sram", "host_out")]
    assert found["flash", "sram"].cycles(100) == 64 + 100
    places = places_of(load_machine("ethos_u55_128"))
    assert places.overflow() is None
    destination = places.destination()
    assert destination is not None
    assert destination.name == "host_out"


def test_sources_feed_only_their_memory() -> None:
    found = routes("npe8")
    assert sorted(found) == [
        ("input", "input_memory"),
        ("weight_output_memory", "input_memory"),
        ("weight_output_memory", "result"),
        ("weights", "weight_output_memory"),
    ]
    spaces = {space.name: space for space in places_of(load_machine("npe8")).spaces}
    # A sensor hands out every value once, a ROM as often as one likes.
    assert not spaces["input"].rereadable
    assert spaces["weights"].rereadable


def test_queues_are_engines_of_their_own() -> None:
    # 64 B a CMX cycle are 292 bit; DDR has 640 bit, room for two such transfers.
    found = routes("npu_40xx")
    assert found["ddr", "cmx[0]"].engine == "dma.0"
    assert found["cmx[0]", "ddr"].engine == "dma.1"
    assert found["ddr", "cmx[5]"].cycles(73) == 510 + 2
    counts = {e.name: e.count for e in places_of(load_machine("npu_40xx")).engines}
    assert (counts["dma.0"], counts["dma.1"], counts["ddr.port"]) == (2, 2, 2)
    assert [name for name in counts if name.startswith("core[5]")] == ["core[5]", "core[5].vector"]


@pytest.mark.parametrize(
    ("width", "port", "lanes", "bits"),
    [
        # As many as have room in the port.
        (64, 128, 2, 64),
        (128, 128, 1, 128),
        (200, 128, 1, 128),
        (40, 128, 3, 40),
        # Where these leave a quarter idle, two share all of it.
        (96, 128, 2, 64),
        (97, 128, 1, 97),
        (292, 640, 2, 292),
        (438, 640, 2, 320),
        # More than two are never under way in one direction.
        (50, 140, 2, 50),
    ],
)
def test_a_port_feeds_whole_transfers_or_one_more(
    width: int, port: int, lanes: int, bits: int
) -> None:
    machine = small_machine(Small(dma=True))
    (dma,), (ddr,) = machine.dma, machine.shared
    assert dma.ports == 2
    wider = replace(ddr, ports=tuple(replace(p, bits_per_cycle=port) for p in ddr.ports))
    bank = replace(machine.cores[0].memories[-1], ports=_as_wide(machine, 1024))
    core = replace(machine.cores[0], memories=(*machine.cores[0].memories[:-1], bank))
    engine = replace(dma, bits_per_cycle=width)
    places = places_of(replace(machine, cores=(core,), shared=(wider,), dma=(engine,)))
    assert {e.count for e in places.engines if e.name.startswith("ddr.")} == {lanes}
    assert places.routes["ddr", "bank"].bytes_per_cycle == Fraction(bits, 8)


def _as_wide(machine: Machine, bits: int) -> tuple[Port, ...]:
    """The ports of the scratchpad, wide enough for everything."""
    ports = machine.cores[0].memories[-1].ports
    return tuple(replace(port, bits_per_cycle=bits) for port in ports)


def test_a_machine_without_dma_has_one_as_wide_as_its_dram() -> None:
    places = places_of(load_machine("edge_tpu_like"))
    assert places.routes["dram", "sram_2MB"].bytes_per_cycle == 8
    assert places.assumptions[0] == "no DMA engine is declared: one of 64 bit a cycle serves"


def test_an_operand_lies_in_its_highest_scratchpad_or_streams() -> None:
    places = places_of(load_machine("tpu_like"))
    homes = [places.home(carrier) for carrier in ("I1", "I2", "O")]
    assert [home.name if home else None for home in homes] == ["sram_2MB", None, "sram_2MB"]


def test_a_dma_engine_serves_only_its_routes() -> None:
    data = marked(sound_machine())
    engine = {"name": "in", "width": "16 bit", "ports": 1, "queues": 1, "setup": 3}
    data["dma"] = [engine | {"routes": [["ddr", "bank"]]}]
    found = places_of(machine_of(data)).routes
    assert list(found) == [("ddr", "bank")]
    # 16 bit of the engine are narrower than 32 of the DRAM and 128 of the bank.
    assert found["ddr", "bank"].cycles(9) == 3 + 5


def test_every_core_has_scratchpads_of_its_own() -> None:
    places = places_of(small_machine(Small(cores=3)))
    assert [s.name for s in places.spaces] == ["bank[0]", "bank[1]", "bank[2]", "ddr"]
    assert places.named("bank", 2).name == "bank[2]"
    assert places.named("ddr", 2).name == "ddr"


def test_many_cores_have_no_routes_to_each_other() -> None:
    # To and from the DRAM for each of them; between few cores there is one for each pair.
    assert len(places_of(small_machine(Small(cores=1000))).routes) == 2 * 1000
    assert len(places_of(small_machine(Small(cores=4))).routes) == 2 * 4 + 4 * 3


def test_the_widest_engine_serves_wherever_it_is_listed() -> None:
    data = marked(sound_machine())
    engines = [{"name": "narrow", "width": "8 bit"}, {"name": "wide", "width": "32 bit"}]
    for listed in (engines, engines[::-1]):
        places = places_of(machine_of(data | {"dma": listed}))
        assert places.routes["ddr", "bank"].engine == "wide"
        # The DRAM's port of 32 bit feeds one transfer of the wide engine, not four narrow ones.
        assert {e.count for e in places.engines if e.name.startswith("ddr.")} == {1}


def split_ports(**bits: int) -> Machine:
    """The sound machine with a port of some bits for each use of the bank, such as `fh_I1`."""
    data = marked(sound_machine())
    bank = data["memories"]["bank"]
    common = bank["ports"][0]
    bank["ports"] = []
    for use in common["allocation"]:
        operand, direction = use.split(", ")
        width = bits.get(f"{direction}_{operand}", bits.get(direction, 64))
        kind = "write" if direction in ("fh", "fl") else "read"
        bank["ports"].append(
            {"name": use, "type": kind, "bandwidth_max": f"{width} bit", "allocation": [use]}
        )
    return machine_of(data)


def test_what_comes_from_above_goes_over_ports_for_that() -> None:
    # The DRAM has 32 bit; the array's own ports of the bank are wide, and no transfer takes them.
    on = split_ports(fh=8, th=16, tl=512, fl=256)
    found = places_of(on).routes
    assert found["ddr", "bank"].bytes_per_cycle == 1
    assert found["bank", "ddr"].bytes_per_cycle == 2
    assert limits_of(on) == {
        ("ddr", "bank"): (("ddr.both", 32), ("bank.I1, fh", 8)),
        ("bank", "ddr"): (("bank.O, th", 16), ("ddr.both", 32)),
    }


def test_of_several_ports_for_a_side_the_widest_serves() -> None:
    found = places_of(split_ports(fh=8, fh_I2=16, fl=64)).routes
    assert found["ddr", "bank"].bytes_per_cycle == 2


def test_a_source_fills_a_memory_over_a_port_for_its_operands() -> None:
    on = split_ports(fh=8, fh_I1=24, fl=64)
    on = replace(on, shared=(), cores=(replace(on.cores[0], memories=on.cores[0].memories[:-1]),))
    ends = [
        End(name=n, kind="rom", memory="bank", operands=(o,), bits_per_cycle=None, pj_per_bit=0)
        for n, o in (("data", "I1"), ("rom", "I2"))
    ]
    found = places_of(replace(on, sources=tuple(ends))).routes
    assert found["data", "bank"].bytes_per_cycle == 3
    assert found["rom", "bank"].bytes_per_cycle == 1


def test_the_other_side_serves_only_where_one_has_no_port() -> None:
    on = split_ports(fl=16)
    (core,) = on.cores
    bank = next(m for m in core.memories if m.name == "bank")
    left = tuple(port for port in bank.ports if not port.name.endswith("fh"))
    memories = tuple(replace(m, ports=left) if m is bank else m for m in core.memories)
    on = replace(on, cores=(replace(core, memories=memories),))
    assert places_of(on).routes["ddr", "bank"].bytes_per_cycle == 2


def test_the_energy_of_a_byte_does_not_hang_on_the_port() -> None:
    # 12.8 pJ for an access of the widest port of 512 bit that is read, or of 64 that is written.
    found = places_of(split_ports(fh=8, th=16, tl=512, fl=64)).routes
    assert found["bank", "ddr"].read_pj_per_byte == pytest.approx(12.8 / 64)
    assert found["ddr", "bank"].write_pj_per_byte == pytest.approx(12.8 / 8)


def test_the_checker_knows_how_wide_a_way_is() -> None:
    narrow, wide = split_ports(fh=8), split_ports(fh=64)
    for on in (narrow, wide, *(load_machine(name) for name in library_names())):
        assert list(width_problems(program_of(on), on)) == []
    (problem,) = width_problems(program_of(wide), narrow)
    assert problem.message == (
        "the way from ddr to bank moves 32 bits a cycle, and bank is written there with 8 at most"
    )


def program_of(on: Machine) -> Program:
    """A program that does nothing, with all spaces and ways of a machine."""
    places = places_of(on)
    return Program(
        name=on.name,
        spaces=places.spaces,
        engines=places.engines,
        routes=tuple(places.routes.values()),
        buffers=(),
        tasks=(),
    )


def limits_of(on: Machine) -> dict[tuple[str, str], tuple[tuple[str, int], ...]]:
    return route_limits(on, program_of(on))


def test_of_two_engines_alike_one_takes_what_comes_and_one_what_goes() -> None:
    data = marked(sound_machine())
    data["dma"] = [{"name": name, "width": "32 bit"} for name in ("first", "second")]
    found = places_of(machine_of(data)).routes
    assert (found["ddr", "bank"].engine, found["bank", "ddr"].engine) == ("first", "second")


def test_a_memory_that_cannot_be_written_is_named_where_nothing_moves() -> None:
    data = marked(sound_machine())
    for port in data["memories"]["bank"]["ports"]:
        port["allocation"] = [use for use in port["allocation"] if use[-2:] in ("tl", "th")]
    places = places_of(machine_of(data))
    assert ("ddr", "bank") not in places.routes
    assert remedy(places, "ddr", "bank").startswith("let bank be written")


def test_what_a_plan_leaves_out_of_account_is_said() -> None:
    data = marked(sound_machine())
    data["links"] = [{"name": "noc", "kind": "ring", "width": "8 bit"}]
    engines = [{"name": "wide", "width": "32 bit"}, {"name": "narrow", "width": "8 bit"}]
    said = places_of(machine_of(data | {"dma": engines})).assumptions
    assert "links[0]: nothing goes over the link noc: DMA engines move everything" in said
    assert (
        "dma[1]: is never used: wider engines serve its routes, or none joins two with buffers"
    ) in said
