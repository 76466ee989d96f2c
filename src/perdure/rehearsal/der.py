"""Dark experience replay (Buzzega et al. 2020, "Dark experience for general continual learning").

The memory keeps the outputs z* that the network gave when a sample was stored. DER adds
alpha * mean ||z - z*||^2 over a memory batch, DER++ also beta * mean negative log-likelihood of another one.
Outputs that a growing head did not have then are compared with 0: otherwise nothing would keep new classes
from being the answer to old samples.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from perdure.hooks import PhaseContext, PhaseEnd, Step
from perdure.networks.batch import FORWARD_BATCH, Data
from perdure.networks.layout import Vectors
from perdure.options import Strength
from perdure.rehearsal.memory import Remembering, StoredTerm, random_keys


class DER(Remembering):
    """Outputs are kept as they were when a sample was stored."""

    name: ClassVar[str] = "der"
    revision: ClassVar[int] = 1

    alpha: Strength = 0.5
    """Factor of the squared distance to the stored outputs."""

    @property
    def hard(self) -> float:
        """Factor of the loss on true targets."""
        return 0.0

    def begin(self, memory: Vectors, context: PhaseContext) -> DERTerm:
        """Rehearse what is in the memory."""
        return DERTerm(self, memory, context)


class DERPlusPlus(DER):
    """Outputs are kept as they were, and true targets trained on again."""

    name: ClassVar[str] = "der++"

    beta: Strength = 0.5
    """Factor of the loss of another memory batch with its true targets."""

    @property
    def hard(self) -> float:
        """Factor of the loss on true targets."""
        return self.beta


class DERTerm(StoredTerm):
    """The rehearsal during one phase."""

    options: DER

    def losses(self, step: Step) -> dict[str, Tensor]:
        """Alpha * mean squared distance, and beta * mean loss of another batch."""
        if not len(self.stored):
            return {}
        size = self.batch_size(step)
        losses = {"dark": self.options.alpha * self._distance(step, size) / size}
        if self.options.hard:
            losses["rehearsal"] = self.options.hard * self.stored.loss(step, size)
        return losses

    def _distance(self, step: Step, size: int) -> Tensor:
        """Sum of ||z - z*||^2 over random samples."""
        drawn = self.stored.draw(size)
        batches = self.stored.batches(drawn, step.noise)
        logits = self.stored.logits(step.active, batches)
        parts = []
        for task, index in drawn.items():
            kept = self.memory[f"logits.{task}"][index].to(logits[task].device)
            then = batches[task].answers.pack(kept)
            known, new = logits[task].tensor_split([then.shape[1]], dim=1)
            parts += [(known - then).square().sum(), new.square().sum()]
        return sum(parts[1:], parts[0])

    def finish(self, end: PhaseEnd) -> Vectors:
        """The reservoir after the phase, with the outputs of what is new."""
        networks = self.context.networks_now(end.active, end.data)

        @torch.no_grad()
        def outputs(task: int, data: Data, index: Tensor) -> Vectors:
            network, weights = networks[task]
            steps = data.x.shape[1] if data.target.everywhere else data.target.answered(data.y)
            kept = [
                data.x.new_zeros(0, steps, network.outputs[task], dtype=data.dtype),
            ]
            for part in index.split(FORWARD_BATCH):
                batch = data.batch(part)
                answers = batch.answers.unpack(network(weights, batch, task))
                whole = answers.new_zeros(len(part), steps, answers.shape[2])
                whole[:, : answers.shape[1]] = answers
                kept.append(whole)
            return {"logits": torch.cat(kept)}

        return self.options.remember(self.memory, end, random_keys(self.context), outputs)
