"""`report.html` in a headless Chromium: what a person does with it, and what it must not do."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.report_browser import ABSENT, PROGRAM, Page, new_page
from tests.report_plans import run_again_and_again, small_plan

from tilewright.planner import Plan
from tilewright.report.explain import explain
from tilewright.report.html_report import report_html
from tilewright.report.plan import plan_figures
from tilewright.report.record import record_of
from tilewright.schedule.packed import buffer_lives

pytestmark = pytest.mark.skipif(PROGRAM is None, reason=ABSENT)
REPORT = "window.tilewrightReport"
PARTS = ("timeline", "memory", "ops", "why", "charts", "machine", "network", "assumptions")
GUTTER = 148
"""Pixels left of the plot on a wide screen, and below the top and in each row of the timeline."""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(report_html(small_plan()), "utf-8")
    return path


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with new_page(tmp_path_factory.mktemp("chromium")) as page:
        yield page


@pytest.fixture
def page(browser: Page, file: Path) -> Page:
    browser.events.clear()
    browser.size(1280, 900)
    browser.scheme("light")
    browser.open(file)
    return browser


def box_of(page: Page, selector: str) -> dict[str, float]:
    script = (
        f"JSON.stringify(document.querySelector({json.dumps(selector)}).getBoundingClientRect())"
    )
    found: dict[str, float] = json.loads(page.run(script))
    return found


def tab(page: Page, name: str) -> None:
    page.run(f"document.getElementById('tab-{name}').click()")
    page.settle()


def texts(page: Page, selector: str) -> list[str]:
    script = f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent)"
    found: list[str] = page.run(script)
    return found


def task_point(page: Page, made: Plan, task: int) -> tuple[float, float]:
    """Where the middle of a task lies on the screen when the whole plan is shown."""
    start, end = page.run(f"[{REPORT}.viewport.start, {REPORT}.viewport.end]")
    canvas = box_of(page, "#timeline")
    slot = made.timetable.slots[task]
    middle = (slot.start_cycle + slot.end_cycle) / 2
    x = canvas["left"] + GUTTER + (middle - start) / (end - start) * (canvas["width"] - GUTTER)
    row = page.run(f"{REPORT}.plan.tasks.track[{task}]")
    height = page.run(f"{REPORT}.timeline.rowHeight")
    return x, canvas["top"] + 26 + height * (row + 0.5)


def longest_task(made: Plan) -> int:
    slots = made.timetable.slots
    return max(range(len(slots)), key=lambda n: (slots[n].end_cycle - slots[n].start_cycle, n))


def test_it_opens_from_disk_without_a_request_or_a_complaint(page: Page, file: Path) -> None:
    for name in PARTS:
        tab(page, name)
        assert page.run(f"!document.getElementById('panel-{name}').hidden")
        assert len(page.run(f"document.getElementById('panel-{name}').innerText")) > 20
    assert page.requests() == [file.as_uri()]
    assert page.complaints() == []


def test_the_headline_has_the_plans_figures(page: Page) -> None:
    made = small_plan()
    shown = " ".join(texts(page, "#headline .card"))
    assert f"{made.cycles:,} cycles" in shown
    assert f"{made.peak_bytes['cmx']:,} B" in shown


def test_zoom_by_button_wheel_and_key_and_fit(page: Page) -> None:
    def shown() -> float:
        page.settle()
        length: float = page.run(f"{REPORT}.viewport.end - {REPORT}.viewport.start")
        return length

    whole = shown()
    page.run("document.querySelector('#timeline-zoom button').click()")
    assert shown() == pytest.approx(whole / 2, rel=0.05)
    canvas = box_of(page, "#timeline")
    x, y = canvas["left"] + 400, canvas["top"] + 60
    before = shown()
    page.mouse("mouseWheel", x, y, {"deltaX": 0, "deltaY": -120, "modifiers": 2})
    assert shown() < before
    page.run("document.getElementById('timeline').focus()")
    before = shown()
    page.key("+")
    assert shown() < before
    page.key("f")
    assert shown() == pytest.approx(whole, rel=0.05)


def test_dragging_pans(page: Page) -> None:
    page.run(f"{REPORT}.changeRange(0, {REPORT}.plan.cycles / 4)")
    before = page.run(f"{REPORT}.viewport.start")
    canvas = box_of(page, "#timeline")
    y = canvas["top"] + 60
    page.mouse("mousePressed", 700, y, {"button": "left", "buttons": 1, "clickCount": 1})
    page.mouse("mouseMoved", 500, y, {"button": "left", "buttons": 1})
    page.mouse("mouseReleased", 500, y, {"button": "left"})
    page.settle()
    assert page.run(f"{REPORT}.viewport.start") > before


def test_hovering_a_task_names_it(page: Page) -> None:
    made = small_plan()
    task = longest_task(made)
    page.mouse("mouseMoved", *task_point(page, made, task))
    page.settle()
    assert page.run("!document.getElementById('tip').hidden")
    assert made.program.tasks[task].name in page.run("document.getElementById('tip').textContent")


def test_a_clicked_task_leads_to_what_it_waits_for(page: Page) -> None:
    made = small_plan()
    task = longest_task(made)
    page.click(*task_point(page, made, task))
    assert page.run(f"{REPORT}.selection.current.number") == task
    assert texts(page, "#detail h2") == [made.program.tasks[task].name]
    before = made.program.tasks[task].after
    waits = page.run("document.querySelector('#detail h3').nextElementSibling.innerText")
    assert all(made.program.tasks[other].name in waits for other in before)
    page.run("document.querySelector('#detail ul .link').click()")
    assert page.run(f"{REPORT}.selection.current.number") == before[0]


def test_every_rectangle_of_the_memory_map_is_a_buffer(page: Page) -> None:
    made = small_plan()
    program, lives = made.program, buffer_lives(made.timetable)
    tab(page, "memory")
    spaces = [s for s in program.spaces if s.kind in ("scratchpad", "external")]
    for number, space in enumerate(spaces):
        page.run(f"{REPORT}.chooseSpace({number})")
        page.settle()
        script = f"""{REPORT}.memoryMap.boxes.map(b => [{REPORT}.plan.buffers.number[b.buffer],
                     b.left, b.top, b.width, b.height])"""
        boxes: list[list[float]] = page.run(script)
        shown = {int(box[0]): box[1:] for box in boxes}
        assert len(shown) == len(boxes)
        expected = {
            n
            for n, (start, end) in lives.items()
            if program.buffers[n].space == space.name and end > start
        }
        assert set(shown) <= expected
        if space.kind == "scratchpad":
            check_geometry(page, made, shown)


def check_geometry(page: Page, made: Plan, shown: dict[int, list[float]]) -> None:
    """Boxes lie where cycles and addresses say, to a pixel, and only narrow ones are left out."""
    start, end = page.run(f"[{REPORT}.viewport.start, {REPORT}.viewport.end]")
    width = box_of(page, "#memory")["width"]
    per_cycle = (width - GUTTER) / (end - start)
    lives = buffer_lives(made.timetable)
    space = made.program.buffers[next(iter(shown))].space
    heights = []
    for number, (first, last) in lives.items():
        buffer = made.program.buffers[number]
        if buffer.space != space:
            continue
        if number not in shown:
            assert (last - first) * per_cycle < 1
            continue
        left, _, wide, high = shown[number]
        assert left == pytest.approx(GUTTER + (first - start) * per_cycle, abs=1)
        assert wide == pytest.approx(max(1, (last - first) * per_cycle), abs=1)
        if high > 3:
            heights.append(buffer.size_bytes / high)
    assert max(heights) == pytest.approx(min(heights), rel=0.01)


def test_ops_can_be_sorted_searched_and_selected(page: Page) -> None:
    tab(page, "ops")
    made = small_plan()
    busy: dict[str, int] = {}
    for task in made.program.tasks:
        if task.kind == "compute":
            busy[task.op] = busy.get(task.op, 0) + task.cycles
    page.run("document.querySelectorAll('#ops th button')[3].click()")
    names = texts(page, "#ops tbody td:first-child")
    assert [busy[name] for name in names] == sorted(busy.values(), reverse=True)
    assert page.run("document.querySelectorAll('#ops th')[3].ariaSort") == "descending"
    page.run("document.querySelectorAll('#ops th button')[3].click()")
    names = texts(page, "#ops tbody td:first-child")
    assert [busy[name] for name in names] == sorted(busy.values())
    page.run("document.getElementById('ops-search').focus()")
    page.send("Input.insertText", {"text": "layer1"})
    page.settle()
    shown = texts(page, "#ops tbody tr:not([hidden]) td:first-child")
    assert sorted(shown) == sorted(name for name in busy if "layer1" in name)
    page.run("document.querySelector('#ops tbody tr:not([hidden])').click()")
    assert texts(page, "#detail h2") == shown[:1]
    assert "for" in texts(page, "#detail pre.nest")[0]


def test_it_says_what_would_help_and_leads_to_the_critical_path(page: Page) -> None:
    made = small_plan()
    found = explain(record_of(made, plan_figures(made)))
    assert found.bottleneck is not None
    tab(page, "why")
    assert f"What bounds the plan: {found.bottleneck.name}." in page.run(
        "document.getElementById('bound').textContent"
    )
    rows = texts(page, "#why-remedies tbody tr td:nth-child(2)")
    assert rows == [f"{remedy.cycles:,}" for remedy in found.remedies]
    page.run("document.querySelector('#why-path tbody tr').click()")
    assert page.run(f"{REPORT}.selection.current.number") == found.path[0].task
    assert page.run("!document.getElementById('panel-timeline').hidden")


def test_everything_can_be_reached_by_keyboard(page: Page) -> None:
    page.run("document.getElementById('tab-timeline').focus()")
    for name in (*PARTS[1:], PARTS[0]):
        page.key("ArrowRight")
        assert page.run("document.activeElement.id") == f"tab-{name}"
        assert page.run(f"document.getElementById('tab-{name}').ariaSelected") == "true"
    page.run(f"document.getElementById('timeline').focus(); {REPORT}.select('task', 0)")
    page.key("ArrowRight")
    following = page.run(f"{REPORT}.selection.current.number")
    assert following != 0
    page.key("Escape")
    assert page.run(f"{REPORT}.selection.current") is None


def test_the_theme_follows_the_system_until_it_is_chosen(page: Page) -> None:
    theme = "document.documentElement.dataset.theme"
    assert page.run(theme) == "light"
    page.scheme("dark")
    page.settle()
    assert page.run(theme) == "dark"
    page.run("document.getElementById('theme').click()")
    assert page.run(theme) == "light"
    page.run("document.getElementById('theme').click()")
    assert page.run(theme) == "dark"


def test_a_cascade_is_framed(page: Page, file: Path, tmp_path: Path) -> None:
    tab(page, "network")
    assert texts(page, "#network rect.cascade") == []
    assert len(texts(page, "#network g[data-op]")) == len(page.run(f"{REPORT}.plan.ops.name"))
    text = file.read_text("utf-8")
    assert '"cascades":[]' in text
    other = tmp_path / "report.html"
    other.write_text(text.replace('"cascades":[]', '"cascades":[[1,2,3]]'), "utf-8")
    page.open(other)
    tab(page, "network")
    assert texts(page, "#network rect.cascade") == ["cascade 1: 3 ops whose tiles take turns"]
    frame = box_of(page, "#network rect.cascade")
    for op in (1, 2, 3):
        inner = box_of(page, f'#network g[data-op="{op}"] rect')
        assert frame["top"] < inner["top"] < inner["bottom"] < frame["bottom"]


@pytest.mark.parametrize("width", [390, 1280, 1920])
def test_the_page_is_as_wide_as_the_screen(page: Page, width: int) -> None:
    page.size(width, 900, mobile=width < 500)
    for name in PARTS:
        tab(page, name)
        assert page.run("document.scrollingElement.scrollWidth") <= width


@pytest.mark.slow
def test_resnet50_takes_less_than_three_megabytes() -> None:
    assert len(report_html(small_plan("resnet50")).encode()) < 3_000_000


FRAMES = """new Promise(done => {
  const { plan, changeRange } = window.tilewrightReport;
  const begin = performance.now();
  let frame = 0;
  const step = () => {
    frame += 1;
    const length = plan.cycles * ZOOM(frame);
    const start = (plan.cycles - length) * (frame % 7) / 7;
    changeRange(start, start + length);
    if (frame < 40) requestAnimationFrame(step);
    else done(1000 * frame / (performance.now() - begin));
  };
  requestAnimationFrame(step);
})"""


@pytest.mark.slow
def test_a_plan_of_20_000_tasks_stays_fluid(browser: Page, tmp_path: Path) -> None:
    many = run_again_and_again(small_plan(), 20_000)
    begin = time.process_time()
    text = report_html(many)
    assert time.process_time() - begin < 5
    assert len(text.encode()) < 12_000_000
    path = tmp_path / "report.html"
    path.write_text(text, "utf-8")
    browser.size(1280, 900)
    browser.open(path)
    paints: list[Any] = browser.run("performance.getEntriesByType('paint').map(p => p.startTime)")
    assert max(paints) < 2000
    for name in ("timeline", "memory"):
        tab(browser, name)
        for zoom in ("n => 1 - 0.001 * n", "n => 0.9 ** n"):
            rate = browser.run(FRAMES.replace("ZOOM", f"({zoom})"))
            assert rate > 20
