"""All phases of a run, one after the other: a task arrives, is learnt, and all tasks are looked at.

After each phase all tasks are validated and tested. Nothing here looks at a test number: it is written down.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Protocol

from perdure.benchmarks.task import Watch, quiet
from perdure.errors import Diverged, Interrupted
from perdure.files import Damaged
from perdure.learning.embedding_tables import tables
from perdure.learning.learner import Learner, LearnerState, grow, init
from perdure.learning.memory import kept
from perdure.learning.packing import pack, prefixed, stripped, unpack
from perdure.learning.phase import Facts, Phase
from perdure.learning.resuming import check_facts, check_state, restore_phase, wrong_content_named
from perdure.learning.scores import scores_of_all_tasks, untrained_scores
from perdure.learning.sizes import memory_of, sizes_of
from perdure.learning.splits import Splits, digest_of, outputs_of
from perdure.learning.training import Training
from perdure.networks.layout import Vectors, moved
from perdure.weights.source import GeneratorFactory


@dataclass
class Progress:
    """The progress of a run, as reported to observers."""

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
    validation: list[float] | None = None
    """At the end of a phase: the validation accuracy of each task."""
    score: str = "accuracy"
    """What the percentages measure."""


class CheckpointStore(Protocol):
    """Storage for a run: checkpoints to resume from, and the learner's state after each phase."""

    def load(self) -> tuple[Vectors, Facts] | None:
        """The last checkpoint, or None."""

    def save(self, tensors: Vectors, facts: Facts) -> None:
        """Replace the checkpoint."""

    def keep(self, phase: int, tensors: Vectors) -> None:
        """Store the learner's state after a phase permanently."""


@dataclass
class Results:
    """The results: the accuracy matrix R[k][j] (after phase k, on task j), curves and times."""

    accuracy: list[list[float]] = field(default_factory=list)
    """On test data; for reports alone."""
    validation: list[list[float]] = field(default_factory=list)
    """The same on validation data, by which everything is chosen."""
    f1: list[list[float]] = field(default_factory=list)
    """The same for the weighted F1 in percent; empty if targets are values."""
    error: list[list[float]] = field(default_factory=list)
    """The same for the root mean squared error; empty if targets are classes or bits."""
    curves: list[list[dict[str, float]]] = field(default_factory=list)
    iterations: list[int] = field(default_factory=list)
    seconds: list[dict[str, float]] = field(default_factory=list)
    memory: dict[str, int] = field(default_factory=dict)
    """Bytes used by each penalty, the rehearsal and one stored sample after the last phase so far."""
    kept: list[dict[str, int]] = field(default_factory=list)
    """For each phase, bytes that must outlive it, by what keeps them (`perdure.learning.memory`)."""
    untrained: list[float] = field(default_factory=list)
    """Accuracy on test data of each task before anything is learnt; empty in runs of earlier versions."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Numbers of weights after the last phase so far: of the network, and of everything that is trained."""
    data: str = ""
    """The digest of the data; a run never goes on with other data. Empty in runs of earlier versions."""


@dataclass(frozen=True)
class RunOptions:
    """How a run is carried out, apart from what it computes.

    Only device and threads can change numbers, in the last digits; both are in the record.
    """

    watch: Callable[[Progress], None] = lambda _: None
    stop: Callable[[], bool] = lambda: False
    """Called after each iteration; if it returns true, the run saves its state and stops."""
    tell: Callable[[str], None] = lambda _: None
    """Called once, before the first iteration, with the sizes."""
    building: Watch = quiet
    """Called with the progress of a long data build."""
    save_every: float = 20.0
    """Seconds between checkpoints within a phase."""
    device: str = "cpu"
    threads: int = 1
    """Threads of torch: one is best for small networks, and numbers depend on it."""
    until: int | None = None
    """Learn no more than so many phases; asked for more, the run goes on from there."""
    keep: bool = True
    """Whether the learner's state after each phase is kept for good; analyses need it."""


def learn(
    learner: Learner,
    data: Sequence[Splits],
    training: Training,
    generators: GeneratorFactory,
    store: CheckpointStore,
    options: RunOptions,
) -> Results:
    """Learn all tasks; continue from the store's checkpoint if there is one."""
    results, state = Results(), init(learner)
    within: tuple[Vectors, Facts] | None = None
    checkpoint = store.load()
    resumed = checkpoint is not None
    if checkpoint is not None:
        results, state, within = _opened(checkpoint, learner, data, generators)
        state = state.to(options.device)
    else:
        results.untrained = untrained_scores(learner, state, data, generators)
    digest = digest_of(data)
    if results.data not in ("", digest):
        raise Damaged("it was made with other data")
    results.data = digest
    phases = learner.phases(len(data))
    last = len(phases) if options.until is None else min(options.until, len(phases))
    for number in range(len(results.accuracy), last):
        with wrong_content_named() if resumed else nullcontext():
            phase = begin_phase(learner, state, phases[number], data, training, generators)
            stored = resumed or number > 0
            loop = PhaseLoop(phase, number, len(phases), results, store, options, stored=stored)
            if within is not None:
                tensors, facts = moved(within[0], options.device), within[1]
                restore_phase(phase, tensors, facts)
                loop.spent, within = facts["seconds"], None
            if resumed and not phase.done:
                loop.step()  # a memory that is not the run's own shows when it is first used
        resumed = False
        trained = loop.train()
        begun = time.perf_counter()
        state = phase.finish()
        spent = {"train": trained, "finish": time.perf_counter() - begun}
        _note(results, phase, state, data, generators, spent)
        _save(store, number, state, results, keep=options.keep)
        end = loop.progress({}, trained)
        options.watch(replace(end, accuracy=results.accuracy[-1], validation=results.validation[-1]))
    return results


