"""Optimisers by name, their state as plain tensors, and the step that one would take.

Parameters are a few long vectors, so optimisers that treat each entry by itself are offered; those that
look at matrices (Muon, Adafactor), closures (LBFGS) or sparse gradients are not.
"""

from __future__ import annotations

import inspect
import math

import torch
from torch import Tensor

from perdure.networks.layout import Vectors

OPTIMISERS = (
    "Adam", "AdamW", "SGD", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop",
)  # fmt: skip
"""The offered names, as torch.optim spells them."""


class Optimiser:
    """An optimiser of named vectors, which it moves in place."""

    def __init__(self, name: str, active: Vectors, rate: float, decay: float) -> None:
        """Build torch's optimiser; fused where torch has that, which is three times as fast."""
        kind = getattr(torch.optim, name)
        extra: dict[str, object] = {}
        if "fused" in inspect.signature(kind).parameters:
            extra["fused"] = True
        if decay:
            extra["weight_decay"] = decay
        self.active = active
        self.rate = rate
        self.torch: torch.optim.Optimizer = kind(list(active.values()), lr=rate, **extra)

    def slow_down(self, progress: float, floor: float) -> None:
        """Set the rate on a cosine from its start value (progress 0) to `floor` times it (1)."""
        factor = floor + (1 - floor) * (1 + math.cos(math.pi * progress)) / 2
        for group in self.torch.param_groups:
            group["lr"] = self.rate * factor

    def step(self) -> None:
        """Move the vectors by their gradients."""
        self.torch.step()

    @torch.no_grad()
    def would_move(self) -> Vectors:
        """The step for the gradients as they are now, without taking it."""
        before = {name: vector.clone() for name, vector in self.active.items()}
        kept = [
            {key: value.clone() if isinstance(value, Tensor) else value for key, value in state.items()}
            for state in self._states()
        ]
        self.torch.step()
        moves = {}
        for (name, vector), saved in zip(self.active.items(), kept, strict=True):
            moves[name] = vector - before[name]
            vector.copy_(before[name])
            state = self.torch.state[vector]
            if not saved:
                del self.torch.state[vector]
            for key, value in saved.items():
                if isinstance(value, Tensor):
                    state[key].copy_(value)
                else:
                    state[key] = value
        return moves

    def state(self) -> tuple[Vectors, dict[str, float]]:
        """All state as tensors, and what are plain numbers."""
        tensors: Vectors = {}
        numbers: dict[str, float] = {}
        for name, state in zip(self.active, self._states(), strict=True):
            for key, value in state.items():
                if isinstance(value, Tensor):
                    tensors[f"{name}/{key}"] = value
                elif value is not None:
                    numbers[f"{name}/{key}"] = value
        return tensors, numbers

    def restore(self, tensors: Vectors, numbers: dict[str, float]) -> None:
        """Continue from what `state` gave."""
        for place, value in {**tensors, **numbers}.items():
            name, _, key = place.rpartition("/")
            self.torch.state[self.active[name]][key] = value

    def _states(self) -> list[dict[str, object]]:
        return [self.torch.state.get(vector, {}) for vector in self.active.values()]
