"""The folder of runs: find, lock, resume, publish."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perdure.errors import Busy, PerdureError
from perdure.files import (
    LARGEST_JSON,
    Damaged,
    read,
    read_json,
    read_tensors,
    set_aside,
    sweep,
    write,
    write_json,
    write_tensors,
)
from perdure.storage.record import FORMAT, Record
from perdure.storage.record import to_record as to_record

if TYPE_CHECKING:  # to look at runs, no torch is needed
    from perdure.config import Config
    from perdure.learning.phase import Facts
    from perdure.networks.layout import Vectors

RECORD, CONFIG = "record.json", "config.json"
AGAIN = ".again"
"""Beside a record, it says that the checkpoint is one of a run that is made again."""
PATIENCE = 10.0
"""Seconds to wait for another process that changes the same record."""
HASH = re.compile(r"[0-9a-f]{16}")
"""Names of folders that Perdure gives; a copy may be called otherwise."""


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
        """The finished record, or None; why one cannot be used is a warning. Nothing is changed."""
        if not os.path.lexists(self.path / RECORD):
            return None
        try:
            return self._read()
        except Damaged as error:
            self._warn(f"The record of run {self.path.name} cannot be used: {error}.")
            return None

    def finished(self) -> Record:
        """The finished record; a helpful error says why there is none."""
        record = self.record()
        if record is None:
            reason = f"Run {self.path.name} is not finished; the command that started it continues it."
            raise PerdureError(self.warnings[0] if self.warnings else reason)
        return record

    def _read(self) -> Record:
        data = read_json(self.path / RECORD)
        try:
            record = to_record(data)
        except Damaged as error:
            raise Damaged(f"{error}{_writer(data)}") from error
        if HASH.fullmatch(self.path.name) and record.hash != self.path.name:
            raise Damaged(f"it is the record of run {record.hash}")
        return record

    def recover(self, *, force: bool = False) -> Record | None:
        """As `record`, but one that cannot be used is set aside; requires the lock.

        A record of a newer version is no damage: it stays, unless `force` asks for another run.
        """
        path, record = self.path / RECORD, self.record()
        if record is not None or not os.path.lexists(path):
            return record
        fault = self.warnings.pop()
        if _is_newer(path) and not force:
            raise PerdureError(f"{fault.removesuffix('.')}; use that version, or run it again with --force.")
        self._warn(f"{fault.removesuffix('.')}; it was set aside as '{set_aside(path).name}'.")
        return None

    def _warn(self, sentence: str) -> None:
        if sentence not in self.warnings:
            self.warnings.append(sentence)

    @contextmanager
    def locked(self, config: Config) -> Iterator[None]:
        """Lock the folder for one process; the lock is released when the process ends, however it ends."""
        with self._noticing_removal():
            write_json(self.path / CONFIG, config.json)
            lock = self._acquired()
        with lock:
            sweep(self.path)
            yield

    def _acquired(self, patience: float = 0.0) -> AbstractContextManager[object]:
        """The lock of the folder, which must be there, after waiting for at most `patience` seconds.

        It is held already; it is released at the end of a `with`, which does not take it a second time.
        """
        from filelock import FileLock, Timeout

        lock = FileLock(self.path / ".lock")
        try:
            return lock.acquire(timeout=patience)
        except Timeout:
            raise Busy(
                f"Run {self.path.name} is being worked on by another process; wait for it to end."
            ) from None
        except OSError as error:
            raise PerdureError(f"Cannot write to '{self.path}' ({error.strerror or error}).") from error

    def load(self) -> tuple[Vectors, Facts] | None:
        """The checkpoint, or None; a damaged one is set aside and the run starts again."""
        if not os.path.lexists(self._checkpoint):
            return None
        try:
            return read_tensors(self._checkpoint)
        except Damaged as error:
            self.reject(error)
            return None

    def reject(self, error: Damaged) -> None:
        """Set the checkpoint aside, since it is not one; requires the lock."""
        aside = set_aside(self._checkpoint)
        self._warn(
            f"The checkpoint of run {self.path.name} cannot be used ({error}); it was set aside as "
            f"'{aside.name}', and the run starts again."
        )

    def save(self, tensors: Vectors, facts: Facts) -> None:
        """Replace the checkpoint."""
        self._check_present()
        with self._noticing_removal():
            write_tensors(self._checkpoint, tensors, facts, make_folder=False)

    @contextmanager
    def _noticing_removal(self) -> Iterator[None]:
        """Say that the folder was removed if that is why writing to it failed."""
        try:
            yield
        except PerdureError as error:
            if isinstance(error.__cause__, (FileNotFoundError, FileExistsError)):  # not a full disk
                self._check_present()
            raise

    def _check_present(self) -> None:
        """Raise a helpful error if the folder was removed while the run was in progress."""
        if not (self.path / CONFIG).exists():
            raise PerdureError(
                f"The folder '{self.path}' was removed while its run was in progress, and nothing can be "
                f"saved there; the same command starts the run again."
            )

    def keep(self, phase: int, tensors: Vectors) -> None:
        """Save the learner's state after a phase (from 0) permanently, as after-1.safetensors and so on."""
        self._check_present()
        with self._noticing_removal():
            write_tensors(self._after(phase), tensors, make_folder=False)

    def _after(self, phase: int) -> Path:
        return self.path / f"after-{phase + 1}.safetensors"

    def knowledge(self, phase: int) -> Vectors:
        """The state saved by `keep`."""
        try:
            return read_tensors(self._after(phase))[0]
        except Damaged as error:
            raise self.unusable(phase, error) from None

    def unusable(self, phase: int, error: Damaged) -> PerdureError:
        """What to say about a state that is not what `keep` saves."""
        return PerdureError(
            f"'{self._after(phase)}' cannot be used ({error}); perdure run ... --force creates it again."
        )

    def publish(self, record: Record, *, kept: bool = True) -> Record:
        """Write the record, which completes the run, and delete the checkpoint; returns what was written.

        If the states after its phases were kept, all of them must be there.
        """
        self._check_present()
        gone = [self._after(phase) for phase in range(len(record.iterations)) if kept]
        gone = [path for path in gone if not path.is_file()]
        if gone:
            self._checkpoint.unlink(missing_ok=True)
            raise PerdureError(
                f"'{gone[0]}' was removed while its run was in progress; the same command starts the run "
                f"again."
            )
        record = self._with_searches(record)
        with self._noticing_removal():
            write_json(self.path / RECORD, record.json, make_folder=False)
        for path in (self._checkpoint, self.path / AGAIN):
            path.unlink(missing_ok=True)
        return record

    def _with_searches(self, record: Record) -> Record:
        """A record with the searches that are noted in the one it replaces: they chose the same settings."""
        before = self.record()
        return record if before is None else replace(record, searches=before.searches | record.searches)

    def bring(self, record: Record, *, again: bool = False) -> None:
        """Write a record, and its config, that were made elsewhere.

        A record that is here stays, unless the run was asked for `again`: then the new one takes its place.
        """
        if (self.path / RECORD).exists() and (not again or self._has(record)):
            return
        write_json(self.path / CONFIG, record.config)
        with self._acquired(PATIENCE):
            self.recover(force=True)  # sets a damaged one aside
            write_json(self.path / RECORD, self._with_searches(record).json)

    def _has(self, record: Record) -> bool:
        """Whether a record is here already, as it is if its worker shares this folder."""
        there = self.record()
        # Searches are written into a record after it was made.
        return there is not None and replace(there, searches={}).json == replace(record, searches={}).json

    def note_search(self, record: Record, name: str, note: dict[str, Any] | None) -> Record:
        """Write down, within the record, a search that chose its settings; None if it no longer does.

        All else stays as it is.
        """
        if record.searches.get(name) == note:
            return record
        with self._acquired(PATIENCE):
            now = self.record() or record  # another search may have noted itself since it was read
            told = now.searches | {name: note}
            noted = replace(now, searches={each: one for each, one in told.items() if one is not None})
            write_json(self.path / RECORD, noted.json)
        return noted

    def repeat(self) -> None:
        """Begin a finished run again, for --force, or go on with that; requires the lock.

        The record stays until `publish` replaces it, so that an interruption costs nothing.
        """
        if (self.path / AGAIN).exists():
            return
        self._checkpoint.unlink(missing_ok=True)
        with self._noticing_removal():
            write(self.path / AGAIN, b"", make_folder=False)


