"""What benchmarks need and what is available, and tables of tasks; all without torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perdure.benchmarks.sources.cache import built, digest
from perdure.benchmarks.sources.folder import data_folder
from perdure.benchmarks.task import Benchmark, Need, Task
from perdure.registry import pieces
from perdure.report.table import Table


def listed() -> list[dict[str, Any]]:
    """For each benchmark what it needs, with the state of each file, and the files that were built."""
    found = []
    for name, kind in sorted(pieces("benchmarks", Benchmark).items()):
        files = built(name)
        found.append(
            {
                "benchmark": name,
                "needs": [
                    {
                        "path": need.path,
                        "instead": list(need.instead),
                        "about": need.about,
                        "state": state(need),
                        "optional": need.optional,
                    }
                    for need in kind.needs
                ],
                "origin": kind.origin,
                "built": {"files": len(files), "bytes": sum(path.stat().st_size for path in files)},
            }
        )
    return found


def state(need: Need) -> str:
    """Either missing (absent if optional) or there; with a known checksum, intact or differs."""
    path = data_folder() / need.path
    if not path.exists():
        if any((data_folder() / other).exists() for other in need.instead):
            return "there"
        return "absent" if need.optional else "missing"
    if need.sha256 is None:
        return "there"
    return "intact" if path.is_file() and digest(path) == need.sha256 else "differs"


def needs_text(found: Sequence[dict[str, Any]]) -> str:
    """One line per benchmark, and one below it for each need."""
    lines = [f"Data folder: {data_folder()}"]
    for each in found:
        kept = each["built"]
        size = f"{kept['files']} built, {kept['bytes'] / 1e6:.1f} MB" if kept["files"] else ""
        said = "; ".join(part for part in ("" if each["needs"] else each["origin"], size) if part)
        lines.append(f"{each['benchmark']:<22}{said}".rstrip())
        for need in each["needs"]:
            lines.append(f"  {need['state']:<9}{' or '.join([need['path'], *need['instead']])}")
            lines.append(f"           {need['about']}{', optional' * need['optional']}")
    return "\n".join(lines)


def task_table(tasks: Sequence[Task]) -> Table:
    """One row per task: sizes, lengths, outputs."""
    table = Table()
    table.add_column("task")
    table.add_column("kind")
    for column in ("train", "val", "test", "features", "lengths", "outputs"):
        table.add_column(column, justify="right")
    for task in tasks:
        counts = [str(len(getattr(task, split))) for split in ("train", "val", "test")]
        table.add_row(task.name, task.target.name, *counts, str(task.inputs), span(task), str(task.outputs))
    return table


def lengths_of(task: Task) -> tuple[int, float, int]:
    """The smallest, median and largest length of a task's sequences."""
    lengths = np.concatenate([task.train.lengths, task.val.lengths, task.test.lengths])
    return int(lengths.min()), float(np.median(lengths)), int(lengths.max())


def span(task: Task) -> str:
    """Lengths for a table: smallest, median and largest, or the one that all share."""
    least, median, most = lengths_of(task)
    return str(least) if least == most else f"{least} / {median:g} / {most}"
