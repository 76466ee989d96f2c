"""The contract tests, for built-in and external pieces alike.

Authors of a method, penalty, cell or benchmark can call these from their own tests:

    import perdure.testing

    def test_mine():
        perdure.load_plugin("mine.py")
        perdure.testing.check_method("mine")

Each raises an AssertionError that says which requirement was violated. They take a few seconds.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from perdure.benchmarks.task import Benchmark, check_tasks
from perdure.config import Config, build, from_json, option_names, sections
from perdure.errors import Interrupted
from perdure.experiment import assemble, generators_of, on_device, run
from perdure.files import read_tensors
from perdure.learning.engine import Progress, RunOptions, learn
from perdure.networks.bodies.recurrent import Recurrent
from perdure.networks.layout import Vectors
from perdure.registry import chosen
from perdure.storage.record import Record

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
    "training.iterations": 6,
    "training.batch_size": 8,
    "training.learning_rate": 1e-2,
    "training.validate_every": 2,
    "training.patience": None,
}
"""A very small problem; options that a method does not have are left out."""


def small(method: str, **values: Any) -> Config:
    """A config of a method on a very small Permuted Copy Task."""
    known = option_names(sections("permuted-copy", method, values))
    few = {name: value for name, value in SMALL.items() if name in known}
    return build("permuted-copy", method, scale="smoke", **(few | values))


def check_method(method: str, **values: Any) -> None:
    """All requirements of a method: see the functions below."""
    config = small(method, **values)
    check_options(config)
    check_resumes(config)
    check_random_numbers(config)
    if not config.together:
        check_old_data_are_not_needed(config)
    for name, penalty in config.penalties.items():
        if "strength" in type(penalty).model_fields and config.weights.name == "shared":
            check_strength_zero(method, name, **values)


def check_options(config: Config) -> None:
    """Every option has a help text, and a config survives a round trip through JSON."""
    for section, kind in sections(config.benchmark.name, config.method).items():
        assert (kind.__doc__ or "").strip(), f"{kind.__name__} has no docstring"
        for name, field in kind.model_fields.items():
            assert field.description, f"{section}.{name} has no help text: add a docstring below it"
    again = from_json(json.loads(json.dumps(config.json)))
    assert again == config
    assert again.hash == config.hash


def check_resumes(config: Config, every: int = 5) -> None:
    """A run that is stopped repeatedly ends with the same numbers as one that is not, bit for bit."""
    calls = 0

    def sometimes() -> bool:
        nonlocal calls
        calls += 1
        return calls % every == 0

    with tempfile.TemporaryDirectory() as folder:
        whole, stopped = Path(folder) / "whole", Path(folder) / "stopped"
        expected = run(config, whole)
        while True:
            try:
                ours = run(config, stopped, RunOptions(stop=sometimes))
                break
            except Interrupted:
                continue
        assert calls >= every, "the run was never stopped"
        assert _numbers(ours.record) == _numbers(expected.record), "numbers differ after a resume"
        for path in sorted(expected.folder.glob("after-*.safetensors")):
            _assert_equal(read_tensors(ours.folder / path.name)[0], read_tensors(path)[0], path.name)


def check_random_numbers(config: Config) -> None:
    """The global generator is not used: all randomness comes from the generators of the context."""
    state = torch.get_rng_state()
    with tempfile.TemporaryDirectory() as folder:
        run(config, folder)
    assert torch.equal(torch.get_rng_state(), state), "torch's global generator was used"


def check_old_data_are_not_needed(config: Config) -> None:
    """Overwriting a task's training data before it begins and after it is learnt changes nothing."""
    expected = _learnt(config, spoil=False)
    spoiled = _learnt(config, spoil=True)
    _assert_equal(spoiled, expected, "the state after the last task, without the data of others")


def check_strength_zero(method: str, penalty: str, **values: Any) -> None:
    """With strength 0 a penalty changes nothing."""
    free = small(method, **(values | {f"penalties.{penalty}.strength": 0.0}))
    others = [name for name in free.method.split("+") if penalty not in _penalties_of(name)]
    plain = small("+".join(others) or "fine-tuning", **values)
    with tempfile.TemporaryDirectory() as folder:
        ours, expected = (run(config, Path(folder) / config.hash).record for config in (free, plain))
    assert ours.accuracy == expected.accuracy, f"{penalty} with strength 0 changes the accuracy"


def check_cell(cell: str, **values: Any) -> None:
    """A cell learns, resumes, can be masked and generated, and names its weights and initial values."""
    layout = Recurrent(cell=chosen("cells", cell), hidden=(6,)).plan(3).layout
    assert set(layout.starts) == set(layout.axes)
    for name in layout.axes:
        assert name.startswith("recurrent.0."), f"{name}: names of weights must start with the prefix"
    for method in ("online-ewc", "masking+si", "hnet", "rtf"):
        check_method(method, **({"network.cell": cell} | values))


def check_benchmark(benchmark: Benchmark) -> None:
    """A benchmark's tasks fulfil the contract of tasks, and are the same each time."""
    first, second = benchmark.build(), benchmark.build()
    check_tasks(first)
    for one, two in zip(first, second, strict=True):
        for split in ("train", "val", "test"):
            assert (getattr(one, split).x == getattr(two, split).x).all(), f"{one.name}: x differs"


def _penalties_of(method: str) -> set[str]:
    return {s.removeprefix("penalties.") for s in sections("permuted-copy", method)} - {"orthogonal"}


def _numbers(record: Record) -> dict[str, Any]:
    """Everything in a record except times."""
    return {name: value for name, value in record.json.items() if name not in ("seconds", "timings")}


class _Last:
    """A checkpoint store that keeps the last state."""

    def __init__(self) -> None:
        self.state: Vectors = {}

    def load(self) -> None:
        """There is no checkpoint."""

    def save(self, tensors: Vectors, facts: Any) -> None:
        """Checkpoints are discarded."""

    def keep(self, phase: int, tensors: Vectors) -> None:
        """Keep a copy of the latest."""
        self.state = {name: tensor.clone() for name, tensor in tensors.items()}


def _learnt(config: Config, *, spoil: bool) -> Vectors:
    """The state after all tasks; with `spoil`, only the current task's training data are intact."""
    tasks, learner = assemble(config)
    data, store = on_device(tasks, "cpu"), _Last()
    good = [splits.train.x.clone() for splits in data]

    def arrange(current: int) -> None:
        for task, splits in enumerate(data):
            if spoil and task != current:
                splits.train.x.fill_(0)
            else:
                splits.train.x.copy_(good[task])

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
