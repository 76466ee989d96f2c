"""The state of a search: its design, every trial with its outcome, the candidates and the choice.

It is one JSON file, RUNS/searches/ID/search.json, replaced atomically. If it is lost, it is rebuilt from the
records of the trials in RUNS/trials.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from perdure.config import DATA_SEED, OWN_SEED
from perdure.errors import PerdureError
from perdure.files import Damaged, read_json, set_aside, write_json
from perdure.options import option_text
from perdure.search.problem import Problem
from perdure.search.selection import MARGIN
from perdure.search.spaces import Space, Values, space_from

FILE = "search.json"
SEARCHES, TRIALS = "searches", "trials"
"""Folders within the folder of runs; trials are kept apart because they are not reported."""
TUNING = 1000
"""The first tuning seed; reporting seeds start at 0."""
ENDED = ("finished", "stopped", "failed")
"""The states of trials that need no more work."""


@dataclass(frozen=True)
class Design:
    """The question of a search; its id does not depend on the budget."""

    benchmark: str
    method: str
    scale: str
    given: Values
    """Fixed options."""
    config: str
    """Hash of the config with the fixed options and seed 0; unlike `given`, independent of spelling.

    That config is the same for data that vary with the seed of the run, so the id names these as well.
    """
    space: Space
    sampler: str = "random"
    seed: int = 0
    """Seed of the sampler."""
    tuning_seeds: tuple[int, ...] = (TUNING,)
    halving: bool = False
    margin: float = MARGIN

    @property
    def problem(self) -> Problem:
        """Benchmark and method."""
        return Problem(self.benchmark, self.method, self.scale, self.given)

    @property
    def question(self) -> str:
        """What is searched, apart from the method, as in "smnist, benchmark.digits 2"."""
        held = (f"{name} {option_text(value)}" for name, value in sorted(self.given.items()))
        return ", ".join([self.benchmark, *held])

    @property
    def json(self) -> dict[str, Any]:
        """As plain data."""
        own = {name: value for name, value in vars(self).items() if name != "space"}
        return own | {"space": self.space.json, "tuning_seeds": list(self.tuning_seeds)}

    @property
    def id(self) -> str:
        """12 hexadecimal digits that identify the design."""
        told = {name: value for name, value in self.json.items() if name != "given"}
        told["space"] = {name: value for name, value in told["space"].items() if name != "source"}
        if self.given.get(DATA_SEED) == OWN_SEED:
            told[DATA_SEED] = OWN_SEED
        text = json.dumps(told, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def design_from(data: Mapping[str, Any]) -> Design:
    """The design that `Design.json` wrote."""
    return Design(**{**data, "space": space_from(data["space"]), "tuning_seeds": tuple(data["tuning_seeds"])})


@dataclass
class Seen:
    """What is known about a run: its validation matrix, and whether the run is complete."""

    rows: list[list[float]]
    whole: bool
    seconds: float = 0.0

    def enough(self, phases: int | None) -> bool:
        """Whether the run reached `phases`, or its end if None."""
        return self.whole or (phases is not None and len(self.rows) >= phases)


@dataclass
class Trial:
    """One point, run with each tuning seed."""

    number: int
    """From 1, in the order in which points were proposed."""
    values: Values
    hashes: list[str]
    """Hashes of its runs, one for each tuning seed."""
    status: str = "waiting"
    """waiting, going on (between rungs of halving), finished, stopped (by halving), or failed."""
    phases: int = 0
    """Number of finished phases."""
    final: float | None = None
    """Mean validation `final` over tuning seeds, after these phases."""
    during: float | None = None
    rank: int | None = None
    """Rank among the finished trials, from 1."""
    reason: str = ""
    seconds: float = 0.0


@dataclass
class Candidate:
    """A setting that was run with reporting seeds."""

    trial: int
    hashes: list[str]
    final: float | None = None
    """Mean validation `final` over reporting seeds; None if a run failed."""
    robust: bool = False
    reason: str = ""


@dataclass
class Search:
    """The current state of a search."""

    design: Design
    trials: list[Trial] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    """Distinct reasons why points were not tried at all."""
    seen: dict[str, Seen] = field(default_factory=dict)
    """What is known about every run, by hash."""
    failures: dict[str, str] = field(default_factory=dict)
    """Runs that would fail again, with the reason, by hash."""
    seeds: list[int] = field(default_factory=list)
    """Reporting seeds."""
    candidates: list[Candidate] = field(default_factory=list)
    chosen: int | None = None
    """Number of the trial whose values were chosen."""
    seconds: float = 0.0
    """Time spent so far, over all sessions."""
    complete: bool = False
    """Whether the search has ended."""

    @property
    def id(self) -> str:
        """The id of the design."""
        return self.design.id

    @property
    def values(self) -> Values:
        """The chosen values."""
        if self.chosen is None:
            raise PerdureError(
                f"Search {self.id} has chosen nothing yet; run the same command again to continue it."
            )
        return self.trials[self.chosen - 1].values

    @property
    def reported(self) -> list[str]:
        """Hashes of the chosen setting's runs with reporting seeds."""
        return [name for each in self.candidates if each.trial == self.chosen for name in each.hashes]

    @property
    def ranked(self) -> list[Trial]:
        """Finished trials, best first."""
        return sorted((trial for trial in self.trials if trial.rank), key=lambda trial: trial.rank or 0)

    def exhausted(self, asked: int) -> bool:
        """Whether so many trials were asked for, but all points of the space are fewer."""
        return 0 < len(self.trials) < asked and all(trial.status != "waiting" for trial in self.trials)

    @property
    def note(self) -> dict[str, Any]:
        """The provenance stored in records that use the chosen values."""
        design, trial = self.design.json, self.trials[(self.chosen or 1) - 1]
        counts = {
            status: sum(each.status == status for each in self.trials)
            for status in ("finished", "stopped", "failed")
        }
        return {
            "values": self.values,
            "trial": trial.number,
            "rank": trial.rank,
            "validation_final": trial.final,
            "trials": len(self.trials),
            **counts,
            **{name: design[name] for name in ("sampler", "seed", "space", "tuning_seeds", "halving")},
            "reporting_seeds": self.seeds,
        }

    @property
    def json(self) -> dict[str, Any]:
        """As plain data."""
        return {"format": 1, "id": self.id, **asdict(self), "design": self.design.json}

    def save(self, runs: Path) -> None:
        """Write the file."""
        write_json(place(runs, self.id) / FILE, self.json)


