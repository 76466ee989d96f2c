"""What a learner has learnt: immutable, so that a lesson that fails leaves everything as it was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from perdure.benchmarks.sources.own.drawing import draw
from perdure.benchmarks.task import Array, Scaling, standardisation
from perdure.config import Config
from perdure.experiment import learner_of
from perdure.learner.answers import Format, read_answers, sequences
from perdure.learner.classes import Owner
from perdure.learner.faults import naming, part_of, wrong
from perdure.learner.looks import Look
from perdure.learner.observing import Watching
from perdure.learner.rows import Row
from perdure.learner.sequences import Inputs
from perdure.learning.learner import Learner, LearnerState, init
from perdure.learning.splits import Splits
from perdure.networks.batch import Data


@dataclass(frozen=True)
class Lesson:
    """One visit of a task, ready to be learnt."""

    name: str
    form: Format
    train: Data
    val: Data
    scaling: Scaling | None
    features: tuple[str, ...] | None
    """Names of the features, if the data have them."""
    look: Look


@dataclass(frozen=True)
class Visit:
    """What happened when a task was learnt."""

    task: str
    iterations: int
    validation: float
    """Score in percent on the task's own validation sequences, after learning it."""
    curve: list[dict[str, float]]
    seconds: float


@dataclass(frozen=True)
class Knowledge:
    """Tasks, formats and weights so far."""

    state: LearnerState
    inputs: int
    scaling: Scaling | None
    features: tuple[str, ...] | None = None
    formats: Mapping[str, Format] = field(default_factory=dict)
    """The answers of each task, in the order in which the tasks arrived."""
    looks: Mapping[str, Look] = field(default_factory=dict)
    """What each task's inputs look like."""
    visits: tuple[Visit, ...] = ()
    scores: tuple[tuple[int, Mapping[str, float]], ...] = ()
    """Results of `score`, each with the number of visits before it."""
    kept: Mapping[int, tuple[Data, Data]] = field(default_factory=dict)
    """Training and validation data of each task, for methods that learn all tasks together."""
    row: Row | None = None
    """The visits in a row of the task learnt last; None if they are unknown."""
    watching: Watching | None = None
    """The stream that is being observed, if any."""
    forgotten: frozenset[str] = frozenset()
    """Tasks that were asked to be forgotten; their places stay, so that the others keep their numbers."""

    @property
    def tasks(self) -> list[str]:
        """Names of all tasks."""
        return list(self.formats)

    def number(self, task: str) -> int:
        """The position of a task."""
        return self.tasks.index(task)

    def times(self, task: str) -> int:
        """How often a task has been learnt."""
        return sum(visit.task == task for visit in self.visits)

    def row_of(self, learner: Learner, task: str) -> Row:
        """The row of visits that a lesson of a task continues, or begins."""
        last = self.visits[-1].task if self.visits else None
        return self.row if self.row and last == task else Row.beginning(learner, self.state)

    def splits(self, lesson: Lesson) -> list[Splits]:
        """All tasks as the engine takes them: the lesson's with data, others with what is kept."""
        found = []
        for number, (name, form) in enumerate({**self.formats, lesson.name: lesson.form}.items()):
            if name == lesson.name:
                train, val = self.whole(number, lesson)
            else:
                train, val = self.kept.get(number) or (self.format_only(form),) * 2
            found.append(Splits(name, form.outputs, train, val, val))
        return found

    def whole(self, number: int, lesson: Lesson) -> tuple[Data, Data]:
        """The lesson's training and validation data, with what is kept of earlier lessons of the task."""
        if number not in self.kept:
            return lesson.train, lesson.val
        train, val = self.kept[number]
        return train.joined(lesson.train), val.joined(lesson.val)

    def format_only(self, form: Format) -> Data:
        """A task's data format without samples."""
        nothing = Inputs(np.zeros((0, 1, self.inputs), np.float32), np.zeros(0, np.int64), listed=False)
        return Data(sequences(form, nothing, form.blank(0, 1), self.scaling))

    def data(self, task: str, inputs: Inputs, y: Array | None = None) -> Data:
        """Sequences of a known task, with or without answers."""
        form = self.formats[task]
        y = form.blank(len(inputs), inputs.x.shape[1]) if y is None else y
        return Data(sequences(form, inputs, y, self.scaling))


