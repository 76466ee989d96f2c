"""Coresets-N (SM "Coresets"): N samples of each old task are kept and rehearsed.

Beside each mini-batch a second one of equal size is drawn from the stored samples of all old tasks. Its
targets are what the network answered before the current task (soft targets, Eq. distill:loss), or the
true ones. As in the original, each task's share counts as a mean and the shares are summed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np
import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor

from perdure.alignment import aligned
from perdure.benchmarks.task import Kind
from perdure.networks.batch import Batch, Data
from perdure.networks.layout import Vectors
from perdure.networks.targets import distillation, negative_log_likelihood
from perdure.networks.together import logits_of
from perdure.options import Strength
from perdure.penalties.penalty import Situation
from perdure.rehearsal.rehearsal import Rehearsal, sequences_of, shares, student, teacher


class Coreset(Rehearsal):
    """Some samples of each old task are kept and rehearsed."""

    size: PositiveInt = 100
    """Samples that are kept of each task."""
    strength: Strength = 10.0
    """lambda_distill: the factor of the rehearsal loss."""
    targets: Literal["soft", "hard"] = "soft"
    """Rehearse the answers of the network before the task (soft), or the true targets (hard)."""
    temperature: PositiveFloat = 2.0
    """Temperature T of soft targets; the loss is multiplied by T^2."""
    selection: Literal["random", "herding"] = "random"
    """Which samples to keep: random ones, or those whose mean answer stays nearest to the task's."""
    packed: bool = True
    """Keep inputs that are only zeros and ones as bits."""

    def begin(self, memory: Vectors, situation: Situation) -> CoresetReplay:
        """Rehearse what the memory holds."""
        return CoresetReplay(self, memory, situation)

    def stored(self, memory: Vectors) -> int:
        """The samples of all tasks so far."""
        return sum(len(vector) for name, vector in memory.items() if name.startswith("y."))

    def examples(
        self, memory: Vectors, situation: Situation, task: int, real: Batch
    ) -> dict[str, list[Tensor]]:
        """Stored sequences."""
        stored = unstore(memory, task, situation.data(task)).batch(slice(0, len(real)))
        return {"stored": sequences_of(stored, stored.rows)}


class CoresetReplay:
    """The rehearsal during one phase."""

    def __init__(self, options: Coreset, memory: Vectors, situation: Situation) -> None:
        """Unpack the stored samples; ask the old network for its answers once and for all."""
        self.options, self.memory, self.situation = options, memory, situation
        self.old = list(range(min(situation.tasks)))
        self.chance = situation.chance("rehearsal", *situation.tasks)
        # Of an old task's data only what they have in common is used: kind, precision, table of words.
        self.stored = {task: unstore(memory, task, situation.data(task)) for task in self.old}
        self.answers = {task: self._answers(task) for task in self.old}

    @torch.no_grad()
    def _answers(self, task: int) -> Tensor:
        """Logits [N, P, outputs] of the network before the phase on the stored samples."""
        network, weights = teacher(self.situation, task)
        batch = self.stored[task].batch(slice(None))
        return batch.answers.unpack(network(weights, batch, task))

    def losses(self, active: Vectors, batches: Mapping[int, Batch]) -> dict[str, Tensor]:
        """Lambda * sum over old tasks of the mean loss of the task's share."""
        if not self.old:
            return {}
        size = sum(len(batch) for batch in batches.values())
        drawn = {
            task: torch.randint(len(self.stored[task]), (count,), generator=self.chance)
            for task, count in shares(size, self.old, self.chance).items()
        }
        rehearsed = {task: self.stored[task].batch(index) for task, index in drawn.items()}
        logits = logits_of({task: student(self.situation, active, task) for task in drawn}, rehearsed)
        losses = [self._share(logits[task], batch, task, drawn[task]) for task, batch in rehearsed.items()]
        return {"rehearsal": self.options.strength * sum(losses[1:], losses[0])}

    def _share(self, logits: Tensor, batch: Batch, task: int, index: Tensor) -> Tensor:
        """Mean rehearsal loss over one task's share of the batch (over its tokens, for tags)."""
        if self.options.targets == "hard":
            total = negative_log_likelihood(logits, batch)
        else:
            answers = self.answers[task]
            wanted = batch.answers.pack(answers.index_select(0, index.to(answers.device)))
            total = distillation(logits, wanted, batch, self.options.temperature)
        tokens = int((batch.targets >= 0).sum()) if batch.kind is Kind.TAGS else len(batch)
        return total / max(tokens, 1)

    def state(self) -> Vectors:
        """The generator that draws samples."""
        return {"chance": self.chance.get_state()}

    def restore(self, state: Vectors) -> None:
        """Draw on as before."""
        self.chance.set_state(state["chance"].cpu())

    def finish(self, active: Vectors) -> Vectors:
        """Keep samples of the tasks that were learnt."""
        memory = dict(self.memory)
        situation, options = self.situation, self.options
        for task in situation.tasks:
            data = situation.data(task)
            chance = situation.chance("coreset", task)
            count = min(options.size, len(data))

            def answer(batch: Batch, task: int = task) -> Tensor:
                network, weights = student(situation, active, task)
                return network(weights, batch, task)

            chosen = SELECTIONS[options.selection](data, count, chance, answer)
            memory |= store(data, chosen, task, packed=options.packed)
        return memory


