"""Stroke MNIST (paper Sec. 5.2, SM "Sequential Stroke MNIST"): strings of digits, written by a pen.

A digit is a sequence of pen moves (dx, dy, end of stroke, end of digit), its first row the absolute start.
A task has two digits; a sample strings m of them together and must be sorted into one of two classes: for
m = 1 the digit itself, else a random half of the 2^m strings. Task, grouping and digits follow from seeds
as in the original, so that the groupings for data seed 42 are the published ones.
"""

from __future__ import annotations

from itertools import combinations
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, PositiveInt, model_validator

from perdure.benchmarks.sources.strokes_file import Strokes, shipped
from perdure.benchmarks.task import Array, Benchmark, Sequences, Task, Watch, quiet
from perdure.errors import PerdureError
from perdure.targets.label import Label

PAIRS = [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)]
"""The digits of the tasks, when there are at most five."""
ALL_PAIRS = list(combinations(range(10), 2))
"""All pairs of digits, from which more tasks are drawn."""
TRAINING_DIGITS = 50_000
"""The sequential variant trains on MNIST's training digits before this one and validates on the others."""
COUNTS = {"train": 12_000, "test": 2_000, "val": 1_000}
"""Samples of a task in the sequential variant, in the order in which they are drawn."""
SPLIT_VALIDATION = 100
"""Validation samples of a task in the split variant."""
SEEDS = 100_000
"""Seeds of tasks are below this number."""


