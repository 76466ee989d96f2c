"""Averaged GEM (Chaudhry et al. 2019): perdure run permuted-copy a-gem --plugin a_gem.py"""

import torch

from perdure import Method, Rehearsal, Term
from perdure.networks.together import logits_of
from perdure.rehearsal.samples import choose_random, store, stored_samples, unstore


class AGEM(Rehearsal):
    """A step must not raise the loss on stored samples; a gradient that would is projected."""

    name, rehearses = "a-gem", False
    size: int = 50
    """Samples that are kept of each task."""
    begin = lambda self, memory, context: AGEMTerm(self, memory, context)  # noqa: E731
    stored = lambda self, memory: stored_samples(memory)  # noqa: E731
