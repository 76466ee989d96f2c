"""The Copy Task family (paper Sec. 5.1, SM "Variations of the Copy Task").

A random pattern of p steps and `width` bits is shown in an input phase of i steps; a stop bit follows;
then the network must output p steps that are the same function of the pattern for all samples of a task.
An input is [i + 1 + p, width + 1], its last feature the stop bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Self

import numpy as np
from pydantic import Field, PositiveInt, model_validator

from perdure.benchmarks.task import Array, Benchmark, Sequences, Task, Watch, quiet
from perdure.targets.bits import Bits

TargetMap = Callable[[Array], Array]
"""From patterns [N, p, width] to targets [N, p, width]."""


class _CopyFamily(Benchmark):
    """Shared by all members: sizes, sample counts, inputs."""

    i: PositiveInt = 5
    """Steps of the input phase."""
    p: PositiveInt = 5
    """Steps of the pattern; at most i. The rest of the input phase is zero."""
    width: PositiveInt = 7
    """Bits of the pattern at each step."""
    tasks: PositiveInt = 5
    """Number of different tasks."""
    repeats: PositiveInt = 1
    """How often the whole list of tasks is presented (2: the paper's transfer experiment)."""
    train: PositiveInt = 100_000
    """Training samples."""
    val: PositiveInt = 1_000
    """Validation samples."""
    test: PositiveInt = 1_000
    """Test samples."""
    data_seed: Annotated[int, Field(ge=0, lt=2**32)] = 42
    """Seed of inputs and of the tasks' permutations; seed: that of the run."""

    @model_validator(mode="after")
    def _pattern_fits(self) -> Self:
        if self.p > self.i:
            raise ValueError(
                f"a pattern of p = {self.p} steps does not fit in an input phase of i = {self.i}; "
                f"choose p <= i"
            )
        return self

    def target_map(self, task_seed: int) -> TargetMap:
        """The task's function of the pattern; the basic task copies it."""
        del task_seed
        return lambda pattern: pattern

    def build(self, watch: Watch = quiet) -> list[Task]:
        """All tasks share their inputs (drawn once); only the target maps differ."""
        del watch  # building takes no time
        source = np.random.RandomState(self.data_seed)
        # The order of the draws (train, test, val) follows the original.
        patterns = {
            split: (source.rand(count, self.p, self.width) > 0.5).astype(np.uint8)
            for split, count in (("train", self.train), ("test", self.test), ("val", self.val))
        }
        inputs = {split: self._inputs(pattern) for split, pattern in patterns.items()}
        task_seeds = np.random.RandomState(self.data_seed).randint(1000, size=self.tasks)
        tasks = []
        for index in range(self.tasks * self.repeats):
            to_target = self.target_map(int(task_seeds[index % self.tasks]))
            splits = {
                split: Sequences(
                    Bits(),
                    inputs[split],
                    to_target(pattern).astype(np.int8),
                    np.full(len(pattern), self.i + 1 + self.p),
                )
                for split, pattern in patterns.items()
            }
            tasks.append(Task(name=f"{self.name} {index + 1}", outputs=self.width, **splits))
        return tasks

    def _inputs(self, pattern: Array) -> Array:
        """Pattern, zeros until the stop bit at step i, zeros in the output phase."""
        x = np.zeros((len(pattern), self.i + 1 + self.p, self.width + 1), dtype=np.uint8)
        x[:, : self.p, : self.width] = pattern
        x[:, self.i, self.width] = 1
        return x


class Copy(_CopyFamily):
    """The basic Copy Task: the output is the input pattern. One task, used by the analyses."""

    tasks: PositiveInt = 1
    """Number of tasks; all are the same."""


class PermutedCopy(_CopyFamily):
    """Each task recalls the pattern in its own temporal order."""

    def target_map(self, task_seed: int) -> TargetMap:
        """Output row j is input row pi(j), pi drawn from the task's seed."""
        order = np.random.RandomState(task_seed).permutation(self.p)
        return lambda pattern: pattern[:, order]


class PaddedCopy(PermutedCopy):
    """Permuted Copy with a long delay between pattern and recall (i > p)."""

    i: PositiveInt = 25
    """Steps of the input phase."""


class PatternManipulation(_CopyFamily):
    """The pattern XORed with r time permutations of itself, drawn one after the other."""

    r: PositiveInt = 1
    """Number of permutations: the difficulty."""

    def target_map(self, task_seed: int) -> TargetMap:
        """Y <- x, then y <- y XOR pi_r'(x) for r' = 1..r, always permuting the original x."""
        source = np.random.RandomState(task_seed)
        orders = [source.permutation(self.p) for _ in range(self.r)]

        def manipulate(pattern: Array) -> Array:
            target = pattern.copy()
            for order in orders:
                target ^= pattern[:, order]
            return target

        return manipulate
