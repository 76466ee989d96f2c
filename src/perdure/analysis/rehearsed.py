"""What a run rehearses, beside real sequences: whether replayed ones look like those of their task.

The paper observes that samples from the prior of a sequential VAE are not meaningful digits, although digits
are reconstructed well (SM "Replay for Split-SMNIST experiments"). Here that is measured by the nearest real
training sequence, among those of all tasks: how far it is, and whether it belongs to the task. Of patterns of
bits, such as those to copy, every pattern is real, and a grey one is as near to a real one as a real one to
another; so there it counts whether they are bits, and of the form that all real sequences have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from perdure.analysis.opened import OpenedRun, config_of, state_of
from perdure.errors import PerdureError
from perdure.experiment import assemble, generators_of, on_device
from perdure.learning.embedding_tables import read_through
from perdure.learning.learner import REHEARSAL
from perdure.learning.phase import context_of
from perdure.learning.splits import outputs_of
from perdure.rehearsal.rehearsal import sequences_of
from perdure.storage.record import Record
from perdure.storage.store import RunFolder

REAL = "real"
Examples = dict[str, list[Tensor]]
"""By kind, some sequences [T, F]: real ones, and what is stored, reconstructed or replayed."""


@torch.no_grad()
def examples(folder: RunFolder, record: Record, count: int) -> list[Examples]:
    """For each task, some real test sequences and what the finished run rehearses of it."""
    config = config_of(record)
    if config.rehearsal is None:
        raise PerdureError(
            f"Run {record.hash} ({record.method}) rehearses nothing; coresets, er, rtf, hnet+r and others do."
        )
    tasks, learner = assemble(config)
    data = on_device(tasks, "cpu")
    generators = generators_of(config)
    state = state_of(folder, len(record.iterations) - 1, learner, outputs_of(data), generators)
    memory = state.memories[REHEARSAL]
    last, formats = len(tasks) - 1, {task: splits.train.without_samples() for task, splits in enumerate(data)}
    context = context_of(learner, state, {last: data[last]}, formats, generators)
    rows = []
    for task, splits in enumerate(data):
        real = read_through(splits.test, task, state.parameters).batch(slice(0, count))
        rehearsed = config.rehearsal.examples(memory, context, task, real)
        rows.append({REAL: sequences_of(real, real.rows)} | rehearsed)
    return rows


class Likeness(NamedTuple):
    """How much some sequences are like real ones."""

    recognised: float
    """Percent whose nearest real training sequence is of their task; one that k tasks share counts 1/k."""
    distance: float
    """Mean Euclidean distance to the nearest real training sequence of their task."""


def likeness(sequences: Sequence[Tensor], task: int, known: Mapping[int, Sequence[Tensor]]) -> Likeness:
    """Compare sequences [T, F] of a task with known real ones of all tasks; shorter ones end with zeros."""
    longest = max(len(each) for group in (sequences, *known.values()) for each in group)
    asked = _vectors(sequences, longest)
    nearest = {other: torch.cdist(asked, _vectors(group, longest)).amin(1) for other, group in known.items()}
    distances, own = torch.stack(list(nearest.values())), nearest[task]
    best = distances.amin(0)
    shares = (own == best).double() / (distances == best).sum(0)
    return Likeness(100 * float(shares.mean()), float(own.mean()))


def _vectors(sequences: Sequence[Tensor], steps: int) -> Tensor:
    """One row [T F] for each sequence."""
    padded = [torch.nn.functional.pad(each.double(), (0, 0, 0, steps - len(each))) for each in sequences]
    return torch.stack(padded).flatten(1)


class Form(NamedTuple):
    """How much sequences that should be bits have the form of real ones."""

    grey: float
    """Mean distance of an entry from the nearest bit: 0 for bits, 0.25 for uniform noise, at most 0.5."""
    formed: float
    """Percent that, rounded, agree with what all real sequences have in common, such as the stop bit."""
    variety: float
    """Mean Hamming distance of two rounded sequences over that of two real ones; 0 if all are the same."""


def form(sequences: Sequence[Tensor], real: Sequence[Tensor]) -> Form:
    """Compare sequences [T, F] with real ones of bits, all of the same length."""
    asked, known = (_vectors(group, len(real[0])) for group in (sequences, real))
    rounded = (asked > 0.5).double()
    common = (known == known[0]).all(0)
    formed = (rounded[:, common] == known[0, common]).all(1).double().mean()
    return Form(float((asked - rounded).abs().mean()), 100 * float(formed), _spread(rounded) / _spread(known))


def _spread(bits: Tensor) -> float:
    """Mean Hamming distance of two different rows [n, D] of bits."""
    ones, count = bits.sum(0), len(bits)
    return float((ones * (count - ones)).sum() / (count * (count - 1) / 2))


def likenesses(run: OpenedRun, samples: int, references: int) -> list[dict[str, Likeness]]:
    """For each task, by kind, how much rehearsed and real test sequences are like real training ones."""
    last = len(run.phases) - 1
    known = {}
    for task, splits in enumerate(run.data(last)):
        batch = splits.train.batch(slice(0, references))
        known[task] = sequences_of(batch, batch.rows)
    rows = examples(run.folder, run.record, samples)
    return [
        {kind: likeness(sequences, task, known) for kind, sequences in row.items()}
        for task, row in enumerate(rows)
    ]


def forms(run: OpenedRun, samples: int) -> list[dict[str, Form]]:
    """For each task, by kind, how much rehearsed and real sequences of bits have the form of real ones."""
    rows = examples(run.folder, run.record, samples)
    return [{kind: form(sequences, row[REAL]) for kind, sequences in row.items()} for row in rows]
