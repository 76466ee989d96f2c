"""The named analyses of finished runs as findings: a table and a drawing each."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from perdure.analysis import choices, theory
from perdure.analysis.dimensionality import dimension, dimension_per_step, explained_by, shared_dimensions
from perdure.analysis.distances import embedding_distances, weight_distances
from perdure.analysis.finding import Finding, Value, beside, lines, pairs
from perdure.analysis.flatness import accumulated, mean_fisher
from perdure.analysis.importance import Means, keeper_of, mean_importance, own_importance, stored_importance
from perdure.analysis.opened import OpenedRun
from perdure.analysis.rehearsed import likenesses
from perdure.analysis.states import Moment
from perdure.analysis.steps import accuracy_per_step, courses, learning_curve
from perdure.analysis.subspaces import principal_angles, readout_basis, similarities
from perdure.analysis.supervised import Fitting, Reduction, ServedTask, reduce_states
from perdure.errors import PerdureError
from perdure.networks.fisher import fisher
from perdure.randomness import generator


def dimensionality(run: OpenedRun, options: choices.Dimensionality) -> Finding:
    """Intrinsic dimensionality of h_t, per step or pooled."""
    if options.pooled != "no":
        return _pooled(run, options, options.pooled)
    phase = run.phase(options.after)
    states = {
        f"task {task + 1}": run.states(phase, task, options.samples, _layer(run, options))
        for task in run.learnt(phase)
    }
    found = {
        name: dimension_per_step(each, options.threshold, kernel=options.kernel)
        for name, each in states.items()
    }
    how = " (cosine kernel)" if options.kernel else ""
    title = f"{run.title}: dimensions that explain {100 * options.threshold:g} % of the variance of h_t{how}"
    finding = beside(title, "step", found, "dimensions")
    return _with_counts(
        finding, {name: each.running() for name, each in states.items()}, run.width(_layer(run, options))
    )


def _with_counts(finding: Finding, running: Mapping[str, list[int]], units: int) -> Finding:
    """Add the number of sequences where there are few: n of them span at most n - 1 dimensions."""
    steps = range(len(finding.rows))
    lefts = [[*counts, *(0 for _ in steps)] for counts in running.values()]  # tasks end at different steps
    if all(left[step] > units for left in lefts for step in steps):
        return finding
    columns = [*finding.columns, *(f"{name}, sequences" for name in running)]
    rows = [[*row, *(left[step] for left in lefts)] for step, row in enumerate(finding.rows)]
    title = f"{finding.title}; n sequences have at most n - 1"
    return replace(finding, title=title, columns=columns, rows=rows)


def _pooled(run: OpenedRun, options: choices.Dimensionality, moment: Moment) -> Finding:
    """Dimensions of pooled states: each task's, their sum, the joint one, and what task 1's explain."""
    phase = run.phase(options.after)
    tasks = run.learnt(phase)
    layer = _layer(run, options)
    activities = [run.states(phase, task, options.samples, layer).during(moment) for task in tasks]
    shares = shared_dimensions(activities, options.threshold, kernel=options.kernel)
    first = dimension(activities[0], options.threshold)
    rows: list[list[Value]] = [
        [f"task {task + 1}", size, 100 * explained_by(activities[0], activity, [first])[0]]
        for task, size, activity in zip(tasks, shares.separate, activities, strict=True)
    ]
    rows += [["sum", shares.total, math.nan], ["joint", shares.joint, math.nan]]
    title = f"{run.title}: dimensions of h_t, pooled over steps '{moment}'"
    columns = ["states of", "dimensions", f"% of variance in the first {first} components of task 1"]
    sizes = {"dimensions": [float(size) for size in shares.separate]}
    numbers = [task + 1 for task in tasks]
    return Finding(title, columns, rows, lines(numbers, sizes, "task", "dimensions"))


def _layer(run: OpenedRun, options: choices.Dimensionality) -> int:
    """The recurrent layer selected by the options."""
    count = run.config.network.layers
    if not -count <= options.layer < count:
        raise PerdureError(
            f"The network has recurrent layers 0 to {count - 1}; there is no layer {options.layer}."
        )
    return options.layer


def importance(run: OpenedRun, options: choices.Importance) -> Finding:
    """Mean importance of recurrent weights after each phase: stored, or from a newly computed Fisher."""
    keeper = keeper_of(run.learner)
    rows: list[list[Value]] = []
    if keeper is None:
        what = "empirical Fisher of each task after its phase, over the weights it uses"
        columns = ["task", "recurrent", "readout"]
        for task in range(run.network.tasks):
            phase = run.phase_of(task)
            network, weights = run.running(phase, task)
            chance, data = run.chance("fisher", task), run.data(phase)[task].train
            values = fisher(network, weights, data, task=task, samples=options.samples, generator=chance)
            rows.append([task + 1, *_numbers(mean_importance(values))])
    else:
        what = f"stored by {keeper}"
        columns = ["task", "recurrent", "readout", "recurrent, this task", "readout, this task"]
        for phase in range(len(run.phases)):
            now, before = run.state(phase), run.state(phase - 1) if phase else None
            total = mean_importance(stored_importance(now, keeper))
            own = mean_importance(own_importance(run.learner, before, now, keeper))
            rows.append([phase + 1, *_numbers(total), *_numbers(own)])
    series = {
        name: [float(row[column]) for row in rows]
        for column, name in enumerate(columns)
        if column and not math.isnan(float(rows[0][column]))
    }
    numbers = [float(row[0]) for row in rows]
    title = f"{run.title}: mean importance of weights, {what}"
    return Finding(title, columns, rows, lines(numbers, series, "task", "mean importance"))


def _numbers(means: Means) -> list[float]:
    return [means.recurrent, math.nan if means.readout is None else means.readout]


def supervised(run: OpenedRun, options: choices.Supervised) -> Finding:
    """Accuracy with the best n dimensions of the hidden states."""
    score = run.record.score
    found = {f"after phase {phase + 1}": one.accuracy for phase, one in reductions(run, options).items()}
    return beside(
        f"{run.title}: test {score} in percent with n dimensions of h_t", "n", found, f"{score} (%)"
    )


def reductions(run: OpenedRun, options: choices.Supervised) -> dict[int, Reduction]:
    """The best dimensions by phase (from 0): after every phase, or after one."""
    last = run.phase(options.after)
    phases = range(last + 1) if options.every else [last]
    return {phase: _reduction(run, options, phase) for phase in phases}


def _reduction(run: OpenedRun, options: choices.Supervised, phase: int) -> Reduction:
    """Dimensions that serve all tasks learnt up to a phase."""
    parts = []
    data = run.data(phase)
    for task in run.learnt(phase):
        units = run.units(phase, task)
        parts.append(ServedTask(*run.running(phase, task), task, data[task].train, data[task].test, units))
    fitting = Fitting(
        columns=options.columns,
        iterations=options.iterations,
        learning_rate=options.learning_rate,
        orthogonality=options.orthogonality,
        batch_size=options.batch_size,
        samples=options.samples,
        place=options.place,
    )
    return reduce_states(parts, run.width(), run.chance("supervised", phase), fitting)


def readout(run: OpenedRun, options: choices.Readout) -> Finding:
    """Similarity of the subspaces that the heads of tasks read."""
    if run.config.network.heads == "single":
        raise PerdureError(
            f"Run {run.record.hash} has a single head for all tasks, so there are no subspaces to compare."
        )
    phase = run.phase(options.after)
    bases = []
    for task in run.learnt(phase):
        network, weights = run.running(phase, task)
        head, kept = weights[f"{network.head(task)}.weight"], run.features(phase, task)
        if kept is not None:
            head = head.new_zeros(len(head), run.network.width).index_copy(1, kept, head)
        bases.append(readout_basis(head))
    if options.measure == "similarity":
        values = similarities(bases)
    else:
        end = 0 if options.measure == "smallest-angle" else -1
        values = [[principal_angles(one, other)[end] for other in bases] for one in bases]
    label = (
        "similarity" if options.measure == "similarity" else options.measure.replace("-", " ") + " (degrees)"
    )
    return pairs(f"{run.title}: {label} of read-out subspaces", run.learnt(phase), values, label)


def embeddings(run: OpenedRun, options: choices.Embeddings) -> Finding:
    """Distances between task embeddings, or between generated weights."""
    if not run.learner.source.generates:
        raise PerdureError(
            f"Run {run.record.hash} ({run.record.method}) has no task embeddings; runs of hnet do."
        )
    phase = run.phase(options.after)
    tasks = run.learnt(phase)
    if options.of == "embeddings":
        values = embedding_distances(run.state(phase), tasks)
    else:
        made = [run.running(phase, task)[1] for task in tasks]
        values = weight_distances(made, run.network.body)
    return pairs(f"{run.title}: Euclidean distance of {options.of}", tasks, values, "distance")


def flatness(run: OpenedRun, options: choices.FlatnessOptions) -> Finding:
    """Mean Fisher of each task right after it was learnt, and the precision of the Laplace approximation."""
    means, samples = [], []
    for task in range(run.network.tasks):
        phase = run.phase_of(task)
        network, weights = run.running(phase, task)
        data, chance = run.data(phase)[task].train, run.chance("flatness", task)
        samples.append(len(data))
        means.append(
            mean_fisher(
                network,
                weights,
                data,
                task,
                samples=options.samples,
                generator=chance,
                estimator=options.estimator,
            )
        )
    found = accumulated(means, samples, options.prior)
    rows: list[list[Value]] = [[entry.task + 1, *entry[1:]] for entry in found]
    series = {"own": means, "accumulated": [entry.accumulated for entry in found]}
    numbers = [entry.task + 1 for entry in found]
    title = f"{run.title}: mean of the diagonal Fisher ({options.estimator}) after each task"
    columns = ["task", "own", "accumulated", "precision", "precision, all tasks so far"]
    return Finding(title, columns, rows, lines(numbers, series, "task", "mean Fisher", log=True))


def rehearsed(run: OpenedRun, options: choices.RehearsedOptions) -> Finding:
    """How much what is rehearsed of each task is like real sequences of it."""
    found = likenesses(run, options.samples, options.references)
    kinds = list(found[0])
    columns = ["task", *(f"{kind}, {what}" for what in ("recognised (%)", "distance") for kind in kinds)]
    rows: list[list[Value]] = [
        [task + 1, *(one[kind].recognised for kind in kinds), *(one[kind].distance for kind in kinds)]
        for task, one in enumerate(found)
    ]
    series = {kind: [one[kind].recognised for one in found] for kind in kinds}
    chance = 100 / len(found)
    title = (
        f"{run.title}: sequences whose nearest real training sequence is of their task "
        f"({chance:.3g} % by chance, and where tasks have the same inputs)"
    )
    return Finding(title, columns, rows, lines(range(1, len(found) + 1), series, "task", "recognised (%)"))


def steps(run: OpenedRun, options: choices.Steps) -> Finding:
    """Accuracy at each output step of each task."""
    phase = run.phase(options.after)
    data = run.data(phase)
    series: dict[str, list[float]] = {}
    for task in run.learnt(phase):
        scores = accuracy_per_step(*run.running(phase, task), data[task].test, task)
        values = [math.nan] * max(score.step for score in scores)
        for score in scores:
            values[score.step - 1] = score.accuracy
        series[f"task {task + 1}"] = values
    score_name = run.record.score
    title = f"{run.title}: test {score_name} in percent per output step"
    return beside(title, "step", series, f"{score_name} (%)")


def forgetting(run: OpenedRun, options: choices.Forgetting) -> Finding:
    """What is retained of each task over phases, or the validation accuracy over iterations."""
    score = run.record.score
    if options.over == "iterations":
        points = learning_curve(run.record)
        rows: list[list[Value]] = [[point.iteration, point.phase + 1, point.accuracy] for point in points]
        title = f"{run.title}: validation {score} in percent of the current task"
        draw = lines(
            [point.iteration for point in points],
            {"validation": [point.accuracy for point in points]},
            "iteration",
            f"{score} (%)",
        )
        return Finding(title, ["iteration", "phase", score], rows, draw)
    found = courses(run.record)
    names = [f"task {course.task + 1}" for course in found]
    rows = [[str(phase + 1), *row] for phase, row in enumerate(run.record.accuracy)]
    rows.append(["forgotten", *(course.forgotten for course in found)])
    series = {
        name: [math.nan] * course.task + course.accuracy for name, course in zip(names, found, strict=True)
    }
    title = f"{run.title}: test {score} in percent after each task, and the loss since it was learnt"
    numbers = range(1, len(run.record.accuracy) + 1)
    return Finding(title, ["after task", *names], rows, lines(numbers, series, "after task", f"{score} (%)"))


def linear_theory(options: choices.Theory) -> Finding:
    """Linear RNNs that learn more and more tasks, until they no longer fit."""
    found = theory.capacity(
        options.units,
        options.dimension,
        options.tasks,
        generator(options.seed, "analysis", "theory"),
        shared=options.shared,
    )
    columns = [
        "tasks",
        "sum of p_k",
        "units needed",
        "interference",
        "overlap",
        "least overlap",
        "error",
        "least error",
    ]
    rows: list[list[Value]] = [
        [d.tasks, d.total, d.needed, d.interference, d.overlap, d.least_overlap, d.error, d.floor]
        for d in found
    ]
    series = {"this network": [d.error for d in found], "no linear RNN below": [d.floor for d in found]}
    title = f"Linear RNN of {options.units} units, tasks of {options.dimension} dimensions"
    totals = [d.total for d in found]
    return Finding(title, columns, rows, lines(totals, series, "sum of p_k", "relative error"))


OF_RUN: dict[str, Callable[[OpenedRun, Any], Finding]] = {
    "dimensionality": dimensionality,
    "importance": importance,
    "supervised": supervised,
    "readout": readout,
    "embeddings": embeddings,
    "flatness": flatness,
    "rehearsed": rehearsed,
    "steps": steps,
    "forgetting": forgetting,
}
"""Analyses of a run by name; their options are in `choices`."""

WITHOUT_RUN: dict[str, Callable[[Any], Finding]] = {"theory": linear_theory}
"""Analyses that need no run."""
