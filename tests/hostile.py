"""Hostile and clumsy input, and what every command promises about it.

A command ends with 0, 2, 130 or 143; what is wrong is said in sentences, one a line, each after `perdure: `;
there is no traceback, no hang, no escape code, and no file outside the folders that were given.
`make fuzz` sets PERDURE_FUZZ to try so many times as many cases.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from perdure.cli import main

TIMES = int(os.environ.get("PERDURE_FUZZ", "1"))
"""How many times as many cases are tried."""
BOUND = 60.0
"""Seconds that no command here may take, even on a busy machine; most take hundredths."""
CODES = (0, 2, 130, 143)
OWN = ("runs", "data", "cache", "plots")
"""Folders that a command may write to if it is given them."""

ODD_TEXTS = [
    "",
    " ",
    "x",
    "[bold red]x[/nope]",
    "[/]",
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "a\nb",
    "a\rb",
    "\u202ecod",
    "\ud800",
    "n" * 5000,
    "../../etc/passwd",
    "/dev/zero",
    "%s {0} {x}",
    "٣",
    "²",
    "nan",
    "1e999",
    "\x00",
    "-1",
]
ODD_NUMBERS = [0, -1, 1, 2, 2**31, 2**63, 10**400, -(10**400), 0.5, -0.0, 1e308, 1e-320]
NO_NUMBERS = [float("nan"), float("inf"), float("-inf")]
ODD_VALUES: list[Any] = [
    None,
    True,
    False,
    *ODD_TEXTS,
    *ODD_NUMBERS,
    *NO_NUMBERS,
    [],
    {},
    [[]],
    [None],
    [[1]],
    {"a": {"b": [1]}},
    {"": 0},
]
odd_texts, odd_values = st.sampled_from(ODD_TEXTS), st.sampled_from(ODD_VALUES)


def cases(count: int) -> settings:
    """So many cases, or more of them with `make fuzz`; the same ones in every quick run."""
    return settings(
        max_examples=count * TIMES,
        deadline=None,
        derandomize=TIMES == 1,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.explicit, Phase.generate, *([Phase.shrink] if TIMES > 1 else [])),
    )


@dataclass(frozen=True)
class Outcome:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def sentences(self) -> list[str]:
        """What it said about itself."""
        return [
            line.removeprefix("perdure: ") for line in self.err.splitlines() if line.startswith("perdure: ")
        ]


class TooLong(BaseException):
    """A command took longer than the bound; not an Exception, so that nobody catches it."""


@contextlib.contextmanager
def bounded(seconds: float = BOUND) -> Iterator[None]:
    """Raise TooLong in whatever takes longer, where the system has alarms."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def ring(*_: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def command(words: Sequence[str], *, most: int = 1, bound: float = BOUND) -> Outcome:
    """Run a command in this process, in the current folder, and check what every command promises.

    `most` is the number of sentences that it may need: one for each thing that is wrong.
    """
    before, streams = files_outside(), (sys.stdout, sys.stderr)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    sys.stdout, sys.stderr = out, err
    try:
        with bounded(bound):
            code = main(list(words))
    finally:
        sys.stdout, sys.stderr = streams
        for number, handler in handlers.items():
            signal.signal(number, handler)
    done = Outcome(code, *(each.buffer.getvalue().decode("utf-8") for each in (out, err)))
    check(words, done, most)
    assert files_outside() == before, words
    return done


def check(words: Sequence[str], done: Outcome, most: int = 1) -> None:
    """Whether a command's exit code and words are such as every command promises."""
    told = f"{' '.join(words)[:200]!r} -> {done.code}\n{done.out[-2000:]}\n{done.err[-2000:]}"
    assert done.code in CODES, told
    assert "Traceback" not in done.out + done.err, told
    assert (len(done.sentences) >= 1) if done.code else True, told
    assert len(done.sentences) <= most, told
    for sentence in done.sentences:
        assert sentence.strip().endswith((".", "?", "!", ")")), told
        assert len(sentence) < 2000, told
    odd = {letter for letter in done.out + done.err if unicodedata.category(letter) in ("Cc", "Cs")}
    assert odd <= {"\n"}, (odd, told)


def files_outside() -> set[Path]:
    """All files of the current folder but those in the folders that commands are given."""
    here = Path.cwd()
    found: set[Path] = set()
    for top in os.scandir(here):
        if top.name in OWN:
            continue
        found.add(Path(top.path))
        if top.is_dir(follow_symlinks=False):
            found |= {Path(folder) / name for folder, _, names in os.walk(top.path) for name in names}
    return found


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all nodes of plain data, of long lists only the first ones and the last."""
    found = [path]
    if isinstance(value, dict):
        found += [each for key, inner in value.items() for each in places(inner, (*path, key))]
    elif isinstance(value, list):
        shown = range(len(value)) if len(value) < 4 else (0, 1, len(value) - 1)
        found += [each for number in shown for each in places(value[number], (*path, number))]
    return found


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """A copy of plain data with one node replaced, or left out where `new` is `changed` itself."""
    if not path:
        return new
    first, *rest = path
    copy = dict(value) if isinstance(value, dict) else list(value)
    if not rest and new is changed:
        del copy[first]
    else:
        copy[first] = changed(value[first], tuple(rest), new)
    return copy
