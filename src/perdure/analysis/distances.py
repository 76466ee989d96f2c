"""Euclidean distances between task embeddings, and between the weights of tasks (SM Fig. "transfer")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from perdure.errors import PerdureError
from perdure.learning.learner import LearnerState
from perdure.networks.layout import Layout


def distances(vectors: Sequence[Tensor]) -> list[list[float]]:
    """Euclidean distance of all pairs of vectors [K, K], in double precision."""
    stacked = torch.stack([vector.reshape(-1).double() for vector in vectors])
    # By differences, not by inner products: close vectors keep their digits.
    table = torch.cdist(stacked, stacked, compute_mode="donot_use_mm_for_euclid_dist")
    rows: list[list[float]] = table.tolist()
    return rows


def embedding_distances(state: LearnerState, tasks: Sequence[int]) -> list[list[float]]:
    """Distances between the embeddings e_k of tasks of a hypernetwork."""
    names = [f"embedding.{task}" for task in tasks]
    if not all(name in state.parameters for name in names):
        raise PerdureError("Only runs with a hypernetwork (hnet) have task embeddings.")
    return distances([state.parameters[name] for name in names])


def weight_distances(weights: Sequence[Mapping[str, Tensor]], layout: Layout) -> list[list[float]]:
    """Distances between tasks' weights within a layout, such as `network.body`.

    The body is what tasks can share; a generated psi also has the heads of other tasks, which nothing uses.
    """
    for psi in weights:
        if any(tuple(psi[name].shape) != shape for name, shape in layout.shapes.items()):
            raise PerdureError(
                "Distances between weights need networks of the same units; masking gives each task its own."
            )
    return distances([layout.join(psi) for psi in weights])
