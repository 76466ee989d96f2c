"""Longer sequences that are not harder: up-sampled digits compared with more digits, with Online EWC."""

from __future__ import annotations

from perdure.paper.comparison import row
from perdure.paper.conclusions import difference, interaction
from perdure.paper.sweep import SweepItem, SweepPoint

MORE_DIGITS = ((97.05, 0.59), (76.65, 3.39), (75.26, 1.85), (73.16, 0.98))
UPSAMPLED = ((97.05, 0.59), (95.35, 1.06), (94.65, 0.85), (96.27, 0.66))

ITEM = SweepItem(
    title="Sequence length without difficulty: up-sampled digits",
    source="SM Table (supp:tab:upsampling), n = 10",
    about=(
        "Sequences become l times longer through more digits (m = l), which is harder, or through more "
        "points per stroke (u = l), which is not; always with Online EWC."
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
    laptop_seeds=3,
    claims=(
        difference("more digits hurt Online EWC", "m = 1", "m = 4"),
        difference("longer sequences alone do not hurt Online EWC", "u = 1", "u = 4", "same"),
        interaction(
            "more digits hurt Online EWC more than longer sequences do",
            "fall from m = 1 to m = 4 minus that from u = 1 to u = 4",
            ("m = 1", "m = 4", "u = 1", "u = 4"),
        ),
    ),
)
