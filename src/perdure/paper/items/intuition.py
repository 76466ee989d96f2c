"""The intuition figure: what working memory and sequence length do to hidden states and importance.

For a single task, the dimensionality of h_t per step and the mean importance of recurrent weights, for
patterns as long as the input (p = i) and for short ones in long inputs (p = 5): with the Fisher, with SI, and
with an LSTM.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from perdure.analysis.dimensionality import dimension_per_step
from perdure.analysis.importance import keeper_of, mean_importance, stored_importance
from perdure.analysis.opened import OpenedRun
from perdure.analysis.statistics import MARGIN, number
from perdure.analysis.step_importance import step_importance
from perdure.paper.conclusions import Asked, Claim, Expectation, Part
from perdure.paper.findings import TableCell
from perdure.paper.item import Drawn, FinishedRuns, Item, Setting
from perdure.paper.solved import RULE, counted, counting_cell

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DIMENSION = "largest dimension of h_t"
ACCURACY = "accuracy (%)"
LARGEST_STEP = "largest contribution of a step"
COHERENCE = "importance over the sum of steps"
SAMPLES = 1000
"""Test samples for a PCA, and training samples for what each step contributes."""
FISHER = "online-ewc"
"""The method whose importance is a Fisher, which has contributions of steps."""


@dataclass(frozen=True)
class Form:
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
SHORTER = {"smoke": (2, 3), "laptop": (5, 10, 15, 20), "paper": (5, 10, 15, 20, 25)}
FORMS = (
    Form("fisher", "Fisher", "online-ewc", {}, LONG),
    Form("si", "SI", "si", {}, LONG),
    Form("lstm", "LSTM, Fisher", "online-ewc", LSTM, SHORTER),
)


@dataclass(frozen=True)
class _Intuition(Item):
    title: str = "Working memory, sequence length and the importance of weights"
    source: str = "Fig. 3 (fig:copy_intuition), SM Figs. (supp:fig:importance_si, supp:fig:copy:lstm), n = 5"
    about: str = (
        "One task: the dimension of the hidden state at each step, and the mean importance of recurrent "
        "weights, for patterns as long as the input (p = i) and for short ones in longer and longer inputs."
    )
    note: str = (
        "Importance is compared at matched training: all lengths are trained for equally many iterations. "
        "The empirical Fisher also follows the residual loss; "
        "--set penalties.online-ewc.estimator=exact takes the expectation over the outputs instead. " + RULE
    )

    def findings_of_the_paper(self, scale: str) -> Sequence[Claim]:
        """Importance grows with patterns, hardly with length; dimensions grow with patterns."""
        return [claim for form in FORMS for claim in claims_of(form, scale)]

    def settings(self, scale: str) -> list[Setting]:
        """Tied and padded lengths of all forms, each once."""
        found = {
            setting.label: setting for form in FORMS for setting in [*form.tied(scale), *form.padded(scale)]
        }
        return list(found.values())

    def differs(self, scale: str, given: Mapping[str, Any] | None = None) -> str:
        """In addition to the scale: the lengths used."""
        lengths = (
            f"{form.title} {max(form.lengths[scale])} ({max(form.lengths['paper'])})" for form in FORMS
        )
        cuts = "" if scale == "paper" else f"Longest inputs (in the paper): {', '.join(lengths)}."
        return " ".join(part for part in (super().differs(scale, given), cuts) if part)

    def seeds(self, scale: str) -> int:
        """As in the paper."""
        return 1 if scale == "smoke" else 5

    def evaluate(self, results: FinishedRuns) -> tuple[list[TableCell], list[Drawn]]:
        """Mean importance of each setting, and a figure with three panels for each form."""
        cells: list[TableCell] = []
        drawn: list[Drawn] = []
        for form in FORMS:
            more, figure = evaluate_form(form, results, "intuition")
            cells += more
            drawn.append(figure)
        return cells, drawn


def claims_of(form: Form, scale: str) -> list[Claim]:
    """What the paper concludes from such a form."""

    def more(said: str, grown: str, words: str, expects: Expectation, margin: float) -> Claim:
        """How many dimensions more the states fill."""
        parts = ((1.0, grown, DIMENSION), (-1.0, ends.short, DIMENSION))
        what = f"{DIMENSION}, {words}"
        return Claim(f"{said} ({form.title})", what, parts, expects, unit="dimensions", margin=margin)

    ends = _ends(form, scale)
    said = (
        "recurrent weights become more important as patterns grow",
        "the length of the sequence alone hardly changes their importance",
        "the length of the pattern matters more than that of the sequence",
    )
    pattern, length = " minus ".join(ends.by_pattern), " minus ".join(ends.by_length)
    step_said = (
        "a single step contributes more to the importance as patterns grow",
        "it contributes as much however long the sequence is",
    )
    return [
        *growth(form, scale, importance_column(form), said),
        more("longer patterns fill more dimensions of the hidden state", ends.long, pattern, "more", MARGIN),
        more("longer sequences alone do not fill more dimensions", ends.padded, length, "same", 3.0),
        *growth(form, scale, LARGEST_STEP, step_said, Asked),
    ]


def importance_column(form: Form) -> str:
    """The column of a form's mean importance."""
    return f"mean importance, {form.title}"


