"""The options of each named analysis."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveFloat, PositiveInt

from perdure.options import Options, Strength

Portion = Annotated[float, Field(gt=0, le=1)]


class AfterPhase(Options):
    """Options of analyses that look at one moment of a run."""

    after: PositiveInt | None = None
    """The phase (from 1) after which to look; not given: the last."""


class Dimensionality(AfterPhase):
    """How many dimensions the hidden states fill."""

    threshold: Portion = 0.75
    """Part of the variance that the components must explain."""
    samples: PositiveInt | None = 1000
    """Test samples of each task at the most."""
    kernel: bool = False
    """Kernel PCA with the cosine kernel instead of PCA."""
    pooled: Literal["no", "all", "input", "output", "stop", "last"] = "no"
    """no: each step by itself; otherwise the steps over which states are pooled."""
    layer: int = -1
    """Recurrent layer, from 0; negative: from the last."""


class Importance(Options):
    """How important the recurrent weights are."""

    samples: PositiveInt | None = None
    """Training samples for a Fisher, where the run has stored no importance; not given: all."""


class Supervised(AfterPhase):
    """How many dimensions the tasks need."""

    every: bool = False
    """After each phase, not only after one."""
    columns: PositiveInt | None = 40
    """Dimensions at the most; none: as many as there are units."""
    iterations: PositiveInt = 100
    """Steps of Adam for each dimension."""
    learning_rate: PositiveFloat = 0.01
    """Step size of Adam."""
    orthogonality: Strength = 1000.0
    """Factor of ||U^T U - I||^2."""
    batch_size: PositiveInt = 64
    """Training samples of each task in a step."""
    samples: PositiveInt = 5000
    """Training samples of each task to draw from."""
    place: Literal["all", "stop"] = "all"
    """Project the states of all steps, or only at the stop bit."""


class Readout(AfterPhase):
    """Which subspaces the heads read."""

    measure: Literal["similarity", "smallest-angle", "largest-angle"] = "similarity"
    """||V_k V_l^T||_F, or a principal angle in degrees."""


class Embeddings(AfterPhase):
    """Distances between tasks of a hypernetwork."""

    of: Literal["embeddings", "weights"] = "embeddings"
    """Task embeddings, or the generated weights of the body."""


class FlatnessOptions(Options):
    """How flat the solutions are."""

    samples: PositiveInt | None = 2000
    """Training samples for each Fisher."""


class Theory(Options):
    """Linear RNNs that learn several tasks."""

    units: PositiveInt = 32
    """Hidden units n_h."""
    dimension: PositiveInt = 4
    """Dimensions p_k of each task's subspace."""
    tasks: PositiveInt = 12
    """Tasks at the most."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of subspaces and dynamics."""


class Steps(AfterPhase):
    """Accuracy at each answered step."""


class Forgetting(Options):
    """Accuracy over the course of a run."""

    over: Literal["phases", "iterations"] = "phases"
    """Test accuracy of all tasks after each phase, or validation accuracy of the current one."""
