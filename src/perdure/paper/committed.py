"""The folder of committed results: records without tensors, findings, and the page made of them.

Layout: HASH/record.json (one line, curves thinned), findings/ITEM-SCALE.json, searches/ID/search.json (how
settings were chosen), notes/ITEM.md (by hand: what was tried where ours differ; see report/notes.py),
estimates.json (what runs that are missing would take). Tables are computed again from the records; items that
need the weights of runs keep the findings that were computed where the weights are.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from perdure.errors import PerdureError, counted
from perdure.files import write
from perdure.paper.conclusions import conclusions_of
from perdure.paper.findings import FOLDER, Findings, all_findings
from perdure.paper.item import FinishedRuns, Item, items
from perdure.paper.results import evaluate
from perdure.search.state import Search, all_searches
from perdure.storage.record import Record
from perdure.storage.store import all_records

SCALES = ("paper", "laptop")
"""Scales whose results are kept."""
MOST_SEEDS = 10
"""Seeds 0 to 9 are reported; those of searches are far above."""
POINTS, FEWEST = 60, 3
"""Points of the curves that are kept of a run, and at least of each phase."""
DIGITS = 4
"""Significant digits of their values."""
MANY = 20
"""With more tasks, what is not needed for `during` and `final` is rounded: such matrices are large."""


class Collected(NamedTuple):
    """How many of each kind were copied."""

    records: int
    findings: int
    searches: int


def collect(runs: Path, results: Path, tell: Callable[[str], None] = lambda text: None) -> Collected:
    """Copy finished records that items need, findings, and searches with a choice into the results.

    What cannot be read is told and left out. A record that is there already stays if the new one says
    nothing else about learning: times of a quiet machine are not replaced by those of a busy one. Nor is one
    replaced by a copy with the digits of an older arithmetic. Which searches chose its settings is brought up
    to date in any case, as far as these searches are among the runs.
    """
    (records, findings, searches), warnings = _all_of(runs)
    for warning in warnings:
        tell(warning)
    known = {search.id for search in searches}
    findings = [one for one in findings if one.scale in SCALES]
    searches = [each for each in searches if each.chosen and each.design.scale in SCALES]
    chosen = _needed(records, findings, searches)
    kept = {record.hash: record for record in all_records(results)[0]}
    merged = [_merged(record, kept.get(record.hash), known) for record in map(compact, chosen)]
    new = [record for record in merged if record != kept.get(record.hash)]
    for record in new:
        write(results / record.hash / "record.json", line(record.json))
    for one in findings:
        write(results / FOLDER / f"{one.file}.json", line(one.json))
    for search in searches:
        search.save(results)
    return Collected(len(new), len(findings), len(searches))


def _merged(record: Record, there: Record | None, known: Set[str]) -> Record:
    """What is kept of a record and of the one that is there; of `known` searches the first is told of all."""
    if there is None:
        return record
    elsewhere = {name: note for name, note in there.searches.items() if name not in known}
    kept = record if _says_more(record, there) else there
    return replace(kept, searches=elsewhere | record.searches)


def _says_more(record: Record, there: Record) -> bool:
    """Whether a record says something else than the one that is there, and is not older."""
    new, old = (int(each.machine.get("digits", "0")) for each in (record, there))
    return new >= old and _learnt(record) != _learnt(there)


def prune(results: Path) -> list[str]:
    """Remove the records that no item, finding or search needs any more; returns their hashes.

    While something cannot be read, nothing is removed: which records it needs is not known.
    """
    (records, findings, searches), warnings = _all_of(results)
    if warnings:
        raise PerdureError(
            f"{warnings[0].rstrip('.')}; which records it needs is not known, so nothing is removed. "
            f"Restore or remove what is damaged ({counted(len(warnings), 'file')}) first."
        )
    needed = {each.hash for each in _needed(records, findings, searches)}
    gone = sorted({record.hash for record in records} - needed)
    for name in gone:
        shutil.rmtree(results / name)
    return gone


def _all_of(folder: Path) -> tuple[tuple[list[Record], list[Findings], list[Search]], list[str]]:
    """The records, findings and searches of a folder, and warnings about all that cannot be read."""
    (records, first), (findings, second) = all_records(folder), all_findings(folder)
    searches, third = all_searches(folder)
    return (records, findings, searches), first + second + third


def _needed(
    records: Iterable[Record], findings: Iterable[Findings], searches: Iterable[Search]
) -> list[Record]:
    """The records behind findings and choices, and those of settings that items have; no tuning seeds."""
    used = {name for one in findings for cell in one.cells for name in cell.hashes}
    used |= {name for search in searches for each in search.candidates for name in each.hashes}
    wanted = _wanted()
    return [
        record
        for record in records
        if record.hash in used or (record.seed < MOST_SEEDS and _without_seeds(record.config) in wanted)
    ]


def kept_scales(item: Item) -> list[str]:
    """The scales of an item whose results are kept, the largest first."""
    return [scale for scale in SCALES if scale in item.scales]


def _wanted() -> set[str]:
    """The settings of all items at the scales that are kept, whatever the seeds of runs and data."""
    return {
        _without_seeds(setting.configs(scale, 1)[0].json)
        for item in items().values()
        for scale in kept_scales(item)
        for setting in item.settings(scale)
    }


def _without_seeds(config: Mapping[str, Any]) -> str:
    """A config's JSON as text, without the run's seed and the data's."""
    plain = {name: value for name, value in config.items() if name != "seed"}
    benchmark = {name: value for name, value in config["benchmark"].items() if name != "data_seed"}
    return json.dumps(plain | {"benchmark": benchmark}, sort_keys=True)


