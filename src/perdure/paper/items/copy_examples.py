"""One example of each variant of the Copy Task: what is shown, and what must be recalled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from perdure.benchmarks.task import Sequences
from perdure.paper.conclusions import Claim
from perdure.paper.findings import TableCell
from perdure.paper.item import Drawn, FinishedRuns, Setting, WithoutRuns

FEW = {"benchmark.train": 4, "benchmark.val": 4, "benchmark.test": 4}
VARIANTS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "Copy (i = p = 5)": ("copy", {}),
    "Padded Copy (i = 25, p = 5)": ("padded-copy", {}),
    "Permuted Copy (task 2)": ("permuted-copy", {}),
    "Pattern Manipulation (r = 1)": ("pattern-manipulation", {"benchmark.r": 1}),
    "Pattern Manipulation (r = 5)": ("pattern-manipulation", {"benchmark.r": 5}),
}


@dataclass(frozen=True)
class _Examples(WithoutRuns):
    title: str = "Examples of the Copy variants"
    source: str = "Fig. 2 (fig:copy:explained) and SM Fig. (fig:supp:copy:examples)"
    about: str = (
        "One sequence of each variant: the input above, with the stop bit in its last row, the target below."
    )

    def seeds(self, scale: str) -> int:
        """One example is enough."""
        del scale
        return 1

    def findings_of_the_paper(self, scale: str) -> Sequence[Claim]:
        """An illustration concludes nothing."""
        del scale
        return ()

    def differs(self, scale: str, given: Mapping[str, Any] | None = None) -> str:
        """The paper shows a schematic drawing."""
        del scale, given
        return "Drawn from the data themselves; the paper has a schematic drawing."

    def evaluate(self, results: FinishedRuns) -> tuple[list[TableCell], list[Drawn]]:
        """Input and target of the first training sequence, of the second task if there are several."""
        from matplotlib.figure import Figure

        del results
        figure = Figure(figsize=(9, 7.5), layout="constrained")
        panels = figure.subplots(len(VARIANTS), 1)
        for axes, (label, (benchmark, options)) in zip(panels, VARIANTS.items(), strict=True):
            problem = Setting(label, benchmark, "fine-tuning", {**FEW, **options}).problem("paper")
            tasks = problem.build()
            axes.imshow(_picture(tasks[min(1, len(tasks) - 1)].train), cmap="Greys", aspect="equal", vmin=0)
            axes.set_title(label, fontsize=9)
            axes.set(xticks=[], yticks=[], xlabel="time")
        caption = "Black: bit set. Upper half: input with the stop bit below it; lower half: target bits."
        return [], [Drawn("examples", self.title, caption, figure)]


def _picture(data: Sequences) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Input [T, F] above, target [T, width] below, of the first sequence; the target ends with the input."""
    x = np.asarray(data.x[0], dtype=np.float64).T
    target = np.asarray(data.y[0], dtype=np.float64).clip(min=0).T
    below = np.zeros((len(target), x.shape[1]))
    below[:, x.shape[1] - target.shape[1] :] = target
    return np.vstack([x, np.full((1, x.shape[1]), 0.25), below])


ITEM = _Examples()
