"""What computes with data outside the chip takes up a port there."""

from dataclasses import replace

import pytest
from tests.timetable_builder import DRAM, Draft

from tilewright.network.build import NetworkBuilder
from tilewright.network.nests import elementwise
from tilewright.program.model import Access, Route, Timetable
from tilewright.replay.check import problems

WHOLE = ((0, 4),)


def streamed(*ports: str, spaces: tuple[str, str] = ("dram", "dram")) -> Timetable:
    """e = exp(x), straight from one memory outside the chip to another; each has a port."""
    flash = replace(DRAM, name="flash", memory="flash")
    draft = Draft(spaces=(DRAM, flash))
    source, target = spaces
    x, e = draft.buffer(f"x@{source}", WHOLE, 0), draft.buffer(f"e@{target}", WHOLE, 8)
    draft.given.append(x)
    draft.results.append(e)
    reads, writes = (Access(x, WHOLE),), (Access(e, WHOLE),)
    draft.task("exp", ("core[0].vector", 0, 4), reads, writes, tile=(("K", 0, 4),))
    found = draft.timetable()
    (route,) = (r for r in found.program.routes if r.source == "dram")
    routes = (_way(route, "dram", "flash", "port"), _way(route, "flash", "dram", "dma"))
    (task,) = found.program.tasks
    tasks = (replace(task, ports=ports),)
    return replace(found, program=replace(found.program, tasks=tasks, routes=routes))


def _way(route: Route, source: str, target: str, port: str) -> Route:
    return replace(route, source=source, target=target, ports=(port,))


def said(found: Timetable) -> list[str]:
    builder = NetworkBuilder("net")
    builder.tensor("x", (4,), bits=8, role="input")
    builder.op("exp", "exp", elementwise((4,)), ["x"], {"e": (8, "")})
    return [problem.message for problem in problems(found, builder.finish(["e"]))]


def test_ports_of_a_way_are_enough() -> None:
    assert said(streamed("port", "dma")) == []


@pytest.mark.parametrize(
    ("ports", "message"),
    [
        (
            ("dma",),
            "task exp reads dram and holds the ports of no way there, such as port",
        ),
        (
            ("port",),
            "task exp writes dram and holds the ports of no way there, such as dma",
        ),
    ],
)
def test_what_is_read_or_written_without_a_port_is_named(
    ports: tuple[str, ...], message: str
) -> None:
    assert said(streamed(*ports)) == [message]