def nothing_learnt(config: Config, inputs: int, scaling: Scaling | None) -> Knowledge:
    """The knowledge before the first lesson."""
    return Knowledge(init(learner_of(config, inputs)), inputs, scaling)


def fit_scaling(inputs: Inputs) -> Scaling:
    """The standardisation of all features, in single precision, as it is stored."""
    offset, factor = (part.astype(np.float32) for part in standardisation(inputs.x[inputs.inside]))
    return offset, factor


@dataclass(frozen=True)
class Rules:
    """How data become lessons."""

    target: str
    validation: float
    standardise: bool
    seed: int
    single: bool = False
    """Whether all tasks share one head."""


@dataclass(frozen=True)
class Given:
    """Sequences with their answers as given."""

    inputs: Inputs
    y: Any
    features: tuple[str, ...] | None = None


def prepare(
    knowledge: Knowledge | None, task: str, given: Given, held_out: Given | None, rules: Rules
) -> Lesson:
    """A lesson from data, checked against all that is known; raises without changing anything."""
    known, whose = _known_format(knowledge, task, rules)
    if given.inputs.coarse:
        raise wrong(
            "x",
            f"{given.inputs.coarse}, too little for 32 bits; subtract its first value or its mean.",
        )
    kind = (
        rules.target if not (knowledge and knowledge.formats) else next(iter(knowledge.formats.values())).kind
    )
    form, y = read_answers(given.y, given.inputs, kind, known, whose)
    if held_out is None:
        stratified = form.target.categorical and not form.target.everywhere
        if stratified and known is None and 2 * form.outputs > len(y):
            raise wrong(
                "y",
                f"{whose} has {form.outputs} classes in {len(y)} sequences; give at least two sequences per "
                f"class, or for numbers to be predicted a learner with target='value'.",
            )
        by = y if stratified else np.zeros(len(y), dtype=np.int64)
        with naming("x"):
            chosen = draw(by, {"val": rules.validation}, rules.seed, f"task {task}")
        pairs = [
            (given.inputs.take(chosen[split]), _rows(form, y, chosen[split], given.inputs))
            for split in ("train", "val")
        ]
    else:
        with part_of("validation"):
            _, other = read_answers(held_out.y, held_out.inputs, kind, form, whose)
        pairs = [(given.inputs, y), (held_out.inputs, other)]
    if form.target.everywhere and not (pairs[0][1] >= 0).any():
        raise wrong("y", f"{whose} has no known tag in its training sequences.")
    scaling = knowledge.scaling if knowledge else fit_scaling(pairs[0][0]) if rules.standardise else None
    train, val = (Data(sequences(form, inputs, answers, scaling)) for inputs, answers in pairs)
    return Lesson(task, form, train, val, scaling, given.features, Look.of(given.inputs))


def _known_format(knowledge: Knowledge | None, task: str, rules: Rules) -> tuple[Format | None, Owner]:
    """The format that a task's answers must have, if any, and whose it is."""
    formats = knowledge.formats if knowledge else {}
    if not rules.single or not formats:
        return formats.get(task), Owner(f"task '{task}'")
    first, form = next(iter(formats.items()))  # one head: its outputs mean the same in all tasks
    return form, Owner(
        f"task '{task}'",
        f"the single head's, which are those of task '{first}'",
        "a learner with network={'heads': 'multi'} takes new classes with every new task",
    )


def _rows(form: Format, y: Array, index: Array, inputs: Inputs) -> Array:
    """The answers of some sequences; those for each step are cut to the longest of them."""
    chosen: Array = y[index]
    return chosen[:, : int(inputs.lengths[index].max())] if form.target.everywhere else chosen


def learnt(
    knowledge: Knowledge, lesson: Lesson, state: LearnerState, visit: Visit, row: Row, *, together: bool
) -> Knowledge:
    """The knowledge after a lesson."""
    formats = {**knowledge.formats, lesson.name: lesson.form}
    kept = dict(knowledge.kept)
    if together:
        number = list(formats).index(lesson.name)
        kept[number] = knowledge.whole(number, lesson)
    return replace(
        knowledge,
        state=state,
        formats=formats,
        looks={**knowledge.looks, lesson.name: lesson.look},
        features=knowledge.features or lesson.features,
        visits=(*knowledge.visits, visit),
        row=row,
        kept=kept,
        forgotten=knowledge.forgotten - {lesson.name},
    )
