"""The Fisher information of your own network, on sequences of different lengths."""

from __future__ import annotations

import numpy as np

import perdure

chance = np.random.default_rng(0)
lengths = chance.integers(5, 30, 200)
x = chance.normal(size=(200, 30, 3)).astype(np.float32)
labels = (x[:, :5, 0].sum(1) > 0).astype(int)
data = perdure.Sequences(perdure.Label(), x, labels, lengths)

network = perdure.Network(perdure.Recurrent(cell="gru", hidden=(16,)), inputs=3, outputs=[2])
weights = perdure.initialise(network.layout, perdure.generator(0, "weights"))
for estimator in ("empirical", "exact"):
    values = perdure.fisher(network, weights, data, estimator=estimator)
    mean = values["recurrent.0.weight_hh"].mean()
    print(f"{estimator:>9}: mean Fisher of the recurrent weights {mean:.3e}")
