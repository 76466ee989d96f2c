"""Print every ratio: python -m performance, or make bench."""

from __future__ import annotations

import sys

from performance import fisher, iterations, kernels, lengths, training

kept = [*iterations.report(), *kernels.report(), *fisher.report(), *training.report(), *lengths.report()]
print(f"{sum(kept)} of {len(kept)} bounds kept")
sys.exit(0 if all(kept) else 1)
