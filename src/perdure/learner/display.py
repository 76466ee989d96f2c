"""A learner in a notebook: its settings, its tasks, and the accuracy matrix of what was scored."""

from __future__ import annotations

from html import escape

from perdure.learner.knowledge import Knowledge

Cell = float | None
STYLE = "border-collapse:collapse;font-variant-numeric:tabular-nums"
CELL = "padding:2px 10px;text-align:right"


def matrix(knowledge: Knowledge) -> tuple[list[str], list[tuple[str, list[Cell]]]]:
    """Tasks, and a row after each lesson: the latest score of each task by then, noted after that lesson.

    The score of the task just learnt is that on its validation sequences, unless it was scored as well.
    """
    tasks, rows = knowledge.tasks, []
    for number, visit in enumerate(knowledge.visits, 1):
        found: dict[str, float] = {visit.task: visit.validation}
        for after, scores in knowledge.scores:
            if after == number:
                found |= scores
        rows.append((visit.task, [found.get(task) for task in tasks]))
    return tasks, rows


def forgetting(knowledge: Knowledge) -> dict[str, float]:
    """For each task that was scored later: the best score before, minus the last one."""
    tasks, rows = matrix(knowledge)
    lost = {}
    for place, task in enumerate(tasks):
        column = [cell for _, cells in rows if (cell := cells[place]) is not None]
        if len(column) > 1:
            lost[task] = max(column[:-1]) - column[-1]
    return lost


def html(said: str, knowledge: Knowledge | None) -> str:
    """The display: what it is, and a table; green is good."""
    head = f"<code>{escape(said)}</code>"
    if knowledge is None or not knowledge.visits:
        return f"<div>{head}<p>Nothing learnt yet.</p></div>"
    tasks, rows = matrix(knowledge)
    titles = "".join(f"<th style='{CELL}'>{escape(task)}</th>" for task in tasks)
    lines = [f"<tr><th style='{CELL};text-align:left'>after</th>{titles}</tr>"]
    lines += [_line(name, cells) for name, cells in rows]
    lost = forgetting(knowledge)
    if lost:
        cells = "".join(
            f"<td style='{CELL}'>{lost[task]:.1f}</td>" if task in lost else f"<td style='{CELL}'></td>"
            for task in tasks
        )
        lines.append(f"<tr><th style='{CELL};text-align:left'>forgotten</th>{cells}</tr>")
    score = next(iter(knowledge.formats.values())).target.score_name
    note = f"{score} in percent; of a task just learnt, on its validation sequences; empty: not scored"
    return f"<div>{head}<table style='{STYLE}'>{''.join(lines)}</table><small>{escape(note)}.</small></div>"


def _line(name: str, cells: list[Cell]) -> str:
    shown = "".join(
        f"<td style='{CELL}'></td>"
        if cell is None
        else f"<td style='{CELL};background:rgba(0,158,115,{max(cell, 0) / 250:.2f})'>{cell:.1f}</td>"
        for cell in cells
    )
    return f"<tr><th style='{CELL};text-align:left'>{escape(name)}</th>{shown}</tr>"
