"""How a task is trained: the optimiser's settings, for how long, and when to stop."""

from __future__ import annotations

import math
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from perdure.learning.optimiser import OPTIMISERS, has_decay
from perdure.options import Options, Strength


def _offered(name: str) -> str:
    if name not in OPTIMISERS:
        raise ValueError(
            f"no such element-wise optimiser in torch.optim; available are {', '.join(OPTIMISERS)}"
        )
    return name


class Training(Options):
    """Settings of the optimisation; each task starts with a new optimiser."""

    later: ClassVar[tuple[str, ...]] = ("warm_up", "criterion")

    iterations: PositiveInt = 5_000
    """Maximum number of iterations per task; joint training of K tasks takes K times as many."""
    batch_size: PositiveInt = 128
    """Samples per mini-batch."""
    learning_rate: PositiveFloat = 1e-3
    """Learning rate of the optimiser."""
    optimiser: Annotated[str, AfterValidator(_offered)] = "Adam"
    """Name of an element-wise optimiser of torch.optim."""
    weight_decay: Strength = 0.0
    """The optimiser's weight decay."""
    clip: PositiveFloat | None = None
    """Maximum norm of the gradient; a longer one is scaled down; none: no clipping."""
    warm_up: NonNegativeInt = 0
    """Iterations over which the learning rate rises to its value, at the start of each task."""
    decay: Annotated[float, Field(gt=0, le=1)] = 1.0
    """The learning rate falls along a cosine to this fraction over a task's iterations."""
    validate_every: PositiveInt = 250
    """Iterations between validations."""
    tables: Literal["frozen", "trained"] = "frozen"
    """Whether a task's table of word vectors, if it has one, stays fixed or is trained with the task."""
    patience: PositiveInt | None = None
    """Stop a task after this many validations without a better score, and restore the best weights."""

    criterion: Literal["score", "loss"] = "score"
    """What must get better on validation data for a task to go on: its score, or its loss."""

    def pace(self, iteration: int, iterations: int) -> float:
        """The factor of the learning rate: it rises linearly, then falls along a cosine from 1 to `decay`."""
        falling = self.decay + (1 - self.decay) * (1 + math.cos(math.pi * iteration / iterations)) / 2
        rising = min(1.0, (iteration + 1) / self.warm_up) if self.warm_up else 1.0
        return falling * rising

    @model_validator(mode="after")
    def _decay_is_known(self) -> Self:
        if self.weight_decay and not has_decay(self.optimiser):
            raise ValueError(f"{self.optimiser} does not support weight decay; use --training.weight_decay 0")
        return self
