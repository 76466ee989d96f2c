"""Sentences with part-of-speech tags: CoNLL-U files, and files with one token and its tag per line.

A treebank is three files, one per split, in a folder or a tar archive, identified by their names:
`en_gum-ud-train.conllu` (as Universal Dependencies names them), `own-train.tsv`, or `own/train.tsv`.
Faults are reported with file and line.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from perdure.benchmarks.sources.archives import LARGEST, decoded, tar_members
from perdure.benchmarks.sources.cache import digest
from perdure.errors import PerdureError, shortened
from perdure.files import read

TAGS = (
    "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN",
    "PUNCT", "SCONJ", "SYM", "VERB", "X",
)  # fmt: skip
"""The 17 universal tags (UPOS); a tag's class is its index here."""

SPLITS = ("train", "dev", "test")
"""Splits as named by Universal Dependencies; dev is used for validation."""

COLUMNS = 10
"""Columns of CoNLL-U: ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC."""

_CLASS = {tag: place for place, tag in enumerate(TAGS)}
_WORD = re.compile(r"[1-9][0-9]{,8}")
_RANGE = re.compile(r"([1-9][0-9]{,8})-([1-9][0-9]{,8})")
_EMPTY = re.compile(r"(0|[1-9][0-9]{,8})\.[1-9][0-9]{,8}")
_NAMED = re.compile(r"(?P<name>.+?)(-ud)?-(?P<split>train|dev|test)")


class Sentence(NamedTuple):
    """Words and the classes of their tags, equally many of both."""

    words: list[str]
    tags: list[int]


Treebank = dict[str, list[Sentence]]
"""Sentences by split."""


class _Fault(Exception):
    """What is wrong in a line, and what would be right."""


def read_conllu(content: bytes, source: str) -> list[Sentence]:
    """The sentences of a CoNLL-U file: FORM and UPOS of its syntactic words.

    Comments, multi-word tokens (3-4, whose words follow) and empty nodes (5.1) are skipped.
    """
    return _sentences(content, source, _conllu_line)


def read_tagged(content: bytes, source: str) -> list[Sentence]:
    """The sentences of a file with a token, a tab and its tag on each line, and blank lines between them."""
    return _sentences(content, source, _tagged_line)


Line = Callable[[str, Sentence], None]
"""Adds the content of a line to a sentence."""


def _sentences(content: bytes, source: str, add: Line) -> list[Sentence]:
    found: list[Sentence] = []
    sentence = Sentence([], [])
    # Only a line feed ends a line: a word may contain other characters that Python treats as line ends.
    for number, line in enumerate(decoded(content, source).split("\n"), 1):
        line = line.removesuffix("\r")
        if line:
            try:
                add(line, sentence)
            except _Fault as fault:
                raise PerdureError(f"'{source}', line {number}: {fault}.") from None
        elif sentence.words:
            found.append(sentence)
            sentence = Sentence([], [])
    if sentence.words:
        found.append(sentence)
    if not found:
        raise PerdureError(f"'{source}' has no sentences; a treebank needs at least one in each split.")
    return found


def _conllu_line(line: str, sentence: Sentence) -> None:
    if line.startswith("#"):
        if sentence.words:
            raise _Fault("there is a comment within a sentence; it must come before the first word")
        return
    columns = line.split("\t")
    if len(columns) != COLUMNS:
        raise _Fault(f"CoNLL-U has {COLUMNS} columns separated by tabs; found {len(columns)}")
    number, form, tag = columns[0], columns[1], columns[3]
    expected = len(sentence.words) + 1
    if _WORD.fullmatch(number):
        if int(number) != expected:
            raise _Fault(f"word {number} appears where word {expected} was expected")
        _add(sentence, form, tag)
    elif span := _RANGE.fullmatch(number):
        if int(span[1]) != expected or int(span[2]) < expected:
            raise _Fault(f"the multi-word token {number} must begin at the next word, {expected}")
    elif not _EMPTY.fullmatch(number):
        raise _Fault(
            f"'{shortened(number)}' is not an ID; words are 1, 2, ..., multi-word tokens 3-4, empty nodes 5.1"
        )


def _tagged_line(line: str, sentence: Sentence) -> None:
    columns = line.split("\t")
    if len(columns) != 2:
        raise _Fault(f"a line must be a token, one tab and its tag; found {len(columns) - 1} tabs")
    _add(sentence, *columns)


def _add(sentence: Sentence, form: str, tag: str) -> None:
    if not form.strip():
        raise _Fault("the word is empty")
    if tag not in _CLASS:
        raise _Fault(f"'{shortened(tag)}' is not a universal tag; the tags are {', '.join(TAGS)}")
    sentence.words.append(sys.intern(form))  # words recur; each is stored once
    sentence.tags.append(_CLASS[tag])


READERS = {".conllu": read_conllu, ".tsv": read_tagged}
"""Readers by file extension."""


def place_of(name: str) -> tuple[str, str] | None:
    """Treebank and split of a file, by its name; None if it is not part of a treebank."""
    path = PurePosixPath(name)
    if path.suffix not in READERS:
        return None
    if path.stem in SPLITS and path.parent.name:
        return path.parent.name, path.stem
    found = _NAMED.fullmatch(path.stem)
    return (found["name"], found["split"]) if found else None


def read_treebanks(path: Path, wanted: Collection[str]) -> dict[str, Treebank]:
    """The wanted treebanks of a folder or a tar archive, in one pass over it."""
    treebanks: dict[str, Treebank] = {}
    base = path.parent if path.is_dir() else path
    for name, content in _members(path, lambda name: (place_of(name) or ("",))[0] in wanted):
        place = place_of(name)
        assert place is not None  # other files are not wanted
        treebank, split = place
        splits = treebanks.setdefault(treebank, {})
        if split in splits:
            raise PerdureError(
                f"'{path}' holds the {split} split of '{treebank}' twice, also as '{name}'; keep one."
            )
        splits[split] = READERS[PurePosixPath(name).suffix](content, str(base / name))
    return treebanks


def treebank_names(path: Path) -> list[str]:
    """The names of all treebanks in a folder or a tar archive."""
    seen: set[str] = set()

    def note(name: str) -> bool:
        seen.update((place_of(name) or ())[:1])
        return False

    for _ in _members(path, note):
        pass
    return sorted(seen)


def stamp(path: Path, names: Collection[str] = ()) -> dict[str, str]:
    """Checksums of the files of the named treebanks; of an archive, that of the whole archive."""
    if not path.is_dir():
        return {"archive": digest(path)}
    files = {file.relative_to(path.parent).as_posix(): file for file in path.rglob("*") if file.is_file()}
    return {name: digest(file) for name, file in files.items() if (place_of(name) or ("",))[0] in names}


def _members(path: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the wanted files; the name of a folder is part of its files' names."""
    if not path.is_dir():
        yield from tar_members(path, wanted)
        return
    for file in sorted(path.rglob("*")):
        name = file.relative_to(path.parent).as_posix()
        if file.is_file() and wanted(name):
            try:
                yield name, read(file, LARGEST)
            except OSError as error:
                raise PerdureError(f"'{file}' cannot be read ({error.strerror or error}).") from None
