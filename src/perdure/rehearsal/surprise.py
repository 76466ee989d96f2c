"""How badly a task's decoder reconstructs sequences: small for sequences of its own task."""

from __future__ import annotations

import torch
from torch import Tensor

from perdure.networks.arithmetic import linear
from perdure.networks.batch import Batch, unlabelled
from perdure.networks.layout import Vectors
from perdure.networks.variational import reconstruction_of_entries
from perdure.rehearsal.generative import Generative, decoder_part, latent_layout
from perdure.weights.source import TaskNetwork


@torch.no_grad()
def reconstruction_errors(
    options: Generative, parameters: Vectors, buffers: Vectors, encoder: TaskNetwork, batch: Batch, task: int
) -> Tensor:
    """The mean loss per step of each sequence [B], through the mean of its latents and the task's decoder."""
    network, weights = encoder
    xi = linear(
        network.features(weights, batch, task),
        *latent_layout(options, network).split(parameters["latent"]).values(),
    )
    mean, _ = xi.chunk(2, dim=1)
    own, kept = decoder_part(parameters), decoder_part(buffers)
    decoder, psi = options.source.weights(options.decoder(network), kept, own, task)
    decoded = decoder(psi, unlabelled(mean, batch.packing), task)
    rows = reconstruction_of_entries(decoded, batch.rows, options.likelihood).sum(1)
    return batch.packing.unpack(rows[:, None])[..., 0].sum(1) / batch.packing.lengths
