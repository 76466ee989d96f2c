"""Stroke MNIST (paper Sec. 5.2, SM "Sequential Stroke MNIST"): strings of digits, drawn with a pen.

A digit is a sequence of pen moves (dx, dy, end of stroke, end of digit); its first row is the absolute start.
A task has two digits; a sample concatenates m of them and belongs to one of two classes: for m = 1 the digit
itself, otherwise a random half of the 2^m strings. Tasks, groupings and digits follow from seeds as in the
original, so that the groupings for data seed 42 are the published ones.
"""

from __future__ import annotations

from itertools import combinations
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, PositiveInt, model_validator

from perdure.benchmarks.scenario import Scenario, in_scenario
from perdure.benchmarks.sources.strokes_file import Strokes, shipped
from perdure.benchmarks.task import Array, Benchmark, Sequences, Task, Watch, quiet
from perdure.errors import PerdureError
from perdure.targets.label import Label

PAIRS = [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)]
"""The digits of the tasks, if there are at most five."""
ALL_PAIRS = list(combinations(range(10), 2))
"""All pairs of digits; larger numbers of tasks are drawn from them."""
TRAINING_DIGITS = 50_000
"""The sequential variant trains on MNIST's training digits before this index and validates on the others."""
COUNTS = {"train": 12_000, "test": 2_000, "val": 1_000}
"""Samples per task in the sequential variant, in the order in which they are drawn."""
SPLIT_VALIDATION = 100
"""Validation samples per task in the split variant."""
SEEDS = 100_000
"""Task seeds are below this number."""


class Smnist(Benchmark):
    """Stroke MNIST: classify strings of handwritten digits, two digits per task."""

    later: ClassVar[tuple[str, ...]] = ("points", "scenario")
    origin: ClassVar[str] = "included with Perdure; made from MNIST by tools/strokes in the repository"

    digits: Annotated[int, Field(ge=1, le=10)] = 1
    """m: digits per sample."""
    classes: Literal["two", "all"] = "two"
    """two: the 2^m strings are grouped at random into two classes; all: each string is a class."""
    tasks: Annotated[int, Field(ge=1, le=len(ALL_PAIRS))] = 5
    """Number of tasks; more than 5 use pairs of digits in random order."""
    upsampling: Annotated[int, Field(ge=1, le=8)] = 1
    """u: write each digit u times as large, in u times as many steps; only with digits 1."""
    variant: Literal["sequential", "split"] = "sequential"
    """sequential: balanced random samples; split: each MNIST digit once, as in the rehearsal table."""
    train: PositiveInt | None = None
    """Training samples per task; default: 12000, or all available in the split variant."""
    val: PositiveInt | None = None
    """Validation samples per task; default: 1000, or the first 100 training samples in the split variant."""
    test: PositiveInt | None = None
    """Test samples per task; default: 2000, or all available in the split variant."""
    points: Annotated[int, Field(ge=4)] | None = None
    """Draw each digit with at most so many points, evenly spaced, instead of all; pen-up flags stay."""
    data_seed: Annotated[int, Field(ge=0, lt=2**32)] = 42
    """Seed of the tasks, their groupings and their samples; seed: that of the run."""

    scenario: Scenario = "task"
    """task: told at test time; class: not told, all classes so far are possible; domain: not told."""

    @property
    def differs(self) -> str:
        """The strokes, and their points."""
        converted = (
            "Stroke MNIST: strokes are made by this project's own converter, which orders the points of one "
            "digit in ten differently."
        )
        if self.points is None:
            return converted
        return f"{converted} Each digit is resampled to at most {self.points} points."

    @property
    def comparable(self) -> bool:
        """Whether all points are read, as in the paper."""
        return self.points is None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.upsampling > 1 and self.digits > 1:
            raise ValueError(
                f"upsampling = {self.upsampling} is for single digits; use it with digits = 1, "
                f"not {self.digits}"
            )
        if self.variant == "split" and (self.digits, self.upsampling, self.classes) != (1, 1, "two"):
            raise ValueError(
                "the split variant uses single digits as they are; set digits = 1, upsampling = 1 "
                "and two classes"
            )
        if self.variant == "split" and self.tasks > len(PAIRS):
            raise ValueError(f"the split variant supports at most {len(PAIRS)} tasks, not {self.tasks}")
        for split, usual in COUNTS.items():
            if self.variant == "sequential" and (getattr(self, split) or usual) < 2**self.digits:
                raise ValueError(
                    f"{split} = {getattr(self, split) or usual} samples are too few: each of the "
                    f"{2**self.digits} strings of {self.digits} digits must occur"
                )
        return self

    def build(self, watch: Watch = quiet) -> list[Task]:
        """The tasks; arrays are as long as the longest sequence of their split."""
        digits = {part: resampled(strokes, self.points) for part, strokes in shipped().items()}
        if self.variant == "split":
            return in_scenario([self._split(pair, digits) for pair in PAIRS[: self.tasks]], self.scenario)
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
        return in_scenario(tasks, self.scenario)

    def _pairs(self) -> list[tuple[tuple[int, int], int]]:
        """The two digits and the seed of each task.

        The draws follow the original's order: with more than five tasks, the indices of all pairs are
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
        # Upsampled digits need no grouping, but the original draws one of 2^u strings; we do the same, since
        # otherwise the digits drawn would differ.
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
                f"benchmark.val: task '{_title(pair)}' has only {len(known)} training samples, so {val} "
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
    """Draw `count` random strings of two digits: the index of each among the 2^m [count], and its digits.

    Digits are [count, m]. All 2^m strings occur equally often; if `count` is not a multiple, the first ones
    occur once more. Digits are drawn with replacement, string by string, sample by sample.
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
    """Sequences of the chosen digits [N, m], concatenated: x [N, T, 4], with labels [N]."""
    pieces = strokes.lengths[chosen]
    lengths = pieces.sum(axis=1)
    x = np.zeros((len(chosen), int(lengths.max()), strokes.rows.shape[1]), dtype=strokes.rows.dtype)
    flat = pieces.ravel()
    # The row numbers of all pieces, concatenated, in the order in which x takes them.
    begins = strokes.offsets[chosen].ravel() - (flat.cumsum() - flat)
    numbers = np.repeat(begins, flat) + np.arange(int(flat.sum()))
    x[np.arange(x.shape[1]) < lengths[:, None]] = strokes.rows[numbers]
    return Sequences(Label(), x, labels, lengths)


