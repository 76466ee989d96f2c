"""Transfer: five permutations presented twice, and whether the methods notice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perdure.analysis import choices
from perdure.analysis.finding import Finding
from perdure.analysis.opened import OpenedRun
from perdure.analysis.statistics import number
from perdure.analysis.views import embeddings, readout
from perdure.paper.comparison import Row, cells_of, percent
from perdure.paper.conclusions import Claim
from perdure.paper.findings import TableCell
from perdure.paper.item import Drawn, FinishedRuns, Item, Setting

TWICE = {"benchmark.repeats": 2}
EWC = Row(Setting("Online EWC", "permuted-copy", "online-ewc", TWICE), {"final": percent(99.01, n=1)})
HNET = Row(Setting("HNET", "permuted-copy", "hnet", TWICE), {"final": percent(98.74, n=1)})

SUBSPACES, EMBEDDINGS, WEIGHTS = "read-out subspaces", "embeddings", "generated weights"
EQUAL, DIFFERENT = "mean over equal tasks", "mean over different tasks"


@dataclass(frozen=True)
class _Transfer(Item):
    title: str = "Transfer between equal tasks"
    source: str = (
        "SM Fig. (fig:transfer:ewc, fig:transfer:hnet:emb, fig:transfer:hnet:weights) and text, n = 1"
    )
    about: str = (
        "All tasks are presented twice. The figure compares what Online EWC's heads read, and HNET's "
        "embeddings and generated weights, between all pairs of tasks."
    )

    def findings_of_the_paper(self, scale: str) -> Sequence[Claim]:
        """Online EWC notices equal tasks, HNET hardly does."""
        del scale
        return (
            Claim(
                "under Online EWC the heads of equal tasks read similar subspaces",
                "similarity of read-out subspaces, equal tasks minus different ones",
                ((1.0, SUBSPACES, EQUAL), (-1.0, SUBSPACES, DIFFERENT)),
                "more",
                unit="in ||V_k V_l^T||_F (0 to sqrt(7))",
                margin=0.05,
            ),
            *(
                Claim(
                    f"under HNET the {kind} of equal tasks are hardly nearer than those of others",
                    f"distance of {kind}, equal tasks over different ones",
                    ((1.0, kind, EQUAL), (-1.0, kind, DIFFERENT)),
                    "same",
                    factors=True,
                )
                for kind in (EMBEDDINGS, WEIGHTS)
            ),
        )

    def settings(self, scale: str) -> list[Setting]:
        """Two methods, all tasks twice."""
        del scale
        return [EWC.setting, HNET.setting]

    def seeds(self, scale: str) -> int:
        """One as in the paper, more where runs are short."""
        return 5 if scale == "laptop" else 1

    def evaluate(self, results: FinishedRuns) -> tuple[list[TableCell], list[Drawn]]:
        """Accuracies, and three matrices of all pairs of tasks."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(12.5, 3.9), layout="constrained")
        panels = figure.subplots(1, 3)
        ewc, hnet = (
            [OpenedRun(results.folder(record), record) for record in results.of(row.setting)]
            for row in (EWC, HNET)
        )
        found = {
            SUBSPACES: [readout(run, choices.Readout()) for run in ewc],
            EMBEDDINGS: [embeddings(run, choices.Embeddings()) for run in hnet],
            WEIGHTS: [embeddings(run, choices.Embeddings(of="weights")) for run in hnet],
        }
        cells = [*cells_of(EWC, results), *cells_of(HNET, results)]
        for axes, (kind, findings) in zip(panels, found.items(), strict=True):
            assert findings[0].draw is not None
            findings[0].draw(axes)
            axes.set_title(f"{'Online EWC' if kind == SUBSPACES else 'HNET'}: {kind}", fontsize=10)
            cells += _nearness(kind, findings, results)
        tasks = len(ewc[0].record.tasks)
        caption = f"All pairs of the {tasks} tasks, seed 0; task k + {tasks // 2} is task k again."
        return cells, [Drawn("pairs", self.title, caption, figure)]


def _nearness(kind: str, findings: Sequence[Finding], results: FinishedRuns) -> list[TableCell]:
    """Means over all pairs of equal tasks, and over all pairs of different ones, of each seed."""
    numbers: dict[str, list[float]] = {EQUAL: [], DIFFERENT: []}
    for finding in findings:
        matrix = [[float(value) for value in row[1:]] for row in finding.rows]
        half = len(matrix) // 2
        pairs = [(one, other) for one in range(len(matrix)) for other in range(one)]
        for name, equal in ((EQUAL, True), (DIFFERENT, False)):
            chosen = [matrix[one][other] for one, other in pairs if ((one - other) % half == 0) == equal]
            numbers[name].append(sum(chosen) / len(chosen))
    return [
        TableCell(kind, name, number(values), command=results.command("transfer"), values=tuple(values))
        for name, values in numbers.items()
    ]


ITEM = _Transfer()
