"""AudioSet with different numbers of classes per task: HNET and Online EWC as tasks become harder."""

from __future__ import annotations

from perdure.paper.comparison import row
from perdure.paper.sweep import SweepItem, SweepPoint

CLASSES = (2, 4, 6, 8, 10)
TASKS = (2, 6, 10)
"""Numbers of tasks for which the classes vary."""

ITEM = SweepItem(
    title="AudioSet: classes per task and number of tasks",
    source="Fig. 5 (fig:audioset_classes_vs_tasks)",
    about="More classes make each task harder, more tasks make the sequence longer.",
    axis="classes per task c",
    note=(
        "One strength of Online EWC for all settings; the paper tuned it for each. "
        "The paper shows these numbers only in a figure."
    ),
    points=tuple(
        SweepPoint(
            f"{label}, {tasks} tasks",
            c,
            row(
                f"{label}, {tasks} tasks, c = {c}",
                "audioset",
                method,
                options={"benchmark.classes": c, "benchmark.tasks": tasks},
            ),
        )
        for label, method in (("HNET", "hnet"), ("Online EWC", "online-ewc"))
        for tasks in TASKS
        for c in CLASSES
    ),
)