class Smnist(Benchmark):
    """Stroke MNIST: sort strings of handwritten digits, two digits a task."""

    origin: ClassVar[str] = "comes with Perdure; tools/strokes in the repository makes it from MNIST"

    digits: Annotated[int, Field(ge=1, le=10)] = 1
    """m: digits that a sample strings together."""
    classes: Literal["two", "all"] = "two"
    """two: the 2^m strings are grouped at random into two classes; all: each string is a class."""
    tasks: Annotated[int, Field(ge=1, le=len(ALL_PAIRS))] = 5
    """Number of tasks; more than 5 take pairs of digits in random order."""
    upsampling: Annotated[int, Field(ge=1, le=8)] = 1
    """u: write each digit u times as large, in u times as many steps; only with digits 1."""
    variant: Literal["sequential", "split"] = "sequential"
    """sequential: balanced random samples; split: each digit of MNIST once, as for the rehearsal table."""
    train: PositiveInt | None = None
    """Training samples of a task; if not given 12000, or all there are in the split variant."""
    val: PositiveInt | None = None
    """Validation samples of a task; if not given 1000, or the first 100 for training in the split variant."""
    test: PositiveInt | None = None
    """Test samples of a task; if not given 2000, or all there are in the split variant."""
    data_seed: Annotated[int, Field(ge=0, lt=2**32)] = 42
    """Seed of the tasks, of their groupings and of their samples."""

    @property
    def differs(self) -> str:
        """The strokes."""
        return (
            "Stroke MNIST: strokes are made by this project's own converter, which orders the points of one "
            "digit in ten otherwise."
        )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.upsampling > 1 and self.digits > 1:
            raise ValueError(
                f"upsampling = {self.upsampling} is for single digits; use it with digits = 1, "
                f"not {self.digits}"
            )
        if self.variant == "split" and (self.digits, self.upsampling, self.classes) != (1, 1, "two"):
            raise ValueError(
                "the split variant has single digits as they are; use it with digits = 1, upsampling = 1 "
                "and two classes"
            )
        if self.variant == "split" and self.tasks > len(PAIRS):
            raise ValueError(f"the split variant has at most {len(PAIRS)} tasks, not {self.tasks}")
        for split, usual in COUNTS.items():
            if self.variant == "sequential" and (getattr(self, split) or usual) < 2**self.digits:
                raise ValueError(
                    f"{split} = {getattr(self, split) or usual} samples are too few: each of the "
                    f"{2**self.digits} strings of {self.digits} digits must occur"
                )
        return self

    def build(self, watch: Watch = quiet) -> list[Task]:
        """The tasks; sequences are as long as the longest of their split."""
        digits = shipped()
        if self.variant == "split":
            return [self._split(pair, digits) for pair in PAIRS[: self.tasks]]
        parts = {
            "train": digits["train"].slice(0, TRAINING_DIGITS),
            "test": digits["test"],
            "val": digits["train"].slice(TRAINING_DIGITS, len(digits["train"])),
        }
        parts = {split: upsampled(strokes, self.upsampling) for split, strokes in parts.items()}
        tasks: list[Task] = []
        for pair, seed in self._pairs():
            watch("tasks", len(tasks), self.tasks)
            tasks.append(self._sequential(pair, seed, parts))
        watch("tasks", len(tasks), self.tasks)
        return tasks

    def _pairs(self) -> list[tuple[tuple[int, int], int]]:
        """The two digits and the seed of each task.

        The original's order of draws: where there are more than five tasks, the numbers of all pairs are
        shuffled; then each task draws its seed.
        """
        source = np.random.RandomState(self.data_seed)
        pairs = PAIRS
        if self.tasks > len(PAIRS):
            order = np.arange(len(ALL_PAIRS))
            source.shuffle(order)
            pairs = [ALL_PAIRS[number] for number in order]
        return [(pair, int(source.randint(SEEDS))) for pair in pairs[: self.tasks]]

    def _sequential(self, pair: tuple[int, int], seed: int, parts: dict[str, Strokes]) -> Task:
        """One task: first its grouping is drawn, then the digits of its train, test and val samples."""
        source = np.random.RandomState(seed)
        group = self._groups(source)
        splits = {}
        for split, usual in COUNTS.items():
            strings, chosen = drawn_strings(
                parts[split].labels, pair, self.digits, getattr(self, split) or usual, source
            )
            splits[split] = strung_together(parts[split], chosen, group[strings])
        return Task(_title(pair), outputs=int(group.max()) + 1, **splits)

    def _groups(self, source: np.random.RandomState) -> Array:
        """The class of each of the 2^m strings, read as binary numbers: the larger digit is 1."""
        strings = 2**self.digits
        if self.classes == "all" or self.digits == self.upsampling == 1:
            return np.arange(strings)
        # Upsampled digits need no grouping, but the original draws one of 2^u strings: so do we, lest other
        # digits be drawn than there.
        order = source.permutation(2 ** max(self.digits, self.upsampling))
        if self.upsampling > 1:
            return np.arange(strings)
        return np.isin(np.arange(strings), order[: strings // 2]).astype(np.int64)

    def _split(self, pair: tuple[int, int], digits: dict[str, Strokes]) -> Task:
        """One task of the split variant: all digits of a pair in MNIST's order, the first for validation."""
        known, test = (np.flatnonzero(np.isin(digits[part].labels, pair)) for part in ("train", "test"))
        val = self.val or SPLIT_VALIDATION
        if val >= len(known):
            raise PerdureError(
                f"benchmark.val: task '{_title(pair)}' has {len(known)} training samples, of which {val} "
                f"are too many for validation; choose fewer."
            )
        chosen = {"val": known[:val], "train": known[val:][: self.train], "test": test[: self.test]}
        splits = {}
        for split, numbers in chosen.items():
            strokes = digits["test" if split == "test" else "train"]
            labels = (strokes.labels[numbers] == pair[1]).astype(np.int64)
            splits[split] = strung_together(strokes, numbers[:, None], labels)
        return Task(_title(pair), outputs=2, **splits)


def _title(pair: tuple[int, int]) -> str:
    return f"digits {pair[0]} and {pair[1]}"


def drawn_strings(
    labels: Array, pair: tuple[int, int], digits: int, count: int, source: np.random.RandomState
) -> tuple[Array, Array]:
    """`count` random strings of two digits: which of the 2^m each is [count], and its digits [count, m].

    All 2^m strings occur equally often, the first ones once more where that does not divide. Digits are drawn
    with replacement, string by string, sample by sample.
    """
    pools = [np.flatnonzero(labels == digit) for digit in pair]
    strings = 2**digits
    share = np.full(strings, count // strings)
    share[: count % strings] += 1
    string = np.repeat(np.arange(strings), share)
    bits = string[:, None] >> np.arange(digits - 1, -1, -1) & 1
    sizes = np.array([len(pool) for pool in pools])
    numbers = source.randint(sizes[bits])
    return string, np.concatenate(pools)[numbers + np.where(bits, sizes[0], 0)]


def strung_together(strokes: Strokes, chosen: Array, labels: Array) -> Sequences:
    """Sequences of the digits chosen [N, m] one after the other: x [N, T, 4], with labels [N]."""
    pieces = strokes.lengths[chosen]
    lengths = pieces.sum(axis=1)
    x = np.zeros((len(chosen), int(lengths.max()), strokes.rows.shape[1]), dtype=strokes.rows.dtype)
    flat = pieces.ravel()
    # The row numbers of all pieces, one after the other, in the order in which x takes them.
    begins = strokes.offsets[chosen].ravel() - (flat.cumsum() - flat)
    numbers = np.repeat(begins, flat) + np.arange(int(flat.sum()))
    x[np.arange(x.shape[1]) < lengths[:, None]] = strokes.rows[numbers]
    return Sequences(Label(), x, labels, lengths)


def upsampled(strokes: Strokes, factor: int) -> Strokes:
    """Digits `factor` times as large: the start is moved out, each move is made `factor` times.

    Rows that end a stroke or the digit are not repeated.
    """
    if factor == 1:
        return strokes
    begins = strokes.offsets
    times = np.where(strokes.rows[:, 2] == 0, factor, 1)
    times[begins] = 1
    starts = strokes.rows[begins].astype(np.int64) * factor
    rows = strokes.rows.astype(np.promote_types(np.int8, np.min_scalar_type(-int(starts.max()) - 1)))
    rows[begins] = starts
    return Strokes(np.repeat(rows, times, axis=0), np.add.reduceat(times, begins), strokes.labels)
