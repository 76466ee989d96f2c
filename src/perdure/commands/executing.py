"""Carrying out configs: in this process, or in a pool of processes with one thread each."""

from __future__ import annotations

import multiprocessing
import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from types import FrameType

from perdure.config import Config, from_json
from perdure.errors import Interrupted, PerdureError
from perdure.learning.engine import Habits
from perdure.report.progress import Display
from perdure.run import Done, run

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
    force: bool,
    save_every: float,
) -> list[Done]:
    """Run all configs; results in the order of the configs."""
    habits = Habits(save_every=save_every, device=device)
    if min(workers, len(configs)) > 1:
        return _in_pool(configs, runs, min(workers, len(configs)), habits, force)
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
) -> Done:
    """Run one config with progress on standard error."""
    with Display(f"seed {config.seed}" if labelled else "", live=live) as display:
        shown = replace(habits, watch=display.show, tell=display.say)
        done = run(config, runs, shown, force=force)
        for warning in done.warnings:
            display.say(warning)
        return done


def _in_pool(configs: Sequence[Config], runs: Path, workers: int, habits: Habits, force: bool) -> list[Done]:
    """Run configs in processes of one thread each.

    A signal to this process leaves a file that asks all of them to save themselves and stop.
    """
    results: dict[int, Done] = {}
    faults: list[PerdureError] = []
    with tempfile.TemporaryDirectory() as folder:
        stop = Path(folder) / "stop"
        # Workers inherit that Ctrl-C is ignored, also while they still import torch.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
            jobs = {
                pool.submit(
                    _work, config.json, str(runs), habits.save_every, habits.device, force, str(stop)
                ): n
                for n, config in enumerate(configs)
            }
            signals = Signals(stop.touch)
            for job in as_completed(jobs):
                try:
                    results[jobs[job]] = job.result()
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


def _work(data: dict[str, object], runs: str, save_every: float, device: str, force: bool, stop: str) -> Done:
    """In a worker: run one config, given as plain data, unless a stop was asked for before."""
    asked = Path(stop).exists
    if asked():
        raise Interrupted("Stopped; the same command continues where it was.")
    habits = Habits(save_every=save_every, device=device, stop=asked)
    return _one(from_json(data), Path(runs), habits, force, labelled=True, live=False)
