"""The folder through which runs in other processes report, and are asked to stop."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from perdure.experiment import RunResult
from perdure.learning.engine import Progress


class Building(NamedTuple):
    """The progress of a long build of a run's data."""

    what: str
    done: int
    total: int


News = str | Building | Progress | RunResult
"""What a run reports: a line of text, the progress of a data build, its own progress, and its result."""


class Mailbox:
    """One file of news per run, and a file called stop; it only needs a folder that both sides can see."""

    def __init__(self, folder: Path) -> None:
        """Use an existing folder."""
        self.folder = folder
        self.read: dict[Path, int] = {}

    def stop(self) -> None:
        """Ask all workers to save their state and stop."""
        with suppress(OSError):  # a missing mailbox means the same
            (self.folder / "stop").touch()

    def stopped(self) -> bool:
        """Whether a stop was requested; if the mailbox is gone, nothing is waiting for a result."""
        return (self.folder / "stop").exists() or not self.folder.exists()

    def put(self, number: int, news: str | Building | Progress) -> None:
        """Append news to the file of a run."""
        content = asdict(news) if isinstance(news, Progress) else news
        with (  # losing news does no harm
            suppress(OSError),
            open(self.folder / f"{number}.news", "a", encoding="utf-8") as file,
        ):
            file.write(json.dumps([type(news).__name__, content]) + "\n")

    def collected(self) -> Iterator[tuple[int, News]]:
        """The news since the last call."""
        for path in sorted(self.folder.glob("*.news")):
            with open(path, "rb") as file:
                file.seek(self.read.get(path, 0))
                for line in file:
                    if not line.endswith(b"\n"):  # still being written
                        break
                    self.read[path] = self.read.get(path, 0) + len(line)
                    yield int(path.stem), _news(*json.loads(line))


def _news(kind: str, content: Any) -> News:
    if kind == "Progress":
        return Progress(**content)
    return Building(*content) if kind == "Building" else str(content)