def _learnt(record: Record) -> Record:
    """A record without how long it took and where, its curves, and how its settings were found."""
    return replace(record, seconds=0.0, timings=[], machine={}, versions={}, curves=[], searches={})


def compact(record: Record) -> Record:
    """The record with curves of a few points and digits; everything else as it is, but for many tasks.

    With more than MANY tasks, the accuracies that `during` and `final` are the means of stay as they are, the
    others become whole percent; the matrices of F1 and of validation data are left out.
    """
    points = max(POINTS // max(len(record.curves), 1), FEWEST)
    record = replace(record, curves=[_thinned(curve, points) for curve in record.curves])
    if len(record.tasks) <= MANY:
        return record
    rounded = [
        [
            value if task == phase or phase == len(record.tasks) - 1 else round(value)
            for task, value in enumerate(row)
        ]
        for phase, row in enumerate(record.accuracy)
    ]
    return replace(record, accuracy=rounded, f1=[], validation=[])


def _thinned(curve: list[dict[str, float]], points: int) -> list[dict[str, float]]:
    """Evenly spaced points of a curve, the last among them."""
    step = -(-len(curve) // points) or 1
    kept = curve[::-1][::step][::-1]
    return [{name: float(f"{value:.{DIGITS}g}") for name, value in point.items()} for point in kept]


def line(data: object) -> bytes:
    """JSON in one line."""
    return (json.dumps(data, separators=(",", ":"), ensure_ascii=False) + "\n").encode()


def kept_findings(results: Path) -> list[Findings]:
    """The findings of all items: computed from records, or if they need more, with the numbers kept."""
    records = {record.hash: record for record in all_records(results)[0]}
    stored = {one.file: _judged_again(one) for one in all_findings(results)[0]}
    computed = {one.file: one for one in _computed(results, records)}
    return list((stored | computed).values())


def _judged_again(kept: Findings) -> Findings:
    """Kept numbers with today's words, and judged by today's rules; how they were made stays as it was."""
    item = items().get(kept.name)
    if item is None:
        return kept
    return replace(
        kept,
        title=item.title,
        source=item.source,
        about=item.about,
        conclusions=conclusions_of(item.findings_of_the_paper(kept.scale), kept.cells),
    )


def _computed(results: Path, records: Mapping[str, Record]) -> Iterable[Findings]:
    """The items that can be computed from records alone and have some, with as many seeds as there are."""
    there = {(record.benchmark, record.method) for record in records.values()}
    for name, item in items().items():
        for scale in kept_scales(item) if item.from_records else ():
            if not any((setting.benchmark, setting.method) in there for setting in item.settings(scale)):
                continue
            finished = FinishedRuns(scale, MOST_SEEDS, results, records, partial=True)
            seeds = max((len(finished.of(setting)) for setting in item.settings(scale)), default=0)
            if seeds:
                yield evaluate(name, item, replace(finished, seeds=seeds))[0]


def keep_findings(findings: Iterable[Findings], results: Path) -> None:
    """Write findings beside the records, for the report."""
    for one in findings:
        write(results / FOLDER / f"{one.file}.json", line(one.json))
