"""run_many(configs): many runs, in this process or through any `concurrent.futures.Executor`.

Only one plain function and plain JSON data cross process boundaries, so a pool of local processes, Dask or a
batch system can be used. While runs are in progress, they and their caller share a folder, the mailbox: each
run appends its news to a file there, and a file called stop asks all runs to save and stop.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.resource_tracker
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from perdure.config import Config, from_json
from perdure.errors import Interrupted, PerdureError
from perdure.experiment import RunResult, run
from perdure.learning.engine import Progress, RunOptions
from perdure.mailbox import Building, Mailbox, News
from perdure.registry import load_plugin, loaded_plugins
from perdure.storage.store import to_record

Watcher = Callable[[int, News], None]
"""Called with the index of the run's config in the list, and its news."""

Order = Mapping[str, Any]
"""What a worker receives, as plain JSON data."""

LOOK = 0.2
"""Seconds between checks of the mailbox."""
CONTINUES = "the same command continues where it stopped."


def nobody(number: int, news: News) -> None:
    """Ignore news."""


def run_many(
    configs: Sequence[Config],
    runs: Path | str = "runs",
    *,
    workers: int = 1,
    force: bool = False,
    options: RunOptions | None = None,
    watch: Watcher = nobody,
    executor: Executor | None = None,
) -> list[RunResult]:
    """Run configs, several at once if there are workers; results are in the order of the configs.

    A config that is given twice is run once. If a run fails, or its process dies, the others save their state
    and stop, and one error says why; called again, all continue where they stopped. An `executor` other than
    the pool of local processes needs workers that can see the folder `runs`.
    """
    options, runs = options or RunOptions(), Path(runs)
    if workers < 1:
        raise PerdureError(f"workers: must be an integer of at least 1 (given: {workers!r}).")
    unique = list({config.hash: config for config in configs}.values())
    places = {config.hash: [n for n, c in enumerate(configs) if c.hash == config.hash] for config in unique}

    def told(number: int, news: News) -> None:
        for place in places[unique[number].hash]:
            watch(place, news)

    if executor is not None:
        results = _through(executor, unique, runs, force, options, told, work)
    elif min(workers, len(unique)) > 1:
        with _local_pool(min(workers, len(unique))) as pool:
            results = _through(pool, unique, runs, force, options, told, _local_work)
    else:
        results = [
            _watched(config, runs, force, options, partial(told, number))
            for number, config in enumerate(unique)
        ]
    found = {config.hash: result for config, result in zip(unique, results, strict=True)}
    return [found[config.hash] for config in configs]


def _watched(
    config: Config, runs: Path, force: bool, options: RunOptions, tell: Callable[[News], None]
) -> RunResult:
    """One run in this process."""
    watched = replace(
        options, watch=tell, tell=tell, building=lambda what, done, total: tell(Building(what, done, total))
    )
    result = run(config, runs, watched, force=force)
    for warning in result.warnings:
        tell(warning)
    tell(result)
    return result


def _through(
    executor: Executor,
    configs: Sequence[Config],
    runs: Path,
    force: bool,
    options: RunOptions,
    watch: Watcher,
    function: Callable[[Order], dict[str, Any]],
) -> list[RunResult]:
    """Submit all, pass on their news, and wait for all of them, whatever happens."""
    # Local workers can see the temporary folder; others can see the folder they write to.
    place = None if function is _local_work else runs
    with tempfile.TemporaryDirectory(prefix=".mailbox-", dir=place) as folder:
        mailbox = Mailbox(Path(folder))
        common = {"runs": str(runs), "force": force, "mailbox": folder, "save_every": options.save_every}
        common |= {"device": options.device, "threads": options.threads, "plugins": loaded_plugins()}
        jobs: dict[Future[dict[str, Any]], int] = {}
        results: dict[int, RunResult] = {}
        faults: list[PerdureError] = []
        try:
            with _unmolested():
                for number, config in enumerate(configs):
                    order = common | {"number": number, "config": config.json}
                    jobs[executor.submit(function, order)] = number
            for job in _ended(jobs, mailbox, options, watch):
                try:
                    results[jobs[job]] = _result(job)
                    watch(jobs[job], results[jobs[job]])
                except PerdureError as fault:
                    faults.append(fault)
                    mailbox.stop()  # the others save what they have done
        except BaseException:  # in particular Ctrl-C: no worker is left behind
            mailbox.stop()
            wait(jobs)
            raise
    if faults:
        raise _worst(faults, asked=options.stop())
    return [results[number] for number in range(len(configs))]


