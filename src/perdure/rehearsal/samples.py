"""Samples that outlive their task: which to keep, and how they are stored."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import torch
from torch import Tensor

from perdure.alignment import aligned
from perdure.hooks import PhaseContext, PhaseEnd
from perdure.networks.batch import Batch, Data, stacked
from perdure.networks.layout import Vectors
from perdure.networks.targets import negative_log_likelihood
from perdure.networks.together import logits_of

Answer = Callable[[Batch], Tensor]
CANDIDATES = 2000
"""Number of random samples from which herding chooses."""
SHAPE, SEEN = "shape.", "seen."
"""Beginnings of the names of what is stored once for all samples of a task."""


def choose_random(data: Data, count: int, generator: torch.Generator, answer: Answer | None = None) -> Tensor:
    """Random samples."""
    del answer
    return torch.randperm(len(data), generator=generator)[:count]


@torch.no_grad()
def choose_herding(data: Data, count: int, generator: torch.Generator, answer: Answer) -> Tensor:
    """Repeatedly the sample that brings the mean output nearest to the mean of all candidates."""
    candidates = torch.randperm(len(data), generator=generator)[: max(CANDIDATES, count)]
    batch = data.batch(candidates)
    return candidates[nearest_to_mean(batch.answers.unpack(answer(batch)).flatten(1), count)]


def nearest_to_mean(features: Tensor, count: int) -> Tensor:
    """Herding (Welling 2009): the greedy choice of rows whose mean is nearest to that of all.

    Number k is argmin over rows phi not yet chosen of || mu - (phi + sum of those before) / k ||, in float64.

    Args:
        features: Rows phi [N, H].
        count: How many to choose; all if there are fewer.

    Returns:
        Indices of the chosen rows, the first chosen first [min(count, N)].

    """
    features = features.double()
    # || mu - (total + phi) / k ||^2 times k^2, without what is the same for all rows: the squared length of
    # phi, plus 2 phi (total - k mu). `taken` is infinite where a row cannot be chosen again.
    taken = features.square().sum(1)
    mean, total = features.mean(0), torch.zeros_like(features[0])
    chosen: list[int] = []
    for number in range(1, min(count, len(features)) + 1):
        best = int(torch.addmv(taken, features, total - number * mean, alpha=2).argmin())
        taken[best] = torch.inf
        total = total + features[best]
        chosen.append(best)
    return torch.tensor(chosen, dtype=torch.long)


SELECTIONS = {"random": choose_random, "herding": choose_herding}


def store(data: Data, index: Tensor, task: int, *, packed: bool) -> Vectors:
    """Samples as compact tensors: inputs as they came or, if they are only 0 and 1, as bits."""
    lengths = data.all_lengths[index].to(torch.int32)
    kept = {f"y.{task}": data.y[index].cpu(), f"lengths.{task}": lengths}
    return kept | _stored_inputs(data.x[index].cpu(), task, packed=packed)


def unstore(memory: Vectors, task: int, like: Data) -> Data:
    """Stored samples as data, on the device and with the precision of other data."""
    return like.having(_inputs(memory, task), memory[f"y.{task}"], memory[f"lengths.{task}"].long())


def _stored_inputs(x: Tensor, task: int, *, packed: bool) -> Vectors:
    """Inputs [n, T, F] as `x`, or as `bits` with their `shape`."""
    if packed and bool(((x == 0) | (x == 1)).all()):
        bits = np.packbits(x.numpy().astype(np.uint8).reshape(len(x), math.prod(x.shape[1:])), axis=1)
        shape = torch.tensor(x.shape[1:], dtype=torch.int32)
        return {f"bits.{task}": aligned(torch.from_numpy(bits)), f"{SHAPE}{task}": shape}
    return {f"x.{task}": x}


def _inputs(memory: Vectors, task: int) -> Tensor:
    """Inputs [n, T, F], however they are stored."""
    if f"x.{task}" in memory:
        return memory[f"x.{task}"]
    shape = memory[f"{SHAPE}{task}"].tolist()
    bits = np.unpackbits(memory[f"bits.{task}"].cpu().numpy(), axis=1, count=math.prod(shape))
    return torch.from_numpy(bits.reshape(-1, *shape))


def per_sample(memory: Vectors, task: int) -> list[str]:
    """Names of the tensors that have one row for each stored sample of a task."""
    return [name for name in _of_task(memory, task) if not name.startswith((SHAPE, SEEN))]


def some_samples(memory: Vectors, task: int, which: slice | Tensor) -> Vectors:
    """The memory with only these samples of a task, in this order."""
    return memory | {name: memory[name][which] for name in per_sample(memory, task)}


def joined(memory: Vectors, new: Vectors, task: int) -> Vectors:
    """The memory with samples of a task beside those of earlier visits to it.

    Sequences of one visit may be longer than those of another, and a growing head has more outputs later:
    the shorter are filled up behind their end, targets with what is not scored, all else with zeros.
    """
    old = {name: memory[name].cpu() for name in _of_task(memory, task)}
    if not old:
        return memory | new
    targets, bits = f"y.{task}", f"bits.{task}"
    packed = bits in old and bits in new
    inputs = _stored_inputs(stacked(_inputs(old, task), _inputs(new, task)), task, packed=packed)
    rows = {
        name: stacked(old[name], new[name], unscored=name == targets)
        for name in per_sample(new, task)
        if name not in (bits, f"x.{task}")
    }
    others = {name: value for name, value in memory.items() if name not in old}
    return others | {name: new[name] for name in new if name.startswith(SEEN)} | rows | inputs


def _of_task(memory: Vectors, task: int) -> list[str]:
    """Names of all that is stored of a task."""
    return [name for name in memory if name.endswith(f".{task}")]


def stored_tasks(memory: Vectors) -> list[int]:
    """Tasks with samples in the memory."""
    return sorted(int(name.removeprefix("y.")) for name in memory if name.startswith("y."))


def stored_of(memory: Vectors, task: int) -> int:
    """Number of samples of a task in the memory."""
    return len(memory[f"y.{task}"]) if f"y.{task}" in memory else 0


def stored_samples(memory: Vectors) -> int:
    """Number of samples of all tasks in the memory."""
    return sum(stored_of(memory, task) for task in stored_tasks(memory))


def stored_data(memory: Vectors, context: PhaseContext) -> dict[int, Data]:
    """The stored samples of all known tasks as data, and those of a task that is being learnt again."""
    again = [task for task in context.tasks if stored_of(memory, task)]
    return {task: unstore(memory, task, context.formats[task]) for task in [*context.known, *again]}


def keep_some(
    memory: Vectors, data: Data, task: int, size: int, choose: Callable[[int], Tensor], *, packed: bool
) -> Vectors:
    """The memory with `size` samples of a task that was just learnt, `choose(n)` of them from its data.

    If the task was learnt before, some stay: as many as a random draw from all that was seen would have.
    """
    stored = stored_of(memory, task)
    seen = int(memory.get(f"{SEEN}{task}", stored))  # memories of earlier versions do not tell
    # Nothing is drawn for this, so that what a first visit chooses does not depend on it.
    staying = min(round(size * seen / (seen + len(data))), stored) if seen else 0
    chosen = choose(min(size - staying, len(data)))
    new = store(data, chosen, task, packed=packed) | {f"{SEEN}{task}": torch.tensor([seen + len(data)])}
    if not staying:
        old = _of_task(memory, task)
        return {name: memory[name] for name in memory if name not in old} | new
    both = joined(some_samples(memory, task, slice(staying)), new, task)
    return some_samples(both, task, _interleaved(staying, len(chosen)))


def _interleaved(first: int, second: int) -> Tensor:
    """An order of two lists, one behind the other, whose every beginning has its share of both."""
    places = [(torch.arange(count, dtype=torch.float64) + 0.5) / count for count in (first, second)]
    return torch.cat(places).argsort(stable=True)


def keep_random(memory: Vectors, end: PhaseEnd, size: int, context: PhaseContext) -> Vectors:
    """The memory with up to `size` random samples of each task that was just learnt."""
    for task, data in end.data.items():
        choose = partial(choose_random, data, generator=context.generators("samples", task))
        memory = keep_some(memory, data, task, size, choose, packed=True)
    return memory


def loss_on_stored(stored: Mapping[int, Data], active: Vectors, context: PhaseContext) -> Tensor:
    """Mean loss per sample on stored samples of old tasks, with their true targets."""
    batches = {task: data.batch(slice(None)) for task, data in stored.items()}
    logits = logits_of(context.networks_now(active, batches), batches)
    losses = [negative_log_likelihood(logits[task], batch) for task, batch in batches.items()]
    return torch.stack(losses).sum() / sum(len(batch) for batch in batches.values())
