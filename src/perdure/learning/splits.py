"""A task's data as a learner sees them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from perdure.networks.batch import Data


@dataclass(frozen=True)
class Splits:
    """A task's data on the device."""

    name: str
    outputs: int
    """Number of outputs of the task's head."""
    train: Data
    val: Data
    test: Data
    told: bool = field(default=True, kw_only=True)
    """Whether it is known at test time which task a sequence belongs to."""


def digest_of(data: Sequence[Splits]) -> str:
    """Identifies the sequences and targets of all tasks; word vectors, if there are any, do not count."""
    digest = hashlib.blake2b(digest_size=16)
    for splits in data:
        for part in (splits.train, splits.val, splits.test):
            add_tensors(digest, (part.x, part.y, part.all_lengths))
    return digest.hexdigest()


def add_tensors(digest: Any, tensors: Iterable[Tensor]) -> None:
    """Let a digest of hashlib also depend on tensors: on their types, shapes and values."""
    for tensor in tensors:
        digest.update(f"{tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().data)


def outputs_of(data: Sequence[Splits]) -> list[int]:
    """The numbers of outputs of tasks."""
    return [splits.outputs for splits in data]
