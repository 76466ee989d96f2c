"""Shared by methods that let weights move only where old tasks are not disturbed: dW <- P_out dW P_in.

For every affine map of the network, dW is the change of its matrix (with the bias as one more column of
inputs 1), and P_in, P_out are made of what the map has seen in old tasks. It is the optimiser's step that is
projected: Adam scales every entry of a projected gradient, and would leave the subspace again. If projecting
twice is the same as once, so is the gradient, before clipping.
Parameters that no matrix holds, such as the decay of a diagonal cell, stay as they are after the first task.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

import torch
from pydantic import PositiveInt
from torch import Tensor

from perdure.hooks import PhaseContext, PhaseEnd, Step, Term
from perdure.networks.activity import Moments, Names, joined, moments, separated
from perdure.networks.arithmetic import product
from perdure.networks.layout import Vectors, Weights
from perdure.options import Composition
from perdure.penalties.penalty import Penalty


class Projectors(NamedTuple):
    """The matrices on both sides of a change dW [G, F]; None: the identity."""

    inputs: Tensor | None
    outputs: Tensor | None = None

    def __call__(self, change: Tensor) -> Tensor:
        """P_out dW P_in."""
        result = change if self.inputs is None else product(change, self.inputs)
        return result if self.outputs is None else product(self.outputs, result)


class Projecting(Penalty):
    """Weights move only where old tasks are hardly disturbed."""

    idempotent: ClassVar[bool] = False
    """Whether projecting twice is the same as once."""

    samples: PositiveInt | None = 1000
    """Training samples of a task from which the activity of its maps is computed; none: all."""

    @classmethod
    def refusal(cls, method: Composition) -> str | None:
        """The maps of all tasks must have the same weights, trained directly."""
        if method.weights.name != "shared":
            return f"{cls.name} needs one set of weights for all tasks, trained directly"
        return super().refusal(method)

    def begin(self, memory: Vectors, context: PhaseContext) -> ProjectingTerm:
        """The projections that the memory gives."""
        return ProjectingTerm(self, memory, context)

    @abstractmethod
    def projectors(self, memory: Mapping[str, Tensor]) -> Projectors:
        """From what is remembered of one map, by name."""

    @abstractmethod
    def remembered(self, memory: Mapping[str, Tensor], found: Moments) -> Vectors:
        """What is remembered of one map after a task with these moments."""


class ProjectingTerm(Term):
    """The projection during one phase."""

    def __init__(self, options: Projecting, memory: Vectors, context: PhaseContext) -> None:
        """Make the projectors of all maps that old tasks have used."""
        self.options, self.memory, self.context = options, memory, context
        self.maps = {_names(key): options.projectors(values) for key, values in _by_map(memory).items()}
        self.redirects = bool(self.maps)
        self.transforms = self.redirects and options.idempotent
        self.held = self._held()

    def _held(self) -> set[str]:
        """Weights that old tasks use and that belong to no map."""
        if not self.maps:
            return set()
        projected = {name for names in self.maps for pair in names for name in pair}
        return set(self.context.network.body.axes) - projected

    def transform(self, step: Step, gradients: Vectors) -> Vectors:
        """The gradient, projected."""
        del step
        return self.projected(gradients)

    def redirect(self, step: Step, moves: Vectors) -> Vectors:
        """The optimiser's step, projected."""
        del step
        return self.projected(moves)

    def projected(self, changes: Vectors) -> Vectors:
        """P_out dW P_in of every map."""
        layouts = self.context.network.layouts
        named: Weights = {}
        for part in changes:
            if part in layouts:
                named |= layouts[part].split(changes[part])
        for names, project in self.maps.items():
            if names[0][0] in named:  # a head of an old task is not trained
                named |= separated(project(joined(named, names)), names, named)
        named |= {name: torch.zeros_like(named[name]) for name in self.held}
        return {
            part: layouts[part].join(named) if part in layouts else change for part, change in changes.items()
        }

    def finish(self, end: PhaseEnd) -> Vectors:
        """What the maps have seen in this phase joins what is known."""
        memory = dict(self.memory)
        for task, (network, weights) in self.context.networks_now(end.active, end.data).items():
            data = end.data[task]
            order = torch.randperm(len(data), generator=self.context.generators("activity", task))
            for found in moments(network, weights, data, order[: self.options.samples], task):
                key, known = _key(found.names), _by_map(memory).get(_key(found.names), {})
                new = self.options.remembered(known, found)
                memory |= {f"{name}|{key}": value for name, value in new.items()}
        return memory


def _key(names: Names) -> str:
    return "+".join(f"{weight},{bias}" for weight, bias in names)


def _names(key: str) -> Names:
    pairs: Sequence[str] = key.split("+")
    return tuple((pair.partition(",")[0], pair.partition(",")[2]) for pair in pairs)


def _by_map(memory: Vectors) -> dict[str, Vectors]:
    """What is remembered of each map."""
    found: dict[str, Vectors] = {}
    for name, value in memory.items():
        what, _, key = name.partition("|")
        found.setdefault(key, {})[what] = value
    return found


def averaged(earlier: Vectors, latest: Vectors, share: float) -> Vectors:
    """Moments that are sums over tasks, with the mean over its visits for the task learnt last."""
    return {**latest, **{name: torch.lerp(value, latest[name], share) for name, value in earlier.items()}}


def shrunk(moment: Tensor, alpha: float) -> Tensor:
    """Alpha (C + alpha I)^-1 = V diag(alpha / (alpha + lambda)) V^T of a second moment C."""
    eye = torch.eye(len(moment), dtype=torch.float64, device=moment.device)
    result: Tensor = alpha * torch.linalg.solve(moment.double() + alpha * eye, eye)
    return result.float()
