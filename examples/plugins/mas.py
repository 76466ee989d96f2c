"""Memory aware synapses (Aljundi et al. 2018): perdure run permuted-copy my-mas --plugin mas.py"""

import torch

from perdure import Method, Penalty, Term
from perdure.networks.sample_gradients import mean_sample_gradients
from perdure.penalties.importance import Anchored, remember


class MyMAS(Penalty):
    """Holds back weights to which the norm of the outputs is sensitive."""

    strength: float = 1.0
    """lambda of the penalty lambda sum Omega (psi - anchor)^2."""

    def begin(self, memory, context):
        return MyMASTerm(self, memory, context)


class MyMASTerm(Term):
    def __init__(self, options, memory, context):
        self.options, self.memory, self.context = options, memory, context
        self.anchored = Anchored(memory, context.positions)

    def losses(self, step):
        distance = self.anchored.distance(step.active)
        return {} if distance is None else {"my-mas": self.options.strength * distance}

    def finish(self, end):  # Omega <- Omega + mean over samples of |d ||f(x)||^2 / d psi|
        memory, context = self.memory, self.context
        for task, data in end.data.items():
            network, weights = context.networks_now(end.active, [task])[task]
            samples, score = torch.arange(len(data)), lambda logits, batch: [2 * logits]
            values = mean_sample_gradients(network, weights, data, samples, task, score, "absolute")
            added = context.source.vectors(network, values, task)
            memory = remember(memory, context.positions, added, end.active, context.parameters)
        return memory


mas = Method("my-mas", "weights to which the outputs are sensitive are held back", penalties=("my-mas",))
