"""Runs many jobs through an engine, any part of which may die; every job ends with an answer or a reason.

A job whose worker was lost or whose disk was full is submitted again, a few times; a job that fails by itself
is not. Only a loss that diverges would do so again: what else fails, by data that are missing or a mistake in
the code, may be put right before the search is asked for again. A job that another process is still working
on is submitted again later.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perdure.config import Config
from perdure.engines.engine import Engine
from perdure.errors import Interrupted, Refused
from perdure.executors import common_orders
from perdure.learning.engine import RunOptions
from perdure.mailbox import Mailbox, News
from perdure.storage.store import writable
from perdure.worker import CONTINUES, LOOK, work

ATTEMPTS = 3
"""How often a job is submitted whose worker is lost or whose disk is full."""
FAREWELL = 20.0
"""Seconds for jobs to save their state when the driver ends."""
MAILBOX = ".mailbox-"
"""Prefix of mailbox folders. Removing one that a killed driver left behind stops its jobs."""
LATER = 1.0
"""Seconds until a postponed job is submitted again."""


@dataclass(frozen=True)
class Job:
    """A run, or the first phases of one."""

    config: Config
    runs: Path
    phases: int | None = None
    keep: bool = True
    """Whether the state after each phase is kept."""
    label: str = ""
    again: bool = False
    """Whether to run even if there is a finished record."""


@dataclass(frozen=True)
class Failure:
    """Why a job has no answer."""

    reason: str
    lasting: bool
    """Whether it would fail again for the same reason, and whenever the search is carried out again."""


STOPPED = Failure("stopped before its end", lasting=False)
"""The job was asked to stop and saved its state."""

Answer = dict[str, Any]
"""A worker's answer: a record, or the validation matrix of a partial run."""

Told = Callable[[Job, News], None]


@dataclass
class _Place:
    """State of one job."""

    job: Job
    number: int
    attempts: int = 0
    not_before: float = 0.0


@dataclass
class Crew:
    """Runs jobs through an engine. `home` is a folder that workers may share."""

    engine: Engine
    home: Path
    options: RunOptions = field(default_factory=RunOptions)
    told: Told = lambda job, news: None

    def carry_out(
        self, jobs: Sequence[Job], late: Callable[[], bool] = lambda: False
    ) -> Iterator[tuple[Job, Answer | Failure]]:
        """Yield jobs with their answers as they end. Once it is `late`, all jobs are stopped."""
        writable(self.home)
        waiting = [_Place(job, number) for number, job in enumerate(jobs)]
        running: dict[Future[Answer], _Place] = {}
        with tempfile.TemporaryDirectory(prefix=MAILBOX, dir=self.home, ignore_cleanup_errors=True) as folder:
            mailbox = Mailbox(Path(folder))
            common = common_orders(mailbox, self.options)
            try:
                while waiting or running:
                    if self.options.stop() or late():
                        mailbox.stop()
                        waiting = []
                    self._hand_out(waiting, running, common)
                    for future in self._ended(running):
                        place = running.pop(future)
                        outcome = self._judged(future, place)
                        if outcome is None:
                            waiting.append(place)
                        elif outcome is not STOPPED:
                            yield place.job, outcome
                    for number, news in mailbox.collected():
                        self.told(jobs[number], news)
            finally:
                if running:  # after an error or when the caller stops early; running jobs save their state
                    mailbox.stop()
                    for future in running:
                        future.cancel()
                    wait(running, timeout=FAREWELL)
        if self.options.stop():
            raise Interrupted(f"Stopped; {CONTINUES}")

    def _hand_out(
        self, waiting: list[_Place], running: dict[Future[Answer], _Place], common: dict[str, Any]
    ) -> None:
        """Submit jobs that are due, up to the slots of the engine."""
        now = time.monotonic()
        for place in [place for place in waiting if place.not_before <= now]:
            if len(running) >= self.engine.slots:
                return
            waiting.remove(place)
            place.attempts += 1
            job = place.job
            order = common | {
                "number": place.number,
                "config": job.config.json,
                "runs": str(job.runs.resolve()),
                "force": job.again,
                "phases": job.phases,
                "keep": job.keep,
            }
            running[self.engine.submit(work, order)] = place

    def _ended(self, running: dict[Future[Answer], _Place]) -> list[Future[Answer]]:
        """Futures that ended within LOOK seconds, in the order of the jobs."""
        if not running:
            time.sleep(LOOK)
            self.engine.await_workers()
            return []
        ended, _ = wait(running, timeout=LOOK, return_when=FIRST_COMPLETED)
        if not ended:
            self.engine.await_workers()
        return sorted(ended, key=lambda future: running[future].number)

    def _judged(self, future: Future[Answer], place: _Place) -> Answer | Failure | None:
        """An answer, a failure, or None if the job is to be submitted again."""
        try:
            answer = future.result()
        except BaseException as error:
            if not self.engine.lost(error):
                if isinstance(error, ImportError):
                    raise Refused(
                        f"A worker cannot load perdure ({error}); install the same on both."
                    ) from None
                if isinstance(error, Exception):
                    return Failure(repr(error), lasting=False)
                raise
            self.engine.await_workers()
            return self._again(place, "its worker was killed, perhaps because memory ran out")
        kind, reason = answer.get("fault"), answer.get("reason", "")
        if kind is None:
            return answer
        if kind == "refused":
            raise Refused(reason)
        if kind == "stopped":
            return STOPPED
        if kind == "busy":
            place.attempts -= 1
            place.not_before = time.monotonic() + LATER
            return None
        if kind == "circumstances":
            return self._again(place, reason)
        return Failure(reason, lasting=kind == "diverged")

    def _again(self, place: _Place, reason: str) -> Failure | None:
        """None to try again, or a failure after ATTEMPTS."""
        if place.attempts >= ATTEMPTS:
            return Failure(f"tried {place.attempts} times: {reason}", lasting=False)
        place.not_before = time.monotonic() + LATER
        return None
