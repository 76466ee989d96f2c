"""perdure results: the results that are committed with the source, and the pages made of them."""

from __future__ import annotations

from pathlib import Path

from perdure.commands.arguments import check_names, parse, path_option
from perdure.commands.showing import warn
from perdure.errors import PerdureError, unknown

HELP = """\
perdure results collect RUNS ...: copy finished records, findings and searches that results need
perdure results prune: remove records that no table, figure or search needs any more
perdure results estimate [ITEM ...]: time a few iterations of every setting that was never run, of all items
                     or of these, to tell the core-hours of what is missing
perdure results write: make the tables again, and from them docs/results.md, docs/report.html and others

  --results DIR        the folder of committed results (default: results)
  --docs DIR           the folder of the pages (default: docs)

Records are copied without weights and with thinned curves, so that everyone can make every table again
without a run. Items that look into weights keep the findings that perdure reproduce has computed.
"""

ACTIONS = ("collect", "prune", "estimate", "write")
PAGE, REPORT = "results.md", "report.html"
TITLE = "Continual learning in recurrent networks: results"


def results(words: list[str]) -> int:
    """Collect, prune, estimate or write."""
    read = parse(words)
    check_names(read, ("results", "docs"))
    if read.help or not read.positional:
        print(HELP, end="")
        return 0
    action, *named = read.positional
    if action not in ACTIONS:
        raise unknown("action", action, ACTIONS)
    where = path_option(read.options, "results") or Path("results")
    if action == "collect":
        return _collect([Path(folder) for folder in named], where)
    if named and action != "estimate":
        raise PerdureError(f"perdure results {action} takes only options, but '{named[0]}' was given.")
    if not where.is_dir():
        raise PerdureError(f"'{where}' is not a folder of results; perdure results collect RUNS makes one.")
    if action == "estimate":
        return _estimate(where, named)
    if action == "prune":
        return _prune(where)
    return _write(where, path_option(read.options, "docs") or Path("docs"))


def _collect(folders: list[Path], where: Path) -> int:
    from perdure.paper.committed import collect

    if not folders:
        raise PerdureError("perdure results collect needs a folder of runs: perdure results collect runs.")
    if where.exists() and not where.is_dir():
        raise PerdureError(f"--results: '{where}' is not a folder.")
    for folder in folders:
        if not folder.is_dir():
            raise PerdureError(f"'{folder}' is not a folder of runs.")
        records, findings, searches = collect(folder, where, lambda warning: warn([warning]))
        brought = f"{records} new records, {findings} findings and {searches} searches"
        print(f"{folder}: {brought} are now in '{where}'.")
    return 0


def _prune(where: Path) -> int:
    from perdure.paper.committed import prune

    gone = prune(where)
    count = f"{len(gone)} record{'' if len(gone) == 1 else 's'}"
    print(f"{count} removed from '{where}'{': ' if gone else '.'}{', '.join(gone)}")
    return 0


def _estimate(where: Path, names: list[str]) -> int:
    from perdure.paper.item import find_item
    from perdure.paper.lacking import ESTIMATES, estimate_missing
    from perdure.report.terminal import tell

    for name in names:
        find_item(name)
    count = estimate_missing(where, tell, names)
    print(f"{count} estimates are now in '{where / ESTIMATES}'.")
    return 0


def _write(where: Path, docs: Path) -> int:
    from perdure.commands.reporting import make_report
    from perdure.files import write
    from perdure.paper.committed import keep_findings, kept_findings
    from perdure.report.item_page import item_pages
    from perdure.report.results_text import results_text

    findings = kept_findings(where)
    keep_findings(findings, where)
    write(docs / PAGE, results_text(where, findings).encode())
    print(f"Page: {docs / PAGE}")
    for name, content in item_pages(where, findings).items():
        write(docs / name, content.encode())
        if name.endswith(".md"):
            print(f"Page: {docs / name}")
    print(f"Report: {make_report(where, docs / REPORT, TITLE)}")
    return 0
