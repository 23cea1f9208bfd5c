"""A headless Chromium for tests, driven over a pipe with its own protocol: no driver is needed."""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
PROGRAM = next((found for name in NAMES if (found := shutil.which(name))), None)
ABSENT = "no Chromium on this machine"
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-extensions",
    "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip
PATIENCE_SECONDS = 120
_MOVE = """
import fcntl, os, sys
reads, writes = (fcntl.fcntl(int(text), fcntl.F_DUPFD, 10) for text in sys.argv[1:3])
os.dup2(reads, 3)
os.dup2(writes, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""The protocol uses descriptors 3 and 4, and what a child is handed keeps its number."""


class Page:
    """One page: what it is told, what it logs, and which addresses it asks for."""

    def __init__(self, writes: int, reads: int) -> None:
        self.writes, self.reads = writes, reads
        self.buffer = b""
        self.number = 0
        self.session = ""
        self.events: list[dict[str, Any]] = []

    def send(self, method: str, parameters: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Call a method of the protocol and wait for its result."""
        self.number += 1
        message: dict[str, Any] = {"id": self.number, "method": method, "params": parameters or {}}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.writes, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self.number:
                assert "error" not in answer, (method, answer["error"])
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def wait_for(self, method: str) -> dict[str, Any]:
        """The next event of a kind."""
        while True:
            for place, event in enumerate(self.events):
                if event.get("method") == method:
                    return self.events.pop(place)
            self.events.append(self._next())

    def run(self, script: str) -> Any:
        """The value of a script; promises are waited for."""
        found = self.send(
            "Runtime.evaluate",
            {"expression": script, "returnByValue": True, "awaitPromise": True},
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def settle(self) -> None:
        """Wait until what was asked for is drawn."""
        self.run("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(1))))")

    def size(self, width: int, height: int, *, mobile: bool = False) -> None:
        self.send(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile},
        )

    def scheme(self, name: str) -> None:
        """Prefer `light` or `dark`."""
        features = [{"name": "prefers-color-scheme", "value": name}]
        self.send("Emulation.setEmulatedMedia", {"features": features})

    def mouse(self, kind: str, x: float, y: float, more: Mapping[str, Any] | None = None) -> None:
        self.send("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, **(more or {})})

    def click(self, x: float, y: float) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, {"button": "left", "buttons": 1, "clickCount": 1})
        self.settle()

    def key(self, name: str) -> None:
        text = {"text": name} if len(name) == 1 else {}
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", {"type": kind, "key": name, "code": name, **text})
        self.settle()

    def screenshot(self, path: Path) -> None:
        data = self.send("Page.captureScreenshot", {"format": "png"})["data"]
        path.write_bytes(base64.b64decode(data))

    def open(self, path: Path) -> None:
        self.send("Page.navigate", {"url": path.as_uri()})
        self.wait_for("Page.loadEventFired")
        self.settle()

    def complaints(self) -> list[str]:
        """Exceptions, errors in the console and in the log since the page was made."""
        found = []
        for event in self.events:
            kind, parameters = event.get("method"), event.get("params", {})
            wrong = (
                kind == "Runtime.exceptionThrown"
                or (
                    kind == "Runtime.consoleAPICalled"
                    and parameters["type"] in ("error", "warning")
                )
                or (
                    kind == "Log.entryAdded"
                    and parameters["entry"]["level"] in ("error", "warning")
                )
            )
            if wrong:
                found.append(json.dumps(parameters))
        return found

    def requests(self) -> list[str]:
        """Every address the page asked for."""
        return [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]

    def _next(self) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.reads], [], [], max(0, deadline - time.monotonic()))
            assert ready, "Chromium does not answer"
            data = os.read(self.reads, 1 << 20)
            assert data, "Chromium ended"
            self.buffer += data
        message, _, self.buffer = self.buffer.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer


@contextmanager
def new_page(folder: Path) -> Iterator[Page]:
    """A page in a Chromium of its own, whose files lie in a fresh folder."""
    assert PROGRAM is not None
    to_read, to_write = os.pipe()
    from_read, from_write = os.pipe()
    moving = [sys.executable, "-c", _MOVE, str(to_read), str(from_write)]
    command = [*moving, PROGRAM, *FLAGS, f"--user-data-dir={folder}"]
    process = subprocess.Popen(
        command,
        pass_fds=(to_read, from_write),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_read)
    os.close(from_write)
    page = Page(to_write, from_read)
    try:
        target = page.send("Target.createTarget", {"url": "about:blank"})["targetId"]
        attached = page.send("Target.attachToTarget", {"targetId": target, "flatten": True})
        page.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.send(f"{domain}.enable")
        yield page
    finally:
        page.session = ""
        with suppress(AssertionError, OSError):
            page.send("Browser.close")
        os.close(to_write)
        os.close(from_read)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
