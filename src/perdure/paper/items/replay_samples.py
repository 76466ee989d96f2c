"""Whether samples from the prior of a sequential VAE are digits, and whether they are patterns to copy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perdure.analysis.opened import OpenedRun
from perdure.analysis.rehearsed import REAL, Form, Likeness, examples, forms, likenesses
from perdure.analysis.statistics import number
from perdure.paper.conclusions import Claim
from perdure.paper.findings import TableCell
from perdure.paper.item import Drawn, FinishedRuns, Item, Setting
from perdure.paper.items.smnist_rehearsal import SPLIT, WIDE

SAMPLES = {"smoke": (10, 20), "laptop": (200, 500), "paper": (200, 1000)}
"""Sequences of each task and kind, and real training sequences of each task to compare them with."""
DIGITS = (
    Setting("RtF", "smnist", "rtf", SPLIT),
    Setting("RtF*", "smnist", "rtf", WIDE),
    Setting("HNET+R", "smnist", "hnet+r", SPLIT),
    Setting("HNET+R*", "smnist", "hnet+r", WIDE),
)
COPIED = Setting("RtF, Permuted Copy", "permuted-copy", "rtf")
RECONSTRUCTED, REPLAYED = "reconstructed", "replayed"
RECOGNISED = "nearest real sequence is of the same task (%)"
DISTANCE = "distance to the nearest real sequence of the task"
FORMED = "has what all real sequences share (%)"
GREY = "distance of an entry from the nearest bit"
VARIETY = "differences between sequences over those of real ones"
LIKE = 10.0
"""Percentage points within which sequences are recognised alike, or as often have the form of real ones."""
NEARLY_BITS, AS_VARIOUS = 0.05, 0.25
"""Distance from bits (at most 0.5) and share of the differences within which patterns are like real ones."""
DRAWN = 6
"""Sequences of each kind that are drawn."""


def _column(kind: str, what: str) -> str:
    return f"{kind}: {what}"


@dataclass(frozen=True)
class _ReplaySamples(Item):
    title: str = "Samples from the prior"
    source: str = "SM text (supp:remarks:smnist:replay)"
    about: str = (
        "What generative replay reconstructs and replays, beside real test sequences. Of digits the nearest "
        "real training sequence among those of all tasks, whether it is of the same task, and how far it is; "
        "of patterns to copy, whether they are bits, various, and share what all real ones do (the stop bit, "
        "and silence where nothing is shown). The runs are those of the rehearsal table and of Table 1."
    )
    note: str = "The paper looked at drawings, and gives no numbers."

    def settings(self, scale: str) -> list[Setting]:
        """Generative replay of digits and of patterns to copy."""
        del scale
        return [*DIGITS, COPIED]

    def seeds(self, scale: str) -> int:
        """As the rehearsal table."""
        return {"smoke": 1, "laptop": 3}.get(scale, 10)

    def findings_of_the_paper(self, scale: str) -> Sequence[Claim]:
        """Digits are reconstructed but not sampled; patterns to copy are sampled, too."""
        del scale
        labels = [setting.label for setting in DIGITS]
        return (
            *(
                Claim(
                    f"digits can be reconstructed ({label})",
                    "digits recognised by the nearest neighbour, reconstructed minus real",
                    _minus(label, RECONSTRUCTED, REAL),
                    "same",
                    margin=LIKE,
                )
                for label in labels
            ),
            *(
                Claim(
                    f"samples from the prior are not meaningful digits ({label})",
                    "digits recognised by the nearest neighbour, replayed minus reconstructed",
                    _minus(label, REPLAYED, RECONSTRUCTED),
                    "less",
                    margin=LIKE,
                )
                for label in labels
            ),
            *(
                Claim(
                    f"on the Copy Task samples from the prior have no such difficulties ({short})",
                    f"{what}, replayed minus real",
                    _minus(COPIED.label, REPLAYED, REAL, what),
                    "same",
                    unit=unit,
                    margin=margin,
                )
                for short, what, unit, margin in (
                    ("stop bit and silence", FORMED, "points", LIKE),
                    ("bits", GREY, "of a bit", NEARLY_BITS),
                    ("variety", VARIETY, "of the real one", AS_VARIOUS),
                )
            ),
        )

    def evaluate(self, results: FinishedRuns) -> tuple[list[TableCell], list[Drawn]]:
        """Means over tasks of each setting and kind, and drawings of digits."""
        cells: list[TableCell] = []
        for setting in self.settings(results.scale):
            runs = [OpenedRun(results.folder(record), record) for record in results.of(setting)]
            found = [_looked_at(run, setting, results.scale) for run in runs]
            for kind in found[0][0]:
                measured = _measured([[one[kind] for one in tasks] for tasks in found])
                cells += [
                    TableCell(
                        setting.label,
                        _column(kind, what),
                        number(values),
                        command=results.command("replay-samples"),
                        hashes=tuple(run.record.hash for run in runs),
                        values=tuple(values),
                    )
                    for what, values in measured.items()
                ]
        return cells, [_drawn(results)]


def _looked_at(run: OpenedRun, setting: Setting, scale: str) -> Sequence[Mapping[str, Likeness | Form]]:
    """For each task, by kind. All tasks of the Copy Task have the same patterns, and any pattern is real."""
    samples, references = SAMPLES[scale]
    return forms(run, samples) if setting is COPIED else likenesses(run, samples, references)


def _minus(label: str, first: str, second: str, what: str = RECOGNISED) -> tuple[tuple[float, str, str], ...]:
    return (1.0, label, _column(first, what)), (-1.0, label, _column(second, what))


def _measured(found: Sequence[Sequence[Likeness | Form]]) -> dict[str, list[float]]:
    """Means over the tasks of each run, by column."""
    names = {
        "distance": DISTANCE,
        "recognised": RECOGNISED,
        "formed": FORMED,
        "grey": GREY,
        "variety": VARIETY,
    }
    return {
        names[field]: [_mean([getattr(task, field) for task in tasks]) for tasks in found]
        for field in found[0][0]._fields
    }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _drawn(results: FinishedRuns) -> Drawn:
    """Digits of the first task: each as the path of its pen, which is up after the end of a stroke."""
    from matplotlib.figure import Figure

    kinds = (REAL, RECONSTRUCTED, REPLAYED)
    figure = Figure(figsize=(0.62 * DRAWN * len(kinds), 0.85 * len(DIGITS)), layout="constrained")
    panels = figure.subplots(len(DIGITS), DRAWN * len(kinds), squeeze=False)
    for row, setting in zip(panels, DIGITS, strict=True):
        record = results.of(setting)[0]
        shown = examples(results.folder(record), record, DRAWN)[0]
        for place, (kind, number_) in enumerate((kind, n) for kind in kinds for n in range(DRAWN)):
            axes = row[place]
            axes.set(xticks=[], yticks=[])
            moves = shown[kind][number_].double()
            path = moves[:, :2].cumsum(0)
            lifted = (moves[:, 2].round() > 0).nonzero()[:, 0].tolist()
            start = 0
            for end in [*(stop + 1 for stop in lifted), len(path)]:
                if end > start:
                    axes.plot(path[start:end, 0], -path[start:end, 1], color="black", linewidth=0.9)
                start = end
            axes.set_aspect("equal", adjustable="datalim")
            if place == 0:
                axes.set_ylabel(setting.label, fontsize=7)
            if number_ == 0 and setting is DIGITS[0]:
                axes.set_title(kind, loc="left", fontsize=8)
    caption = (
        "Digits of the first task, seed 0, drawn along the path of the pen: real, reconstructed, replayed."
    )
    return Drawn("digits", "Samples from the prior", caption, figure)


ITEM = _ReplaySamples()
