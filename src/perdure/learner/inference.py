"""The task to which a sequence belongs, if nobody says.

If the method stores samples, a single head over all tasks is fitted to them. If it has a decoder for each
task, the task is the one whose decoder reconstructs the sequence best. Otherwise it is the one whose answers
are the least uncertain (lowest predictive entropy, as a fraction of the largest possible).
Tasks that share their inputs cannot be told apart by them, which is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from perdure.benchmarks.task import Array
from perdure.config import Config
from perdure.experiment import threads
from perdure.learner.answers import entropies
from perdure.learner.faults import wrong, wrong_type
from perdure.learner.forms import read_questions
from perdure.learner.knowledge import Knowledge
from perdure.learner.prediction import check_lengths, known_task, logits_of, network_of
from perdure.learner.recogniser import recognise, stored
from perdure.learner.sequences import Inputs
from perdure.rehearsal.generative import Generative
from perdure.rehearsal.surprise import reconstruction_errors

Criterion = Literal["auto", "head", "reconstruction", "entropy"]


def infer(
    config: Config,
    knowledge: Knowledge | None,
    x: Any,
    lengths: Any,
    steps: Any = None,
    by: Criterion = "auto",
) -> Array:
    """The names [N] of the tasks to which sequences, or their first steps, seem to belong."""
    knowledge = something_learnt(knowledge)
    inputs = read_questions(x, lengths, knowledge.inputs, knowledge.features).inputs
    return owners_of(config, knowledge, inputs, steps, by)


def something_learnt(knowledge: Knowledge | None) -> Knowledge:
    """What is known; raises if that is nothing."""
    if knowledge is None or not knowledge.formats:
        raise wrong("task", "nothing has been learnt yet; call learn first.")
    return knowledge


def owners_of(
    config: Config, knowledge: Knowledge, inputs: Inputs, steps: Any = None, by: Criterion = "auto"
) -> Array:
    """The same for sequences that have been read already."""
    if steps is not None:
        if not isinstance(steps, (int, np.integer)) or steps < 1:
            raise wrong("steps", f"{steps!r} is not a number of steps; give an integer of at least 1.")
        inputs = inputs.prefixes(int(steps))
    tasks = _candidates(knowledge)
    by = _criterion(config, knowledge, by)
    if len(tasks) == 1:  # nothing to infer, whatever its targets are
        return np.array(tasks * len(inputs))
    if by == "head":
        return np.array(tasks)[recognise(config, knowledge, tasks, inputs, steps)]
    values = torch.stack([_doubt(config, knowledge, task, inputs, by) for task in tasks])
    chosen: Array = np.array(tasks)[values.argmin(0).numpy()]
    return chosen


def curve(
    config: Config, knowledge: Knowledge | None, given: Any, steps: Sequence[int], by: Criterion = "auto"
) -> dict[int, float]:
    """Percent of sequences whose task is inferred from the first steps alone, by the number of steps.

    `given` maps tasks to their sequences, or to pairs (x, y) as `score` takes them; tasks count equally.
    """
    if not isinstance(given, Mapping) or not given:
        raise wrong_type("x", "give a mapping from tasks to their sequences.")
    for task in given:
        known_task(knowledge, task)
    if isinstance(steps, str) or not isinstance(steps, (Sequence, np.ndarray, range)):
        raise wrong_type("steps", f"it is a {type(steps).__name__}; give a list of numbers, such as [5, 10].")
    given = {task: x[0] if isinstance(x, tuple) and len(x) == 2 else x for task, x in given.items()}
    found: dict[int, float] = {}
    for count in steps:
        right = [
            float((infer(config, knowledge, x, None, count, by) == task).mean()) for task, x in given.items()
        ]
        found[int(count)] = 100 * sum(right) / len(right)
    return found


def _candidates(knowledge: Knowledge) -> list[str]:
    """The tasks to choose from; refused if two of them share their inputs."""
    tasks = [task for task in knowledge.tasks if task not in knowledge.forgotten]
    if not tasks:
        raise wrong("task", "all tasks were forgotten; learn one first.")
    for one, other in combinations(tasks, 2):
        if not knowledge.looks[one].differs(knowledge.looks[other]):
            raise wrong(
                "task",
                f"the inputs of '{one}' and '{other}' look alike, so they do not tell the task; name it.",
            )
    return tasks


def _criterion(config: Config, knowledge: Knowledge, by: Criterion) -> Criterion:
    """The best criterion that a method offers, or the one asked for."""
    offered: list[Criterion] = ["entropy"]
    if isinstance(config.rehearsal, Generative):
        offered.insert(0, "reconstruction")
    if stored(config, knowledge):
        offered.insert(0, "head")
    if by != "auto" and by not in offered:
        raise wrong("by", f"{config.method} does not offer {by!r}, but {', '.join(offered)}.")
    return offered[0] if by == "auto" else by


def _doubt(config: Config, knowledge: Knowledge, task: str, inputs: Inputs, by: Criterion) -> Tensor:
    """How little each sequence [N] seems to belong to a task."""
    if by == "reconstruction":
        assert isinstance(config.rehearsal, Generative)
        return _reconstruction(config, config.rehearsal, knowledge, task, inputs)
    check_lengths(knowledge, task, inputs)
    logits = logits_of(config, knowledge, task, inputs)
    return entropies(knowledge.formats[task], logits, torch.from_numpy(inputs.lengths))


def _reconstruction(
    config: Config, options: Generative, knowledge: Knowledge, task: str, inputs: Inputs
) -> Tensor:
    data, number, state = knowledge.data(task, inputs), knowledge.number(task), knowledge.state
    parts = []
    with threads(1):
        encoder = network_of(config, knowledge, task)
        for batch in data.batches():
            parts.append(
                reconstruction_errors(options, state.parameters, state.buffers, encoder, batch, number)
            )
    return torch.cat(parts)
