"""Herding and the nearest class mean (Rebuffi et al. 2017, "iCaRL").

Features phi are scaled to length 1. Of each class with mean feature mu, exemplar number k is the sample x
that brings the mean of the exemplars nearest to mu: argmin || mu - (phi(x) + sum of those before) / k ||. If
the memory must shrink, exemplars chosen last go first. Exemplars are rehearsed with their true targets, as in
`er`. A test sample belongs to the class whose exemplars have the nearest mean, argmax_c mu_c . phi(x) with
mu_c of length 1; that is a head with weights mu_c and no bias, which replaces the trained one.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from torch import Tensor
from torch.nn import functional

from perdure.hooks import PhaseContext, PhaseEnd
from perdure.networks.batch import Data
from perdure.networks.layout import Vectors, Weights
from perdure.networks.network import Network
from perdure.options import Strength
from perdure.rehearsal.er import ER, ERTerm
from perdure.rehearsal.samples import nearest_to_mean, stored_tasks, unstore
from perdure.targets.classes import UNLIKELY
from perdure.weights.source import TaskNetwork

MEAN = "mean."
"""Prefix of the class means of a head [outputs, H] in the memory."""


class Herding(ER):
    """Samples nearest to the mean features of their class are rehearsed, and can tell the classes apart."""

    name: ClassVar[str] = "herding"

    strength: Strength = 1.0
    """Factor of the loss on stored samples."""
    readout: Literal["nearest-mean", "head"] = "nearest-mean"
    """Test samples get the class with the nearest mean, or what the trained head says."""

    def begin(self, memory: Vectors, context: PhaseContext) -> HerdingTerm:
        """Rehearse what is in the memory."""
        return HerdingTerm(self, memory, context)

    def answering(self, memory: Vectors, network: Network, weights: Weights, task: int) -> Weights:
        """The task's heads, with class means as weights."""
        heads = [head for head in network.columns(task) if MEAN + head in memory]
        if self.readout == "head" or not heads:
            return weights
        replaced = dict(weights)
        for head in heads:
            means = memory[MEAN + head]
            absent = (means == 0).all(1)  # a class without exemplars must not win by a cosine of 0
            replaced |= {f"{head}.weight": means, f"{head}.bias": absent.to(means.dtype) * UNLIKELY}
        return replaced


class HerdingTerm(ERTerm):
    """The rehearsal during one phase."""

    def finish(self, end: PhaseEnd) -> Vectors:
        """New exemplars, and the class means of all by the network as it is now."""
        context = self.context
        networks = context.networks_now(end.active, end.data)

        def keys(task: int, data: Data, most: int) -> Tensor:
            return herding_order(features_of(networks[task], data, task), classes_of(data), most)

        memory = {name: value for name, value in self.memory.items() if not name.startswith(MEAN)}
        kept = self.options.remember(memory, end, keys)
        return kept | self._means(kept, end)

    def _means(self, memory: Vectors, end: PhaseEnd) -> Vectors:
        """The mean feature of each class's exemplars, of length 1, by head; none without classes."""
        totals: Vectors = {}
        tasks = [task for task in stored_tasks(memory) if len(memory[f"y.{task}"])]
        for task, (network, weights) in self.context.networks_now(end.active, tasks).items():
            data = unstore(memory, task, self.context.formats[task])
            classes = classes_of(data)
            if classes is None:
                return {}
            features = features_of((network, weights), data, task)
            for head, columns in network.columns(task).items():
                inside = (classes >= columns.start) & (classes < columns.stop)
                sums = features.new_zeros(columns.stop - columns.start, features.shape[1])
                sums.index_add_(0, (classes[inside] - columns.start).to(features.device), features[inside])
                totals[MEAN + head] = totals[MEAN + head] + sums if MEAN + head in totals else sums
        return {name: functional.normalize(sums, dim=1) for name, sums in totals.items()}


def classes_of(data: Data) -> Tensor | None:
    """The class of each sequence [N]; None if sequences have no single class."""
    single = data.target.categorical and not data.target.everywhere
    return data.y.long() if single else None


@torch.no_grad()
def features_of(running: TaskNetwork, data: Data, task: int) -> Tensor:
    """The head's input of each sequence, a mean over its output steps, of length 1 [N, H]."""
    network, weights = running
    found = []
    for batch in data.batches():
        rows = batch.answers.unpack(network.features(weights, batch, task, batch.asked))
        found.append(rows.sum(1) / batch.answers.lengths[:, None].to(rows.device))
    return functional.normalize(torch.cat(found), dim=1)


def herding_order(features: Tensor, classes: Tensor | None, most: int | None = None) -> Tensor:
    """When herding chooses each sample of its class: 0 for the first [N]; infinite if it never does.

    Of each class it chooses `most` samples, or all. Samples without a class are not chosen.
    """
    order = torch.full((len(features),), torch.inf, dtype=torch.float64)
    if classes is None:
        classes = torch.zeros(len(features), dtype=torch.long)
    for label in classes[classes >= 0].unique().tolist():
        members = (classes == label).nonzero()[:, 0]
        chosen = nearest_to_mean(features[members], len(members) if most is None else most)
        order[members[chosen].cpu()] = torch.arange(len(chosen), dtype=torch.float64)
    return order
