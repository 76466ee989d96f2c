"""Comparisons: a table for the terminal, a section of the page, and plain data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from perdure.analysis.statistics import MARGIN, NOT_DECIDED, TOO_CLOSE, Number
from perdure.compare.answer import (
    Answer,
    Entry,
    answers,
    entries,
    front,
    memory,
    missing,
    over_the_limit,
    seconds,
)
from perdure.compare.question import Comparison, Constraints
from perdure.errors import counted
from perdure.report.numbers import duration, points, size
from perdure.report.plots import Mark, chart, linear, logarithmic
from perdure.report.reproduce import command_of
from perdure.report.search_views import panel
from perdure.report.sensitivity import ordered
from perdure.report.table import Table
from perdure.search.state import Search

STRENGTHS = ("strength", "fraction", "distillation")
"""Endings of options whose curve belongs on the page of a comparison."""


@dataclass(frozen=True)
class Row:
    """A method in the table of a comparison."""

    method: str
    search: str
    """Id of its search's section on the page, if it is there."""
    validation: str
    validation_value: float
    final: str
    final_value: float
    interval: str
    n: int
    difference: str
    difference_value: float | None
    verdict: str
    during: str
    forgetting: str
    forgetting_value: float
    kept: str
    kept_value: int
    growth: str
    time: str
    time_value: float
    demands: str


@dataclass(frozen=True)
class ComparisonSection:
    """One comparison."""

    id: str
    title: str
    facts: list[str]
    sentences: list[str]
    command: str
    """Trains the winner."""
    asked: str
    """The command that made the comparison."""
    rows: list[Row]
    left_out: list[tuple[str, str]]
    missing: list[tuple[str, str]]
    """Methods of which something is lost, and what."""
    changes: list[tuple[str, str, str]]
    """Condition, method, and what it reaches."""
    plots: list[tuple[str, Markup]]
    curves: list[tuple[str, Markup]]
    score: str


def comparison_section(
    comparison: Comparison,
    runs: Path,
    identity: str,
    styles: Mapping[str, str],
    sections: Mapping[str, str],
) -> ComparisonSection | None:
    """A comparison for the template; None if it has no result yet. `sections` are ids by search."""
    found = entries(comparison, runs)
    if not found:
        return None
    best = found[0]
    facts = [
        f"comparison {comparison.id}",
        f"scale {comparison.scale}",
        _effort(comparison, found),
        counted(comparison.seeds, "reporting seed"),
        f"{duration(comparison.seconds)}"
        + ("" if comparison.hours is None else f" of {duration(3600 * comparison.hours)} allowed"),
        *constraint_words(comparison.constraints),
        *([] if comparison.complete else ["not complete"]),
    ]
    return ComparisonSection(
        id=identity,
        title=f"Which method for {subject(best.search)}?",
        facts=facts,
        sentences=conclusion(found),
        command=command_of(best.records[0]),
        asked=comparison.command,
        rows=[_row(each, best, sections) for each in found],
        left_out=list(_left_out(comparison, runs).items()),
        missing=list(missing(comparison, runs).items()),
        changes=[_change(each, best) for each in answers(found, size)],
        plots=_plots(found, styles),
        curves=_curves(found, styles),
        score=best.records[0].score,
    )


def _effort(comparison: Comparison, found: Sequence[Entry]) -> str:
    """How many trials each method had, and which had fewer because their spaces have no more points."""
    smaller = {
        each.method: len(each.search.trials) for each in found if each.search.exhausted(comparison.trials)
    }
    words = [
        f"{method} {'the only point' if count == 1 else f'all {count} points'} of its space"
        for method, count in smaller.items()
    ]
    return "; ".join([f"{counted(comparison.trials, 'trial')} for each method", *words])


def no_result(comparison: Comparison, runs: Path) -> str:
    """Why a comparison has no section, in a sentence."""
    which = f"Comparison {comparison.id} ({comparison.benchmark}, scale {comparison.scale})"
    reasons = _left_out(comparison, runs) | missing(comparison, runs)
    told = "; ".join(f"{method}: {why.rstrip('.')}" for method, why in reasons.items())
    state = "has no result" if comparison.complete else "is not complete and has no result yet"
    return f"{which} {state}" + (f" ({told})." if told else ".")


def subject(search: Search) -> str:
    """The benchmark, or the folder of one's own data."""
    return str(search.design.given.get("benchmark.folder", search.design.benchmark))


