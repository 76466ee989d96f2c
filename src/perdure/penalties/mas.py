"""Memory aware synapses (Aljundi et al. 2018, "Memory aware synapses: learning what (not) to forget").

After task k, Omega_i <- Omega_i + mean over samples of |d ||f(x)||^2 / d psi_i|, the sensitivity of the
outputs, which needs no targets; the anchor moves to the current weights. While the next task is learnt the
loss gains strength * sum_i Omega_i (psi_i - anchor_i)^2. The gradient of every sample is taken on its own,
all from one backward sweep (`networks/sample_gradients.py`).
"""

from __future__ import annotations

from typing import ClassVar

import torch
from pydantic import PositiveInt
from torch import Tensor

from perdure.hooks import PhaseContext, PhaseEnd, Step, Term
from perdure.networks.layout import Vectors
from perdure.networks.sample_gradients import mean_sample_gradients
from perdure.options import Composition, Strength
from perdure.penalties.importance import Anchored, averaged, remember
from perdure.penalties.penalty import Penalty


class MAS(Penalty):
    """Changes to weights that the norm of the outputs depends on are penalised."""

    name: ClassVar[str] = "mas"
    summarises: ClassVar[bool] = True

    strength: Strength = 1.0
    """lambda of the penalty lambda sum Omega (psi - anchor)^2."""
    samples: PositiveInt | None = None
    """Training samples for the importance; none: all."""

    @classmethod
    def refusal(cls, method: Composition) -> str | None:
        """Sensitivity is that of weights that are trained directly."""
        if getattr(method.weights, "generates", False):
            return "mas needs weights that are trained directly, but here a hypernetwork generates them"
        return super().refusal(method)

    def begin(self, memory: Vectors, context: PhaseContext) -> MASTerm:
        """The quadratic term around the anchor."""
        return MASTerm(self, memory, context)

    def joined(self, earlier: Vectors, latest: Vectors, share: float) -> Vectors:
        """The mean importance of all visits of a task."""
        return averaged(earlier, latest, share)


class MASTerm(Term):
    """The penalty during one phase."""

    def __init__(self, options: MAS, memory: Vectors, context: PhaseContext) -> None:
        """Look up the memory of the weights that are trained now."""
        self.options, self.memory, self.context = options, memory, context
        self.anchored = Anchored(memory, context.positions)

    def losses(self, step: Step) -> dict[str, Tensor]:
        """Lambda sum_i Omega_i (psi_i - anchor_i)^2."""
        distance = self.anchored.distance(step.active)
        return {} if distance is None else {self.options.name: self.options.strength * distance}

    def finish(self, end: PhaseEnd) -> Vectors:
        """Omega <- Omega + mean |d ||f(x)||^2 / d psi|, anchor <- psi."""
        memory, context = self.memory, self.context
        for task, data in end.data.items():
            network, weights = context.source.weights(context.network, context.buffers, end.active, task)
            order = torch.randperm(len(data), generator=context.generators("mas", task))
            index = order[: self.options.samples]
            values = mean_sample_gradients(
                network, weights, data, index, task, lambda logits, batch: [2 * logits], "absolute"
            )
            added = context.source.vectors(network, values, task)
            assert added is not None  # ensured by `refusal`
            memory = remember(memory, context.positions, added, end.active, context.parameters)
        return memory
