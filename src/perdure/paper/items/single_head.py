"""One output head for all tasks: it hardly affects HNET, but does affect Online EWC."""

from __future__ import annotations

from perdure.paper.comparison import ComparisonItem, row

ITEM = ComparisonItem(
    title="A single output head (Permuted Copy Task)",
    source="SM text (supp:cl:experimental:setting), n not given",
    about=(
        "All tasks share one head. HNET generates weights for each task anyway; Online EWC must adapt the "
        "shared head, although a one-hot input tells it the task."
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
