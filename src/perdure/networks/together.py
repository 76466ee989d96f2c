"""Several tasks' mini-batches through one network in one pass.

Tasks that share all weights but their heads differ only in what is read out. Their sequences are joined, the
body runs once, and each head reads its own rows: with K tasks in a batch that is one recurrence, K times as
wide, instead of K narrow ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from perdure.networks.batch import Batch, unlabelled
from perdure.networks.layout import Weights
from perdure.networks.network import Network
from perdure.networks.packing import Packing, pack_lengths

Running = Mapping[int, tuple[Network, Weights]]
"""For each task the network that runs and its psi."""


class Joined(NamedTuple):
    """Sequences of several batches as packed rows [S, F], and the rows at which each batch is answered."""

    rows: Tensor
    packing: Packing
    asked: list[Tensor]
    """One index [M_k] for each batch, in the order of its answers."""


def join(batches: Sequence[Batch]) -> Joined:
    """All sequences of the batches, sorted by length again."""
    packing = pack_lengths(torch.cat([batch.packing.lengths for batch in batches]))
    places: list[Tensor] = []
    first = 0
    for batch in batches:
        places.append(packing.rows_of(first, batch.packing))
        first += len(batch)
    device = batches[0].rows.device
    order = torch.argsort(torch.cat(places)).to(device)
    rows = torch.cat([batch.rows for batch in batches]).index_select(0, order)
    asked = [
        place.to(device) if batch.asked is None else place.to(device)[batch.asked]
        for place, batch in zip(places, batches, strict=True)
    ]
    return Joined(rows, packing, asked)


def logits_of(running: Running, batches: Mapping[int, Batch]) -> dict[int, Tensor]:
    """Logits [M, outputs] of each task's batch; in one pass where the tasks share network and body."""
    tasks = list(batches)
    network, weights = running[tasks[0]]
    if len(tasks) == 1 or not all(_same_body(running[tasks[0]], running[task]) for task in tasks[1:]):
        return {task: running[task][0](running[task][1], batch, task) for task, batch in batches.items()}
    joined = join([batches[task] for task in tasks])
    everything = unlabelled(joined.rows, joined.packing)
    features = network.features(weights, everything, tasks[0], torch.cat(joined.asked))
    parts = features.split([len(asked) for asked in joined.asked])
    return {
        task: network.answer(running[task][1], part, task) for task, part in zip(tasks, parts, strict=True)
    }


def _same_body(one: tuple[Network, Weights], other: tuple[Network, Weights]) -> bool:
    """Whether two tasks run with the very same tensors, apart from their heads and a one-hot input."""
    if one[0] is not other[0] or one[0].architecture.task_identity:
        return False
    names = one[0].body.axes
    return all(one[1][name].data_ptr() == other[1][name].data_ptr() for name in names)
