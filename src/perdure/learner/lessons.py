"""A lesson through the engine's one optimisation loop: begin a phase, train it, finish it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from perdure.config import Config
from perdure.errors import Interrupted
from perdure.experiment import learner_of, threads
from perdure.learner.checkpoints import CheckpointFile
from perdure.learner.knowledge import Knowledge, Lesson, Visit, learnt
from perdure.learner.signals import Signals
from perdure.learning.engine import PhaseLoop, Progress, Results, RunOptions, begin_phase
from perdure.learning.evaluate import evaluate
from perdure.learning.learner import init
from perdure.randomness import generator
from perdure.weights.source import GeneratorFactory


@dataclass
class Teaching:
    """How a lesson is carried out, apart from what it computes."""

    watch: Callable[[Progress], None] = lambda _: None
    stop: Callable[[], bool] = lambda: False
    store: CheckpointFile = field(default_factory=lambda: CheckpointFile(None, ""))
    """To which unfinished learning is saved, and from which it is resumed."""
    save_every: float = 20.0


def teach(config: Config, knowledge: Knowledge, lesson: Lesson, teaching: Teaching) -> Knowledge:
    """The knowledge after the lesson; the one before it stays as it is, and so does a checkpoint."""
    learner = learner_of(config, knowledge.inputs)
    splits = knowledge.splits(lesson)
    number = [each.name for each in splits].index(lesson.name)
    visits = knowledge.times(lesson.name)
    together = learner.together
    tasks = list(range(len(splits))) if together else [number]
    row, count = knowledge.row_of(learner, lesson.name), len(lesson.train)
    state = init(learner) if together else row.before(knowledge.state)
    generators = _generators(config, visits, together)
    store = teaching.store
    with threads(1):
        gone = [knowledge.number(task) for task in knowledge.forgotten - {lesson.name}]
        phase = begin_phase(learner, state, tasks, splits, config.training, generators, forgotten=gone)
        loop = PhaseLoop(phase, number, len(splits), Results(), store, RunOptions())
        loop.spent = store.resume(phase.restore)
        seconds = _train(loop, lesson.name, teaching)
        after = row.joined(learner, knowledge.state, phase.finish(), count)
        network, weights = after.weights(learner, number)
        score = evaluate(network, weights, lesson.val, number)
    visit = Visit(lesson.name, phase.iteration, score.accuracy, phase.curve, seconds)
    return learnt(knowledge, lesson, after, visit, row.after(count), together=together)


def _generators(config: Config, visits: int, together: bool) -> GeneratorFactory:
    """Generators by role; a task that is learnt again must not see its batches in the same order."""

    def generators(*role: object) -> torch.Generator:
        again = () if visits == 0 or together else ("visit", visits)
        return generator(config.seed, *again, *role)

    return generators


def _train(loop: PhaseLoop, task: str, teaching: Teaching) -> float:
    """Train to the end, and return the seconds; whatever stops it leaves a checkpoint, if one is wanted."""
    path = teaching.store.path
    goes_on = f"; called again with the same data, it goes on from '{path}'."
    as_before = ", and the learner is as it was before; name a checkpoint to go on where it stops."
    left = goes_on if path is not None else as_before
    with Signals(noted=path is not None) as signals:
        loop.options = RunOptions(
            watch=_saving_first(loop, teaching.watch),
            stop=lambda: teaching.stop() or signals.received is not None,
            save_every=math.inf if path is None else teaching.save_every,
        )
        try:
            seconds = loop.train()
        except Interrupted:
            signals.deliver(f"Learning '{task}' was interrupted{left}")
            raise Interrupted(f"Learning '{task}' was stopped by a callback{left}") from None
        if path is not None:
            loop.save()  # what a method computes at the end of a lesson may take long
    signals.deliver(f"Learning '{task}' was interrupted{left}")
    return seconds


def _saving_first(loop: PhaseLoop, watch: Callable[[Progress], None]) -> Callable[[Progress], None]:
    """The same, but if it raises an error, a checkpoint is saved before that is passed on."""

    def watched(progress: Progress) -> None:
        try:
            watch(progress)
        except BaseException:
            loop.save()
            raise

    return watched
