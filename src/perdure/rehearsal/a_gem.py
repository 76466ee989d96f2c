"""Averaged gradient episodic memory (Chaudhry et al. 2019, "Efficient lifelong learning with A-GEM").

Let g be the gradient of an iteration and r that of the mean loss of a memory batch. If g . r < 0, the step
would raise the loss on old tasks, and g <- g - (g . r / r . r) r; otherwise g stays as it is. This happens
before clipping and the optimiser's step. Old tasks' own heads are not trained.
"""

from __future__ import annotations

from typing import ClassVar

import torch

from perdure.hooks import PhaseContext, Step
from perdure.networks.arithmetic import inner
from perdure.networks.layout import Vectors
from perdure.rehearsal.memory import Remembering, StoredTerm


class AGEM(Remembering):
    """Gradients that would raise the loss on stored samples are projected."""

    name: ClassVar[str] = "a-gem"
    rehearses: ClassVar[bool] = False

    def begin(self, memory: Vectors, context: PhaseContext) -> AGEMTerm:
        """Compare gradients with those of the memory."""
        return AGEMTerm(self, memory, context)


class AGEMTerm(StoredTerm):
    """The projection during one phase."""

    transforms = True

    def transform(self, step: Step, gradients: Vectors) -> Vectors:
        """G - min(0, g . r / r . r) r."""
        if not len(self.stored):
            return gradients
        reference = step.gradient(self.stored.loss(step, self.batch_size(step)))
        return projected(gradients, reference)


def projected(gradients: Vectors, reference: Vectors) -> Vectors:
    """The gradient without its part against the reference, if it points against it."""
    along = torch.stack([inner(gradients[name], reference[name]) for name in gradients]).sum()
    length = torch.stack([inner(vector, vector) for vector in reference.values()]).sum()
    excess = (along / length.clamp(min=torch.finfo(length.dtype).tiny)).clamp(max=0)
    return {name: gradient - excess * reference[name] for name, gradient in gradients.items()}
