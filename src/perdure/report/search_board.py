"""Progress of a search: a live table on a terminal, a line for each trial elsewhere."""

from __future__ import annotations

import time
from typing import Self

from rich.table import Table

from perdure.errors import counted
from perdure.learning.engine import Progress
from perdure.mailbox import News
from perdure.report.board import LiveTable
from perdure.report.progress import QUIET_SECONDS
from perdure.report.searches import percent, values_text
from perdure.search.crew import Job
from perdure.search.state import ENDED, Design, Search

SHOWN = 8
"""Number of trials shown, best first."""


class SearchBoard(LiveTable):
    """Shows validation accuracy only; a context manager whose methods are given to crew and study."""

    def __init__(self, design: Design, trials: int, told: dict[int, str] | None = None) -> None:
        """`trials` is the maximum number of trials; `told` those of which earlier boards spoke, by number."""
        super().__init__()
        self.design, self.trials = design, trials
        self.told = {} if told is None else told
        self.candidates = 0
        self.running: dict[str, Progress] = {}
        self.search: Search | None = None
        self.spoke = self.begun

    def __enter__(self) -> Self:
        """Start the live table if there is a terminal; elsewhere say how many trials there will be."""
        super().__enter__()
        if len(self.told) < self.trials:
            most = counted(self.trials, "trial")
            self.say(f"{self.design.benchmark} {self.design.method}: at most {most}")
        return self

    def moved(self, job: Job, news: News) -> None:
        """Show the progress of a run."""
        if isinstance(news, Progress):
            self.running[job.label] = news
            if time.monotonic() - self.spoke > QUIET_SECONDS:
                self.say(f"{job.label}: {_where(news)}")
            self.refresh()

    def changed(self, search: Search) -> None:
        """Show the new state of the search."""
        self.search = search
        self.trials = max(self.trials, len(search.trials))
        for trial in search.trials:
            if trial.status in ENDED and self.told.get(trial.number) != trial.status:
                self.told[trial.number] = trial.status
                self.running.pop(f"{self.design.method} trial {trial.number}", None)
                reached = f"validation final {percent(trial.final)}" if trial.final is not None else "failed"
                why = f": {trial.reason}" if trial.reason else ""
                self.say(
                    f"[{len(self.told)}/{self.trials}] {self.design.method} trial {trial.number}: {reached} "
                    f"({trial.seconds:.0f} s){why}  {values_text(trial.values)}"
                )
        for candidate in search.candidates[self.candidates :]:
            word = "robust" if candidate.robust else "not robust"
            self.say(
                f"{self.design.method} trial {candidate.trial} with reporting seeds: "
                f"{percent(candidate.final) or candidate.reason}, {word}"
            )
        self.candidates = len(search.candidates)
        self.refresh()

    def say(self, text: str) -> None:
        """Print a line about the progress, unless there is a live table."""
        if self.live is None:
            self.remark(text)

    def remark(self, text: str) -> None:
        """Print a line; a live table goes on below it."""
        self.spoke = time.monotonic()
        self.console.print(text, markup=False, soft_wrap=True)

    def table(self) -> Table:
        """The best trials so far, and those in progress."""
        spent = (time.monotonic() - self.begun) / 60
        done = f"{len(self.told)} of {counted(self.trials, 'trial')}"
        title = f"{self.design.benchmark} {self.design.method}: {done}"
        table = Table(title=f"{title}, {spent:.1f} min", title_justify="left")
        for column in ("trial", "validation final", "values"):
            table.add_column(column, justify="right" if column == "validation final" else "left")
        trials = [] if self.search is None else [t for t in self.search.trials if t.final is not None]
        for trial in sorted(trials, key=lambda each: -(each.final or 0.0))[:SHOWN]:
            table.add_row(str(trial.number), percent(trial.final), values_text(trial.values), style="dim")
        for label, state in sorted(self.running.items()):
            table.add_row(label, percent(state.val_accuracy), _where(state))
        return table


def _where(state: Progress) -> str:
    return f"task {state.phase + 1}/{state.phases}, iteration {state.iteration}/{state.iterations}"
