"""Numbers at the last valid step (regression): y is [N, outputs], or NaN: ignored.

The likelihood is Gaussian with variance 1, so y should be of about that size: your own data are
standardised, and the target stores the scaling, to report errors in the user's units.

The score in percent is 100 R^2, with R^2 = 1 - sum (z - y)^2 / sum (y - mean y)^2 over all outputs (each
about its own mean). It is 0 for always predicting the mean of the data, and anything worse also counts as 0:
otherwise a task that is completely forgotten would outweigh all others in a mean, without bound. The error,
which is not clipped, shows how far off it is. If y does not vary, R^2 is 100 % if every prediction is right,
else 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from perdure.targets.target import Array, Judged, Target, Y

if TYPE_CHECKING:
    import torch
    from torch import Tensor


@dataclass(frozen=True)
class Value(Target):
    """The network's outputs z are means: p(y | x) = N(z, 1).

    If numbers were standardised, y = (given - offset) * factor; without these, y is unchanged.
    """

    offset: tuple[float, ...] = ()
    factor: tuple[float, ...] = ()

    name: ClassVar[str] = "value"
    score_name: ClassVar[str] = "R²"
    contents_name: ClassVar[str] = "values"

    @classmethod
    def fitted(cls, given: Array) -> Value:
        """The target under which the scored numbers of each column [N, outputs] have mean 0 and deviation 1.

        A column that does not vary is only shifted.
        """
        columns = [column[~np.isnan(column)].astype(np.float64) for column in given.T]
        return cls(
            tuple(float(column.mean()) if len(column) else 0.0 for column in columns),
            tuple(1 / float(column.std()) if len(column) and column.std() > 0 else 1.0 for column in columns),
        )

    def standardised(self, given: Array) -> Array:
        """Numbers in the user's units as y."""
        if not self.factor:
            return given
        y: Array = ((given - np.array(self.offset)) * np.array(self.factor)).astype(np.float32)
        return y

    def in_own_units(self, y: Array) -> Array:
        """The inverse of `standardised`."""
        if not self.factor:
            return y
        given: Array = y.astype(np.float64) / np.array(self.factor) + np.array(self.offset)
        return given

    def fault(self, y: Array, lengths: Array, steps: int, outputs: int) -> str | None:
        """What is wrong with y [N, outputs], if anything."""
        if y.shape != (len(lengths), outputs):
            return f"y of kind '{self.name}' must have shape {(len(lengths), outputs)}, but has {y.shape}"
        if not np.issubdtype(y.dtype, np.floating) or np.isinf(y).any():
            return "y must contain finite floating-point numbers (NaN: ignored)"
        if self.factor and not len(self.offset) == len(self.factor) == outputs:
            return f"the offset and factor of its values must be {outputs} numbers, one per output"
        return None

    def contents(self, y: Array, names: Sequence[Any]) -> dict[str, Any]:
        """Smallest, mean and largest number of each output, in the user's units."""
        columns = [column[~np.isnan(column)] for column in self.in_own_units(y).T]
        return {
            str(name): {
                "least": float(column.min()),
                "mean": float(column.mean()),
                "greatest": float(column.max()),
            }
            for name, column in zip(names, columns, strict=True)
            if len(column)
        }

    def answered(self, y: Array | Tensor) -> int:
        """The last step."""
        return 1

    def by_step(self, y: Y) -> Y:
        """Numbers [N, 1, outputs]."""
        return y[:, None]

    def asked(self, y: Y) -> Y:
        """All but NaN, which is the only value not equal to itself, in arrays and tensors alike."""
        asked: Y = y == y
        return asked

    def targets(self, rows: Tensor, mask: Tensor | None, dtype: torch.dtype) -> Tensor:
        """Numbers [M, outputs]."""
        return rows.to(dtype) if mask is None else rows.to(dtype).masked_fill(~mask, 0)

    def negative_log_likelihood(self, logits: Tensor, targets: Tensor, mask: Tensor | None) -> Tensor:
        """Sum of (z - y)^2 / 2; the constant log(2 pi) / 2 is left out."""
        return _half_squares(logits - targets, mask)

    def score(self, logits: Tensor, targets: Tensor, mask: Tensor | None) -> Tensor:
        """Prediction minus target: z - y."""
        score = logits - targets
        return score if mask is None else score * mask

    def exact_scores(self, logits: Tensor, mask: Tensor | None) -> Iterator[Tensor]:
        """One per output: with variance 1, the expected square is (dz/dpsi)^2, whatever y is."""
        for output in range(logits.shape[1]):
            cotangent = logits.new_zeros(logits.shape)
            cotangent[:, output] = 1 if mask is None else mask[:, output].to(logits.dtype)
            yield cotangent

    def draw(self, logits: Tensor, generator: torch.Generator) -> Tensor:
        """Numbers from N(z, 1)."""
        import torch

        noise = torch.randn(logits.shape, generator=generator, dtype=logits.dtype)
        return logits + noise.to(logits.device)

    def distillation(
        self, logits: Tensor, teacher: Tensor, mask: Tensor | None, temperature: float
    ) -> Tensor:
        """Sum of (z - teacher)^2 / 2; a mean cannot be softened, so the temperature is not used."""
        return _half_squares(logits - teacher, mask)

    def tally(self, logits: Tensor, targets: Tensor, mask: Tensor | None) -> Tensor:
        """For each output the number scored, and the sums of y, y^2 and (z - y)^2: [4, outputs]."""
        import torch

        y, wrong = targets.cpu().double(), (logits - targets).cpu().double()  # some devices have no float64
        sums = torch.stack([torch.ones_like(y), y, y.square(), wrong.square()])
        return (sums if mask is None else sums * mask.cpu()).sum(1)

    def judge(self, tally: Tensor) -> Judged:
        """R^2 in percent, at least 0, and the root mean squared error in the user's units."""
        count, total, squares, wrong = tally
        asked = int(count.sum())
        varied = float((squares - total.square() / count.clamp(min=1)).sum())
        missed = float(wrong.sum())
        explained = 1 - missed / varied if varied > 0 else float(missed == 0)
        scale = count.new_tensor(self.factor or [1.0])
        error = math.sqrt(float((wrong / scale.square()).sum()) / max(asked, 1))
        return Judged(100 * max(explained, 0.0), asked, error=error)


def _half_squares(wrong: Tensor, mask: Tensor | None) -> Tensor:
    """Half the sum of squares over all that is scored."""
    return (wrong if mask is None else wrong[mask]).square().sum() / 2
