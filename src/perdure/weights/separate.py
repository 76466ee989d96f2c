"""A separate network for each task: the paper's From-scratch baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor

from perdure.networks.initialise import initialise
from perdure.networks.layout import Vectors
from perdure.networks.network import Network
from perdure.options import Composition
from perdure.weights.source import GeneratorFactory, Positions, Stock, TaskNetwork, WeightSource


class Separate(WeightSource):
    """Nothing is shared, so nothing is forgotten and nothing transferred."""

    @classmethod
    def refusal(cls, method: Composition) -> str | None:
        """There is nothing to protect."""
        if not method.companions:
            return None
        return "from-scratch shares no weights between tasks, so there is nothing to protect"

    def grow(self, network: Network, known: int, stock: Stock, generators: GeneratorFactory) -> Stock:
        """One vector per task, each drawn from its own generator."""
        del stock
        drawn = {
            task: initialise(network.layout, generators("weights", task))
            for task in range(known, network.tasks)
        }
        return Stock({f"network.{task}": network.layout_of(task).join(w) for task, w in drawn.items()}, {})

    def active(
        self, network: Network, buffers: Vectors, tasks: Sequence[int], rehearsed: Sequence[int] = ()
    ) -> Positions:
        """The tasks' own networks."""
        del network, buffers, rehearsed
        return {f"network.{task}": None for task in tasks}

    def weights(self, network: Network, buffers: Vectors, active: Vectors, task: int) -> TaskNetwork:
        """Psi of the task's own network."""
        del buffers
        return network, network.layout_of(task).split(active[f"network.{task}"])

    def vectors(self, network: Network, weights: Mapping[str, Tensor], task: int) -> Vectors:
        """Values per weight as the vector of the task's network."""
        return {f"network.{task}": network.layout_of(task).join(weights)}
