"""Is a network still able to learn after many tasks? Dormant units and the rank of its states.

Of the states of a recurrent layer [M, H], pooled over sequences and steps. A unit is dormant if it varies by
less than a fraction tau of what units vary on average (after Sokar et al. 2023, "The dormant neuron
phenomenon in deep reinforcement learning", who take the mean activity of ReLU units; a tanh unit can also be
stuck at 1). The effective rank is the exponential of the entropy of the singular values of the centred states
(Roy & Vetterli 2007).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

TAU = 0.025
"""A unit that varies by less than this fraction of the average is dormant."""


class Plasticity(NamedTuple):
    """What the newest task finds after a phase."""

    accuracy: float
    """Of the newest task, in percent."""
    dormant: float
    """Dormant units in percent."""
    rank: float
    """Effective rank of the states."""


def dormant_share(states: Tensor, tau: float = TAU) -> float:
    """Fraction of the units of states [M, H] that hardly vary."""
    spread = states.double().std(0, correction=0)
    return float((spread <= tau * spread.mean()).double().mean())


def effective_rank(states: Tensor) -> float:
    """exp(- sum p log p), p the shares of the singular values of the centred states [M, H]."""
    centred = states.double() - states.double().mean(0)
    values = torch.linalg.svdvals(centred)
    total = float(values.sum())
    if total == 0:
        return 0.0
    shares = values[values > 0] / total
    return float(torch.exp(-(shares * shares.log()).sum()))
