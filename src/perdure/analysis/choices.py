"""The options of each named analysis."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveFloat, PositiveInt

from perdure.options import Estimator, Options, Strength

Portion = Annotated[float, Field(gt=0, le=1)]


class AfterPhase(Options):
    """Options of analyses that look at one point of a run."""

    after: PositiveInt | None = None
    """Analyse the run after this phase (counted from 1); default: the last."""


class Dimensionality(AfterPhase):
    """Intrinsic dimensionality of the hidden states."""

    threshold: Portion = 0.75
    """Fraction of the variance that the components must explain."""
    samples: PositiveInt | None = 1000
    """Maximum number of test samples per task."""
    kernel: bool = False
    """Kernel PCA with the cosine kernel instead of PCA."""
    pooled: Literal["no", "all", "input", "output", "stop", "last"] = "no"
    """no: analyse each step separately; otherwise, the steps over which states are pooled."""
    layer: int = -1
    """Recurrent layer, counted from 0; negative: counted from the last."""


class Importance(Options):
    """How important the recurrent weights are."""

    samples: PositiveInt | None = None
    """Training samples for the Fisher, if the run has stored no importance values; default: all."""


class StepImportanceOptions(Options):
    """What each step contributes to the importance of recurrent weights."""

    samples: PositiveInt | None = 1000
    """Training samples of each task."""


class SensitivityOptions(Options):
    """How strongly outputs depend on recurrent weights, independently of the residual loss."""

    samples: PositiveInt | None = 200
    """Training samples of each task."""


class Supervised(AfterPhase):
    """How many dimensions the tasks need."""

    every: bool = False
    """Analyse every phase, not just one."""
    columns: PositiveInt | None = 40
    """Maximum number of dimensions; none: the number of units."""
    iterations: PositiveInt = 100
    """Adam steps per dimension."""
    learning_rate: PositiveFloat = 0.01
    """Adam's learning rate."""
    orthogonality: Strength = 1000.0
    """Factor of ||U^T U - I||^2."""
    batch_size: PositiveInt = 64
    """Training samples per task in one step."""
    samples: PositiveInt = 5000
    """Training samples per task to draw from."""
    place: Literal["all", "stop"] = "all"
    """Project the states of all steps, or only at the stop bit."""


class Readout(AfterPhase):
    """Subspaces that the heads read."""

    measure: Literal["similarity", "smallest-angle", "largest-angle"] = "similarity"
    """||V_k V_l^T||_F, or a principal angle in degrees."""


class Embeddings(AfterPhase):
    """Distances between tasks of a hypernetwork."""

    of: Literal["embeddings", "weights"] = "embeddings"
    """Task embeddings, or the generated weights of the body."""


class FlatnessOptions(Options):
    """How flat the solutions are."""

    samples: PositiveInt | None = 2000
    """Training samples per Fisher."""
    estimator: Estimator = "empirical"
    """Fisher at the true targets (empirical), at sampled ones (sampled), or in expectation (exact)."""
    prior: PositiveFloat = 1.0
    """Standard deviation of the Gaussian prior, for the precision of the Laplace approximation."""


class Theory(Options):
    """Linear RNNs that learn several tasks."""

    units: PositiveInt = 32
    """Hidden units n_h."""
    dimension: PositiveInt = 4
    """Dimensions p_k of each task's subspace."""
    tasks: PositiveInt = 12
    """Maximum number of tasks."""
    shared: Annotated[int, Field(ge=0)] = 0
    """Dimensions of its subspace that each task shares with all others, dynamics included."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the subspaces and dynamics."""


class TransferOptions(Options):
    """What learning other tasks did to each task."""


class PlasticityOptions(Options):
    """Whether the network is still able to learn."""

    samples: PositiveInt | None = 500
    """Test samples of each task."""
    tau: Annotated[float, Field(gt=0, lt=1)] = 0.025
    """A unit that varies by less than this fraction of the average is dormant."""


class RehearsedOptions(Options):
    """Whether what is rehearsed looks real."""

    samples: PositiveInt = 200
    """Sequences of each task and kind."""
    references: PositiveInt = 500
    """Real training sequences of each task to compare them with."""


class Steps(AfterPhase):
    """Accuracy at each output step."""


class Forgetting(Options):
    """Accuracy throughout a run."""

    over: Literal["phases", "iterations"] = "phases"
    """Test accuracy of all tasks after each phase, or validation accuracy of the current one."""
