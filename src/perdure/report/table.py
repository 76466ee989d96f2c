"""Tables without boxes that fit the terminal: texts wrap, columns that do not fit go below.

There is no markup: what a file calls itself is shown as it is, without what would control a terminal.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

from perdure.errors import printable

GAP = "  "
"""Between columns."""
NARROWEST = 10
"""Columns of text are not made narrower than this many letters."""
CODES = {"green": "32", "yellow": "33", "red": "31", "dim": "2", "bold": "1"}
"""Colours, as terminals write them."""


class Shaded(NamedTuple):
    """A cell in a colour."""

    text: str
    style: str


Cell = str | Shaded


class Table:
    """Rows of cells below names of columns; numbers are justified right, and never cut."""

    def __init__(self, title: str = "", caption: str = "") -> None:
        """A title above and a caption below, if they are not empty."""
        self.title, self.caption = title, caption
        self.names: list[str] = []
        self.right: list[bool] = []
        self.rows: list[list[Shaded]] = []

    def add_column(self, name: str, *, justify: str = "left") -> None:
        """A column of texts (left), which may wrap, or of numbers (right)."""
        self.names.append(printable(name))
        self.right.append(justify == "right")

    def add_row(self, *cells: Cell) -> None:
        """One cell for each column."""
        shaded = [Shaded(cell, "") if isinstance(cell, str) else cell for cell in cells]
        self.rows.append([Shaded(printable(cell.text), cell.style) for cell in shaded])

    def lines(self, width: int | None = None, *, colour: bool = False) -> list[str]:
        """The table as lines of at most `width` columns of a terminal; None: as wide as it needs."""
        above = wrapped(printable(self.title), width) if self.title else []
        below = _paragraphs(self.caption.split("\n"), width) if self.caption else []
        body: list[str] = []
        for block in self._blocks(width):
            body += [*([""] if body else []), *self._block(block, width, colour=colour)]
        return [*above, *body, *below]

    def without_empty_columns(self) -> Table:
        """The same table, but for columns that have neither numbers nor words in any row."""
        kept = [
            place
            for place in range(len(self.names))
            if place == 0 or any(row[place].text for row in self.rows)
        ]
        table = Table(self.title, self.caption)
        table.names, table.right = (
            [self.names[place] for place in kept],
            [self.right[place] for place in kept],
        )
        table.rows = [[row[place] for place in kept] for row in self.rows]
        return table

    def _widths(self) -> list[int]:
        """What each column needs to be shown on one line."""
        return [
            max([wide(self.names[place]), *(wide(row[place].text) for row in self.rows)])
            for place in range(len(self.names))
        ]

    def _blocks(self, width: int | None) -> list[list[int]]:
        """The columns side by side in each part; the first one is repeated."""
        needed = [
            each if right else min(each, NARROWEST)
            for each, right in zip(self._widths(), self.right, strict=True)
        ]
        if width is None or len(needed) < 2:
            return [list(range(len(needed)))]
        blocks, left = [[0]], width - needed[0]
        for place in range(1, len(needed)):
            left -= needed[place] + len(GAP)
            if left < 0 and len(blocks[-1]) > 1:
                blocks.append([0])
                left = width - needed[0] - needed[place] - len(GAP)
            blocks[-1].append(place)
        return blocks

    def _block(self, places: Sequence[int], width: int | None, *, colour: bool) -> list[str]:
        """Some of the columns."""
        widths = self._fitted(places, width)
        head = [Shaded(self.names[place], "bold") for place in places]
        lines = []
        for cells in [head, *([row[place] for place in places] for row in self.rows)]:
            parts = [
                [Shaded(part, cell.style) for part in wrapped(cell.text, size)]
                for cell, size in zip(cells, widths, strict=True)
            ]
            for line in zip_longest(*parts, fillvalue=Shaded("", "")):
                joined = GAP.join(
                    _filled(cell, size, right=self.right[place], colour=colour)
                    for cell, size, place in zip(line, widths, places, strict=True)
                )
                lines.append(joined.rstrip())
        return lines

    def _fitted(self, places: Sequence[int], width: int | None) -> list[int]:
        """Widths of some columns; the widest texts give way first."""
        whole = self._widths()
        widths = [whole[place] for place in places]
        while width is not None and sum(widths) + len(GAP) * (len(widths) - 1) > width:
            texts = [n for n, place in enumerate(places) if not self.right[place] and widths[n] > 1]
            if not texts:
                break
            widths[max(texts, key=lambda n: widths[n])] -= 1
        return widths


def _paragraphs(texts: Sequence[str], width: int | None) -> list[str]:
    """Texts below each other; if one of them needs several lines, with blank ones before and between them."""
    parts = [wrapped(printable(text), width) for text in texts]
    if all(len(part) == 1 for part in parts):
        return [line for part in parts for line in part]
    return [line for part in parts for line in ("", *part)]


def _filled(cell: Shaded, width: int, *, right: bool, colour: bool) -> str:
    blanks = " " * (width - wide(cell.text))
    text = (
        f"\x1b[{CODES[cell.style]}m{cell.text}\x1b[0m" if colour and cell.style and cell.text else cell.text
    )
    return blanks + text if right else text + blanks


def wide(text: str) -> int:
    """Number of columns that a text takes in a terminal; some letters take two, some none."""
    if text.isascii():
        return len(text)
    return sum(_width_of(letter) for letter in text)


def _width_of(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def wrapped(text: str, width: int | None) -> list[str]:
    """A text in lines of at most `width`, between words where possible."""
    if width is None or wide(text) <= width:
        return [text]
    lines, line = [], ""
    for word in text.split(" "):
        if line and wide(line) + 1 + wide(word) <= width:
            line += f" {word}"
            continue
        if line:
            lines.append(line)
        *full, line = _cut(word, max(width, 2))
        lines += full
    return [*lines, line]


def _cut(word: str, width: int) -> list[str]:
    """A word in pieces that fit, after a dash or a slash where there is one."""
    pieces = []
    while wide(word) > width:
        count, taken = 0, 0
        while taken + _width_of(word[count]) <= width:
            taken += _width_of(word[count])
            count += 1
        marks = [place + 1 for place in range(count) if word[place] in "-/_."]
        count = marks[-1] if marks and marks[-1] > width // 2 else count
        pieces.append(word[:count])
        word = word[count:]
    return [*pieces, word]
