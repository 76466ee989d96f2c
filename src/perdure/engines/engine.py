"""The one contract of all engines: `concurrent.futures.Executor`, and what a driver must know beside it."""

from __future__ import annotations

from abc import abstractmethod
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

GRACE = 60.0
"""Seconds without any worker after which a driver gives up; the same command continues later."""


class Engine(Executor):
    """An executor of orders. `submit` takes a plain function and plain JSON data."""

    @property
    @abstractmethod
    def slots(self) -> int:
        """How many orders should be with the engine at a time, so that nobody is idle."""

    def lost(self, error: BaseException) -> bool:
        """Whether an error says that the process or connection is gone, not that the order failed."""
        del error
        return False

    def await_workers(self) -> None:
        """Wait until somebody can work; a PerdureError if nobody comes within GRACE seconds."""


class ThisProcess(Engine):
    """One order after the other, in a thread of this process, so that the driver can go on looking."""

    def __init__(self) -> None:
        """One thread."""
        self.pool = ThreadPoolExecutor(1)

    @property
    def slots(self) -> int:
        """One at a time."""
        return 1

    def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Any:
        """Into the thread."""
        return self.pool.submit(function, *arguments, **named)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the thread."""
        self.pool.shutdown(wait, cancel_futures=cancel_futures)
