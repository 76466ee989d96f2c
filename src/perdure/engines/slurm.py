"""Slurm, through submitit: each order is a job of its own, whose files lie in a folder that all see."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from perdure.engines.engine import Engine
from perdure.errors import PerdureError

LOOK_EVERY = {True: 0.1, False: 2.0}
"""Seconds between looks at jobs: of this machine, and of Slurm."""


class Submitted(Engine):
    """Jobs of a batch system, at most `most` at a time."""

    def __init__(self, folder: Path, most: int, settings: Mapping[str, str], *, local: bool) -> None:
        """`settings` are submitit's (timeout_min, mem_gb, cpus_per_task, slurm_partition and others)."""
        try:
            import submitit
        except ImportError:
            raise PerdureError("--cluster slurm needs submitit: pip install 'perdure[slurm]'.") from None
        if not local and submitit.AutoExecutor.which() != "slurm":
            raise PerdureError("--cluster slurm: this machine has no Slurm (no sbatch was found).")
        self.executor = submitit.AutoExecutor(folder=folder, cluster="local" if local else "slurm")
        typed = {name: int(value) if value.isdigit() else value for name, value in settings.items()}
        try:
            self.executor.update_parameters(**{"name": "perdure", "timeout_min": 24 * 60} | typed)
        except (NameError, TypeError, ValueError, AssertionError) as error:
            why = str(error).splitlines()[0].rstrip(".")
            raise PerdureError(f"--slurm: submitit does not take these settings ({why}).") from None
        self.most, self.pause = most, LOOK_EVERY[local]
        self.jobs: dict[Future[Any], Any] = {}
        self.ended = threading.Event()
        self.watcher = threading.Thread(target=self._watch, daemon=True)
        self.watcher.start()

    @property
    def slots(self) -> int:
        """As many as were asked for."""
        return self.most

    def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Any:
        """As a job."""
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        self.jobs[future] = self.executor.submit(function, *arguments, **named)
        return future

    def lost(self, error: BaseException) -> bool:
        """Whether a job ended without an answer: killed, out of time, out of memory."""
        from submitit.core.utils import FailedJobError, UncompletedJobError

        return isinstance(error, UncompletedJobError) and not isinstance(error, FailedJobError)

    def _watch(self) -> None:
        """Pass on what jobs answer."""
        while not self.ended.is_set():
            for future, job in list(self.jobs.items()):
                if job.done():
                    del self.jobs[future]
                    try:
                        future.set_result(job.result())
                    except BaseException as error:
                        future.set_exception(error)
            time.sleep(self.pause)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Cancel what is left; whoever shut down has waited for what it wanted."""
        del wait, cancel_futures
        self.ended.set()
        for job in list(self.jobs.values()):
            job.cancel(check=False)
