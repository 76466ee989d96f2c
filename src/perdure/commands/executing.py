"""Running configs from the command line: signals, and progress on standard error."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from perdure.commands.arguments import whole_number
from perdure.config import Config
from perdure.engines.engine import Engine
from perdure.errors import Interrupted, PerdureError
from perdure.executors import Watcher, run_many
from perdure.experiment import RunResult
from perdure.learning.engine import Progress, RunOptions
from perdure.mailbox import Building, News
from perdure.report.board import Board
from perdure.report.progress import Display

PATIENCE = 1.0
"""Seconds within which a second signal counts as part of the first."""


class Signals:
    """Ctrl-C and SIGTERM request a stop at the next safe point; a second one stops at once."""

    def __init__(self) -> None:
        """Handle both signals, until the end of a `with` if there is one; only the main thread can."""
        self.received: int | None = None
        self.when = 0.0
        self.before: dict[int, Any] = {}
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self.before[number] = signal.signal(number, self._receive)

    def __enter__(self) -> Signals:
        """The handlers stand already."""
        return self

    def __exit__(self, *error: object) -> None:
        """Handle signals as before."""
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self.received is None:
            self.received, self.when = number, time.monotonic()
        elif time.monotonic() - self.when > PATIENCE:
            raise KeyboardInterrupt(number)

    def asked(self) -> bool:
        """Whether a stop was requested."""
        return self.received is not None

    @property
    def code(self) -> int:
        """The exit code for the signal."""
        return 128 + int(signal.SIGINT if self.received is None else self.received)


def execute(
    configs: Sequence[Config],
    runs: Path,
    *,
    workers: int,
    device: str,
    force: bool = False,
    save_every: float = 20.0,
    board: Board | None = None,
    engine: Engine | None = None,
) -> list[RunResult]:
    """Run all configs; results in the order of the configs. A board shows all of them together.

    An engine, if given, stands in place of local workers.
    """
    with Signals() as signals:
        options = RunOptions(save_every=save_every, device=device, stop=signals.asked)

        def carried_out(watch: Watcher) -> list[RunResult]:
            return run_many(
                configs, runs, workers=workers, force=force, options=options, watch=watch, executor=engine
            )

        try:
            if board is not None:
                return carried_out(_on(board))
            labels = [f"seed {config.seed}" if len(configs) > 1 else "" for config in configs]
            with _Displays(labels, live=min(workers, len(configs)) == 1) as displays:
                return carried_out(displays.show)
        except Interrupted as stop:
            stop.code = signals.code
            raise


def engine_of(options: Mapping[str, str], runs: Path, workers: int) -> Engine:
    """The engine that --workers, --cluster and --slurm name."""
    from perdure.engines.opening import opened

    pairs = [part.partition("=") for part in options.get("slurm", "").split(",") if part]
    for name, equals, value in pairs:
        if not equals or not name or not value:
            raise PerdureError("--slurm: settings are written name=value, with commas between them.")
    return opened(
        whole_number(options, "workers", workers, 1),
        options.get("cluster"),
        runs.resolve() / ".jobs",
        {name: value for name, _, value in pairs},
    )


def cluster_of(options: Mapping[str, str], runs: Path) -> AbstractContextManager[Engine | None]:
    """The engine that --cluster names, or none."""
    if "slurm" in options and "cluster" not in options:
        raise PerdureError("--slurm has settings for --cluster slurm, which is not given.")
    return engine_of(options, runs, 1) if "cluster" in options else nullcontext()


def _on(board: Board) -> Watcher:
    def watch(number: int, news: News) -> None:
        if isinstance(news, Progress):
            board.moved(number, news)
        elif isinstance(news, RunResult):
            board.done(number, news.record)

    return watch


class _Displays:
    """A display for each run, from its first report to its result; live if only one is active at a time."""

    def __init__(self, labels: Sequence[str], *, live: bool) -> None:
        self.labels, self.live = labels, live
        self.open: dict[int, Display] = {}

    def __enter__(self) -> _Displays:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for display in self.open.values():
            display.__exit__(kind, error, trace)

    def show(self, number: int, news: News) -> None:
        if number not in self.open:
            self.open[number] = Display(self.labels[number], live=self.live).__enter__()
        display = self.open[number]
        if isinstance(news, Progress):
            display.show(news)
        elif isinstance(news, Building):
            display.built(*news)
        elif isinstance(news, str):
            display.say(news)
        else:
            self.open.pop(number).__exit__(None, None, None)
