"""run_many(configs): many runs, in this process or through any `concurrent.futures.Executor`.

Only one plain function and plain JSON data cross process boundaries, so a pool of local processes, Dask or a
batch system can be used. While runs are in progress, they and their caller share a folder, the mailbox: each
run appends its news to a file there, and a file called stop asks all runs to save and stop.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from typing import Any

from perdure.config import Config, check_config
from perdure.engines.local import LocalProcesses, calling_on_ctrl_c, unmolested
from perdure.errors import Interrupted, PerdureError, Refused
from perdure.experiment import RunResult
from perdure.fingerprint import fingerprint
from perdure.learning.engine import RunOptions
from perdure.mailbox import Mailbox, News
from perdure.registry import loaded_plugins
from perdure.storage.store import RunFolder, to_record, writable
from perdure.worker import CONTINUES, LOOK, Order, local_work, watched_run, work

Watcher = Callable[[int, News], None]
"""Called with the index of the run's config in the list, and its news."""


def nobody(number: int, news: News) -> None:
    """Ignore news."""


def run_many(
    configs: Iterable[Config],
    runs: Path | str = "runs",
    *,
    workers: int = 1,
    force: bool = False,
    options: RunOptions | None = None,
    watch: Watcher = nobody,
    executor: Executor | None = None,
) -> list[RunResult]:
    """Run configs, several at once if there are workers; results are in the order of the configs.

    A config that is given twice is run once. If a run fails, or its process dies, the others save themselves
    and stop, and one sentence says why; called again, all go on where they were. Workers of another
    `executor` that do not see the folder `runs` keep checkpoints; their records are written here.
    """
    options, runs = options or RunOptions(), Path(runs)
    if not isinstance(workers, int) or workers < 1:
        raise PerdureError(f"workers: must be an integer of at least 1 (given: {workers!r}).")
    configs = _listed(configs)
    unique = list({config.hash: config for config in configs}.values())
    places = {config.hash: [n for n, c in enumerate(configs) if c.hash == config.hash] for config in unique}

    def told(number: int, news: News) -> None:
        for place in places[unique[number].hash]:
            watch(place, news)

    if executor is not None:
        results = _through(executor, unique, runs, force, options, told, work)
    elif min(workers, len(unique)) > 1:
        with LocalProcesses(min(workers, len(unique))) as processes:
            results = _through(processes, unique, runs, force, options, told, local_work)
    else:
        results = [
            watched_run(config, runs, force, options, partial(told, number))
            for number, config in enumerate(unique)
        ]
    found = {config.hash: result for config, result in zip(unique, results, strict=True)}
    return [found[config.hash] for config in configs]


def _listed(configs: Iterable[Config]) -> list[Config]:
    """The configs, which may be made one by one, as a list; an error for anything else."""
    if isinstance(configs, (Config, str)) or not isinstance(configs, Iterable):
        raise PerdureError(
            f"configs: must be a list of configs, such as [config] (given: a {type(configs).__name__})."
        )
    listed = list(configs)
    for place, config in enumerate(listed):
        check_config(config, f"configs[{place}]")
    return listed


def _through(
    executor: Executor,
    configs: Sequence[Config],
    runs: Path,
    force: bool,
    options: RunOptions,
    watch: Watcher,
    function: Callable[[Order], dict[str, Any]],
) -> list[RunResult]:
    """Submit all, pass their news on, and wait for all of them, whatever happens."""
    # Workers of this machine see its temporary folder; others see what they write to.
    place = None if function is local_work else runs
    if place is not None:
        writable(place)
    with tempfile.TemporaryDirectory(prefix=".mailbox-", dir=place, ignore_cleanup_errors=True) as folder:
        mailbox = Mailbox(Path(folder))
        common = common_orders(mailbox, options) | {"runs": str(runs.resolve()), "force": force}
        jobs: dict[Future[dict[str, Any]], int] = {}
        results: dict[int, RunResult] = {}
        faults: list[PerdureError] = []
        try:
            with unmolested():
                for number, config in enumerate(configs):
                    order = common | {"number": number, "config": config.json}
                    jobs[executor.submit(function, order)] = number
            with calling_on_ctrl_c(mailbox.stop):
                for job in _ended(jobs, mailbox, options, watch):
                    try:
                        results[jobs[job]] = _result(job, runs, force)
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


def common_orders(mailbox: Mailbox, options: RunOptions) -> dict[str, Any]:
    """What all orders of one driver have in common."""
    return {
        "mailbox": str(mailbox.folder.resolve()),
        "save_every": options.save_every,
        "device": options.device,
        "threads": options.threads,
        "plugins": list(loaded_plugins()),
        "fingerprint": fingerprint(),
    }


def _result(job: Future[dict[str, Any]], runs: Path, again: bool) -> RunResult:
    """What a worker answered; a sentence where it died."""
    try:
        data = job.result()
    except BrokenProcessPool:
        raise PerdureError(
            "A worker process was killed, perhaps because memory ran out (fewer workers need less); "
            f"the other runs are saved, and {CONTINUES}"
        ) from None
    except Exception as fault:
        raise _unexpected(repr(fault)) from fault
    if "fault" in data:
        raise _fault(data["fault"], data["reason"])
    return brought_home(data, runs, again=again)


def _fault(kind: str, reason: str) -> PerdureError:
    if kind == "stopped":
        return Interrupted(reason)
    if kind == "refused":
        return Refused(reason)
    return _unexpected(reason) if kind == "unexpected" else PerdureError(reason)


def _unexpected(reason: str) -> PerdureError:
    return PerdureError(f"A worker ended unexpectedly ({reason}); the other runs are saved, and {CONTINUES}")


def brought_home(answer: Mapping[str, Any], runs: Path, *, again: bool = False) -> RunResult:
    """The result that a worker answered with; its record is written here, if it is not here yet.

    An earlier record is replaced if the run was asked for `again`.
    """
    record = to_record(answer["record"])
    folder = RunFolder(runs, record.hash)
    folder.bring(record, again=again)
    return RunResult(record, folder.path, answer["found"], answer["warnings"])


def _worst(faults: Sequence[PerdureError], *, asked: bool) -> PerdureError:
    """The error to report: a requested stop, or else the first that is not a stop."""
    stops = [fault for fault in faults if isinstance(fault, Interrupted)]
    if asked:
        return stops[0] if stops else Interrupted(f"Stopped; {CONTINUES}")
    return next((fault for fault in faults if not isinstance(fault, Interrupted)), faults[0])
