"""Searches through real clusters on this machine: workers and drivers are killed, and nothing is lost."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time

import pytest
from distributed import LocalCluster

from perdure.config import build
from perdure.engines.opening import opened
from perdure.errors import Busy, Diverged, Interrupted, PerdureError, Refused
from perdure.executors import common_orders, run_many
from perdure.fingerprint import check, fingerprint
from perdure.learning.engine import RunOptions
from perdure.mailbox import Mailbox
from perdure.search.crew import Crew
from perdure.search.spaces import Range
from perdure.search.state import find_search, place
from perdure.search.study import Budget, Study
from perdure.search.tuning import designed
from perdure.storage.store import all_records
from perdure.worker import PRIVATE, work

GIVEN = {
    "benchmark.tasks": 3,
    "benchmark.train": 200,
    "benchmark.val": 40,
    "benchmark.test": 40,
    "network.hidden": 16,
    "training.iterations": 16,
    "training.validate_every": 8,
}
SPACE = {"training.learning_rate": Range(1e-4, 1e-1), "penalties.si.strength": [0.01, 0.1, 1.0]}
TRIALS, SEEDS = 12, 1
PATIENCE = 300.0
"""Seconds after which a test gives up; none of them takes as long."""
COMMAND = [
    *(sys.executable, "-m", "perdure", "run", "permuted-copy", "si", "--scale", "smoke"),
    *(word for name, value in GIVEN.items() for word in (f"--{name}", str(value))),
    *("--training.learning_rate", "1e-4..1e-1", "--penalties.si.strength", "0.01,0.1,1.0"),
    *("--trials", str(TRIALS), "--seeds", str(SEEDS)),
]


def design():
    return designed("permuted-copy", "si", SPACE, "smoke", GIVEN)


def searched(runs, engine, trials=TRIALS, seeds=SEEDS):
    """The search through an engine, which is shut down."""
    with engine:
        crew = Crew(engine, place(runs, design().id))
        return Study(design(), runs, crew, Budget(trials=trials, seeds=seeds)).run()


def essence(search):
    """All but times."""
    trials = [(trial.values, trial.hashes, trial.final, trial.during, trial.rank) for trial in search.trials]
    return trials, search.chosen, [(c.trial, c.hashes, c.final) for c in search.candidates]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return searched(tmp_path_factory.mktemp("undisturbed"), opened())


def awaited(condition, process=None):
    """Wait until something is so."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        assert process is None or process.poll() is None, process.stderr.read()
        time.sleep(0.02)


