"""How badly a task's decoder reconstructs sequences: small for sequences of its own task."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from perdure.networks.batch import Batch, unlabelled
from perdure.networks.layout import Vectors
from perdure.rehearsal.generative import DECODER, Generative, latent_layout
from perdure.weights.source import TaskNetwork


@torch.no_grad()
def reconstruction_errors(
    options: Generative, parameters: Vectors, buffers: Vectors, encoder: TaskNetwork, batch: Batch, task: int
) -> Tensor:
    """The mean loss per step of each sequence [B], through the mean of its latents and the task's decoder."""
    network, weights = encoder
    xi = functional.linear(
        network.features(weights, batch, task),
        *latent_layout(options, network).split(parameters["latent"]).values(),
    )
    mean, _ = xi.chunk(2, dim=1)
    own = {n.removeprefix(DECODER): v for n, v in parameters.items() if n.startswith(DECODER)}
    kept = {n.removeprefix(DECODER): v for n, v in buffers.items() if n.startswith(DECODER)}
    decoder, psi = options.source.weights(options.decoder(network), kept, own, task)
    decoded = decoder(psi, unlabelled(mean, batch.packing), task)
    if options.likelihood == "bernoulli":
        rows = functional.binary_cross_entropy_with_logits(decoded, batch.rows, reduction="none").sum(1)
    else:
        rows = (batch.rows - decoded).square().sum(1)
    return batch.packing.unpack(rows[:, None])[..., 0].sum(1) / batch.packing.lengths
