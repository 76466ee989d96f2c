"""Many runs from Python: the same numbers as one by one, and what happens when a process or memory ends."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import partial

import pytest

import perdure
from perdure.config import Config
from perdure.engines.local import LocalProcesses
from perdure.errors import Interrupted, PerdureError
from perdure.executors import run_many, work
from perdure.experiment import RunResult, run
from perdure.files import read_json, read_tensors
from perdure.learning.engine import Progress, RunOptions
from perdure.storage.store import RunFolder
from perdure.worker import PRIVATE
from test_learning import SMALL

ONCE = RunOptions(save_every=1e9)
"""A checkpoint is written only by a run that is asked to stop."""
ENDLESS = 10_000_000
"""Iterations of a run that is still within its first task however late the other one begins."""


def configs_of(count: int, iterations: int = 6, **values: object) -> list[Config]:
    options = SMALL | {"training.iterations": iterations} | values
    return [
        perdure.build("permuted-copy", "fine-tuning", scale="smoke", seed=s, **options) for s in range(count)
    ]


def numbers(results: list[RunResult]) -> list[object]:
    return [(one.record.seed, one.record.accuracy, one.record.curves) for one in results]


def told(news: dict[int, list[object]], number: int, what: object) -> None:
    news[number].append(what)


def test_many_runs_equal_single_ones(tmp_path):
    configs = configs_of(3)
    alone = [run(config, tmp_path / "alone") for config in configs]
    for workers in (1, 2):
        news: dict[int, list[object]] = {number: [] for number in range(len(configs))}
        runs = tmp_path / str(workers)
        many = run_many(configs, runs, workers=workers, watch=partial(told, news))
        assert numbers(many) == numbers(alone)
        assert not any(one.found for one in many)
        for number, result in enumerate(many):  # each run told of every phase's end, and last of its result
            assert [one.accuracy for one in news[number] if isinstance(one, Progress) and one.accuracy] == (
                result.record.accuracy
            )
            assert news[number][-1] == result
        assert all(one.found for one in run_many(configs, runs, workers=workers))
        assert sorted(path.name for path in runs.iterdir()) == sorted(config.hash for config in configs)


def test_a_config_given_twice_is_run_once(tmp_path):
    first, second = configs_of(2)
    results = run_many([first, second, first], tmp_path, workers=3)
    assert [one.record.seed for one in results] == [0, 1, 0]
    assert results[0] == results[2]
    assert run_many([], tmp_path, workers=2) == []
    with pytest.raises(PerdureError, match="workers"):
        run_many([first], tmp_path, workers=0)


def test_what_is_no_config_is_named(tmp_path):
    (config,) = configs_of(1)
    for wrong in ("permuted-copy", None, config.json):
        with pytest.raises(PerdureError, match=r"^config: a config is needed, such as build\("):
            run(wrong, tmp_path)
    for wrong, kind in ((config, "Config"), ("permuted-copy", "str"), (3, "int")):
        with pytest.raises(
            PerdureError, match=rf"^configs: must be a list .* \[config\] \(given: a {kind}\)"
        ):
            run_many(wrong, tmp_path)
    with pytest.raises(PerdureError, match=r"^configs\[1\]: a config is needed, .*\(given: 'si'\)"):
        run_many([config, "si"], tmp_path)
    with pytest.raises(PerdureError, match=r"^workers: must be an integer"):
        run_many([config], tmp_path, workers="2")


def test_configs_may_be_made_one_by_one(tmp_path):
    assert len(run_many((config for config in configs_of(2)), tmp_path)) == 2


class Plain(Executor):
    """Carries out at once what JSON can carry, as a batch system would."""

    def __init__(self) -> None:
        self.orders: list[dict[str, object]] = []

    def submit(self, function, /, order):
        assert function is work
        self.orders.append(order)
        future: Future[object] = Future()
        future.set_result(json.loads(json.dumps(function(json.loads(json.dumps(order))))))
        return future


def test_what_crosses_the_border_is_plain_data(tmp_path):
    (tmp_path / "runs").mkdir()
    executor, configs = Plain(), configs_of(2)
    results = run_many(configs, tmp_path / "runs", executor=executor)
    assert [order["number"] for order in executor.orders] == [0, 1]
    assert numbers(results) == numbers(run_many(configs, tmp_path / "alone"))
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {config.hash for config in configs}


class Elsewhere(Plain):
    """A worker that does not see the folder of the runs."""

    def submit(self, function, /, order):
        return super().submit(function, {**order, "mailbox": order["mailbox"] + "-unseen"})


def test_a_run_again_elsewhere_replaces_the_record(tmp_path, monkeypatch):
    monkeypatch.setenv(PRIVATE, str(tmp_path / "own"))
    (config,), runs = configs_of(1), tmp_path / "runs"
    runs.mkdir()
    (first,) = run_many([config], runs, executor=Elsewhere())
    path = runs / config.hash / "record.json"
    assert read_json(path) == first.record.json
    (again,) = run_many([config], runs, executor=Elsewhere(), force=True)
    assert not again.found
    assert read_json(path) == again.record.json != first.record.json
    noted = RunFolder(runs, config.hash).note_search(again.record, "search", {"trial": 1})
    run_many([config], runs, executor=Elsewhere())  # found there, and here with what was noted since
    assert read_json(path) == noted.json
    (third,) = run_many([config], runs, executor=Elsewhere(), force=True)
    assert read_json(path) == third.record.json | {"searches": noted.searches} != noted.json
    path.write_text("{}")
    run_many([config], runs, executor=Elsewhere(), force=True)
    assert RunFolder(runs, config.hash).finished().accuracy == first.record.accuracy
    assert len(list(path.parent.glob("record.json.*"))) == 1  # the damaged one was set aside


def test_threads_are_workers_too_and_handlers_stay(tmp_path):
    """From a thread that is not the main one: no signal is touched there, and none in worker threads."""
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    found: list[RunResult] = []
    (tmp_path / "runs").mkdir()

    def call() -> None:
        with ThreadPoolExecutor(2) as pool:
            found.extend(run_many(configs_of(2), tmp_path / "runs", executor=pool))

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    assert [one.record.seed for one in found] == [0, 1]
    run_many(configs_of(2), tmp_path / "pool", workers=2)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def saved_iterations(runs, configs):
    """How far the checkpoint of each run is; 0 without one."""
    found = []
    for config in configs:
        path = runs / config.hash / "checkpoint.safetensors"
        facts = read_tensors(path)[1] if path.exists() else None
        found.append(facts["phase"]["iteration"] if facts and facts["phase"] else 0)
    return found


def test_a_killed_worker_is_one_sentence_and_the_others_are_saved(tmp_path):
    configs = configs_of(2, iterations=ENDLESS)
    begun: set[int] = set()

    def kill(number, news):
        if isinstance(news, Progress):
            begun.add(number)
        if len(begun) == 2:
            begun.add(-1)  # once
            os.kill(multiprocessing.active_children()[0].pid, signal.SIGKILL)

    with pytest.raises(PerdureError, match="A worker process was killed") as caught:
        run_many(configs, tmp_path, workers=2, options=ONCE, watch=kill)
    assert not isinstance(caught.value, Interrupted)
    assert not multiprocessing.active_children()
    survivors = saved_iterations(tmp_path, configs)
    assert sum(count > 0 for count in survivors) == 1, survivors


def test_a_process_that_dies_is_noticed_while_others_are_at_work():
    with LocalProcesses(2) as processes:
        busy = processes.submit(time.sleep, 600)
        dead = processes.submit(os._exit, 3)
        with pytest.raises(BrokenProcessPool) as caught:
            dead.result(timeout=120)
        assert processes.lost(caught.value)
        assert not processes.lost(ValueError())
        assert processes.submit(int, "7").result(timeout=120) == 7  # by another in its place
        assert not busy.done()
        for process in multiprocessing.active_children():
            process.kill()
        with pytest.raises(BrokenProcessPool):
            busy.result(timeout=120)
        assert processes.submit(int, "8").result(timeout=120) == 8  # died while idle


def test_ctrl_c_saves_all_runs(tmp_path):
    configs = configs_of(3, iterations=ENDLESS)
    begun: set[int] = set()

    def interrupt(number, news):
        if isinstance(news, Progress):
            begun.add(number)
        if len(begun) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_many(configs, tmp_path, workers=2, options=ONCE, watch=interrupt)
    assert not multiprocessing.active_children()
    first, second, third = saved_iterations(tmp_path, configs)
    assert first > 0
    assert second > 0
    assert third == 0


SCRIPT = """
import os, sys, perdure
from perdure.executors import run_many
from perdure.learning.engine import Progress, RunOptions

