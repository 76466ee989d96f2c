"""The sequential variational autoencoder (SM "Sequential variational autoencoder").

The main network is the encoder: at each step, a linear map turns the heads' inputs into the mean and
log-variance of a Gaussian latent z_t. A decoder network maps z_1..z_T to the sequence. All terms are sums
over steps and features.
"""

from __future__ import annotations

import math
from typing import Literal

from torch import Tensor

from perdure.networks.arithmetic import exp, sigmoid, softplus

Likelihood = Literal["bernoulli", "gaussian"]


def sample_latent(xi: Tensor, noise: Tensor) -> Tensor:
    """Z = mean + exp(logvar / 2) * noise, for xi = [mean | logvar] [S, 2L] and noise [S, L]."""
    mean, log_variance = xi.chunk(2, dim=1)
    return mean + exp(log_variance / 2) * noise


def prior_matching(xi: Tensor, prior_sd: float) -> Tensor:
    """sum_t KL( N(mean, var) || N(0, prior_sd^2) ) over all rows (Eq. vae:pm:approx)."""
    mean, log_variance = xi.chunk(2, dim=1)
    ratio = exp(log_variance) / prior_sd**2
    square = mean.square() / prior_sd**2
    return (ratio + square - 1 - log_variance + 2 * math.log(prior_sd)).sum() / 2


def reconstruction(decoded: Tensor, x: Tensor, likelihood: Likelihood) -> Tensor:
    """- sum_t log p(x_t | z) up to a constant (Eq. vae:nll:approx); decoded are raw outputs [S, F].

    bernoulli: binary cross-entropy of sigmoid(decoded); gaussian: squared error, as in the original
    (the paper writes tau/2 times that).
    """
    return reconstruction_of_entries(decoded, x, likelihood).sum()


def reconstruction_of_entries(decoded: Tensor, x: Tensor, likelihood: Likelihood) -> Tensor:
    """The same before it is summed [S, F]."""
    if likelihood == "bernoulli":
        return softplus(decoded) - x * decoded
    return (x - decoded).square()


def emitted(decoded: Tensor, likelihood: Likelihood) -> Tensor:
    """The replayed sequence: the likelihood's mean (probabilities of bits are not rounded)."""
    return sigmoid(decoded) if likelihood == "bernoulli" else decoded
