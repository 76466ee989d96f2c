"""A learner's state as one mapping of named tensors, as it is stored, and back."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.files import Damaged
from perdure.learning.learner import Learner, LearnerState, init
from perdure.networks.layout import Vectors


def pack(state: LearnerState) -> Vectors:
    """A state as one mapping of tensors: parameters/..., buffers/..., memory/HOOK/..."""
    tensors = prefixed(state.parameters, "parameters/") | prefixed(state.buffers, "buffers/")
    for name, memory in state.memories.items():
        tensors |= prefixed(memory, f"memory/{name}/")
    return tensors


def unpack(tensors: Vectors, learner: Learner, outputs: Sequence[int]) -> LearnerState:
    """The inverse of `pack`, given the numbers of outputs of the tasks that had arrived.

    Raises Damaged for tensors that belong to none of its parts.
    """
    prefixes = ("parameters/", "buffers/", *(f"memory/{name}/" for name in learner.hooks))
    for name in tensors:
        if not name.startswith(prefixes):
            raise Damaged(f"'{name}' is not a tensor of this run")
    return LearnerState(
        network=init(learner).network.grown(outputs),
        parameters=stripped(tensors, "parameters/"),
        buffers=stripped(tensors, "buffers/"),
        memories={name: stripped(tensors, f"memory/{name}/") for name in learner.hooks},
    )


def prefixed(vectors: Vectors, prefix: str) -> Vectors:
    """The vectors, with a prefix before each name."""
    return {prefix + name: vector for name, vector in vectors.items()}


def stripped(vectors: Vectors, prefix: str) -> Vectors:
    """The vectors whose names have the prefix, without it."""
    return {n.removeprefix(prefix): v for n, v in vectors.items() if n.startswith(prefix)}
