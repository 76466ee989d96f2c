"""One output head for all tasks: HNET hardly minds, Online EWC does."""

from __future__ import annotations

from perdure.paper.comparison import ComparisonItem, row

ITEM = ComparisonItem(
    title="A single output head (Permuted Copy Task)",
    source="SM text (supp:cl:experimental:setting), n not given",
    about=(
        "All tasks share one head. HNET makes weights for each task anyway; Online EWC must adapt the "
        "shared head, "
        "although it is told the task by a one-hot input."
    ),
    rows=(
        row("HNET", "permuted-copy", "hnet", None, (95.78, 2.13), {"network.heads": "single"}, n=0),
        row(
            "Online EWC with task identity",
            "permuted-copy",
            "online-ewc",
            None,
            (68.41, 1.45),
            {"network.heads": "single", "network.task_identity": True},
            n=0,
        ),
    ),
)
