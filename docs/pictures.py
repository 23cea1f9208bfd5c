"""Draws the pictures of the documentation: tabs of the report of one plan, in a headless Chromium.

    python docs/pictures.py [FOLDER]

Each file says in a text chunk how many cycles the plan in it takes; a test compares that figure
with the one that README.md prints.
"""

import struct
import sys
import zlib
from pathlib import Path
from tempfile import TemporaryDirectory

import tilewright
from tilewright.report.html_report import report_html

ROOT = Path(__file__).resolve().parents[1]
NETWORK, MACHINE = "resnet18", "npu_37xx"
TABS = {"timeline": 740, "memory": 908}
"""Height of the picture in pixels, by tab."""
WIDTH = 1280
_SIGNATURE_BYTES = 8
_HEADER_BYTES = 25
"""Of the first chunk, which a PNG has to begin with."""


def draw(folder: Path) -> None:
    """Write a picture for every tab."""
    sys.path.insert(0, str(ROOT))
    from tests.report_browser import new_page

    made = tilewright.plan(tilewright.load_network(NETWORK), tilewright.load_machine(MACHINE))
    with TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.html"
        report.write_text(report_html(made), "utf-8")
        with new_page(Path(scratch) / "chromium") as page:
            for tab, height in TABS.items():
                page.size(WIDTH, height)
                page.scheme("light")
                page.open(report)
                page.run(f"document.getElementById('tab-{tab}').click()")
                page.settle()
                path = folder / f"report-{tab}.png"
                page.screenshot(path)
                path.write_bytes(with_cycles(path.read_bytes(), made.cycles))


def with_cycles(picture: bytes, cycles: int) -> bytes:
    """A PNG with one more text chunk, behind its header."""
    data = b"tEXtcycles\0" + str(cycles).encode()
    chunk = struct.pack(">I", len(data) - 4) + data + struct.pack(">I", zlib.crc32(data))
    at = _SIGNATURE_BYTES + _HEADER_BYTES
    return picture[:at] + chunk + picture[at:]


def cycles_of(picture: bytes) -> int:
    """The cycles that a picture says it shows."""
    start = picture.index(b"tEXtcycles\0")
    (length,) = struct.unpack(">I", picture[start - 4 : start])
    return int(picture[start + 4 : start + 4 + length].partition(b"\0")[2])


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "pictures")
