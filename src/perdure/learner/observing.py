"""Learning from a stream without task boundaries: predict first, learn every n samples, notice drift.

A segment of the stream is a task of the engine, and all of them share one head. Every n samples the segment
is learnt further; when its errors say that the stream has changed, a new segment begins, and the method
protects the old ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from perdure.benchmarks.task import Array
from perdure.learner.classes import Owner, from_json, plain_class, to_json
from perdure.learner.drift import Drift
from perdure.learner.faults import wrong

FEWEST = 10
"""Samples that must wait before they are learnt."""
STREAM = Owner(
    "the stream", advice="its first samples must have all classes, so begin a new stream with a new learner"
)
"""Whose classes are those of an observed stream."""
WINDOW = 100
"""Samples over which the recent accuracy is taken."""


@dataclass(frozen=True)
class Watching:
    """What is known of the stream so far."""

    segment: int = 1
    seen: int = 0
    judged: int = 0
    """Samples that were predicted before their answer was known."""
    right: int = 0
    recent: tuple[bool, ...] = ()
    drift: Drift = field(default_factory=Drift)
    changes: tuple[int, ...] = ()
    """Numbers of the samples at which a change was noticed."""
    waiting: tuple[tuple[Array, Any], ...] = ()
    """Samples that have not been learnt yet."""

    @property
    def name(self) -> str:
        """The engine's name of the current segment."""
        return f"segment {self.segment}"

    @property
    def accuracy(self) -> float | None:
        """Prequential accuracy in percent: each sample was predicted before it was learnt."""
        return 100 * self.right / self.judged if self.judged else None

    @property
    def recent_accuracy(self) -> float | None:
        """The same over the latest samples."""
        return 100 * sum(self.recent) / len(self.recent) if self.recent else None

    def told(self) -> dict[str, Any]:
        """The numbers of the stream so far."""
        return {
            "samples": self.seen,
            "accuracy": self.accuracy,
            "recent accuracy": self.recent_accuracy,
            "segments": self.segment,
            "changes": list(self.changes),
        }

    def predicted(self, right: bool) -> Watching:
        """With one more prediction judged."""
        drift = self.drift.after(right)
        return replace(
            self,
            judged=self.judged + 1,
            right=self.right + right,
            recent=(*self.recent, right)[-WINDOW:],
            drift=drift,
        )

    def met(self, x: Array, y: Any) -> Watching:
        """With one more sample to be learnt."""
        return replace(self, seen=self.seen + 1, waiting=(*self.waiting, (x, y)))

    def changed(self) -> Watching:
        """A new segment; samples that wait are the first of it."""
        return replace(self, segment=self.segment + 1, drift=Drift(), changes=(*self.changes, self.seen))

    def learnt(self) -> Watching:
        """Nothing waits any more."""
        return replace(self, waiting=())

    def json(self) -> dict[str, Any]:
        """As plain data; the sequences that wait are written as tensors."""
        waiting = [to_json(y) for _, y in self.waiting]
        return {**vars(self), "drift": self.drift.json(), "waiting": waiting}

    @classmethod
    def from_json(cls, data: dict[str, Any], x: list[Array]) -> Watching:
        """The inverse of `json`, with the sequences that wait."""
        waiting = tuple((one, from_json(y)) for one, y in zip(x, data["waiting"], strict=True))
        parts = {"recent": tuple(data["recent"]), "changes": tuple(data["changes"]), "waiting": waiting}
        return cls(**{**data, **parts, "drift": Drift.from_json(data["drift"])})


def check_stream(y: Any, count: int, target: str) -> None:
    """Raise unless there is one class for each of so many sequences."""
    if y is None or len(y) != count:
        raise wrong("y", f"give one class per sequence, [{count}].")
    real = target != "label" and all(isinstance(each, (float, np.floating)) for each in y)
    if (
        target not in ("auto", "label")
        or real
        or any(np.ndim(each) and type(each) is not tuple for each in y)
    ):
        raise wrong("y", "a stream is learnt with one class per sequence; tags, bits and values need learn.")


def as_samples(x: Array, lengths: Array, y: Any) -> list[tuple[Array, Any]]:
    """Pairs of one sequence [T_i, F] and its answer."""
    answers = [plain_class(answer) for answer in y]
    return [(one[:length], answer) for one, length, answer in zip(x, lengths.tolist(), answers, strict=True)]


class Pupil(Protocol):
    """What learns the stream."""

    @property
    def tasks(self) -> list[str]:
        """Names of the segments learnt so far."""

    def predict(self, x: Any, *, task: str | None = None) -> Any:
        """Answers of a segment."""

    def learn(self, task: str, x: Any, y: Any) -> Any:
        """Learn a segment, or go on with it."""


def observe_all(
    pupil: Pupil, watching: Watching, samples: list[tuple[Array, Any]], every: int, drift: bool
) -> Watching:
    """Each sample in turn: predict it, judge, wait, and learn when enough of them wait."""
    if not isinstance(every, int) or every < FEWEST:
        raise wrong("every", f"{every!r} is not a number of samples; give an integer of at least {FEWEST}.")
    for x, y in samples:
        if pupil.tasks:
            watching = watching.predicted(bool(pupil.predict([x], task=pupil.tasks[-1])[0] == y))
            if drift and watching.drift.changed:
                watching = watching.changed()
        watching = watching.met(x, y)
        if len(watching.waiting) >= every:
            sequences, answers = zip(*watching.waiting, strict=True)
            pupil.learn(watching.name, list(sequences), list(answers))
            watching = watching.learnt()
    return watching
