"""Learning without forgetting (Li & Hoiem 2016).

Nothing of old tasks is stored. While a new task is learnt, what the network answered for old tasks before,
given the NEW task's inputs, is distilled into what it answers for them now:
strength * sum over old tasks j of mean over the batch of T^2 CE(softmax(z_j*/T), softmax(z_j/T)), T = 2 (for
bits and values, what their distillation is). Old heads keep learning. In a growing head, the outputs that
existed before the task are distilled, all in one softmax.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import torch
from pydantic import PositiveFloat
from torch import Tensor

from perdure.hooks import PhaseContext, Step, Term
from perdure.networks.batch import Batch
from perdure.networks.layout import Vectors
from perdure.networks.targets import distillation
from perdure.networks.together import TaskNetworks, distinct_bodies
from perdure.options import Strength
from perdure.penalties.penalty import Penalty


class LwF(Penalty):
    """Old outputs on the new task's inputs are kept."""

    name: ClassVar[str] = "lwf"
    rehearses: ClassVar[bool] = True

    strength: Strength = 1.0
    """lambda: the factor of the distillation loss."""
    temperature: PositiveFloat = 2.0
    """Temperature T of the distillation; the loss is multiplied by T^2."""

    def begin(self, memory: Vectors, context: PhaseContext) -> LwFTerm:
        """Remember how old tasks are answered now."""
        del memory
        return LwFTerm(self, context)

    def held(self, memory: Vectors, context: PhaseContext) -> int:
        """The old network, which teaches."""
        del memory
        return context.snapshot


class LwFTerm(Term):
    """The distillation during one phase."""

    def __init__(self, options: LwF, context: PhaseContext) -> None:
        """Freeze the networks of old tasks as teachers; one is enough for a growing head."""
        self.options, self.context = options, context
        growing = context.network.growing
        self.old = list(context.known)[-1:] if growing else list(context.known)
        self.teachers = context.networks_before(self.old)

    def losses(self, step: Step) -> dict[str, Tensor]:
        """Lambda * sum over old tasks of the mean distillation loss of the batch."""
        if not self.old:
            return {}
        width, size, total = self.context.known_outputs, 0, []
        for new, batch in step.batches.items():
            unmasked = replace(batch, mask=None)  # whether the new target is known does not matter
            size += len(batch)
            with torch.no_grad():
                wanted = answers(self.teachers, replace(unmasked, noise=None))
            for task, given in self._now(step, new, unmasked).items():
                total.append(
                    distillation(
                        given[:, :width], wanted[task][:, :width], unmasked, self.options.temperature
                    )
                )
        return {self.options.name: self.options.strength * sum(total[1:], total[0]) / size}

    def _now(self, step: Step, new: int, batch: Batch) -> Mapping[int, Tensor]:
        """What old tasks answer now; a growing head has answered for them together with the new task."""
        if self.context.network.growing:
            return dict.fromkeys(self.old, step.logits[new])
        return answers(self.context.networks_now(step.active, self.old), batch)


def answers(networks: TaskNetworks, batch: Batch) -> Mapping[int, Tensor]:
    """What several tasks answer to the same inputs [M, outputs]; one pass if only their heads differ."""
    first = next(iter(networks))
    network, weights = networks[first]
    if network.architecture.task_identity or len(distinct_bodies(networks.values())) > 1:
        return {task: net(psi, batch, task) for task, (net, psi) in networks.items()}
    features = network.features(weights, batch, first, batch.asked)
    return {task: net.answer(psi, features, task) for task, (net, psi) in networks.items()}
