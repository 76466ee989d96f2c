"""Plasticity: whether the newest of many tasks is still learnt as well as the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from perdure.analysis import choices
from perdure.analysis.newer import plasticity_of
from perdure.analysis.opened import OpenedRun
from perdure.analysis.plasticity import Plasticity
from perdure.analysis.statistics import number
from perdure.paper.conclusions import Asked, Claim, Part
from perdure.paper.findings import TableCell
from perdure.paper.item import Drawn, FinishedRuns, Item, Setting

LENGTHS = {"smoke": (4,), "laptop": (50, 200), "paper": (50, 200)}
"""Numbers of tasks at each scale."""
METHODS = {
    "Fine-tuning": "fine-tuning",
    "L2 to start": "l2-start",
    "Shrink and perturb": "shrink-and-perturb",
    "Online EWC": "online-ewc",
}
SMALL: Mapping[str, Any] = {
    "benchmark.train": 2000,
    "benchmark.val": 50,
    "benchmark.test": 100,
    "network.hidden": (64,),
    "training.iterations": 200,
    "training.batch_size": 64,
    "training.validate_every": 200,
    "training.patience": None,
}
"""A small network and little training, the same for all methods: what is compared is tasks, not methods."""
NEWEST = "newest task (%)"
FIRST, LAST = "first tenth", "last tenth"
MEASURES = {
    "accuracy": NEWEST,
    "dormant": "dormant units (%)",
    "rank": "effective rank of states",
}


def setting(label: str, tasks: int, scale: str) -> Setting:
    """One method on so many tasks."""
    size = {} if scale == "smoke" else SMALL
    options = {"benchmark.tasks": tasks, **size}
    return Setting(f"{label}, {tasks} tasks", "permuted-copy", METHODS[label], options)


@dataclass(frozen=True)
class _Plasticity(Item):
    page: ClassVar[str] = "plasticity"

    title: str = "Plasticity over many tasks"
    source: str = "not in the paper"
    about: str = (
        "Permuted Copy with many tasks and a small network: the accuracy of each task right after it was "
        "learnt, the units that hardly vary, and the effective rank of the states."
    )
    note: str = "The same small network and short training for all methods."

    def settings(self, scale: str) -> list[Setting]:
        """Every method on every number of tasks."""
        return [setting(label, tasks, scale) for tasks in LENGTHS[scale] for label in METHODS]

    def findings_of_the_paper(self, scale: str) -> Sequence[Claim]:
        """Questions of our own: who learns the last tasks worse than the first, and who less than others."""
        return [claim for tasks in LENGTHS[scale] for claim in _questions(tasks, scale)]

    def evaluate(self, results: FinishedRuns) -> tuple[list[TableCell], list[Drawn]]:
        """Measures of the first and the last tenth of the tasks, and a figure for each number of tasks."""
        cells: list[TableCell] = []
        drawn: list[Drawn] = []
        for tasks in LENGTHS[results.scale]:
            courses: dict[str, list[list[Plasticity]]] = {}
            for label in METHODS:
                one = setting(label, tasks, results.scale)
                courses[label] = [
                    plasticity_of(OpenedRun(results.folder(record), record), choices.PlasticityOptions())
                    for record in results.of(one)
                ]
                cells += _cells(one, courses[label], results)
            drawn.append(_drawn(tasks, courses))
        return cells, drawn


def _questions(tasks: int, scale: str) -> list[Claim]:
    """Whether the last tenth of the tasks is learnt worse than the first, and by whom less."""

    def fall(label: str, sign: float = 1.0) -> tuple[Part, ...]:
        row = setting(label, tasks, scale).label
        return (sign, row, f"{NEWEST}, {FIRST}"), (-sign, row, f"{NEWEST}, {LAST}")

    usual, *others = METHODS
    of = f"{FIRST} minus {LAST} of {tasks} tasks"
    found: list[Claim] = [
        Asked(
            f"{label} learns the last of {tasks} tasks worse than the first",
            f"{label}, {of}",
            fall(label),
            "more",
        )
        for label in METHODS
    ]
    found += [
        Asked(
            f"{label} loses less of its ability to learn than {usual} over {tasks} tasks",
            f"fall of {usual} minus that of {label}, {of}",
            (*fall(usual), *fall(label, -1.0)),
            "more",
        )
        for label in others
    ]
    return found


def _cells(one: Setting, courses: list[list[Plasticity]], results: FinishedRuns) -> list[TableCell]:
    """Each measure as a mean over the first tenth of the tasks, and over the last."""
    tenth = max(1, len(courses[0]) // 10)
    hashes, command = tuple(record.hash for record in results.of(one)), results.command("plasticity")
    found = []
    for part, chosen in ((FIRST, slice(0, tenth)), (LAST, slice(-tenth, None))):
        for field, title in MEASURES.items():
            means = [sum(getattr(each, field) for each in course[chosen]) / tenth for course in courses]
            cell = TableCell(one.label, f"{title}, {part}", number(means), values=tuple(means))
            found.append(replace(cell, command=command, hashes=hashes))
    return found


def _drawn(tasks: int, courses: Mapping[str, list[list[Plasticity]]]) -> Drawn:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 3.7), layout="constrained")
    for axes, (field, title) in zip(figure.subplots(1, 3), MEASURES.items(), strict=True):
        for label, runs in courses.items():
            columns = zip(*([getattr(each, field) for each in course] for course in runs), strict=True)
            means = [sum(column) / len(column) for column in columns]
            axes.plot(range(1, tasks + 1), means, label=label, linewidth=1)
        axes.set(xlabel="task", title=title)
        axes.grid(alpha=0.3)
    figure.axes[0].legend(fontsize=8)
    caption = "Of each task right after it was learnt; means over seeds."
    return Drawn(f"tasks-{tasks}", f"Plasticity over {tasks} tasks", caption, figure)


ITEM = _Plasticity()