def constraint_words(constraints: Constraints) -> list[str]:
    """The constraints in words."""
    words = ["no stored data"] if constraints.no_stored_data else []
    words += [] if constraints.memory is None else [f"at most {size(constraints.memory)} kept"]
    return [*words, *(["task unknown at test time"] if constraints.task_unknown else [])]


def conclusion(found: Sequence[Entry]) -> list[str]:
    """The answer in sentences, from the numbers beside it."""
    best = found[0]
    equal = [each for each in found[1:] if each.validation == best.validation]
    rank = f"and {_names(equal)} are the best" if equal else "is the best"
    said = [
        f"{best.method} {rank} by validation accuracy: {points(best.validation)} % after the last task, "
        f"{_with_interval(best.final)} on test data."
    ]
    if equal:
        said.append(f"Of equally good ones, {best.method} keeps no more than the others.")
    near = [each for each in found[1:] if each.verdict == TOO_CLOSE]
    open_ones = [each for each in found[1:] if each.verdict == NOT_DECIDED]
    if near:
        said.append(
            f"Too close to call against it (less than {MARGIN:g} point apart): {_names(near)}. "
            + _cheapest([best, *near])
        )
    if open_ones:
        said.append(f"Not decided with so few seeds: {_names(open_ones)}.")
    if len(found) > 1 and not near and not open_ones:
        said.append("Every other method is worse, by a paired t-test on test accuracy.")
    return said


def _cheapest(near: Sequence[Entry]) -> str:
    least, quickest = min(near, key=memory), min(near, key=seconds)
    return (
        f"Of these, {least.method} keeps the least ({size(memory(least))}) and {quickest.method} learns "
        f"fastest ({duration(quickest.seconds)} a task)."
    )


def _names(found: Sequence[Entry]) -> str:
    return ", ".join(each.method for each in found)


def _with_interval(value: Number) -> str:
    if value.low is None or value.high is None:
        return f"{points(value.mean)} % (one seed)"
    return (
        f"{points(value.mean)} % (95 % interval {points(value.low)} to {points(value.high)}, n = {value.n})"
    )


def _half(value: Number) -> str:
    return "" if value.high is None else f" ± {points(value.high - value.mean)}"


def _row(each: Entry, best: Entry, sections: Mapping[str, str]) -> Row:
    growth = (each.kept[-1] - each.kept[0]) / max(len(each.kept) - 1, 1)
    needs = [word for word, needed in zip(("stored data", "task"), each.demands, strict=True) if needed]
    gap = each.difference
    return Row(
        method=each.method,
        search=sections.get(each.search.id, ""),
        validation=points(each.validation),
        validation_value=each.validation,
        final=points(each.final.mean) + _half(each.final),
        final_value=each.final.mean,
        interval=_with_interval(each.final),
        n=each.final.n,
        difference="" if gap is None else points(gap.mean) + _half(gap),
        difference_value=None if gap is None else gap.mean,
        verdict="best" if each is best else each.verdict,
        during=points(each.during.mean),
        forgetting=points(each.forgetting.mean) + _half(each.forgetting),
        forgetting_value=each.forgetting.mean,
        kept=size(each.kept[-1]),
        kept_value=each.kept[-1],
        growth=f"+{size(growth)}" if growth else "0",
        time=duration(each.seconds),
        time_value=each.seconds,
        demands=", ".join(needs) or "nothing",
    )


def _left_out(comparison: Comparison, runs: Path) -> dict[str, str]:
    over = {
        method: f"its chosen setting keeps {size(count)}"
        for method, count in over_the_limit(comparison, runs).items()
    }
    return comparison.left_out | over


def _change(answer: Answer, best: Entry) -> tuple[str, str, str]:
    if answer.entry is None:
        hint = ""
        if "task" in answer.condition:
            hint = "perdure compare ... --task-unknown compares methods with one head for all tasks"
        return answer.condition, "none here", hint
    reached = f"{points(answer.entry.validation)} % validation, {points(answer.entry.final.mean)} % test"
    same = "still " if answer.entry is best else ""
    return answer.condition, f"{same}{answer.entry.method}", f"{reached}, keeps {size(memory(answer.entry))}"


COSTS: list[tuple[str, str, Callable[[Entry], float], Callable[[float], str]]] = [
    ("Accuracy against memory", "kept beyond a task", memory, size),
    ("Accuracy against time", "training time of a task", seconds, duration),
]


