"""Optimisers by name, their state as plain tensors, and the step that one would take.

Parameters are a few long vectors, so only element-wise optimisers are available; those that need matrices
(Muon, Adafactor), closures (LBFGS) or sparse gradients are not.
"""

from __future__ import annotations

import inspect

import torch
from torch import Tensor

from perdure.networks.layout import Vectors

OPTIMISERS = (
    "Adam", "AdamW", "SGD", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop",
)  # fmt: skip
"""The available names, as torch.optim spells them."""


def has_decay(name: str) -> bool:
    """Whether an optimiser supports weight decay."""
    return "weight_decay" in inspect.signature(getattr(torch.optim, name)).parameters


def scale_gradients(active: Vectors, factor: float) -> None:
    """Multiply the gradients of all vectors in place."""
    for vector in active.values():
        if vector.grad is not None and factor != 1:
            vector.grad.mul_(factor)


class Optimiser:
    """An optimiser of named vectors, which it updates in place."""

    def __init__(self, name: str, active: Vectors, rate: float, decay: float) -> None:
        """Build torch's optimiser; fused, if torch supports it, for one pass over memory."""
        kind = getattr(torch.optim, name)
        # Always pass the decay: torch's own default is not 0 for all of them.
        extra: dict[str, object] = {"weight_decay": decay} if has_decay(name) else {}
        if "fused" in inspect.signature(kind).parameters:
            extra["fused"] = True
        self.active = active
        self.rate = rate
        self._build = lambda vectors: kind(vectors, lr=rate, **extra)
        self.torch: torch.optim.Optimizer = self._build(list(active.values()))
        self._shadow: tuple[Vectors, torch.optim.Optimizer] | None = None

    def go_at(self, pace: float) -> None:
        """Set the learning rate to `pace` times its initial value."""
        for group in self.torch.param_groups:
            group["lr"] = self.rate * pace

    def step(self, factor: float = 1.0) -> None:
        """Update the vectors by `factor` times their gradients, which are scaled in place."""
        scale_gradients(self.active, factor)
        self.torch.step()

    @torch.no_grad()
    def would_move(self) -> Vectors:
        """The step for the current gradients, without taking it: a shadow copy takes it."""
        if self._shadow is None:
            copies = {name: vector.detach().clone() for name, vector in self.active.items()}
            self._shadow = copies, self._build(list(copies.values()))
        copies, shadow = self._shadow
        for group, other in zip(self.torch.param_groups, shadow.param_groups, strict=True):
            other["lr"] = group["lr"]
        for (name, vector), state in zip(self.active.items(), self._states(), strict=True):
            copy = copies[name].copy_(vector)
            copy.grad = vector.grad
            _assign(shadow.state[copy], state)
        shadow.step()
        return {name: copies[name].sub_(vector) for name, vector in self.active.items()}

    def state(self) -> tuple[Vectors, dict[str, float]]:
        """All state as tensors, and as plain numbers."""
        tensors: Vectors = {}
        numbers: dict[str, float] = {}
        for name, state in zip(self.active, self._states(), strict=True):
            for key, value in state.items():
                if isinstance(value, Tensor):
                    tensors[f"{name}/{key}"] = value
                elif isinstance(value, int | float):
                    numbers[f"{name}/{key}"] = value
        return tensors, numbers

    def restore(self, tensors: Vectors, numbers: dict[str, float]) -> None:
        """Continue from a result of `state`."""
        for place, value in {**tensors, **numbers}.items():
            name, _, key = place.rpartition("/")
            self.torch.state[self.active[name]][key] = value

    def _states(self) -> list[dict[str, object]]:
        return [self.torch.state.get(vector, {}) for vector in self.active.values()]


def _assign(target: dict[str, object], source: dict[str, object]) -> None:
    """Make one optimiser's state for a vector equal to another's, reusing tensors where possible."""
    for key in set(target) - set(source):
        del target[key]
    for key, value in source.items():
        old = target.get(key)
        if isinstance(value, Tensor) and isinstance(old, Tensor):
            old.copy_(value)
        else:
            target[key] = value.clone() if isinstance(value, Tensor) else value
