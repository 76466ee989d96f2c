"""Whether a checkpoint, or a state from a file, is one of this learner.

A digest says that a file is as it was written, not that it belongs here. Names, shapes, types and numbers are
held against those of a new state of the same learner; everything else must survive being restored unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, get_type_hints

import torch
from torch import Tensor

from perdure.checking import check
from perdure.errors import out_of_memory
from perdure.files import Damaged
from perdure.learning.embedding_tables import PREFIX
from perdure.learning.learner import Learner, LearnerState, grow, init
from perdure.learning.phase import Facts, Phase
from perdure.networks.layout import Vectors
from perdure.weights.source import GeneratorFactory

PHASE_FACTS = {
    "iteration": int,
    "stopped": bool,
    "stale": int,
    "best": list[float | None] | None,
    "sums": dict[str, float],
    "curve": list[dict[str, float]],
    "optimiser": dict[str, float],
    "seconds": float,
}
"""What a checkpoint within a phase says beside its tensors, and of which types."""
WRONG = (
    ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError, RuntimeError,
)  # fmt: skip
"""What wrong names, sizes and types cause."""
LIKE_PARAMETERS = ("importance.", "anchor.")
"""Entries of memories that have a number for each weight of a parameter vector."""


@contextmanager
def wrong_content_named() -> Iterator[None]:
    """Errors that wrong names, sizes and types cause become Damaged; a lack of memory is not one of them."""
    try:
        yield
    except WRONG as error:
        if out_of_memory(error):
            raise
        told = " ".join(str(error).split())[:120]
        raise Damaged(f"its content is not what this run stores: {type(error).__name__}, {told}") from error


def check_facts(facts: Any, results: type, tasks: int, phases: int) -> None:
    """Raise Damaged unless the facts of a checkpoint are complete, of their types, and of a run this long."""
    hints = {"phase": dict[str, Any] | None, "tasks": int, "results": dict[str, Any]}
    _check_all(facts, hints, "facts")
    _check_all(facts["results"], get_type_hints(results), "results")
    done = len(facts["results"]["accuracy"])
    wrong_rows = any(len(row) != tasks for row in facts["results"]["accuracy"])
    if not 0 <= facts["tasks"] <= tasks or done > phases or wrong_rows:
        raise Damaged("it is of a run with other tasks")
    for name in ("curves", "iterations", "seconds"):
        if len(facts["results"].get(name, ())) != done:
            raise Damaged(f"'results.{name}' does not have an entry for each of its {done} phases")
    if facts["phase"] is not None:
        _check_all(facts["phase"], PHASE_FACTS, "phase")


def _check_all(values: Any, hints: Mapping[str, Any], where: str) -> None:
    """Whether values have exactly these names and types; later versions may add to results alone."""
    if not isinstance(values, dict):
        raise Damaged(f"its {where} are not a mapping")
    for name in values.keys() ^ hints.keys():
        if name in values or where != "results" or name == "accuracy":
            raise Damaged(f"'{name}' is {'unknown' if name in values else 'missing'} in its {where}")
    for name, value in values.items():
        check(value, hints[name], f"{where}.{name}")


def check_state(
    state: LearnerState, learner: Learner, outputs: Sequence[int], generators: GeneratorFactory
) -> None:
    """Raise Damaged unless a state has the names, shapes and types of one with tasks of these outputs."""
    expected = grow(learner, init(learner), outputs, generators)
    _check_like(state.parameters, expected.parameters, "parameters", PREFIX)
    _check_like(state.buffers, expected.buffers, "buffers")
    for hook, memory in state.memories.items():
        for prefix in LIKE_PARAMETERS:
            for name in [name for name in memory if name.startswith(prefix)]:
                vector = state.parameters.get(name.removeprefix(prefix))
                if vector is None:
                    raise Damaged(f"'memory/{hook}/{name}' is not a tensor of this run")
                _check_tensor(memory[name], vector, f"memory/{hook}/{name}")


def _check_like(given: Vectors, expected: Vectors, where: str, allowed: str | None = None) -> None:
    """The same names, but for those with the allowed prefix, and tensors of the same kind."""
    for name in expected:
        if name not in given:
            raise Damaged(f"'{where}/{name}' is missing")
    for name, tensor in given.items():
        if name in expected:
            _check_tensor(tensor, expected[name], f"{where}/{name}")
        elif allowed is None or not name.startswith(allowed):
            raise Damaged(f"'{where}/{name}' is not a tensor of this run")


def _check_tensor(tensor: Tensor, like: Tensor, name: str) -> None:
    if tensor.shape != like.shape or tensor.dtype != like.dtype:
        raise Damaged(
            f"'{name}' is {tensor.dtype} {list(tensor.shape)}, but must be {like.dtype} {list(like.shape)}"
        )
    if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
        raise Damaged(f"'{name}' has numbers that are not finite")


def restore_phase(phase: Phase, tensors: Vectors, facts: Facts) -> None:
    """Restore a phase; Damaged unless it then has exactly the state that it was given."""
    trained = {f"{part}|{name}": v for name, v in phase.trained().items() for part in ("active", "best")}
    for name, tensor in tensors.items():
        if name in trained:
            _check_tensor(tensor, trained[name], name)
    phase.restore(tensors, facts)
    again, _ = phase.state()
    for name in again.keys() ^ tensors.keys():
        raise Damaged(f"'{name}' does not belong to a phase of this run")
    for name, tensor in again.items():
        other = tensors[name].to(tensor.device)
        if tensor.shape != other.shape or tensor.dtype != other.dtype or not torch.equal(tensor, other):
            raise Damaged(f"'{name}' cannot be restored")
    if not 0 <= phase.iteration <= phase.iterations:
        raise Damaged(f"it is at iteration {phase.iteration} of {phase.iterations}")
