"""How far back in time an output's input is: the length of the path that its gradient takes.

Of a task that recalls a pattern, each output step repeats one input step. The path from one to the other has
as many steps as lie between them (SM "Increased difficulty of the Permuted Copy Task"); its mean is the same
in any order of recall, its spread is not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perdure.benchmarks.task import Sequences
from perdure.errors import PerdureError


def path_lengths(data: Sequences) -> list[int]:
    """For each output step, the steps back to the input that it repeats; the outputs end the sequence."""
    x, y = np.asarray(data.x), np.asarray(data.y)
    outputs, width = y.shape[1:]
    first = x.shape[1] - outputs
    found = []
    for step in range(outputs):
        same = (x[:, :first, :width] == y[:, step : step + 1]).all(axis=(0, 2))
        if same.sum() != 1:
            raise PerdureError(f"Output step {step + 1} does not repeat exactly one input step.")
        found.append(first + step - int(same.argmax()))
    return found


def slope(lengths: Sequence[float], accuracies: Sequence[float]) -> float:
    """Least-squares change of accuracy in percentage points for each further step back in time."""
    away = np.asarray(lengths, dtype=float) - np.mean(lengths)
    return float(away @ np.asarray(accuracies, dtype=float) / (away @ away))
