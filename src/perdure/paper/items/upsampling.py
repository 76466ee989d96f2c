"""Longer sequences that are not harder: up-sampled digits compared with more digits, with Online EWC."""

from __future__ import annotations

from perdure.paper.comparison import row
from perdure.paper.sweep import SweepItem, SweepPoint

MORE_DIGITS = ((97.05, 0.59), (76.65, 3.39), (75.26, 1.85), (73.16, 0.98))
UPSAMPLED = ((97.05, 0.59), (95.35, 1.06), (94.65, 0.85), (96.27, 0.66))

ITEM = SweepItem(
    title="Sequence length without difficulty: up-sampled digits",
    source="SM Table (supp:tab:upsampling), n = 10",
    about=(
        "Sequences become l times longer through more digits (m = l), which is harder, or through more "
        "points per stroke (u = l), which is not. Only difficulty hurts Online EWC."
    ),
    axis="length factor l",
    points=(
        *(
            SweepPoint(
                "varying m",
                factor,
                row(
                    f"m = {factor}",
                    "smnist",
                    "online-ewc",
                    None,
                    MORE_DIGITS[factor - 1],
                    {"benchmark.digits": factor},
                ),
            )
            for factor in (1, 2, 3, 4)
        ),
        *(
            SweepPoint(
                "varying u",
                factor,
                row(
                    f"u = {factor}",
                    "smnist",
                    "online-ewc",
                    None,
                    UPSAMPLED[factor - 1],
                    {"benchmark.upsampling": factor},
                ),
            )
            for factor in (1, 2, 3, 4)
        ),
    ),
)
