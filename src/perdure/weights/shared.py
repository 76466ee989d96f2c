"""One set of weights for all tasks; each task has its own head unless the network has a single one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor

from perdure.networks.initialise import initialise
from perdure.networks.layout import Vectors, Weights
from perdure.networks.network import Network
from perdure.weights.source import Chance, Positions, WeightSource


class Shared(WeightSource):
    """The same body for all tasks (fine-tuning, multitask, online EWC, SI, rehearsal).

    Heads of other tasks are not trained at all, so that weight decay cannot move them either.
    """

    def start(self, network: Network, chance: Chance) -> tuple[Vectors, Vectors]:
        """The vector `body`, and one vector for each head."""
        return joined(network, initialise(network.layout, network.architecture, chance("weights"))), {}

    def active(
        self, network: Network, buffers: Vectors, tasks: Sequence[int], rehearsed: Sequence[int] = ()
    ) -> Positions:
        """The body and the tasks' own heads."""
        del buffers
        heads: Positions = {network.head(task): None for task in [*rehearsed, *tasks]}
        return {"body": None, **heads}

    def weights(
        self, network: Network, buffers: Vectors, active: Vectors, task: int
    ) -> tuple[Network, Weights]:
        """Psi is the trained vectors themselves."""
        del buffers
        return network, split(network, active, task)

    def vectors(self, network: Network, weights: Mapping[str, Tensor], task: int) -> Vectors:
        """Values per weight as `body` and head vector."""
        return body_and_head(network, weights, task)


def joined(network: Network, weights: Weights) -> Vectors:
    """All weights of a network as one vector for the body and one for each head."""
    heads = {name: layout.join(weights) for name, layout in network.heads.items()}
    return {"body": network.body.join(weights), **heads}


def body_and_head(network: Network, weights: Mapping[str, Tensor], task: int) -> Vectors:
    """The vectors of the body and of a task's head."""
    head = network.head(task)
    return {"body": network.body.join(weights), head: network.heads[head].join(weights)}


def split(network: Network, active: Vectors, task: int) -> Weights:
    """Named weights of body and head from their vectors."""
    head = network.head(task)
    return network.body.split(active["body"]) | network.heads[head].split(active[head])
