"""Online EWC's trade-off between stability and plasticity: three strengths on AudioSet."""

from __future__ import annotations

from perdure.paper.comparison import row
from perdure.paper.conclusions import Claim, forgotten
from perdure.paper.sweep import SweepItem, SweepPoint

STRENGTHS = (1.0, 100.0, 10_000.0)
"""Below, at, and above the published strength of the AudioSet table; those of the figure are not stated."""
CLASSES = range(2, 11)

ITEM = SweepItem(
    title="Online EWC on AudioSet with three strengths",
    source="SM Fig. (supp:fig:audioset_lambdas)",
    about="Online EWC with a weak, a usual and a strong penalty, on tasks of more and more classes.",
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
    claims=(
        forgotten("a low strength forgets", "λ = 1, c = 10"),
        Claim(
            "a low strength learns new tasks better than a high one",
            "λ = 1 minus λ = 10000 (c = 10, during)",
            ((1.0, "λ = 1, c = 10", "during"), (-1.0, "λ = 10000, c = 10", "during")),
            "more",
        ),
        Claim(
            "a low strength forgets more than a high one",
            "what λ = 1 forgets minus what λ = 10000 forgets (c = 10)",
            (
                (1.0, "λ = 1, c = 10", "during"),
                (-1.0, "λ = 1, c = 10", "final"),
                (-1.0, "λ = 10000, c = 10", "during"),
                (1.0, "λ = 10000, c = 10", "final"),
            ),
            "more",
        ),
    ),
)