def _plots(found: Sequence[Entry], styles: Mapping[str, str]) -> list[tuple[str, Markup]]:
    """Accuracy against each cost, with the front of those that no other beats in both."""
    made = []
    for title, axis, cost, text in COSTS:
        best = front(found, cost)
        ends = [end for e in found for end in (e.final.low, e.final.high, e.final.mean) if end is not None]
        marks = [
            Mark(
                cost(each),
                each.final.mean,
                styles[each.method],
                label=each.method,
                tip=f"{each.method}: {_with_interval(each.final)}, {text(cost(each))}",
                interval=None
                if each.final.low is None or each.final.high is None
                else (max(each.final.low, min(ends)), min(each.final.high, 100.0)),
                shape="dot" if each in best else "ring",
            )
            for each in found
        ]
        drawn = chart(
            marks,
            logarithmic([max(cost(each), 1e-6) for each in found], text),
            linear([min(end, 100.0) for end in ends], "{:.4g}".format),
            titles=(axis, "test final %"),
            told=f"{title}: " + "; ".join(mark.tip for mark in marks),
            line=_stairs([(cost(each), each.final.mean) for each in best]),
        )
        made.append((title, drawn))
    return made


def _stairs(corners: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """A front as steps: what is reached for at most this cost."""
    line: list[tuple[float, float]] = []
    for at, height in corners:
        line += [(at, line[-1][1])] if line else []
        line.append((at, height))
    return line


def _curves(found: Sequence[Entry], styles: Mapping[str, str]) -> list[tuple[str, Markup]]:
    """How validation accuracy depends on what balances old tasks and new ones."""
    return [
        (each.method, panel(each.search, name, styles[each.method]))
        for each in found
        for name in ordered(each.search.design.space)
        if name.endswith(STRENGTHS) and not name.startswith("penalties.orthogonal")
    ]


def write_comparison(path: Path, comparison: Comparison, runs: Path) -> None:
    """One page: the comparison, its searches, and the runs of the chosen settings."""
    from perdure.report.page import write_page

    found = entries(comparison, runs)
    records = [record for each in found for record in each.records]
    title = f"Which method for {subject(found[0].search)}?"
    searches = [each.search for each in found]
    write_page(path, records, [], title, searches=searches, comparisons=[comparison], runs=runs)


def comparison_table(comparison: Comparison, runs: Path) -> Table:
    """The ranking, for the terminal."""
    found = entries(comparison, runs)
    title = f"{comparison.benchmark} at scale {comparison.scale}: {_effort(comparison, found)}"
    caption = "percent; ± 95 % t-interval; ranked by validation, differences paired by seed on test data"
    table = Table(title, caption)
    columns = (
        "",
        "method",
        "validation",
        "test final",
        "difference",
        "",
        "forgetting",
        "kept",
        "per task",
        "n",
    )
    for column in columns:
        table.add_column(column, justify="left" if column in ("method", "") else "right")
    for rank, each in enumerate(found, 1):
        row = _row(each, found[0], {})
        cells = [row.validation, row.final, row.difference, row.verdict, row.forgetting, row.kept, row.time]
        table.add_row(str(rank), row.method, *cells, str(row.n))
    return table


def comparison_lines(comparison: Comparison, runs: Path) -> list[str]:
    """The answer, what would change it, and how to train the winner."""
    found = entries(comparison, runs)
    lines = conclusion(found)
    lines += [f"Left out: {name}: {why.rstrip('.')}." for name, why in _left_out(comparison, runs).items()]
    lines += [f"Missing: {name}: {what}." for name, what in missing(comparison, runs).items()]
    for condition, method, reached in (_change(each, found[0]) for each in answers(found, size)):
        lines.append(f"If {condition}: {method}" + (f" ({reached})." if reached else "."))
    return [*lines, f"To train it: {command_of(found[0].records[0])}"]


def comparison_json(comparison: Comparison, runs: Path) -> dict[str, Any]:
    """The result as plain data."""
    found = entries(comparison, runs)
    rows = [
        {
            "method": each.method,
            "search": each.search.id,
            "trials": len(each.search.trials),
            "validation_final": each.validation,
            "test_final": vars(each.final),
            "difference": None if each.difference is None else vars(each.difference),
            "verdict": each.verdict,
            "forgetting": each.forgetting.mean,
            "kept_bytes": each.kept,
            "seconds_per_task": each.seconds,
            "stores_data": each.demands.stored_data,
            "needs_task": each.demands.task,
        }
        for each in found
    ]
    return {
        "id": comparison.id,
        "benchmark": comparison.benchmark,
        "trials": comparison.trials,
        "seeds": comparison.seeds,
        "seconds": comparison.seconds,
        "ranking": rows,
        "left_out": _left_out(comparison, runs),
        "missing": missing(comparison, runs),
        "command": command_of(found[0].records[0]),
    }
