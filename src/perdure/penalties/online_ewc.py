"""Online elastic weight consolidation (paper Sec. 3; SM "Elastic weight consolidation").

After task k the diagonal Fisher F^(k) is added to F <- gamma F + F^(k), and the anchor moves to the
current weights. While the next task is learnt the loss gains lambda/2 sum_i F_i (psi_i - anchor_i)^2.
The factor 1/2 is the original code's; the paper's lambdas refer to it.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field, PositiveInt
from torch import Tensor

from perdure.hooks import PhaseContext, PhaseEnd, Step, Term
from perdure.networks.fisher import fisher
from perdure.networks.layout import Vectors
from perdure.options import Composition, Estimator, Strength
from perdure.penalties.importance import Anchored, averaged, remember
from perdure.penalties.penalty import Penalty


class OnlineEWC(Penalty):
    """Changes to weights that the Fisher information says are important are penalised."""

    summarises: ClassVar[bool] = True

    strength: Strength = 100.0
    """lambda of the penalty lambda/2 sum F (psi - anchor)^2."""
    gamma: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Factor of the old Fisher when a new one is added; below 1, old tasks fade."""
    estimator: Estimator = "empirical"
    """Fisher at the true targets (empirical), at sampled ones (sampled), or in expectation (exact)."""
    samples: PositiveInt | None = None
    """Training samples for the Fisher; none: all."""
    heads: bool = True
    """Whether output heads are protected too."""

    @classmethod
    def refusal(cls, method: Composition) -> str | None:
        """The Fisher is defined for weights that are trained directly."""
        if getattr(method.weights, "generates", False):
            return (
                "online-ewc needs weights that are trained directly, but here a hypernetwork generates them, "
                "and its own penalty protects them"
            )
        return super().refusal(method)

    def begin(self, memory: Vectors, context: PhaseContext) -> OnlineEWCTerm:
        """The quadratic term around the anchor."""
        return OnlineEWCTerm(self, memory, context)

    def joined(self, earlier: Vectors, latest: Vectors, share: float) -> Vectors:
        """The mean importance of all visits of a task."""
        return averaged(earlier, latest, share)


class OnlineEWCTerm(Term):
    """The penalty during one phase."""

    def __init__(self, options: OnlineEWC, memory: Vectors, context: PhaseContext) -> None:
        """Look up the memory of the weights that are trained now."""
        self.options, self.memory, self.context = options, memory, context
        self.positions = {
            name: where
            for name, where in context.positions.items()
            if options.heads or not name.startswith("head.")
        }
        self.anchored = Anchored(memory, self.positions)

    def losses(self, step: Step) -> dict[str, Tensor]:
        """lambda/2 sum_i F_i (psi_i - anchor_i)^2."""
        distance = self.anchored.distance(step.active)
        return {} if distance is None else {self.options.name: self.options.strength / 2 * distance}

    def finish(self, end: PhaseEnd) -> Vectors:
        """F <- gamma F + F^(k), anchor <- psi."""
        context, options = self.context, self.options
        faded = {
            name: vector * options.gamma if name.startswith("importance.") else vector
            for name, vector in self.memory.items()
        }
        for task, data in end.data.items():
            network, weights = context.source.weights(context.network, context.buffers, end.active, task)
            values = fisher(
                network,
                weights,
                data,
                task=task,
                estimator=options.estimator,
                samples=options.samples,
                generator=context.generators("fisher", task),
            )
            added = context.source.vectors(network, values, task)
            assert added is not None  # ensured by `refusal`
            faded = remember(faded, self.positions, added, end.active, context.parameters)
        return faded
