"""HNET with one random old task per step: a cost that does not grow with the number of tasks."""

from __future__ import annotations

from perdure.paper.comparison import ComparisonItem, row
from perdure.paper.conclusions import difference

ITEM = ComparisonItem(
    title="HNET's regulariser on one random old task per step (C = 1)",
    source=(
        "SM text (supp:methods:hnets); the published command has one head and reports 100 final, one seed"
    ),
    about="The regulariser on one random old task per step, instead of on all of them.",
    rows=(
        row("HNET, all old tasks", "permuted-copy", "hnet", (99.98, 0.00), (99.96, 0.01)),
        row("HNET, C = 1", "permuted-copy", "hnet", options={"penalties.hnet-regulariser.sample": 1}),
        row(
            "HNET, C = 1, single head",
            "permuted-copy",
            "hnet",
            options={"penalties.hnet-regulariser.sample": 1, "network.heads": "single"},
        ),
    ),
    claims=(
        difference(
            "one old task per step protects as well as all", "HNET, C = 1", "HNET, all old tasks", "same"
        ),
        difference(
            "one old task per step protects as well as all, also with a single head",
            "HNET, C = 1, single head",
            "HNET, all old tasks",
            "same",
        ),
    ),
)
