"""What is known about the runs of a search: from its state, from records on disk, from workers' answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from perdure.executors import brought_home
from perdure.files import Damaged, read_json
from perdure.search.crew import Answer, Failure, Job
from perdure.search.selection import Validation, validation, validation_of
from perdure.search.state import Search, Seen
from perdure.storage.store import RunFolder


@dataclass(frozen=True)
class Ledger:
    """Reads and updates `seen` and `failures` of a search."""

    search: Search

    def settled(self, name: str, folder: Path, phases: int | None) -> bool:
        """Whether a run needs no more work up to `phases` (None: to the end), or would fail again."""
        search = self.search
        if name in search.failures or (name in search.seen and search.seen[name].enough(phases)):
            return True
        path = folder / name / "record.json"
        if not path.exists():
            return False
        try:
            record = read_json(path)
            found = validation_of(record)
        except (Damaged, AttributeError):
            return False  # the run will set it aside
        if found is not None:
            search.seen[name] = Seen([list(row) for row in found.matrix], True, record["seconds"])
        return found is not None

    def take(self, job: Job, outcome: Answer | Failure) -> None:
        """Store the outcome of a job; a record made elsewhere is written to the local folder."""
        name = job.config.hash
        if isinstance(outcome, Failure):
            if outcome.lasting:
                self.search.failures[name] = outcome.reason
        elif "record" in outcome:
            brought_home(outcome, job.runs, again=job.again)
            found = validation_of(outcome["record"])
            rows = [] if found is None else [list(row) for row in found.matrix]
            self.search.seen[name] = Seen(rows, True, outcome["record"]["seconds"])
        else:
            before = self.search.seen.get(name)
            spent = outcome["seconds"] + (before.seconds if before else 0.0)
            self.search.seen[name] = Seen(outcome["validation"], False, spent)

    def runs(self, hashes: Sequence[str], phases: int | None) -> list[Validation | None]:
        """The validation of runs; None for one that has not reached `phases`."""
        found = [self.search.seen.get(name) for name in hashes]
        return [
            validation(seen.rows) if seen is not None and seen.rows and seen.enough(phases) else None
            for seen in found
        ]

    def failure(self, hashes: Sequence[str]) -> str:
        """The reason of the first failure among runs; empty if none failed."""
        return next((self.search.failures[name] for name in hashes if name in self.search.failures), "")

    def seconds(self, hashes: Sequence[str]) -> float:
        """Total time of runs so far."""
        return sum(self.search.seen[name].seconds for name in hashes if name in self.search.seen)


def bytes_kept(folder: Path, hashes: Sequence[str]) -> int | None:
    """The most bytes that any of these runs keeps beyond its last task; None if no record tells."""
    records = [RunFolder(folder, name).record() for name in hashes]
    found = [record.kept_bytes[-1] for record in records if record is not None and record.kept]
    return max(found, default=None)
