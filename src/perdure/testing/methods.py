"""What a method promises, whatever pieces it is made of."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from perdure.config import Config, build, from_json, option_names, sections
from perdure.errors import Interrupted
from perdure.experiment import RunResult, assemble, generators_of, on_device, run
from perdure.learning.engine import Progress, RunOptions, begin_phase, learn
from perdure.learning.learner import init
from perdure.methods import compose, parts_of
from perdure.networks.layout import Vectors
from perdure.registry import methods
from perdure.storage.record import Record
from perdure.storage.store import RunFolder

SMALL: Mapping[str, Any] = {
    "benchmark.i": 3,
    "benchmark.p": 3,
    "benchmark.width": 3,
    "benchmark.tasks": 3,
    "benchmark.train": 60,
    "benchmark.val": 20,
    "benchmark.test": 20,
    "network.hidden": 10,
    "network.orthogonal": False,
    "weights.hidden": "6",
    "weights.chunk": 60,
    "rehearsal.hidden": 6,
    "rehearsal.size": 9,
    "training.iterations": 4,
    "training.batch_size": 8,
    "training.learning_rate": 1e-2,
    "training.validate_every": 2,
    "training.patience": None,
}
"""A very small problem; options that a method does not have are left out."""

MANY = {"benchmark.tasks": 12, "training.iterations": 2}
"""More tasks than can be told apart by one digit, so that no order of names can pass for that of tasks."""

FIRST = 3
"""So many tasks are learnt without the others, to see that these do not matter."""


def small(method: str, **values: Any) -> Config:
    """A config of a method on a very small Permuted Copy Task."""
    known = option_names(sections("permuted-copy", method, values))
    few = {name: value for name, value in SMALL.items() if name in known}
    return build("permuted-copy", method, scale="smoke", **(few | values))


def check_method(method: str, **values: Any) -> None:
    """All promises that a method makes: see the functions that follow."""
    config = small(method, **(MANY | values))
    check_options(config)
    with tempfile.TemporaryDirectory() as folder:
        whole = check_random_numbers(config, folder)
        check_resumes(config, whole=whole)
        if not config.together:
            check_old_data_are_not_needed(config, whole)
            check_later_tasks_are_not_needed(config, whole)
    check_device(config)
    for name in compose(method, methods()).penalties:
        if "strength" in type(config.penalties[name]).model_fields and config.weights.name == "shared":
            check_strength_zero(method, name, **values)


def check_options(config: Config) -> None:
    """Every option has a help text, and a config survives JSON."""
    for piece in config.pieces:
        assert (type(piece).__doc__ or "").strip(), f"{type(piece).__name__} has no docstring"
        for name, field in type(piece).model_fields.items():
            assert field.description, f"{piece.name}.{name} has no help text: put a docstring below it"
    again = from_json(json.loads(json.dumps(config.json)))
    assert again == config
    assert again.hash == config.hash


def check_random_numbers(config: Config, folder: str | Path | None = None) -> RunResult:
    """The global generator is not touched: all chance comes from the generators of the context."""
    if folder is None:
        with tempfile.TemporaryDirectory() as temporary:
            return check_random_numbers(config, temporary)
    state = torch.get_rng_state()
    result = run(config, Path(folder) / "whole")
    assert torch.equal(torch.get_rng_state(), state), "torch's global generator was used"
    return result


def check_resumes(config: Config, every: int = 5, whole: RunResult | None = None) -> None:
    """A run that is stopped again and again ends with the same numbers as one that is not, bit for bit."""
    calls = 0

    def sometimes() -> bool:
        nonlocal calls
        calls += 1
        return calls % every == 0

    with tempfile.TemporaryDirectory() as folder:
        expected = whole or run(config, Path(folder) / "whole")
        while True:
            try:
                ours = run(config, Path(folder) / "stopped", RunOptions(stop=sometimes))
                break
            except Interrupted:
                continue
        assert calls >= every, "the run was never stopped"
        assert calls == sum(expected.record.iterations), "iterations were repeated or left out"
        assert _numbers(ours.record) == _numbers(expected.record), "numbers differ after a resume"
        for phase in range(len(expected.record.iterations)):
            where = f"the state after phase {phase + 1}, after resumes"
            _assert_equal(_state(ours, phase), _state(expected, phase), where)


def check_old_data_are_not_needed(config: Config, whole: RunResult | None = None) -> None:
    """Training data of a task are overwritten once it is learnt, and before it begins: nothing changes."""
    expected = _learnt(config) if whole is None else _state(whole, len(whole.record.iterations) - 1)
    spoiled = _learnt(config, spoil=True)
    _assert_equal(spoiled, expected, "the state after the last task, without the data of others")


def check_later_tasks_are_not_needed(config: Config, whole: RunResult | None = None) -> None:
    """Whether more tasks follow changes nothing of what was learnt before them."""
    if whole is None:
        with tempfile.TemporaryDirectory() as folder:
            check_later_tasks_are_not_needed(config, run(config, folder))
        return
    learnt = len(whole.record.iterations)
    assert learnt > FIRST, (
        f"{learnt} tasks are too few to see whether later ones matter; give at least {FIRST + 1}"
    )
    alone = _learnt(config, tasks=FIRST)
    _assert_equal(alone, _state(whole, FIRST - 1), f"the state after task {FIRST}, if no other follows")


def check_device(config: Config) -> None:
    """What a phase makes is where the data are; torch's meta device, which has no numbers, stands for a GPU.

    It goes as far as no values are needed: where a method has to read some, the check ends.
    """
    training = config.training.model_copy(update={"optimiser": "RMSprop"})  # fused ones know no meta device
    tasks, learner = assemble(config)
    data, generators, state = on_device(tasks, "meta"), generators_of(config), init(learner)
    for phase_tasks in learner.phases(len(tasks))[:2]:
        try:
            phase = begin_phase(learner, state, phase_tasks, data, training, generators)
            step, losses = phase._gradients()
            phase._transform(step)
            phase.optimiser.step()
            elsewhere = {name for name, value in losses.items() if value.device.type != "meta"}
            assert not elsewhere, f"losses are not on the device of the data: {elsewhere}"
            state = phase.finish()
        except NotImplementedError:  # "cannot copy out of meta tensor": values are needed
            return
        except RuntimeError as error:
            if "item()" in str(error):  # another way to say it
                return
            raise AssertionError(f"{config.method} mixes devices: {error}") from error


def check_strength_zero(method: str, penalty: str, **values: Any) -> None:
    """With strength 0 a penalty changes nothing: as if it were not there."""
    known = methods()
    others = [part for part in parts_of(method, known) if penalty not in known[part].penalties]
    rest = "+".join(others) or "fine-tuning"
    if others:  # gradients are added in another order, and Adam makes whole steps of the smallest difference
        values = values | {"training.optimiser": "SGD"}
    common = {n: v for n, v in values.items() if n in option_names(sections("permuted-copy", rest, values))}
    ours = _learnt(small(method, **(values | {f"penalties.{penalty}.strength": 0.0})))
    expected = _learnt(small(rest, **common))
    for name, value in expected.items():
        if name.startswith("parameters/"):
            same = torch.equal(ours[name], value)
            if others:
                same = torch.allclose(ours[name], value, rtol=1e-3, atol=1e-4)
            assert same, f"{penalty} with strength 0 changes {name}"


def _numbers(record: Record) -> dict[str, Any]:
    """All of a record but times."""
    return {name: value for name, value in record.json.items() if name not in ("seconds", "timings")}


def _state(result: RunResult, phase: int) -> Vectors:
    """The state that a run has kept after a phase."""
    return RunFolder(result.folder.parent, result.folder.name).knowledge(phase)


class _Last:
    """A checkpoint store that keeps the last state."""

    def __init__(self) -> None:
        self.state: Vectors = {}

    def load(self) -> None:
        """There is no checkpoint."""

    def save(self, tensors: Vectors, facts: Any) -> None:
        """Checkpoints are not kept."""

    def keep(self, phase: int, tensors: Vectors) -> None:
        """Keep a copy of the newest."""
        self.state = {name: tensor.clone() for name, tensor in tensors.items()}


def _learnt(config: Config, *, tasks: int | None = None, spoil: bool = False) -> Vectors:
    """The state after all tasks, or the first ones; with `spoil`, only the current task's data are good."""
    everything, learner = assemble(config)
    data, store = on_device(everything[:tasks], "cpu"), _Last()
    good = [(splits.train.x.clone(), splits.train.y.clone()) for splits in data]
    for splits in data:  # tasks may share their inputs, and what is spoilt must be one task's alone
        splits.train.x, splits.train.y = splits.train.x.clone(), splits.train.y.clone()

    def arrange(current: int) -> None:
        for task, splits in enumerate(data):
            for ours, right in zip((splits.train.x, splits.train.y), good[task], strict=True):
                if spoil and task != current:
                    ours.fill_(0)
                else:
                    ours.copy_(right)

    def watch(progress: Progress) -> None:
        if progress.accuracy is not None:
            arrange(progress.phase + 1)

    arrange(0)
    learn(learner, data, config.training, generators_of(config), store, RunOptions(watch=watch))
    return store.state


def _assert_equal(ours: Mapping[str, Tensor], expected: Mapping[str, Tensor], where: str) -> None:
    assert ours.keys() == expected.keys(), where
    for name, value in expected.items():
        assert torch.equal(ours[name], value), f"{where}: {name} differs"
