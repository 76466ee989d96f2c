"""Averaged GEM (Chaudhry et al. 2019): perdure run permuted-copy my-a-gem --plugin a_gem.py."""

import torch

from perdure import Method, Rehearsal, Term
from perdure.rehearsal.samples import keep_random, loss_on_stored, stored_data, stored_samples


class AGEM(Rehearsal):
    """Projects gradients that would increase the loss on stored samples."""

    name, rehearses = "my-a-gem", False
    size: int = 50
    """Samples stored per task."""
    stored = staticmethod(stored_samples)

    def begin(self, memory, context):
        return AGEMTerm(self, memory, context)


class AGEMTerm(Term):
    transforms = True

    def __init__(self, options, memory, context):
        self.options, self.memory, self.context = options, memory, context
        self.kept = stored_data(memory, context)

    def transform(self, step, gradients):  # g <- g - min(0, g.r / r.r) r, with r the gradient of old tasks
        if not self.kept:
            return gradients
        reference = step.gradient(loss_on_stored(self.kept, step.active, self.context))
        along = sum(torch.dot(gradients[name], reference[name]) for name in gradients)
        excess = (along / sum(torch.dot(r, r) for r in reference.values())).clamp(max=0)
        return {name: gradients[name] - excess * reference[name] for name in gradients}

    def finish(self, end):
        return keep_random(self.memory, end, self.options.size, self.context)


a_gem = Method("my-a-gem", "gradients that would raise old samples' loss are projected", rehearsal="my-a-gem")
