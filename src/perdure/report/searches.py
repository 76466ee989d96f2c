"""Tables of searches for the terminal: trials by rank, failures, and the choice."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from perdure.errors import PerdureError, counted
from perdure.options import option_text
from perdure.registry import Origin, plugin_words
from perdure.report.table import Table
from perdure.report.tables import summary
from perdure.search.spaces import Range, Space, Values
from perdure.search.state import Search, Trial
from perdure.storage.record import Record
from perdure.storage.store import RunFolder

SHOWN = 12
"""Number of trials shown."""


def search_table(search: Search) -> Table:
    """Trials by rank, with the values that vary."""
    design = search.design
    names = design.space.varied
    title = f"{design.question}, {design.method}: {_counts(search)} (search {search.id})"
    table = Table(title)
    for column in ("rank", "validation final", "during"):
        table.add_column(column, justify="right")
    for name in names:
        table.add_column(short_name(name, names), justify="right")
    table.add_column("")
    for trial in search.ranked[:SHOWN]:
        values = [option_text(trial.values[name]) if name in trial.values else "" for name in names]
        mark = "chosen" if trial.number == search.chosen else ""
        table.add_row(str(trial.rank), percent(trial.final), percent(trial.during), *values, mark)
    left = len(search.ranked) - SHOWN
    if left > 0:
        table.caption = f"and {left} more"
    return table


def _counts(search: Search) -> str:
    counts = Counter(trial.status for trial in search.trials)
    words = [f"{counts[status]} {status}" for status in ("stopped", "failed", "waiting") if counts[status]]
    return ", ".join([counted(len(search.trials), "trial"), *words])


def short_name(name: str, among: Sequence[str]) -> str:
    """The last parts of a dotted name that distinguish it from the others."""
    parts = name.split(".")
    least = 2 if parts[-1] == "strength" else 1  # of what, must be said
    for count in range(least, len(parts) + 1):
        ending = ".".join(parts[-count:])
        if sum(other == ending or other.endswith(f".{ending}") for other in among) == 1:
            return ending
    return name


def percent(value: float | None) -> str:
    """Two decimals, or nothing."""
    return "" if value is None else f"{value:.2f}"


def values_text(values: Values) -> str:
    """Values as written on the command line."""
    return " ".join(f"--{name} {option_text(value)}" for name, value in values.items())


def failed_lines(search: Search) -> list[str]:
    """Trials that failed or were not finished, each with its reason."""
    lines = [f"Not tried: {reason}." for reason in search.refused]
    for trial in search.trials:
        if trial.status in ("failed", "waiting"):
            lines.append(f"Trial {trial.number} {trial.status}: {trial.reason} ({values_text(trial.values)})")
    return lines


def chosen_lines(search: Search, runs: Path) -> list[str]:
    """The choice, and the results with reporting seeds."""
    trial = search.trials[(search.chosen or 1) - 1]
    lines = [f"Chosen: trial {trial.number}, rank {trial.rank}: {values_text(trial.values)}"]
    for candidate in search.candidates:
        reached = percent(candidate.final) or f"not all finished ({candidate.reason})"
        word = "robust" if candidate.robust else "not robust"
        seeds = f"seeds 0 to {len(candidate.hashes) - 1}" if len(candidate.hashes) > 1 else "seed 0"
        lines.append(f"Trial {candidate.trial} with {seeds}: validation final {reached}, {word}")
        if candidate.trial == search.chosen:
            records = chosen_records(search, runs)
            if records:
                lines.append(f"  on test data: {summary(records)}")
    lines.append(f"To use it: {use_of(search)}")
    return lines


def use_of(search: Search) -> str:
    """The command that runs what a search has chosen, with the plugins that it needs."""
    design = search.design
    try:
        used = design.problem.plain.json.get("plugins", {})
    except PerdureError:  # a search of a plugin that is not loaded
        used = {}
    plugins = plugin_words(Origin(*pair) for pair in used.items())
    named = ["perdure", "run", design.benchmark, design.method, "--from-search", search.id, *plugins]
    return shlex.join(named)


def overview_table(searches: Sequence[Search], runs: Path) -> Table:
    """The choices of several methods side by side: validation, which decided, and test accuracy."""
    design = searches[0].design
    table = Table(
        f"{design.benchmark} at scale {design.scale}",
        "tuning, reporting: validation accuracy on tuning and reporting seeds; ± 95 % t-interval",
    )
    for column in ("method", "trials", "tuning", "reporting", "test during", "test final", "n", "search"):
        table.add_column(column, justify="left" if column in ("method", "search") else "right")
    for search in searches:
        records = chosen_records(search, runs)
        reached = [each.final for each in search.candidates if each.trial == search.chosen]
        trial = search.trials[(search.chosen or 1) - 1]
        shown = [interval_text([getattr(each, name) for each in records]) for name in ("during", "final")]
        cells = [percent(trial.final), percent(reached[0] if reached else None), *shown, str(len(records))]
        table.add_row(search.design.method, str(len(search.trials)), *cells, search.id)
    return table


def interval_text(values: Sequence[float]) -> str:
    """Mean ± half the width of the 95 % t-interval; nothing without values."""
    if not values:
        return ""
    from perdure.analysis.statistics import number  # numpy takes a while to load

    found = number(values)
    return percent(found.mean) + ("" if found.high is None else f" ± {percent(found.high - found.mean)}")


def chosen_records(search: Search, runs: Path) -> list[Record]:
    """The records of the chosen setting with reporting seeds."""
    hashes = [name for each in search.candidates if each.trial == search.chosen for name in each.hashes]
    found = [RunFolder(runs, name).record() for name in hashes]
    return [record for record in found if record is not None]


def space_lines(space: Space) -> list[str]:
    """The space, one line per dimension."""
    lines = []
    for each in space.dimensions:
        domain = each.domain
        text = str(domain) if isinstance(domain, Range) else " | ".join(option_text(v) for v in domain)
        when = ", ".join(f"{name} is {option_text(value)}" for name, value in each.when.items())
        lines.append(f"--{each.name} {text}" + (f"   where {when}" if when else ""))
    return lines


def searches_table(searches: Sequence[Search]) -> Table:
    """All searches of a folder, one row each."""
    table = Table()
    for column in ("search", "benchmark", "method", "scale", "sampler", "trials", "best validation", ""):
        table.add_column(column, justify="right" if column in ("trials", "best validation") else "left")
    for search in searches:
        design = search.design
        best: Trial | None = next(iter(search.ranked), None)
        table.add_row(
            search.id,
            design.question,
            design.method,
            design.scale,
            design.sampler,
            str(len(search.trials)),
            percent(best.final if best else None),
            "complete" if search.complete else "not complete",
        )
    return table
