"""Samples that outlive their task: which to keep, and how they are stored."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor

from perdure.alignment import aligned
from perdure.hooks import PhaseContext, PhaseEnd
from perdure.networks.batch import Batch, Data
from perdure.networks.layout import Vectors
from perdure.networks.targets import negative_log_likelihood
from perdure.networks.together import logits_of

Answer = Callable[[Batch], Tensor]
CANDIDATES = 2000
"""Number of random samples from which herding chooses."""


def choose_random(data: Data, count: int, generator: torch.Generator, answer: Answer) -> Tensor:
    """Random samples."""
    del answer
    return torch.randperm(len(data), generator=generator)[:count]


@torch.no_grad()
def choose_herding(data: Data, count: int, generator: torch.Generator, answer: Answer) -> Tensor:
    """Repeatedly the sample that brings the mean output nearest to the mean of all candidates."""
    candidates = torch.randperm(len(data), generator=generator)[: max(CANDIDATES, count)]
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


def stored_tasks(memory: Vectors) -> list[int]:
    """Tasks with samples in the memory."""
    return sorted(int(name.removeprefix("y.")) for name in memory if name.startswith("y."))


def stored_samples(memory: Vectors) -> int:
    """Number of samples of all tasks in the memory."""
    return sum(len(memory[f"y.{task}"]) for task in stored_tasks(memory))


def stored_data(memory: Vectors, context: PhaseContext) -> dict[int, Data]:
    """The stored samples of all known tasks as data, ready for batches."""
    return {task: unstore(memory, task, context.formats[task]) for task in context.known}


def keep_random(memory: Vectors, end: PhaseEnd, size: int, context: PhaseContext) -> Vectors:
    """The memory with up to `size` random samples of each task that was just learnt."""
    result = dict(memory)
    for task, data in end.data.items():
        chosen = torch.randperm(len(data), generator=context.generators("samples", task))[:size]
        result |= store(data, chosen, task, packed=True)
    return result


def loss_on_stored(stored: Mapping[int, Data], active: Vectors, context: PhaseContext) -> Tensor:
    """Mean loss per sample on stored samples of old tasks, with their true targets."""
    batches = {task: data.batch(slice(None)) for task, data in stored.items()}
    logits = logits_of(context.networks_now(active, batches), batches)
    losses = [negative_log_likelihood(logits[task], batch) for task, batch in batches.items()]
    return torch.stack(losses).sum() / sum(len(batch) for batch in batches.values())
