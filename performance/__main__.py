"""Print every ratio: python -m performance, or make bench."""

from __future__ import annotations

import sys

from performance import fisher, iterations, kernels, lengths, search, training

# The Fisher first: it measures memory, which needs a process that has not used much yet.
parts = (fisher, iterations, kernels, training, lengths, search)
kept = [bound for part in parts for bound in part.report()]
print(f"{sum(kept)} of {len(kept)} bounds kept")
sys.exit(0 if all(kept) else 1)
