"""A packing drawn as SVG: time from left to right, addresses from bottom to top."""

from collections.abc import Iterator
from dataclasses import dataclass
from xml.sax.saxutils import escape

from tilewright.placement.problem import Buffer, Life, Packing
from tilewright.units import format_bytes

_WIDTH, _HEIGHT = 1200, 720
_LEFT, _RIGHT, _TOP, _BOTTOM = 92, 132, 84, 64
_LETTER_WIDTH = 6.3
_TEXT_HEIGHT = 13
_TICKS = 8
_STYLE = """
  text { font-family: "Inter", "Helvetica Neue", "Segoe UI", "DejaVu Sans", sans-serif; }
  .title { font-size: 19px; font-weight: 600; fill: #1f2933; }
  .facts { font-size: 12.5px; fill: #52606d; }
  .tick { font-size: 11px; fill: #7b8794; }
  .axis { font-size: 12px; fill: #52606d; }
  .name { font-size: 10.5px; fill: #1f2933; text-anchor: middle; dominant-baseline: central; }
  .grid { stroke: #e4e7eb; stroke-width: 1; }
  .buffer { stroke: #ffffff; stroke-width: 0.8; }
"""
# Neighbouring hues differ in lightness too, so that they stay apart for every kind of eye.
_COLOURS = (
    "#8ecae6", "#ffd6a5", "#b7e4c7", "#f4acb7", "#cdb4db", "#fdf0a6", "#a3b8f0", "#ffb997",
    "#95d5b2", "#e2c2b3", "#c8e7f5", "#d8e2a8",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scale:
    first_cycle: int
    last_cycle: int
    top_bytes: int

    def x(self, cycle: int) -> float:
        share = (cycle - self.first_cycle) / max(1, self.last_cycle - self.first_cycle)
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def y(self, address: int) -> float:
        return _HEIGHT - _BOTTOM - address / max(1, self.top_bytes) * (_HEIGHT - _TOP - _BOTTOM)


def placement_svg(packing: Packing, title: str) -> str:
    """The whole drawing as the text of an SVG file."""
    buffers = packing.problem.buffers
    scale = _Scale(
        first_cycle=min((b.start_cycle for b in buffers), default=0),
        last_cycle=max((b.end_cycle for b in buffers), default=1),
        top_bytes=max(packing.peak_bytes, packing.problem.capacity_bytes or 0, 1),
    )
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}">',
        f"<title>{escape(title)}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        f'<text class="title" x="{_LEFT}" y="36">{escape(title)}</text>',
        f'<text class="facts" x="{_LEFT}" y="58">{escape(_facts(packing))}</text>',
        *_axes(scale),
        *_buffers(packing, scale),
        *_limits(packing, scale),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _facts(packing: Packing) -> str:
    peak, bound = packing.peak_bytes, packing.bound_bytes
    if packing.proven:
        verdict = "the smallest possible"
    else:
        verdict = f"{(peak - bound) / max(1, bound):.2%} above the lower bound"
    count = len(packing.problem.buffers)
    return f"{count:,} buffers  ·  peak {peak:,} B, {verdict}  ·  found by {packing.method}"


def _axes(scale: _Scale) -> Iterator[str]:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    for address in _ticks(0, scale.top_bytes, binary=True):
        y = scale.y(address)
        yield f'<line class="grid" x1="{_LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}"/>'
        whole_kib = 0 < address < 2**20 and address % 1024 == 0
        label = f"{address // 1024} KiB" if whole_kib else format_bytes(address)
        yield _text("tick", _LEFT - 10, y + 4, label, anchor="end")
    for cycle in _ticks(scale.first_cycle, scale.last_cycle, binary=False):
        x = scale.x(cycle)
        yield f'<line class="grid" x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{bottom}"/>'
        yield _text("tick", x, bottom + 18, f"{cycle:,}", anchor="middle")
    middle = (_LEFT + right) / 2
    yield _text("axis", middle, bottom + 44, "cycle", anchor="middle")
    turn = f' transform="rotate(-90 18 {(_TOP + bottom) / 2})"'
    yield _text("axis", 18, (_TOP + bottom) / 2, "address", anchor="middle", more=turn)


