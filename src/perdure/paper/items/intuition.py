"""The intuition figure: memory, not sequence length, fills the hidden state and makes weights important.

For a single task, the dimensionality of h_t per step and the mean importance of recurrent weights, for
patterns as long as the input (p = i) and for short ones in long inputs (p = 5): with the Fisher, with SI, and
with an LSTM.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perdure.analysis.dimensionality import dimension_per_step
from perdure.analysis.importance import keeper_of, mean_importance, stored_importance
from perdure.analysis.opened import OpenedRun
from perdure.analysis.statistics import number
from perdure.paper.findings import TableCell
from perdure.paper.item import Drawn, FinishedRuns, Item, Setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SAMPLES = 1000
"""Test samples for a PCA."""


@dataclass(frozen=True)
class _Form:
    """One form of the figure."""

    name: str
    title: str
    method: str
    options: Mapping[str, Any]
    lengths: Mapping[str, Sequence[int]]
    """Input lengths i at each scale; the shortest is the pattern length of the padded variant."""

    def setting(self, i: int, p: int) -> Setting:
        """A pattern of p steps in an input phase of i."""
        label = f"{self.title}, i = {i}, p = {p}"
        return Setting(label, "copy", self.method, {"benchmark.i": i, "benchmark.p": p, **self.options})

    def tied(self, scale: str) -> list[Setting]:
        """Patterns as long as the input."""
        return [self.setting(i, i) for i in self.lengths[scale]]

    def padded(self, scale: str) -> list[Setting]:
        """The shortest pattern in all inputs."""
        return [self.setting(i, self.lengths[scale][0]) for i in self.lengths[scale]]


LSTM = {"network.cell": "lstm", "network.output_layers": (128,)}
"""The LSTM form has a dense layer of 128 units before the head."""
LONG = {"smoke": (2, 3), "laptop": (5, 10, 15, 20), "paper": (5, 10, 15, 20, 25, 30, 35, 40)}
SHORTER = {"smoke": (2, 3), "laptop": (5, 10), "paper": (5, 10, 15, 20, 25)}
FORMS = (
    _Form("fisher", "Fisher", "online-ewc", {}, LONG),
    _Form("si", "SI", "si", {}, LONG),
    _Form("lstm", "LSTM, Fisher", "online-ewc", LSTM, SHORTER),
)


@dataclass(frozen=True)
class _Intuition(Item):
    title: str = "Memory, not length, makes weights important"
    source: str = "Fig. 3 (fig:copy_intuition), SM Figs. (supp:fig:importance_si, supp:fig:copy:lstm), n = 5"
    about: str = (
        "The dimension of the hidden state grows while a pattern is read, and the importance of "
        "recurrent weights grows with the length of the pattern, but hardly with that of the sequence."
    )

    def settings(self, scale: str) -> list[Setting]:
        """Tied and padded lengths of all forms, each once."""
        found = {
            setting.label: setting for form in FORMS for setting in [*form.tied(scale), *form.padded(scale)]
        }
        return list(found.values())

    def differs(self, scale: str) -> str:
        """In addition to the scale: the lengths used, and the meaning of the error bars."""
        lengths = (
            f"{form.title} {max(form.lengths[scale])} ({max(form.lengths['paper'])})" for form in FORMS
        )
        cuts = "" if scale == "paper" else f"Longest inputs (in the paper): {', '.join(lengths)}."
        return " ".join(
            part for part in (super().differs(scale), cuts, "Bars are SEM, the paper's SD.") if part
        )

    def seeds(self, scale: str) -> int:
        """Few, since each takes many runs."""
        return {"smoke": 1, "laptop": 2}.get(scale, 5)

    def evaluate(self, results: FinishedRuns) -> tuple[list[TableCell], list[Drawn]]:
        """Mean importance of each setting, and a figure with three panels for each form."""
        cells: list[TableCell] = []
        drawn: list[Drawn] = []
        for form in FORMS:
            more, figure = _form(form, results)
            cells += more
            drawn.append(figure)
        return cells, drawn


def _form(form: _Form, results: FinishedRuns) -> tuple[list[TableCell], Drawn]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 3.7), layout="constrained")
    first, second, third = figure.subplots(1, 3)
    scale = results.scale
    cells: list[TableCell] = []
    for axes, kind, settings in (
        (first, "p = i", form.tied(scale)),
        (second, f"p = {form.lengths[scale][0]}", form.padded(scale)),
    ):
        runs = [_opened(results, setting) for setting in settings]
        _dimensions(axes, form.lengths[scale], runs)
        axes.set_title(f"Dimensions of h_t, {kind}", fontsize=10)
        numbers = [
            number([_importance(run) for run in opened])
            for setting, opened in zip(settings, runs, strict=True)
        ]
        third.errorbar(
            form.lengths[scale],
            [one.mean for one in numbers],
            yerr=[one.sem or 0 for one in numbers],
            marker="o",
            linestyle="-" if kind == "p = i" else ":",
            color="C0",
            capsize=2,
            label=kind,
        )
        for setting, found in zip(settings, numbers, strict=True):
            hashes = tuple(record.hash for record in results.of(setting))
            command = results.command("intuition")
            for column, value in (
                (f"mean importance, {form.title}", found),
                ("accuracy (%)", results.number(setting, "final")),
            ):
                cell = TableCell(setting.label, column, value, command=command, hashes=hashes)
                if cell not in cells:  # the shortest input is in both lists
                    cells.append(cell)
    third.set(xlabel="input length i", ylabel="mean importance")
    third.set_xticks(form.lengths[scale])
    third.set_title("Importance of recurrent weights", fontsize=10)
    third.grid(alpha=0.3)
    third.legend(fontsize=8)
    caption = (
        "Left and middle: components that explain 75 % of the variance, step 0 is the stop bit. "
        f"Right: mean importance of W_hh and b_hh ({form.title}). Mean over seeds; bars: SEM."
    )
    return cells, Drawn(form.name, f"Intuition: {form.title}", caption, figure)


def _opened(results: FinishedRuns, setting: Setting) -> list[OpenedRun]:
    return [OpenedRun(results.folder(record), record) for record in results.of(setting)]


def _importance(run: OpenedRun) -> float:
    """Mean of the stored importance of recurrent weights."""
    keeper = keeper_of(run.learner)
    assert keeper is not None  # both methods store it
    return mean_importance(stored_importance(run.state(0), keeper)).recurrent


def _dimensions(axes: Axes, lengths: Sequence[int], runs: Sequence[Sequence[OpenedRun]]) -> None:
    """A line for each length, with its stop bit at step 0."""
    for length, opened in zip(lengths, runs, strict=True):
        curves = [dimension_per_step(run.states(0, 0, SAMPLES)) for run in opened]
        mean = [sum(values) / len(values) for values in zip(*curves, strict=True)]
        axes.plot([step - length for step in range(len(mean))], mean, label=f"i = {length}")
    axes.axvline(0, linestyle=":", color="black", linewidth=1)
    axes.set(xlabel="step", ylabel="dimensions")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)


ITEM = _Intuition()
