"""Experience replay (Chaudhry et al. 2019, "On tiny episodic memories in continual learning").

The loss of an iteration is L(task's batch) + strength * L(memory batch): the mean negative log-likelihood of
samples drawn uniformly from a reservoir, with their true targets. The reservoir gains samples of a task when
that has been learnt.
"""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from perdure.hooks import PhaseContext, PhaseEnd, Step, Term
from perdure.networks.layout import Vectors
from perdure.options import Strength
from perdure.rehearsal.memory import Remembering, Stored, batch_size, random_keys


class ER(Remembering):
    """Stored samples are trained on again, with their true targets."""

    name: ClassVar[str] = "er"

    strength: Strength = 1.0
    """Factor of the loss on stored samples."""

    def begin(self, memory: Vectors, context: PhaseContext) -> ERTerm:
        """Rehearse what is in the memory."""
        return ERTerm(self, memory, context)


class ERTerm(Term):
    """The rehearsal during one phase."""

    def __init__(self, options: ER, memory: Vectors, context: PhaseContext) -> None:
        """Unpack the stored samples."""
        self.options, self.memory, self.context = options, memory, context
        self.stored = Stored(memory, context)

    def losses(self, step: Step) -> dict[str, Tensor]:
        """Strength * mean loss of the memory batch."""
        if not len(self.stored):
            return {}
        loss = self.stored.loss(step, batch_size(self.options, step))
        return {"rehearsal": self.options.strength * loss}

    def state(self) -> Vectors:
        """The generator that draws samples."""
        return self.stored.state()

    def restore(self, state: Vectors) -> None:
        """Continue drawing as before."""
        self.stored.restore(state)

    def finish(self, end: PhaseEnd) -> Vectors:
        """The reservoir after the phase."""
        return self.options.remember(self.memory, end, random_keys(self.context))
