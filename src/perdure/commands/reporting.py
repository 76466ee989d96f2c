"""perdure report: all runs and findings of a folder as one HTML page."""

from __future__ import annotations

from pathlib import Path

from perdure.commands.arguments import check_names, parse, path_option, runs_folder
from perdure.commands.showing import warn
from perdure.errors import PerdureError

HELP = """\
perdure report: one HTML page with all runs and findings; it needs no network and no other files

  --runs DIR           folder of records and findings (default: runs)
  --out FILE           the page (default: report.html in the folder of runs)
  --title TEXT         its title

Findings are the results of perdure reproduce; the page shows them next to the published numbers.
"""

NAME, TITLE = "report.html", "Continual learning in recurrent networks"
"""Default file name and title of the page."""
ENDINGS = (".html", ".htm")


def reporting(words: list[str]) -> int:
    """Write the page."""
    read = parse(words)
    check_names(read, ("runs", "out", "title"))
    if read.help:
        print(HELP, end="")
        return 0
    if read.positional:
        raise PerdureError(
            f"perdure report takes only options, but '{read.positional[0]}' was given; did you mean "
            f"--runs {read.positional[0]}?"
        )
    out = path_option(read.options, "out")
    if out is not None and out.suffix.lower() not in ENDINGS:
        raise PerdureError(f"--out: the file name must end in {' or '.join(ENDINGS)} (given: '{out.name}').")
    runs = runs_folder(read.options)
    print(f"Report: {make_report(runs, out, read.options.get('title', TITLE))}")
    return 0


def make_report(runs: Path, out: Path | None = None, title: str = TITLE) -> Path:
    """Write the page of a folder of runs, by default into that folder; returns its path.

    Damaged records, findings, comparisons and searches are reported on standard error and left out.
    """
    from perdure.compare.question import all_comparisons
    from perdure.paper.findings import all_findings
    from perdure.report.page import write_page
    from perdure.search.state import all_searches
    from perdure.storage.store import all_records

    records, damaged_records = all_records(runs)
    findings, damaged_findings = all_findings(runs)
    comparisons, damaged_comparisons = all_comparisons(runs)
    searches, damaged_searches = all_searches(runs)
    warn(damaged_records + damaged_findings + damaged_comparisons + damaged_searches)
    if not records and not findings and not searches:
        raise PerdureError(
            f"No finished runs and no findings in '{runs}'; start with perdure run or perdure reproduce."
        )
    path = out or runs / NAME
    write_page(path, records, findings, title, searches=searches, comparisons=comparisons, runs=runs)
    return path
