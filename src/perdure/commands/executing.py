"""Carrying out configs: in this process, or in a pool of processes with one thread each."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from types import FrameType

import torch

from perdure.config import Config, from_json
from perdure.errors import Interrupted, PerdureError
from perdure.learning.engine import Habits
from perdure.report.progress import Display
from perdure.run import Done, run

PATIENCE = 1.0
"""Seconds within which a second signal counts as the first: a terminal sends Ctrl-C to workers too."""


class Signals:
    """Ctrl-C and SIGTERM ask for a stop at the next safe moment; a second one is not so patient."""

    def __init__(self) -> None:
        """Take over both signals for the life of the process."""
        self.received: int | None = None
        self.when = 0.0
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._receive)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self.received is None:
            self.received, self.when = number, time.monotonic()
        elif time.monotonic() - self.when > PATIENCE:
            raise KeyboardInterrupt

    def asked(self) -> bool:
        """Whether a stop was asked for."""
        return self.received is not None


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
    workers = min(workers, len(configs))
    if workers > 1:
        return _in_pool(configs, runs, workers, device, force, save_every)
    torch.set_num_threads(1)
    signals = Signals()
    return [_one(config, runs, device, force, save_every, signals, len(configs) > 1) for config in configs]


def _one(
    config: Config,
    runs: Path,
    device: str,
    force: bool,
    save_every: float,
    signals: Signals,
    labelled: bool,
) -> Done:
    """Run one config with progress on standard error."""
    try:
        with Display(f"seed {config.seed}" if labelled else "") as display:
            habits = Habits(display.show, signals.asked, display.say, save_every, device)
            done = run(config, runs, habits, force=force)
            for warning in done.warnings:
                display.say(warning)
            return done
    except Interrupted as stop:
        stop.code = 130 if signals.received == signal.SIGINT else 2
        raise


def _in_pool(
    configs: Sequence[Config], runs: Path, workers: int, device: str, force: bool, save_every: float
) -> list[Done]:
    """Run configs in processes; a signal is passed on to them, and they save themselves."""
    pool = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"), initializer=Signals)
    parent = os.getpid()

    def pass_on(number: int, frame: FrameType | None) -> None:
        if os.getpid() == parent:
            for process in multiprocessing.active_children():
                os.kill(process.pid or 0, number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, pass_on)
    results: dict[int, Done] = {}
    faults: list[PerdureError] = []
    with pool:
        jobs = {
            pool.submit(_work, config.json, str(runs), device, force, save_every): number
            for number, config in enumerate(configs)
        }
        for job in as_completed(jobs):
            try:
                results[jobs[job]] = job.result()
            except PerdureError as fault:
                faults.append(fault)
                pool.shutdown(wait=False, cancel_futures=True)
            except Exception as fault:  # a worker that was killed, or a cancelled job
                if not faults:
                    faults.append(PerdureError(f"A worker process ended unexpectedly ({fault!r})."))
    if faults:
        raise faults[0]
    return [results[number] for number in range(len(configs))]


def _work(data: dict[str, object], runs: str, device: str, force: bool, save_every: float) -> Done:
    """In a worker: run one config, given as plain data.

    One thread each: two processes of one thread are faster than one process of two.
    """
    torch.set_num_threads(1)
    config = from_json(data)
    print(f"seed {config.seed}: started", file=sys.stderr)
    return _one(config, Path(runs), device, force, save_every, Signals(), True)
