"""docs/results.md: every number next to the published one, computed from the committed results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from perdure.analysis.statistics import AGREES, HIGHER, LOWER, MARGIN, NOT_DECIDED, number
from perdure.options import option_text
from perdure.paper.claims import THEMES
from perdure.paper.committed import SCALES
from perdure.paper.comparison import COLUMNS
from perdure.paper.conclusions import FACTOR
from perdure.paper.findings import (
    CONTRADICTED,
    SUPPORTED,
    WEAKER,
    Conclusion,
    Findings,
    TableCell,
    in_paper,
)
from perdure.paper.item import items
from perdure.paper.lacking import Lacking, missing
from perdure.paper.pairs import order_summary
from perdure.report.notes import Notes
from perdure.report.numbers import would_decide
from perdure.report.searches import chosen_records, percent, short_name
from perdure.report.tables import conclusion_text, number_text
from perdure.search.state import Search, Trial, all_searches
from perdure.storage.store import all_records

HEAD = f"""\
# Results
This page is made by `perdure results write` from the records in `results/`; do not edit it. A test checks
that it is current. [report.html](report.html) shows the same with figures, accuracy matrices and curves.

How to read it: ours are mean ± SEM over n seeds, accuracy on test data in percent; `during` is each task
right after it was learnt, `final` all tasks at the end. Intervals are 95 % t-intervals. "agrees" is an
equivalence test with a margin of {MARGIN:g} point, "higher" and "lower" are difference tests (Welch, 5 %),
everything else is "not decided", with the number of seeds that would decide if mean and spread stayed the
same; since both will change, such a number decides only about half of the time. Fewer than three seeds
decide nothing. Numbers on data that are not the paper's are not judged. Intervals are not cut off at 0 or
100 %. Intervals and tests are not corrected for their number.

