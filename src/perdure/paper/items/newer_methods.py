"""Methods that the paper does not have, on three of its benchmarks, beside some of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from perdure.paper.comparison import OURS, Row, RowsItem, cells_of, finished
from perdure.paper.conclusions import Claim, asked, difference, interaction
from perdure.paper.findings import TableCell
from perdure.paper.item import Drawn, FinishedRuns, Setting

PROBLEMS: Mapping[str, tuple[str, Mapping[str, Any], str]] = {
    "permuted": ("permuted-copy", {}, "Permuted Copy"),
    "padded": ("padded-copy", {}, "Padded Copy, i = 25"),
    "m = 1": ("smnist", {"benchmark.digits": 1}, "Stroke MNIST, one digit"),
}
"""By their names in rows: benchmark, options, and the title in the figure."""
FLOOR, WEIGHTED, GENERATED = "Fine-tuning", "Online EWC", "HNET"
REFERENCES = {FLOOR: "fine-tuning", WEIGHTED: "online-ewc", GENERATED: "hnet"}
"""Methods of the paper: the floor, and two that have settings from searches on all three."""
UNWEIGHTED, IMPORTANCE, ONE_SIDED, TWO_SIDED = "L2 anchor", "MAS", "OWM", "Duncker"
HOLDING = {
    UNWEIGHTED: "l2-anchor",
    IMPORTANCE: "mas",
    "LwF": "lwf",
    ONE_SIDED: "owm",
    "GPM": "gpm",
    TWO_SIDED: "duncker",
}
"""Methods that store no data."""
STORING = {"A-GEM": "a-gem", "Herding": "herding", "ER": "er", "DER": "der", "DER++": "der++"}
"""Methods that store samples."""
METHODS = {**REFERENCES, **HOLDING, **STORING}
SMOKE = ("permuted", "padded")
"""Problems at smoke scale, where it is enough that everything runs, without downloads."""


def _label(method: str, problem: str) -> str:
    return f"{method}, {problem}"


def _problems(scale: str) -> tuple[str, ...]:
    """Names of the problems at a scale."""
    return SMOKE if scale == "smoke" else tuple(PROBLEMS)


def _better(first: str, second: str, problem: str) -> Claim:
    paper = f"{first} is better than {second} ({problem})"
    return difference(paper, _label(first, problem), _label(second, problem))


def _questions() -> list[Claim]:
    """What protects better than the paper's methods, and what importance, two sides and length do."""
    claims = [_better(method, WEIGHTED, problem) for method in HOLDING for problem in PROBLEMS]
    claims += [_better(method, GENERATED, problem) for method in STORING for problem in PROBLEMS]
    for first, second in ((IMPORTANCE, UNWEIGHTED), (TWO_SIDED, ONE_SIDED), ("DER++", "ER")):
        claims += [_better(first, second, problem) for problem in PROBLEMS]
    for method in HOLDING:
        falls = [_label(each, problem) for each in (WEIGHTED, method) for problem in ("permuted", "padded")]
        claims.append(
            interaction(
                f"length alone costs {method} less than {WEIGHTED}",
                f"fall of {WEIGHTED} from permuted to padded minus that of {method}",
                (falls[0], falls[1], falls[2], falls[3]),
            )
        )
    return [asked(claim) for claim in claims]


@dataclass(frozen=True)
class _NewerMethods(RowsItem):
    page: ClassVar[str] = "newer-methods"

    def rows_at(self, scale: str) -> Sequence[Row]:
        """Every method on every problem."""
        found = []
        for problem in _problems(scale):
            benchmark, options, _ = PROBLEMS[problem]
            found += [
                Row(Setting(_label(label, problem), benchmark, method, options))
                for label, method in METHODS.items()
            ]
        return found

    def evaluate(self, results: FinishedRuns) -> tuple[list[TableCell], list[Drawn]]:
        """Two cells per row, and one panel per problem."""
        rows = finished(self.rows_at(results.scale), results)
        cells = [cell for row in rows for cell in cells_of(row, results)]
        return cells, [_drawn(cells, _problems(results.scale), self.title)]


def _drawn(cells: Sequence[TableCell], problems: Sequence[str], title: str) -> Drawn:
    from matplotlib.figure import Figure

    places = {(cell.row, cell.column): cell.ours for cell in cells}
    figure = Figure(figsize=(10, 4.6), layout="constrained")
    for axes, problem in zip(figure.subplots(1, len(problems), sharey=True), problems, strict=True):
        axes.set_title(PROBLEMS[problem][2], fontsize=10)
        axes.set_yticks(range(len(METHODS)), METHODS)
        axes.grid(axis="x", alpha=0.3)
        axes.set_xlabel("accuracy (%)")
        for column, fill in (("during", "none"), ("final", OURS)):
            found = {
                place: number
                for place, method in enumerate(METHODS)
                if (number := places.get((_label(method, problem), column))) is not None
            }
            axes.errorbar(
                [number.mean for number in found.values()],
                list(found),
                xerr=[number.sem or 0 for number in found.values()],
                fmt="o",
                color=OURS,
                markerfacecolor=fill,
                capsize=2,
                label={"during": "right after each task", "final": "at the end"}[column],
            )
    axes.invert_yaxis()  # shared: the first method at the top in all panels
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=8)
    return Drawn("methods", title, "Mean and standard error over seeds.", figure)


ITEM = _NewerMethods(
    title="Methods beyond the paper",
    source="not in the paper; three of its benchmarks",
    about=(
        "Stored samples, distillation, other measures of importance and projections on the Permuted Copy "
        "Task, the same patterns after a longer delay, and pen-drawn digits, beside fine-tuning, Online "
        "EWC and HNET."
    ),
    note=(
        "Where a search was made for a method and problem it had 24, 12 or 24 trials (or all points of its "
        "space); fine-tuning is not searched."
    ),
    claims=_questions(),
    laptop_seeds=3,
    scales=("smoke", "laptop"),  # the paper has no settings for them
)
