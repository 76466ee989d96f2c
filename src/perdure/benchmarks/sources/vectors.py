"""Pre-trained word vectors: text files in the word2vec and fastText format, and polyglot's pickles."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from perdure.benchmarks.sources.polyglot import read_polyglot
from perdure.benchmarks.task import Array
from perdure.errors import PerdureError

LONGEST_LINE = 2**20
"""Maximum length in bytes of a line of a text file; 300 numbers take about 3000."""

RAW_SPACES = " \t"
"""What separates a word from its numbers; other white space may be part of a word."""

_DIGIT = re.compile("[0-9]")


class WordVectors(NamedTuple):
    """Words, most frequent first, and their vectors, float32 [V, D]."""

    words: list[str]
    table: Array


def without_digits(form: str) -> str:
    """Replace each digit by #, as polyglot's vocabularies do."""
    return _DIGIT.sub("#", form)


def spellings(form: str) -> tuple[str, str, str, str, str]:
    """All spellings of a word: itself, with # for digits, and the latter in lower, upper and title case."""
    plain = without_digits(form)
    return form, plain, plain.lower(), plain.upper(), plain.title()


def find(form: str, rank: Mapping[str, int]) -> int | None:
    """The index of a word in a vocabulary, by the original's rules; None if it is unknown.

    The word as it is; else with # for digits; else in its most frequent case (the lowest rank).
    """
    exact, plain, *cases = spellings(form)
    for spelling in (exact, plain):
        if spelling in rank:
            return rank[spelling]
    return min((rank[case] for case in cases if case in rank), default=None)


def read_text(path: Path, wanted: Collection[str] | None = None) -> WordVectors:
    """Vectors of a text file (.gz or not): one word and its numbers per line, with or without a header 'V D'.

    With `wanted`, only these words are kept. If a word occurs twice, its first vector counts.
    """
    words: dict[str, None] = {}
    rows: list[Array] = []
    declared, size, count = None, None, 0
    for number, line in enumerate(_lines(path), 1):
        word, *fields = re.split(f"[{RAW_SPACES}]", line.rstrip(RAW_SPACES))
        if number == 1 and len(fields) == 1 and _is_count(word) and _is_count(fields[0]):
            declared, size = int(word), int(fields[0])
            continue
        size, count = len(fields) if size is None else size, count + 1
        if len(fields) < max(size, 1) or not all(fields):
            raise PerdureError(
                f"'{path}', line {number}: expected a word and {size} numbers, found '{line:.40}'."
            )
        # A word may itself contain a space; the numbers are the last fields.
        word = " ".join([word, *fields[: len(fields) - size]])
        if word not in words and (wanted is None or word in wanted):
            words[word] = None
            rows.append(_numbers(fields[-size:], path, number))
    if declared is not None and declared != count:
        raise PerdureError(
            f"'{path}' declares {declared} words but has {count}; it is cut off, download it again."
        )
    if not count:
        raise PerdureError(f"'{path}' has no vectors; each line must be a word and its numbers.")
    return WordVectors(list(words), np.stack(rows) if rows else np.zeros((0, size or 0), np.float32))


def _is_count(text: str) -> bool:
    return text.isdecimal() and len(text) < 12


def _numbers(fields: list[str], path: Path, number: int) -> Array:
    try:
        row = np.array(fields, np.float32)
    except ValueError as error:
        raise PerdureError(f"'{path}', line {number}: {error}; numbers must follow the word.") from None
    if not np.isfinite(row).all():
        raise PerdureError(f"'{path}', line {number}: the numbers of a vector must be finite.")
    return row


def _lines(path: Path) -> Iterator[str]:
    """Lines of a file, which may be compressed, without their line ends."""
    opened: Callable[..., Any] = gzip.open if path.suffix == ".gz" else open
    number = 1
    try:
        with opened(path, "rb") as file:
            while line := file.readline(LONGEST_LINE):
                if len(line) == LONGEST_LINE:
                    raise PerdureError(f"'{path}', line {number} is longer than {LONGEST_LINE} bytes.")
                yield line.decode("utf-8").rstrip("\r\n")
                number += 1
    except UnicodeDecodeError:
        raise PerdureError(f"'{path}', line {number} is not UTF-8; save the file as UTF-8.") from None
    except (OSError, EOFError, zlib.error) as error:
        raise PerdureError(f"'{path}', after line {number - 1}, cannot be read ({error}).") from None


FILES = {
    "polyglot": ("polyglot-{}.pkl", "{}.pkl"),
    "text": (
        "{}.vec", "{}.vec.gz", "{}.txt", "{}.txt.gz", "wiki.{}.vec", "wiki.{}.vec.gz", "cc.{}.300.vec",
        "cc.{}.300.vec.gz",
    ),
}  # fmt: skip
"""File names of vectors, by kind; the braces stand for a language."""


def vector_file(folder: Path, names: Sequence[str], kind: str) -> Path:
    """The file of a language, which may go by several names."""
    wanted = [pattern.format(name) for name in names for pattern in FILES[kind]]
    for name in wanted:
        if (folder / name).is_file():
            return folder / name
    raise PerdureError(f"'{folder}' has no vectors for '{names[0]}'; put {' or '.join(wanted)} there.")


def read_vectors(path: Path, forms: Iterable[str]) -> WordVectors:
    """Vectors from a file of either kind, for all spellings of the given words."""
    wanted = {spelling for form in forms for spelling in spellings(form)}
    if path.suffix != ".pkl":
        return read_text(path, wanted)
    words, table = read_polyglot(path)
    rank: dict[str, int] = {}
    for place, word in enumerate(words):
        if word in wanted:
            rank.setdefault(word, place)
    return WordVectors(list(rank), table[list(rank.values())])