def watch(number, news):
    if isinstance(news, Progress):
        print(number, flush=True)

if __name__ == "__main__":
    common = {"scale": "smoke", "network__hidden": 8, "training__iterations": 10_000_000}
    configs = [perdure.build("permuted-copy", "fine-tuning", seed=seed, **common) for seed in range(2)]
    run_many(configs, sys.argv[1], workers=2, options=RunOptions(save_every=1e9), watch=watch)
"""


@pytest.fixture
def started(tmp_path):
    """A program that runs two configs, once both are under way; nothing of it outlives a failing test."""
    (tmp_path / "program.py").write_text(SCRIPT)
    process = subprocess.Popen(
        [sys.executable, tmp_path / "program.py", tmp_path / "runs"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    seen: set[str] = set()
    while len(seen) < 2:
        line = process.stdout.readline()
        assert line, process.stderr.read()
        seen.add(line.strip())
    yield process
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def members(group: int) -> list[int]:
    """Ids of the living processes of a group."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(int(name))
    return found


needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="/proc is not there")


DROPPED = """
import signal, sys, perdure
from contextlib import suppress
from perdure.executors import run_many
from perdure.learning.engine import Progress

seen = set()

def watch(number, news):
    if isinstance(news, Progress) and number not in seen:
        seen.add(number)
        if len(seen) == 2:
            with suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)

if __name__ == "__main__":
    common = {"scale": "smoke", "network__hidden": 8, "training__iterations": 10_000_000}
    configs = [perdure.build("permuted-copy", "fine-tuning", seed=seed, **common) for seed in range(2)]
    try:
        run_many(configs, sys.argv[1], workers=2, watch=watch)
    except perdure.PerdureError as error:
        print(type(error).__name__, sorted(seen))
"""


