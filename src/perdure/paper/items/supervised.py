"""How many dimensions of the hidden state the tasks need, as Online EWC learns one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perdure.analysis import choices
from perdure.analysis.opened import OpenedRun
from perdure.analysis.statistics import number
from perdure.analysis.supervised import Reduction
from perdure.analysis.views import reductions
from perdure.paper.conclusions import Claim
from perdure.paper.findings import TableCell
from perdure.paper.item import Drawn, FinishedRuns, Item, Setting

EWC = Setting("Online EWC", "permuted-copy", "online-ewc")
SIZES = {"smoke": (5, 3), "laptop": (50, 60), "paper": (256, 100)}
"""Maximum number of dimensions, and Adam steps per dimension."""
ENOUGH = 0.95
"""Fraction of the network's own accuracy that counts as reached."""

NEEDED = f"dimensions to {100 * ENOUGH:g} % of the network's accuracy"


@dataclass(frozen=True)
class _Supervised(Item):
    title: str = "Dimensions that the tasks need"
    source: str = "SM Fig. (supp:fig:supervised_dim_red), n = 5"
    about: str = (
        "The hidden states are projected onto the n dimensions that best serve all tasks so far, with Online "
        "EWC on the Permuted Copy Task."
    )

    def findings_of_the_paper(self, scale: str) -> Sequence[Claim]:
        """More tasks need more dimensions."""
        del scale
        return (
            Claim(
                "the more tasks are learnt, the more dimensions are needed",
                "dimensions needed after 5 tasks minus those after 1 task",
                ((1.0, "after 5 tasks", NEEDED), (-1.0, "after 1 task", NEEDED)),
                "more",
                unit="dimensions",
            ),
        )

    def settings(self, scale: str) -> list[Setting]:
        """Online EWC on the Permuted Copy Task, the runs of Table 1."""
        del scale
        return [EWC]

    def differs(self, scale: str, given: Mapping[str, Any] | None = None) -> str:
        """In addition to the scale: where the search for dimensions ends."""
        columns, iterations = SIZES[scale]
        size = f"At most {columns} dimensions, {iterations} Adam steps for each."
        return f"{super().differs(scale, given)} {size}".strip()

    def evaluate(self, results: FinishedRuns) -> tuple[list[TableCell], list[Drawn]]:
        """A curve for each number of tasks."""
        from matplotlib.figure import Figure

        columns, iterations = SIZES[results.scale]
        options = choices.Supervised(every=True, columns=columns, iterations=iterations)
        records = results.of(EWC)
        found = [reductions(OpenedRun(results.folder(record), record), options) for record in records]
        figure = Figure(figsize=(5.8, 3.9), layout="constrained")
        axes = figure.subplots()
        cells: list[TableCell] = []
        for phase in found[0]:
            reduced = [one[phase] for one in found]
            tasks = f"{phase + 1} task{'s' if phase else ''}"
            means = [number([one.accuracy[n] for one in reduced]) for n in range(len(reduced[0].accuracy))]
            axes.errorbar(
                range(1, len(means) + 1),
                [mean.mean for mean in means],
                yerr=[mean.sd for mean in means],
                elinewidth=0.6,
                label=tasks,
            )
            cells += _cells(tasks, reduced, results)
        axes.set(xlabel="dimensions n", ylabel="test accuracy (%)")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
        caption = (
            "Mean test accuracy of all tasks so far with n dimensions of the hidden state; bars: SD, as in "
            "the paper."
        )
        return cells, [Drawn("accuracy", self.title, caption, figure)]


def _cells(tasks: str, reduced: Sequence[Reduction], results: FinishedRuns) -> list[TableCell]:
    """How many dimensions are enough, and the accuracy with all that were tried."""
    needed = [one.needed(ENOUGH) for one in reduced]
    tried = len(reduced[0].accuracy)
    numbers: dict[str, list[float]] = {
        # A seed that does not get there needs more than were tried: at least one more.
        NEEDED: [tried + 1 if n is None else n for n in needed],
        f"accuracy with {tried} dimensions (%)": [one.accuracy[-1] for one in reduced],
        "accuracy with all dimensions (%)": [one.whole for one in reduced],
    }
    row = f"after {tasks}"
    command = results.command("supervised")
    hashes = tuple(record.hash for record in results.of(EWC))
    return [
        TableCell(
            row,
            column,
            number([float(v) for v in values]),
            command=command,
            hashes=hashes,
            values=tuple(float(v) for v in values),
            remark="at least" if column == NEEDED and None in needed else "",
        )
        for column, values in numbers.items()
    ]


ITEM = _Supervised()
