"""AudioSet with different numbers of classes per task: HNET and Online EWC as tasks become harder."""

from __future__ import annotations

from perdure.paper.comparison import row
from perdure.paper.conclusions import difference, interaction
from perdure.paper.sweep import SweepItem, SweepPoint

CLASSES = (2, 4, 6, 8, 10)
TASKS = (2, 6, 10)
"""Numbers of tasks for which the classes vary."""

FITTING = {"weights.ratio": 1.0}
"""With fewer heads the network is smaller, so the hypernetwork is too: at most as large as what it makes."""

ITEM = SweepItem(
    title="AudioSet: classes per task and number of tasks",
    source="Fig. 5 (fig:audioset_classes_vs_tasks)",
    about="More classes make each task harder, more tasks make the sequence longer.",
    axis="classes per task c",
    note=(
        "One strength of Online EWC for all settings; the paper tuned it for each. "
        "The paper shows these numbers only in a figure. HNET's hypernetwork is fitted to each network "
        "(weights.ratio 1), so that its ten tasks of ten classes are not the runs of Table 3."
    ),
    points=tuple(
        SweepPoint(
            f"{label}, {tasks} tasks",
            c,
            row(
                f"{label}, {tasks} tasks, c = {c}",
                "audioset",
                method,
                options={"benchmark.classes": c, "benchmark.tasks": tasks, **options},
            ),
        )
        for label, method, options in (("HNET", "hnet", FITTING), ("Online EWC", "online-ewc", {}))
        for tasks in TASKS
        for c in CLASSES
    ),
    claims=(
        difference(
            "HNET is better than Online EWC on ten tasks of ten classes",
            "HNET, 10 tasks, c = 10",
            "Online EWC, 10 tasks, c = 10",
        ),
        interaction(
            "harder tasks cost Online EWC more than HNET",
            "fall of Online EWC from c = 2 to c = 10 (ten tasks) minus that of HNET",
            (
                "Online EWC, 10 tasks, c = 2",
                "Online EWC, 10 tasks, c = 10",
                "HNET, 10 tasks, c = 2",
                "HNET, 10 tasks, c = 10",
            ),
        ),
        interaction(
            "more tasks cost Online EWC more than HNET",
            "fall of Online EWC from 2 to 10 tasks (c = 10) minus that of HNET",
            (
                "Online EWC, 2 tasks, c = 10",
                "Online EWC, 10 tasks, c = 10",
                "HNET, 2 tasks, c = 10",
                "HNET, 10 tasks, c = 10",
            ),
        ),
    ),
)
