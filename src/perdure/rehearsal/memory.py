"""A memory of samples with one budget, shared between tasks; several rehearsals are built on it.

Every stored sample has a key, and those with the smallest keys stay when there is no more room. With random
keys that is reservoir sampling: each sample seen so far is in the memory with the same probability (of its
task, or of the whole stream). With the order of herding as keys, those chosen last go first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal

import torch
from pydantic import PositiveInt
from torch import Tensor

from perdure.hooks import PhaseContext, PhaseEnd, Step, Term
from perdure.networks.batch import Batch, Data
from perdure.networks.layout import Vectors
from perdure.networks.targets import negative_log_likelihood
from perdure.networks.together import logits_of
from perdure.rehearsal.rehearsal import Rehearsal, sequences_of
from perdure.rehearsal.samples import (
    joined,
    per_sample,
    some_samples,
    store,
    stored_samples,
    stored_tasks,
    unstore,
)

Keys = Callable[[int, Data, int], Tensor]
"""From a task, its data and the number of samples that can stay to the key of each sample [N].

A sample with an infinite key is not stored. Keys of samples that cannot stay may be infinite.
"""

Extras = Callable[[int, Data, Tensor], Vectors]
"""From a task, its data and the stored samples' indices [n] to what is stored with each: [n, ...] by name."""


class Remembering(Rehearsal):
    """Shared by all rehearsals with a common memory: its budget, and how tasks share it."""

    samples: PositiveInt = 500
    """Samples in the memory, of all tasks together."""
    bytes: PositiveInt | None = None
    """Size of the memory in bytes, instead of a number of samples."""
    share: Literal["tasks", "stream"] = "tasks"
    """tasks: all tasks have equally many samples; stream: all samples seen are equally likely to stay."""
    batch: PositiveInt | None = None
    """Stored samples per iteration; default: as many as in the mini-batch."""

    def stored(self, memory: Vectors) -> int:
        """Number of samples of all tasks."""
        return stored_samples(memory)

    def examples(
        self, memory: Vectors, context: PhaseContext, task: int, real: Batch
    ) -> dict[str, list[Tensor]]:
        """Stored sequences."""
        found = unstore(memory, task, context.formats[task]).batch(slice(0, len(real)))
        return {"stored": sequences_of(found, found.rows)}

    def remember(
        self,
        memory: Vectors,
        end: PhaseEnd,
        keys: Keys,
        extras: Extras = lambda task, data, index: {},
    ) -> Vectors:
        """The memory after a phase: samples of its tasks join those stored before, and the budget is kept."""
        result = dict(memory)
        for task, data in end.data.items():
            most = self._most_of(task, data, result)
            of_all = keys(task, data, most)
            chosen = of_all.argsort(stable=True)[: min(most, int(of_all.isfinite().sum()))]
            new = store(data, chosen, task, packed=True) | {f"key.{task}": of_all[chosen]}
            named = extras(task, data, chosen)
            new |= {f"{name}.{task}": values.cpu() for name, values in named.items()}
            result = joined(result, new, task)
        return self.within_budget(result)

    def _most_of(self, task: int, data: Data, memory: Vectors) -> int:
        """How many new samples of a task can stay at most, beside what is in the memory."""
        room = self.samples if self.bytes is None else self.bytes // _fewest_bytes(data)
        if self.share == "stream":
            return min(room, len(data))
        others = {one: len(memory[f"key.{one}"]) for one in stored_tasks(memory) if one != task}
        return fair_shares(room, others | {task: len(data)})[task]

    def within_budget(self, memory: Vectors) -> Vectors:
        """Only the samples with the smallest keys, as many as there is room for."""
        counts = {task: len(memory[f"key.{task}"]) for task in stored_tasks(memory)}
        room = self.samples
        if self.bytes is not None:
            largest = max((_bytes_per_sample(memory, task) for task, n in counts.items() if n), default=1)
            room = self.bytes // largest
        if self.share == "tasks":
            wanted = fair_shares(room, counts)
        else:
            pooled = torch.cat([memory[f"key.{task}"] for task in counts])
            owners = torch.cat([torch.full((count,), task) for task, count in counts.items()])
            staying = owners[pooled.argsort(stable=True)[:room]]
            wanted = {task: int((staying == task).sum()) for task in counts}
        for task, count in wanted.items():
            if count < counts[task]:
                staying = memory[f"key.{task}"].argsort(stable=True)[:count]
                memory = some_samples(memory, task, staying)
        return memory


