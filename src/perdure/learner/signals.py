"""Ctrl-C and termination during a lesson: noted, so that learning stops between two iterations."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

USUAL = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
"""Signals that are noted, if their handlers are the usual ones; those of the user's own stay in place."""


class Signals:
    """Notes the first signal and leaves a second one to the usual handler; use as a context manager."""

    def __init__(self, *, noted: bool) -> None:
        """Unless they are to be noted, signals act as ever."""
        self.noted = noted and threading.current_thread() is threading.main_thread()
        self.received: int | None = None
        self.before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Signals:
        """Begin to note."""
        for number, usual in USUAL.items() if self.noted else ():
            if signal.getsignal(number) == usual:
                self.before[number] = signal.signal(number, self._receive)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Put the handlers back."""
        self._put_back()

    def _receive(self, number: int, frame: FrameType | None) -> None:
        del frame
        self.received = number
        self._put_back()

    def _put_back(self) -> None:
        while self.before:
            signal.signal(*self.before.popitem())

    def deliver(self, said: str) -> None:
        """Let the signal that was noted, if any, do what it does: KeyboardInterrupt, or the process's end."""
        if self.received == signal.SIGINT:
            raise KeyboardInterrupt(said)
        if self.received is not None:
            signal.raise_signal(self.received)
