"""The plain quadratic: changes to all weights are penalised alike, a floor for methods that tell them apart.

While a task is learnt the loss gains strength * sum_i (psi_i - anchor_i)^2, with the weights after the
previous task as anchor; it is EWC with a Fisher of 2 for every weight. Used as a baseline by Kirkpatrick et
al. 2017 ("Overcoming catastrophic forgetting in neural networks", Fig. 2, there called L2).
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from perdure.hooks import PhaseContext, PhaseEnd, Step, Term
from perdure.networks.layout import Vectors
from perdure.options import Strength
from perdure.penalties.penalty import Penalty
from perdure.weights.source import put, take


class L2Anchor(Penalty):
    """Changes to all weights are penalised alike."""

    name: ClassVar[str] = "l2-anchor"

    strength: Strength = 0.1
    """lambda of the penalty lambda sum (psi - anchor)^2."""

    def begin(self, memory: Vectors, context: PhaseContext) -> L2AnchorTerm:
        """The quadratic term around the anchor."""
        return L2AnchorTerm(self, memory, context)


class L2AnchorTerm(Term):
    """The penalty during one phase."""

    def __init__(self, options: L2Anchor, memory: Vectors, context: PhaseContext) -> None:
        """The anchors of what is trained now; weights that no task has used yet are free."""
        self.options, self.memory, self.context = options, memory, context
        known = {name: where for name, where in context.positions.items() if f"anchor.{name}" in memory}
        self.anchor = take({name: memory[f"anchor.{name}"] for name in known}, known)
        self.used = take({name: memory[f"used.{name}"] for name in known}, known)

    def losses(self, step: Step) -> dict[str, Tensor]:
        """Lambda sum_i (psi_i - anchor_i)^2."""
        parts = [
            torch.dot(self.used[name].to(anchor.dtype), (step.active[name] - anchor).square())
            for name, anchor in self.anchor.items()
        ]
        return {self.options.name: self.options.strength * sum(parts[1:], parts[0])} if parts else {}

    def finish(self, end: PhaseEnd) -> Vectors:
        """Anchor <- psi."""
        memory = dict(self.memory)
        for name, where in self.context.positions.items():
            full = self.context.parameters[name]
            anchor = {name: memory.get(f"anchor.{name}", torch.zeros_like(full))}
            used = {name: memory.get(f"used.{name}", torch.zeros_like(full, dtype=torch.uint8))}
            ones = {name: torch.ones_like(end.active[name], dtype=torch.uint8)}
            memory[f"anchor.{name}"] = put(anchor, end.active, {name: where})[name]
            memory[f"used.{name}"] = put(used, ones, {name: where})[name]
        return memory
