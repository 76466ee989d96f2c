"""Sequences of different lengths: what an iteration costs with and without their padding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from perdure.benchmarks.task import Sequences, Task
from perdure.config import build
from perdure.experiment import assemble, on_device
from perdure.learning.engine import begin_phase
from perdure.learning.learner import init
from performance.clock import Job, line, seconds
from performance.training import generators

LONGEST = 117
"""Steps of the longest digit, to which the original pads all."""


def padded(sequences: Sequences) -> Sequences:
    """The same with zeros up to the longest digit, read like any other step."""
    count, steps, features = sequences.x.shape
    x = np.zeros((count, LONGEST, features), dtype=sequences.x.dtype)
    x[:, :steps] = sequences.x
    return replace(sequences, x=x, lengths=np.full(count, LONGEST))


def iteration(change: Callable[[Sequences], Sequences]) -> Job:
    """An iteration of fine-tuning on Stroke MNIST (LSTM of 256 units, batch of 128)."""
    values: dict[str, Any] = {
        "benchmark.train": 2000,
        "benchmark.val": 10,
        "benchmark.test": 10,
        "benchmark.tasks": 1,
        "training.batch_size": 128,
        "training.validate_every": 10**9,
        "training.iterations": 10**6,
    }
    config = build("smnist", "fine-tuning", scale="paper", **values)
    tasks, learner = assemble(config)
    changed = [Task(t.name, t.outputs, change(t.train), t.val, t.test) for t in tasks]
    data = on_device(changed, "cpu")
    phase = begin_phase(learner, init(learner), [0], data, config.training, generators)
    return phase.step


def report() -> list[bool]:
    """Print the ratio; returns whether it is within its bound."""
    times = seconds({"real": iteration(lambda same: same), "padded": iteration(padded)}, rounds=10)
    print(f"Stroke MNIST, an iteration with real lengths: {1e3 * times['real']:.0f} ms")
    ratio = times["real"] / times["padded"]
    return [line(f"Stroke MNIST, real lengths / padded to {LONGEST} (torch.lstm)", ratio, 0.45)]
