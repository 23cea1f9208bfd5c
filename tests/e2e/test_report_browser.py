"""`report.html` in a headless Chromium: what a person does with it, and what it must not do."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.report_browser import ABSENT, PROGRAM, Page, new_page
from tests.report_plans import cascaded_plan, run_again_and_again, small_plan

from tilewright.planner import Plan
from tilewright.report.explain import explain
from tilewright.report.html_report import report_html
from tilewright.report.plan import plan_figures
from tilewright.report.record import record_of
from tilewright.schedule.packed import buffer_lives

pytestmark = [pytest.mark.skipif(PROGRAM is None, reason=ABSENT), pytest.mark.slow]
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
    counts = plan_figures(made)
    (subtitle,) = texts(page, "#subtitle")
    assert f": {counts['tasks']:,} tasks, {counts['buffers']:,} buffers, checked," in subtitle


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


@pytest.fixture(scope="module")
def cascaded_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cascaded") / "report.html"
    path.write_text(report_html(cascaded_plan()), "utf-8")
    return path


@pytest.fixture
def cascaded_page(page: Page, cascaded_file: Path) -> Page:
    page.open(cascaded_file)
    return page


def test_cascades_are_framed_and_labelled(page: Page, cascaded_file: Path) -> None:
    tab(page, "network")
    assert texts(page, "#network .cascade") == []
    assert len(texts(page, "#network g[data-op]")) == len(page.run(f"{REPORT}.plan.ops.name"))
    page.open(cascaded_file)
    tab(page, "network")
    assert texts(page, "#network .cascade-label") == [
        "cascade 1: 4 of 15 rows a step",
        "cascade 2: 2 of 6 rows a step",
    ]
    script = "[...document.querySelectorAll('#network .cascade rect')].map(e => e.getBBox())"
    frames = page.run(f"{script}.map(b => [b.x, b.y, b.x + b.width, b.y + b.height])")
    for op, name in enumerate(page.run(f"{REPORT}.plan.ops.name")):
        box = page.run(
            f"(b => [b.x, b.y, b.x + b.width, b.y + b.height])"
            f"(document.querySelector('#network g[data-op=\"{op}\"] rect').getBBox())"
        )
        inside = [
            place
            for place, frame in enumerate(frames)
            if frame[0] < box[0] and frame[1] < box[1] and frame[2] > box[2] and frame[3] > box[3]
        ]
        assert inside == {"conv1": [0], "pool1": [0], "conv2": [1], "pool2": [1]}.get(name, [])


def test_ops_that_run_together_are_told_below_the_headline(page: Page, cascaded_file: Path) -> None:
    assert page.run("document.getElementById('together').hidden") is True
    page.open(cascaded_file)
    assert page.run("document.getElementById('together').open") is True
    (sentence,) = texts(page, "#together summary")
    assert sentence.startswith("Run together: 4 of 5 ops, some rows, columns or channels at a time")
    assert sentence.endswith("; nothing is done again.")
    assert texts(page, "#together th") == [
        "Ops", "How many", "How", "Layer by layer", "Held at once",
    ]  # fmt: skip
    assert texts(page, "#together tbody tr:first-child td") == [
        "conv1 to pool1", "2", "4 of 15 rows a step", "35.2 KiB", "15.2 KiB",
    ]  # fmt: skip
    page.run("document.querySelector('#together tbody tr').click()")
    assert page.run("document.getElementById('panel-network').hidden") is False


def test_a_frame_encloses_no_op_of_another_cascade(page: Page, file: Path, tmp_path: Path) -> None:
    """The shortcut of a residual block and its addition, the convolutions beside them not."""
    names = page.run(f"{REPORT}.plan.ops.name")
    numbers = [names.index("layer2.0.downsample"), names.index("layer2.0.add")]
    text = file.read_text("utf-8")
    assert '"cascades":[]' in text
    cascade = f'"cascades":[{{"numbers":{numbers},"pace":"2 of 28 rows a step"}}]'
    other = tmp_path / "report.html"
    other.write_text(text.replace('"cascades":[]', cascade), "utf-8")
    page.open(other)
    tab(page, "network")
    labels = texts(page, "#network .cascade-label")
    assert labels == ["cascade 1: 2 of 28 rows a step", "cascade 1, continued"]
    script = """[...document.querySelectorAll('#network .cascade rect')].map(e => e.getBBox()).map(
      f => [...document.querySelectorAll('#network g[data-op]')].filter(g => {
        const b = g.firstChild.getBBox();
        return b.x < f.x + f.width && f.x < b.x + b.width
          && b.y < f.y + f.height && f.y < b.y + b.height;
      }).map(g => Number(g.dataset.op)))"""
    assert page.run(script) == [[number] for number in numbers]


def test_hovering_a_frame_tells_what_runs_in_it(cascaded_page: Page) -> None:
    tab(cascaded_page, "network")
    frame = box_of(cascaded_page, "#network .cascade rect")
    cascaded_page.mouse("mouseMoved", frame["left"] + 4, frame["top"] + 40)
    cascaded_page.settle()
    tip = cascaded_page.run("document.getElementById('tip').textContent")
    assert tip == "cascade 1: 4 of 15 rows a step\n2 ops run side by side"


def test_a_rolling_buffer_is_one_rectangle_that_says_so(cascaded_page: Page) -> None:
    page = cascaded_page
    tab(page, "memory")
    buffers = page.run(f"{REPORT}.plan.buffers")
    rolling = [n for n, text in enumerate(buffers["rolling"]) if text == "8 of 30 rows"]
    assert [buffers["name"][n] for n in rolling] == ["conv1"]
    script = f"{REPORT}.memoryMap.boxes.filter(b => b.buffer === {rolling[0]})"
    boxes = page.run(script)
    assert len(boxes) == 1
    page.run("document.getElementById('memory').scrollIntoView({block: 'center'})")
    canvas = box_of(page, "#memory")
    x = canvas["left"] + boxes[0]["left"] + boxes[0]["width"] / 2
    y = canvas["top"] + boxes[0]["top"] + boxes[0]["height"] / 2
    page.mouse("mouseMoved", x, y)
    page.settle()
    tip = page.run("document.getElementById('tip').textContent")
    assert "rolling buffer: 8 of 30 rows at once" in tip
    page.click(x, y)
    assert "8 of 30 rows at once" in page.run("document.getElementById('detail').innerText")
    assert "rolling buffer" in texts(page, "#memory-legend")[0]


def test_an_op_leads_to_the_others_of_its_cascade(cascaded_page: Page) -> None:
    page = cascaded_page
    tab(page, "ops")
    place = texts(page, "#ops th").index("Cascade") + 1
    assert texts(page, f"#ops tbody td:nth-child({place})") == ["1", "1", "2", "2", ""]
    page.run(f"{REPORT}.select('op', {REPORT}.plan.ops.name.indexOf('conv2'))")
    assert "2: 2 of 6 rows a step" in page.run("document.getElementById('detail').innerText")
    page.run("document.querySelector('#detail li .link').click()")
    assert texts(page, "#detail h2") == ["pool2"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280, 1920])
def test_a_report_with_cascades_fits_every_screen(
    cascaded_page: Page, width: int, scheme: str
) -> None:
    page = cascaded_page
    page.scheme(scheme)
    page.size(width, 900, mobile=width < 500)
    for name in PARTS:
        tab(page, name)
        assert page.run("document.scrollingElement.scrollWidth") <= width
    assert page.complaints() == []


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
