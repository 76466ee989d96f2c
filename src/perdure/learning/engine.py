"""All phases of a run, one after the other: train, finish, test on every task, keep a checkpoint."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from perdure.benchmarks.task import Watch, quiet
from perdure.errors import Interrupted
from perdure.learning.evaluate import evaluate
from perdure.learning.learner import Knowledge, Learner, newborn
from perdure.learning.phase import Facts, Phase
from perdure.learning.splits import Splits
from perdure.learning.tables import reading, tables
from perdure.learning.training import Training
from perdure.networks.layout import Vectors, moved
from perdure.weights.source import Chance


@dataclass
class Progress:
    """Where a run stands; given to whoever watches it."""

    phase: int
    phases: int
    task: str
    iteration: int
    iterations: int
    losses: dict[str, float]
    val_accuracy: float | None
    seconds: float
    """Time spent on this phase so far."""
    accuracy: list[float] | None = None
    """At the end of a phase: the test accuracy of each task."""
    score: str = "accuracy"
    """What the percentages are called."""


class Keeper(Protocol):
    """Where a run keeps itself: checkpoints to resume from, and knowledge after each phase."""

    def load(self) -> tuple[Vectors, Facts] | None:
        """The last checkpoint, or None."""

    def save(self, tensors: Vectors, facts: Facts) -> None:
        """Replace the checkpoint."""

    def keep(self, phase: int, tensors: Vectors) -> None:
        """Keep the knowledge after a phase for good."""


@dataclass
class Outcome:
    """What came out: the accuracy matrix R[k][j] (after phase k, on task j), curves and times."""

    accuracy: list[list[float]] = field(default_factory=list)
    f1: list[list[float]] = field(default_factory=list)
    """The same for the weighted F1 in percent; empty where answers are values."""
    error: list[list[float]] = field(default_factory=list)
    """The same for the root mean squared error; empty where answers are classes or bits."""
    curves: list[list[dict[str, float]]] = field(default_factory=list)
    iterations: list[int] = field(default_factory=list)
    seconds: list[dict[str, float]] = field(default_factory=list)
    memory: dict[str, int] = field(default_factory=dict)
    """Bytes that each penalty, the rehearsal and one stored sample take after the last phase so far."""


@dataclass(frozen=True)
class Habits:
    """How a run behaves towards the outside.

    Only device and threads can change numbers, in the last digits; the record names both.
    """

    watch: Callable[[Progress], None] = lambda _: None
    stop: Callable[[], bool] = lambda: False
    """Asked after each iteration; if true, the run saves itself and stops."""
    tell: Callable[[str], None] = lambda _: None
    """Told once, before the first iteration, how large things are."""
    building: Watch = quiet
    """Told how far a long build of the data is."""
    save_every: float = 20.0
    """Seconds between checkpoints within a phase."""
    device: str = "cpu"
    threads: int = 1
    """Threads of torch: one is best for small networks, and numbers depend on it."""


def learn(
    learner: Learner,
    data: Sequence[Splits],
    training: Training,
    chance: Chance,
    keeper: Keeper,
    habits: Habits,
) -> Outcome:
    """Learn all tasks; continue from the keeper's checkpoint if it has one."""
    outcome, knowledge = Outcome(), newborn(learner, chance).to(habits.device)
    if training.tables == "trained":
        knowledge = replace(knowledge, parameters=knowledge.parameters | tables(data))
    resumed: tuple[Vectors, Facts] | None = None
    checkpoint = keeper.load()
    if checkpoint is not None:
        tensors, facts = checkpoint
        outcome = Outcome(**facts["outcome"])
        knowledge = unpack(_strip(tensors, "knowledge|"), learner).to(habits.device)
        if facts["phase"] is not None:
            resumed = moved(_strip(tensors, "phase|"), habits.device), facts["phase"]
    phases = learner.phases
    for number in range(len(outcome.accuracy), len(phases)):
        phase = Phase(learner, knowledge, phases[number], data, training, chance)
        spent = 0.0
        if resumed is not None:
            phase.restore(*resumed)
            spent, resumed = resumed[1]["seconds"], None
        trained = _train(phase, number, outcome, keeper, habits, spent)
        begun = time.perf_counter()
        knowledge = phase.finish()
        finished = time.perf_counter()
        scores = [
            evaluate(*knowledge.weights(learner, task), splits.test, task)
            for task, splits in enumerate(reading(data, knowledge.parameters))
        ]
        row = [score.accuracy for score in scores]
        outcome.accuracy.append(row)
        for matrix, column in (
            (outcome.f1, [score.f1 for score in scores]),
            (outcome.error, [score.error for score in scores]),
        ):
            known = [value for value in column if value is not None]
            if known:  # a target has one of them for all its tasks
                matrix.append(known)
        outcome.curves.append(phase.curve)
        outcome.iterations.append(phase.iteration)
        outcome.seconds.append(
            {"train": trained, "finish": finished - begun, "test": time.perf_counter() - finished}
        )
        outcome.memory = _memory(learner, knowledge)
        keeper.keep(number, pack(knowledge))
        keeper.save(_prefixed(pack(knowledge), "knowledge|"), {"phase": None, "outcome": vars(outcome)})
        habits.watch(_progress(phase, number, len(phases), {}, trained, row))
    return outcome


