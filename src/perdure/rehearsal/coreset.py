"""Coresets-N (SM "Coresets"): N samples of each old task are stored and rehearsed.

In addition to each mini-batch, a second one of equal size is drawn from the stored samples of all old tasks.
Its targets are the network's outputs before the current task (soft targets, Eq. distill:loss), or the true
targets. As in the original, each task's share counts as a mean and the shares are summed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Literal

import torch
from pydantic import PositiveInt
from torch import Tensor

from perdure.hooks import PhaseContext, PhaseEnd, Step, Term
from perdure.networks.batch import Batch
from perdure.networks.layout import Vectors
from perdure.networks.targets import distillation, negative_log_likelihood, units
from perdure.networks.together import logits_of
from perdure.options import Moderate, Strength
from perdure.rehearsal.rehearsal import Rehearsal, sequences_of, shares
from perdure.rehearsal.samples import SELECTIONS, keep_some, stored_data, stored_samples, unstore


class Coreset(Rehearsal):
    """Some samples of each old task are stored and rehearsed."""

    size: PositiveInt = 100
    """Samples stored per task."""
    strength: Strength = 10.0
    """lambda_distill: the factor of the rehearsal loss."""
    targets: Literal["soft", "hard"] = "soft"
    """Rehearse the network's outputs before the task (soft), or the true targets (hard)."""
    temperature: Moderate = 2.0
    """Temperature T of soft targets; the loss is multiplied by T^2."""
    selection: Literal["random", "herding"] = "random"
    """Which samples to store: random ones, or those whose mean output is nearest to the task's (herding)."""
    packed: bool = True
    """Store inputs that are only zeros and ones as bits."""

    def begin(self, memory: Vectors, context: PhaseContext) -> CoresetTerm:
        """Rehearse what is in the memory."""
        return CoresetTerm(self, memory, context)

    def held(self, memory: Vectors, context: PhaseContext) -> int:
        """Soft targets of the stored samples, which the old network answers."""
        if self.targets == "hard":
            return 0
        return sum(answers.nbytes for answers in CoresetTerm(self, memory, context).answers.values())

    def stored(self, memory: Vectors) -> int:
        """Number of samples of all tasks so far."""
        return stored_samples(memory)

    def examples(
        self, memory: Vectors, context: PhaseContext, task: int, real: Batch
    ) -> dict[str, list[Tensor]]:
        """Stored sequences."""
        stored = unstore(memory, task, context.formats[task]).batch(slice(0, len(real)))
        return {"stored": sequences_of(stored, stored.rows)}


class CoresetTerm(Term):
    """The rehearsal during one phase."""

    def __init__(self, options: Coreset, memory: Vectors, context: PhaseContext) -> None:
        """Unpack the stored samples; compute the old network's outputs once, if they are the targets."""
        self.options, self.memory, self.context = options, memory, context
        self.generator = context.generators("rehearsal", *context.tasks)
        self.stored = stored_data(memory, context)
        self.answers = self._answers() if options.targets == "soft" else {}
        self.drawn: dict[int, Tensor] = {}
        """For each old task, the stored samples of the current step."""
        self.rehearsed: dict[int, Batch] = {}

    @torch.no_grad()
    def _answers(self) -> dict[int, Tensor]:
        """Logits [N, P, outputs] of the networks before the phase on the stored samples."""
        answers = {}
        for task, (network, weights) in self.context.networks_before(self.stored).items():
            batch = self.stored[task].batch(slice(None))
            answers[task] = batch.answers.unpack(network(weights, batch, task))
        return answers

    def along(self, size: int) -> Mapping[int, Batch]:
        """A mini-batch of stored samples of all old tasks, as large as the one of the current task."""
        if not self.stored:
            return {}
        self.drawn = {
            task: torch.randint(len(self.stored[task]), (count,), generator=self.generator)
            for task, count in shares(size, list(self.stored), self.generator).items()
        }
        self.rehearsed = {task: self.stored[task].batch(index) for task, index in self.drawn.items()}
        return {task: batch for task, batch in self.rehearsed.items() if task not in self.context.tasks}

    def losses(self, step: Step) -> dict[str, Tensor]:
        """Lambda * sum over old tasks of the mean loss of the task's share."""
        if not self.stored:
            return {}
        again = {
            task: replace(batch, noise=step.noise)
            for task, batch in self.rehearsed.items()
            if task not in step.along
        }
        logits = dict(step.along)
        if again:  # tasks of the mini-batch itself, learnt before
            logits |= logits_of(self.context.networks_now(step.active, again), again)
        losses = [
            self._share(logits[task], batch, task, self.drawn[task]) for task, batch in self.rehearsed.items()
        ]
        return {"rehearsal": self.options.strength * sum(losses[1:], losses[0])}

    def _share(self, logits: Tensor, batch: Batch, task: int, index: Tensor) -> Tensor:
        """Mean rehearsal loss over one task's share of the batch (over its tokens, for tags)."""
        if self.options.targets == "hard":
            total = negative_log_likelihood(logits, batch)
        else:
            answers = self.answers[task]
            wanted = batch.answers.pack(answers.index_select(0, index.to(answers.device)))
            width = self.context.known_outputs  # the teacher knew no others, if the head has grown
            total = distillation(logits[:, :width], wanted[:, :width], batch, self.options.temperature)
        return total / max(units(batch), 1)

    def state(self) -> Vectors:
        """The generator that draws samples."""
        return {"generator": self.generator.get_state()}

    def restore(self, state: Vectors) -> None:
        """Continue drawing as before."""
        self.generator.set_state(state["generator"].cpu())

    def finish(self, end: PhaseEnd) -> Vectors:
        """Store samples of the tasks that were learnt."""
        memory = self.memory
        options, networks = self.options, self.context.networks_now(end.active, end.data)
        for task, data in end.data.items():
            network, weights = networks[task]
            choose = partial(
                SELECTIONS[options.selection],
                data,
                generator=self.context.generators("coreset", task),
                answer=partial(network, weights, task=task),
            )
            memory = keep_some(memory, data, task, options.size, choose, packed=options.packed)
        return memory
