"""What both sides learn: made-up sequences like spoken digits, and the training that both are given.

Five tasks of two classes. A class is a smooth mean trajectory through feature space; a sequence follows
it at its own pace, from beginning to end in its own number of steps, with noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

TASKS = 5
CLASSES = 2
FEATURES = 64
UNITS = 64
BATCH = 32
LEARNING_RATE = 3e-3
MEAN_LENGTH, SHORTEST, LONGEST = 8, 4, 20
TRAIN, VAL, TEST = 640, 64, 400
"""Sequences of a task; TRAIN is a multiple of BATCH, so that an epoch has whole batches only."""
STORED = 100
"""Samples of each task that are kept for rehearsal."""
WAVES = 0.4
"""Amplitude of the mean trajectories; the noise has standard deviation 1."""


@dataclass(frozen=True)
class Split:
    """Sequences padded with zeros: x [N, LONGEST, FEATURES], y [N], lengths [N]."""

    x: NDArray[np.float32]
    y: NDArray[np.int64]
    lengths: NDArray[np.int64]

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Which steps are not padding [N, LONGEST]."""
        return np.arange(LONGEST) < self.lengths[:, None]


@dataclass(frozen=True)
class MadeTask:
    """The splits of a task."""

    train: Split
    val: Split
    test: Split


def make_tasks(seed: int) -> list[MadeTask]:
    """All tasks of a seed; each has classes of its own."""
    source = np.random.default_rng(seed)
    tasks = []
    for _ in range(TASKS):
        phases = source.uniform(0, 2 * np.pi, (CLASSES, FEATURES))
        speeds = source.uniform(0.5, 1.5, (CLASSES, FEATURES))
        tasks.append(MadeTask(*(_draw(source, phases, speeds, count) for count in (TRAIN, VAL, TEST))))
    return tasks


def _draw(
    source: np.random.Generator, phases: NDArray[np.float64], speeds: NDArray[np.float64], count: int
) -> Split:
    """A split with equally many sequences of each class."""
    y = source.permutation(np.arange(count) % CLASSES)
    lengths = np.clip(source.poisson(MEAN_LENGTH, count), SHORTEST, LONGEST)
    progress = np.arange(LONGEST) / lengths[:, None]
    angles = phases[y][:, None] + 2 * np.pi * speeds[y][:, None] * progress[:, :, None]
    x = WAVES * np.sin(angles) + source.normal(size=angles.shape)
    x[progress >= 1] = 0
    return Split(x.astype(np.float32), y, lengths)
