"""Regularisation towards the initial weights (Kumar et al. 2023).

From "Maintaining plasticity in continual learning via regenerative regularization". The loss gains
strength * sum_i (psi_i - psi_i^0)^2, with psi^0 the weights as they were initialised. It does not protect old
tasks; it keeps the network able to learn new ones.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from perdure.hooks import PhaseContext, PhaseEnd, Step, Term
from perdure.networks.layout import Vectors
from perdure.options import Strength
from perdure.penalties.penalty import Penalty
from perdure.weights.source import take


class L2Start(Penalty):
    """All weights are drawn towards their initial values."""

    name: ClassVar[str] = "l2-start"
    protects: ClassVar[bool] = False

    strength: Strength = 1e-4
    """lambda of the penalty lambda sum (psi - psi_0)^2."""

    def begin(self, memory: Vectors, context: PhaseContext) -> L2StartTerm:
        """The quadratic term around the initial weights."""
        return L2StartTerm(self, memory, context)


class L2StartTerm(Term):
    """The penalty during one phase."""

    def __init__(self, options: L2Start, memory: Vectors, context: PhaseContext) -> None:
        """Weights that were not trained before are as they were initialised."""
        self.options = options
        new = {f"start.{name}": context.parameters[name].clone() for name in context.positions}
        self.memory = new | memory
        full = {name: self.memory[f"start.{name}"] for name in context.positions}
        self.start = take(full, context.positions)

    def losses(self, step: Step) -> dict[str, Tensor]:
        """Lambda sum_i (psi_i - psi_i^0)^2."""
        parts = [(step.active[name] - start).square().sum() for name, start in self.start.items()]
        return {self.options.name: self.options.strength * torch.stack(parts).sum()}

    def finish(self, end: PhaseEnd) -> Vectors:
        """The initial weights."""
        del end
        return self.memory
