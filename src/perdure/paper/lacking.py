"""What is missing from the committed results, and how many core-hours it would take."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from pydantic import TypeAdapter, ValidationError

from perdure.config import Config
from perdure.errors import PerdureError
from perdure.files import Damaged, read_json, write
from perdure.paper.committed import MOST_SEEDS, SCALES, kept_scales, line
from perdure.paper.findings import all_findings
from perdure.paper.item import Item, items
from perdure.paper.plan import Plan, estimate
from perdure.storage.store import all_records

ESTIMATES = "estimates.json"
"""Seconds of a run of each setting that has none, by the hash of its first seed."""


@dataclass(frozen=True)
class Lacking:
    """What an item lacks at a scale."""

    name: str
    scale: str
    needed: int
    """Runs of the item."""
    missing: int
    """Runs that are not there; 0 if only the evaluation is missing."""
    hours: float | None
    """Core-hours of the missing runs; None if unknown."""


def missing(results: Path) -> list[Lacking]:
    """Each item and scale that lacks runs or has not been evaluated.

    A setting with finished seeds is assumed to take as long as these did, another as long as was estimated.
    """
    known = {record.hash: record.seconds for record in all_records(results)[0]}
    guessed = estimates(results)
    kept = {one.file for one in all_findings(results)[0]}
    found = []
    for name, item in items().items():
        for scale in kept_scales(item):
            lacking = _lacking(name, item, scale, known, guessed)
            if lacking.missing or f"{name}-{scale}" not in kept:
                found.append(lacking)
    return found


def _lacking(
    name: str, item: Item, scale: str, known: Mapping[str, float], guessed: Mapping[str, float]
) -> Lacking:
    needed, count, seconds, sure = 0, 0, 0.0, True
    settings = [setting.configs(scale, item.seeds(scale)) for setting in item.settings(scale)]
    for configs in {each[0].hash: each for each in settings}.values():  # two rows may share their runs
        finished = [known[config.hash] for config in configs if config.hash in known]
        each = fmean(finished) if finished else guessed.get(configs[0].hash)
        lacking = len(configs) - len(finished)
        needed, count = needed + len(configs), count + lacking
        sure = sure and (each is not None or not lacking)
        seconds += lacking * (each or 0.0)
    return Lacking(name, scale, needed, count, seconds / 3600 if sure else None)


def estimates(results: Path) -> dict[str, float]:
    """Estimated seconds of a run, by the hash of its setting's first seed; empty if nothing was estimated."""
    path = results / ESTIMATES
    if not path.is_file():
        return {}
    try:
        return TypeAdapter(dict[str, float]).validate_python(read_json(path))
    except (Damaged, ValidationError) as error:
        reason = "it does not hold seconds by hash" if isinstance(error, ValidationError) else error
        raise PerdureError(
            f"'{path}' cannot be used ({reason}); remove it, and perdure results estimate makes it again."
        ) from None


def estimate_missing(results: Path, tell: Callable[[str], None], names: Collection[str] = ()) -> int:
    """Time a few iterations of each setting without a finished run, and keep the estimates; how many.

    Those made before stay. Settings whose data are not there cannot be timed, and are told. If items are
    named, only theirs are timed.
    """
    before, found = estimates(results), dict[str, float]()
    for name, place, first in _never_run(results):
        if first.hash in found:
            continue
        if names and name not in names:
            found |= {first.hash: before[first.hash]} if first.hash in before else {}
            continue
        try:
            seconds = before.get(first.hash) or estimate(Plan([first], {}))[first.hash]
        except PerdureError as error:
            tell(f"{place}: {error}")
            continue
        found[first.hash] = float(f"{seconds:.2g}")
        write(results / ESTIMATES, line(before | found))
        tell(f"{place}: {seconds:.0f} s")
    write(results / ESTIMATES, line(found))  # without those of settings that have been run since
    return len(found)


def _never_run(results: Path) -> Iterator[tuple[str, str, Config]]:
    """The settings without a finished run: item, setting in words, and the config of their first seed."""
    known = {record.hash for record in all_records(results)[0]}
    for scale in reversed(SCALES):  # the smaller first: it is what most people wait for
        for name, item in items().items():
            for setting in item.settings(scale) if scale in item.scales else ():
                configs = setting.configs(scale, MOST_SEEDS)
                if not any(config.hash in known for config in configs):
                    yield name, f"{name}, {scale}, {setting.label}", configs[0]
