"""Analyses that the paper does not have, as findings: transfer, plasticity, steps, sensitivity."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from perdure.analysis import choices
from perdure.analysis.finding import Finding, Value, beside, lines
from perdure.analysis.opened import OpenedRun
from perdure.analysis.plasticity import Plasticity, dormant_share, effective_rank
from perdure.analysis.sensitivity import sensitivity
from perdure.analysis.step_importance import step_importance
from perdure.analysis.transfer import mean, transfer
from perdure.errors import PerdureError


def transferred(run: OpenedRun, options: choices.TransferOptions) -> Finding:
    """Forward and backward transfer of each task, and their means."""
    del options
    found, count = transfer(run.record), len(run.record.tasks)
    if not found.backward:
        reason = "has only one task" if count == 1 else "learns all tasks together"
        raise PerdureError(f"Run {run.record.hash} {reason}; there is nothing to transfer.")
    forward = [math.nan, *found.forward] if found.forward else [math.nan] * count
    backward = [*found.backward, math.nan]
    rows: list[list[Value]] = [[f"task {task + 1}", forward[task], backward[task]] for task in range(count)]
    means = (mean(found.forward), mean(found.backward))
    rows.append(["mean", *(math.nan if value is None else value for value in means)])
    title = f"{run.title}: transfer in percentage points of {run.record.score}"
    series = {"forward": forward, "backward": backward}
    return Finding(title, ["task", *series], rows, lines(range(1, count + 1), series, "task", "points"))


def plasticity(run: OpenedRun, options: choices.PlasticityOptions) -> Finding:
    """For each task right after it was learnt: its accuracy, dormant units and the rank of the states."""
    found = plasticity_of(run, options)
    rows: list[list[Value]] = [[task + 1, *each] for task, each in enumerate(found)]
    title = f"{run.title}: the newest task after each phase, its states on test data"
    columns = ["task", f"{run.record.score} (%)", "dormant units (%)", "effective rank"]
    series = {
        "accuracy (%)": [each.accuracy for each in found],
        "dormant units (%)": [each.dormant for each in found],
        "effective rank": [each.rank for each in found],
    }
    return Finding(title, columns, rows, lines(range(1, len(found) + 1), series, "task", "value"))


def plasticity_of(run: OpenedRun, options: choices.PlasticityOptions) -> list[Plasticity]:
    """The measures of each task right after it was learnt."""
    result = []
    for task in range(len(run.record.tasks)):
        phase = run.phase_of(task)
        states = run.states(phase, task, options.samples).during("all")
        result.append(
            Plasticity(
                run.record.accuracy[phase][task],
                100 * dormant_share(states, options.tau),
                effective_rank(states),
            )
        )
    return result


def importance_by_step(run: OpenedRun, options: choices.StepImportanceOptions) -> Finding:
    """The contribution of each step to the mean Fisher of a task's recurrent weights, after its phase."""
    series: dict[str, list[float]] = {}
    sums = []
    for task in range(len(run.record.tasks)):
        phase = run.phase_of(task)
        network, weights = run.running(phase, task)
        found = step_importance(network, weights, run.data(phase)[task].train, task, options.samples)
        series[f"task {task + 1}"] = found.steps
        sums.append(f"{found.fisher:.3g} ({found.coherence:.2f})")
    title = (
        f"{run.title}: contribution of each step to the mean Fisher of recurrent weights; mean Fisher, and "
        f"in brackets its ratio to the sum over steps: {', '.join(sums)}"
    )
    return beside(title, "step", series, "contribution")


def sensitivities(run: OpenedRun, options: choices.SensitivityOptions) -> Finding:
    """How far the recurrent weights move the outputs of each task, after its phase and at the end."""
    last = len(run.phases) - 1
    rows: list[list[Value]] = []
    for task in range(len(run.record.tasks)):
        found = [
            sensitivity(*run.running(phase, task), run.data(phase)[task].train, task, options.samples)
            for phase in (run.phase_of(task), last)
        ]
        rows.append([task + 1, *found])
    columns = ["task", "after its phase", "at the end"]
    series = {name: [float(row[place]) for row in rows] for place, name in enumerate(columns) if place}
    title = f"{run.title}: sensitivity of outputs to recurrent weights, mean over weights"
    return Finding(title, columns, rows, lines(range(1, len(rows) + 1), series, "task", "sensitivity"))


OF_RUN: dict[str, Callable[[OpenedRun, Any], Finding]] = {
    "transfer": transferred,
    "plasticity": plasticity,
    "step-importance": importance_by_step,
    "sensitivity": sensitivities,
}
"""These analyses by name."""
