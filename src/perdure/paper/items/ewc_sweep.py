"""Online EWC's trade-off between stability and plasticity: three strengths on AudioSet."""

from __future__ import annotations

from perdure.paper.comparison import row
from perdure.paper.sweep import SweepItem, SweepPoint

STRENGTHS = (1.0, 100.0, 10_000.0)
"""Below, at, and above the strength of the AudioSet table; those of the figure are not stated."""
CLASSES = (2, 6, 10)

ITEM = SweepItem(
    title="Online EWC on AudioSet with three strengths",
    source="SM Fig. (supp:fig:audioset_lambdas)",
    about="A low strength learns tasks well but forgets them; a high one retains them but learns less well.",
    axis="classes per task c",
    note="The paper shows these numbers only in a figure.",
    points=tuple(
        SweepPoint(
            f"λ = {strength:g}",
            c,
            row(
                f"λ = {strength:g}, c = {c}",
                "audioset",
                "online-ewc",
                options={"benchmark.classes": c, "penalties.online-ewc.strength": strength},
            ),
        )
        for strength in STRENGTHS
        for c in CLASSES
    ),
)