class _Ends(NamedTuple):
    """Labels of the shortest setting of a form, and of the longest with long and short patterns."""

    short: str
    long: str
    padded: str
    by_pattern: tuple[str, str]
    """In words, the long and the short pattern."""
    by_length: tuple[str, str]


def _ends(form: Form, scale: str) -> _Ends:
    shortest, longest = form.lengths[scale][0], form.lengths[scale][-1]
    return _Ends(
        form.setting(shortest, shortest).label,
        form.setting(longest, longest).label,
        form.setting(longest, shortest).label,
        (f"i = p = {longest}", f"i = p = {shortest}"),
        (f"i = {longest}", f"i = {shortest} (p = {shortest})"),
    )


def growth(
    form: Form, scale: str, column: str, said: Sequence[str], kind: type[Claim] = Claim
) -> list[Claim]:
    """How many times as large a column is for longer patterns, longer sequences, and the one over the other.

    `said` has the claim about each; the last may be missing.
    """
    ends, measure = _ends(form, scale), column.partition(",")[0]
    shortest, longest = form.lengths[scale][0], form.lengths[scale][-1]
    short = (-1.0, ends.short, column)
    claims: list[tuple[str, tuple[Part, ...], Expectation]] = [
        (f"{measure}, {' over '.join(ends.by_pattern)}", ((1.0, ends.long, column), short), "more"),
        (f"{measure}, {' over '.join(ends.by_length)}", ((1.0, ends.padded, column), short), "same"),
        (
            f"growth of {measure} with the pattern (p = {shortest} to {longest}, i = {longest}) over "
            f"growth with the sequence (i = {shortest} to {longest}, p = {shortest})",
            ((1.0, ends.long, column), (-2.0, ends.padded, column), (1.0, ends.short, column)),
            "more",
        ),
    ]
    return [
        kind(f"{sentence} ({form.title})", what, parts, expects, factors=True)
        for sentence, (what, parts, expects) in zip(said, claims, strict=False)
    ]


def evaluate_form(form: Form, results: FinishedRuns, item: str) -> tuple[list[TableCell], Drawn]:
    """Cells and figure of one form, for the item of that name."""
    from matplotlib.figure import Figure

    panels = 4 if form.method == FISHER else 3
    figure = Figure(figsize=(4 * panels, 3.7), layout="constrained")
    first, second, third, *fourth = figure.subplots(1, panels)
    scale = results.scale
    cells: list[TableCell] = []
    for axes, kind, settings in (
        (first, "p = i", form.tied(scale)),
        (second, f"p = {form.lengths[scale][0]}", form.padded(scale)),
    ):
        runs = [opened_runs(results, setting) for setting in settings]
        peaks = _dimensions(axes, form.lengths[scale], runs)
        axes.set_title(f"Dimensions of h_t, {kind}", fontsize=10)
        values = [tuple(_importance(run) for run in opened) for opened in runs]
        shown = [(i, number(each)) for i, each in zip(form.lengths[scale], values, strict=True) if each]
        third.errorbar(
            [i for i, _ in shown],
            [one.mean for _, one in shown],
            yerr=[one.sd for _, one in shown],
            marker="o",
            linestyle="-" if kind == "p = i" else ":",
            color="C0",
            capsize=2,
            label=kind,
        )
        for setting, found, peak in zip(settings, values, peaks, strict=True):
            importance = counting_cell(results, setting, importance_column(form), found, item)
            cells += [
                importance,
                counting_cell(results, setting, DIMENSION, peak, item),
                _accuracy(results, setting, importance),
            ]
        for axes in fourth:
            of_steps = _contributions(axes, form.lengths[scale], runs, "-" if kind == "p = i" else ":")
            for setting, columns in zip(settings, of_steps, strict=True):
                cells += [
                    counting_cell(results, setting, column, found, item) for column, found in columns.items()
                ]
    third.set(xlabel="input length i", ylabel="mean importance")
    third.set_xticks(form.lengths[scale])
    third.set_title("Importance of recurrent weights", fontsize=10)
    third.grid(alpha=0.3)
    third.legend(fontsize=8)
    caption = (
        "Left and middle: components that explain 75 % of the variance, step 0 is the stop bit. "
        f"{'Third' if fourth else 'Right'}: mean importance of W_hh and b_hh ({form.title}). "
        f"{'Right: what each step contributes to it. ' if fourth else ''}Mean over seeds; bars and bands: SD."
    )
    known = list(dict.fromkeys(cells))  # the shortest input is in both lists
    return known, Drawn(form.name, f"Intuition: {form.title}", caption, figure)


