"""The contract of a target: what is asked of a network, where, and how its answers are judged.

A target owns all that depends on what y means: its shape, which of its entries are asked, the likelihood with
its score, drawing, distillation, and the metric. Arrays may mark what is not asked in their own way (-1 for
classes and bits, NaN for values); the numerics see a boolean mask, made here and nowhere else.

Benchmarks describe their data with targets and must load without torch, so nothing here imports it before it
computes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Array = NDArray[Any]
Y = TypeVar("Y", Array, "Tensor")
"""Targets as they are stored: an array, or a tensor."""


class Judged(NamedTuple):
    """What a tally amounts to; the first number is a percentage, and higher is better."""

    accuracy: float
    """In percent; what it is, the target's `score_name` says."""
    asked: int
    """How many answers it is made of."""
    f1: float | None = None
    """Weighted F1 in percent, where answers are classes or bits."""
    error: float | None = None
    """Root mean squared error in the units of the data, where answers are numbers."""


class Target(ABC):
    """What is asked, and at which steps.

    In a mini-batch there are M answers: logits [M, outputs], targets [M] or [M, outputs], and a mask of the
    targets' shape that says which of them are asked (None: all). What is not asked counts nowhere.
    """

    name: ClassVar[str]
    """What it is called on the command line and in files."""
    everywhere: ClassVar[bool] = False
    """Whether each valid step is answered (and a mean counts steps), rather than the last ones."""
    categorical: ClassVar[bool] = False
    """Whether outputs stand for classes, which have names; otherwise y has an axis for them."""
    recalled: ClassVar[bool] = False
    """Whether the answers recall what came before a stop bit."""
    score_name: ClassVar[str] = "accuracy"
    """What tables and figures call the score in percent."""
    contents_name: ClassVar[str] = "classes"
    """What `contents` tells."""

    @abstractmethod
    def fault(self, y: Array, lengths: Array, steps: int, outputs: int) -> str | None:
        """What is wrong with y of N sequences of at most `steps` steps, if anything."""

    @abstractmethod
    def contents(self, y: Array, names: Sequence[Any]) -> dict[str, Any]:
        """What y holds for each output of the given names, as plain data."""

    def in_own_units(self, y: Array) -> Array:
        """Y as the user gave it, where it was scaled."""
        return y

    @abstractmethod
    def answered(self, y: Array | Tensor) -> int:
        """How many of a sequence's last valid steps are answered; 0: all of them."""

    @abstractmethod
    def by_step(self, y: Y) -> Y:
        """The same with an axis for the answered steps: [N, P, ...]."""

    @abstractmethod
    def asked(self, y: Y) -> Y:
        """Which entries of y are asked."""

    @abstractmethod
    def targets(self, rows: Tensor, mask: Tensor | None, dtype: torch.dtype) -> Tensor:
        """Packed rows of y as the functions below take them; 0 where nothing is asked."""

    @abstractmethod
    def negative_log_likelihood(self, logits: Tensor, targets: Tensor, mask: Tensor | None) -> Tensor:
        """Sum over all that is asked of -log p(y | x)."""

    @abstractmethod
    def score(self, logits: Tensor, targets: Tensor, mask: Tensor | None) -> Tensor:
        """Gradient [M, outputs] of the negative log-likelihood with respect to the logits."""

    @abstractmethod
    def exact_scores(self, logits: Tensor, mask: Tensor | None) -> Iterator[Tensor]:
        """Cotangents v [M, outputs] whose squares (v . dz/dpsi)^2 add up to the expected squared score.

        The expectation is over the model's own prediction, for each of the M answers by itself.
        """

    @abstractmethod
    def draw(self, logits: Tensor, generator: torch.Generator) -> Tensor:
        """Targets drawn from the model's own prediction."""

    @abstractmethod
    def distillation(
        self, logits: Tensor, teacher: Tensor, mask: Tensor | None, temperature: float
    ) -> Tensor:
        """Sum over all that is asked of the loss against a teacher's answers [M, outputs]."""

    @abstractmethod
    def tally(self, logits: Tensor, targets: Tensor, mask: Tensor | None) -> Tensor:
        """What must be known of some answers to judge them; tallies of several batches are added."""

    @abstractmethod
    def judge(self, tally: Tensor) -> Judged:
        """The score of all answers that were tallied."""

    def units(self, sequences: int, answers: int, mask: Tensor | None) -> int:
        """What a mean over a share of a batch counts: sequences, or asked steps where each has a target."""
        if not self.everywhere:
            return sequences
        return answers if mask is None else int(mask.sum())