class Cluster:
    """A Dask scheduler and worker processes on the loopback interface."""

    def __init__(self, folder, workers, environment):
        self.folder = folder
        self.file = folder / "scheduler.json"
        self.processes = []
        common = ("--no-dashboard", "--scheduler-file", str(self.file))
        self._start("scheduler", ["--host", "127.0.0.1", "--port", "0", *common], {})
        awaited(self.file.exists)
        awaited(lambda: self.file.read_text().endswith("}"))
        self.address = json.loads(self.file.read_text())["address"]
        single = ("--nthreads", "1", "--no-nanny", "--memory-limit", "0", "--local-directory", str(folder))
        self.workers = [self._start("worker", [*common, *single], environment) for _ in range(workers)]

    def _start(self, what, words, environment):
        with open(self.folder / f"{what}-{len(self.processes)}.log", "w") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.dask_{what}", *words],
                stdout=log,
                stderr=log,
                env={**os.environ, **environment},
                cwd=self.folder,
            )
        self.processes.append(process)
        return process

    def close(self):
        for process in reversed(self.processes):
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Two workers, of which the first test kills one."""
    folder = tmp_path_factory.mktemp("cluster")
    made = Cluster(folder, 2, {PRIVATE: str(folder / "own")})
    yield made
    made.close()


def finished(runs):
    """Files of finished trials, and when they were written."""
    return {path: path.stat().st_mtime_ns for path in runs.glob("trials/*/record.json")}


def test_a_killed_worker_and_a_killed_driver_change_nothing(tmp_path, cluster, undisturbed):
    runs = tmp_path / "runs"
    words = [*COMMAND, "--runs", str(runs), "--cluster", cluster.address]
    driver = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    awaited(lambda: len(finished(runs)) >= 2, driver)
    cluster.workers[0].kill()
    awaited(lambda: len(finished(runs)) >= 5 and list(runs.glob("searches/*/search.json")), driver)
    os.kill(driver.pid, signal.SIGKILL)
    driver.communicate()
    before = finished(runs)
    assert 5 <= len(before) < TRIALS
    with pytest.raises(PerdureError, match="has chosen nothing yet"):
        _ = find_search(runs, design().id).values
    search = searched(runs, opened(cluster=cluster.address))
    after = finished(runs)
    assert len(after) == TRIALS
    assert {path: after[path] for path in before} == before  # what was finished was not run again
    assert essence(search) == essence(undisturbed)
    assert not list(runs.rglob(".mailbox-*"))


def test_records_of_workers_with_folders_of_their_own_travel_back(tmp_path, cluster, undisturbed):
    """The worker sees neither mailbox nor runs; its checkpoints stay with it."""
    runs = tmp_path / "runs"
    with opened(cluster=cluster.address) as engine:
        crew = Crew(_Alone(engine, tmp_path / "elsewhere"), place(runs, design().id))
        search = Study(design(), runs, crew, Budget(trials=2, seeds=1)).run()
    assert essence(search)[0][0][:3] == essence(undisturbed)[0][0][:3]
    assert len(finished(runs)) == 2
    (record,) = [record for record in all_records(runs)[0] if record.searches]
    assert record.searches[search.id]["trials"] == 2
    assert not list((runs / record.hash).glob("after-*"))
    assert list(cluster.folder.glob(f"own/*/{record.hash}/after-*"))


class _Alone:
    """An engine whose orders name folders that the worker cannot see, as on another machine."""

    def __init__(self, engine, nowhere):
        self.engine, self.nowhere = engine, nowhere

    def __getattr__(self, name):
        return getattr(self.engine, name)

    def submit(self, function, order):
        hidden = {name: str(self.nowhere) + order[name] for name in ("mailbox", "runs")}
        return self.engine.submit(function, order | hidden)


def test_a_worker_that_differs_is_refused(tmp_path, cluster, monkeypatch):
    ours = fingerprint() | {"kernels": "native avx9"}
    monkeypatch.setattr("perdure.executors.fingerprint", lambda: ours)
    with pytest.raises(Refused, match=r"this side with 'native avx9'.*set PERDURE_KERNELS alike on both"):
        searched(tmp_path / "runs", opened(cluster=cluster.address), trials=1, seeds=0)


def test_what_must_be_equal_is_compared():
    ours = fingerprint()
    check(json.loads(json.dumps(ours)))
    for change, words in (
        ({"torch": "1.0"}, "has torch .*, this side has 1.0"),
        ({"code": "0"}, "other source files"),
        ({"kernels": "native avx9"}, "native avx9"),
        ({"plugins": {"mine.py": "0"}}, "does not have the plugin 'mine.py'"),
    ):
        with pytest.raises(Refused, match=words):
            check(ours | change)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (Diverged("The loss became nan."), "diverged"),
        (PerdureError("The data are missing."), "failed"),
        (ZeroDivisionError("by hand"), "unexpected"),
        (Interrupted("Stopped."), "stopped"),
        (Busy("later"), "busy"),
        (MemoryError(), "circumstances"),
        (OSError(errno.ENOSPC, "No space left on device"), "circumstances"),
    ],
)
def test_what_goes_wrong_in_a_worker_is_an_answer(tmp_path, monkeypatch, error, kind):
    """Whatever is raised while a run learns; a full disk shows itself when a file is written."""

    def fail(*_):
        raise error

    place_ = "perdure.files.os.fsync" if isinstance(error, OSError) else "perdure.experiment.learn"
    monkeypatch.setattr(place_, fail)
    order = common_orders(Mailbox(tmp_path), RunOptions()) | {
        "number": 0,
        "config": build("permuted-copy", "si", scale="smoke", **GIVEN).json,
        "runs": str(tmp_path / "runs"),
        "force": False,
    }
    answer = work(json.loads(json.dumps(order)))
    assert answer["fault"] == kind
    assert answer["reason"]


def test_no_scheduler_is_a_sentence(monkeypatch):
    monkeypatch.setattr("perdure.engines.dask_cluster.CONNECTING", 0.5)
    with pytest.raises(PerdureError, match=r"No Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        opened(cluster="tcp://127.0.0.1:9")


def test_a_scheduler_without_workers_ends_the_search(monkeypatch):
    monkeypatch.setattr("perdure.engines.dask_cluster.GRACE", 1.0)
    with (
        LocalCluster(n_workers=0, processes=False, protocol="tcp", dashboard_address=":0") as nobody,
        pytest.raises(PerdureError, match=r"no worker at tcp://.*the same command continues"),
    ):
        opened(cluster=nobody.scheduler_address)


def test_a_scheduler_that_is_restarted_goes_on(tmp_path, undisturbed):
    """With scheduler and worker as threads of this process, on one port, twice."""
    common = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    first = LocalCluster(protocol="tcp", scheduler_port=0, **common)
    port = int(first.scheduler_address.rpartition(":")[2])
    clusters = [first]

    def changed(search):
        if len(clusters) == 1 and sum(trial.status == "finished" for trial in search.trials) == 2:
            first.close()
            clusters.append(LocalCluster(protocol="tcp", scheduler_port=port, **common))

    runs = tmp_path / "runs"
    try:
        with opened(cluster=first.scheduler_address) as engine:
            crew = Crew(engine, place(runs, design().id))
            search = Study(design(), runs, crew, Budget(trials=5, seeds=0), changed).run()
    finally:
        for each in clusters:
            each.close()
    assert len(clusters) == 2
    assert [trial.final for trial in search.trials] == [trial.final for trial in undisturbed.trials[:5]]


def test_the_same_search_as_jobs_of_submitit(tmp_path, undisturbed):
    """Each job starts an interpreter, so the first trials alone; they are the same ones."""
    search = searched(tmp_path / "runs", opened(2, "slurm-local", tmp_path / "jobs"), trials=2, seeds=0)
    for ours, theirs in zip(search.trials, undisturbed.trials, strict=False):
        assert (ours.values, ours.hashes, ours.final) == (theirs.values, theirs.hashes, theirs.final)
    assert len(search.ranked) == 2


def test_runs_go_through_a_cluster_too(tmp_path, cluster):
    configs = [build("permuted-copy", "si", scale="smoke", seed=seed, **GIVEN) for seed in range(2)]
    with opened(cluster=cluster.address) as engine:
        results = run_many(configs, tmp_path / "runs", executor=engine)
    expected = run_many(configs, tmp_path / "alone")
    assert [one.record.accuracy for one in results] == [one.record.accuracy for one in expected]
    assert all(list(one.folder.glob("after-*")) for one in results)
