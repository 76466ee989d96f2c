"""Scores of all tasks at any moment: of those that have arrived, and of those that are still to come."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.learning.embedding_tables import read_through
from perdure.learning.evaluate import Score, evaluate
from perdure.learning.inference import evaluate_inferred
from perdure.learning.learner import Learner, LearnerState, grow
from perdure.learning.splits import Splits, outputs_of
from perdure.networks.network import Network
from perdure.weights.source import GeneratorFactory, TaskNetwork


def scores_of_all_tasks(
    learner: Learner, state: LearnerState, data: Sequence[Splits], generators: GeneratorFactory
) -> tuple[list[Score], list[Score]]:
    """Test and validation scores of all tasks. One that has not arrived is looked at as it would start."""
    everything = grow(learner, state, outputs_of(data[state.network.tasks :]), generators)
    tested: list[Score] = []
    validated: list[Score] = []
    running: dict[int, TaskNetwork] = {}  # those that a sequence may belong to, generated at most once
    for task, splits in enumerate(data):
        network, weights = _seen(everything, state, task).weights(learner, task)
        inferred = not splits.told and depends_on_task(learner, network)
        if inferred and not running:
            running = {known: state.weights(learner, known) for known in range(state.network.tasks)}
        for split, scores in ((splits.test, tested), (splits.val, validated)):
            given = read_through(split, task, state.parameters)
            if inferred:
                scores.append(evaluate_inferred(running, given, splits.outputs))
            else:
                scores.append(evaluate(network, weights, given, task))
    return tested, validated


def untrained_scores(
    learner: Learner, state: LearnerState, data: Sequence[Splits], generators: GeneratorFactory
) -> list[float]:
    """Test accuracy of each task, named to the network, before anything is learnt."""
    everything = grow(learner, state, outputs_of(data), generators)
    everything = everything.to(str(data[0].train.x.device))
    return [
        evaluate(*everything.weights(learner, task), splits.test, task).accuracy
        for task, splits in enumerate(data)
    ]


def _seen(everything: LearnerState, state: LearnerState, task: int) -> LearnerState:
    """The state that answers for a task: in a growing head, only classes that have arrived are possible."""
    return state if state.network.growing and task < state.network.tasks else everything


def depends_on_task(learner: Learner, network: Network) -> bool:
    """Whether the answers to a sequence depend on which task it is said to belong to."""
    architecture = network.architecture
    same = learner.source.shares_heads and architecture.heads != "multi" and not architecture.task_identity
    return not same
