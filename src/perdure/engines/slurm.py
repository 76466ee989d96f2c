"""Slurm, through submitit: each order is a job, with its files in a shared folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perdure.engines.engine import Polled
from perdure.errors import PerdureError, with_extra

LOOK_EVERY = {True: 0.1, False: 2.0}
"""Seconds between polls: of local jobs, and of Slurm."""
DEFAULTS: Mapping[str, str | int] = {"name": "perdure", "timeout_min": 24 * 60}


class Submitted(Polled):
    """Jobs of a batch system, at most `most` at a time."""

    def __init__(self, folder: Path, most: int, settings: Mapping[str, str], *, local: bool) -> None:
        """`settings` are submitit's (timeout_min, mem_gb, cpus_per_task, slurm_partition and others)."""
        try:
            import submitit
        except ImportError:
            raise PerdureError(f"--cluster slurm needs submitit: {with_extra('slurm')}.") from None
        if not local and submitit.AutoExecutor.which() != "slurm":
            raise PerdureError("--cluster slurm: this machine has no Slurm (no sbatch was found).")
        self.executor = submitit.AutoExecutor(folder=folder, cluster="local" if local else "slurm")
        typed = {name: int(value) if value.isdigit() else value for name, value in settings.items()}
        try:
            self.executor.update_parameters(**(dict(DEFAULTS) | typed))
        except (NameError, TypeError, ValueError, AssertionError) as error:
            why = str(error).splitlines()[0].rstrip(".")
            raise PerdureError(f"--slurm: submitit does not take these settings ({why}).") from None
        self.most, self.pause = most, LOOK_EVERY[local]
        super().__init__()

    @property
    def slots(self) -> int:
        """The maximum number of jobs."""
        return self.most

    def give(self, function: Any, order: Any) -> Any:
        """Submit a job."""
        return self.executor.submit(function, order)

    def answered(self, order: Any) -> bool:
        """Whether the job has ended."""
        return bool(order.done())

    def answer(self, order: Any) -> Any:
        """What the job returned."""
        return order.result()

    def lost(self, error: BaseException) -> bool:
        """Whether a job ended without an answer: killed, out of time, out of memory."""
        from submitit.core.utils import FailedJobError, UncompletedJobError

        return isinstance(error, UncompletedJobError) and not isinstance(error, FailedJobError)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Cancel the jobs that are left."""
        super().shutdown(wait, cancel_futures=cancel_futures)
        for job in list(self.orders.values()):
            job.cancel(check=False)
