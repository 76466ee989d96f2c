"""Provenance: a record says which searches chose its settings, as long as they do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from perdure.search.spaces import Values
from perdure.search.state import Search
from perdure.storage.store import RunFolder, runs_naming

COMPARISON = "comparison"
"""Key of the budget with which a comparison chose; such a note does not change with the search."""


def note_choice(runs: Path, search: Search) -> None:
    """Write a search into the records that use its choice, and take it out of those that no longer do."""
    for folder in runs_naming(runs, search.id):
        record = folder.record()
        told = None if record is None else record.searches.get(search.id)
        if record is None or told is None or COMPARISON in told:
            continue
        if not _same(told.get("values"), search.values):
            folder.note_search(record, search.id, None)
    _write(runs, search, search.note)


def note_comparison(runs: Path, part: Search, budget: dict[str, Any]) -> None:
    """Write into records what was chosen within a budget that shows only a part of a search."""
    _write(runs, part, part.note | {COMPARISON: budget})


def _write(runs: Path, search: Search, note: dict[str, Any]) -> None:
    for name in search.reported:
        folder = RunFolder(runs, name)
        record = folder.record()
        if record is not None:
            folder.note_search(record, search.id, note)


def _same(told: object, values: Values) -> bool:
    """Whether values are those that JSON told, which has lists for tuples."""
    return bool(told == json.loads(json.dumps(values)))
