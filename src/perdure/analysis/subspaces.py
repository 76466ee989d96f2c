"""The subspaces of the hidden space that the output heads read (SM "Task Similarity and Forward Transfer").

V_k are the right singular vectors of a head's weight matrix: an orthonormal basis of what the head reads.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def readout_basis(head: Tensor, threshold: float = 0.0) -> Tensor:
    """Orthonormal rows V [p, H] that span what a head's weights [outputs, H] read.

    Directions with a singular value of at most `threshold` times the largest are left out; by default only
    those that differ from zero by rounding alone, so that all others count, as in the original.
    """
    _, values, vectors = torch.linalg.svd(head.double(), full_matrices=False)
    rounding = max(head.shape) * torch.finfo(head.dtype).eps
    basis: Tensor = vectors[values > values[0] * max(threshold, rounding)]
    return basis


def similarity(first: Tensor, second: Tensor) -> float:
    """||V_k V_l^T||_F of two bases [p, H]: 0 for orthogonal subspaces, sqrt(p) for equal ones."""
    return float(torch.linalg.matrix_norm(first @ second.t()))


def similarities(bases: Sequence[Tensor]) -> list[list[float]]:
    """The similarity of all pairs [K, K]; its square is the sum of cos^2 of the principal angles."""
    return [[similarity(first, second) for second in bases] for first in bases]


def principal_angles(first: Tensor, second: Tensor) -> list[float]:
    """Angles between two subspaces in degrees, smallest first; accurate for small angles too."""
    from scipy.linalg import subspace_angles

    angles = subspace_angles(first.double().t().numpy(), second.double().t().numpy())
    return sorted(float(angle) for angle in torch.rad2deg(torch.from_numpy(angles)))
