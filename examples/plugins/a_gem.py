"""Averaged GEM (Chaudhry et al. 2019): perdure run permuted-copy a-gem --plugin a_gem.py."""

import torch

from perdure import Method, Rehearsal, Term
from perdure.networks.targets import negative_log_likelihood
from perdure.rehearsal.samples import choose_random, store, stored_samples, unstore


class AGEM(Rehearsal):
    """A gradient that would raise the loss on stored samples is projected."""

    name, rehearses = "a-gem", False
    size: int = 50
    """Samples that are kept of each task."""

    def begin(self, memory, context):
        return AGEMTerm(self, memory, context)

    def stored(self, memory):
        return stored_samples(memory)


class AGEMTerm(Term):
    transforms = True

    def __init__(self, options, memory, context):
        self.options, self.memory, self.context = options, memory, context
        self.kept = {task: unstore(memory, task, context.formats[task]) for task in context.known}

    def transform(self, step, gradients):  # g <- g - (g . r / r . r) r, where r points downhill for old tasks
        if not self.kept:
            return gradients
        networks, loss = self.context.networks_now(step.active, self.kept), 0
        for task, data in self.kept.items():
            batch = data.batch(slice(None))
            loss = loss + negative_log_likelihood(networks[task][0](networks[task][1], batch, task), batch)
        reference = step.gradient(loss)
        along = sum(torch.dot(gradients[name], reference[name]) for name in gradients)
        length = sum(torch.dot(vector, vector) for vector in reference.values())
        excess = torch.clamp(along / length, max=0)
        return {name: gradients[name] - excess * reference[name] for name in gradients}

    def finish(self, end):
        memory = dict(self.memory)
        for task, data in end.data.items():
            chosen = choose_random(data, self.options.size, self.context.generators("a-gem", task), None)
            memory |= store(data, chosen, task, packed=True)
        return memory


a_gem = Method("a-gem", "gradients that would raise the loss on stored samples are projected", rehearsal="a-gem")
