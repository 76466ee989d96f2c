"""Losses and metrics of the three target kinds (SM, Eq. nll:cross:entropy and nll:copy).

The loss of a sample is its negative log-likelihood summed over the steps and bits that are asked; a
mini-batch's loss is the mean over its samples. All regularisation strengths refer to this scale.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from perdure.benchmarks.task import Kind
from perdure.networks.batch import Batch


def negative_log_likelihood(logits: Tensor, batch: Batch) -> Tensor:
    """Sum over all samples, steps and bits of -log p(y | x); logits [M, outputs]."""
    if batch.kind is Kind.PATTERN:
        # -y log s(z) - (1 - y) log(1 - s(z)) = softplus(z) - y z: two passes instead of six.
        losses = functional.softplus(logits) - batch.targets * logits
        if batch.complete:
            return losses.sum()
        return losses[batch.targets >= 0].sum()
    return functional.cross_entropy(logits, batch.targets, ignore_index=-1, reduction="sum")


def confusion(logits: Tensor, batch: Batch) -> Tensor:
    """How often class i was asked and j answered [C, C]; bits are two classes (1: logit >= 0)."""
    if batch.kind is Kind.PATTERN:
        classes, answers = 2, (logits >= 0).long()
    else:
        classes, answers = logits.shape[1], logits.argmax(1)
    asked = batch.targets >= 0
    pairs = batch.targets[asked].long() * classes + answers[asked]
    return torch.bincount(pairs, minlength=classes**2).view(classes, classes)


def draw(logits: Tensor, batch: Batch, generator: torch.Generator) -> Tensor:
    """Targets drawn from the network's own prediction; what is not asked stays -1."""
    if batch.kind is Kind.PATTERN:
        chance = torch.rand(logits.shape, generator=generator, dtype=logits.dtype)
        drawn = (chance.to(logits.device) < logits.sigmoid()).to(batch.targets.dtype)
    else:
        chosen = torch.multinomial(logits.softmax(1).cpu(), 1, generator=generator)
        drawn = chosen[:, 0].to(batch.targets.device)
    return torch.where(batch.targets < 0, batch.targets, drawn)


def distillation(logits: Tensor, teacher: Tensor, batch: Batch, temperature: float) -> Tensor:
    """Cross-entropy to a teacher's softened answers, times T^2 (Hinton et al.); sum over all rows.

    Bits: BCE(s(z/T), s(teacher/T)); classes: CE(softmax(z/T), softmax(teacher/T)). What is not asked
    is left out.
    """
    soft, hot = logits / temperature, teacher / temperature
    if batch.kind is Kind.PATTERN:
        losses = functional.softplus(soft) - hot.sigmoid() * soft
    else:
        losses = -(hot.softmax(1) * soft.log_softmax(1)).sum(1)
    if not batch.complete or batch.kind is Kind.TAGS:
        losses = losses[batch.targets >= 0]
    return losses.sum() * temperature**2
