"""From parts to tasks: one target for all, classes as outputs, and splits where none are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perdure.benchmarks.sources.own.drawing import draw
from perdure.benchmarks.sources.own.kinds import decide, of_kind
from perdure.benchmarks.sources.own.labels import ClassNames, classes_of, outputs_of
from perdure.benchmarks.sources.own.parts import SPLITS, Faults, Label, OwnSequences
from perdure.benchmarks.sources.own.values import check_varied, standardised
from perdure.benchmarks.task import Array, Sequences, Task, standardisation
from perdure.errors import PerdureError
from perdure.targets.target import Target
from perdure.targets.value import Value


@dataclass(frozen=True)
class Rules:
    """How parts become tasks; the benchmark `arrays` has options of these names."""

    target: Target | None = None
    """What is to be predicted; None: inferred from the targets."""
    shared: bool = False
    """Whether a class is the same output in all tasks."""
    val_fraction: float = 0.1
    test_fraction: float = 0.2
    data_seed: int = 42
    standardise: bool = False


@dataclass(frozen=True)
class Assembled:
    """A task, the names of its outputs, and which of its splits were drawn at random."""

    task: Task
    classes: tuple[Label, ...]
    drawn: tuple[str, ...]


@dataclass(frozen=True)
class _Coded:
    """Sequences, concatenated, with outputs as targets."""

    rows: Array
    lengths: Array
    targets: Array
    """[N], [N, P, outputs], [N, outputs], or [S] for tags."""

    def take(self, index: Array, target: Target) -> _Coded:
        """Some of the sequences."""
        chosen = np.zeros(len(self.lengths), dtype=bool)
        chosen[index] = True
        rows = np.repeat(chosen, self.lengths)
        targets = self.targets[rows if target.everywhere else chosen]
        return _Coded(self.rows[rows], self.lengths[chosen], targets)


def assemble(found: Mapping[str, Sequence[OwnSequences]], rules: Rules, faults: Faults) -> list[Assembled]:
    """The tasks without faults; what is wrong with the others is reported to `faults`."""
    parts = [part for some in found.values() for part in some]
    target = decide(parts, rules.target, faults) if parts else None
    if target is None:
        return []
    decided: dict[str, list[OwnSequences]] = {}
    for name, some in found.items():
        with faults.gathering():
            for part in some:
                _check_features(part, parts[0])
            decided[name] = [of_kind(part, target) for part in some]
    everywhere = [part for some in decided.values() for part in some]
    tasks = []
    for name, some in decided.items():
        if some:
            with faults.gathering():
                tasks.append(_task(name, some, target, everywhere if rules.shared else some, rules))
    if tasks and target == Value():
        with faults.gathering():
            scaled = standardised([each.task for each in tasks], shared=rules.shared)
            tasks = [replace(each, task=task) for each, task in zip(tasks, scaled, strict=True)]
    return _standardised(tasks) if rules.standardise and tasks else tasks


def _standardised(tasks: Sequence[Assembled]) -> list[Assembled]:
    """All tasks with one scaling, from the first one only: nothing about a later task is known in advance."""
    first = tasks[0].task.train
    if first.table is not None:
        raise PerdureError(
            "benchmark.standardise: inputs from a table cannot be scaled; scale the table itself."
        )
    inside = np.arange(first.x.shape[1]) < first.lengths[:, None]
    offset, factor = (part.astype(np.float32) for part in standardisation(first.x[inside]))
    scaled = []
    for each in tasks:
        splits = {split: replace(getattr(each.task, split), scaling=(offset, factor)) for split in SPLITS}
        scaled.append(replace(each, task=replace(each.task, **splits)))
    return scaled


def _check_features(part: OwnSequences, first: OwnSequences) -> None:
    """All parts must have the same features, in the same order where they have names."""
    if part.features != first.features:
        raise PerdureError(
            f"'{part.where}' has {part.features} features, but '{first.where}' has {first.features}; all "
            f"tasks need the same number."
        )
    if part.names and first.names and part.names != first.names:
        pairs = zip(part.names, first.names, strict=True)
        here, there = next(pair for pair in pairs if pair[0] != pair[1])
        raise PerdureError(
            f"'{part.where}', row 1: found feature '{here}' where '{first.where}' has '{there}'; all "
            f"tasks need the same columns in the same order."
        )
    if (part.table is None) != (first.table is None):
        raise PerdureError(
            f"'{part.where}' and '{first.where}': either all tasks must have a table, or none."
        )


def _task(
    name: str, parts: Sequence[OwnSequences], target: Target, known: Sequence[OwnSequences], rules: Rules
) -> Assembled:
    """One task; `known` are the parts whose classes count."""
    training = [part for part in parts if part.split in (None, "train")]
    if not training:
        raise PerdureError(f"'{parts[0].where}' has no training sequences; a task needs some.")
    if target.categorical:
        classes = classes_of(known)
    else:
        classes = ClassNames(tuple(str(output) for output in range(training[0].targets.shape[-1])), ())
    groups = {split: [part for part in parts if part.split == split] for split in ("val", "test")}
    coded = {split: _join(some, target, classes) for split, some in groups.items() if some}
    whole = _join(training, target, classes)
    _check_balance(training[0], whole, classes, target)
    missing = {split: getattr(rules, f"{split}_fraction") for split in ("val", "test") if split not in coded}
    stratified = target.categorical and not target.everywhere
    by = whole.targets if stratified else np.zeros(len(whole.lengths), dtype=np.int64)
    for split, index in draw(by, missing, rules.data_seed, training[0].where).items():
        coded[split] = whole.take(index, target)
    table = _table(parts)
    splits = {split: _padded(coded[split], target, table) for split in SPLITS}
    return Assembled(Task(name=name, outputs=len(classes.texts), **splits), classes.names, tuple(missing))


def _join(parts: Sequence[OwnSequences], target: Target, classes: ClassNames) -> _Coded:
    """The parts of one split, joined."""
    targets = []
    for part in parts:
        wanted = (*parts[0].targets.shape[1:-1], len(classes.texts))
        if target.categorical:
            targets.append(outputs_of(part, classes))
        elif part.targets.shape[1:] == wanted:
            targets.append(part.targets)
        else:
            raise PerdureError(
                f"'{part.where}': y has shape {part.targets.shape}; all those of a task must be "
                f"[N, {', '.join(str(size) for size in wanted)}]."
            )
    rows = np.concatenate([part.rows for part in parts])
    return _Coded(rows, np.concatenate([part.lengths for part in parts]), np.concatenate(targets))


def _check_balance(part: OwnSequences, whole: _Coded, classes: ClassNames, target: Target) -> None:
    """Check that there is something to tell apart."""
    if target == Value():
        check_varied(part, whole.targets)
    seen = np.unique(whole.targets[target.asked(whole.targets)])
    if target.categorical and len(seen) < 2:
        only = f"only the class '{classes.texts[seen[0]]}'" if len(seen) else "no class at all"
        raise PerdureError(f"'{part.where}' has {only} in its training sequences; at least two are needed.")


def _table(parts: Sequence[OwnSequences]) -> Array | None:
    table = parts[0].table
    for part in parts[1:]:
        if table is not None and part.table is not None and not np.array_equal(table, part.table):
            raise PerdureError(
                f"'{part.where}' and '{parts[0].where}' have different tables; a task has one."
            )
    return table


def _padded(coded: _Coded, target: Target, table: Array | None) -> Sequences:
    """Sequences as one array, zero beyond their ends."""
    count, steps = len(coded.lengths), int(coded.lengths.max())
    inside = np.arange(steps) < coded.lengths[:, None]
    x = np.zeros((count, steps, *coded.rows.shape[1:]), dtype=coded.rows.dtype)
    x[inside] = coded.rows
    y = coded.targets
    if target.everywhere:
        y = np.full((count, steps), -1, dtype=np.int64)
        y[inside] = coded.targets
    return Sequences(target, x, y, coded.lengths, table)
