"""The samples of the next mini-batch: shuffled epochs, resumable."""

from __future__ import annotations

import torch
from torch import Tensor

from perdure.networks.layout import Vectors


class Shuffler:
    """Iterates over shuffled indices; a batch may span two epochs."""

    def __init__(self, count: int, generator: torch.Generator) -> None:
        """Shuffle for the first time."""
        self.count, self.generator = count, generator
        self._shuffle()

    def take(self, size: int) -> Tensor:
        """The next `size` indices."""
        parts = []
        while size > 0:
            if self.position == self.count:
                self._shuffle()
            part = self.order[self.position : self.position + size]
            self.position += len(part)
            size -= len(part)
            parts.append(part)
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def state(self) -> Vectors:
        """The generator as it was before this epoch's shuffle, and the position in the epoch."""
        return {"generator": self.epoch_start, "position": torch.tensor(self.position)}

    def restore(self, state: Vectors) -> None:
        """Continue from a result of `state`."""
        self.generator.set_state(state["generator"].cpu())
        self._shuffle()
        self.position = int(state["position"])

    def _shuffle(self) -> None:
        self.epoch_start = self.generator.get_state()
        self.order = torch.randperm(self.count, generator=self.generator)
        self.position = 0


class Mixture:
    """Mini-batches of one or several tasks; with several, each sample's task is drawn uniformly."""

    def __init__(
        self, counts: dict[int, int], generators: dict[int, torch.Generator], mixer: torch.Generator
    ):
        """One shuffler per task."""
        self.shufflers = {task: Shuffler(n, generators[task]) for task, n in counts.items()}
        self.mixer = mixer

    def take(self, size: int) -> dict[int, Tensor]:
        """Indices for each task with a share of the batch."""
        tasks = list(self.shufflers)
        if len(tasks) == 1:
            return {tasks[0]: self.shufflers[tasks[0]].take(size)}
        drawn = torch.randint(len(tasks), (size,), generator=self.mixer)
        shares = torch.bincount(drawn, minlength=len(tasks)).tolist()
        return {
            task: self.shufflers[task].take(share) for task, share in zip(tasks, shares, strict=True) if share
        }

    def state(self) -> Vectors:
        """All shufflers and the mixer."""
        parts = {
            f"{task}/{name}": value
            for task, shuffler in self.shufflers.items()
            for name, value in shuffler.state().items()
        }
        return {**parts, "mixer": self.mixer.get_state()}

    def restore(self, state: Vectors) -> None:
        """Continue from a result of `state`."""
        self.mixer.set_state(state["mixer"].cpu())
        for task, shuffler in self.shufflers.items():
            shuffler.restore({name: state[f"{task}/{name}"] for name in ("generator", "position")})
