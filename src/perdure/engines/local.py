"""Processes of this machine. They are spawned: a fork would copy torch's threads in any state."""

from __future__ import annotations

import multiprocessing
import multiprocessing.resource_tracker
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any

from perdure.engines.engine import Engine


class LocalProcesses(Engine):
    """Processes that live and die by themselves: one that is killed takes no other with it."""

    def __init__(self, workers: int) -> None:
        """Each process is started by its first order."""
        self.pools = [local_pool(1) for _ in range(workers)]
        self.orders: list[list[Future[Any]]] = [[] for _ in range(workers)]

    @property
    def slots(self) -> int:
        """As many as there are processes."""
        return len(self.pools)

    def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Any:
        """To the process with the least to do; in place of a dead one a new one is started."""
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
