"""Print ratios, each with its bound: python -m performance [PART ...], or make bench for all parts."""

from __future__ import annotations

import argparse
import sys

from performance import fisher, iterations, kernels, lengths, search, training

PARTS = {
    "fisher": fisher,  # the first: it measures memory, which needs a process that has not used much yet
    "iterations": iterations,
    "kernels": kernels,
    "training": training,
    "lengths": lengths,
    "search": search,
}


def main() -> int:
    """Measure the parts that are asked for; 1 if a bound is not kept."""
    reader = argparse.ArgumentParser(prog="python -m performance", description=__doc__)
    reader.add_argument("part", nargs="*", metavar="PART", help=f"all, or some of {', '.join(PARTS)}")
    asked = reader.parse_args().part
    if strange := [name for name in asked if name not in PARTS]:
        reader.error(f"there is no part '{strange[0]}'; choose from {', '.join(PARTS)}")
    kept = [bound for name, part in PARTS.items() if not asked or name in asked for bound in part.report()]
    print(f"{sum(kept)} of {len(kept)} bounds kept")
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