def opened_runs(results: FinishedRuns, setting: Setting) -> list[OpenedRun]:
    """The runs of a setting that count."""
    return [OpenedRun(results.folder(record), record) for record in counted(results, setting)[0]]


def _accuracy(results: FinishedRuns, setting: Setting, cell: TableCell) -> TableCell:
    """The accuracy of all networks of a setting, beside a cell of those that count."""
    values = tuple(results.values(setting, "final"))
    return replace(cell, column=ACCURACY, ours=number(values), values=values, left_out=(), remark="")


def _importance(run: OpenedRun) -> float:
    """Mean of the stored importance of recurrent weights."""
    keeper = keeper_of(run.learner)
    assert keeper is not None  # both methods store it
    return mean_importance(stored_importance(run.state(0), keeper)).recurrent


def _dimensions(
    axes: Axes, lengths: Sequence[int], runs: Sequence[Sequence[OpenedRun]]
) -> list[tuple[float, ...]]:
    """A line for each length, with its stop bit at step 0; returns the largest dimension of each seed."""
    peaks = []
    for length, opened in zip(lengths, runs, strict=True):
        curves = [dimension_per_step(run.states(0, 0, SAMPLES)) for run in opened]
        peaks.append(tuple(float(max(curve)) for curve in curves))
        if not curves:
            continue
        columns = [number([float(value) for value in values]) for values in zip(*curves, strict=True)]
        places, mean = [step - length for step in range(len(columns))], [each.mean for each in columns]
        (line,) = axes.plot(places, mean, label=f"i = {length}")
        low, high = ([each.mean + sign * each.sd for each in columns] for sign in (-1, 1))
        axes.fill_between(places, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
    _around_the_stop_bit(axes, "dimensions")
    return peaks


def _around_the_stop_bit(axes: Axes, upwards: str) -> None:
    """Finish a panel over steps, counted from the stop bit."""
    axes.axvline(0, linestyle=":", color="black", linewidth=1)
    axes.set(xlabel="step", ylabel=upwards)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)


def _contributions(
    axes: Axes, lengths: Sequence[int], runs: Sequence[Sequence[OpenedRun]], style: str
) -> list[dict[str, tuple[float, ...]]]:
    """A line for each length, with its stop bit at step 0; returns the columns of each length."""
    columns = []
    for place, (length, opened) in enumerate(zip(lengths, runs, strict=True)):
        found = [step_importance(*run.running(0, 0), run.data(0)[0].train, samples=SAMPLES) for run in opened]
        columns.append(
            {
                LARGEST_STEP: tuple(max(each.steps) for each in found),
                COHERENCE: tuple(each.coherence for each in found),
            }
        )
        if found:
            mean = [number(values).mean for values in zip(*(each.steps for each in found), strict=True)]
            steps = [step - length for step in range(len(mean))]
            label = f"i = {length}" if style == "-" else None
            axes.plot(steps, mean, style, color=f"C{place}", label=label)
    axes.set_yscale("log")
    axes.set_title("Importance by step (dotted: shortest pattern)", fontsize=10)
    _around_the_stop_bit(axes, "contribution")
    return columns


ITEM = _Intuition()
