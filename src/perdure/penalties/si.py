"""Synaptic intelligence (paper Sec. 3; SM "Synaptic intelligence").

In training each weight accumulates omega_i <- omega_i - delta_psi_i * dL_task/dpsi_i, where delta_psi is the
step that the optimiser would take for the task's gradient alone. After task k,
Omega_i <- Omega_i + max(0, omega_i / ((psi_i^end - psi_i^start)^2 + epsilon)). The paper prints the
denominator without the square; the original code, like Zenke et al., has it. If the best weights of a task
are restored, the path ends at them.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from perdure.hooks import PhaseContext, PhaseEnd, Step, Term, Watched
from perdure.networks.layout import Vectors
from perdure.options import Strength
from perdure.penalties.importance import Anchored, remember
from perdure.penalties.penalty import Penalty


class SI(Penalty):
    """Changes to weights whose movement lowered the loss are penalised."""

    revision_of_best: ClassVar[int] = 1

    strength: Strength = 1.0
    """lambda of the penalty lambda sum Omega (psi - anchor)^2."""
    epsilon: Annotated[float, Field(gt=0)] = 1e-3
    """Damping in the denominator of the importance."""
    task_loss_only: bool = True
    """Use the task's gradient and a dry-run step; otherwise the total gradient and the real step."""

    def begin(self, memory: Vectors, context: PhaseContext) -> SITerm:
        """The quadratic term and a new path integral."""
        return SITerm(self, memory, context)


class SITerm(Term):
    """The penalty and the running path integral during one phase."""

    def __init__(self, options: SI, memory: Vectors, context: PhaseContext) -> None:
        """Start the path integral at zero."""
        self.options, self.memory, self.context = options, memory, context
        self.watches: Watched = "task" if options.task_loss_only else "total"
        self.anchored = Anchored(memory, context.positions)
        self.omega = {name: torch.zeros_like(vector) for name, vector in context.start.items()}

    def losses(self, step: Step) -> dict[str, Tensor]:
        """Lambda sum_i Omega_i (psi_i - anchor_i)^2."""
        distance = self.anchored.distance(step.active)
        return {} if distance is None else {self.options.name: self.options.strength * distance}

    def observe(self, step: Step, gradients: Vectors) -> None:
        """Omega <- omega - delta_psi * gradient."""
        moves = step.would_move()
        for name, omega in self.omega.items():
            omega.addcmul_(moves[name], gradients[name], value=-1)

    def state(self) -> Vectors:
        """The path integral so far."""
        return self.omega

    def restore(self, state: Vectors) -> None:
        """Continue the path integral."""
        self.omega = {name: state[name].reshape(omega.shape) for name, omega in self.omega.items()}

    def finish(self, end: PhaseEnd) -> Vectors:
        """Omega <- Omega + max(0, omega / ((psi_end - psi_start)^2 + epsilon)), anchor <- psi."""
        context = self.context
        added = {
            name: (path / self._damped(end.active[name] - context.start[name])).clamp(min=0)
            for name, path in self.omega.items()
        }
        return remember(self.memory, context.positions, added, end.active, context.parameters)

    def _damped(self, move: Tensor) -> Tensor:
        """(delta_psi)^2 + epsilon."""
        return move.square() + self.options.epsilon
