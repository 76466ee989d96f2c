"""Print every ratio: python -m performance, or make bench."""

from __future__ import annotations

import sys

from performance import fisher, kernels, lengths, training

kept = [*fisher.report(), *kernels.report(), *training.report(), *lengths.report()]
print(f"{sum(kept)} of {len(kept)} bounds kept")
sys.exit(0 if all(kept) else 1)
