"""The progress of a run: a live bar in a terminal, plain lines elsewhere. Always on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Column

from perdure.errors import printable
from perdure.report.table import wrapped
from perdure.report.terminal import width

if TYPE_CHECKING:  # torch is not needed to show a build
    from perdure.learning.engine import Progress as State

MOST_TASKS = 10
"""Number of tasks whose scores are printed one by one."""
QUIET_SECONDS = 10.0
"""Seconds between plain lines within a phase."""


class Display:
    """Shows what the engine reports; use as a context manager and pass `show` to the engine."""

    def __init__(self, label: str = "", *, live: bool = True) -> None:
        """Choose how to show progress by the kind of output; a label precedes plain lines.

        If several processes share one terminal, only one of them may be `live`.
        """
        self.live = live
        self.console = Console(stderr=True, highlight=False)
        self.label = f"{label}: " if label else ""
        self.bar: Progress | None = None
        self.line: TaskID | None = None
        self.spoke = time.monotonic()

    def __enter__(self) -> Display:
        """Start the live bar if the output is a terminal."""
        if self.live and self.console.is_terminal:
            self.bar = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=10),
                TextColumn("{task.completed:>5}/{task.total}"),
                TimeRemainingColumn(),
                # The column that shrinks in a narrow terminal.
                TextColumn("{task.fields[facts]}", markup=False, table_column=Column(ratio=1, no_wrap=True)),
                console=self.console,
                transient=True,
                expand=True,
            )
            self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Restore the terminal."""
        if self.bar is not None:
            self.bar.stop()

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        lines = wrapped(printable(self.label + text), width(sys.stderr) if self.console.is_terminal else None)
        self.console.print("\n".join(lines), markup=False, soft_wrap=True)

    def built(self, what: str, done: int, total: int) -> None:
        """Show the progress of a long data build."""
        if self.bar is not None:
            if self.line is None:
                self.line = self.bar.add_task(what, total=total, facts="")
            self.bar.update(self.line, completed=done, total=total, description=what)
            if done == total:
                self.bar.remove_task(self.line)
                self.line = None
        elif time.monotonic() - self.spoke > QUIET_SECONDS:
            self.spoke = time.monotonic()
            self.say(f"{what}: {done}/{total}")

    def show(self, state: State) -> None:
        """Show a report of the engine."""
        if state.accuracy is not None:
            self._end_of_phase(state)
        elif self.bar is not None:
            self._move(self.bar, state)
        elif time.monotonic() - self.spoke > QUIET_SECONDS:
            self.spoke = time.monotonic()
            rate = state.seconds / max(state.iteration, 1)
            left = rate * (state.iterations - state.iteration)
            self.say(
                f"{_where(state)}: iteration {state.iteration}/{state.iterations}, {_facts(state)}, "
                f"about {left:.0f} s left for this task"
            )

    def _move(self, bar: Progress, state: State) -> None:
        if self.line is None:
            self.line = bar.add_task(_where(state), total=state.iterations, facts=_facts(state))
        bar.update(self.line, completed=state.iteration, facts=_facts(state))

    def _end_of_phase(self, state: State) -> None:
        assert state.accuracy is not None
        if self.bar is not None and self.line is not None:
            self.bar.remove_task(self.line)
            self.line = None
        spent = f"{state.iteration} iterations, {state.seconds:.1f} s"
        self.say(f"{_where(state)}: {spent}; test {state.score} {_row(state, state.accuracy)}")
        self.spoke = time.monotonic()


def _row(state: State, accuracy: Sequence[float]) -> str:
    """The scores of all tasks; of many, the new one's and the mean of those learnt so far."""
    if len(accuracy) <= MOST_TASKS:
        return " ".join(f"{value:6.2f}" for value in accuracy)
    learnt = accuracy[: state.phase + 1] if state.phases > 1 else accuracy
    mean = sum(learnt) / len(learnt)
    return f"{learnt[-1]:.2f} on it, {mean:.2f} on average over {len(learnt)} tasks"


def _where(state: State) -> str:
    return printable(f"[{state.phase + 1}/{state.phases}] {state.task}")


def _facts(state: State) -> str:
    losses = ", ".join(f"{name} {value:.3g}" for name, value in state.losses.items())
    checked = "" if state.val_accuracy is None else f"validation {state.val_accuracy:.2f} %, "
    return f"{checked}loss: {losses}"
