"""Drawings of what a run rehearses: real sequences next to stored, reconstructed or replayed ones."""

from __future__ import annotations

from pathlib import Path

from perdure.analysis.rehearsed import examples
from perdure.report.figures import check_format, save
from perdure.storage.record import Record
from perdure.storage.store import RunFolder

EXAMPLES = 4
"""Number of sequences per task and kind."""


def draw_replay(folder: RunFolder, record: Record, path: Path) -> None:
    """One row per task; real and rehearsed sequences as images, with time from left to right."""
    check_format(path)
    from matplotlib.figure import Figure

    rows = examples(folder, record, EXAMPLES)
    kinds = list(rows[0])
    figure = Figure(figsize=(2.1 * len(kinds) * 1.6, 1.0 * len(rows) + 0.8), layout="constrained")
    axes = figure.subplots(len(rows), len(kinds) * EXAMPLES, squeeze=False)
    for number, row in enumerate(rows):
        for column, kind in enumerate(kinds):
            for place, sequence in enumerate(row[kind]):
                axis = axes[number][column * EXAMPLES + place]
                axis.imshow(sequence.t().numpy(), cmap="Greys", aspect="auto", interpolation="nearest")
                axis.set(xticks=[], yticks=[])
                if place == 0 and number == 0:
                    axis.set_title(kind, loc="left", fontsize=10)
                if place == 0 and column == 0:
                    axis.set_ylabel(f"task {number + 1}", fontsize=9)
    figure.suptitle(f"{record.benchmark}, {record.method}, seed {record.seed}: rehearsed sequences")
    save(figure, path)
