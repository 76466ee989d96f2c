"""Searches in the report: what was tried, what was chosen and why, and how much each value matters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from perdure.errors import counted
from perdure.options import option_text
from perdure.report.numbers import duration, points
from perdure.report.plots import Mark, Scale, Shape, categories, chart, linear, logarithmic
from perdure.report.searches import percent, short_name, space_lines, use_of, values_text
from perdure.report.sensitivity import best_line, is_log, ordered, positions
from perdure.search.state import Search, Trial

MOST = 40
"""Trials in the table of a search; the strip shows all of them."""


@dataclass(frozen=True)
class TrialLine:
    """One trial in the table."""

    rank: str
    order: int
    final: str
    final_value: float | None
    during: str
    values: list[str]
    status: str
    reason: str
    time: str
    chosen: bool


@dataclass(frozen=True)
class SearchSection:
    """One search."""

    id: str
    title: str
    method: str
    facts: list[str]
    why: list[str]
    """What was chosen and why, in sentences."""
    values: str
    """The chosen values, as on the command line."""
    command: str
    columns: list[str]
    """Short names of the searched options."""
    trials: list[TrialLine]
    strip: Markup
    panels: list[Markup]
    space: list[str]
    source: str
    refused: list[str]


def search_section(search: Search, identity: str, styles: Mapping[str, str]) -> SearchSection:
    """A search for the template; `styles` are the classes of methods."""
    design, names = search.design, search.design.space.varied
    counts = Counter(trial.status for trial in search.trials)
    tried = [
        f"{counts[word]} {word}" for word in ("finished", "stopped", "failed", "waiting") if counts[word]
    ]
    seeds = ", ".join(map(str, design.tuning_seeds))
    facts = [
        f"search {search.id}",
        f"scale {design.scale}",
        f"{counted(len(search.trials), 'trial')}: {', '.join(tried)}",
        f"sampler {design.sampler}" + (", halving" if design.halving else ""),
        f"tuning seed{'s' if len(design.tuning_seeds) > 1 else ''} {seeds}",
        duration(search.seconds),
    ]
    style = styles[design.method]
    return SearchSection(
        id=identity,
        title=f"{design.question}, {design.method}",
        method=design.method,
        facts=facts if search.complete else [*facts, "not complete"],
        why=_why(search),
        values="" if search.chosen is None else values_text(search.values),
        command="" if search.chosen is None else use_of(search),
        columns=[short_name(name, names) for name in names],
        trials=[_line(search, trial, names) for trial in _in_order(search)[:MOST]],
        strip=strip(search, style),
        panels=[panel(search, name, style) for name in ordered(design.space)],
        space=space_lines(design.space),
        source=design.space.source,
        refused=search.refused,
    )


def _in_order(search: Search) -> list[Trial]:
    """By rank, then what was stopped, by score, then the rest."""
    return sorted(
        search.trials, key=lambda trial: (trial.rank or 10**9, -(trial.final or -1.0), trial.number)
    )


def _line(search: Search, trial: Trial, names: Sequence[str]) -> TrialLine:
    return TrialLine(
        rank=str(trial.rank or ""),
        order=trial.rank or 10**6 + trial.number,
        final=percent(trial.final),
        final_value=trial.final,
        during=percent(trial.during),
        values=[option_text(trial.values[name]) if name in trial.values else "" for name in names],
        status=trial.status,
        reason=trial.reason,
        time=duration(trial.seconds),
        chosen=trial.number == search.chosen,
    )


def _why(search: Search) -> list[str]:
    """The choice in sentences."""
    if search.chosen is None:
        return ["Nothing is chosen yet."]
    trial = search.trials[search.chosen - 1]
    said = [
        f"Chosen: trial {trial.number}, rank {trial.rank} of {len(search.ranked)} by validation accuracy "
        f"after the last task ({percent(trial.final)} %)."
    ]
    for candidate in search.candidates:
        which = f"Trial {candidate.trial} with {counted(len(candidate.hashes), 'reporting seed')}: "
        if candidate.final is None:
            said.append(f"{which}not all finished ({candidate.reason.rstrip('.')}).")
            continue
        tuned = search.trials[candidate.trial - 1].final or 0.0
        limit = f"at most {search.design.margin:g} points below its tuning score"
        word = f"robust, since it is {limit}" if candidate.robust else f"not robust, since it is not {limit}"
        said.append(f"{which}validation {percent(candidate.final)} % (tuning: {percent(tuned)} %), {word}.")
    if len(search.candidates) > 1 and not search.candidates[0].robust:
        said.append("Since the best was not robust, the next were run too, and the best of them was chosen.")
    return said


def strip(search: Search, style: str) -> Markup:
    """All trials, sorted by validation accuracy."""
    shown = sorted((t for t in search.trials if t.final is not None), key=lambda t: -(t.final or 0.0))
    marks = [
        Mark(place, trial.final or 0.0, style, tip=_tip(trial), shape=_shape(search, trial))
        for place, trial in enumerate(shown, 1)
    ]
    heights = linear([mark.y for mark in marks], "{:.4g}".format)
    across = Scale(0.5, len(marks) + 0.5, _few(len(marks)))
    return chart(
        marks,
        across,
        heights,
        titles=("trials, sorted", "validation %"),
        told=f"Validation accuracy of {counted(len(marks), 'trial')} of {search.design.method}, sorted",
    )


def _few(count: int) -> list[tuple[float, str]]:
    step = max(1, -(-count // 8))
    return [(float(n), str(n)) for n in range(1, count + 1, step)]


def panel(search: Search, name: str, style: str) -> Markup:
    """Validation accuracy against one searched option; the line joins the best trial of each value."""
    space = search.design.space
    trials = [t for t in search.trials if t.final is not None and name in t.values]
    at, labels = positions(space, name)
    heights = linear([trial.final or 0.0 for trial in trials], "{:.4g}".format)
    places = [at(trial.values[name]) for trial in trials]
    if labels is not None:
        across = categories([_short(text) for text in labels])
    elif not places:
        across = Scale(0, 1, [])
    elif is_log(space, name):
        across = logarithmic(places, lambda value: _short(str(value)))

    else:
        across = linear(places)
    finished = [trial for trial in trials if trial.status == "finished"]
    line = best_line([(at(trial.values[name]), trial) for trial in finished], grouped=labels is not None)
    return chart(
        [
            Mark(place, trial.final or 0.0, style, tip=_tip(trial), shape=_shape(search, trial))
            for place, trial in zip(places, trials, strict=True)
        ],
        across,
        heights,
        titles=(short_name(name, space.varied), "validation %"),
        told=f"{search.design.method}: validation accuracy against {name}",
        line=line,
        line_style=style,
    )


def _short(text: str) -> str:
    """A number without needless digits: 1e+10 for 10000000000.0."""
    try:
        return f"{float(text):g}".replace("e+0", "e").replace("e+", "e").replace("e-0", "e-")
    except ValueError:
        return text


def _shape(search: Search, trial: Trial) -> Shape:
    if trial.number == search.chosen:
        return "star"
    return "dot" if trial.status == "finished" else "ring"


def _tip(trial: Trial) -> str:
    return (
        f"trial {trial.number}, {trial.status}: {points(trial.final or 0.0)} %  {values_text(trial.values)}"
    )
