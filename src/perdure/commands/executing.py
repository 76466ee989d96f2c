"""Carrying out configs: in this process, or in a pool of processes with one thread each."""

from __future__ import annotations

import multiprocessing
import signal
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from queue import Queue
from types import FrameType
from typing import NamedTuple

from perdure.config import Config, from_json
from perdure.errors import Interrupted, PerdureError
from perdure.experiment import RunResult, run
from perdure.learning.engine import Habits, Progress
from perdure.report.board import Board
from perdure.report.progress import Display

News = Queue[tuple[int, Progress]]
"""What workers report: the number of the run, and where it is."""
LOOK = 0.25
"""Seconds between looks at the news."""
PATIENCE = 1.0
"""Seconds within which a second signal counts as the first."""


class Signals:
    """Ctrl-C and SIGTERM ask for a stop at the next safe moment; a second one is not so patient."""

    def __init__(self, act: Callable[[], None] = lambda: None) -> None:
        """Take over both signals for the life of the process; `act` is called at the first."""
        self.received: int | None = None
        self.when = 0.0
        self.act = act
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._receive)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self.received is None:
            self.received, self.when = number, time.monotonic()
            self.act()
        elif time.monotonic() - self.when > PATIENCE:
            raise KeyboardInterrupt

    def asked(self) -> bool:
        """Whether a stop was asked for."""
        return self.received is not None

    @property
    def code(self) -> int:
        """The exit code that the signal stands for."""
        return 130 if self.received == signal.SIGINT else 2


def execute(
    configs: Sequence[Config],
    runs: Path,
    *,
    workers: int,
    device: str,
    force: bool = False,
    save_every: float = 20.0,
    board: Board | None = None,
) -> list[RunResult]:
    """Run all configs; results in the order of the configs. A board shows all of them together."""
    habits = Habits(save_every=save_every, device=device)
    if board is not None or min(workers, len(configs)) > 1:
        return _in_pool(configs, runs, max(1, min(workers, len(configs))), habits, force, board)
    signals = Signals()
    try:
        return [
            _one(config, runs, replace(habits, stop=signals.asked), force, labelled=len(configs) > 1)
            for config in configs
        ]
    except Interrupted as stop:
        stop.code = signals.code
        raise


def _one(
    config: Config, runs: Path, habits: Habits, force: bool, *, labelled: bool, live: bool = True
) -> RunResult:
    """Run one config with progress on standard error."""
    with Display(f"seed {config.seed}" if labelled else "", live=live) as display:
        shown = replace(habits, watch=display.show, tell=display.say, building=display.built)
        done = run(config, runs, shown, force=force)
        for warning in done.warnings:
            display.say(warning)
        return done


def _in_pool(
    configs: Sequence[Config], runs: Path, workers: int, habits: Habits, force: bool, board: Board | None
) -> list[RunResult]:
    """Run configs in processes of one thread each.

    A signal to this process leaves a file that asks all of them to save themselves and stop.
    """
    results: dict[int, RunResult] = {}
    faults: list[PerdureError] = []
    with tempfile.TemporaryDirectory() as folder:
        stop = Path(folder) / "stop"
        # Workers inherit that Ctrl-C is ignored, also while they still import torch.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        context = multiprocessing.get_context("spawn")
        with (
            context.Manager() if board else nullcontext() as manager,
            ProcessPoolExecutor(workers, mp_context=context) as pool,
        ):
            news = None if manager is None else manager.Queue()
            order = _Order(str(runs), habits.save_every, habits.device, force, str(stop), news)
            jobs = {pool.submit(_work, number, c.json, order): number for number, c in enumerate(configs)}
            signals = Signals(stop.touch)
            for job in _completed(jobs, board, news):
                try:
                    results[jobs[job]] = job.result()
                    if board is not None:
                        board.done(jobs[job], results[jobs[job]].record)
                except PerdureError as fault:
                    faults.append(fault)
                    stop.touch()  # what the others have done is saved
                except Exception as fault:  # a worker that was killed
                    faults.append(PerdureError(f"A worker process ended unexpectedly ({fault!r})."))
                    stop.touch()
    if faults:
        worst = next((fault for fault in faults if not isinstance(fault, Interrupted)), faults[0])
        if isinstance(worst, Interrupted):
            worst.code = signals.code
        raise worst
    return [results[number] for number in range(len(configs))]


def _completed(
    jobs: Collection[Future[RunResult]], board: Board | None, news: News | None
) -> Iterator[Future[RunResult]]:
    """The jobs as they end; meanwhile a board is told what workers report."""
    pending: set[Future[RunResult]] = set(jobs)
    while pending:
        ended, pending = wait(pending, timeout=LOOK if board else None, return_when=FIRST_COMPLETED)
        while board is not None and news is not None and not news.empty():
            board.moved(*news.get())
        yield from ended


class _Order(NamedTuple):
    """What every worker is told."""

    runs: str
    save_every: float
    device: str
    force: bool
    stop: str
    news: News | None


def _work(number: int, data: dict[str, object], order: _Order) -> RunResult:
    """In a worker: run one config, given as plain data, unless a stop was asked for before."""
    asked = Path(order.stop).exists
    if asked():
        raise Interrupted("Stopped; the same command continues where it was.")
    habits = Habits(save_every=order.save_every, device=order.device, stop=asked)
    config, runs, news = from_json(data), Path(order.runs), order.news
    if news is None:
        return _one(config, runs, habits, order.force, labelled=True, live=False)
    watching = replace(habits, watch=lambda state: news.put((number, state)))
    return run(config, runs, watching, force=order.force)
