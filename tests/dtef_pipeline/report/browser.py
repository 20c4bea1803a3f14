"""One tab of a headless Chromium, driven over its DevTools protocol."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import connect

from tests.apt import found_or_installed

PATIENCE = 60.0
"""Seconds to wait for anything the browser is to do, on a machine that is busy."""


class PageLeftError(Exception):
    """The page went away while it was asked for something."""


class Browser:
    """One tab. What it said on the console, every error and every request are kept."""

    def __init__(self, socket: Any) -> None:
        self.socket, self.calls, self.session = socket, 0, None
        self.said: list[str] = []
        self.requested: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **given: Any) -> dict[str, Any]:
        self.calls += 1
        message = {"id": self.calls, "method": method, "params": given}
        self.socket.send(json.dumps(message if self.session is None else {**message, "sessionId": self.session}))
        while True:
            answer = json.loads(self.socket.recv(timeout=PATIENCE))
            if answer.get("id") == self.calls:
                if "navigated or closed" in answer.get("error", {}).get("message", ""):
                    raise PageLeftError(f"{method}: {answer}")
                assert "error" not in answer, f"{method}: {answer}"
                return dict(answer["result"])
            self._note(answer.get("method", ""), answer.get("params", {}))

    def _note(self, event: str, given: dict[str, Any]) -> None:
        if event in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
            self.said.append(json.dumps(given))
        if event == "Network.requestWillBeSent":
            self.requested.append(given["request"]["url"])

    def does(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def opens(self, page: Path, width: int = 1200) -> None:
        self.visits(page.as_uri(), width)

    def visits(self, address: str, width: int = 1200) -> None:
        """Open an address, and wait until the page is there."""
        self.call("Emulation.setEmulatedMedia", media="", features=[])
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=width < 500)
        # What the page that is left still says and asks for is not said by the next one.
        self._goes("Page.navigate", "about:blank", url="about:blank")
        self.said.clear()
        self.requested.clear()
        self._goes("Page.navigate", address, url=address)

    def reloads(self) -> None:
        """Load the page once more, and wait until it is there."""
        self._goes("Page.reload", self.does("location.href"))

    def _goes(self, method: str, address: str, **given: Any) -> None:
        # The page that is left is complete, too, and may have the same address.
        self.does("window.isLeft = true")
        self.call(method, **given)
        scheme = f"{address.partition(':')[0]}:"
        is_there = f"!window.isLeft && document.readyState == 'complete' && location.protocol == '{scheme}'"
        until(lambda: self.does(is_there))

    def presses(self, key: str, code: int) -> None:
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **text)

    def texts(self, selector: str) -> list[str]:
        return list(self.does(f"[...document.querySelectorAll({selector!r})].map(node => node.textContent)"))


@contextmanager
def running_browser(folder: Path) -> Iterator[Browser]:
    """A browser for the time of the block, with its profile in the folder. Raises NotInstalled."""
    program = found_or_installed(_chromium, "chromium")
    command = [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
    command += ["--disable-background-networking", "--remote-debugging-port=0", f"--user-data-dir={folder}", "about:blank"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        told = folder / "DevToolsActivePort"
        until(lambda: told.exists() and len(told.read_text().split()) == 2)
        port, path = told.read_text().split()
        # A busy machine answers pings late, and the connection would be closed for it.
        with connect(f"ws://127.0.0.1:{port}{path}", max_size=None, open_timeout=PATIENCE, ping_interval=None) as socket:
            yield Browser(socket)
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _chromium() -> str | None:
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def until(condition: Any) -> None:
    """Wait until a condition holds. While one page gives way to the next, it does not."""
    end = time.monotonic() + PATIENCE
    while not _holds(condition):
        assert time.monotonic() < end, "the browser did not get there"
        time.sleep(0.02)


def _holds(condition: Any) -> bool:
    try:
        return bool(condition())
    except PageLeftError:
        return False
