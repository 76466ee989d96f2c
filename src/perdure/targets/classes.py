"""Shared by label and tags: a class at each output step (SM, Eq. nll:cross:entropy)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from perdure.targets.confusion import confusion, judged
from perdure.targets.target import Array, Judged, Target, Y

if TYPE_CHECKING:
    import torch
    from torch import Tensor

IGNORED = -1
"""The class that means "ignored" in torch's cross-entropy, as in arrays."""
NOT_SCORED = (IGNORED, -100)
"""Tags of steps that are not scored, as people write them; -100 is what torch's losses ignore."""
UNLIKELY = -1e4
"""Logit of a class that cannot be the answer."""


class Classes(Target):
    """One logit per class: p = softmax(z)."""

    categorical: ClassVar[bool] = True

    def contents(self, y: Array, names: Sequence[Any]) -> dict[str, Any]:
        """How often each class occurs."""
        counts = np.bincount(y[y >= 0], minlength=len(names))
        return {str(name): count for name, count in zip(names, counts.tolist(), strict=True)}

    def asked(self, y: Y) -> Y:
        """All but -1."""
        return y >= 0

    def targets(self, rows: Tensor, mask: Tensor | None, dtype: torch.dtype) -> Tensor:
        """Classes [M]."""
        return rows.long() if mask is None else rows.long().masked_fill(~mask, 0)

    def negative_log_likelihood(self, logits: Tensor, targets: Tensor, mask: Tensor | None) -> Tensor:
        """Sum of -log softmax(z)_y."""
        from torch.nn import functional

        if mask is not None:
            targets = targets.masked_fill(~mask, IGNORED)
        return functional.cross_entropy(logits, targets, ignore_index=IGNORED, reduction="sum")

    def score(self, logits: Tensor, targets: Tensor, mask: Tensor | None) -> Tensor:
        """Prediction minus target: softmax(z) - e_y."""
        score = logits.softmax(1)
        score.scatter_add_(1, targets[:, None], score.new_full((len(score), 1), -1))
        return score if mask is None else score * mask[:, None]

    def exact_scores(self, logits: Tensor, mask: Tensor | None) -> Iterator[Tensor]:
        """One per class c: the expected square is sum_c p_c (d log p_c / dpsi)^2."""
        chances = logits.softmax(1)
        for output in range(logits.shape[1]):
            score = -chances
            score[:, output] += 1
            cotangent = chances[:, output, None].sqrt() * score
            yield cotangent if mask is None else cotangent * mask[:, None]

    def draw(self, logits: Tensor, generator: torch.Generator) -> Tensor:
        """A class with the probabilities softmax(z)."""
        chosen = logits.softmax(1).cpu().multinomial(1, generator=generator)
        return chosen[:, 0].to(logits.device)

    def distillation(
        self, logits: Tensor, teacher: Tensor, mask: Tensor | None, temperature: float
    ) -> Tensor:
        """T^2 CE(softmax(z/T), softmax(teacher/T)) (Hinton et al.)."""
        soft, hot = logits / temperature, teacher / temperature
        losses = -(hot.softmax(1) * soft.log_softmax(1)).sum(1)
        return (losses if mask is None else losses[mask]).sum() * temperature**2

    def uncertainty(self, logits: Tensor) -> Tensor:
        """- sum_c p_c log p_c / log C."""
        logs = logits.log_softmax(1)
        return -(logs.exp() * logs).sum(1) / math.log(max(logits.shape[1], 2))

    def tally(self, logits: Tensor, targets: Tensor, mask: Tensor | None) -> Tensor:
        """How often class i is true and j predicted [C, C]."""
        return confusion(targets, logits.argmax(1), logits.shape[1], mask)

    def judge(self, tally: Tensor) -> Judged:
        """Accuracy of the classes."""
        return judged(tally)
