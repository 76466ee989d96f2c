"""The folder of runs: find, lock, resume, publish."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from perdure.config import Config
from perdure.errors import Busy, PerdureError
from perdure.files import (
    Damaged,
    read_json,
    read_tensors,
    set_aside,
    sweep,
    write,
    write_json,
    write_tensors,
)
from perdure.learning.phase import Facts
from perdure.networks.layout import Vectors
from perdure.storage.record import Record


class RunFolder:
    """The folder of one run: config.json, checkpoint, learner state after each phase, finally record.json."""

    def __init__(self, runs: Path, config_hash: str) -> None:
        """The folder RUNS/HASH; nothing is created yet."""
        self.path = runs / config_hash
        self.warnings: list[str] = []

    @property
    def _checkpoint(self) -> Path:
        return self.path / "checkpoint.safetensors"

    def record(self) -> Record | None:
        """The finished record, or None; a damaged one is set aside."""
        path = self.path / "record.json"
        if not path.exists():
            return None
        try:
            return to_record(read_json(path))
        except Damaged as error:
            self._warn(path, error)
            return None

    @contextmanager
    def locked(self, config: Config) -> Iterator[None]:
        """Lock the folder for one process; the lock is released when the process ends, however it ends."""
        write_json(self.path / "config.json", config.json)
        lock = FileLock(self.path / ".lock")
        try:
            lock.acquire(blocking=False)
        except Timeout:
            raise Busy(
                f"Run {self.path.name} is being worked on by another process; wait for it to end."
            ) from None
        except OSError as error:
            raise PerdureError(f"Cannot write to '{self.path}' ({error.strerror or error}).") from error
        try:
            sweep(self.path)
            yield
        finally:
            lock.release()

    def load(self) -> tuple[Vectors, Facts] | None:
        """The checkpoint, or None; a damaged one is set aside and the run starts again."""
        if not self._checkpoint.exists():
            return None
        try:
            return read_tensors(self._checkpoint)
        except Damaged as error:
            self._warn(self._checkpoint, error)
            return None

    def save(self, tensors: Vectors, facts: Facts) -> None:
        """Replace the checkpoint."""
        write_tensors(self._checkpoint, tensors, facts)

    def keep(self, phase: int, tensors: Vectors) -> None:
        """Save the learner's state after a phase (from 0) permanently, as after-1.safetensors and so on."""
        write_tensors(self.path / f"after-{phase + 1}.safetensors", tensors)

    def knowledge(self, phase: int) -> Vectors:
        """The state saved by `keep`."""
        path = self.path / f"after-{phase + 1}.safetensors"
        try:
            return read_tensors(path)[0]
        except Damaged as error:
            raise PerdureError(
                f"'{path}' cannot be used ({error}); perdure run ... --force creates it again."
            ) from None

    def publish(self, record: Record) -> None:
        """Write the record, which completes the run, and delete the checkpoint."""
        write_json(self.path / "record.json", record.json)
        self._checkpoint.unlink(missing_ok=True)

    def bring(self, record: Record) -> None:
        """Write a record, and its config, that were made elsewhere."""
        write_json(self.path / "config.json", record.config)
        write_json(self.path / "record.json", record.json)

    def note_search(self, record: Record, name: str, note: dict[str, Any]) -> Record:
        """Write down, within the record, a search that chose its settings; all else stays as it is."""
        if record.searches.get(name) == note:
            return record
        noted = replace(record, searches=record.searches | {name: note})
        write_json(self.path / "record.json", noted.json)
        return noted

    def clear(self) -> None:
        """Delete the results of a finished run, for --force; requires the lock."""
        for path in (self.path / "record.json", self._checkpoint):
            path.unlink(missing_ok=True)

    def _warn(self, path: Path, error: Exception) -> None:
        aside = set_aside(path)
        self.warnings.append(
            f"'{path.name}' of run {self.path.name} is damaged ({error}); it was set aside as "
            f"'{aside.name}' and is not used."
        )


LATER = {"f1", "error", "score", "validation", "searches"}
"""Fields that older records lack."""


def to_record(data: Any) -> Record:
    """A record from JSON data; raises Damaged if fields are missing or unknown."""
    names = {field.name for field in fields(Record)}
    needed = names - LATER
    if not isinstance(data, dict) or not needed <= set(data) <= names:
        raise Damaged("it is not a complete record")
    return Record(**data)


def writable(runs: Path) -> None:
    """Raise a helpful error if the folder of runs cannot be written to."""
    probe = runs / f".probe-{os.getpid()}"
    write(probe, b"")
    probe.unlink()


def all_records(runs: Path) -> tuple[list[Record], list[str]]:
    """The records of all finished runs in a folder, and warnings about damaged ones."""
    records, warnings = [], []
    for path in sorted(runs.glob("*/record.json")):
        folder = RunFolder(runs, path.parent.name)
        record = folder.record()
        warnings += folder.warnings
        if record is not None:
            records.append(record)
    return records, warnings


def find_run(runs: Path, name: str) -> RunFolder:
    """The folder of a run given by its path, its hash, or the hash's first digits."""
    path = Path(name)
    if (path / "config.json").exists():
        return RunFolder(path.resolve().parent, path.resolve().name)
    known = sorted(path.parent.name for path in runs.glob("*/config.json"))
    matches = [run for run in known if name and run.startswith(name)]
    if len(matches) == 1:
        return RunFolder(runs, matches[0])
    if matches:
        raise PerdureError(f"'{name}' matches {len(matches)} runs in '{runs}'; give more digits.")
    raise PerdureError(f"No run '{name}' in '{runs}'; 'perdure show' lists all finished runs.")