Answer = Callable[[Batch], Tensor]
CANDIDATES = 2000
"""Random samples among which herding chooses."""


def choose_random(data: Data, count: int, chance: torch.Generator, answer: Answer) -> Tensor:
    """Any samples."""
    del answer
    return torch.randperm(len(data), generator=chance)[:count]


@torch.no_grad()
def choose_herding(data: Data, count: int, chance: torch.Generator, answer: Answer) -> Tensor:
    """One after the other the sample that brings the mean answer nearest to the mean of all candidates."""
    candidates = torch.randperm(len(data), generator=chance)[: max(CANDIDATES, count)]
    batch = data.batch(candidates)
    answers = batch.answers.unpack(answer(batch)).flatten(1)
    mean, total = answers.mean(0), torch.zeros_like(answers[0])
    free = torch.ones(len(candidates), dtype=torch.bool, device=answers.device)
    chosen: list[int] = []
    for number in range(1, count + 1):
        distance = ((total + answers) / number - mean).square().sum(1)
        best = int(torch.where(free, distance, torch.inf).argmin())
        free[best] = False
        total = total + answers[best]
        chosen.append(best)
    return candidates[torch.tensor(chosen)]


SELECTIONS = {"random": choose_random, "herding": choose_herding}


def store(data: Data, index: Tensor, task: int, *, packed: bool) -> Vectors:
    """Samples as compact tensors: inputs as they came or, if they are only 0 and 1, as bits."""
    x, y = data.x[index].cpu(), data.y[index].cpu()
    lengths = torch.full((len(index),), x.shape[1]) if data.lengths is None else data.lengths[index]
    kept = {f"y.{task}": y, f"lengths.{task}": lengths.to(torch.int32)}
    if packed and bool(((x == 0) | (x == 1)).all()):
        bits = np.packbits(x.numpy().astype(np.uint8).reshape(len(x), -1), axis=1)
        shape = torch.tensor(x.shape[1:], dtype=torch.int32)
        return kept | {f"bits.{task}": aligned(torch.from_numpy(bits)), f"shape.{task}": shape}
    return kept | {f"x.{task}": x}


def unstore(memory: Vectors, task: int, like: Data) -> Data:
    """Stored samples as data, on the device and with the precision of other data."""
    if f"x.{task}" in memory:
        x = memory[f"x.{task}"]
    else:
        shape = memory[f"shape.{task}"].tolist()
        bits = np.unpackbits(memory[f"bits.{task}"].cpu().numpy(), axis=1, count=math.prod(shape))
        x = torch.from_numpy(bits.reshape(-1, *shape))
    lengths = memory[f"lengths.{task}"].long()
    return like.having(x, memory[f"y.{task}"], lengths)
