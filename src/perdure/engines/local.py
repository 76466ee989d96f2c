"""Local processes. They are spawned, since a fork would copy torch's threads in any state."""

from __future__ import annotations

import multiprocessing
import multiprocessing.resource_tracker
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from types import FrameType
from typing import Any

from perdure.engines.engine import Engine


class LocalProcesses(Engine):
    """Independent processes: a killed one does not affect the others."""

    def __init__(self, workers: int) -> None:
        """Processes start with their first order."""
        self.pools = [local_pool(1) for _ in range(workers)]
        self.orders: list[list[Future[Any]]] = [[] for _ in range(workers)]

    @property
    def slots(self) -> int:
        """The number of processes."""
        return len(self.pools)

    def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Any:
        """Submit to the least busy process; a dead one is replaced."""
        self.orders = [[order for order in each if not order.done()] for each in self.orders]
        place = min(range(self.slots), key=lambda number: len(self.orders[number]))
        with unmolested():
            try:
                order = self.pools[place].submit(function, *arguments, **named)
            except BrokenProcessPool:
                self.pools[place].shutdown(wait=False)
                self.pools[place] = local_pool(1)
                order = self.pools[place].submit(function, *arguments, **named)
        self.orders[place].append(order)
        return order

    def lost(self, error: BaseException) -> bool:
        """Whether the process was killed."""
        return isinstance(error, BrokenProcessPool)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End all processes."""
        for pool in self.pools:
            pool.shutdown(wait, cancel_futures=cancel_futures)


def local_pool(workers: int) -> ProcessPoolExecutor:
    """A pool of spawned processes that end with this one."""
    return ProcessPoolExecutor(
        workers, mp_context=multiprocessing.get_context("spawn"), initializer=_prepared
    )


def _prepared() -> None:
    """In a worker, at its start: Ctrl-C is for the parent, whose end is its own."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)  # the checkpoint is on disk, and nobody else would end this process


@contextmanager
def unmolested() -> Iterator[None]:
    """Processes that are started here never receive Ctrl-C, not even before they could ignore it."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    multiprocessing.resource_tracker.ensure_running()  # it would lift the mask when it starts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def calling_on_ctrl_c(action: Callable[[], None]) -> Iterator[None]:
    """On Ctrl-C, call `action` before the usual handler.

    Python drops a KeyboardInterrupt that arrives in a destructor or a callback; what `action` did remains.
    """
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(usual):
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        action()
        usual(number, frame)

    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
