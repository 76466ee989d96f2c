"""What a run rehearses, drawn: real sequences beside stored, reconstructed or replayed ones."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from perdure.config import from_json
from perdure.errors import PerdureError
from perdure.learning.engine import unpack
from perdure.networks.batch import Batch
from perdure.networks.layout import Vectors
from perdure.networks.variational import emitted
from perdure.penalties.penalty import Situation
from perdure.records.record import Record
from perdure.records.store import RunFolder
from perdure.rehearsal.coreset import Coreset, unstore
from perdure.rehearsal.generative import Generative
from perdure.report.figures import check_format, save
from perdure.run import assemble, chance_of, on_device

EXAMPLES = 4
"""Sequences of each task and kind."""

Examples = dict[str, list[Tensor]]
"""By kind, some sequences [T, F]."""


def draw_replay(folder: RunFolder, record: Record, path: Path) -> None:
    """A row for each task; real and rehearsed sequences as images, time from left to right."""
    check_format(path)
    from matplotlib.figure import Figure

    rows = rehearsed(folder, record)
    kinds = list(rows[0])
    figure = Figure(figsize=(2.1 * len(kinds) * 1.6, 1.0 * len(rows) + 0.8), layout="constrained")
    axes = figure.subplots(len(rows), len(kinds) * EXAMPLES, squeeze=False)
    for number, examples in enumerate(rows):
        for column, kind in enumerate(kinds):
            for place, sequence in enumerate(examples[kind]):
                axis = axes[number][column * EXAMPLES + place]
                axis.imshow(sequence.t().numpy(), cmap="Greys", aspect="auto", interpolation="nearest")
                axis.set(xticks=[], yticks=[])
                if place == 0 and number == 0:
                    axis.set_title(kind, loc="left", fontsize=10)
                if place == 0 and column == 0:
                    axis.set_ylabel(f"task {number + 1}", fontsize=9)
    figure.suptitle(f"{record.benchmark}, {record.method}, seed {record.seed}: what is rehearsed")
    save(figure, path)


@torch.no_grad()
def rehearsed(folder: RunFolder, record: Record) -> list[Examples]:
    """For each task some real sequences and what the finished run rehearses of it."""
    config = from_json(record.config)
    if config.rehearsal is None:
        raise PerdureError(
            f"Run {record.hash} ({record.method}) rehearses nothing; coresets, rtf and hnet+r do."
        )
    tasks, learner = assemble(config)
    data = on_device(tasks, "cpu")
    knowledge = unpack(folder.knowledge(len(record.iterations) - 1), learner)
    memory = knowledge.memories["rehearsal"]
    situation = Situation(
        network=learner.network,
        source=learner.source,
        buffers=knowledge.buffers,
        parameters=knowledge.parameters,
        positions={},
        start={},
        tasks=[len(tasks) - 1],
        data=lambda task: data[task].train,
        chance=chance_of(config),
    )
    rows = []
    for task, splits in enumerate(data):
        real = splits.test.batch(slice(0, EXAMPLES))
        examples: Examples = {"real": _sequences(real, real.rows)}
        if isinstance(config.rehearsal, Coreset):
            stored = unstore(memory, task, splits.train).batch(slice(0, EXAMPLES))
            examples["stored"] = _sequences(stored, stored.rows)
        elif isinstance(config.rehearsal, Generative):
            examples |= _generated(config.rehearsal, memory, situation, real, task)
        rows.append(examples)
    return rows


def _generated(
    rehearsal: Generative, memory: Vectors, situation: Situation, real: Batch, task: int
) -> Examples:
    """Reconstructions of real sequences, and sequences decoded from the prior."""
    replay = rehearsal.begin(memory, situation)
    decoded, _ = replay.decode(situation.parameters, task, real)
    imagined = replay.imagine(task, EXAMPLES, replay.before)
    return {
        "reconstructed": _sequences(real, emitted(decoded, rehearsal.likelihood)),
        "replayed": _sequences(imagined, imagined.rows),
    }


def _sequences(batch: Batch, rows: Tensor) -> list[Tensor]:
    """Packed rows as one [T, F] for each sequence."""
    padded = batch.packing.unpack(rows)
    return [
        sequence[:length].cpu()
        for sequence, length in zip(padded, batch.packing.lengths.tolist(), strict=True)
    ]
