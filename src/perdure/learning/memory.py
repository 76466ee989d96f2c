"""What must outlive a task, in bytes: all that is needed to answer for old tasks and to learn further ones.

It is counted from the learner's state, so no piece can forget anything that it keeps there. What a hook holds
for old tasks while the next one is learnt (targets, teachers, snapshots), and could not make again later, it
tells itself (`Hook.held`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from torch import Tensor

from perdure.hooks import PhaseContext
from perdure.learning.learner import Learner, LearnerState
from perdure.learning.splits import Splits
from perdure.networks.batch import Data
from perdure.weights.source import GeneratorFactory

WEIGHTS, BUFFERS, DATA = "weights", "buffers", "training data"
"""Trained vectors of the source; what it keeps beside them (masks, factors); data of joint training."""
WHILE_LEARNING = ", while learning"
"""Ending of the name of what a hook holds while the next task is learnt."""


def kept(
    learner: Learner, state: LearnerState, data: Sequence[Splits], generators: GeneratorFactory
) -> dict[str, int]:
    """Bytes by what keeps them, after the tasks that the state knows; entries of 0 bytes are left out.

    The vectors of a hook (its decoder, its memory) count for the hook. Joint training needs the data of all
    tasks whenever one is added.
    """
    known = list(range(state.network.tasks))
    prefixes = {name: hook.prefixes for name, hook in learner.hooks.items()}
    owned = tuple(prefix for each in prefixes.values() for prefix in each)
    found = {
        WEIGHTS: size(_without(state.parameters, owned)),
        BUFFERS: size(_without(state.buffers, owned)),
    }
    context = PhaseContext(
        network=state.network,
        source=learner.source,
        buffers=state.buffers,
        parameters=state.parameters,
        positions={},
        start={},
        tasks=[],
        known=known,
        training_data={},
        formats={task: data[task].train.without_samples() for task in known},
        generators=generators,
    )
    for name, hook in learner.hooks.items():
        memory = state.memories[name]
        own = [_with(vectors, prefixes[name]) for vectors in (state.parameters, state.buffers)]
        found[name] = size(memory.values()) + sum(size(vectors) for vectors in own)
        found[name + WHILE_LEARNING] = hook.held(memory, context)
    if learner.together:
        found[DATA] = sum(_bytes(data[task].train) for task in known)
    return {name: count for name, count in found.items() if count}


def size(tensors: Iterable[Tensor]) -> int:
    """Bytes of tensors."""
    return sum(tensor.nbytes for tensor in tensors)


def _with(vectors: Mapping[str, Tensor], prefixes: tuple[str, ...]) -> list[Tensor]:
    return [vector for name, vector in vectors.items() if prefixes and name.startswith(prefixes)]


def _without(vectors: Mapping[str, Tensor], prefixes: tuple[str, ...]) -> list[Tensor]:
    return [vector for name, vector in vectors.items() if not (prefixes and name.startswith(prefixes))]


def _bytes(data: Data) -> int:
    parts = [data.x, data.y, data.lengths, data.table]
    return size(part for part in parts if part is not None)
