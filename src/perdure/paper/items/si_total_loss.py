"""SI's path integral over the task's loss alone, or over the total loss."""

from __future__ import annotations

from perdure.paper.comparison import ComparisonItem, row
from perdure.paper.conclusions import difference

TOTAL = {"penalties.si.task_loss_only": False}

ITEM = ComparisonItem(
    title="SI on the task's loss or on the total loss",
    source="SM text (supp:methods:si)",
    about="The path integral of SI takes the gradient of the task's loss, or that of the total loss.",
    rows=(
        row("SI, task loss", "permuted-copy", "si", (98.41, 0.06), (94.03, 0.24)),
        row("SI, total loss", "permuted-copy", "si", options=TOTAL),
        row("Masking+SI, task loss", "permuted-copy", "masking+si", (99.40, 0.25), (99.40, 0.25)),
        row("Masking+SI, total loss", "permuted-copy", "masking+si", options=TOTAL),
    ),
    claims=(
        difference("it makes no difference for SI", "SI, task loss", "SI, total loss", "same"),
        difference(
            "it makes no difference for masking with SI",
            "Masking+SI, task loss",
            "Masking+SI, total loss",
            "same",
        ),
    ),
)
