"""A network of its own for each task: the paper's From-scratch baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor

from perdure.networks.initialise import initialise
from perdure.networks.layout import Layout, Vectors, Weights
from perdure.networks.network import Network
from perdure.weights.source import Chance, Positions, WeightSource


class Separate(WeightSource):
    """Nothing is shared, so nothing is forgotten and nothing transferred."""

    def start(self, network: Network, chance: Chance) -> tuple[Vectors, Vectors]:
        """One vector per task, each drawn from a generator of its own."""
        return {
            f"network.{task}": self._layout(network, task).join(
                initialise(network.layout, network.architecture, chance("weights", task))
            )
            for task in range(network.tasks)
        }, {}

    def active(
        self, network: Network, buffers: Vectors, tasks: Sequence[int], rehearsed: Sequence[int] = ()
    ) -> Positions:
        """The tasks' own networks."""
        del network, buffers, rehearsed
        return {f"network.{task}": None for task in tasks}

    def weights(
        self, network: Network, buffers: Vectors, active: Vectors, task: int
    ) -> tuple[Network, Weights]:
        """Psi of the task's own network."""
        del buffers
        return network, self._layout(network, task).split(active[f"network.{task}"])

    def vectors(self, network: Network, weights: Mapping[str, Tensor], task: int) -> Vectors:
        """Values per weight as the vector of the task's network."""
        return {f"network.{task}": self._layout(network, task).join(weights)}

    @staticmethod
    def _layout(network: Network, task: int) -> Layout:
        """Body and the task's own head."""
        return Layout(network.body.axes | network.heads[network.head(task)].axes)
