"""The functions of a batch's target, applied to the network's outputs.

The losses of classes and bits run in the compiled library where it is available, unless a target has its own.

The loss of a sample is its negative log-likelihood, summed over the steps and outputs that are scored; a
mini-batch's loss is the mean over its samples. All regularisation strengths refer to this scale.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from perdure.networks.arithmetic import sigmoid
from perdure.networks.batch import Batch
from perdure.networks.native.losses import bit_loss, class_loss, teacher_loss
from perdure.targets.bernoulli import Bernoulli
from perdure.targets.classes import IGNORED, Classes
from perdure.targets.target import Target


def negative_log_likelihood(logits: Tensor, batch: Batch) -> Tensor:
    """Sum over all samples, steps and outputs of -log p(y | x); logits [M, outputs]."""
    target, wanted, mask = _of(batch), batch.targets, batch.mask
    own, loss = type(target).negative_log_likelihood, None
    if own is Classes.negative_log_likelihood:
        loss = class_loss(logits, wanted if mask is None else wanted.masked_fill(~mask, IGNORED))
    elif own is Bernoulli.negative_log_likelihood:
        loss = bit_loss(logits, wanted, mask)
    return target.negative_log_likelihood(logits, wanted, mask) if loss is None else loss


def score(logits: Tensor, batch: Batch) -> Tensor:
    """D NLL / d logits [M, outputs]; 0 where nothing is scored."""
    # In double precision, so that the digits of what is rounded do not depend on the processor.
    return _of(batch).score(logits.double(), batch.targets, batch.mask).to(logits.dtype)


def exact_scores(logits: Tensor, batch: Batch) -> Iterator[Tensor]:
    """Cotangents [M, outputs], some per output step, whose squares add up to the exact Fisher.

    Outputs are independent given x and each score has mean zero, so the expected square of their sum is the
    sum of expected squares.
    """
    target, offsets = _of(batch), batch.answers.offsets
    for step in range(batch.answers.steps):
        rows = slice(*offsets[step : step + 2])
        mask = None if batch.mask is None else batch.mask[rows]
        for part in target.exact_scores(logits[rows].double(), mask):
            cotangent = torch.zeros_like(logits)
            cotangent[rows] = part
            yield cotangent


def draw(logits: Tensor, batch: Batch, generator: torch.Generator) -> Tensor:
    """Targets drawn from the network's own predictions; the batch's mask applies to them too."""
    return _of(batch).draw(logits, generator)


def distillation(logits: Tensor, teacher: Tensor, batch: Batch, temperature: float) -> Tensor:
    """The loss against a teacher's outputs [M, outputs], summed over all that is scored."""
    target = _of(batch)
    own, loss = type(target).distillation, None
    if own is Classes.distillation:
        loss = teacher_loss(logits, teacher, batch.mask, temperature)
    elif own is Bernoulli.distillation:
        loss = bit_loss(logits, sigmoid(teacher / temperature), batch.mask, temperature)
    return target.distillation(logits, teacher, batch.mask, temperature) if loss is None else loss


def tally(logits: Tensor, batch: Batch) -> Tensor:
    """What `batch.target.judge` needs; tallies of several batches are added."""
    return _of(batch).tally(logits, batch.targets, batch.mask)


def tally_of_step(logits: Tensor, batch: Batch, step: int) -> Tensor:
    """The tally of one output step only (from 0)."""
    rows = slice(*batch.answers.offsets[step : step + 2])
    mask = None if batch.mask is None else batch.mask[rows]
    return _of(batch).tally(logits[rows], batch.targets[rows], mask)


def units(batch: Batch) -> int:
    """What a mean over part of a batch counts: its sequences, or its scored steps if each has a target."""
    return _of(batch).units(len(batch), batch.answers.offsets[-1], batch.mask)


def _of(batch: Batch) -> Target:
    assert batch.target is not None, "these rows have no target"
    return batch.target
