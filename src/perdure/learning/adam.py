"""Adam and AdamW in the compiled library: torch's formulas, without torch's overhead at every step."""

from __future__ import annotations

import ctypes
import math

import torch

from perdure.learning.optimiser import Optimiser
from perdure.networks.layout import Vectors
from perdure.networks.native.library import available
from perdure.networks.native.vectors import Settings, adam_move, adam_step, norm

BETAS, EPSILON = (0.9, 0.999), 1e-8
"""Torch's defaults, which are also the paper's."""


class NativeAdam:
    """An optimiser of named flat vectors, updated in place; see `Optimiser` for the meaning of each call."""

    def __init__(self, name: str, active: Vectors, rate: float, decay: float) -> None:
        """`name` is Adam (decay is added to the gradient) or AdamW (decay shrinks the weights)."""
        self.active, self.rate, self.pace = active, rate, 1.0
        self.decay, self.decoupled = decay, name == "AdamW"
        # Each vector counts its own steps, as in torch: a head may have no gradient in some of them.
        self.steps = dict.fromkeys(active, 0)
        self.means = {n: torch.zeros_like(vector, requires_grad=False) for n, vector in active.items()}
        self.squares = {n: torch.zeros_like(vector, requires_grad=False) for n, vector in active.items()}

    def go_at(self, pace: float) -> None:
        """Set the learning rate to `pace` times its initial value."""
        self.pace = pace

    def _settings(self, step: int, factor: float = 1.0) -> ctypes.Array[ctypes.c_double]:
        """The constants of step 1, 2, ..., with the bias corrections of both moments."""
        rate = self.rate * self.pace
        first, second = 1 - BETAS[0] ** step, 1 - BETAS[1] ** step
        decay, shrink = (0.0, 1 - rate * self.decay) if self.decoupled else (self.decay, 1.0)
        return Settings(rate / first, *BETAS, EPSILON, decay, shrink, math.sqrt(second), factor)

    @torch.no_grad()
    def step(self, factor: float = 1.0) -> None:
        """Update the vectors by `factor` times their gradients; those without a gradient are unchanged."""
        for name, vector in self.active.items():
            if vector.grad is not None:
                self.steps[name] += 1
                settings = self._settings(self.steps[name], factor)
                taken = adam_step(settings, vector, vector.grad, self.means[name], self.squares[name])
                assert taken, f"the library took no step for '{name}'"  # or it would silently stay as it is

    @torch.no_grad()
    def would_move(self) -> Vectors:
        """The step for the current gradients, without taking it."""
        moves: Vectors = {}
        for name, vector in self.active.items():
            if vector.grad is None:
                moves[name] = torch.zeros_like(vector, requires_grad=False)
                continue
            settings = self._settings(self.steps[name] + 1)
            moved = adam_move(settings, vector, vector.grad, self.means[name], self.squares[name])
            assert moved is not None, f"the library has no step for '{name}'"
            moves[name] = moved
        return moves

    def state(self) -> tuple[Vectors, dict[str, float]]:
        """All state as tensors, and the numbers of steps."""
        tensors = {f"{name}/exp_avg": vector for name, vector in self.means.items()}
        tensors |= {f"{name}/exp_avg_sq": vector for name, vector in self.squares.items()}
        return tensors, {f"{name}/steps": count for name, count in self.steps.items()}

    def restore(self, tensors: Vectors, numbers: dict[str, float]) -> None:
        """Continue from a result of `state`."""
        for name in self.active:
            self.steps[name] = int(numbers[f"{name}/steps"])
            self.means[name].copy_(tensors[f"{name}/exp_avg"])
            self.squares[name].copy_(tensors[f"{name}/exp_avg_sq"])


def make_optimiser(name: str, active: Vectors, rate: float, decay: float) -> Optimiser | NativeAdam:
    """An optimiser by name: Adam and AdamW from the compiled library if available, others from torch."""
    if name in ("Adam", "AdamW") and all(available(vector) for vector in active.values()):
        return NativeAdam(name, active, rate, decay)
    return Optimiser(name, active, rate, decay)


def clipping(active: Vectors, longest: float) -> tuple[float, float]:
    """The norm of the gradient of all vectors, and the factor that makes it at most `longest`.

    The optimiser's step is to apply the factor; it is 1 where torch has already scaled the gradients.
    """
    length = norm([vector.grad for vector in active.values() if vector.grad is not None])
    if length is None:
        return float(torch.nn.utils.clip_grad_norm_(list(active.values()), longest)), 1.0
    return length, longest / length if length > longest else 1.0
