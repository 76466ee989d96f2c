"""A lesson through the engine's one optimisation loop: begin a phase, train it, finish it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch

from perdure.config import Config
from perdure.experiment import learner_of, threads
from perdure.files import Damaged, read_tensors, set_aside, write_tensors
from perdure.learner.knowledge import Knowledge, Lesson, Visit, learnt
from perdure.learning.engine import PhaseLoop, Progress, Results, RunOptions, begin_phase
from perdure.learning.evaluate import evaluate
from perdure.learning.learner import init
from perdure.learning.phase import Facts
from perdure.networks.layout import Vectors
from perdure.randomness import generator
from perdure.weights.source import GeneratorFactory


@dataclass
class Teaching:
    """How a lesson is carried out, apart from what it computes."""

    watch: Callable[[Progress], None] = lambda _: None
    stop: Callable[[], bool] = lambda: False
    checkpoint: Path | None = None
    """A file to which unfinished learning is saved, and from which it is resumed."""
    save_every: float = 20.0
    warnings: list[str] = field(default_factory=list)


def teach(config: Config, knowledge: Knowledge, lesson: Lesson, teaching: Teaching) -> Knowledge:
    """The knowledge after the lesson; the one before it stays as it is."""
    learner = learner_of(config, knowledge.inputs)
    splits = knowledge.splits(lesson)
    number = [each.name for each in splits].index(lesson.name)
    visits = knowledge.times(lesson.name)
    together = learner.together
    tasks = list(range(len(splits))) if together else [number]
    state = init(learner) if together else knowledge.state
    generators = _generators(config, visits, together)
    store = CheckpointFile(teaching.checkpoint, _digest(config, knowledge, lesson), teaching.warnings)
    options = RunOptions(watch=teaching.watch, stop=teaching.stop, save_every=teaching.save_every)
    with threads(1):
        phase = begin_phase(learner, state, tasks, splits, config.training, generators)
        spent = store.resume(phase.restore)
        loop = PhaseLoop(phase, number, len(splits), Results(), store, options, spent)
        seconds = loop.train()
        after = phase.finish()
        network, weights = after.weights(learner, number)
        score = evaluate(network, weights, lesson.val, number)
    visit = Visit(lesson.name, phase.iteration, score.accuracy, phase.curve, seconds)
    done = learnt(knowledge, lesson, after, visit, together=together)
    store.remove()
    return done


def _generators(config: Config, visits: int, together: bool) -> GeneratorFactory:
    """Generators by role; a task that is learnt again must not see its batches in the same order."""

    def generators(*role: object) -> torch.Generator:
        again = () if visits == 0 or together else ("visit", visits)
        return generator(config.seed, *again, *role)

    return generators


class CheckpointFile:
    """The store of an unfinished lesson: one file, or nothing."""

    def __init__(self, path: Path | None, lesson: str, warnings: list[str]) -> None:
        """Nothing is read or written yet."""
        self.path, self.lesson, self.warnings = path, lesson, warnings

    def load(self) -> tuple[Vectors, Facts] | None:
        """The checkpoint of this very lesson, or None; a damaged one is set aside."""
        if self.path is None or not self.path.exists():
            return None
        try:
            tensors, facts = read_tensors(self.path)
        except Damaged as error:
            aside = set_aside(self.path)
            self.warnings.append(f"'{self.path}' is damaged ({error}); it was set aside as '{aside.name}'.")
            return None
        return (tensors, facts) if facts["lesson"] == self.lesson else None

    def save(self, tensors: Vectors, facts: Facts) -> None:
        """Replace the checkpoint."""
        if self.path is not None:
            own = {name: vector for name, vector in tensors.items() if name.startswith("phase|")}
            write_tensors(self.path, own, {"phase": facts["phase"], "lesson": self.lesson})

    def keep(self, phase: int, tensors: Vectors) -> None:
        """Nothing is kept but the result."""

    def resume(self, restore: Callable[[Vectors, Facts], None]) -> float:
        """Go on from the checkpoint, if there is one; returns the seconds spent before."""
        found = self.load()
        if found is None:
            return 0.0
        tensors, facts = found
        restore({name.removeprefix("phase|"): vector for name, vector in tensors.items()}, facts["phase"])
        return float(facts["phase"]["seconds"])

    def remove(self) -> None:
        """Delete the checkpoint of a finished lesson."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def _digest(config: Config, knowledge: Knowledge, lesson: Lesson) -> str:
    """Identifies a lesson: settings, what was known, and the data."""
    digest = hashlib.sha256(f"{config.hash} {lesson.name} {lesson.form} {len(knowledge.visits)}".encode())
    for vector in [
        *knowledge.state.parameters.values(),
        lesson.train.x,
        lesson.train.y,
        lesson.val.x,
        lesson.val.y,
    ]:
        digest.update(vector.contiguous().cpu().numpy().tobytes())
    return digest.hexdigest()
