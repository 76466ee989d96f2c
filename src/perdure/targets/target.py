"""The contract of a target: what a network predicts, where, and how its predictions are scored.

A target owns everything that depends on the meaning of y: its shape, which of its entries are scored, the
likelihood and its score, drawing, distillation, and the metric. Arrays mark ignored entries in their own way
(-1 for classes and bits, NaN for values); the numerics see a boolean mask, made here and nowhere else.

Benchmarks describe their data with targets and must load without torch, so nothing here imports it before
it computes something.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

from numpy.typing import NDArray

from perdure.errors import PerdureError

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Array = NDArray[Any]
Y = TypeVar("Y", Array, "Tensor")
"""Targets as they are stored: an array, or a tensor."""


class Judged(NamedTuple):
    """The result of a tally; the first number is a percentage, and higher is better."""

    accuracy: float
    """In percent; the target's `score_name` says what it is."""
    asked: int
    """The number of predictions it is based on."""
    f1: float | None = None
    """Weighted F1 in percent, for classes and bits."""
    error: float | None = None
    """Root mean squared error in the units of the data, for values."""


class Target(ABC):
    """What is predicted, and at which steps.

    A mini-batch has M outputs: logits [M, outputs], targets [M] or [M, outputs], and a mask with the targets'
    shape of those that are scored (None: all). Ignored entries count nowhere.
    """

    name: ClassVar[str]
    """Its name on the command line and in files."""
    everywhere: ClassVar[bool] = False
    """Whether there is an output at each valid step (and means count steps), not only at the last ones."""
    categorical: ClassVar[bool] = False
    """Whether outputs represent classes, which have names; otherwise y has an axis for them."""
    recalled: ClassVar[bool] = False
    """Whether the outputs recall what came before a stop bit."""
    score_name: ClassVar[str] = "accuracy"
    """The name of the score in tables and figures."""
    contents_name: ClassVar[str] = "classes"
    """What `contents` describes."""

    @abstractmethod
    def fault(self, y: Array, lengths: Array, steps: int, outputs: int) -> str | None:
        """What is wrong with y of N sequences of at most `steps` steps, if anything."""

    @abstractmethod
    def contents(self, y: Array, names: Sequence[Any]) -> dict[str, Any]:
        """The contents of y for each output of the given names, as plain data."""

    def in_own_units(self, y: Array) -> Array:
        """Y as the user gave it, if it was scaled."""
        return y

    @abstractmethod
    def answered(self, y: Array | Tensor) -> int:
        """The number of output steps at the end of a sequence; 0: all valid steps."""

    @abstractmethod
    def by_step(self, y: Y) -> Y:
        """The same with an axis for the output steps: [N, P, ...]."""

    @abstractmethod
    def asked(self, y: Y) -> Y:
        """Which entries of y are scored."""

    @abstractmethod
    def targets(self, rows: Tensor, mask: Tensor | None, dtype: torch.dtype) -> Tensor:
        """Packed rows of y as the functions below take them; 0 where nothing is scored."""

    @abstractmethod
    def negative_log_likelihood(self, logits: Tensor, targets: Tensor, mask: Tensor | None) -> Tensor:
        """The sum of -log p(y | x) over all that is scored."""

    @abstractmethod
    def score(self, logits: Tensor, targets: Tensor, mask: Tensor | None) -> Tensor:
        """Gradient [M, outputs] of the negative log-likelihood with respect to the logits."""

    @abstractmethod
    def exact_scores(self, logits: Tensor, mask: Tensor | None) -> Iterator[Tensor]:
        """Cotangents v [M, outputs] whose squares (v . dz/dpsi)^2 add up to the expected squared score.

        The expectation is over the model's own prediction, for each of the M outputs separately.
        """

    @abstractmethod
    def draw(self, logits: Tensor, generator: torch.Generator) -> Tensor:
        """Targets drawn from the model's own predictions."""

    @abstractmethod
    def distillation(
        self, logits: Tensor, teacher: Tensor, mask: Tensor | None, temperature: float
    ) -> Tensor:
        """The loss against a teacher's outputs [M, outputs], summed over all that is scored."""

    def uncertainty(self, logits: Tensor) -> Tensor:
        """How little the predictions at M steps say [M], by which an unknown task is inferred.

        The entropy, as a fraction of the largest possible one: heads that have more classes than others must
        not seem less certain for that.
        """
        raise PerdureError(
            f"A task cannot be inferred from targets of kind '{self.name}': predictions have no entropy."
        )

    @abstractmethod
    def tally(self, logits: Tensor, targets: Tensor, mask: Tensor | None) -> Tensor:
        """What is needed to score some predictions; tallies of several batches are added."""

    @abstractmethod
    def judge(self, tally: Tensor) -> Judged:
        """The score of all tallied predictions."""

    def units(self, sequences: int, answers: int, mask: Tensor | None) -> int:
        """What a mean over part of a batch counts: sequences, or scored steps if each has a target."""
        if not self.everywhere:
            return sequences
        return answers if mask is None else int(mask.sum())