def resampled(strokes: Strokes, points: int | None) -> Strokes:
    """Digits of at most so many rows (None: as they are); positions stay those of the points kept.

    Every row that lifts the pen is kept, and of the others evenly spaced ones, the first and the last among
    them; what was moved in between is added to the next row kept. Only if there are more lifts than rows,
    these are thinned too, and the next one kept stands for them.
    """
    if points is None:
        return strokes
    rows, digit = strokes.rows, np.repeat(np.arange(len(strokes)), strokes.lengths)
    lifts = rows[:, 2] != 0
    room_for_lifts = np.minimum(np.bincount(digit, lifts), points - 1).astype(np.int64)
    kept = _evenly(lifts, digit, room_for_lifts) | _evenly(~lifts, digit, points - room_for_lifts)
    begins = np.flatnonzero(np.concatenate([[True], kept[:-1]]))  # each row kept ends a group of rows
    moves = np.add.reduceat(rows[:, :2].astype(np.int64), begins)
    flags = np.maximum.reduceat(rows[:, 2:], begins)
    lengths = np.bincount(digit[kept], minlength=len(strokes))
    return Strokes(np.concatenate([moves, flags], axis=1).astype(rows.dtype), lengths, strokes.labels)


def _evenly(chosen: Array, digit: Array, room: Array) -> Array:
    """Of the chosen rows of each digit the first, the last and evenly spaced ones, as there is room."""
    count = np.bincount(digit, chosen).astype(np.int64)[digit]
    before = np.cumsum(chosen)
    first = np.concatenate([[0], before])[np.searchsorted(digit, digit)]
    place, gaps = before - 1 - first, np.maximum(count - 1, 1)  # among the chosen rows of the digit
    steps = np.minimum(room[digit], count) - 1
    reached = place * steps // gaps
    stays: Array = chosen & ((place == 0) | (reached > (place - 1) * steps // gaps))
    return stays


def upsampled(strokes: Strokes, factor: int) -> Strokes:
    """Digits `factor` times as large: the start is moved outwards, and each move is repeated `factor` times.

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
