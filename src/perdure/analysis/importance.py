"""Mean importance of recurrent weights (paper Fig. 3c; SM for SI and for LSTMs).

The mean is taken over all entries of the hidden-to-hidden tensors W_hh and b_hh, over all gates, layers and
directions, and separately over those of the Elman readout, W_ho and b_ho.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from perdure.errors import PerdureError
from perdure.learning.learner import Learner, LearnerState
from perdure.networks.layout import Weights

RECURRENT = "_hh"
"""How the names of recurrent weights and their biases end."""
KEEPERS = ("online-ewc", "si")
"""Penalties that store importance values of weights."""


class Means(NamedTuple):
    """Mean importance of the recurrent weights and of the readout's weights (None for cells without one)."""

    recurrent: float
    readout: float | None


def mean_importance(values: Mapping[str, Tensor]) -> Means:
    """Means over the recurrent tensors of values given per weight, such as a Fisher."""
    recurrent = _mean(values, RECURRENT)
    if recurrent is None:
        raise PerdureError("These values include no recurrent weights, such as recurrent.0.weight_hh.")
    return Means(recurrent, _mean(values, "_ho"))


def _mean(values: Mapping[str, Tensor], suffix: str) -> float | None:
    """Mean over all entries of the tensors whose names have the suffix."""
    entries = [value.reshape(-1).double() for name, value in values.items() if name.endswith(suffix)]
    return float(torch.cat(entries).mean()) if entries else None


def keeper_of(learner: Learner) -> str | None:
    """The penalty of a learner that stores the importance of each weight, if there is one."""
    kept = [name for name in KEEPERS if name in learner.penalties]
    return kept[0] if kept and not learner.source.generates else None


def stored_importance(state: LearnerState, penalty: str) -> Weights:
    """The importance of each weight of the body that a penalty has accumulated so far, by name.

    Weights outside all sub-networks trained so far (masking) have importance 0.
    """
    memory = state.memories.get(penalty, {})
    if "importance.body" not in memory:
        raise PerdureError(f"The memory of '{penalty}' contains no importance values of a network's weights.")
    return state.network.body.split(memory["importance.body"])


def own_importance(
    learner: Learner, before: LearnerState | None, after: LearnerState, penalty: str
) -> Weights:
    """What the last phase added to the importance: F^(k) = F_after - gamma F_before (gamma 1 for SI)."""
    values = stored_importance(after, penalty)
    if before is None:
        return values
    gamma = float(getattr(learner.penalties[penalty], "gamma", 1.0))
    old = stored_importance(before, penalty)
    return {name: value - gamma * old[name] for name, value in values.items()}
