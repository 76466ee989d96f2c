"""Their side: avalanche-lib's strategies with a small torch module, as its users write them.

Nothing is logged or evaluated while training. What could be left to chance favours them: sequences lie in
memory as padded tensors, so that its loader only stacks them, and the module runs its LSTM once for a batch
of several tasks, cut to the batch's longest sequence.

Synaptic intelligence of avalanche-lib 0.6.0 protects nothing on a CPU: what it keeps as the weights before a
step shares memory with the weights, so that it sees no movement and its penalty is zero. It does all its work
nevertheless, and the time of it counts; its accuracy is that of naive.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import TensorDataset

from performance.peers.setting import (
    BATCH,
    CLASSES,
    FEATURES,
    LEARNING_RATE,
    STORED,
    TASKS,
    TRAIN,
    UNITS,
    MadeTask,
    Split,
)
from performance.peers.torchvision_operators import declare_missing_operators

declare_missing_operators()
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # about optional parts that are not installed
    from avalanche.benchmarks import benchmark_from_datasets, with_classes_timeline, with_task_labels
    from avalanche.benchmarks.utils import ConstantSequence, TaskAwareSupervisedClassificationDataset
    from avalanche.benchmarks.utils.data_attribute import DataAttribute, TaskLabels
    from avalanche.models import MultiHeadClassifier, MultiTaskModule
    from avalanche.training import EWC, LwF, Naive, SynapticIntelligence
    from avalanche.training.plugins import ReplayPlugin, SupervisedPlugin
    from avalanche.training.storage_policy import ExperienceBalancedBuffer


class Network(MultiTaskModule):
    """An LSTM, and a head for each task that reads its state at the last valid step."""

    def __init__(self) -> None:
        """Start with torch's values."""
        super().__init__()
        self.lstm = torch.nn.LSTM(FEATURES, UNITS, batch_first=True)
        self.heads = MultiHeadClassifier(UNITS, initial_out_features=CLASSES, masking=False)

    def forward(self, x: Tensor, task_labels: Tensor | None) -> Any:
        """Answers [N, CLASSES]; x is [N, LONGEST, FEATURES + 1], its last column 1 at valid steps."""
        lengths = x[:, :, -1].sum(1).long()
        states, _ = self.lstm(x[:, : int(lengths.max()), :-1])
        return self.heads(states[torch.arange(len(x)), lengths - 1], task_labels)


class Stopwatch(SupervisedPlugin):
    """Adds up the time of training epochs: neither the Fisher nor the filling of a buffer is in it."""

    def __init__(self) -> None:
        """At zero."""
        super().__init__()
        self.seconds, self.begun = 0.0, 0.0

    def before_training_epoch(self, *_: Any, **__: Any) -> None:
        """Start."""
        self.begun = time.perf_counter()

    def after_training_epoch(self, *_: Any, **__: Any) -> None:
        """Stop."""
        self.seconds += time.perf_counter() - self.begun


def _replay(**common: Any) -> Any:
    """Replay with equally many stored samples of each task, from the first task on."""
    size = STORED * TASKS
    policy = ExperienceBalancedBuffer(size, adaptive_size=False, num_experiences=TASKS)
    common["plugins"].append(ReplayPlugin(size, storage_policy=policy))
    return Naive(**common)


STRATEGIES: dict[str, Callable[..., Any]] = {
    "naive": Naive,
    "EWC": lambda **common: EWC(ewc_lambda=1e6, mode="online", decay_factor=1.0, **common),
    "SI": lambda **common: SynapticIntelligence(si_lambda=1e5, **common),
    "replay": _replay,
    "LwF": lambda **common: LwF(alpha=1.0, temperature=2.0, **common),
}


class Rival:
    """A strategy of avalanche-lib that learns one task after the other."""

    def __init__(
        self, name: str, tasks: Sequence[MadeTask], seed: int, iterations: int, *, fused: bool
    ) -> None:
        """A fresh network; everything is drawn from torch's global generator, as avalanche-lib has it."""
        torch.manual_seed(seed)
        self.tasks, self.iterations = tasks, iterations
        self.network, self.stopwatch = Network(), Stopwatch()
        self.experiences = _experiences(tasks)
        self.strategy = STRATEGIES[name](
            model=self.network,
            optimizer=torch.optim.Adam(self.network.parameters(), lr=LEARNING_RATE, fused=fused or None),
            criterion=torch.nn.CrossEntropyLoss(),
            train_mb_size=BATCH,
            train_epochs=iterations * BATCH // TRAIN,
            plugins=[self.stopwatch],
            evaluator=None,
        )
        self.pace: list[float] = []
        """Milliseconds of an iteration, for each task so far."""

    def learn(self, task: int) -> None:
        """Learn a task, with a fresh optimiser."""
        self.stopwatch.seconds = 0.0
        before = self.strategy.clock.train_iterations
        with warnings.catch_warnings(record=True):  # it calls functions of its own that it will rename
            self.strategy.train(self.experiences[task], reset_optimizer_state=True)
        done = self.strategy.clock.train_iterations - before
        if done != self.iterations:
            raise RuntimeError(
                f"avalanche-lib made {done} iterations where {self.iterations} were asked for."
            )
        self.pace.append(1e3 * self.stopwatch.seconds / done)

    @torch.no_grad()
    def accuracy(self) -> float:
        """Mean over all tasks of the percentage of test sequences that are answered rightly."""
        self.network.eval()
        scores = []
        for number, task in enumerate(self.tasks):
            answers = self.network(_inputs(task.test), torch.full((len(task.test.y),), number))
            scores.append(float((answers.argmax(1).numpy() == task.test.y).mean()))
        return 100 * sum(scores) / len(scores)


def _inputs(split: Split) -> Tensor:
    """Sequences [N, LONGEST, FEATURES + 1]; the last column is 1 at valid steps and 0 in the padding."""
    return torch.from_numpy(np.concatenate([split.x, split.inside[:, :, None]], axis=2).astype(np.float32))


def _experiences(tasks: Sequence[MadeTask]) -> list[Any]:
    """The training sets, with labels of class and task, as avalanche-lib wants them."""
    datasets = []
    for number, task in enumerate(tasks):
        y = torch.from_numpy(task.train.y)
        labels = [DataAttribute(y.tolist(), "targets"), TaskLabels(ConstantSequence(number, len(y)))]
        pairs = TensorDataset(_inputs(task.train), y)
        datasets.append(TaskAwareSupervisedClassificationDataset([pairs], data_attributes=labels))
    benchmark = with_classes_timeline(with_task_labels(benchmark_from_datasets(train=datasets)))
    return list(benchmark.train_stream)
