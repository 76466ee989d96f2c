"""The question of a comparison and its state: one JSON file, RUNS/comparisons/ID/comparison.json.

What a comparison concluded is kept with it: for each method its trials, candidates and choice as they were
then, since its search may go on. Numbers are in the records of the reporting seeds, which never change.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from perdure.compare.demands import Demands
from perdure.errors import PerdureError
from perdure.files import Damaged, read_json, write_json
from perdure.search.state import Design, Search, search_from

FOLDER, FILE = "comparisons", "comparison.json"
UNITS = {"b": 1, "kb": 1000, "mb": 1000**2, "gb": 1000**3, "kib": 1024, "mib": 1024**2, "gib": 1024**3}
METHODS = ("fine-tuning", "online-ewc", "si", "masking+si", "hnet", "coresets", "from-scratch")
"""Compared unless others are named: one or two of each kind, and the two extremes without any protection."""


@dataclass(frozen=True)
class Constraints:
    """What the method may do."""

    no_stored_data: bool = False
    """No samples of old tasks may be stored."""
    memory: int | None = None
    """Bytes that may outlive a task."""
    task_unknown: bool = False
    """At test time nobody tells which task a sequence belongs to."""


@dataclass(frozen=True)
class Conclusion:
    """What a comparison found about one method."""

    search: Search
    """Its trials, candidates and choice when the comparison ended."""
    demands: Demands

    @property
    def json(self) -> dict[str, Any]:
        """As plain data."""
        return {"search": self.search.json, "demands": self.demands._asdict()}


@dataclass
class Comparison:
    """The state of a comparison."""

    benchmark: str
    scale: str
    constraints: Constraints
    searches: dict[str, str]
    """The search of each method that takes part, by method."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Methods that do not take part, or no longer, each with the reason."""
    hours: float | None = None
    trials: int = 0
    """Trials of every method: the same number for all, or all points of its space if these are fewer."""
    seeds: int = 0
    """Reporting seeds."""
    command: str = ""
    seconds: float = 0.0
    """Time spent so far, over all sessions."""
    complete: bool = False
    concluded: dict[str, Conclusion] = field(default_factory=dict)
    """The answer, by method; empty until the comparison is complete, and in those of earlier versions."""

    @property
    def id(self) -> str:
        """12 hexadecimal digits that identify the question: benchmark, methods and constraints."""
        told = [self.benchmark, self.scale, asdict(self.constraints), sorted(self.searches.values())]
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:12]

    @property
    def taking_part(self) -> dict[str, str]:
        """The searches of methods that were not left out."""
        return {method: name for method, name in self.searches.items() if method not in self.left_out}

    @property
    def json(self) -> dict[str, Any]:
        """As plain data."""
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        concluded = {method: each.json for method, each in self.concluded.items()}
        more = {"constraints": asdict(self.constraints), "concluded": concluded}
        return {"format": 1, "id": self.id, **own, **more}

    def save(self, runs: Path) -> None:
        """Write the file."""
        write_json(place(runs, self.id) / FILE, self.json)


def asked(
    designs: Sequence[Design], constraints: Constraints, left_out: Mapping[str, str], command: str
) -> Comparison:
    """A new comparison of methods, whose searches have these designs."""
    first = designs[0]
    searches = {design.method: design.id for design in designs}
    return Comparison(first.benchmark, first.scale, constraints, searches, dict(left_out), command=command)


def place(runs: Path, name: str) -> Path:
    """The folder of a comparison."""
    return runs / FOLDER / name


def comparison_from(data: Any) -> Comparison:
    """The comparison that `save` wrote; raises Damaged for anything else."""
    try:
        rest = {name: value for name, value in data.items() if name not in ("format", "id")}
        concluded = {
            method: Conclusion(search_from(each["search"]), Demands(**each["demands"]))
            for method, each in data.get("concluded", {}).items()
        }
        more = {"constraints": Constraints(**data["constraints"]), "concluded": concluded}
        found, name = Comparison(**(rest | more)), data["id"]
    except (AttributeError, KeyError, TypeError) as error:
        raise Damaged(f"it is not a complete comparison ({error})") from error
    if found.id != name:
        raise Damaged("its id does not fit its question")
    return found


def resumed(runs: Path, comparison: Comparison) -> Comparison:
    """The same comparison with the time that earlier sessions took; a damaged file counts as none."""
    earlier = stored(runs, comparison.id)
    comparison.seconds = 0.0 if earlier is None else earlier.seconds
    return comparison


def stored(runs: Path, name: str) -> Comparison | None:
    """A comparison by its id; None if there is none, or its file is damaged."""
    path = place(runs, name) / FILE
    with suppress(Damaged):
        return comparison_from(read_json(path)) if path.exists() else None
    return None


def all_comparisons(runs: Path) -> tuple[list[Comparison], list[str]]:
    """All comparisons of a folder, and warnings about damaged ones."""
    found, warnings = [], []
    for path in sorted(runs.glob(f"{FOLDER}/*/{FILE}")):
        try:
            found.append(comparison_from(read_json(path)))
        except Damaged as error:
            warnings.append(f"'{path}' cannot be used ({error}).")
    return found, warnings


def bytes_of(text: str) -> int:
    """A number of bytes such as 500kB, 1MB or 1.5MiB."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([a-z]*)\s*", text.lower())
    if not found or (found[2] or "b") not in UNITS or not float(found[1]):
        raise PerdureError(f"--memory: write a number of bytes such as 500kB or 1MB (given: {text!r}).")
    return round(float(found[1]) * UNITS[found[2] or "b"])
