"""perdure show: a run's accuracy matrix, or all runs of a folder."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from perdure.commands.arguments import Arguments, check_names, parse, path_option, runs_folder
from perdure.errors import PerdureError, sentence

if TYPE_CHECKING:
    from perdure.storage.record import Record

HELP = """\
perdure show [RUN]: without RUN, all finished runs; with it, the run's accuracy matrix

  RUN                  a run's hash, its first digits, or its folder
  --runs DIR           the folder of runs (default: runs)
  --plot FILE          draw the accuracy matrix to FILE (.png, .pdf or .svg)
  --replay FILE        draw what the run rehearses: real, stored, reconstructed, replayed sequences
  --json               print the record as JSON
"""


def showing(words: list[str]) -> int:
    """Print or draw records."""
    read = parse(words, switches=("json",))
    check_names(read, ("runs", "plot", "replay", "json"))
    if read.help:
        print(HELP, end="")
        return 0
    if len(read.positional) > 1:
        raise PerdureError("perdure show takes one run; see perdure show --help.")
    runs = runs_folder(read.options)
    figures = [path for name in ("plot", "replay") if (path := path_option(read.options, name)) is not None]
    if not read.positional:
        if figures:
            raise PerdureError("A figure shows one run: use perdure show RUN --plot FILE.")
        _show_all(runs, as_json="json" in read.options)
        return 0
    if figures:
        from perdure.report.figures import check_writable

        for path in figures:
            check_writable(path)
    _show_one(runs, read)
    return 0


def _show_one(runs: Path, read: Arguments) -> None:
    from perdure.report.tables import accuracy_tables, kept_table, summary
    from perdure.report.terminal import show
    from perdure.storage.store import find_run

    folder = find_run(runs, read.positional[0])
    record = folder.finished()
    if "json" in read.options:
        print(json.dumps(record.json))
    else:
        show(*accuracy_tables(record), summary([record]))
        if record.kept:
            show("", kept_table(record))
    if "plot" in read.options:
        plot(record, Path(read.options["plot"]))
    if "replay" in read.options:
        from perdure.report.replay import draw_replay

        replay = Path(read.options["replay"])
        draw_replay(folder, record, replay)
        print(f"Figure: {replay}", file=sys.stderr)


def _show_all(runs: Path, *, as_json: bool) -> None:
    from perdure.report.tables import list_table
    from perdure.report.terminal import show
    from perdure.storage.store import all_records

    records, warnings = all_records(runs)
    warn(warnings)
    if not records:
        raise PerdureError(f"No finished runs in '{runs}'; start one with perdure run.")
    if as_json:
        print(json.dumps([record.json for record in records]))
    else:
        show(list_table(records))


def warn(warnings: list[str]) -> None:
    """Print warnings on standard error."""
    from perdure.report.terminal import tell

    for warning in warnings:
        tell(f"perdure: {sentence(warning)}")


def plot(record: Record, path: Path) -> None:
    """Draw a record's accuracy matrix."""
    from perdure.report.figures import draw_accuracy

    draw_accuracy(record, path)
    print(f"Figure: {path}", file=sys.stderr)