def _ended(
    jobs: Mapping[Future[dict[str, Any]], int], mailbox: Mailbox, options: RunOptions, watch: Watcher
) -> Iterator[Future[dict[str, Any]]]:
    """The jobs as they end; meanwhile, pass on news, and requests to stop."""
    pending = set(jobs)
    while pending:
        ended, pending = wait(pending, timeout=LOOK, return_when=FIRST_COMPLETED)
        for number, news in mailbox.collected():
            watch(number, news)
        if options.stop():
            mailbox.stop()
        yield from ended


def _result(job: Future[dict[str, Any]]) -> RunResult:
    """What a worker returned; raises a helpful error if it died."""
    try:
        data = job.result()
    except PerdureError:
        raise
    except BrokenProcessPool:
        raise PerdureError(
            "A worker process was killed, perhaps because memory ran out (fewer workers need less); "
            f"the other runs are saved, and {CONTINUES}"
        ) from None
    except Exception as fault:
        raise PerdureError(
            f"A worker ended unexpectedly ({fault!r}); the other runs are saved, and {CONTINUES}"
        ) from fault
    return RunResult(to_record(data["record"]), Path(data["folder"]), data["found"], data["warnings"])


def _worst(faults: Sequence[PerdureError], *, asked: bool) -> PerdureError:
    """The error to report: a requested stop, or else the first that is not a stop."""
    stops = [fault for fault in faults if isinstance(fault, Interrupted)]
    if asked:
        return stops[0] if stops else Interrupted(f"Stopped; {CONTINUES}")
    return next((fault for fault in faults if not isinstance(fault, Interrupted)), faults[0])


def work(order: Order) -> dict[str, Any]:
    """In a worker: carry out one run, with arguments and result as plain JSON data."""
    mailbox, number = Mailbox(Path(order["mailbox"])), order["number"]
    if mailbox.stopped():
        raise Interrupted(f"Stopped; {CONTINUES}")
    spoke = 0.0

    def tell(news: News) -> None:
        nonlocal spoke
        if isinstance(news, RunResult):
            return  # it is returned as the result
        if isinstance(news, str) or (isinstance(news, Progress) and news.accuracy is not None):
            mailbox.put(number, news)
        elif time.monotonic() - spoke > LOOK:
            spoke = time.monotonic()
            mailbox.put(number, news)

    for plugin in order["plugins"]:
        load_plugin(plugin)
    options = RunOptions(
        stop=mailbox.stopped,
        save_every=order["save_every"],
        device=order["device"],
        threads=order["threads"],
    )
    result = _watched(from_json(order["config"]), Path(order["runs"]), order["force"], options, tell)
    return {
        "record": result.record.json,
        "folder": str(result.folder),
        "found": result.found,
        "warnings": result.warnings,
    }


def _local_pool(workers: int) -> ProcessPoolExecutor:
    """Processes on this machine. They are spawned, since a fork would copy torch's threads in any state."""
    return ProcessPoolExecutor(
        workers, mp_context=multiprocessing.get_context("spawn"), initializer=_prepared
    )


def _prepared() -> None:
    """Prepare a worker of the local pool: Ctrl-C is for the parent, and the worker ends with the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)  # the checkpoint is on disk, and nothing else would end this process


def _local_work(order: Order) -> dict[str, Any]:
    """In a worker of the local pool: `work`, which saves its state before the process is terminated.

    A pool whose worker died terminates the others with SIGTERM, which takes effect once the run is saved.
    """
    seen = False

    def receive(*_: object) -> None:
        nonlocal seen
        seen = True
        Mailbox(Path(order["mailbox"])).stop()

    before = signal.signal(signal.SIGTERM, receive)
    try:
        return work(order)
    finally:
        signal.signal(signal.SIGTERM, before)
        if seen:
            os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def _unmolested() -> Iterator[None]:
    """Processes started here never receive Ctrl-C, not even before they can ignore it."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    multiprocessing.resource_tracker.ensure_running()  # it would lift the mask on starting
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
