"""Your own data on disk: a folder with one file or one sub-folder per task."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from perdure.benchmarks.sources.cache import digest
from perdure.benchmarks.sources.own.bundles import read_npy, read_npz
from perdure.benchmarks.sources.own.delimited import read_csv
from perdure.benchmarks.sources.own.parquet import read_parquet
from perdure.benchmarks.sources.own.parts import SPLITS, Faults, OwnSequences
from perdure.errors import PerdureError, unknown
from perdure.files import read

Reader = Callable[[Path, str | None, Faults], list[OwnSequences]]

READERS: dict[str, Reader] = {
    ".npz": read_npz,
    ".csv": read_csv,
    ".tsv": read_csv,
    ".csv.gz": read_csv,
    ".tsv.gz": read_csv,
    ".parquet": read_parquet,
}
"""Readers by file extension."""
ARRAYS = ".npy"
"""Extension of files in a sub-folder that hold one array each; together they are read like an npz file."""
ORDER = "tasks.txt"
"""A file in the folder that lists the tasks in order, one name per line."""
LONGEST_LIST = 2**24
"""Size in bytes of the longest list of tasks."""
DIGITS = 16
"""Number of hexadecimal digits of the digest of a folder's content."""


@dataclass(frozen=True)
class Source:
    """The files of one task."""

    name: str
    path: Path
    """The file or sub-folder."""
    files: tuple[Path, ...]
    """The files that are read."""
    ignored: tuple[Path, ...] = ()
    """The files in the sub-folder that are not read."""


@dataclass(frozen=True)
class FolderLayout:
    """The tasks of a folder in order, and the files that are not read."""

    sources: list[Source]
    ignored: list[Path] = field(default_factory=list)

    @property
    def content(self) -> str:
        """Digest of the files' names and bytes and of the order of the tasks: 16 hexadecimal digits."""
        whole = hashlib.sha256()
        for source in self.sources:
            for path in source.files:
                whole.update(f"{source.name}\0{path.name}\0{_digest(path)}\n".encode())
        return whole.hexdigest()[:DIGITS]


def lay_out(folder: Path, wanted: Sequence[str] = ()) -> FolderLayout:
    """Find the tasks of a folder: those wanted, or those listed in tasks.txt, or all, sorted by name."""
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "does not exist"
        raise PerdureError(f"'{folder}' {what}; name a folder with one file or sub-folder per task.")
    sources, ignored = _found(folder)
    names = wanted or _listed(folder)
    if names:
        chosen = _chosen(folder, names, sources)
        unnamed = {source.path for source in sources.values()} - {source.path for source in chosen}
        return FolderLayout(chosen, ignored if wanted else [*ignored, *sorted(unnamed)])
    if not sources:
        raise PerdureError(
            f"'{folder}' has no tasks; put one file per task there ({', '.join(READERS)}), or one sub-folder."
        )
    return FolderLayout(sorted(sources.values(), key=lambda source: natural(source.name)), ignored)


def read_source(source: Source, faults: Faults) -> list[OwnSequences]:
    """The parts of all files of a task; a fault in one file is reported, and the others are still read."""
    parts: list[OwnSequences] = []
    if not source.files:
        faults.add(
            f"'{source.path}' is an empty task: it has no file that ends in "
            f"{', '.join([*READERS, ARRAYS])}; add one, or move the folder elsewhere."
        )
    arrays = [path for path in source.files if path.suffix == ARRAYS]
    if arrays:
        with faults.gathering():
            parts += read_npy(arrays[0].parent, None, faults)
    for path in source.files:
        if path not in arrays:
            with faults.gathering():
                parts += READERS[ending(path)](path, _split_of(source, path), faults)
    return parts


def natural(name: str) -> list[tuple[int, str]]:
    """The key that sorts task 2 before task 10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]


def ending(path: Path) -> str:
    """The extension that determines how a file is read; empty if it is not read."""
    return next((known for known in READERS if path.name.lower().endswith(known)), "")


def _stem(path: Path) -> str:
    return path.name[: len(path.name) - len(ending(path))]


def _split_of(source: Source, path: Path) -> str | None:
    """The split of a file of a sub-folder, if it is called train, val or test."""
    return _stem(path) if source.path != path and _stem(path) in SPLITS else None


def _found(folder: Path) -> tuple[dict[str, Source], list[Path]]:
    """The tasks of a folder by name, and the files that belong to none."""
    sources: dict[str, Source] = {}
    ignored = []
    for path in _visible(folder):
        if path.is_dir():
            source = _sub_folder(path)
        elif ending(path):
            source = Source(_stem(path), path, (path,))
        else:
            if path.name != ORDER:
                ignored.append(path)
            continue
        if source.name in sources:
            other = sources[source.name].path.name
            raise PerdureError(
                f"'{path}' and '{other}' beside it are both task '{source.name}'; keep one file or "
                f"sub-folder per task."
            )
        sources[source.name] = source
    if sources and set(sources) <= set(SPLITS):
        raise PerdureError(
            f"'{next(iter(sources.values())).path}' is named after a split, not a task; put the splits "
            f"of a task into a sub-folder named after the task."
        )
    return sources, ignored


def _sub_folder(folder: Path) -> Source:
    files = [path for path in _visible(folder) if path.is_file()]
    read = tuple(path for path in files if ending(path) or path.suffix == ARRAYS)
    return Source(folder.name, folder, read, tuple(path for path in _visible(folder) if path not in read))


def _visible(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        raise PerdureError(f"'{folder}' cannot be read ({error.strerror or error}).") from None


def _listed(folder: Path) -> list[str]:
    """The names listed in tasks.txt, if it exists."""
    path = folder / ORDER
    if not path.exists():
        return []
    try:
        lines = [line.strip() for line in read(path, LONGEST_LIST).decode().splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", error)
        raise PerdureError(
            f"'{path}' cannot be read as a list of tasks ({reason}); save it as UTF-8."
        ) from None
    return [line for line in lines if line and not line.startswith("#")]


def _chosen(folder: Path, names: Sequence[str], sources: dict[str, Source]) -> list[Source]:
    seen: set[str] = set()
    for name in names:
        if name not in sources:
            raise PerdureError(f"'{folder}': {unknown('task', name, sources)}")
        if name in seen:
            raise PerdureError(f"'{folder}': task '{name}' is listed twice; each task is learnt once.")
        seen.add(name)
    return [sources[name] for name in names]


def _digest(path: Path) -> str:
    try:
        return digest(path)
    except OSError as error:
        raise PerdureError(f"'{path}' cannot be read ({error.strerror or error}).") from None
