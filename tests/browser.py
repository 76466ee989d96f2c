"""A real browser for tests: headless Chromium, driven over a pair of pipes by its DevTools protocol.

Pipes need no port, no web socket and no further package. Messages are JSON, each ended by a zero byte.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless",
    "--remote-debugging-pipe",
    "--no-sandbox",  # the tests may run as root, where Chromium's sandbox refuses to start
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
PATIENCE = 60.0
"""Seconds to wait for an answer: the machine may be busy."""

# Chromium reads from descriptor 3 and writes to 4. They are put there by a process of its own, between
# fork and exec, because Python advises against code of ours there. Both are moved out of the way first.
LAUNCH = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(word), fcntl.F_DUPFD, 10) for word in sys.argv[1:3]]
os.dup2(ends[0], 3)
os.dup2(ends[1], 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""


def find() -> str | None:
    """The browser's program, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def _loaded(event: dict[str, Any], loader: str | None) -> bool:
    """Whether it tells that a page is complete: the one of this loader, or any if None."""
    facts = event.get("params", {})
    return (
        event.get("method") == "Page.lifecycleEvent"
        and facts["name"] == "load"
        and loader in (None, facts["loaderId"])
    )


class Browser:
    """One Chromium with one page; use as a context manager."""

    def __init__(self, program: str, profile: Path) -> None:
        """Start it with a new, empty profile."""
        from_us, to_them = os.pipe()
        from_them, to_us = os.pipe()
        launch = [sys.executable, "-c", LAUNCH, str(from_us), str(to_us)]
        self.process = subprocess.Popen(
            [*launch, program, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(from_us, to_us),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(from_us)
        os.close(to_us)
        self.outgoing, self.incoming = to_them, from_them
        self.buffer = b""
        self.count = 0
        self.session: str | None = None
        self.events: list[dict[str, Any]] = []
        try:
            self._attach()
        except BaseException:
            self.close()
            raise

    def _attach(self) -> None:
        """Take up the first page."""
        deadline = time.monotonic() + PATIENCE
        while True:
            targets = self.send("Target.getTargets")["targetInfos"]
            pages = [one["targetId"] for one in targets if one["type"] == "page"]
            if pages:
                break
            assert time.monotonic() < deadline, "the browser opened no page"
            time.sleep(0.05)
        self.session = self.send("Target.attachToTarget", targetId=pages[0], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.send("Page.setLifecycleEventsEnabled", enabled=True)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Ask, and wait for the answer; what happens meanwhile is kept in `events`."""
        self.count += 1
        number = self.count
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.outgoing, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self._receive(deadline)
            if answer.get("id") == number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return dict(answer["result"])
            self.events.append(answer)

    def _receive(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.incoming], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "the browser does not answer"
            chunk = os.read(self.incoming, 1 << 20)
            assert chunk, "the browser went away"
            self.buffer += chunk
        message, _, self.buffer = self.buffer.partition(b"\0")
        return dict(json.loads(message))

    def open(self, path: Path, fragment: str = "") -> None:
        """Load a file and wait until it is complete, and so are its own preparations."""
        # A change of the fragment alone would not load the page again.
        self._navigate("about:blank")
        self.events.clear()
        self._navigate(path.resolve().as_uri() + fragment)
        self.run("typeof loaded === 'undefined' ? null : loaded")

    def outlives(self, act: str, script: str) -> bool:
        """Whether an expression is true of the page when it is loaded again after an action that stores.

        Tried for a while: on a busy machine and with a new profile, Chromium itself loses what was stored
        last, or shows the next page what was there before (about once in ten times).
        """
        deadline = time.monotonic() + PATIENCE / 2
        while time.monotonic() < deadline:
            self.run(act)
            self.events.clear()
            self.send("Page.reload")
            self._wait_for_load(None)
            self.run("typeof loaded === 'undefined' ? null : loaded")
            if self.run(script):
                return True
        return False

    def _navigate(self, address: str) -> None:
        """Go there and wait for the load event of this very navigation."""
        self._wait_for_load(self.send("Page.navigate", url=address)["loaderId"])

    def _wait_for_load(self, loader: str | None) -> None:
        deadline = time.monotonic() + PATIENCE
        while not any(_loaded(event, loader) for event in self.events):
            self.events.append(self._receive(deadline))

    def run(self, script: str) -> Any:
        """The value of an expression in the page; promises are awaited."""
        result = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def resize(self, width: int, height: int, *, mobile: bool = False, scale: float = 1) -> None:
        """Give the window a size, as on a phone if `mobile`."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=mobile,
        )

    def media(self, kind: str = "", **features: str) -> None:
        """Pretend a medium such as print, and features such as prefers_color_scheme."""
        listed = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.send("Emulation.setEmulatedMedia", media=kind, features=listed)

    def press(self, key: str) -> None:
        """Press and release a key that writes nothing, such as ArrowRight."""
        for kind in ("rawKeyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def point(self, x: float, y: float) -> None:
        """Move the pointer."""
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """Write what is seen, or the whole page, as PNG."""
        data = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))

    def complaints(self) -> list[str]:
        """Errors and warnings of the page since it was opened."""
        self.run("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)))")
        found = []
        for event in self.events:
            name, facts = event.get("method"), event.get("params", {})
            if name == "Runtime.exceptionThrown":
                details = facts["exceptionDetails"]
                found.append(details.get("exception", {}).get("description") or details["text"])
            elif name == "Runtime.consoleAPICalled" and facts["type"] in ("error", "warning", "assert"):
                found.append(f"console: {facts['args']}")
            elif name == "Log.entryAdded" and facts["entry"]["level"] in ("error", "warning"):
                found.append(f"log: {facts['entry']['text']}")
        return found

    def requests(self) -> list[str]:
        """Addresses that the page asked for since it was opened."""
        return [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]

    def close(self) -> None:
        """End the browser and all its processes."""
        for end in (self.outgoing, self.incoming):
            os.close(end)  # a browser whose pipe closes ends by itself
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=5)
        # Its helpers share a process group of their own, which began with this process.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
