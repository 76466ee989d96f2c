"""Class names, and the outputs that represent them: 0, 1, 2, ... in sorted order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from perdure.benchmarks.sources.own.parts import Label, OwnSequences
from perdure.benchmarks.task import Array
from perdure.errors import PerdureError
from perdure.targets.classes import NOT_SCORED

NOT_ASKED = ("", *(str(tag) for tag in NOT_SCORED))
"""Tags of steps that are not scored."""
WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})")
"""Strings that are integers; if all classes are, they are sorted as numbers."""


@dataclass(frozen=True)
class ClassNames:
    """The classes of a task, as strings, in the order of its outputs."""

    texts: tuple[str, ...]
    skipped: tuple[str, ...]
    """Strings that represent no class."""
    listed: bool = False
    """Whether a file lists them (`classes`); otherwise they are what occurs in the training sequences."""

    @property
    def names(self) -> tuple[Label, ...]:
        """The classes; as numbers if all are integers."""
        numbers = all(WHOLE.fullmatch(text) for text in self.texts)
        return tuple(int(text) for text in self.texts) if numbers else self.texts


def classes_of(parts: Sequence[OwnSequences]) -> ClassNames:
    """The classes that occur in the training sequences of these parts, or that their files list."""
    listed = {part.classes: part for part in parts if part.classes is not None}
    if len(listed) > 1:
        first, second = list(listed.values())[:2]
        raise PerdureError(
            f"'{second.where}' and '{first.where}' list different classes; they must be the same."
        )
    tags = any(part.target is not None and part.target.everywhere for part in parts)
    if listed:
        texts = tuple(str(label) for label in next(iter(listed)))
        return ClassNames(texts, tuple(text for text in NOT_ASKED if text not in texts), listed=True)
    skipped = NOT_ASKED if tags else ()
    trained = [np.unique(part.targets) for part in parts if part.split in (None, "train")]
    found = {str(label) for labels in trained for label in labels.tolist()}
    return ClassNames(_in_order(found - set(skipped)), skipped)


def _in_order(texts: Iterable[str]) -> tuple[str, ...]:
    """Integers by size, if all are; otherwise alphabetically."""
    some = list(texts)
    if all(WHOLE.fullmatch(text) for text in some):
        return tuple(sorted(some, key=int))
    return tuple(sorted(some))


def outputs_of(part: OwnSequences, classes: ClassNames) -> Array:
    """The outputs that represent a part's targets; -1 where nothing is scored."""
    values, inverse = np.unique(part.targets, return_inverse=True)
    number = {text: output for output, text in enumerate(classes.texts)}
    number |= dict.fromkeys(classes.skipped, -1)
    texts = [str(value) for value in values.tolist()]
    if not classes.skipped:
        number.pop("", None)
    strange = [place for place, text in enumerate(texts) if text not in number]
    if strange:
        first = int(np.flatnonzero(np.isin(inverse, strange))[0])
        place = part.place_of_target(first)
        raise PerdureError(f"'{part.where}', {place}: {_strange(texts[inverse[first]], classes)}")
    codes = np.array([number[text] for text in texts], dtype=np.int64)
    return codes[inverse.reshape(part.targets.shape)]


def _strange(text: str, classes: ClassNames) -> str:
    if not text:
        return "the sequence has no label; give it one, or leave it out."
    known = ", ".join(classes.texts[:10]) + (", ..." if len(classes.texts) > 10 else "")
    where = "among the classes that are listed" if classes.listed else "in the training sequences"
    return f"the label '{text}' does not occur {where} ({known})."
