"""Sizes that a record names: numbers of weights, and bytes of memories."""

from __future__ import annotations

from perdure.hooks import Hook
from perdure.learning.learner import Learner, LearnerState
from perdure.learning.size_names import GENERATED, GENERATING
from perdure.weights.source import WeightSource


def sizes_of(learner: Learner, state: LearnerState) -> dict[str, int]:
    """Numbers of weights: of the network's psi, and of all that is trained.

    For each part that is generated, such as the network or a decoder, also of the part and what generates it.
    """
    trained = sum(vector.numel() for vector in state.parameters.values())
    sizes = {"network": state.network.layout.size, "trained": trained}
    owners: list[WeightSource | Hook] = [learner.source, *learner.hooks.values()]
    for piece in owners:
        made = piece.generated(state.network)
        if made is not None:
            sizes[f"{GENERATED} {made.what}"] = made.generated
            sizes[f"{GENERATING} {made.what}"] = made.generating
    return sizes


def memory_of(learner: Learner, state: LearnerState) -> dict[str, int]:
    """Bytes of each memory, and of one stored sample if samples are stored."""
    sizes = {name: sum(v.nbytes for v in memory.values()) for name, memory in state.memories.items()}
    for name, hook in learner.hooks.items():
        if samples := hook.stored(state.memories[name]):
            sizes["a stored sample"] = round(sizes[name] / samples)
    return sizes
