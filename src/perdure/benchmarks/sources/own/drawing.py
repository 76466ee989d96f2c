"""Splits for tasks that have none of their own: drawn once, by a seed, with all classes in proportion."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from perdure.benchmarks.task import Array
from perdure.errors import PerdureError


def draw(classes: Array, fractions: Mapping[str, float], seed: int, where: str) -> dict[str, Array]:
    """Numbers of the sequences that go to each split; the others, `train`, stay.

    classes [N] is the class of each sequence (any constant if there is none). Sequences are put in order by
    class, by chance within one, and taken from evenly spaced places of that order, so that each class has its
    share. The first of each class stays, so that each class can be learnt.
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
            f"'{where}' has {count} sequences to train on, too few to draw {names} from them; give more, or "
            f"give the splits yourself."
        )
    rest = _spaced(free, total)
    drawn = {}
    for split, size in sizes.items():
        drawn[split] = np.sort(_spaced(rest, size))
        rest = rest[~np.isin(rest, drawn[split])]
    taken = np.concatenate([*drawn.values(), np.zeros(0, dtype=np.int64)])
    return drawn | {"train": np.setdiff1d(np.arange(count), taken)}


def _spaced(items: Array, size: int) -> Array:
    """As many items as wanted, from evenly spaced places."""
    return items[((np.arange(size) + 0.5) * len(items) / size).astype(np.int64)]