def _memory(learner: Learner, knowledge: Knowledge) -> dict[str, int]:
    """Bytes of each memory, and of one stored sample if samples are stored."""
    sizes = {
        name: sum(vector.nbytes for vector in memory.values()) for name, memory in knowledge.memories.items()
    }
    if learner.rehearsal is not None:
        samples = learner.rehearsal.stored(knowledge.memories["rehearsal"])
        if samples:
            sizes["a stored sample"] = round(sizes["rehearsal"] / samples)
    return sizes


def _train(
    phase: Phase, number: int, outcome: Outcome, keeper: Keeper, habits: Habits, spent: float
) -> float:
    """Run one phase's loop to its end; returns the seconds it took, over all resumes."""
    begun = time.perf_counter() - spent
    saved = shown = time.perf_counter()

    def save() -> None:
        tensors, facts = phase.state()
        facts["seconds"] = time.perf_counter() - begun
        keeper.save(
            _prefixed(tensors, "phase|") | _prefixed(pack(phase.knowledge), "knowledge|"),
            {"phase": facts, "outcome": vars(outcome)},
        )

    phases = len(phase.learner.phases)
    while not phase.done:
        losses = phase.step()
        now = time.perf_counter()
        if habits.stop():
            save()
            raise Interrupted("Stopped; the same command continues where it was.")
        if now - saved > habits.save_every:
            save()
            saved = time.perf_counter()
        validated = phase.iteration % phase.training.validate_every == 0
        if validated or now - shown > SHOW_EVERY:
            habits.watch(_progress(phase, number, phases, losses, now - begun, None))
            shown = now
    return time.perf_counter() - begun


SHOW_EVERY = 0.2
"""Seconds between looks at the progress."""


def _progress(
    phase: Phase,
    number: int,
    phases: int,
    losses: dict[str, float],
    seconds: float,
    accuracy: list[float] | None,
) -> Progress:
    names = [phase.data[task].name for task in phase.tasks]
    return Progress(
        phase=number,
        phases=phases,
        task=names[0] if len(names) == 1 else f"{len(names)} tasks together",
        iteration=phase.iteration,
        iterations=phase.iterations,
        losses=losses,
        val_accuracy=phase.curve[-1]["val accuracy"] if phase.curve else None,
        seconds=seconds,
        accuracy=accuracy,
        score=phase.data[phase.tasks[0]].train.target.score_name,
    )


def pack(knowledge: Knowledge) -> Vectors:
    """Knowledge as one mapping of tensors: parameters/..., buffers/..., memory/PENALTY/..."""
    tensors = _prefixed(knowledge.parameters, "parameters/") | _prefixed(knowledge.buffers, "buffers/")
    for name, memory in knowledge.memories.items():
        tensors |= _prefixed(memory, f"memory/{name}/")
    return tensors


def unpack(tensors: Vectors, learner: Learner) -> Knowledge:
    """The inverse of `pack`."""
    return Knowledge(
        parameters=_strip(tensors, "parameters/"),
        buffers=_strip(tensors, "buffers/"),
        memories={name: _strip(tensors, f"memory/{name}/") for name in learner.remembering},
    )


def _prefixed(vectors: Vectors, prefix: str) -> Vectors:
    return {prefix + name: vector for name, vector in vectors.items()}


def _strip(vectors: Vectors, prefix: str) -> Vectors:
    return {n.removeprefix(prefix): v for n, v in vectors.items() if n.startswith(prefix)}
