"""How flat the solutions of three methods are: the mean Fisher after each task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perdure.analysis import choices
from perdure.analysis.opened import OpenedRun
from perdure.analysis.statistics import number
from perdure.analysis.views import flatness
from perdure.paper.conclusions import Claim
from perdure.paper.findings import TableCell
from perdure.paper.item import Drawn, FinishedRuns, Item, Setting

SAMPLES = {"smoke": 50, "laptop": 2000, "paper": None}
"""Training samples per Fisher; None: all."""
UNCOMPRESSED = 5.0
"""The hypernetwork is five times as large as the network, with as many weights as from-scratch has."""
SETTINGS = {
    "own": Setting("From-scratch", "permuted-copy", "from-scratch"),
    "compressed": Setting("HNET", "permuted-copy", "hnet"),
    "uncompressed": Setting("HNET x 5", "permuted-copy", "hnet", {"weights.ratio": UNCOMPRESSED}),
    "accumulated": Setting("Online EWC", "permuted-copy", "online-ewc"),
}

FISHER = "mean Fisher after task"
PRECISION = "mean precision after task"
"""Column of the precision of the Laplace approximation, with a prior of standard deviation 1."""
TASKS = 5
"""Tasks of the Permuted Copy Task, at every scale but smoke."""


@dataclass(frozen=True)
class _Flatness(Item):
    title: str = "Flatness of solutions"
    source: str = "SM Fig. (supp:fig:fisher:methods)"
    about: str = (
        "The mean Fisher of the weights of each task right after it was learnt; for Online EWC, whose one "
        "solution must serve all tasks so far, the sum over them. The precision of the Laplace approximation "
        "is 1 + N F, or 1 + the sum of N F over the tasks so far, for a Gaussian prior of variance 1."
    )
    note: str = (
        "The Fisher is the exact one, an expectation over the network's own outputs, since the empirical one "
        "follows the residual training loss. Both fall as outputs become certain, so longer training "
        "looks flatter; the methods are trained for different times."
    )

    def findings_of_the_paper(self, scale: str) -> Sequence[Claim]:
        """Uncompressed, HNET's solutions are as flat as those from scratch; that of Online EWC is not.

        Of a compressed HNET the paper says that its values vary, without a clear trend.
        """
        del scale
        last = f"{FISHER} {TASKS}"
        scratch, large, ewc = (
            (SETTINGS[kind].label, last) for kind in ("own", "uncompressed", "accumulated")
        )
        return (
            Claim(
                "solutions of an uncompressed HNET stay as flat as those learnt from scratch",
                f"{last}, HNET x 5 over From-scratch",
                ((1.0, *large), (-1.0, *scratch)),
                "same",
                factors=True,
            ),
            Claim(
                "solutions of an uncompressed HNET are flatter than that of Online EWC",
                f"{last}, Online EWC over HNET x 5",
                ((1.0, *ewc), (-1.0, *large)),
                "more",
                factors=True,
            ),
            Claim(
                "the Fisher values of Online EWC grow with the number of tasks",
                f"mean Fisher of Online EWC, after task {TASKS} over after task 1",
                ((1.0, *ewc), (-1.0, ewc[0], f"{FISHER} 1")),
                "more",
                factors=True,
            ),
            Claim(
                "the Fisher values of an uncompressed HNET do not grow with the number of tasks",
                f"mean Fisher of HNET x 5, after task {TASKS} over after task 1",
                ((1.0, *large), (-1.0, large[0], f"{FISHER} 1")),
                "same",
                factors=True,
            ),
            Claim(
                "the posterior of Online EWC is sharper than that of each solution learnt from scratch",
                f"{PRECISION} {TASKS}, Online EWC over From-scratch",
                (
                    (1.0, ewc[0], f"{PRECISION} {TASKS}"),
                    (-1.0, scratch[0], f"{PRECISION} {TASKS}"),
                ),
                "more",
                factors=True,
            ),
        )

    def settings(self, scale: str) -> list[Setting]:
        """Three methods, HNET in two sizes."""
        del scale
        return list(SETTINGS.values())

    def evaluate(self, results: FinishedRuns) -> tuple[list[TableCell], list[Drawn]]:
        """Mean Fisher after each task: the task's own, or that of all tasks so far for Online EWC."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(5.6, 3.8), layout="constrained")
        axes = figure.subplots()
        cells: list[TableCell] = []
        for kind, setting in SETTINGS.items():
            column, precise = (2, 4) if kind == "accumulated" else (1, 3)
            options = choices.FlatnessOptions(samples=SAMPLES[results.scale], estimator="exact")
            runs = [flatness(OpenedRun(results.folder(r), r), options).rows for r in results.of(setting)]
            numbers = []
            for task in range(len(runs[0])):
                values = [float(rows[task][column]) for rows in runs]
                numbers.append(number(values))
                cells.append(_cell(results, setting, f"{FISHER} {task + 1}", values))
            last = [float(rows[-1][precise]) for rows in runs]
            cells.append(_cell(results, setting, f"{PRECISION} {len(numbers)}", last))
            axes.errorbar(
                range(1, len(numbers) + 1),
                [number.mean for number in numbers],
                yerr=[number.sem or 0 for number in numbers],
                marker="o",
                capsize=2,
                label=setting.label,
            )
        axes.set(xlabel="after task", ylabel="mean Fisher", yscale="log")
        axes.set_xticks(range(1, len(numbers) + 1))
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
        caption = "Mean of the diagonal exact Fisher; for Online EWC, the sum over all tasks so far."
        return cells, [Drawn("fisher", self.title, caption, figure)]


def _cell(results: FinishedRuns, setting: Setting, column: str, values: Sequence[float]) -> TableCell:
    records = results.of(setting)
    return TableCell(
        setting.label,
        column,
        number(values),
        command=results.command("flatness"),
        hashes=tuple(record.hash for record in records),
        values=tuple(values),
        remark=records[0].oversized,
    )


ITEM = _Flatness()