def _writer(data: Any) -> str:
    """Which version wrote a record, for a sentence about it."""
    versions = data.get("versions") if isinstance(data, dict) else None
    name = versions.get("perdure") if isinstance(versions, dict) else None
    return f" (written by Perdure {name})" if isinstance(name, str) and len(name) < 40 else ""


def _is_newer(path: Path) -> bool:
    try:
        data = read_json(path)
    except Damaged:
        return False
    return isinstance(data, dict) and type(data.get("format")) is int and data["format"] > FORMAT


def writable(runs: Path) -> None:
    """Raise a helpful error if the folder of runs cannot be written to."""
    probe = runs / f".probe-{os.getpid()}"
    try:
        _write_there(probe)
    except PerdureError as error:
        cause = error.__cause__
        if not isinstance(cause, OSError) or cause.errno == errno.ENOSPC:
            raise
        raise PerdureError(
            f"Cannot write to '{runs}' ({cause.strerror or cause}); choose a writable folder with --runs DIR."
        ) from cause
    probe.unlink(missing_ok=True)


def _write_there(probe: Path) -> None:
    """Write an empty file, again if someone removed its folder just now: nothing of this run was in it."""
    try:
        write(probe, b"")
    except PerdureError as error:
        if not isinstance(error.__cause__, FileNotFoundError):
            raise
        write(probe, b"")


def all_records(runs: Path) -> tuple[list[Record], list[str]]:
    """The records of all finished runs in a folder, and warnings about damaged ones."""
    records, warnings = [], []
    for path in sorted(runs.glob(f"*/{RECORD}")):
        folder = RunFolder(runs, path.parent.name)
        record = folder.record()
        warnings += folder.warnings
        if record is not None:
            records.append(record)
    return records, warnings


def runs_naming(runs: Path, search: str) -> list[RunFolder]:
    """The runs in whose record the id of a search stands; records are not parsed, since there may be many."""
    found = []
    for path in sorted(runs.glob(f"*/{RECORD}")):
        with suppress(OSError):
            if search.encode() in read(path, LARGEST_JSON):
                found.append(RunFolder(runs, path.parent.name))
    return found


def find_run(runs: Path, name: str) -> RunFolder:
    """The folder of a run given by its path, its hash, or the hash's first digits."""
    path = Path(name)
    if any((path / file).exists() for file in (CONFIG, RECORD)):
        return RunFolder(path.resolve().parent, path.resolve().name)
    known = sorted({path.parent.name for file in (CONFIG, RECORD) for path in runs.glob(f"*/{file}")})
    matches = [run for run in known if name and run.startswith(name)]
    if len(matches) == 1:
        return RunFolder(runs, matches[0])
    if matches:
        raise PerdureError(f"'{name}' matches {len(matches)} runs in '{runs}'; give more digits.")
    raise PerdureError(f"No run '{name}' in '{runs}'; 'perdure show' lists all finished runs.")
