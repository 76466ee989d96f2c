"""Shrink and perturb (Ash & Adams 2020, "On warm-starting neural network training").

At the first step of every task but the first, psi <- shrink psi + perturb psi', with psi' drawn as initial
weights are. A task that goes on where it ended, as chunks of a stream do, does not begin again. It does not
protect old tasks; it keeps the network able to learn new ones.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import torch
from pydantic import Field

from perdure.hooks import PhaseContext, PhaseEnd, Step, Term
from perdure.networks.layout import Vectors
from perdure.options import Strength
from perdure.penalties.penalty import Penalty
from perdure.weights.source import Stock, take

LAST = "last"
"""In the memory: the tasks of the latest phase."""


class ShrinkAndPerturb(Penalty):
    """Weights are shrunk and perturbed before each task."""

    name: ClassVar[str] = "shrink-and-perturb"
    protects: ClassVar[bool] = False
    revision: ClassVar[int] = 1

    shrink: Annotated[float, Field(ge=0, le=1)] = 0.8
    """Factor of the weights before each new task."""
    perturb: Strength = 0.1
    """Factor of the new initial weights that are added."""

    def begin(self, memory: Vectors, context: PhaseContext) -> ShrinkAndPerturbTerm:
        """Draw what is added, unless the tasks are those of the phase before."""
        goes_on = LAST in memory and memory[LAST].tolist() == list(context.tasks)
        return ShrinkAndPerturbTerm(self, context, begins=not goes_on)


class ShrinkAndPerturbTerm(Term):
    """The change at the first step of one phase."""

    def __init__(self, options: ShrinkAndPerturb, context: PhaseContext, *, begins: bool) -> None:
        """Only what was trained before changes; a new head starts as it is."""
        self.options, self.start, self.tasks = options, context.start, list(context.tasks)
        self.added = self._drawn(context) if context.known and begins else {}
        self.redirects = bool(self.added)

    @staticmethod
    def _drawn(context: PhaseContext) -> Vectors:
        """New initial values of all that old tasks use, as the weight source draws them."""

        def generators(*role: object) -> torch.Generator:
            return context.generators("perturbation", *context.tasks, *role)

        source, network, buffers = context.source, context.network, context.buffers
        fresh = source.grow(network, 0, Stock({}, {}), generators).parameters
        old = {name for task in context.known for name in source.active(network, buffers, [task])}
        # A growing head's new part answers for old tasks too, but was not trained for them.
        new = tuple(f".{task}" for task in context.tasks)
        shared = {
            name: where for name, where in context.positions.items() if name in old and not name.endswith(new)
        }
        return take({name: fresh[name].to(context.parameters[name].device) for name in shared}, shared)

    def redirect(self, step: Step, moves: Vectors) -> Vectors:
        """At the first step also (shrink - 1) psi + perturb psi'."""
        if step.number:
            return moves
        shrink, perturb = self.options.shrink, self.options.perturb
        return {
            name: move + (shrink - 1) * self.start[name] + perturb * self.added[name]
            if name in self.added
            else move
            for name, move in moves.items()
        }

    def finish(self, end: PhaseEnd) -> Vectors:
        """Which tasks these were."""
        del end
        return {LAST: torch.tensor(self.tasks)}
