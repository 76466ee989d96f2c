"""perdure show: a run's accuracy matrix, or all runs of a folder."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from perdure.commands.words import check_names, parse
from perdure.errors import PerdureError

HELP = """\
perdure show [RUN]: without RUN all finished runs; with it the run's accuracy matrix

  RUN                  a run's hash, the first digits of it, or its folder
  --runs DIR           the folder of runs (default: runs)
  --plot FILE          draw the accuracy matrix to FILE (.png, .pdf or .svg)
  --json               print the record as JSON
"""


def showing(words: list[str]) -> int:
    """Print or draw records."""
    read = parse(words, flags=("json",))
    check_names(read.options, ("runs", "plot", "json"))
    if read.help:
        print(HELP, end="")
        return 0
    if len(read.positional) > 1:
        raise PerdureError("perdure show takes one run; see perdure show --help.")
    from perdure.records.store import all_records, find_run
    from perdure.report.tables import accuracy_table, list_table, show, summary

    runs = Path(read.options.get("runs", "runs"))
    if not read.positional:
        records, warnings = all_records(runs)
        for warning in warnings:
            print(f"perdure: {warning}", file=sys.stderr)
        if not records:
            raise PerdureError(f"No finished runs in '{runs}'; start one with perdure run.")
        if "json" in read.options:
            print(json.dumps([record.json for record in records]))
        else:
            show(list_table(records))
        return 0
    folder = find_run(runs, read.positional[0])
    record = folder.record()
    for warning in folder.warnings:
        print(f"perdure: {warning}", file=sys.stderr)
    if record is None:
        raise PerdureError(
            f"Run {folder.path.name} is not finished; the command that began it continues it."
        )
    if "json" in read.options:
        print(json.dumps(record.json))
    else:
        show(accuracy_table(record), summary([record]))
    if "plot" in read.options:
        from perdure.report.figures import draw_accuracy

        path = Path(read.options["plot"])
        draw_accuracy(record, path)
        print(f"Figure: {path}", file=sys.stderr)
    return 0