def fair_shares(room: int, counts: Mapping[int, int]) -> dict[int, int]:
    """How many samples of each task stay: equally many, and what a small task does not need goes to others.

    If the room cannot be divided, earlier tasks have one sample more.
    """
    shares: dict[int, int] = {}
    left = list(sorted(counts, key=lambda task: (counts[task], task)))
    while left:
        smallest = left[0]
        each = room // len(left)
        if counts[smallest] > each:
            extra = room % len(left)
            ordered = sorted(left)
            shares |= {task: min(each + (place < extra), counts[task]) for place, task in enumerate(ordered)}
            break
        shares[smallest] = counts[smallest]
        room -= counts[smallest]
        left.pop(0)
    return {task: shares[task] for task in counts}


def random_keys(context: PhaseContext) -> Keys:
    """Keys of a reservoir: uniform random numbers."""

    def keys(task: int, data: Data, most: int) -> Tensor:
        generator = context.generators("reservoir", task)
        return torch.rand(len(data), generator=generator, dtype=torch.float64)

    return keys


class Stored:
    """The samples of a memory during a phase, drawn uniformly, whatever their task."""

    def __init__(self, memory: Vectors, context: PhaseContext) -> None:
        """Unpack the samples of all tasks that have some."""
        self.context = context
        self.generator = context.generators("rehearsal", *context.tasks)
        self.data = {
            task: unstore(memory, task, context.formats[task])
            for task in stored_tasks(memory)
            if len(memory[f"y.{task}"])
        }
        counts = [len(data) for data in self.data.values()]
        self.owners = torch.tensor(list(self.data)).repeat_interleave(torch.tensor(counts, dtype=torch.long))
        self.places = torch.cat([torch.arange(count) for count in counts]) if counts else torch.arange(0)

    def __len__(self) -> int:
        """The number of samples."""
        return len(self.owners)

    def draw(self, size: int) -> dict[int, Tensor]:
        """Indices of random samples, with replacement, by task."""
        drawn = torch.randint(len(self), (size,), generator=self.generator)
        owners, places = self.owners[drawn], self.places[drawn]
        return {task: places[owners == task] for task in self.data if bool((owners == task).any())}

    def batches(self, drawn: Mapping[int, Tensor], noise: torch.Generator | None) -> dict[int, Batch]:
        """The drawn samples as packed batches, by task, for training."""
        return {task: replace(self.data[task].batch(index), noise=noise) for task, index in drawn.items()}

    def logits(self, active: Vectors, batches: Mapping[int, Batch]) -> dict[int, Tensor]:
        """The current networks' outputs [M, outputs] for each task's batch."""
        return logits_of(self.context.networks_now(active, batches), batches)

    def loss(self, step: Step, size: int) -> Tensor:
        """Mean over `size` random samples of their negative log-likelihood."""
        batches = self.batches(self.draw(size), step.noise)
        logits = self.logits(step.active, batches)
        losses = [negative_log_likelihood(logits[task], batch) for task, batch in batches.items()]
        return sum(losses[1:], losses[0]) / size

    def state(self) -> Vectors:
        """The generator that draws samples."""
        return {"generator": self.generator.get_state()}

    def restore(self, state: Vectors) -> None:
        """Continue drawing as before."""
        self.generator.set_state(state["generator"].cpu())


class StoredTerm(Term):
    """A rehearsal of stored samples during one phase."""

    def __init__(self, options: Remembering, memory: Vectors, context: PhaseContext) -> None:
        """Unpack the stored samples."""
        self.options, self.memory, self.context = options, memory, context
        self.stored = Stored(memory, context)

    def batch_size(self, step: Step) -> int:
        """Number of stored samples in an iteration."""
        return self.options.batch or sum(len(batch) for batch in step.batches.values())

    def state(self) -> Vectors:
        """The generator that draws samples."""
        return self.stored.state()

    def restore(self, state: Vectors) -> None:
        """Continue drawing as before."""
        self.stored.restore(state)

    def finish(self, end: PhaseEnd) -> Vectors:
        """The reservoir after the phase."""
        return self.options.remember(self.memory, end, random_keys(self.context))


def _fewest_bytes(data: Data) -> int:
    """Bytes that a stored sample has at least: its inputs as bits, its targets, its length and its key."""
    bits, targets = data.x[0].numel(), data.y[0].numel() * data.y.element_size()
    return -(-bits // 8) + targets + torch.int32.itemsize + torch.float64.itemsize


def _bytes_per_sample(memory: Vectors, task: int) -> int:
    """Bytes of one stored sample, rounded up."""
    names, count = per_sample(memory, task), len(memory[f"key.{task}"])
    return -(-sum(memory[name].numel() * memory[name].element_size() for name in names) // count)
