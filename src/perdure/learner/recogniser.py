"""A single head over all tasks, fitted to rehearsed samples: it grows with every task, and needs no training.

Features of a sequence are the heads' inputs at its last step and their mean over all steps, from the network
of each task (once, if tasks share it). With the stored samples as rows of Z and one-hot classes of all tasks
as Y, the head is the ridge regression W = (Z'Z + a I)^-1 Z'Y, with the strength a that predicts each sample
best when it is left out. A sequence belongs to the task that owns its most likely class.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from perdure.benchmarks.task import Array
from perdure.config import Config
from perdure.experiment import learner_of, threads
from perdure.learner.knowledge import Knowledge
from perdure.learner.sequences import Inputs
from perdure.networks.batch import Data
from perdure.rehearsal.samples import stored_tasks, unstore

STRENGTHS = tuple(10.0**power for power in range(-4, 5))
"""Ridge strengths to choose from; features are standardised."""


def stored(config: Config, knowledge: Knowledge) -> dict[int, Data]:
    """The samples that a method has stored of each task; empty if it lacks those of any."""
    hooks = learner_of(config, knowledge.inputs).hooks
    forms = list(knowledge.formats.values())
    for name, hook in hooks.items():
        memory = knowledge.state.memories[name]
        if hook.stored(memory) and set(stored_tasks(memory)) == set(range(len(forms))):
            found = {
                task: unstore(memory, task, knowledge.format_only(forms[task]))
                for task in stored_tasks(memory)
            }
            return found if all(len(data) for data in found.values()) else {}
    return {}


def recognise(
    config: Config, knowledge: Knowledge, tasks: list[str], inputs: Inputs, steps: int | None
) -> Array:
    """The number, in the list of tasks, of the task to which each sequence [N] belongs."""
    kept = stored(config, knowledge)
    owners: list[int] = []
    rows: list[Tensor] = []
    targets: list[Tensor] = []
    classes = 0
    for place, task in enumerate(tasks):
        data = kept[knowledge.number(task)]
        labels = _labels(data)
        rows.append(_features(config, knowledge, tasks, _shortened(data, steps)))
        targets.append(labels + classes)
        count = int(labels.max()) + 1
        owners += [place] * count
        classes += count
    asked = knowledge.data(tasks[0], inputs)
    new = _features(config, knowledge, tasks, asked)
    with threads(1):  # a decomposition this small only loses by sharing
        scores = _ridge(torch.cat(rows), torch.cat(targets), classes, new)
    chosen: Array = np.array(owners)[scores.argmax(1).numpy()]
    return chosen


def _labels(data: Data) -> Tensor:
    """A class for each sample, or one for all if a sample has no single class."""
    single = data.target.categorical and not data.target.everywhere
    return data.y.long() if single else torch.zeros(len(data), dtype=torch.long)


def _shortened(data: Data, steps: int | None) -> Data:
    """The first steps of each sample; tags are of no interest here."""
    lengths = data.all_lengths
    if steps is not None:
        lengths = lengths.clamp(max=steps)
    longest = int(lengths.max())
    y = data.y[:, :longest] if data.target.everywhere else data.y
    return data.having(data.x[:, :longest], y, lengths)


@torch.no_grad()
def _features(config: Config, knowledge: Knowledge, tasks: list[str], data: Data) -> Tensor:
    """Features [N, D] of sequences, in double precision."""
    learner, state = learner_of(config, knowledge.inputs), knowledge.state
    blocks: list[Tensor] = []
    seen: list[Tensor] = []
    with threads(1):
        for task in tasks:
            number = knowledge.number(task)
            network, weights = state.weights(learner, number)
            body = torch.cat([weights[name].reshape(-1) for name in network.body.shapes])
            if any(torch.equal(body, other) for other in seen):
                continue
            seen.append(body)
            parts = []
            for batch in data.batches():
                every = batch.packing.unpack(network.features(weights, batch, number)).double()
                lengths = batch.packing.lengths
                last = every[torch.arange(len(every)), lengths - 1]
                parts.append(torch.cat([last, every.sum(1) / lengths[:, None]], dim=1))
            blocks.append(torch.cat(parts))
    return torch.cat(blocks, dim=1)


def _ridge(rows: Tensor, targets: Tensor, classes: int, asked: Tensor) -> Tensor:
    """Scores [N, classes] of a ridge regression, its strength chosen by leaving out one sample at a time."""
    mean, spread = rows.mean(0), rows.std(0).clamp(min=1e-9)
    z, new = (rows - mean) / spread, (asked - mean) / spread
    wanted = torch.nn.functional.one_hot(targets, classes).double()
    centre = wanted.mean(0)
    left, values, right = torch.linalg.svd(z, full_matrices=False)
    projected = left.t() @ (wanted - centre)
    best: tuple[float, Tensor] | None = None
    for strength in STRENGTHS:
        shrunk = values.square() / (values.square() + strength * len(z))
        fitted = left @ (shrunk[:, None] * projected)
        leverage = (left.square() * shrunk).sum(1) + 1 / len(z)
        without = (
            centre
            + fitted
            - (wanted - centre - fitted) * (leverage / (1 - leverage).clamp(min=1e-9))[:, None]
        )
        missed = float((without.argmax(1) != targets).double().mean())
        if best is None or missed < best[0]:
            weights = right.t() @ ((values / (values.square() + strength * len(z)))[:, None] * projected)
            best = missed, weights
    assert best is not None
    return centre + new @ best[1]
