"""Searches: throughput of local workers, ranking many records, and what a driver costs a trial on Dask."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from perdure.config import Config, build
from perdure.engines.engine import Engine
from perdure.engines.local import LocalProcesses
from perdure.experiment import run
from perdure.files import write_json
from perdure.search.crew import Crew, Failure, Job
from perdure.search.ledger import Ledger
from perdure.search.selection import ranking
from perdure.search.state import Search
from perdure.search.tuning import designed
from perdure.storage.record import Record
from performance.clock import line

RECORDS = 1000
TRIALS = 16
ORDERS = 200


def configs(count: int, iterations: int) -> list[Config]:
    """Runs of equal length: the same setting with many seeds."""
    values = {
        "benchmark.train": 500,
        "training.iterations": iterations,
        "training.validate_every": iterations,
        "network.hidden": 64,
    }
    return [build("permuted-copy", "si", scale="smoke", seed=seed, **values) for seed in range(count)]


def carried_out(engine: Engine, runs: Path, some: Sequence[Config]) -> float:
    """Seconds until all were run."""
    begun = time.perf_counter()
    crew = Crew(engine, runs)
    for _, outcome in crew.carry_out([Job(config, runs, keep=False) for config in some]):
        assert not isinstance(outcome, Failure), outcome.reason
    return time.perf_counter() - begun


def throughput(workers: int) -> float:
    """Runs a second through local processes that are warm."""
    with tempfile.TemporaryDirectory() as folder, LocalProcesses(workers) as engine:
        warm, *rest = configs(TRIALS + 1, 250)
        carried_out(engine, Path(folder) / "warm", [warm, *rest[: workers - 1]])
        return TRIALS / carried_out(engine, Path(folder) / "runs", rest)


def listing(record: Record) -> float:
    """Seconds in which many finished records are read from disk and ranked, without any state."""
    design = designed("permuted-copy", "si", {"training.learning_rate": [1e-3, 1e-2]}, "smoke", {})
    with tempfile.TemporaryDirectory() as folder:
        names = [f"{number:016x}" for number in range(RECORDS)]
        for number, name in enumerate(names):
            rows = [[50 + number % 37 + task for task in range(3)]] * 3
            write_json(Path(folder) / name / "record.json", record.json | {"hash": name, "validation": rows})
        begun = time.perf_counter()
        ledger = Ledger(Search(design))
        assert all(ledger.settled(name, Path(folder), None) for name in names)
        order = ranking([ledger.runs([name], None) for name in names])
        assert len(order) == RECORDS
        return time.perf_counter() - begun


def overhead(runs: Path, config: Config) -> float:
    """Milliseconds a trial on a Dask cluster when there is nothing left to compute: its record is there."""
    from distributed import LocalCluster

    from perdure.engines.dask_cluster import DaskCluster

    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0", memory_limit=0) as cluster,
        DaskCluster(cluster.scheduler_address) as engine,
    ):
        carried_out(engine, runs, [config])
        return 1e3 * carried_out(engine, runs, [config] * ORDERS) / ORDERS


def report() -> list[bool]:
    """Print all ratios; returns which of them keep their bounds."""
    one, two = throughput(1), throughput(2)
    print(f"a run of {3 * 250} iterations: {1 / one:.2f} s with one worker")
    with tempfile.TemporaryDirectory() as folder:
        (config,) = configs(1, 250)
        record = run(config, folder).record
        seconds = listing(record)
        each = overhead(Path(folder), config)
    return [
        line("runs a second: two local workers / one", two / one, 1.8, at_least=True),
        line(f"{RECORDS} finished records read and ranked, seconds", seconds, 1.0),
        line("driver and Dask, milliseconds a trial", each, 50.0),
    ]


if __name__ == "__main__":
    report()
