"""Accuracy and weighted F1 from a confusion matrix [C, C]: how often class i is true and j predicted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perdure.targets.target import Array, Judged

if TYPE_CHECKING:
    from torch import Tensor


def confusion(asked: Tensor, answered: Tensor, classes: int, mask: Tensor | None) -> Tensor:
    """The confusion matrix of some predictions."""
    if mask is not None:
        asked, answered = asked[mask], answered[mask]
    pairs = asked.long() * classes + answered
    return pairs.flatten().bincount(minlength=classes**2).view(classes, classes)


def judged(table: Tensor) -> Judged:
    """Accuracy and weighted F1 in percent."""
    asked = int(table.sum())
    return Judged(100 * int(table.trace()) / max(asked, 1), asked, f1=100 * weighted_f1(table))


def weighted_f1(table: Tensor) -> float:
    """Mean over classes, weighted by how often they occur, of F1 = 2 TP / (2 TP + FP + FN)."""
    right, asked, answered = table.diagonal().double(), table.sum(1).double(), table.sum(0).double()
    f1 = 2 * right / (asked + answered).clamp(min=1)
    return float((f1 * asked).sum() / asked.sum().clamp(min=1))


def integer_fault(y: Array, highest: int) -> str | None:
    """What is wrong with targets that must be integers up to `highest`, or -1."""
    if not np.issubdtype(y.dtype, np.integer) or y.min() < -1 or y.max() > highest:
        return f"y must contain integers from 0 to {highest} (-1: ignored)"
    return None
