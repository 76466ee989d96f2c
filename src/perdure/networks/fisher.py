"""The diagonal of the Fisher information, from batched per-sample gradients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import get_args

import torch
from torch import Tensor

from perdure.benchmarks.task import Sequences, fault_of
from perdure.errors import PerdureError, unknown
from perdure.networks.batch import Batch, Data
from perdure.networks.layout import Weights
from perdure.networks.network import Network
from perdure.networks.sample_gradients import mean_sample_gradients
from perdure.networks.targets import draw, exact_scores, score
from perdure.options import Estimator


def fisher(
    network: Network,
    weights: Weights,
    data: Sequences | Data,
    *,
    task: int = 0,
    estimator: Estimator = "empirical",
    samples: int | None = None,
    generator: torch.Generator | None = None,
) -> Weights:
    """Mean over samples of the squared gradient of the sample's log-likelihood, per weight.

    F_i = 1/N sum_n E_y [ (d log p(y | x_n, psi) / d psi_i)^2 ], where the expectation is

    - `empirical`: the value at the true targets (as in the paper),
    - `sampled`: the value at targets drawn from the model (needs `generator`),
    - `exact`: taken over the model's own predictions, output by output; this takes as many backward
      sweeps as there are outputs times output steps.

    `samples` limits the estimate to that many random samples (needs `generator`; default: all). Weights
    that the task does not use, such as other heads, get 0. The result has the shapes of `weights`.
    """
    if estimator not in get_args(Estimator):
        raise unknown("Fisher estimator", str(estimator), get_args(Estimator))
    _check(network, data, task, samples)
    if isinstance(data, Sequences):
        first = next(iter(weights.values()))
        data = Data(data, first.device, first.dtype, lasting=False)
    subset = samples is not None and samples < len(data)
    if generator is None and (subset or estimator == "sampled"):
        raise PerdureError(
            "fisher: a random subset or sampled targets need a generator, "
            "such as perdure.randomness.generator(seed, 'fisher')."
        )
    index = torch.randperm(len(data), generator=generator)[:samples] if subset else torch.arange(len(data))

    def cotangents(logits: Tensor, batch: Batch) -> Iterator[Tensor]:
        return _cotangents(logits, batch, estimator, generator)

    return mean_sample_gradients(network, weights, data, index, task, cotangents)


def _check(network: Network, data: Sequences | Data, task: int, samples: int | None) -> None:
    """Raise a helpful error for what the network cannot read, or what would give no numbers."""
    if task not in range(network.tasks):
        known = "0" if network.tasks == 1 else f"from 0 to {network.tasks - 1}"
        raise PerdureError(
            f"fisher: task must be the index of one of the network's, {known} (given: {task!r})."
        )
    if not isinstance(data, (Sequences, Data)):
        raise PerdureError(f"fisher: data must be perdure.Sequences (given: a {type(data).__name__}).")
    outputs = max(columns.stop for columns in network.columns(task).values())  # those of all heads it reads
    if isinstance(data, Sequences) and (fault := fault_of(data, outputs)):
        raise PerdureError(f"fisher: {fault}.")
    if not len(data) or (samples is not None and samples < 1):
        raise PerdureError(f"fisher: at least one sample is needed (given: {samples} of {len(data)}).")
    features = (data.x if data.table is None else data.table).shape[-1]
    if features != network.inputs:
        raise PerdureError(f"fisher: x has {features} features, but the network reads {network.inputs}.")


def _cotangents(
    logits: Tensor, batch: Batch, estimator: Estimator, generator: torch.Generator | None
) -> Iterator[Tensor]:
    """Gradients of log p with respect to the logits (up to sign) whose squares are to be added."""
    if estimator == "exact":
        yield from exact_scores(logits, batch)
        return
    if estimator == "sampled":
        assert generator is not None
        batch = replace(batch, targets=draw(logits, batch, generator))
    yield score(logits, batch)
