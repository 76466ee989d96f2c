"""One set of weights for all tasks; each task has its own head unless the network has a single one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from torch import Tensor

from perdure.networks.initialise import initialise
from perdure.networks.layout import Vectors, Weights
from perdure.networks.network import BODY, Network
from perdure.weights.source import GeneratorFactory, Positions, Stock, TaskNetwork, WeightSource


class Shared(WeightSource):
    """The same body for all tasks (fine-tuning, multitask, online EWC, SI, rehearsal).

    Heads of other tasks are not trained at all, so that weight decay cannot change them either.
    """

    shares_heads: ClassVar[bool] = True

    def grow(self, network: Network, known: int, stock: Stock, generators: GeneratorFactory) -> Stock:
        """Initially the vector `body`; then one vector for each new head."""
        del known
        return Stock(new_parts(network, stock.parameters, generators), {})

    def active(
        self, network: Network, buffers: Vectors, tasks: Sequence[int], rehearsed: Sequence[int] = ()
    ) -> Positions:
        """The body and the tasks' own heads."""
        del buffers
        return dict.fromkeys([BODY, *(part for task in [*rehearsed, *tasks] for part in network.parts(task))])

    def weights(self, network: Network, buffers: Vectors, active: Vectors, task: int) -> TaskNetwork:
        """Psi is the trained vectors themselves."""
        del buffers
        return network, split_parts(network, active, task)

    def running(
        self, network: Network, buffers: Vectors, active: Vectors, tasks: Iterable[int]
    ) -> dict[int, TaskNetwork]:
        """The body is split once for all tasks."""
        del buffers
        body = network.body.split(active[BODY])
        return {task: (network, split_parts(network, active, task, body)) for task in tasks}

    def vectors(self, network: Network, weights: Mapping[str, Tensor], task: int) -> Vectors:
        """Values per weight as `body` and head vector."""
        return joined_parts(network, weights, task)


def new_parts(network: Network, parameters: Vectors, generators: GeneratorFactory) -> Vectors:
    """Initial values of the parts of a network that have no vector yet.

    Weights are drawn in the order in which tasks arrive, so that a task's initial values do not depend on
    whether others arrive later.
    """
    drawn = initialise(network.layout, generators("weights"))
    return {name: layout.join(drawn) for name, layout in network.layouts.items() if name not in parameters}


def joined_parts(network: Network, weights: Mapping[str, Tensor], task: int) -> Vectors:
    """The vectors of the body and of a task's own parts."""
    return {part: network.layouts[part].join(weights) for part in network.parts(task)}


def split_parts(network: Network, active: Vectors, task: int, body: Weights | None = None) -> Weights:
    """Named weights of a task from the vectors of its parts; those of the body may be given."""
    weights = dict(network.body.split(active[BODY]) if body is None else body)
    for part in network.parts(task):
        if part != BODY:
            weights |= network.layouts[part].split(active[part])
    return weights
