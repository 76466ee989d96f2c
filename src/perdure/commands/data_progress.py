"""The progress of a build: a bar on a terminal, plain lines elsewhere; always on standard error."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

QUIET_SECONDS = 10.0
"""Between plain lines."""


class Bar:
    """Shows what a build tells; use as a context manager and give `watch` to the build."""

    def __init__(self) -> None:
        """Decide by the kind of output how to show progress."""
        self.console = Console(stderr=True, highlight=False)
        self.bar: Progress | None = None
        self.lines: dict[str, TaskID] = {}
        self.spoke = time.monotonic()

    def __enter__(self) -> Bar:
        """Start the bar if there is a terminal."""
        if self.console.is_terminal:
            columns = (
                TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
            )  # fmt: skip
            self.bar = Progress(*columns, console=self.console, transient=True)
            self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the terminal as it was."""
        if self.bar is not None:
            self.bar.stop()

    def watch(self, what: str, done: int, total: int) -> None:
        """Take up a word of the build."""
        if self.bar is not None:
            if what not in self.lines:
                self.lines[what] = self.bar.add_task(what, total=total)
            self.bar.update(self.lines[what], completed=done, total=total)
        elif time.monotonic() - self.spoke > QUIET_SECONDS:
            self.spoke = time.monotonic()
            self.console.print(f"{what}: {done}/{total}", markup=False, soft_wrap=True)