def place(runs: Path, name: str) -> Path:
    """The folder of a search."""
    return runs / SEARCHES / name


def search_from(data: Any) -> Search:
    """The search that `Search.json` wrote; raises Damaged for anything else."""
    try:
        rest = {name: value for name, value in data.items() if name not in ("format", "id")}
        found = Search(
            **{
                **rest,
                "design": design_from(data["design"]),
                "trials": [Trial(**each) for each in data["trials"]],
                "seen": {name: Seen(**each) for name, each in data["seen"].items()},
                "candidates": [Candidate(**each) for each in data["candidates"]],
            }
        )
        name = data["id"]
    except (AttributeError, KeyError, TypeError, PerdureError) as error:
        raise Damaged(f"it is not a complete search ({str(error).rstrip('.')})") from error
    if found.id != name:
        raise Damaged("its id does not fit its design")
    return found


def load(runs: Path, design: Design, say: Callable[[str], None] = lambda text: None) -> Search:
    """The stored state of a search, or a new one; a damaged file is set aside, which is said."""
    path = place(runs, design.id) / FILE
    if path.exists():
        try:
            return search_from(read_json(path))
        except Damaged as error:
            aside = set_aside(path).name
            say(
                f"'{path}' cannot be used ({error}); it was set aside as '{aside}', and the search is put "
                f"together again from the records of its trials"
            )
    return Search(design)


def find_search(runs: Path, name: str) -> Search:
    """Find a search by its id, the first digits of it, or its file."""
    path = Path(name)
    if not path.is_file():
        known = sorted(path.parent.name for path in runs.glob(f"{SEARCHES}/*/{FILE}"))
        matches = [each for each in known if name and each.startswith(name)]
        if len(matches) != 1:
            hint = f"known are: {', '.join(known)}." if known else "perdure search makes one."
            many = f"'{name}' fits {len(matches)} searches in '{runs}'; give more digits."
            raise PerdureError(many if matches else f"No search '{name}' in '{runs}'; {hint}")
        path = place(runs, matches[0]) / FILE
    try:
        return search_from(read_json(path))
    except Damaged as error:
        raise PerdureError(f"'{path}' cannot be used ({error}).") from None


def all_searches(runs: Path) -> tuple[list[Search], list[str]]:
    """All searches in a folder, and warnings about damaged ones."""
    found, warnings = [], []
    for path in sorted(runs.glob(f"{SEARCHES}/*/{FILE}")):
        try:
            found.append(search_from(read_json(path)))
        except Damaged as error:
            warnings.append(f"'{path}' cannot be used ({error}).")
    return found, warnings
