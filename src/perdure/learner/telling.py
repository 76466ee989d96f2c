"""What a learner says while it learns: a progress bar, and callbacks.

A callback is any object with one or more of these methods:

- `on_start(task, known)`: a lesson begins; the names of the tasks known before it;
- `on_progress(task, iteration, values)`: every few iterations, with losses and validation score by name;
- `on_end(task, result)`: the lesson is over; its validation score, iterations and seconds by name.

A callback that returns False from `on_progress` stops the lesson: `learn` raises `Interrupted`, and the
learner stays as it was. Loggers for TensorBoard and for Weights & Biases are in `perdure.learner.loggers`.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any

from perdure.learner.knowledge import Knowledge, Lesson
from perdure.learning.engine import Progress
from perdure.report.progress import Display


class Teller:
    """Shows a lesson's progress; use as a context manager."""

    def __init__(self, verbose: int, callbacks: Sequence[Any], before: Knowledge, lesson: Lesson) -> None:
        """Start no display if silent."""
        self.display = Display() if verbose else None
        self.callbacks, self.before, self.lesson = callbacks, before, lesson
        self._stop = False

    def __enter__(self) -> Teller:
        """Begin."""
        if self.display is not None:
            self.display.__enter__()
        self._call("on_start", self.lesson.name, self.before.tasks)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Restore the terminal."""
        if self.display is not None:
            self.display.__exit__(kind, error, trace)

    def show(self, progress: Progress) -> None:
        """Where the lesson is."""
        if self.display is not None:
            self.display.show(progress)
        values = {f"loss/{name}": value for name, value in progress.losses.items()}
        if progress.val_accuracy is not None:
            values[f"validation/{progress.score}"] = progress.val_accuracy
        if False in self._call("on_progress", self.lesson.name, progress.iteration, values):
            self._stop = True

    def stopped(self) -> bool:
        """Whether a callback asked to stop."""
        return self._stop

    def done(self, after: Knowledge) -> None:
        """The lesson is over."""
        visit = after.visits[-1]
        if self.display is not None:
            score = self.lesson.form.target.score_name
            self.display.say(
                f"{visit.task}: {visit.iterations} iterations, {visit.seconds:.1f} s; "
                f"validation {score} {visit.validation:.2f} %"
            )
        told = {"validation": visit.validation, "iterations": visit.iterations, "seconds": visit.seconds}
        self._call("on_end", visit.task, told)

    def _call(self, method: str, *arguments: Any) -> list[Any]:
        return [getattr(each, method)(*arguments) for each in self.callbacks if hasattr(each, method)]
