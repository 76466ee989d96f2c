"""The one contract of all engines: `concurrent.futures.Executor`, and what a driver must know beside it."""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from concurrent.futures import Executor, Future, ThreadPoolExecutor
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


class Polled(Engine):
    """An engine whose orders are with others, and are looked at again and again by a thread of its own.

    So nothing but a look is needed of a system that may go away and come back.
    """

    pause: float = 0.02
    """Seconds between looks."""

    def __init__(self) -> None:
        """Begin to look."""
        self.orders: dict[Future[Any], Any] = {}
        self.ended = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    @abstractmethod
    def give(self, function: Any, order: Any) -> Any:
        """Hand an order out; what stands for it there."""

    @abstractmethod
    def answered(self, order: Any) -> bool:
        """Whether there is an answer, or will never be one."""

    @abstractmethod
    def answer(self, order: Any) -> Any:
        """The answer; raises if there will be none."""

    def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Any:
        """Hand an order out."""
        (order,) = (*arguments, *named.values())
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        self.orders[future] = self.give(function, order)
        return future

    def _watch(self) -> None:
        """Pass answers on."""
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
        """Look no more."""
        del wait, cancel_futures
        self.ended.set()


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
