"""Tables as text: cells separated by commas, semicolons or tabs, below a header; plain or gzipped."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from perdure.benchmarks.sources.archives import decoded, unzipped
from perdure.benchmarks.sources.own.parts import Faults, OwnSequences
from perdure.benchmarks.sources.own.tables import (
    LABEL,
    RESERVED,
    SEQUENCE,
    SPLIT,
    Table,
    checked_header,
    checked_texts,
    parts_of_table,
)
from perdure.benchmarks.task import Array
from perdure.errors import PerdureError

DELIMITERS = ",;\t"
"""Possible separators of cells; the header decides which one it is."""


def read_csv(path: Path, split: str | None, faults: Faults) -> list[OwnSequences]:
    """The parts of a csv file, plain or gzipped; faults are reported, and then there are none."""
    text = decoded(unzipped(path), path, "row")
    delimiter = _delimiter(text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    before = len(faults.found)
    try:
        header = checked_header(path, next(reader, []))
        lines, rows = _rows(path, reader, len(header), faults)
    except csv.Error as error:
        raise PerdureError(
            f"'{path}', row {reader.line_num}: it cannot be read as csv ({error}); "
            f"check its quotes and that it is plain text."
        ) from None
    if len(faults.found) > before:
        return []
    if not rows:
        raise PerdureError(f"'{path}' has a header but no rows; a task needs sequences.")
    cells = dict(zip(header, zip(*rows, strict=True), strict=True))
    names = tuple(name for name in header if name not in RESERVED)
    features = [_numbers(path, name, cells[name], lines, faults) for name in names]
    texts = {
        name: checked_texts(path, name, cells[name], lines, faults) for name in RESERVED if name in header
    }
    if len(faults.found) > before:
        return []
    table = Table(
        str(path), texts[SEQUENCE], texts[LABEL], texts.get(SPLIT), np.stack(features, axis=1), names, lines
    )
    return parts_of_table(table, split, faults)


def _delimiter(text: str) -> str:
    """The character that splits the first line into the most cells."""
    first = text.partition("\n")[0]
    return max(DELIMITERS, key=first.count)


def _rows(path: Path, reader: Any, width: int, faults: Faults) -> tuple[Array, list[list[str]]]:
    """Line numbers and cells of all non-blank rows."""
    lines: list[int] = []
    rows: list[list[str]] = []
    wrong: list[str] = []
    for row in reader:
        if len(row) == width:
            lines.append(reader.line_num)
            rows.append(row)
        elif row:
            wrong.append(
                f"'{path}', row {reader.line_num}: it has {len(row)} cells, but the header has {width}; "
                f"all rows must be as long as the header."
            )
    faults.add_some(str(path), wrong, len(wrong))
    return np.array(lines, dtype=np.int64), rows


def _numbers(path: Path, name: str, cells: Sequence[str], lines: Array, faults: Faults) -> Array:
    """A column [S] as numbers; each cell that is not a number is reported."""
    try:
        return np.array(cells, dtype=np.float64)
    except ValueError:
        wrong = [row for row, cell in enumerate(cells) if not _is_number(cell)]
        told = (_no_number(path, int(lines[row]), name, cells[row]) for row in wrong)
        faults.add_some(str(path), told, len(wrong))
        return np.zeros(len(cells))


def _is_number(cell: str) -> bool:
    try:
        np.array([cell], dtype=np.float64)
    except ValueError:
        return False
    return True


def _no_number(path: Path, line: int, name: str, cell: str) -> str:
    if not cell.strip():
        return f"'{path}', row {line}: column '{name}' is empty; every step needs a number."
    hint = (
        "use a decimal point" if re.fullmatch(r"[-+\d.]*,\d+", cell.strip()) else "features must be numbers"
    )
    return f"'{path}', row {line}: column '{name}' holds '{cell[:40]}', which is not a number; {hint}."
