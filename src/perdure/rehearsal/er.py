"""Experience replay (Chaudhry et al. 2019, "On tiny episodic memories in continual learning").

The loss of an iteration is L(task's batch) + strength * L(memory batch): the mean negative log-likelihood of
samples drawn uniformly from a reservoir, with their true targets. The reservoir gains samples of a task when
that has been learnt.
"""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from perdure.hooks import PhaseContext, Step
from perdure.networks.layout import Vectors
from perdure.options import Strength
from perdure.rehearsal.memory import Remembering, StoredTerm


class ER(Remembering):
    """Stored samples are trained on again, with their true targets."""

    name: ClassVar[str] = "er"

    strength: Strength = 1.0
    """Factor of the loss on stored samples."""

    def begin(self, memory: Vectors, context: PhaseContext) -> ERTerm:
        """Rehearse what is in the memory."""
        return ERTerm(self, memory, context)


class ERTerm(StoredTerm):
    """The rehearsal during one phase."""

    options: ER

    def losses(self, step: Step) -> dict[str, Tensor]:
        """Strength * mean loss of the memory batch."""
        if not len(self.stored):
            return {}
        loss = self.stored.loss(step, self.batch_size(step))
        return {"rehearsal": self.options.strength * loss}
