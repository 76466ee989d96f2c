"""From finished runs to findings on disk: numbers as JSON, figures as PDF, SVG and PNG."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from perdure.experiment import threads
from perdure.files import write, write_json
from perdure.options import option_text
from perdure.paper.conclusions import conclusions_of
from perdure.paper.findings import FOLDER, Drawing, Findings
from perdure.paper.item import Drawn, FinishedRuns, Item
from perdure.storage.record import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURES = "figures"
"""Folder below the folder of runs."""
FORMATS = ("pdf", "svg", "png")
DPI = 150


def evaluate(name: str, item: Item, results: FinishedRuns) -> tuple[Findings, list[Drawn]]:
    """The findings of an item, and its figures."""
    with threads(1):  # the same digits on every machine, and no contention with parallel runs
        cells, drawn = item.evaluate(results)
    used: dict[str, Record] = {}
    for setting in item.settings(results.scale):
        used |= {record.hash: record for record in results.of(setting)}
    findings = Findings(
        name=name,
        title=item.title,
        source=item.source,
        about=item.about,
        scale=results.scale,
        differs=item.differs(results.scale, results.given),
        command=results.command(name),
        cells=cells,
        drawings=[Drawing(each.title, each.caption, picture(each.figure, "svg").decode()) for each in drawn],
        seconds=sum(record.seconds for record in used.values()),
        pairs=item.pairs(results),
        conclusions=conclusions_of(item.findings_of_the_paper(results.scale), cells),
        given={option: option_text(value) for option, value in results.given.items()},
    )
    return findings, drawn


def picture(figure: Figure, format: str) -> bytes:
    """A figure as the content of a file; equal figures give equal bytes."""
    import matplotlib

    buffer = io.BytesIO()
    dateless = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(format)
    with matplotlib.rc_context({"svg.hashsalt": "perdure", "svg.fonttype": "none"}):
        figure.savefig(buffer, format=format, dpi=DPI, metadata=dateless)
    return buffer.getvalue()


def keep(findings: Findings, drawn: list[Drawn], runs: Path) -> list[Path]:
    """Write findings and figures below the folder of runs; returns the paths of the figures."""
    name = findings.file  # scales do not replace each other's findings
    write_json(runs / FOLDER / f"{name}.json", findings.json)
    paths = []
    for each, drawing in zip(drawn, findings.drawings, strict=True):
        for format in FORMATS:
            path = runs / FIGURES / f"{name}-{each.name}.{format}"
            write(path, drawing.svg.encode() if format == "svg" else picture(each.figure, format))
            paths.append(path)
    return paths
