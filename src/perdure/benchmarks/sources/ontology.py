"""AudioSet's classes, and those among them that the paper considers (SM "AudioSet").

Three files are published with AudioSet. `ontology.json` is a list of classes with their children and
restrictions; `class_labels_indices.csv` assigns a number to each class that is used as a label;
`confidence_data.csv` (no header, tab-separated) has a name and an estimate of the labels' quality in each
row, or `-` where there is no estimate.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perdure.errors import PerdureError, shortened
from perdure.files import read

LARGEST = 2**28
"""Size in bytes of the largest of the three files; the official ones have less than a megabyte."""
QUALITY = 70.0
"""Percentage of a class's labels that must be right."""
LABEL_COLUMNS = ("index", "mid", "display_name")
"""The columns of class_labels_indices.csv; a mid is a class's key in the ontology."""
ENTRIES = {"id": str, "name": str, "child_ids": list, "restrictions": list}
"""The entries of a class in the ontology that are used, and their types."""


@dataclass(frozen=True)
class AudioClass:
    """A class: its number as a label, and its name."""

    label: int
    name: str


def considered_classes(
    ontology: Path, labels: Path, confidence: Path, *, lowest: float = QUALITY
) -> list[AudioClass]:
    """The classes that the paper considers, in the order of the ontology.

    They are used as labels, have no restriction, no children, and a quality estimate of at least `lowest`
    percent. Having no children is all that the original requires for "no parent-child relationship".
    """
    numbers, quality = read_labels(labels), read_quality(confidence)
    return [
        AudioClass(numbers[entry["id"]], entry["name"])
        for entry in read_ontology(ontology)
        if entry["id"] in numbers
        and quality.get(entry["name"], -1.0) >= lowest
        and not entry["restrictions"]
        and not entry["child_ids"]
    ]


def read_ontology(path: Path) -> list[dict[str, Any]]:
    """The classes of the ontology, each with the entries named in `ENTRIES`."""
    try:
        entries = json.loads(_text(path))
    except (ValueError, RecursionError) as error:
        raise PerdureError(f"'{path}' is not JSON ({error}); download it again.") from None
    if not isinstance(entries, list):
        raise PerdureError(f"'{path}' must be a list of classes, but is {type(entries).__name__}.")
    for number, entry in enumerate(entries, 1):
        for name, kind in ENTRIES.items():
            if not isinstance(entry, dict) or not isinstance(entry.get(name), kind):
                raise PerdureError(f"'{path}', class {number}: '{name}' must be a {kind.__name__}.")
    return entries


def read_labels(path: Path) -> dict[str, int]:
    """The number of each class that is used as a label, by the class's key."""
    numbers: dict[str, int] = {}
    taken: set[int] = set()
    for line, row in _rows(path, ","):
        if line == 1:
            if tuple(row) != LABEL_COLUMNS:
                raise PerdureError(
                    f"'{path}' must start with the columns {','.join(LABEL_COLUMNS)}, not "
                    f"{shortened(','.join(row))}."
                )
            continue
        if len(row) != len(LABEL_COLUMNS) or not _is_number(row[0]):
            raise PerdureError(
                f"'{path}', line {line}: expected a number, a key and a name, but found "
                f"{shortened(','.join(row))!r}."
            )
        if row[1] in numbers or int(row[0]) in taken:
            raise PerdureError(
                f"'{path}', line {line}: the class {shortened(row[1])} or the number {row[0]} appears twice."
            )
        numbers[row[1]] = int(row[0])
        taken.add(int(row[0]))
    if not numbers:
        raise PerdureError(f"'{path}' lists no classes.")
    return numbers


def read_quality(path: Path) -> dict[str, float]:
    """The quality estimate of each class in percent, by the class's name; of two, the later counts."""
    quality: dict[str, float] = {}
    for line, row in _rows(path, "\t"):
        if len(row) < 2:
            raise PerdureError(
                f"'{path}', line {line}: expected a name, a tab and a quality such as 80%, but found "
                f"{shortened(row[0])!r}."
            )
        if row[1] == "-":
            continue
        digits = row[1].removesuffix("%")
        if not row[1].endswith("%") or not _is_number(digits) or int(digits) > 100:
            raise PerdureError(
                f"'{path}', line {line}: the quality of '{shortened(row[0])}' must be a percentage such as "
                f"80%, or -, but is {shortened(row[1])!r}."
            )
        quality[row[0]] = float(digits)
    if not quality:
        raise PerdureError(f"'{path}' contains no quality estimates.")
    return quality


def _is_number(text: str) -> bool:
    """Whether a string is an integer of at most nine digits."""
    return text.isdecimal() and len(text) < 10


def _rows(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of each non-empty row."""
    reader = csv.reader(io.StringIO(_text(path), newline=""), delimiter=delimiter, skipinitialspace=True)
    try:
        for row in reader:
            if row:
                yield reader.line_num, row
    except csv.Error as error:
        raise PerdureError(f"'{path}', line {reader.line_num} cannot be read ({error}).") from None


def _text(path: Path) -> str:
    """A file's text without a byte-order mark."""
    try:
        return read(path, LARGEST).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PerdureError(f"'{path}' is not UTF-8 text (byte {error.start}); download it again.") from None
    except OSError as error:
        raise PerdureError(f"'{path}' cannot be read ({error.strerror}).") from None