def _buffers(packing: Packing, scale: _Scale) -> Iterator[str]:
    pairs = list(zip(packing.problem.buffers, packing.addresses, strict=True))
    pairs.sort(key=lambda pair: (pair[0].start_cycle, pair[1], pair[0].name))
    for number, (buffer, address) in enumerate(pairs):
        colour = _COLOURS[number % len(_COLOURS)]
        yield f"<g><title>{escape(_tooltip(buffer, address))}</title>"
        for life in buffer.lives:
            yield from _rectangle(buffer, address, life, scale, colour)
        yield "</g>"


def _rectangle(
    buffer: Buffer, address: int, life: Life, scale: _Scale, colour: str
) -> Iterator[str]:
    left, right = scale.x(life[0]), scale.x(life[1])
    top, bottom = scale.y(address + buffer.size_bytes), scale.y(address)
    width, height = right - left, bottom - top
    corner = min(3.0, width / 4, height / 4)
    yield (
        f'<rect class="buffer" x="{left:.2f}" y="{top:.2f}" width="{width:.2f}" '
        f'height="{height:.2f}" rx="{corner:.2f}" fill="{colour}"/>'
    )
    needed = _LETTER_WIDTH * len(buffer.name) + 6
    middle_x, middle_y = (left + right) / 2, (top + bottom) / 2
    if needed <= width and height >= _TEXT_HEIGHT:
        yield _text("name", middle_x, middle_y, buffer.name)
    elif needed <= height and width >= _TEXT_HEIGHT:
        turn = f' transform="rotate(-90 {middle_x:.1f} {middle_y:.1f})"'
        yield _text("name", middle_x, middle_y, buffer.name, more=turn)


def _limits(packing: Packing, scale: _Scale) -> Iterator[str]:
    """Lines for capacity, peak and bound; labels that would touch are moved apart."""
    named: dict[int, list[str]] = {}
    for label, value in (
        ("capacity", packing.problem.capacity_bytes),
        ("peak", packing.peak_bytes),
        ("bound", packing.bound_bytes),
    ):
        if value is not None:
            named.setdefault(value, []).append(label)
    colours = {"capacity": "#1f2933", "peak": "#0b7285", "bound": "#c92a2a"}
    last_y = -100.0
    for value in sorted(named, reverse=True):
        labels = named[value]
        colour, y = colours[labels[0]], scale.y(value)
        dash = "" if "capacity" in labels else ' stroke-dasharray="7 4"'
        yield (
            f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}" '
            f'stroke="{colour}" stroke-width="1.6"{dash}/>'
        )
        last_y = max(y, last_y + 34)
        paint = f' style="fill:{colour};font-weight:600"'
        x = _WIDTH - _RIGHT + 8
        yield _text("tick", x, last_y + 1, " = ".join(labels), anchor="start", more=paint)
        yield _text("tick", x, last_y + 15, f"{value:,} B", anchor="start")


def _ticks(first: int, last: int, *, binary: bool) -> list[int]:
    """Up to eight round values; powers of two for bytes, 1, 2 and 5 times ten for cycles."""
    step = 1
    multipliers = (2,) if binary else (2, 5, 10)
    decade = 1
    while (last - first) // step > _TICKS:
        for multiplier in multipliers:
            step = decade * multiplier
            if (last - first) // step <= _TICKS:
                break
        else:
            decade = step
    return list(range(-(-first // step) * step, last + 1, step))


def _tooltip(buffer: Buffer, address: int) -> str:
    lives = ", ".join(f"{start} to {end}" for start, end in buffer.lives)
    end = address + buffer.size_bytes
    return f"{buffer.name}: {buffer.size_bytes:,} B at {address:,} to {end:,}, cycles {lives}"


def _text(kind: str, x: float, y: float, text: str, *, anchor: str = "", more: str = "") -> str:
    where = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}"{where}{more}>{escape(text)}</text>'
