"""Transfer: five permutations presented twice, and whether the methods notice."""

from __future__ import annotations

from dataclasses import dataclass

from perdure.analysis import choices
from perdure.analysis.opened import OpenedRun
from perdure.analysis.views import embeddings, readout
from perdure.paper.comparison import Row, cells_of, percent
from perdure.paper.findings import TableCell
from perdure.paper.item import Drawn, FinishedRuns, Item, Setting

TWICE = {"benchmark.repeats": 2}
EWC = Row(Setting("Online EWC", "permuted-copy", "online-ewc", TWICE), {"final": percent(99.01, n=1)})
HNET = Row(Setting("HNET", "permuted-copy", "hnet", TWICE), {"final": percent(98.74, n=1)})


@dataclass(frozen=True)
class _Transfer(Item):
    title: str = "Transfer between equal tasks"
    source: str = (
        "SM Fig. (fig:transfer:ewc, fig:transfer:hnet:emb, fig:transfer:hnet:weights) and text, n = 1"
    )
    about: str = (
        "All tasks are presented twice. Under Online EWC equal tasks read similar subspaces; under HNET the "
        "paper finds only weak traces of equal tasks in embeddings and weights."
    )

    def settings(self, scale: str) -> list[Setting]:
        """Two methods, all tasks twice."""
        del scale
        return [EWC.setting, HNET.setting]

    def seeds(self, scale: str) -> int:
        """One, as in the paper."""
        del scale
        return 1

    def evaluate(self, results: FinishedRuns) -> tuple[list[TableCell], list[Drawn]]:
        """Accuracies, and three matrices of all pairs of tasks."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(12.5, 3.9), layout="constrained")
        first, second, third = figure.subplots(1, 3)
        ewc, hnet = (
            OpenedRun(results.folder(record), record)
            for record in (results.of(EWC.setting)[0], results.of(HNET.setting)[0])
        )
        for axes, title, finding in (
            (first, "Online EWC: read-out subspaces", readout(ewc, choices.Readout())),
            (second, "HNET: embeddings", embeddings(hnet, choices.Embeddings())),
            (third, "HNET: generated weights", embeddings(hnet, choices.Embeddings(of="weights"))),
        ):
            assert finding.draw is not None
            finding.draw(axes)
            axes.set_title(title, fontsize=10)
        cells = [*cells_of(EWC, results), *cells_of(HNET, results)]
        tasks = len(ewc.record.tasks)
        caption = f"All pairs of the {tasks} tasks, seed 0; task k + {tasks // 2} is task k again."
        return cells, [Drawn("pairs", self.title, caption, figure)]


ITEM = _Transfer()
