"""Several tasks' mini-batches through one network in one pass.

Tasks that share all weights except their heads differ only in the readout. Their sequences are joined, the
body runs once, and each head reads its own rows: with K tasks in a batch that is one recurrence, K times as
wide, instead of K narrow ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

import torch
from torch import Tensor

from perdure.networks.batch import Batch, unlabelled
from perdure.networks.layout import Weights
from perdure.networks.native.rows import join_rows
from perdure.networks.network import Network
from perdure.networks.packing import Packing, pack_lengths

TaskNetworks = Mapping[int, tuple[Network, Weights]]
"""The network that runs and its psi, for each task."""


@dataclass(frozen=True)
class Joined:
    """Sequences of several batches as packed rows [S, F]."""

    rows: Tensor
    packing: Packing
    places: tuple[Tensor, ...]
    """For each batch, the rows here of its own rows."""

    @cached_property
    def batches(self) -> Tensor:
        """The index of the batch that each row [S] comes from."""
        owners = torch.empty(len(self.rows), dtype=torch.long)
        for number, place in enumerate(self.places):
            owners[place] = number
        return owners.to(self.rows.device)

    def asked(self, batches: Sequence[Batch]) -> list[Tensor]:
        """The rows [M_k] where each batch requires outputs, in the order of its outputs."""
        places = [place.to(self.rows.device) for place in self.places]
        return [
            place if batch.asked is None else place[batch.asked]
            for place, batch in zip(places, batches, strict=True)
        ]


def join(batches: Sequence[Batch]) -> Joined:
    """All sequences of the batches, sorted by length again."""
    packing = pack_lengths(torch.cat([batch.packing.lengths for batch in batches]))
    packings, parts = [batch.packing for batch in batches], [batch.rows for batch in batches]
    joined = join_rows(packing, packings, parts)
    if joined is None:
        firsts = accumulate((len(batch) for batch in batches[:-1]), initial=0)
        places = torch.cat([packing.rows_of(*each) for each in zip(firsts, packings, strict=True)])
        order = torch.argsort(places).to(parts[0].device)
        joined = torch.cat(parts).index_select(0, order), places
    rows, places = joined
    return Joined(rows, packing, places.split([len(part) for part in parts]))


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
    joined = join([batches[task] for task in tasks])
    owners: int | Tensor = tasks[0]
    if network.architecture.task_identity:
        owners = torch.tensor(tasks, device=joined.rows.device)[joined.batches]
    asked = joined.places if everywhere else joined.asked([batches[task] for task in tasks])
    everything = replace(unlabelled(joined.rows, joined.packing), noise=batches[tasks[0]].noise)
    features = network.features(weights, everything, owners, torch.cat(asked).to(joined.rows.device))
    return dict(zip(tasks, features.split([len(rows) for rows in asked]), strict=True))


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
