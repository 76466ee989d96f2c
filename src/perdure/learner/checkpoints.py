"""The checkpoint of an unfinished lesson: one file, which is told from all others by a mark and a digest."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import warnings
from collections.abc import Callable
from pathlib import Path

from torch import Tensor

from perdure.config import Config
from perdure.files import Damaged, check_regular, read_tensors, set_aside, write_tensors
from perdure.learner.faults import writing, wrong, wrong_type
from perdure.learner.knowledge import Knowledge, Lesson
from perdure.learning.packing import pack
from perdure.learning.phase import Facts
from perdure.learning.splits import add_tensors
from perdure.networks.batch import Data
from perdure.networks.layout import Vectors

MARK = "perdure lesson"
"""What the facts of a checkpoint name as their format."""
BEGINNING = 2**20
"""Bytes at the beginning of a file in which the mark is looked for."""
LARGEST = 2**36
"""Bytes of the largest file that is looked at."""


def checkpoint_path(given: object) -> Path | None:
    """The file that a checkpoint is to be kept in; folders and what is no path are refused."""
    if given is None:
        return None
    if not isinstance(given, (str, Path)):
        raise wrong_type("checkpoint", f"it is {given!r}; name a file, such as 'lesson.safetensors'.")
    path = Path(given).expanduser()
    if not str(given) or not path.name or path.name == ".." or path.is_dir():
        raise wrong("checkpoint", f"{str(given)!r} is a folder; name a file, such as 'lesson.safetensors'.")
    with writing("checkpoint", path):
        _check_place(next(folder for folder in path.absolute().parents if folder.exists()))
    return path


def _check_place(folder: Path) -> None:
    """Raise OSError unless files can be written to a folder."""
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))


class CheckpointFile:
    """The store of an unfinished lesson: one file, or nothing.

    A file that is there belongs to the lesson if its digest is right, and its facts have the mark and name
    this lesson. One with a wrong digest is a damaged checkpoint if it begins like safetensors and has the
    mark near its beginning. Every other file is refused and stays as it is.
    """

    def __init__(self, path: Path | None, lesson: str) -> None:
        """Nothing is read or written yet."""
        self.path, self.lesson = path, lesson
        self.found: tuple[Vectors, Facts] | None = None
        self.own = False
        """Whether the file is this lesson's, to be replaced and removed."""

    def open(self) -> CheckpointFile:
        """Read the checkpoint, if there is one; a damaged one is set aside, another's file is refused."""
        if self.path is None or not self.path.exists():
            return self
        try:
            tensors, facts = read_tensors(self.path)
        except Damaged as error:
            self._set_aside(self.path, str(error))
            return self
        if not isinstance(facts, dict) or facts.get("format") != MARK:
            raise _foreign(self.path)
        if facts.get("lesson") != self.lesson:
            raise wrong(
                "checkpoint",
                f"'{self.path}' belongs to another lesson, with another task, other data or other settings; "
                f"name another file, or finish that lesson first.",
            )
        self.found, self.own = (tensors, facts), True
        return self

    def _set_aside(self, path: Path, reason: str) -> None:
        if not _marked(path):
            raise _foreign(path)
        with writing("checkpoint", path):
            aside = set_aside(path)
        warnings.warn(
            f"The checkpoint '{path}' is damaged ({reason}); it was set aside as '{aside.name}', and the "
            f"lesson begins again.",
            stacklevel=5,  # where `learn` was called
        )

    def load(self) -> tuple[Vectors, Facts] | None:
        """The checkpoint that was there, or None."""
        return self.found

    def save(self, tensors: Vectors, facts: Facts) -> None:
        """Replace the checkpoint."""
        if self.path is None:
            return
        if not self.own and self.path.exists():
            raise wrong(
                "checkpoint", f"'{self.path}' appeared while the lesson was learnt; name another file."
            )
        inside = {name: vector for name, vector in tensors.items() if name.startswith("phase|")}
        with writing("checkpoint", self.path):
            write_tensors(self.path, inside, {"format": MARK, "lesson": self.lesson, "phase": facts["phase"]})
        self.own = True

    def keep(self, phase: int, tensors: Vectors) -> None:
        """Nothing is kept but the result."""

    def resume(self, restore: Callable[[Vectors, Facts], None]) -> float:
        """Go on from the checkpoint, if there is one; returns the seconds spent before."""
        if self.found is None:
            return 0.0
        tensors, facts = self.found
        restore({name.removeprefix("phase|"): vector for name, vector in tensors.items()}, facts["phase"])
        return float(facts["phase"]["seconds"])

    def remove(self) -> None:
        """Delete the checkpoint of a finished lesson."""
        if self.path is not None and self.own:
            self.path.unlink(missing_ok=True)


def _foreign(path: Path) -> Exception:
    return wrong("checkpoint", f"'{path}' is not the checkpoint of a lesson; name a new file.")


def _marked(path: Path) -> bool:
    """Whether a file that cannot be read was the checkpoint of a lesson."""
    try:
        check_regular(path, LARGEST)
        with path.open("rb") as file:
            beginning = file.read(BEGINNING)
    except OSError:
        return False
    mark = json.dumps(json.dumps({"format": MARK})[1:-1])[1:-1]  # JSON within JSON
    return beginning[8:9] == b"{" and mark.encode() in beginning


def lesson_digest(config: Config, knowledge: Knowledge, lesson: Lesson) -> str:
    """Identifies a lesson: settings, what was known, and the data."""
    digest = hashlib.sha256(f"{config.hash} {lesson.name} {lesson.form} {len(knowledge.visits)}".encode())
    for part in lesson.scaling or ():
        digest.update(part.tobytes())
    kept = [each for number in sorted(knowledge.kept) for each in knowledge.kept[number]]
    state = pack(knowledge.state)
    for memory in (knowledge.row.memories if knowledge.row else {}).values():
        add_tensors(digest, (memory[name] for name in sorted(memory)))
    add_tensors(digest, (state[name] for name in sorted(state)))
    for data in (lesson.train, lesson.val, *kept):
        add_tensors(digest, _parts(data))
    return digest.hexdigest()


def _parts(data: Data) -> list[Tensor]:
    """What sequences consist of."""
    return [data.x, data.y, data.all_lengths]
