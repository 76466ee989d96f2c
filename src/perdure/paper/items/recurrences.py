"""Other recurrences: whether the paper's thesis holds where no matrix takes one state to the next.

The experiments of Fig. 3, Table 1 and Table 2 with a complex diagonal recurrence, a minimal GRU and a
selective diagonal one, beside the paper's Elman network: does importance still grow with the pattern, and
does Online EWC still suffer from working memory?
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from perdure.analysis.sensitivity import sensitivity
from perdure.analysis.statistics import Number
from perdure.paper.comparison import Row, cells_of, finished
from perdure.paper.conclusions import Claim, asked, difference, interaction
from perdure.paper.findings import TableCell
from perdure.paper.item import Drawn, FinishedRuns, Item, Setting
from perdure.paper.items.intuition import Form, claims_of, evaluate_form, growth, opened_runs
from perdure.paper.solved import SOLVED, counting_cell

TWO_LAYERS = {"network.hidden": (128, 128)}
"""Where gates see the input alone, only a second layer can tell when in a sequence an input comes."""
CELLS: dict[str, dict[str, Any]] = {
    "Elman": {},
    "LRU": {"network.cell": "lru"},
    "min-GRU": {"network.cell": "min-gru", **TWO_LAYERS},
    "Selective": {"network.cell": "selective-diagonal", **TWO_LAYERS},
}
"""Cells by the names in tables, with their options."""
LENGTHS = {"smoke": (2, 3), "laptop": (5, 10, 15), "paper": (5, 10, 15, 20, 25)}
"""Input lengths of the experiment of Fig. 3."""
SHORTER = LENGTHS | {"laptop": (3, 4, 5)}
"""Those of cells that do not learn longer patterns at laptop scale."""
ABLE = ("Elman", "LRU")
"""Cells that learn longer patterns, and XORs at least in part, in the iterations of laptop scale."""
METHODS = {
    "Fine-tuning": "fine-tuning",
    "Online EWC": "online-ewc",
    "From scratch": "from-scratch",
    "HNET": "hnet",
}
PROBLEMS: dict[str, tuple[str, dict[str, Any]]] = {
    "permuted": ("permuted-copy", {}),
    "padded": ("padded-copy", {}),
    "r = 1": ("pattern-manipulation", {"benchmark.r": 1}),
    "r = 5": ("pattern-manipulation", {"benchmark.r": 5}),
}
"""The problems of Tables 1 and 2, in the order of what they demand."""
SENSITIVITY = "sensitivity of outputs"
"""A column: how far recurrent weights move the outputs, which does not depend on the residual loss."""
SAMPLES = 200
"""Training samples for it."""
SMOKE = (("Elman", "LRU"), ("permuted", "r = 1"))
"""Cells and problems at smoke scale, where it is enough that everything runs."""


def _cells(scale: str) -> tuple[str, ...]:
    """Names of the cells at a scale."""
    return SMOKE[0] if scale == "smoke" else tuple(CELLS)


def _problems(scale: str) -> tuple[str, ...]:
    """Names of the problems at a scale."""
    return SMOKE[1] if scale == "smoke" else tuple(PROBLEMS)


def _forms(scale: str) -> list[Form]:
    """The experiment of Fig. 3 with each cell."""
    return [
        Form(
            CELLS[title].get("network.cell", "elman"),
            f"{title}, Fisher",
            "online-ewc",
            CELLS[title],
            LENGTHS if title in ABLE else SHORTER,
        )
        for title in _cells(scale)
    ]


def _methods(scale: str, title: str, problem: str) -> list[str]:
    """Names of the methods of a cell and problem: at smaller scales those that a question needs.

    Fine-tuning shows that there is something to forget.
    """
    if scale == "paper":
        return list(METHODS)
    if problem == "permuted":
        return ["Fine-tuning", "Online EWC"]
    return ["Online EWC"] if title in ABLE else []


def _row(title: str, label: str, problem: str, scale: str) -> Row:
    benchmark, options = PROBLEMS[problem]
    more: dict[str, Any] = {}
    if label == "HNET" and title != "Elman":
        more["weights.ratio"] = 0.9
    given = {**CELLS[title], **options, **more}
    return Row(Setting(_label(title, label, problem), benchmark, METHODS[label], given))


def _label(title: str, label: str, problem: str) -> str:
    return f"{title}: {label}, {problem}"


def _about_memory(title: str) -> list[Claim]:
    """Whether Online EWC suffers from working memory, and not from difficulty or length alone."""

    def ewc(problem: str) -> str:
        return _label(title, "Online EWC", problem)

    def alone(problem: str) -> str:
        return _label(title, "From scratch", problem)

    found = [
        difference(
            f"Online EWC protects old tasks ({title})",
            ewc("permuted"),
            _label(title, "Fine-tuning", "permuted"),
        ),
        difference(f"one XOR costs Online EWC ({title})", ewc("permuted"), ewc("r = 1")),
        difference(
            f"one XOR costs Online EWC more than length alone does ({title})", ewc("padded"), ewc("r = 1")
        ),
        difference(f"more computation costs Online EWC more ({title})", ewc("r = 1"), ewc("r = 5")),
        Claim(
            f"Online EWC forgets more of five XORs than of one ({title})",
            "during minus final accuracy with r = 5 minus that with r = 1",
            (
                (1.0, ewc("r = 5"), "during"),
                (-1.0, ewc("r = 5"), "final"),
                (-1.0, ewc("r = 1"), "during"),
                (1.0, ewc("r = 1"), "final"),
            ),
            "more",
        ),
        difference(
            f"length alone costs Online EWC less than five XORs do ({title})", ewc("padded"), ewc("r = 5")
        ),
        interaction(
            f"five XORs cost Online EWC more than networks that need not remember old tasks ({title})",
            "fall of Online EWC from r = 1 to r = 5 minus that from scratch",
            (ewc("r = 1"), ewc("r = 5"), alone("r = 1"), alone("r = 5")),
        ),
    ]
    if title != "Elman":
        for what, first, second in (
            ("one XOR costs", "permuted", "r = 1"),
            ("length alone costs", "permuted", "padded"),
            ("five XORs cost", "r = 1", "r = 5"),
        ):
            elman = [_label("Elman", "Online EWC", problem) for problem in (first, second)]
            found.append(
                interaction(
                    f"{what} Online EWC less with the {title} cell than with the Elman cell",
                    f"fall from {first} to {second} with {title} minus that with Elman",
                    (ewc(first), ewc(second), elman[0], elman[1]),
                    "less",
                )
            )
    return found


@dataclass(frozen=True)
class _Recurrences(Item):
    page: ClassVar[str] = "recurrences"

    title: str = "Other recurrences"
    source: str = "not in the paper; its Fig. 3, Table 1 and Table 2 with other cells"
    about: str = (
        "In the paper the importance of recurrent weights grows with the pattern that must be remembered, "
        "and Online EWC suffers. Here the same with cells whose states meet only themselves. Importance is "
        "that of what takes one state to the next: W_hh, or the decay and gate of diagonal cells."
    )
    note: str = (
        "The empirical Fisher follows the residual loss, which differs between networks here; the "
        "sensitivity of outputs leaves the loss out (perdure analyse sensitivity). min-GRU and the selective "
        "cell have two layers of 128 units: their gates see the input alone, and one layer does not learn to "
        "copy. At laptop scale even two do not learn patterns of ten steps or XORs: their patterns are "
        "shorter there, and XORs are left out. Five XORs are learnt only in part there. "
        "HNET and networks from scratch are left out there. Importance is compared between lengths, at equal "
        f"training and above {SOLVED:g} % accuracy only, never between cells, whose recurrent weights are "
        "not of the same kind."
    )

    def settings(self, scale: str) -> list[Setting]:
        """Fig. 3 of each cell, then all methods on all problems."""
        forms = _forms(scale)
        found = {one.label: one for form in forms for one in [*form.tied(scale), *form.padded(scale)]}
        found |= {row.setting.label: row.setting for row in self._rows(scale)}
        return list(found.values())

    @staticmethod
    def _rows(scale: str) -> list[Row]:
        return [
            _row(title, label, problem, scale)
            for problem in _problems(scale)
            for title in _cells(scale)
            for label in _methods(scale, title, problem)
        ]

    def findings_of_the_paper(self, scale: str) -> Sequence[Claim]:
        """Those of Fig. 3 and Table 2, which the paper has for other cells, and how cells differ."""
        said = (
            "recurrent weights move the outputs farther as patterns grow",
            "the length of the sequence alone hardly changes how far they move them",
            "the length of the pattern matters more for that than that of the sequence",
        )
        claims = [
            claim
            for form in _forms(scale)
            for claim in (*claims_of(form, scale), *growth(form, scale, SENSITIVITY, said))
        ]
        return [
            asked(claim) for claim in [*claims, *(c for title in _cells(scale) for c in _about_memory(title))]
        ]

    def seeds(self, scale: str) -> int:
        """Three are enough for an interval."""
        return {"smoke": 1, "laptop": 3}.get(scale, 5)

    def evaluate(self, results: FinishedRuns) -> tuple[list[TableCell], list[Drawn]]:
        """Importance of each cell by length, accuracies of all methods, and one figure about Online EWC."""
        cells: list[TableCell] = []
        drawn: list[Drawn] = []
        for form in _forms(results.scale):
            more, figure = evaluate_form(form, results, "recurrences")
            cells += [*more, *_sensitivities(form, results)]
            caption = figure.caption.replace("W_hh and b_hh", "what takes one state to the next")
            drawn.append(replace(figure, caption=caption))
        rows = finished(self._rows(results.scale), results)
        cells += [cell for row in rows for cell in cells_of(row, results)]
        return cells, [*drawn, _loss_of_memory(rows, results)]


def _sensitivities(form: Form, results: FinishedRuns) -> list[TableCell]:
    """How far recurrent weights move the outputs, in each setting of a form."""
    settings = {one.label: one for one in (*form.tied(results.scale), *form.padded(results.scale))}
    return [
        counting_cell(
            results,
            setting,
            SENSITIVITY,
            tuple(
                sensitivity(*run.running(0, 0), run.data(0)[0].train, samples=SAMPLES)
                for run in opened_runs(results, setting)
            ),
            "recurrences",
        )
        for setting in settings.values()
    ]


def _loss_of_memory(rows: Sequence[Row], results: FinishedRuns) -> Drawn:
    """How well Online EWC ends on each problem, by cell, and how well each task was learnt."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 3.8), layout="constrained")
    panels, problems = figure.subplots(1, 2, sharey=True), _problems(results.scale)
    settings = {row.setting.label: row.setting for row in rows}
    for axes, column in zip(panels, ("during", "final"), strict=True):
        for place, title in enumerate(_cells(results.scale)):
            labels = {problem: _label(title, "Online EWC", problem) for problem in problems}
            shown = [problem for problem in problems if labels[problem] in settings]
            numbers: list[Number] = [results.number(settings[labels[one]], column) for one in shown]
            axes.errorbar(
                [problems.index(problem) + 0.08 * place for problem in shown],
                [one.mean for one in numbers],
                yerr=[one.sem or 0 for one in numbers],
                marker="o",
                linestyle="none",
                capsize=2,
                label=title,
            )
        axes.set_xticks(range(len(problems)), problems)
        axes.set_title({"during": "right after each task", "final": "at the end"}[column], fontsize=10)
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("accuracy of Online EWC (%)")
    panels[1].legend(fontsize=8)
    caption = "Mean and standard error over seeds."
    return Drawn("problems", "Online EWC by cell", caption, figure)


ITEM = _Recurrences()
