"""perdure cluster: a local Dask cluster, to try --cluster."""

from __future__ import annotations

import os
import time

from perdure.commands.arguments import check_count, check_names, parse, whole_number
from perdure.errors import PerdureError, with_extra

HELP = """\
perdure cluster start: a Dask scheduler and workers on this machine, until Ctrl-C

  --workers N          worker processes with one thread each (default: one per core)
  --port P             port of the scheduler (default: 8786; 0 for any free one)

To try it: perdure search ... --cluster tcp://127.0.0.1:8786. For several machines see docs/searching.md.
"""

HOST, PORT = "127.0.0.1", 8786


def cluster(words: list[str]) -> int:
    """Start scheduler and workers, and wait."""
    read = parse(words)
    check_names(read, ("workers", "port"))
    check_count(read, 1, "perdure cluster")
    if read.help:
        print(HELP, end="")
        return 0
    if read.positional != ["start"]:
        raise PerdureError("The only command is perdure cluster start.")
    workers = whole_number(read.options, "workers", os.cpu_count() or 1, 1)
    port = whole_number(read.options, "port", PORT, 0)
    try:
        from distributed import LocalCluster
    except ImportError:
        raise PerdureError(f"perdure cluster needs Dask: {with_extra('cluster')}.") from None
    from perdure.commands.executing import Signals

    signals = Signals()
    try:
        started = LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            host=HOST,
            scheduler_port=port,
            dashboard_address=f"{HOST}:0",
            memory_limit=0,  # runs report themselves if memory runs out
        )
    except (OSError, RuntimeError) as error:
        raise PerdureError(f"No scheduler could be started on port {port} ({error}); try --port 0.") from None
    with started:
        print(f"{workers} workers: --cluster {started.scheduler_address} (Ctrl-C ends them)", flush=True)
        while not signals.asked():
            time.sleep(0.2)
    return 0
