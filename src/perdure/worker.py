"""A worker: carries out one order, with plain JSON data as order and answer.

Nothing is raised across process boundaries: errors are returned as answers, since not every engine preserves
their type. A worker that sees the driver's mailbox shares its folder and writes there; any other worker keeps
checkpoints in its own folder, and its record is sent back in the answer.
"""

from __future__ import annotations

import hashlib
import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from perdure.config import Config, from_json
from perdure.errors import Busy, Diverged, Interrupted, PerdureError, Refused, out_of_memory
from perdure.experiment import RunResult, run, run_part
from perdure.fingerprint import check
from perdure.learning.engine import Progress, RunOptions
from perdure.mailbox import Building, Mailbox, News
from perdure.registry import load_plugin

Order = Mapping[str, Any]
"""What a worker is to do, as plain JSON data."""

LOOK = 0.2
"""Seconds between looks at the mailbox."""
CONTINUES = "the same command continues where it was."
PRIVATE = "PERDURE_WORKER"
"""Environment variable for the folder of a worker that does not share the driver's."""


def work(order: Order) -> dict[str, Any]:
    """Carry out an order; returns a run's record, the validation of a partial run, or a fault."""
    try:
        return _work(order)
    except Exception as error:
        return {"fault": _kind(error), "reason": str(error) if _kind(error) != "unexpected" else repr(error)}


def _kind(error: Exception) -> str:
    """The kind of an error, which decides what a driver does (see `perdure.search.crew`)."""
    if isinstance(error, Refused | Busy | Interrupted):
        return {Refused: "refused", Busy: "busy", Interrupted: "stopped"}[type(error)]
    cause = error.__cause__
    if isinstance(cause, OSError) or (cause is not None and out_of_memory(cause)):
        return "circumstances"  # a full disk, too little memory: it may succeed elsewhere or later
    if isinstance(error, Diverged):
        return "diverged"  # as it would again
    return "failed" if isinstance(error, PerdureError) else "unexpected"


def _work(order: Order) -> dict[str, Any]:
    for plugin in order["plugins"]:
        if Path(plugin).is_file():  # otherwise the check reports it
            load_plugin(plugin)
    check(order["fingerprint"])
    mailbox = Mailbox(Path(order["mailbox"]))
    shared = mailbox.folder.is_dir()
    if shared and mailbox.stopped():
        raise Interrupted(f"Stopped; {CONTINUES}")
    options = RunOptions(
        stop=mailbox.stopped if shared else lambda: False,
        save_every=order["save_every"],
        device=order["device"],
        threads=order["threads"],
        keep=order.get("keep", True),
    )
    tell = _teller(mailbox, order["number"]) if shared else _silent
    runs = Path(order["runs"]) if shared else _private_folder(order["runs"])
    config, phases = from_json(order["config"]), order.get("phases")
    if phases is not None:
        begun = time.monotonic()
        rows = run_part(config, phases, runs, _told(options, tell))
        return {"validation": rows, "seconds": time.monotonic() - begun}
    result = watched_run(config, runs, order["force"], options, tell)
    return {
        "record": result.record.json,
        "folder": str(Path(order["runs"]) / config.hash),
        "found": result.found,
        "warnings": result.warnings,
    }


def watched_run(
    config: Config, runs: Path, force: bool, options: RunOptions, tell: Callable[[News], None]
) -> RunResult:
    """One run in this process, with all its news passed to `tell`."""
    result = run(config, runs, _told(options, tell), force=force)
    for warning in result.warnings:
        tell(warning)
    tell(result)
    return result


def _told(options: RunOptions, tell: Callable[[News], None]) -> RunOptions:
    def building(what: str, done: int, total: int) -> None:
        if options.stop():
            raise Interrupted("Stopped before the first iteration; the same command starts again.")
        tell(Building(what, done, total))

    return replace(options, watch=tell, tell=tell, building=building)


def _silent(news: News) -> None:
    """Drop the news."""


def _teller(mailbox: Mailbox, number: int) -> Callable[[News], None]:
    """A function that puts news into the mailbox: ends of phases always, the rest now and then."""
    spoke = 0.0

    def tell(news: News) -> None:
        nonlocal spoke
        if isinstance(news, RunResult):
            return  # it goes the way of results
        if isinstance(news, str) or (isinstance(news, Progress) and news.accuracy is not None):
            mailbox.put(number, news)
        elif time.monotonic() - spoke > LOOK:
            spoke = time.monotonic()
            mailbox.put(number, news)

    return tell


def _private_folder(runs: str) -> Path:
    """The worker's own folder in place of one that it cannot see."""
    place = Path(os.environ.get(PRIVATE) or Path.home() / ".cache" / "perdure" / "worker")
    return place / hashlib.sha256(runs.encode()).hexdigest()[:12]


def local_work(order: Order) -> dict[str, Any]:
    """In a local process: `work`, saved first where the process is to be ended with SIGTERM."""
    seen = False

    def receive(*_: object) -> None:
        nonlocal seen
        seen = True
        Mailbox(Path(order["mailbox"])).stop()

    before = signal.signal(signal.SIGTERM, receive)
    try:
        return work(order)
    finally:
        signal.signal(signal.SIGTERM, before)
        if seen:
            os.kill(os.getpid(), signal.SIGTERM)
