"""perdure analyse: the paper's analyses, on finished runs if they need one."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from perdure.commands.arguments import check_names, parse, path_option, runs_folder, switches_of
from perdure.errors import PerdureError

if TYPE_CHECKING:
    from perdure.analysis.catalogue import Analysis
    from perdure.analysis.finding import Finding

HELP = """\
perdure analyse NAME RUN ...: analyse finished runs; without NAME, list all analyses

  RUN                  a run's hash, its first digits, or its folder; several runs give several tables
  --runs DIR           the folder of runs (default: runs)
  --plot FILE          draw the result to FILE (.png, .pdf or .svg; side by side for several runs)
  --json               print the tables as JSON
  --OPTION VALUE       an option of the analysis; perdure analyse NAME --help lists them
"""

GENERAL = ("runs", "plot", "json")


def analysing(words: list[str]) -> int:
    """Analyse, print, draw."""
    from perdure.analysis.catalogue import ANALYSES, find_analysis

    options = [each for entry in ANALYSES.values() for each in entry.options.model_fields.items()]
    read = parse(words, switches=("json",), on_off=switches_of(options))
    if not read.positional:
        print(HELP)
        for entry in ANALYSES.values():
            print(f"  {entry.name:<18}{entry.about}")
        return 0
    analysis = find_analysis(read.positional[0])
    if read.help:
        _print_options(analysis)
        return 0
    check_names(read, [*GENERAL, *analysis.options.model_fields])
    figure, values = path_option(read.options, "plot"), read.values(analysis.options.model_fields)
    if figure is not None:
        from perdure.report.figures import check_writable

        check_writable(figure)
    found = _findings(analysis, read.positional[1:], runs_folder(read.options), values)
    if "json" in read.options:
        print(json.dumps([finding.json for finding in found]))
    else:
        from perdure.report.tables import finding_table
        from perdure.report.terminal import show

        show(*(finding_table(finding) for finding in found))
    if figure is not None:
        from perdure.report.figures import draw_findings

        draw_findings(found, figure)
    return 0


def _findings(
    analysis: Analysis, names: list[str], runs: Path, values: dict[str, str | None]
) -> list[Finding]:
    """One finding per run."""
    options = analysis.read(values)
    if not analysis.needs_run:
        if names:
            raise PerdureError(f"Analysis '{analysis.name}' takes no run (given: {names[0]}).")
        return [analysis(None, None, options)]
    if not names:
        raise PerdureError(
            f"perdure analyse {analysis.name} needs a RUN; 'perdure show' lists all finished runs."
        )
    from perdure.storage.store import find_run

    found = []
    for name in names:
        folder = find_run(runs, name)
        found.append(analysis(folder, folder.finished(), options))
    return found


def _print_options(analysis: Analysis) -> None:
    print(f"perdure analyse {analysis.name}{' RUN ...' if analysis.needs_run else ''}: {analysis.about}\n")
    for name, field in analysis.options.model_fields.items():
        default = "none" if field.default is None else str(field.default).lower()
        print(f"  --{name} {default}")
        print(textwrap.indent(textwrap.fill(field.description or "", 90), " " * 6))
