"""Accuracy over time: per output step, over the phases of a run, and over its iterations."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from perdure.analysis.states import as_data
from perdure.benchmarks.task import Sequences
from perdure.networks.batch import Data
from perdure.networks.layout import Weights
from perdure.networks.network import Network
from perdure.networks.targets import tally_of_step
from perdure.storage.record import Record


class StepScore(NamedTuple):
    """Accuracy in percent at one output step (from 1), and the number of outputs it is based on."""

    step: int
    accuracy: float
    asked: int


@torch.no_grad()
def accuracy_per_step(
    network: Network, weights: Weights, data: Sequences | Data, task: int = 0
) -> list[StepScore]:
    """Accuracy at each output step: of the pattern, or of the sequence if each step has a tag.

    Steps at which nothing is scored are left out.
    """
    data = as_data(data, weights)
    tallies: dict[int, Tensor] = {}
    for batch in data.batches():
        logits = network(weights, batch, task)
        for step in range(batch.answers.steps):
            found = tally_of_step(logits, batch, step)
            tallies[step] = tallies[step] + found if step in tallies else found
    scores = {step: data.target.judge(tally) for step, tally in tallies.items()}
    return [StepScore(step + 1, one.accuracy, one.asked) for step, one in scores.items() if one.asked]


class Course(NamedTuple):
    """A task's accuracy in percent after each phase, starting with its own."""

    task: int
    accuracy: list[float]

    @property
    def forgotten(self) -> float:
        """Percentage points lost since it was learnt; negative if later tasks helped."""
        return self.accuracy[0] - self.accuracy[-1]


def courses(record: Record) -> list[Course]:
    """The course of each task of a run."""
    return [Course(task, [row[task] for row in record.accuracy[task:]]) for task in range(len(record.tasks))]


class CurvePoint(NamedTuple):
    """Validation accuracy of the current task, at an iteration counted over the whole run."""

    iteration: int
    phase: int
    accuracy: float


def learning_curve(record: Record) -> list[CurvePoint]:
    """All validations of a run in order; phases are counted from 0."""
    points, before = [], 0
    for phase, (curve, iterations) in enumerate(zip(record.curves, record.iterations, strict=True)):
        points += [
            CurvePoint(before + int(point["iteration"]), phase, point["val accuracy"]) for point in curve
        ]
        before += iterations
    return points
