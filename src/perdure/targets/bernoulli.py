"""Independent bits, each with its own logit, at each output step (SM, Eq. nll:copy)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from perdure.targets.confusion import confusion, judged
from perdure.targets.target import Judged, Target

if TYPE_CHECKING:
    import torch
    from torch import Tensor


class Bernoulli(Target):
    """One logit z per bit: p(1) = s(z)."""

    def targets(self, rows: Tensor, mask: Tensor | None, dtype: torch.dtype) -> Tensor:
        """Bits as floating point [M, outputs]."""
        return rows.to(dtype) if mask is None else rows.to(dtype).masked_fill(~mask, 0)

    def negative_log_likelihood(self, logits: Tensor, targets: Tensor, mask: Tensor | None) -> Tensor:
        """Sum of -y log s(z) - (1 - y) log(1 - s(z))."""
        from torch.nn import functional

        # The same as softplus(z) - y z: two passes instead of six.
        losses = functional.softplus(logits) - targets * logits
        return losses.sum() if mask is None else losses[mask].sum()

    def score(self, logits: Tensor, targets: Tensor, mask: Tensor | None) -> Tensor:
        """Prediction minus target: s(z) - y."""
        score = logits.sigmoid() - targets
        return score if mask is None else score * mask

    def exact_scores(self, logits: Tensor, mask: Tensor | None) -> Iterator[Tensor]:
        """One per bit: the expected square is p (1 - p) (dz/dpsi)^2, and bits are independent."""
        for output in range(logits.shape[1]):
            chance = logits[:, output].sigmoid()
            cotangent = logits.new_zeros(logits.shape)
            cotangent[:, output] = (chance * (1 - chance)).sqrt()
            if mask is not None:
                cotangent[:, output] *= mask[:, output]
            yield cotangent

    def draw(self, logits: Tensor, generator: torch.Generator) -> Tensor:
        """Each bit is 1 with probability s(z)."""
        import torch

        chance = torch.rand(logits.shape, generator=generator, dtype=logits.dtype)
        return (chance.to(logits.device) < logits.sigmoid()).to(logits.dtype)

    def distillation(
        self, logits: Tensor, teacher: Tensor, mask: Tensor | None, temperature: float
    ) -> Tensor:
        """T^2 BCE(s(z/T), s(teacher/T)) (Hinton et al.)."""
        from torch.nn import functional

        soft, hot = logits / temperature, teacher / temperature
        losses = functional.softplus(soft) - hot.sigmoid() * soft
        return (losses if mask is None else losses[mask]).sum() * temperature**2

    def uncertainty(self, logits: Tensor) -> Tensor:
        """The mean over bits of -p log p - (1 - p) log(1 - p), divided by log 2."""
        from torch.nn import functional

        return (functional.softplus(logits) - logits * logits.sigmoid()).mean(1) / math.log(2)

    def tally(self, logits: Tensor, targets: Tensor, mask: Tensor | None) -> Tensor:
        """Counts of true and predicted 0 and 1 [2, 2]; 1 is predicted where z >= 0."""
        return confusion(targets, (logits >= 0).long(), 2, mask)

    def judge(self, tally: Tensor) -> Judged:
        """Accuracy of the bits."""
        return judged(tally)