def test_an_interrupt_that_python_drops_still_stops_the_workers(tmp_path):
    """As in a destructor, where Python only prints 'Exception ignored'."""
    (tmp_path / "program.py").write_text(DROPPED)
    command = [sys.executable, tmp_path / "program.py", tmp_path / "runs"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.stdout == "Interrupted [0, 1]\n", done.stderr


@needs_proc
def test_ctrl_c_at_the_terminal_reaches_all_processes_and_is_quiet(tmp_path, started):
    process = started
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, err = process.communicate(timeout=300)
    assert err.count("Traceback") == 1  # the caller's own KeyboardInterrupt
    assert err.strip().endswith("KeyboardInterrupt")
    deadline = time.monotonic() + 30
    while members(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)  # the last helpers of Python end a little later
    assert not members(process.pid)
    assert len(list((tmp_path / "runs").glob("*/checkpoint.safetensors"))) == 2


@needs_proc
def test_workers_end_with_a_parent_that_was_killed(started):
    process = started
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + 30
    while members(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not members(process.pid)
    process.stdout.close()
    process.stderr.close()


def test_memory_that_ends_in_a_worker_is_a_sentence(tmp_path):
    """With an address space that holds Python, torch and small runs, but not a huge hidden layer."""
    program = textwrap.dedent(
        """
        import resource, sys, perdure

        if __name__ == "__main__":
            common = {"scale": "smoke", "training__iterations": 3}
            huge = perdure.build("permuted-copy", "fine-tuning", network__hidden=40_000, **common)
            small = perdure.build("permuted-copy", "fine-tuning", network__hidden=8, **common)
            resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
            try:
                perdure.run_many([small, huge], sys.argv[1], workers=2)
            except perdure.PerdureError as error:
                print(error)
            (result,) = perdure.run_many([small], sys.argv[1])
            print(result.record.method)
        """
    )
    (tmp_path / "program.py").write_text(program)
    done = subprocess.run(
        [sys.executable, tmp_path / "program.py", tmp_path / "runs"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first.startswith("Not enough memory")
    assert "permuted-copy fine-tuning, seed 0" in first
    assert second == "fine-tuning"


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
    ],
)
def test_an_error_of_memory_is_a_sentence_in_this_process_too(tmp_path, monkeypatch, error):
    def fail(*_):
        raise error

    monkeypatch.setattr("perdure.experiment.learn", fail)
    with pytest.raises(PerdureError, match="Not enough memory"):
        perdure.run(configs_of(1)[0], tmp_path)
    with ThreadPoolExecutor(1) as pool, pytest.raises(PerdureError, match="Not enough memory"):
        run_many(configs_of(2), tmp_path, executor=pool)


def test_other_errors_of_a_worker_are_named(tmp_path, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError("by hand")

    monkeypatch.setattr("perdure.experiment.learn", fail)
    with ThreadPoolExecutor(1) as pool, pytest.raises(PerdureError, match=r"ZeroDivisionError\('by hand'\)"):
        run_many(configs_of(2), tmp_path, executor=pool)
