"""Many runs at a glance: a live table in a terminal, one line per finished run elsewhere."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from perdure.errors import printable
from perdure.learning.engine import Progress
from perdure.storage.record import Record

SHOWN = 12
"""Number of finished runs that stay visible."""


class LiveTable(ABC):
    """A table that is kept up to date in a terminal; use as a context manager."""

    def __init__(self) -> None:
        """Nothing is shown yet."""
        self.console = Console(stderr=True, highlight=False)
        self.begun = time.monotonic()
        self.live: Live | None = None

    @abstractmethod
    def table(self) -> Table:
        """What is shown now."""

    def __enter__(self) -> Self:
        """Start the live table if the output is a terminal."""
        if self.console.is_terminal:
            self.live = Live(self.table(), console=self.console, refresh_per_second=4, transient=True)
            self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Restore the terminal."""
        if self.live is not None:
            self.live.stop()

    def refresh(self) -> None:
        """Show the table as it is now."""
        if self.live is not None:
            self.live.update(self.table())


class Board(LiveTable):
    """Shows the progress of a list of runs."""

    def __init__(self, labels: Sequence[str]) -> None:
        """One label per run."""
        super().__init__()
        self.labels = list(labels)
        self.running: dict[int, Progress] = {}
        self.finished: dict[int, Record] = {}

    def moved(self, number: int, state: Progress) -> None:
        """Update the progress of a run."""
        self.running[number] = state
        self.refresh()

    def done(self, number: int, record: Record) -> None:
        """Mark a run as finished."""
        self.running.pop(number, None)
        self.finished[number] = record
        if self.live is None:
            self.console.print(
                f"[{len(self.finished)}/{len(self.labels)}] {self.labels[number]}: during "
                f"{record.during:.2f}, final {record.final:.2f} ({record.seconds:.0f} s)",
                markup=False,
                soft_wrap=True,
            )
        self.refresh()

    def table(self) -> Table:
        """Runs in progress, and those finished most recently."""
        spent = time.monotonic() - self.begun
        table = Table(
            title=f"{len(self.finished)} of {len(self.labels)} runs finished, {spent / 60:.1f} min",
            title_justify="left",
            box=None,
        )
        for column in ("run", "where", "during", "final"):
            table.add_column(column, justify="left" if column in ("run", "where") else "right")
        for number, record in list(self.finished.items())[-SHOWN:]:
            table.add_row(
                Text(printable(self.labels[number])),
                f"{record.seconds:.0f} s",
                f"{record.during:.2f}",
                f"{record.final:.2f}",
                style="dim",
            )
        for number, state in sorted(self.running.items()):
            checked = "" if state.val_accuracy is None else f"{state.val_accuracy:.2f} val"
            where = f"task {state.phase + 1}/{state.phases}, iteration {state.iteration}/{state.iterations}"
            table.add_row(Text(printable(self.labels[number])), where, checked, "")
        return table
