"""Recurrent networks as pure functions f(x, lengths, psi): the weights are always an argument."""