A finding of the paper is judged by a contrast over the seeds that all its rows have. "Less than 1 point" is
shown by two one-sided tests at 5 %, which is a 90 % interval within the margin; the margin is 1 point or a
factor of {FACTOR:g} unless the sentence names another. If the paper says that two things differ, it is
supported if ours differ in the same direction; a real difference within the margin is called just that, and
no difference, or the opposite one, contradicts it. If the paper says that two things are alike, ours
must be within the margin to support it, and the 95 % interval beyond the margin to contradict it.
"""

NONE = "\u2013"
"""Where there is no number."""

VERDICTS = {
    SUPPORTED: "As the paper finds:",
    WEAKER: "In the paper's direction, but within the margin:",
    CONTRADICTED: "Not as the paper finds:",
    NOT_DECIDED: "Not decided:",
}
"""How findings are grouped, in this order."""


def results_text(results: Path, findings: Sequence[Findings]) -> str:
    """The whole page, of a folder of results and its findings. Equal results give equal text."""
    findings = sorted(findings, key=place_of)
    lacking, notes = missing(results), Notes(results, findings)
    parts = [
        HEAD,
        _machines(results),
        _overview(findings, lacking),
        _claims(findings, notes),
        _searches(results),
    ]
    for scale in SCALES:
        chosen = [one for one in findings if one.scale == scale]
        if chosen:
            parts.append(f"\n# Scale {scale}\n")
            parts += [_section(one, notes) for one in chosen]
    parts.append(_unfinished(lacking, {(one.name, one.scale) for one in findings}))
    return "\n".join(part.rstrip("\n") + "\n" for part in parts if part)


def _machines(results: Path) -> str:
    """How many records there are, and of which machines and versions."""
    records = all_records(results)[0]
    lines = [f"{len(records)} records of finished runs are committed, made on:", ""]
    kinds = Counter(
        ", ".join(f"{name} {value}" for name, value in (record.machine | record.versions).items())
        for record in records
    )
    lines += [f"- {count} runs: {kind}" for kind, count in sorted(kinds.items())]
    if any("digits" not in record.machine for record in records):
        lines += [
            "",
            "`digits 2` is the arithmetic whose numbers are identical on all processors with fused "
            "multiply-adds, in every digit. Runs without it are older; run again they come out a little "
            "different, since training magnifies rounding.",
        ]
    return "\n".join(lines) + "\n"


def place_of(one: Findings) -> tuple[int, int, str]:
    """Where findings stand on a page: by scale, then in the order of items."""
    order = list(items())
    return SCALES.index(one.scale), order.index(one.name) if one.name in order else len(order), one.file


def _overview(findings: Sequence[Findings], lacking: Sequence[Lacking]) -> str:
    """Every item with results: seeds, published cells and findings by verdict, and what is missing."""
    runs = {(each.name, each.scale): each.missing for each in lacking}
    lines = [
        "## Overview",
        "",
        "Published numbers that ours agree with, exceed, fall below, or leave undecided; then findings of "
        "the paper that ours support, share in direction but within the margin, contradict, or leave "
        "undecided; then runs that are still missing. Items share runs: such numbers count in each of them.",
        "",
        "| item | scale | n | agree | higher | lower | open "
        "| support | direction | contradict | open | missing |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for one in findings:
        cells = Counter(cell.verdict for cell in one.cells if cell.verdict)
        found = Counter(each.verdict for each in one.conclusions if each.of_the_paper)
        shown = [cells[kind] if cells else NONE for kind in (AGREES, HIGHER, LOWER, NOT_DECIDED)]
        shown += [found[kind] if found else NONE for kind in VERDICTS]
        row = (one.name, one.scale, seeds_text(one), *shown, runs.get((one.name, one.scale)) or "none")
        lines.append("| " + " | ".join(str(entry) for entry in row) + " |")
    without = [name for name in items() if not any(one.name == name for one in findings)]
    if without:
        lines += ["", f"Without any results: {', '.join(without)}."]
    return "\n".join(lines) + "\n"


def seeds_text(one: Findings) -> str:
    """The fewest and the most seeds of a number."""
    counts = {cell.ours.n for cell in one.cells if cell.ours is not None and cell.ours.n}
    if not counts:
        return NONE
    return str(max(counts)) if len(counts) == 1 else f"{min(counts)} to {max(counts)}"


def _claims(findings: Sequence[Findings], notes: Notes) -> str:
    """The four claims of the paper, what our items say about each, and why, as far as is known."""
    lines = ["## The four claims of the paper"]
    stated = {
        name: [claim.paper for claim in item.findings_of_the_paper("laptop")]
        for name, item in items().items()
    }
    for place, theme in enumerate(THEMES, 1):
        lines += ["", f"{place}. **{theme.claim}.** {theme.summary(findings, stated)}"]
        if why := notes.named(f"claim-{place}"):
            lines += ["", f"   {why}", ""]
        for one, conclusion in theme.found(findings):
            lines.append(f"   - {one.name}, {one.scale}: {conclusion_text(conclusion)}")
        for one, conclusion in theme.against(findings):
            lines.append(
                f"   - against it, also in the paper: {one.name}, {one.scale}: {conclusion_text(conclusion)}"
            )
    return "\n".join(lines) + "\n"


def _searches(results: Path) -> str:
    """How settings were chosen: the searches of each problem side by side, and what was chosen."""
    found: dict[tuple[str, str], list[Search]] = {}
    for search in all_searches(results)[0]:
        found.setdefault((search.design.question, search.design.scale), []).append(search)
    if not found:
        return ""
    lines = [
        "## How settings were chosen",
        "",
        "By equal searches (`perdure search`): the same number of trials for every method, or all points of "
        "its space if that has fewer, ranked by validation accuracy on tuning seeds, which are not reported. "
        "With halving, trials of the worse half end early. A best setting whose validation accuracy is much "
        "lower on the reported seeds is not robust: then the second and third are run on these too, and the "
        "best of the three by validation accuracy there is chosen. [report.html](report.html) shows every "
        "trial and the curves of each setting.",
    ]
    for (question, scale), searches in sorted(found.items()):
        lines += ["", f"### {question}, scale {scale}", "", *_search_table(searches, results)]
    return "\n".join(lines) + "\n"


def _search_table(searches: Sequence[Search], results: Path) -> list[str]:
    """One row per method, the best by validation accuracy first."""
    lines = [
        "| method | trials | validation, tuning | test final, reported seeds (n) | chosen values | search |",
        "|---|---|---|---|---|---|",
    ]
    for search in sorted(searches, key=lambda each: -(_chosen(each).final or 0.0)):
        design, trial = search.design, _chosen(search)
        records = chosen_records(search, results)
        values = ", ".join(
            f"`{short_name(name, design.space.varied)}` {option_text(trial.values[name])}"
            for name in design.space.varied
            if name in trial.values
        )
        tested = number_text(number([record.final for record in records])) if records else NONE
        halving = ", halving" if design.halving else ""
        row = (
            design.method,
            f"{len(search.trials)}{halving}",
            percent(trial.final),
            tested,
            values,
            search.id,
        )
        lines.append("| " + " | ".join(row) + " |")
    return lines


def _chosen(search: Search) -> Trial:
    """The trial whose setting was chosen."""
    return search.trials[(search.chosen or 1) - 1]


def _section(one: Findings, notes: Notes) -> str:
    """One item at one scale."""
    seeds = seeds_text(one)
    told = "" if seeds == NONE else f", n = {seeds}"
    told += ": of some rows fewer seeds are committed than it runs" if " to " in seeds else ""
    hours = f"{one.seconds / 3600:.2f} core-hours" if one.seconds else "no runs needed"
    known = in_paper(one.source)
    source = f"In the paper: {one.source}." if known else f"{one.source[0].upper()}{one.source[1:]}."
    lines = [f"## {one.title}", f"{one.about} {source}", ""]
    lines += [f"`{one.command}` ({hours}{told})", ""]
    for verdict, title in VERDICTS.items():
        lines += _listed(
            title, [each for each in one.conclusions if each.verdict == verdict and each.of_the_paper]
        )
    lines += _listed("Questions of our own:", [each for each in one.conclusions if not each.of_the_paper])
    if one.pairs and (said_of_order := order_summary(one.pairs)):
        lines += [said_of_order, ""]
    if tried := notes.about(one):
        lines += [tried, ""]
    lines += [*cell_lines(one.cells), ""] if one.cells else []
    heading = "Differs from the paper" if known else "How it was run"
    lines += [f"{heading}: {one.differs}", ""] if one.differs else []
    return "\n".join(lines)


def _listed(title: str, conclusions: Sequence[Conclusion]) -> list[str]:
    """Conclusions below a title; nothing if there are none."""
    if not conclusions:
        return []
    return [f"**{title}**", "", *(f"- {conclusion_text(each)}" for each in conclusions), ""]


def cell_lines(cells: Sequence[TableCell]) -> Iterator[str]:
    """A row for each method with during and final side by side, or else a row for each number."""
    by_row: dict[str, dict[str, TableCell]] = {}
    for cell in cells:
        by_row.setdefault(_row_name(cell), {})[cell.column] = cell
    if all(set(COLUMNS) <= set(row) for row in by_row.values()):
        yield from _wide_table(by_row)
        return
    yield "| | | ours (n) | 95 % interval | published (n) | verdict |"
    yield "|---|---|---|---|---|---|"
    for cell in cells:
        yield _line(_row_name(cell), cell.column, *_entries(cell))


def _wide_table(rows: Mapping[str, Mapping[str, TableCell]]) -> Iterator[str]:
    """During, final, and whatever else there is of each row."""
    others = list(dict.fromkeys(name for row in rows.values() for name in row if name not in COLUMNS))
    final = ("final (n)", "95 % interval", "published (n)", "verdict")
    yield _line("", "during (n)", "published (n)", "verdict", *final, *others)
    yield "|---" * (8 + len(others)) + "|"
    for name, row in rows.items():
        ours, _, published, verdict = _entries(row["during"])
        further = (number_text(row[other].ours) if other in row else "" for other in others)
        yield _line(name, ours, published, verdict, *_entries(row["final"]), *further)


def _row_name(cell: TableCell) -> str:
    return cell.row + (f" ({cell.remark})" if cell.remark else "")


def _entries(cell: TableCell) -> tuple[str, str, str, str]:
    """Ours, its interval, the published number and the verdict."""
    ours, interval = cell.ours, ""
    if ours is not None and ours.low is not None and ours.high is not None:
        digits = ".2f" if abs(ours.mean) >= 1 else ".3g"
        interval = f"{ours.low:{digits}} to {ours.high:{digits}}"
    verdict = cell.verdict + (f" ({would_decide(cell.needed)})" if cell.verdict == NOT_DECIDED else "")
    return number_text(ours), interval, number_text(cell.published), verdict


def _line(*entries: str) -> str:
    return "| " + " | ".join(text.replace("|", "\\|") for text in entries) + " |"


def _unfinished(lacking: Sequence[Lacking], there: set[tuple[str, str]]) -> str:
    """What is missing: a table of what has begun and of laptop scale, a sentence for the rest."""
    begun = [
        each for each in lacking if each.missing and (each.scale != SCALES[0] or each.missing < each.needed)
    ]
    unseen = [each for each in lacking if not each.missing and (each.name, SCALES[-1]) not in there]
    later = [each for each in lacking if each.missing == each.needed > 0 and each not in begun]
    lines = [
        "# What did not finish",
        "Core-hours are those of finished seeds of the same setting, or were estimated from a few iterations "
        "(`perdure results estimate`).",
        "",
        "| item | scale | runs missing | core-hours | command |",
        "|---|---|---|---|---|",
    ]
    for each in begun:
        command = f"`perdure reproduce {each.name} --scale {each.scale}`"
        lines.append(_line(each.name, each.scale, f"{each.missing} of {each.needed}", _hours(each), command))
    if unseen:
        names = ", ".join(dict.fromkeys(each.name for each in unseen))
        lines += ["", f"Not evaluated yet, and without runs of their own: {names}."]
    if later:
        names = ", ".join(f"{each.name} ({each.missing} runs, {_hours(each)})" for each in later)
        lines += ["", f"Nothing has been run at paper scale for: {names}."]
        lines.append(
            "`perdure reproduce table-1 --scale paper` runs such an item, and goes on where it stopped."
        )
    return "\n".join(lines) + "\n"


def _hours(each: Lacking) -> str:
    if each.hours is None:
        return "unknown"
    return f"{each.hours:.0f} h" if each.hours >= 10 else f"{each.hours:.1f} h"
