"""Gradient projection memory (Saha et al. 2021, "Gradient projection memory for continual learning").

The memory of a map is an orthonormal basis M of the subspace that old inputs span, and dW <- dW - dW M M^T.
After a task with inputs R (columns), the part outside the basis, R - M M^T R, is decomposed, and its largest
singular directions join M until ||M^T R||^2 >= threshold ||R||^2. Singular values and directions are those of
the second moment R R^T, which is all that is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from perdure.networks.activity import Moments
from perdure.networks.layout import Vectors
from perdure.penalties.projection import Projecting, Projectors


class GPM(Projecting):
    """Weights move only outside the subspace of old inputs."""

    name: ClassVar[str] = "gpm"
    idempotent: ClassVar[bool] = True
    summarises: ClassVar[bool] = True

    threshold: Annotated[float, Field(gt=0, le=1)] = 0.97
    """Fraction of the squared norm of a task's inputs that the basis must contain."""

    def projectors(self, memory: Mapping[str, Tensor]) -> Projectors:
        """I - M M^T on the input side."""
        basis = memory["basis"]
        eye = torch.eye(len(basis), dtype=basis.dtype, device=basis.device)
        return Projectors((eye - basis @ basis.t()).float())

    def remembered(self, memory: Mapping[str, Tensor], found: Moments) -> Vectors:
        """The basis with the directions that are missing."""
        moment = found.inputs.double()
        basis = memory["basis"] if memory else moment.new_zeros(len(moment), 0)
        return {"basis": extended(basis, moment, self.threshold)}

    def joined(self, earlier: Vectors, latest: Vectors, share: float) -> Vectors:
        """The earlier basis, with the directions that the latest one needs beside it."""
        del share
        bases = {
            name: extended(basis, latest[name] @ latest[name].t(), self.threshold)
            for name, basis in earlier.items()
        }
        return {**latest, **bases}


def extended(basis: Tensor, moment: Tensor, threshold: float) -> Tensor:
    """An orthonormal basis [F, k] with as many directions of a moment [F, F] as the threshold needs."""
    outside = torch.eye(len(moment), dtype=moment.dtype, device=moment.device) - basis @ basis.t()
    values, directions = torch.linalg.eigh(outside @ moment @ outside)
    total = float(moment.trace())
    rounding = torch.finfo(moment.dtype).eps * len(moment) * total
    held = float((basis.t() @ moment @ basis).trace())
    added = 0
    for value in values.flip(0).tolist():
        if held >= threshold * total or value <= rounding or basis.shape[1] + added == len(basis):
            break
        held, added = held + value, added + 1
    if not added:
        return basis
    # Rounding must not add up over tasks, so what joins is made orthogonal to the basis again.
    new, _ = torch.linalg.qr(outside @ directions.flip(1)[:, :added])
    return torch.cat([basis, new], dim=1)
