"""Shared by weight-importance methods: an anchor, importance values, a weighted distance.

The memory holds `importance.NAME` and `anchor.NAME` for each parameter vector, at full length.
"""

from __future__ import annotations

import torch
from torch import Tensor

from perdure.networks.layout import Vectors
from perdure.weights.source import Positions, put, take


class Anchored:
    """sum_i importance_i (psi_i - anchor_i)^2 over the active entries (paper Eq. 1)."""

    def __init__(self, memory: Vectors, positions: Positions) -> None:
        """Restrict the memory to what is trained now; new vectors are free."""
        known = {name: where for name, where in positions.items() if f"anchor.{name}" in memory}
        self.importance = take(_part(memory, "importance."), known)
        self.anchor = take(_part(memory, "anchor."), known)

    def distance(self, active: Vectors) -> Tensor | None:
        """The weighted squared distance, or None if nothing is anchored yet."""
        parts = [
            torch.dot(self.importance[name], (active[name] - anchor).square())
            for name, anchor in self.anchor.items()
        ]
        return sum(parts[1:], parts[0]) if parts else None


def remember(
    memory: Vectors, positions: Positions, added: Vectors, active: Vectors, parameters: Vectors
) -> Vectors:
    """The memory with importance values added and the anchor moved to the trained weights.

    The anchor also moves for weights that were trained without importance, such as rehearsed heads.
    """
    result = dict(memory)
    for name, where in positions.items():
        full = torch.zeros_like(parameters[name])
        before = {name: result.get(f"importance.{name}", full)}
        total = {name: take(before, {name: where})[name] + added.get(name, 0)}
        result[f"importance.{name}"] = put(before, total, {name: where})[name]
        anchors = {name: result.get(f"anchor.{name}", full)}
        result[f"anchor.{name}"] = put(anchors, active, {name: where})[name]
    return result


def averaged(earlier: Vectors, latest: Vectors, share: float) -> Vectors:
    """The importance of a task that was learnt in several visits, as their mean; anchors are the latest."""
    means = {
        name: torch.lerp(vector, latest[name], share)
        for name, vector in earlier.items()
        if name.startswith("importance.")
    }
    return {**latest, **means}


def _part(memory: Vectors, prefix: str) -> Vectors:
    return {name.removeprefix(prefix): vector for name, vector in memory.items() if name.startswith(prefix)}
