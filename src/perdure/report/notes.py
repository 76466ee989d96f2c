"""Notes written by hand beside results: the words are typed, numbers are looked up.

In a note, `{{ROW | COLUMN}}` is the mean and standard error of a cell of the item that the note is about, and
`{{ROW | COLUMN | published}}` the published number beside it. `{{FILE: ...}}` looks into another item's
findings, such as smnist-laptop. What a reference names must exist: a note cannot outlive its numbers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from perdure.analysis.statistics import Number
from perdure.errors import PerdureError, unknown
from perdure.paper.findings import Findings, TableCell
from perdure.report.tables import number_text

FOLDER = "notes"
REFERENCE = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
PUBLISHED = "published"


class Notes:
    """The notes of a folder of results."""

    def __init__(self, results: Path, findings: Sequence[Findings]) -> None:
        """Find notes in `results`, and their numbers in the findings."""
        self.folder = results / FOLDER
        self.findings = {one.file: one for one in findings}

    def about(self, one: Findings) -> str:
        """The note about an item, of its scale if there is such a note; empty if there is none."""
        return self.named(one.file, one) or self.named(one.name, one)

    def named(self, name: str, about: Findings | None = None) -> str:
        """The note of that name with its numbers; empty if there is none."""
        path = self.folder / f"{name}.md"
        if not path.is_file():
            return ""
        text = path.read_text(encoding="utf-8").strip()
        try:
            return REFERENCE.sub(lambda found: self._number(found[1].strip(), about), text)
        except PerdureError as error:
            raise PerdureError(f"'{path}': {error}") from None

    def _number(self, reference: str, about: Findings | None) -> str:
        """The number that a reference stands for."""
        file, colon, rest = reference.partition(": ")
        if colon and file in self.findings:
            about, reference = self.findings[file], rest
        if about is None:
            raise unknown("findings", file, self.findings)
        *place, last = (part.strip() for part in reference.split("|"))
        if last == PUBLISHED and len(place) == 2:
            return _text(_cell(about, *place).published, reference)
        if len(place) != 1:
            raise PerdureError(
                f"'{{{{{reference}}}}}' is no reference; it takes ROW | COLUMN or ROW | COLUMN | published."
            )
        return _text(_cell(about, place[0], last).ours, reference)


def _cell(findings: Findings, row: str, column: str) -> TableCell:
    cells: Mapping[str, TableCell] = {f"{one.row} | {one.column}": one for one in findings.cells}
    wanted = f"{row} | {column}"
    if wanted not in cells:
        raise unknown(f"number of {findings.file}", wanted, cells)
    return cells[wanted]


def _text(value: Number | None, reference: str) -> str:
    """Mean and standard error as in the tables, but without n."""
    if value is None:
        raise PerdureError(f"'{{{{{reference}}}}}' has no number.")
    return number_text(replace(value, n=0))
