"""run(config) -> record: the whole data flow on one screen. Read this first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from perdure.benchmarks.task import Task, Watch, check_tasks, quiet
from perdure.config import Config, check_config
from perdure.errors import SIZE_ERRORS, TOO_LARGE, PerdureError, out_of_memory
from perdure.files import Damaged
from perdure.learning.engine import Results, RunOptions, learn
from perdure.learning.learner import Learner
from perdure.learning.room import lacking_room
from perdure.learning.splits import Splits
from perdure.networks.arithmetic import DIGITS
from perdure.networks.batch import Data
from perdure.networks.native.library import describe
from perdure.networks.network import Network
from perdure.randomness import generator
from perdure.storage.record import Record, make_record
from perdure.storage.store import RunFolder, writable
from perdure.weights.source import GeneratorFactory


@dataclass(frozen=True)
class RunResult:
    """A record, its folder, and whether it existed before."""

    record: Record
    folder: Path
    found: bool
    warnings: list[str]


def run(
    config: Config, runs: Path | str = "runs", options: RunOptions | None = None, *, force: bool = False
) -> RunResult:
    """Run a config, or resume an interrupted run, or return its finished record.

    `force` repeats a finished run, whose record stays until there is a new one; an unfinished run is resumed
    in any case.
    """
    check_config(config, "config")
    options = options or RunOptions()
    runs = Path(runs)
    folder = RunFolder(runs, config.hash)
    if not force and (record := folder.record()) is not None:
        return RunResult(record, folder.path, True, folder.warnings)
    with _memory_explained(config):
        return _run(config, folder, options, force)


def run_part(
    config: Config, phases: int, runs: Path | str = "runs", options: RunOptions | None = None
) -> list[list[float]]:
    """Learn the first phases of a config, or go on up to there; returns the validation matrix so far.

    There is no record of a part; `run`, or more phases, go on from its checkpoint.
    """
    options = replace(options or RunOptions(), until=phases)
    folder = RunFolder(Path(runs), config.hash)
    if (record := folder.record()) is not None:
        return record.validation[:phases]
    with _memory_explained(config):
        tasks, learner = assemble(config, options.building)
        writable(folder.path.parent)
        with folder.locked(config), threads(options.threads):
            results = _learnt(config, tasks, learner, folder, options)
    return results.validation[:phases]


def _run(config: Config, folder: RunFolder, options: RunOptions, force: bool) -> RunResult:
    """With data and network in memory and the folder locked."""
    tasks, learner = assemble(config, options.building)
    writable(folder.path.parent)
    with folder.locked(config), threads(options.threads):
        record = folder.recover(force=force)  # another process may have finished it meanwhile
        if record is not None and not force:
            return RunResult(record, folder.path, True, folder.warnings)
        if record is not None:
            folder.repeat()
        record = _carry_out(config, tasks, learner, folder, options)
    return RunResult(record, folder.path, False, folder.warnings)


def _carry_out(
    config: Config, tasks: list[Task], learner: Learner, folder: RunFolder, options: RunOptions
) -> Record:
    """Learn, from the start or from a checkpoint, and publish the record."""
    results = _learnt(config, tasks, learner, folder, options)
    kernels = {"kernels": describe(), "digits": str(DIGITS)}
    machine = {"device": options.device, "threads": str(options.threads), **kernels}
    return folder.publish(make_record(config, tasks, results, machine), kept=options.keep)


def _learnt(
    config: Config, tasks: list[Task], learner: Learner, folder: RunFolder, options: RunOptions
) -> Results:
    """Learn, from the start or from a checkpoint."""
    counts = sorted({len(task.train) for task in tasks})
    samples = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    each = "1 task" if len(tasks) == 1 else f"{len(tasks)} tasks, each"
    options.tell(f"{each} with {samples} training sample{'' if samples == '1' else 's'}")
    if options.device == "cpu" and (lack := _lack_of_memory(config, tasks)):
        raise PerdureError(f"{lack} ({_named(config)}).")
    data, generators = on_device(tasks, options.device), generators_of(config)
    try:
        return learn(learner, data, config.training, generators, folder, options)
    except Damaged as error:  # a checkpoint that is not one of this run
        folder.reject(error)
        return learn(learner, data, config.training, generators, folder, options)


@contextmanager
def _memory_explained(config: Config) -> Iterator[None]:
    """Turn running out of memory into a helpful error."""
    try:
        yield
    except SIZE_ERRORS as error:
        if not out_of_memory(error):
            raise
        raise PerdureError(f"{TOO_LARGE.removesuffix('.')} ({_named(config)}).") from error


def _lack_of_memory(config: Config, tasks: list[Task]) -> str | None:
    """What cannot fit into memory, known before it is allocated."""
    network = Network(config.network, tasks[0].inputs, [task.outputs for task in tasks])
    steps = max(int(task.train.lengths.max()) for task in tasks)
    return lacking_room(network, config.training.batch_size, steps, tasks[0].inputs)


def _named(config: Config) -> str:
    return f"{config.benchmark.name} {config.method}, seed {config.seed}"


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Use this many torch threads, and restore the previous number afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def assemble(config: Config, watch: Watch = quiet) -> tuple[list[Task], Learner]:
    """The tasks of a config, checked, and the learner for them."""
    tasks = config.benchmark.for_run(config.seed).build(watch)
    check_tasks(tasks)
    Network(config.network, tasks[0].inputs, [task.outputs for task in tasks])  # a single head must fit all
    return tasks, learner_of(config, tasks[0].inputs)


def learner_of(config: Config, inputs: int) -> Learner:
    """The learner of a config, for sequences with so many features."""
    if config.network.heads == "growing" and not config.weights.shares_heads:
        raise PerdureError(
            f"network.heads: a growing head is for weights that all tasks share, and {config.method} has "
            f"others for each task; use --network.heads multi, and the task is inferred."
        )
    return Learner(
        config.network, inputs, config.weights, config.penalties, config.rehearsal, config.together
    )


def on_device(tasks: list[Task], device: str) -> list[Splits]:
    """The tasks' data as tensors."""
    return [
        Splits(
            task.name,
            task.outputs,
            *(Data(split, device) for split in (task.train, task.val, task.test)),
            told=task.told,
        )
        for task in tasks
    ]


def generators_of(config: Config) -> GeneratorFactory:
    """The generators of a config's run, by role."""

    def generators(*role: object) -> torch.Generator:
        return generator(config.seed, *role)

    return generators
