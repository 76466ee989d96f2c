"""Splits for tasks that have none: drawn once, from a seed, with all classes in proportion."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from perdure.benchmarks.task import Array
from perdure.errors import PerdureError


def draw(classes: Array, fractions: Mapping[str, float], seed: int, where: str) -> dict[str, Array]:
    """Indices of the sequences that go to each split; the others stay in `train`.

    classes [N] is the class of each sequence (any constant if there are none). Sequences are sorted by class,
    in random order within a class, and taken at evenly spaced positions, so that each class has its share.
    The first of each class stays, so that each class can be learnt.
    """
    count = len(classes)
    order = np.random.RandomState(seed).permutation(count)
    order = order[np.argsort(classes[order], kind="stable")]
    first = np.concatenate([[True], classes[order][1:] != classes[order][:-1]])
    free = order[~first]
    sizes = {split: max(1, round(fraction * count)) for split, fraction in fractions.items()}
    total = sum(sizes.values())
    if total > len(free):
        names = " and ".join(fractions)
        raise PerdureError(
            f"'{where}' has {count} training sequences, too few to draw {names} from them; add more, or "
            f"provide the splits yourself."
        )
    rest = _spaced(free, total)
    drawn = {}
    for split, size in sizes.items():
        drawn[split] = np.sort(_spaced(rest, size))
        rest = rest[~np.isin(rest, drawn[split])]
    taken = np.concatenate([*drawn.values(), np.zeros(0, dtype=np.int64)])
    return drawn | {"train": np.setdiff1d(np.arange(count), taken)}


def _spaced(items: Array, size: int) -> Array:
    """The given number of items, evenly spaced."""
    return items[((np.arange(size) + 0.5) * len(items) / size).astype(np.int64)]
