"""CPU against the size of a search, as an SVG: points, and the curve of linear growth."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tilewright.machine.load import load_machine
from tilewright.mapping.hierarchy import hierarchy_of
from tilewright.mapping.nest import zigzag_nest
from tilewright.mapping.search import SearchOptions, loma
from tilewright.network.load import load_network

LIMITS = range(4, 10)
WIDTH, HEIGHT, LEFT, BOTTOM, MARGIN = 640, 420, 80, 60, 30


@dataclass(frozen=True, kw_only=True)
class Point:
    """A search: the limit on loop factors, candidates times loops, and CPU seconds."""

    limit: int
    work: int
    cpu_s: float


def measured() -> list[Point]:
    """One convolution of ResNet-18 on a library machine, with more and more loop factors."""
    network, machine = load_network("resnet18"), load_machine("edge_tpu_like")
    op = max((op for op in network.ops if op.kind == "conv"), key=lambda op: op.points)
    nest = zigzag_nest(op, network)
    hierarchy = hierarchy_of(machine, machine.cores[0], {"O": "O", "W": "I2", "I": "I1"})
    points = []
    for limit in LIMITS:
        options = SearchOptions(lpf_limit=limit, unrollings=1)
        seconds = []
        for _ in range(3 if limit < 9 else 1):
            start = time.process_time()
            mapped = loma(nest, hierarchy, None, options)
            seconds.append(time.process_time() - start)
        assert mapped is not None
        work = mapped.candidates * len(mapped.loops.order)
        points.append(Point(limit=limit, work=work, cpu_s=min(seconds)))
    return points


def fitted(points: Sequence[Point]) -> tuple[float, float]:
    """Fixed seconds, and seconds per candidate and loop: the line of least relative error."""
    rows = [(1 / point.cpu_s, point.work / point.cpu_s) for point in points]
    aa, ab, bb = (sum(r[i] * r[j] for r in rows) for i, j in ((0, 0), (0, 1), (1, 1)))
    a, b = sum(r[0] for r in rows), sum(r[1] for r in rows)
    determinant = aa * bb - ab * ab
    return (a * bb - b * ab) / determinant, (b * aa - a * ab) / determinant


def write_svg(points: Sequence[Point], file: Path) -> None:
    """Both axes logarithmic; the dashed curve is `fixed + rate × work`, that is, linear growth."""
    low_x, high_x = _decades([point.work for point in points])
    low_y, high_y = _decades([point.cpu_s for point in points])

    def place(work: float, cpu_s: float) -> tuple[float, float]:
        x = (math.log10(work) - low_x) / (high_x - low_x)
        y = (math.log10(cpu_s) - low_y) / (high_y - low_y)
        return (
            LEFT + x * (WIDTH - LEFT - MARGIN),
            HEIGHT - BOTTOM - y * (HEIGHT - BOTTOM - MARGIN),
        )

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for decade in range(low_x, high_x + 1):
        x, bottom = place(10**decade, 10**low_y)
        parts.append(_line(x, bottom, x, MARGIN, "#ddd"))
        parts.append(_text(x, bottom + 18, f"10^{decade}", "middle"))
    for decade in range(low_y, high_y + 1):
        left, y = place(10**low_x, 10.0**decade)
        parts.append(_line(left, y, WIDTH - MARGIN, y, "#ddd"))
        parts.append(_text(left - 8, y + 4, f"{10.0**decade:g} s", "end"))
    fixed, rate = fitted(points)
    steps = [10 ** (low_x + (high_x - low_x) * i / 60) for i in range(61)]
    curve = [place(work, fixed + rate * work) for work in steps if work <= points[-1].work * 1.2]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in curve)
    parts.append(f'<polyline points="{path}" fill="none" stroke="#888" stroke-dasharray="5 4"/>')
    for point in points:
        x, y = place(point.work, point.cpu_s)
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="#06c"/>')
        parts.append(_text(x + 8, y + 14, f"limit {point.limit}", "start"))
    parts.append(_text((LEFT + WIDTH) / 2, HEIGHT - 12, "candidates × loops", "middle"))
    title = f"CPU of a search: {fixed * 1e3:.1f} ms + {rate * 1e9:.0f} ns × candidates × loops"
    parts.append(_text(LEFT, 18, title, "start"))
    file.write_text("\n".join([*parts, "</svg>", ""]), encoding="utf-8")


def _decades(values: Sequence[float]) -> tuple[int, int]:
    return math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{colour}"/>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'
