"""Drawings of what a run rehearses: real sequences next to stored, reconstructed or replayed ones."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from perdure.config import from_json
from perdure.errors import PerdureError
from perdure.experiment import assemble, generators_of, on_device
from perdure.learning.embedding_tables import read_through
from perdure.learning.engine import outputs_of, unpack
from perdure.learning.learner import REHEARSAL
from perdure.learning.phase import context_of
from perdure.rehearsal.rehearsal import sequences_of
from perdure.report.figures import check_format, save
from perdure.storage.record import Record
from perdure.storage.store import RunFolder

EXAMPLES = 4
"""Number of sequences per task and kind."""

Examples = dict[str, list[Tensor]]
"""By kind, some sequences [T, F]."""


def draw_replay(folder: RunFolder, record: Record, path: Path) -> None:
    """One row per task; real and rehearsed sequences as images, with time from left to right."""
    check_format(path)
    from matplotlib.figure import Figure

    rows = examples(folder, record)
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


@torch.no_grad()
def examples(folder: RunFolder, record: Record) -> list[Examples]:
    """For each task, some real sequences and what the finished run rehearses of it."""
    config = from_json(record.config)
    if config.rehearsal is None:
        raise PerdureError(
            f"Run {record.hash} ({record.method}) rehearses nothing; coresets, rtf and hnet+r do."
        )
    tasks, learner = assemble(config)
    data = on_device(tasks, "cpu")
    state = unpack(folder.knowledge(len(record.iterations) - 1), learner, outputs_of(data))
    memory = state.memories[REHEARSAL]
    last, formats = len(tasks) - 1, {task: splits.train.without_samples() for task, splits in enumerate(data)}
    context = context_of(learner, state, {last: data[last]}, formats, generators_of(config))
    rows = []
    for task, splits in enumerate(data):
        real = read_through(splits.test, task, state.parameters).batch(slice(0, EXAMPLES))
        rehearsed = config.rehearsal.examples(memory, context, task, real)
        rows.append({"real": sequences_of(real, real.rows)} | rehearsed)
    return rows
