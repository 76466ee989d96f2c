"""A Dask cluster, given by the address of its scheduler."""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from typing import Any

from perdure.engines.engine import GRACE, Polled
from perdure.errors import PerdureError, with_extra
from perdure.worker import CONTINUES

LOOK_EVERY = 1.0
"""Seconds between counts of the workers."""
CONNECTING = 10.0
"""Timeout for connecting to the scheduler, in seconds."""
FETCHING = 30.0
"""Timeout for fetching an answer, in seconds."""


class Gone(Exception):
    """The scheduler or worker that had the order is gone."""


class DaskCluster(Polled):
    """Orders go to a scheduler, which passes them to a worker and, if it dies, to another.

    If the scheduler dies, orders count as lost and are submitted again once it is back.
    """

    def __init__(self, address: str) -> None:
        """Connect."""
        try:
            import distributed
        except ImportError:
            raise PerdureError(f"--cluster needs Dask: {with_extra('cluster')}.") from None
        for name in [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]:
            logging.getLogger(name).setLevel(logging.CRITICAL)  # errors are reported by the driver
        self.address = address
        self.connect = distributed.Client
        try:
            self.client = self._connected()
        except (OSError, TimeoutError, ValueError) as error:
            raise PerdureError(
                f"No Dask scheduler answers at {address} ({type(error).__name__}); perdure cluster start "
                f"starts one here."
            ) from None
        self.threads, self.looked, self.alone_since = 0, -LOOK_EVERY, time.monotonic()
        super().__init__()
        self.await_workers()

    def _connected(self) -> Any:
        return self.connect(self.address, timeout=CONNECTING, set_as_default=False)

    @property
    def slots(self) -> int:
        """Twice the number of worker threads, so that no worker waits for its next order."""
        return max(2 * self.threads, 1)

    @property
    def workers(self) -> int:
        """The number of worker threads."""
        return max(self.threads, 1)

    def give(self, function: Any, order: Any) -> Any:
        """Submit to the scheduler; an order that does not reach it is lost."""
        from distributed.client import ClosedClientError

        client = self.client
        try:
            return client, client.submit(function, order, pure=False)
        except (OSError, RuntimeError, TimeoutError, ClosedClientError):
            return client, None

    def answered(self, order: Any) -> bool:
        """Whether it has finished, failed or been lost."""
        client, future = order
        return future is None or future.status != "pending" or client.status != "running"

    def answer(self, order: Any) -> Any:
        """What the worker returned."""
        client, future = order
        if future is None or client.status != "running" or future.status not in ("finished", "error"):
            raise Gone
        return future.result(timeout=FETCHING)

    def lost(self, error: BaseException) -> bool:
        """Whether workers were killed repeatedly, or the scheduler is gone."""
        from distributed import KilledWorker

        # Of OSError are errors of connections; CancelledError is no Exception.
        return isinstance(error, Gone | KilledWorker | OSError | TimeoutError) or not isinstance(
            error, Exception | KeyboardInterrupt | SystemExit
        )

    def await_workers(self) -> None:
        """Count the workers; raise if there has been none for GRACE seconds."""
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
        """Number of threads of all workers; 0 while the scheduler does not answer."""
        try:
            if self.client.status != "running":
                old, self.client = self.client, self._connected()
                old.close(timeout=0)
            return sum(self.client.nthreads().values())
        except (OSError, TimeoutError, ValueError, AttributeError, RuntimeError):
            return 0

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Disconnect; the scheduler keeps running."""
        super().shutdown(wait, cancel_futures=cancel_futures)
        with suppress(TimeoutError):  # a busy machine; all answers are here
            self.client.close(timeout=2)
