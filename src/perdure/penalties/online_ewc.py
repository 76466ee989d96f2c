"""Online elastic weight consolidation (paper Sec. 3; SM "Elastic weight consolidation").

After task k the diagonal Fisher F^(k) is added to F <- gamma F + F^(k), and the anchor moves to the
current weights. While the next task is learnt the loss gains lambda/2 sum_i F_i (psi_i - anchor_i)^2.
The factor 1/2 is the original code's; the paper's lambdas refer to it.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, PositiveInt
from torch import Tensor

from perdure.networks.fisher import Estimator, fisher
from perdure.networks.layout import Vectors
from perdure.options import Strength
from perdure.penalties.importance import Anchored, remember
from perdure.penalties.penalty import Penalty, PlainTerm, Running, Situation


class OnlineEWC(Penalty):
    """Weights that the Fisher information calls important are held back."""

    strength: Strength = 100.0
    """lambda of the penalty lambda/2 sum F (psi - anchor)^2."""
    gamma: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Factor on the old Fisher when a new one is added; below 1, old tasks fade."""
    estimator: Estimator = "empirical"
    """Fisher at the true targets (empirical), at drawn ones (sampled), or in expectation (exact)."""
    samples: PositiveInt | None = None
    """Training samples for the Fisher; all if not given."""
    heads: bool = True
    """Whether output heads are protected too."""

    def begin(self, memory: Vectors, situation: Situation) -> OnlineEWCTerm:
        """The quadratic term around the anchor."""
        assert not situation.source.generates, "refused when a method is composed"
        return OnlineEWCTerm(self, memory, situation)


class OnlineEWCTerm(PlainTerm):
    """The penalty during one phase."""

    def __init__(self, options: OnlineEWC, memory: Vectors, situation: Situation) -> None:
        """Look up what the memory says of the weights that are trained now."""
        self.options, self.memory, self.situation = options, memory, situation
        self.positions = {
            name: where
            for name, where in situation.positions.items()
            if options.heads or not name.startswith("head.")
        }
        self.anchored = Anchored(memory, self.positions)

    def loss(self, active: Vectors, running: Running) -> Tensor | None:
        """lambda/2 sum_i F_i (psi_i - anchor_i)^2."""
        del running
        distance = self.anchored.distance(active)
        return None if distance is None else self.options.strength / 2 * distance

    def finish(self, active: Vectors) -> Vectors:
        """F <- gamma F + F^(k), anchor <- psi."""
        situation, options = self.situation, self.options
        faded = {
            name: vector * options.gamma if name.startswith("importance.") else vector
            for name, vector in self.memory.items()
        }
        for task in situation.tasks:
            network, weights = situation.source.weights(situation.network, situation.buffers, active, task)
            values = fisher(
                network,
                weights,
                situation.data(task),
                task=task,
                estimator=options.estimator,
                samples=options.samples,
                generator=situation.chance("fisher", task),
            )
            added = situation.source.vectors(network, values, task)
            assert added is not None
            faded = remember(faded, self.positions, added, active, situation.parameters)
        return faded
