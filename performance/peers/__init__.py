"""Perdure beside avalanche-lib: the same tasks, network, iterations and batches through both, in one run."""
