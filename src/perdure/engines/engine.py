"""The contract of all engines: `concurrent.futures.Executor`, and what a driver needs beyond it."""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

GRACE = 60.0
"""Seconds without any worker after which a driver gives up."""


class Engine(Executor):
    """An executor of orders. `submit` takes a plain function and plain JSON data."""

    @property
    @abstractmethod
    def slots(self) -> int:
        """How many orders to submit at a time, so that no worker is idle."""

    @property
    def workers(self) -> int:
        """How many orders are carried out at the same time."""
        return self.slots

    def lost(self, error: BaseException) -> bool:
        """Whether an error says that the process or connection is gone, not that the order failed."""
        del error
        return False

    def await_workers(self) -> None:
        """Wait until there is a worker; raise a PerdureError after GRACE seconds without any."""


class Polled(Engine):
    """An engine that polls external jobs in a thread of its own.

    Polling also works for systems that go away and come back.
    """

    pause: float = 0.02
    """Seconds between polls."""

    def __init__(self) -> None:
        """Start polling."""
        self.orders: dict[Future[Any], Any] = {}
        self.ended = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    @abstractmethod
    def give(self, function: Any, order: Any) -> Any:
        """Submit an order; returns a handle to it."""

    @abstractmethod
    def answered(self, order: Any) -> bool:
        """Whether there is an answer, or will never be one."""

    @abstractmethod
    def answer(self, order: Any) -> Any:
        """The answer; raises if there will be none."""

    def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Any:
        """Submit an order."""
        (order,) = (*arguments, *named.values())
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        self.orders[future] = self.give(function, order)
        return future

    def _watch(self) -> None:
        """Set results as answers arrive."""
        while not self.ended.is_set():
            for future, order in list(self.orders.items()):
                try:
                    if not self.answered(order):
                        continue
                    answer = self.answer(order)
                except BaseException as error:
                    future.set_exception(error)
                else:
                    future.set_result(answer)
                del self.orders[future]
            time.sleep(self.pause)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Stop polling."""
        del wait, cancel_futures
        self.ended.set()


class ThisProcess(Engine):
    """One order after the other, in a thread of this process."""

    def __init__(self) -> None:
        """Start the thread."""
        self.pool = ThreadPoolExecutor(1)

    @property
    def slots(self) -> int:
        """One at a time."""
        return 1

    def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Any:
        """Queue an order for the thread."""
        return self.pool.submit(function, *arguments, **named)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the thread."""
        self.pool.shutdown(wait, cancel_futures=cancel_futures)
