"""Local processes. They are spawned, since a fork would copy torch's threads in any state."""

from __future__ import annotations

import multiprocessing
import multiprocessing.resource_tracker
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from queue import LifoQueue
from types import FrameType
from typing import Any

from perdure.engines.engine import Engine


class LocalProcesses(Engine):
    """Independent processes: a killed one does not affect the others, and is noticed at once.

    One pool of several processes would not do: it ends all when one dies, and a process that it starts while
    others are at work may die unnoticed, since its manager learns of new processes only with the next answer.
    """

    def __init__(self, workers: int) -> None:
        """Processes start with their first order."""
        self.threads = ThreadPoolExecutor(workers)  # one for each process, to wait for its answers
        self.idle: LifoQueue[ProcessPoolExecutor] = LifoQueue()  # first the one that was busy last
        self.count = workers
        for _ in range(workers):
            self.idle.put(_process())

    @property
    def slots(self) -> int:
        """The number of processes."""
        return self.count

    def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Any:
        """Submit to the first process that is free; a dead one is replaced."""
        return self.threads.submit(self._carry_out, function, *arguments, **named)

    def _carry_out(self, function: Any, /, *arguments: Any, **named: Any) -> Any:
        process = self.idle.get()
        try:
            with unmolested():
                try:
                    order = process.submit(function, *arguments, **named)
                except BrokenProcessPool:  # it died while it was idle
                    process = _replaced(process)
                    order = process.submit(function, *arguments, **named)
            return order.result()
        except BrokenProcessPool:
            process = _replaced(process)
            raise
        finally:
            self.idle.put(process)

    def lost(self, error: BaseException) -> bool:
        """Whether the process was killed."""
        return isinstance(error, BrokenProcessPool)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End all processes."""
        self.threads.shutdown(wait, cancel_futures=cancel_futures)
        while not self.idle.empty():
            self.idle.get().shutdown(wait)


def _process() -> ProcessPoolExecutor:
    """One spawned process that ends with this one."""
    return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"), initializer=_prepared)


def _replaced(process: ProcessPoolExecutor) -> ProcessPoolExecutor:
    """Another one for a process that died."""
    process.shutdown(wait=False)
    return _process()


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
