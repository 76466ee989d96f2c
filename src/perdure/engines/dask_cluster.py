"""A Dask cluster: a scheduler by its address, and workers on any machine that reach it."""

from __future__ import annotations

import logging
import time
from asyncio import CancelledError as AsyncCancelled
from concurrent.futures import CancelledError
from typing import Any

from perdure.engines.engine import GRACE, Engine
from perdure.errors import PerdureError
from perdure.worker import CONTINUES

LOOK_EVERY = 1.0
"""Seconds between looks at how many workers there are."""
CONNECTING = 10.0
"""Seconds to reach the scheduler at first."""


class DaskCluster(Engine):
    """Orders go to a scheduler, which gives them to its workers and, if one dies, to another."""

    def __init__(self, address: str) -> None:
        """Connect."""
        try:
            from distributed import Client
        except ImportError:
            raise PerdureError("--cluster needs Dask: pip install 'perdure[cluster]'.") from None
        logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what happens, we say ourselves
        self.address = address
        try:
            self.client = Client(address, timeout=CONNECTING, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise PerdureError(
                f"No Dask scheduler answers at {address} ({type(error).__name__}); perdure cluster start "
                f"starts one here."
            ) from None
        self.executor = self.client.get_executor(pure=False)
        self.threads, self.looked, self.alone_since = 0, -LOOK_EVERY, time.monotonic()
        self.await_workers()

    @property
    def slots(self) -> int:
        """Twice as many orders as workers have threads, so that the next is at hand."""
        return max(2 * self.threads, 1)

    def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Any:
        """To the scheduler; while it is away, the order waits for it or is cancelled."""
        return self.executor.submit(function, *arguments, **named)

    def lost(self, error: BaseException) -> bool:
        """Whether a worker was killed, again and again, or the scheduler is gone."""
        from distributed import KilledWorker
        from distributed.comm.core import CommClosedError

        gone = (KilledWorker, CommClosedError, CancelledError, AsyncCancelled, OSError, TimeoutError)
        return isinstance(error, gone)

    def await_workers(self) -> None:
        """Look how many there are; give up where for GRACE seconds there was none."""
        while True:
            now = time.monotonic()
            if now - self.looked < LOOK_EVERY and self.threads:
                return
            self.looked, self.threads = now, self._threads()
            if self.threads:
                self.alone_since = now
                return
            if now - self.alone_since > GRACE:
                raise PerdureError(
                    f"There has been no worker at {self.address} for {GRACE:.0f} seconds; start some, then "
                    f"{CONTINUES}"
                )
            time.sleep(LOOK_EVERY / 2)

    def _threads(self) -> int:
        """Threads of all workers; none while the scheduler does not answer."""
        try:
            return sum(self.client.nthreads().values())
        except (OSError, TimeoutError, AttributeError, RuntimeError):  # while it reconnects
            return 0

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Part from the scheduler, which goes on."""
        del wait, cancel_futures
        self.client.close(timeout=2)