def _note(
    results: Results,
    phase: Phase,
    state: LearnerState,
    data: Sequence[Splits],
    generators: GeneratorFactory,
    spent: dict[str, float],
) -> None:
    """Add what a finished phase has led to: scores of all tasks, its curve and times, memory and sizes."""
    learner, begun = phase.learner, time.perf_counter()
    scores, validated = scores_of_all_tasks(learner, state, data, generators)
    results.accuracy.append([score.accuracy for score in scores])
    results.validation.append([score.accuracy for score in validated])
    for matrix, column in (
        (results.f1, [score.f1 for score in scores]),
        (results.error, [score.error for score in scores]),
    ):
        numbers = [value for value in column if value is not None]
        if numbers:  # a target has one of the two, for all its tasks
            matrix.append(numbers)
    results.curves.append(phase.curve)
    results.iterations.append(phase.iteration)
    results.seconds.append(spent | {"test": time.perf_counter() - begun})
    results.memory = memory_of(learner, state)
    results.kept.append(kept(learner, state, data, generators))
    results.sizes = sizes_of(learner, state)


def _save(store: CheckpointStore, number: int, state: LearnerState, results: Results, *, keep: bool) -> None:
    """Replace the checkpoint with one between phases; with `keep`, store the state for good."""
    tensors = pack(state)
    if keep:
        store.keep(number, tensors)
    facts = {"phase": None, "tasks": state.network.tasks, "results": vars(results)}
    store.save(prefixed(tensors, "state|"), facts)


def _opened(
    checkpoint: tuple[Vectors, Facts], learner: Learner, data: Sequence[Splits], generators: GeneratorFactory
) -> tuple[Results, LearnerState, tuple[Vectors, Facts] | None]:
    """Results and state of a checkpoint, and what it stores of the phase that it is within, all checked."""
    tensors, facts = checkpoint
    check_facts(facts, Results, len(data), len(learner.phases(len(data))))
    outputs = outputs_of(data[: facts["tasks"]])
    state = unpack(stripped(tensors, "state|"), learner, outputs)
    check_state(state, learner, outputs, generators)
    inside = None if facts["phase"] is None else (stripped(tensors, "phase|"), facts["phase"])
    return Results(**facts["results"]), state, inside


def begin_phase(
    learner: Learner,
    state: LearnerState,
    tasks: Sequence[int],
    data: Sequence[Splits],
    training: Training,
    generators: GeneratorFactory,
    *,
    forgotten: Collection[int] = (),
) -> Phase:
    """The phase of some tasks. The state grows by those that are new to it.

    Only the data of these tasks are passed on; of other known tasks, only the format. Tasks that were
    forgotten on purpose have a place, but nothing that a method could protect.
    """
    known = state.network.tasks
    new = {task: data[task] for task in tasks if task >= known}
    device = data[0].train.x.device
    state = grow(learner, state, outputs_of(list(new.values())), generators).to(str(device))
    if training.tables == "trained":
        state = replace(state, parameters=state.parameters | tables(new))
    formats = {
        task: data[task].train.without_samples()
        for task in range(state.network.tasks)
        if task not in forgotten
    }
    return Phase(learner, state, {task: data[task] for task in tasks}, formats, training, generators)


SHOW_EVERY = 0.2
"""Seconds between progress checks."""


@dataclass
class PhaseLoop:
    """One phase in progress: training with checkpoints and reports."""

    phase: Phase
    number: int
    phases: int
    results: Results
    store: CheckpointStore
    options: RunOptions
    spent: float = 0.0
    """Seconds that the phase has taken before."""
    stored: bool = False
    """Whether there is a checkpoint."""

    def __post_init__(self) -> None:
        """Start the clocks."""
        self.begun = self.saved = self.shown = time.perf_counter()

    def train(self) -> float:
        """Run the phase's loop to its end; returns the seconds it took, over all resumes."""
        while not self.phase.done:
            self.step()
        return self._seconds()

    def _seconds(self) -> float:
        return time.perf_counter() - self.begun + self.spent

    def step(self) -> None:
        """One iteration, then whatever is due: a stop, a checkpoint, a report."""
        phase, options = self.phase, self.options
        try:
            losses = phase.step()
        except Diverged as error:
            raise Diverged(f"{error} The last checkpoint is intact." if self.stored else str(error)) from None
        now = time.perf_counter()
        if options.stop():
            self.save()
            raise Interrupted("Stopped; the same command continues where it stopped.")
        if now - self.saved > options.save_every:
            self.save()
            self.saved = time.perf_counter()
        validated = phase.iteration % phase.training.validate_every == 0
        if validated or now - self.shown > SHOW_EVERY:
            options.watch(self.progress(losses, self._seconds()))
            self.shown = now

    def save(self) -> None:
        """Replace the checkpoint with one within the phase."""
        seconds = self._seconds()
        self.stored = True
        tensors, facts = self.phase.state()
        before = self.phase.before
        self.store.save(
            prefixed(tensors, "phase|") | prefixed(pack(before), "state|"),
            {
                "phase": facts | {"seconds": seconds},
                "tasks": before.network.tasks,
                "results": vars(self.results),
            },
        )

    def progress(self, losses: dict[str, float], seconds: float) -> Progress:
        """Where the phase is."""
        phase = self.phase
        return Progress(
            phase=self.number,
            phases=self.phases,
            task=phase.name,
            iteration=phase.iteration,
            iterations=phase.iterations,
            losses=losses,
            val_accuracy=phase.curve[-1]["val accuracy"] if phase.curve else None,
            seconds=seconds,
            score=next(iter(phase.data.values())).train.target.score_name,
        )
