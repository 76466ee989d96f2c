"""Euclidean distances between task embeddings, and between the weights of tasks (SM Fig. "transfer")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from perdure.errors import PerdureError
from perdure.learning.learner import LearnerState
from perdure.networks.layout import Layout


def distances(vectors: Sequence[Tensor]) -> list[list[float]]:
    """Euclidean distances between all pairs of vectors [K, K], in double precision."""
    stacked = torch.stack([vector.reshape(-1).double() for vector in vectors])
    # From differences, not from inner products, so that close vectors keep their precision.
    table = torch.cdist(stacked, stacked, compute_mode="donot_use_mm_for_euclid_dist")
    rows: list[list[float]] = table.tolist()
    return rows


def embedding_distances(state: LearnerState, tasks: Sequence[int]) -> list[list[float]]:
    """Distances between the embeddings e_k of a hypernetwork's tasks."""
    names = [f"embedding.{task}" for task in tasks]
    if not all(name in state.parameters for name in names):
        raise PerdureError("Only runs with a hypernetwork (hnet) have task embeddings.")
    return distances([state.parameters[name] for name in names])


def weight_distances(weights: Sequence[Mapping[str, Tensor]], layout: Layout) -> list[list[float]]:
    """Distances between tasks' weights within a layout, such as `network.body`.

    The body is what tasks can share; a generated psi also contains the unused heads of other tasks.
    """
    for psi in weights:
        if any(tuple(psi[name].shape) != shape for name, shape in layout.shapes.items()):
            raise PerdureError(
                "Distances between weights need networks with the same units; those of masked tasks differ."
            )
    return distances([layout.join(psi) for psi in weights])
