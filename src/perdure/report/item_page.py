"""A page of its own for an item that asks more than the paper: what was asked, found, and left open."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from perdure.analysis.statistics import NOT_DECIDED
from perdure.paper.findings import ASKED, CONTRADICTED, SUPPORTED, WEAKER, Conclusion, Findings
from perdure.paper.item import items
from perdure.paper.lacking import Lacking, missing
from perdure.report.notes import Notes
from perdure.report.numbers import would_decide_claim
from perdure.report.results_text import cell_lines, place_of, seeds_text

ANSWERS = {
    SUPPORTED: "Yes",
    WEAKER: "Yes, but within the margin",
    CONTRADICTED: "No",
    NOT_DECIDED: "Not decided",
}
"""Verdicts as answers to a question."""


def item_pages(results: Path, findings: Sequence[Findings]) -> dict[str, str]:
    """The pages and figures of all items that have a page, by path below the folder of pages."""
    found: dict[str, str] = {}
    lacking, notes = missing(results), Notes(results, findings)
    every = sorted(findings, key=place_of)
    for name, item in items().items():
        scales = [one for one in every if one.name == name]
        if item.page and scales:
            found |= _files(item.page, scales, [each for each in lacking if each.name == name], notes)
    return found


def _files(page: str, scales: Sequence[Findings], lacking: Sequence[Lacking], notes: Notes) -> dict[str, str]:
    """The page of one item, and its figures."""
    first = scales[0]
    lines = [
        f"# {first.title}",
        "This page is made by `perdure results write` from what is in `results/`; do not edit it. "
        "[results.md](results.md) says how to read its numbers.",
        "",
        first.about,
    ]
    figures: dict[str, str] = {}
    for one in scales:
        lines += ["", f"## Scale {one.scale}, n = {seeds_text(one)}", f"`{one.command}`", ""]
        if said := notes.about(one):
            lines += [said, ""]
        lines += _answers(one.conclusions)
        for number, drawing in enumerate(one.drawings, 1):
            path = f"{page}/{one.scale}-{number}.svg"
            figures[path] = drawing.svg
            lines += [f"![{drawing.title}]({path})", "", f"{drawing.title}. {drawing.caption}", ""]
        lines += [*cell_lines(one.cells), "", one.differs]
    lines += _open(lacking)
    return {f"{page}.md": "\n".join(lines).rstrip("\n") + "\n"} | figures


def _answers(conclusions: Sequence[Conclusion]) -> list[str]:
    """What was found, then what was not."""
    groups = {
        "What was found": [each for each in conclusions if each.verdict != NOT_DECIDED],
        "What was not decided": [each for each in conclusions if each.verdict == NOT_DECIDED],
    }
    lines: list[str] = []
    for title, chosen in groups.items():
        if chosen:
            lines += [f"**{title}**", "", *(f"- {_answer(each)}" for each in chosen), ""]
    return lines


def _answer(found: Conclusion) -> str:
    """A question, the answer, and the contrast that it rests on."""
    more = f" ({would_decide_claim(found.contrast.n, found.needed)})" if found.verdict == NOT_DECIDED else ""
    question = found.paper.removeprefix(ASKED)
    return f"{question[0].upper()}{question[1:]} {ANSWERS[found.verdict]}{more}. {found.ours}"


def _open(lacking: Sequence[Lacking]) -> list[str]:
    """What was not run, and the command that runs it."""
    rest = [each for each in lacking if each.missing]
    if not rest:
        return []
    lines = ["", "## What was not run", ""]
    for each in rest:
        hours = "" if each.hours is None else f", about {each.hours:.1f} core-hours"
        command = f"perdure reproduce {each.name} --scale {each.scale}"
        lines.append(f"- Scale {each.scale}: {each.missing} of {each.needed} runs{hours}: `{command}`")
    return lines
