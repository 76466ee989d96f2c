"""One output head for all tasks: it hardly affects HNET, but does affect Online EWC."""

from __future__ import annotations

from perdure.paper.comparison import ComparisonItem, row
from perdure.paper.conclusions import difference, interaction

HNET, EWC = "HNET, a head for each task", "Online EWC, a head for each task"

ITEM = ComparisonItem(
    title="A single output head (Permuted Copy Task)",
    source="SM text (supp:cl:experimental:setting), n not given",
    about=(
        "All tasks share one head. HNET generates weights for each task anyway; Online EWC is told "
        "the task by a one-hot input. The rows with a head for each task are runs of Table 1."
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
        row(HNET, "permuted-copy", "hnet"),
        row(EWC, "permuted-copy", "online-ewc"),
    ),
    claims=(
        difference(
            "HNET is better than Online EWC with one head for all tasks",
            "HNET",
            "Online EWC with task identity",
        ),
        difference("a single head makes Online EWC worse", EWC, "Online EWC with task identity"),
        interaction(
            "a single head costs Online EWC more than HNET",
            "fall of Online EWC from a head for each task to a single one, minus that of HNET",
            (EWC, "Online EWC with task identity", HNET, "HNET"),
        ),
    ),
)
