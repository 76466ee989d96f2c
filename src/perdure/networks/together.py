"""Several tasks' mini-batches through one network in one pass.

Tasks that share all weights except their heads differ only in the readout. Their sequences are joined, the
body runs once, and each head reads its own rows: with K tasks in a batch that is one recurrence, K times as
wide, instead of K narrow ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from perdure.networks.batch import Batch, unlabelled
from perdure.networks.layout import Weights
from perdure.networks.network import Network
from perdure.networks.packing import Packing, pack_lengths

TaskNetworks = Mapping[int, tuple[Network, Weights]]
"""The network that runs and its psi, for each task."""


class Joined(NamedTuple):
    """Sequences of several batches as packed rows [S, F], and the rows where each batch requires outputs."""

    rows: Tensor
    packing: Packing
    batches: Tensor
    """The index of the batch that each row [S] comes from."""
    asked: list[Tensor]
    """One index [M_k] per batch, in the order of its outputs."""


def join(batches: Sequence[Batch], *, everywhere: bool = False) -> Joined:
    """All sequences of the batches, sorted by length again; `everywhere` requires outputs at all rows."""
    packing = pack_lengths(torch.cat([batch.packing.lengths for batch in batches]))
    places: list[Tensor] = []
    first = 0
    for batch in batches:
        places.append(packing.rows_of(first, batch.packing))
        first += len(batch)
    device = batches[0].rows.device
    order = torch.argsort(torch.cat(places)).to(device)
    rows = torch.cat([batch.rows for batch in batches]).index_select(0, order)
    numbers = torch.arange(len(batches)).repeat_interleave(torch.tensor([len(place) for place in places]))
    asked = [
        place.to(device) if everywhere or batch.asked is None else place.to(device)[batch.asked]
        for place, batch in zip(places, batches, strict=True)
    ]
    return Joined(rows, packing, numbers.to(device).index_select(0, order), asked)


def features_of(
    running: TaskNetworks, batches: Mapping[int, Batch], *, everywhere: bool = False
) -> dict[int, Tensor]:
    """The heads' inputs for each task's batch, at the required rows [M, H] or everywhere [S, H].

    In one pass if the tasks share network and body.
    """
    tasks = list(batches)
    if len(tasks) == 1 or len(distinct_bodies(running[task] for task in tasks)) > 1:
        return {
            task: running[task][0].features(
                running[task][1], batch, task, None if everywhere else batch.asked
            )
            for task, batch in batches.items()
        }
    network = running[tasks[0]][0]
    weights: Weights = {}
    for task in tasks:
        weights |= running[task][1]  # the same body, and each task's own weights
    joined = join([batches[task] for task in tasks], everywhere=everywhere)
    owners = torch.tensor(tasks, device=joined.rows.device)[joined.batches]
    everything = unlabelled(joined.rows, joined.packing)
    features = network.features(weights, everything, owners, torch.cat(joined.asked))
    return dict(zip(tasks, features.split([len(asked) for asked in joined.asked]), strict=True))


def logits_of(running: TaskNetworks, batches: Mapping[int, Batch]) -> dict[int, Tensor]:
    """Logits [M, outputs] of each task's batch."""
    return {
        task: running[task][0].answer(running[task][1], features, task)
        for task, features in features_of(running, batches).items()
    }


def distinct_bodies(running: Iterable[tuple[Network, Weights]]) -> list[tuple[Network, Weights]]:
    """The networks whose bodies are not the very same tensors, each once."""
    found: dict[tuple[int, ...], tuple[Network, Weights]] = {}
    for network, weights in running:
        found.setdefault(
            (id(network), *(id(weights[name]) for name in network.body.axes)), (network, weights)
        )
    return list(found.values())
