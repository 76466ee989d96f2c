"""The main network f(x, lengths, psi): a body, and a head for each task.

A `Network` holds no weights. It knows their layout, and maps (weights, batch, task) to logits. Shared
tensors, masked ones and the output of a hypernetwork are all alike to it. It knows the tasks that have
arrived so far; `grown` returns the network with more of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise

import torch
from torch import Tensor

from perdure.errors import PerdureError
from perdure.networks.batch import Batch
from perdure.networks.bodies.body import Architecture, BodyInput, BodyPlan
from perdure.networks.bodies.recurrent import dense
from perdure.networks.layout import Layout, Weight, Weights
from perdure.networks.packing import Packing, uniform
from perdure.networks.tape import Tape, TaskVector, affine

BODY = "body"
"""Name of the weights that all tasks share."""


class Network:
    """A network for tasks with the given numbers of inputs and outputs."""

    def __init__(self, architecture: Architecture, inputs: int, outputs: Sequence[int]) -> None:
        """Derive the weight layout; `outputs` has one number for each task known so far."""
        if architecture.heads == "single" and len(set(outputs)) > 1:
            raise PerdureError(
                f"network.heads: a single head needs tasks of equal output size, found "
                f"{sorted(set(outputs))}; use --network.heads multi."
            )
        if architecture.heads == "growing" and any(b <= a for a, b in pairwise(outputs)):
            raise PerdureError(
                f"network.heads: a growing head needs tasks that add outputs to those before, found "
                f"{list(outputs)}; use --benchmark.scenario class, or --network.heads multi."
            )
        self.architecture = architecture
        self.inputs = inputs
        self.outputs = tuple(outputs)
        self._narrow: dict[Architecture, Network] = {}

    @property
    def tasks(self) -> int:
        """Number of tasks K known so far."""
        return len(self.outputs)

    def grown(self, outputs: Sequence[int]) -> Network:
        """The network after more tasks, with these numbers of outputs, have arrived."""
        return Network(self.architecture, self.inputs, [*self.outputs, *outputs])

    def head(self, task: int) -> str:
        """Name of the output head that a task uses."""
        return "head.0" if self.architecture.heads == "single" else f"head.{task}"

    @property
    def growing(self) -> bool:
        """Whether all tasks read one head, to which each adds its own outputs."""
        return self.architecture.heads == "growing"

    def columns(self, task: int) -> dict[str, slice]:
        """The columns of a task's logits, by the head they come from; in a growing head, all that arrived."""
        if not self.growing:
            return {self.head(task): slice(0, self.outputs[task])}
        bounds = pairwise([0, *self.outputs])
        return {self.head(each): slice(*bound) for each, bound in enumerate(bounds)}

    def parts(self, task: int) -> tuple[str, ...]:
        """Names of the groups of weights that a task uses: the body, its heads, and its identity input."""
        identity = (f"identity.{task}",) if self.architecture.task_identity else ()
        return (BODY, *self.columns(task), *identity)

    @cached_property
    def layouts(self) -> dict[str, Layout]:
        """The layout of each group of weights: the body, then what each task has added."""
        layouts = {BODY: self._plan.layout}
        for task in range(self.tasks):
            head: dict[str, Weight] = {}
            columns = self.columns(task)[self.head(task)]
            outputs = columns.stop - columns.start
            dense(head, self.head(task), self._plan.features, outputs, self.architecture.rule)
            layouts[self.head(task)] = Layout.of(head)
            if self.architecture.task_identity:
                layouts[f"identity.{task}"] = self._identity(task)
        return layouts

    def _identity(self, task: int) -> Layout:
        """The columns of a one-hot input that represent a task, one vector per entry point of the body."""
        rule = self.architecture.rule
        return Layout.of(
            {
                f"identity.{task}.{name}": ((axis,), rule.affine(inputs + 1, axis.units))
                for name, (axis, inputs) in self._plan.entrances.items()
            }
        )

    @cached_property
    def _plan(self) -> BodyPlan:
        return self.architecture.plan(self.inputs)

    @property
    def body(self) -> Layout:
        """All weights that every task uses."""
        return self.layouts[BODY]

    @cached_property
    def heads(self) -> dict[str, Layout]:
        """The layout of each head's weights, by head name."""
        names = dict.fromkeys(self.head(task) for task in range(self.tasks))
        return {name: self.layouts[name] for name in names}

    @cached_property
    def layout(self) -> Layout:
        """All weights psi: the body, then those of every task."""
        whole = Layout({})
        for part in self.layouts.values():
            whole = whole | part
        return whole

    def layout_of(self, task: int) -> Layout:
        """All weights that a task uses."""
        whole = Layout({})
        for part in self.parts(task):
            whole = whole | self.layouts[part]
        return whole

    @cached_property
    def units(self) -> dict[str, int]:
        """Number of hidden units of each group that can be masked."""
        named = [group for axes in self.body.axes.values() for axis in axes for group in axis.groups]
        return {name: size for name, size in named if name != "input"}

    @property
    def width(self) -> int:
        """Number of features that the heads read."""
        return self._plan.features.size

    @property
    def feature_groups(self) -> tuple[tuple[str, int], ...]:
        """Names and numbers of the units that the heads read."""
        return self._plan.features.groups

    def narrowed(self, kept: Mapping[str, int]) -> Network:
        """The sub-network with the numbers of units in `kept` for each group."""
        architecture = self.architecture.narrowed(kept)
        if architecture not in self._narrow:
            self._narrow[architecture] = Network(architecture, self.inputs, self.outputs)
        return self._narrow[architecture]

    def recurrent_matrices(self, weights: Weights) -> list[Tensor]:
        """Every hidden-to-hidden matrix [H, H]."""
        return self.architecture.recurrent_matrices(weights)

    def __call__(self, weights: Weights, batch: Batch, task: int, tape: Tape | None = None) -> Tensor:
        """Logits [M, outputs] at the rows where the batch requires outputs.

        A tape, if given, records each map that ran; the weights must then not require gradients.
        """
        features = self.features(weights, batch, task, batch.asked, tape)
        return self._logits(weights, features, task, batch.answers, tape)

    def features(
        self,
        weights: Weights,
        batch: Batch,
        task: int | Tensor,
        asked: slice | Tensor | None = None,
        tape: Tape | None = None,
    ) -> Tensor:
        """The heads' inputs, at the required rows [M, H] or at all rows [S, H].

        `task` is one for all sequences, or one per row [S].
        """
        given = BodyInput(
            batch.rows, batch.packing, asked, batch.answers, self._task_vectors(task), batch.noise
        )
        return self.architecture.features(weights, given, tape)

    def _task_vectors(self, task: int | Tensor) -> dict[str, TaskVector]:
        """The task identity as seen by the body, at each of its entry points."""
        if not self.architecture.task_identity:
            return {}
        if isinstance(task, Tensor):
            tasks, owner = torch.unique(task, return_inverse=True)
            present: list[int] = tasks.tolist()
            return {
                name: TaskVector(tuple(f"identity.{each}.{name}" for each in present), owner)
                for name in self._plan.entrances
            }
        return {name: TaskVector((f"identity.{task}.{name}",), None) for name in self._plan.entrances}

    def read_out(self, weights: Weights, states: Sequence[Tensor], task: int) -> Tensor:
        """Logits [M, outputs] from states of the last recurrent layer, [M, H] for each direction."""
        return self.answer(weights, self.architecture.from_states(weights, states), task)

    def answer(self, weights: Weights, features: Tensor, task: int) -> Tensor:
        """Logits [M, outputs] of a task's head from features [M, H]."""
        return self._logits(weights, features, task, uniform(len(features), 1), None)

    def _logits(
        self, weights: Weights, features: Tensor, task: int, packing: Packing, tape: Tape | None
    ) -> Tensor:
        """What the task's heads read from features, side by side."""
        parts = [
            affine(weights, (f"{head}.weight", f"{head}.bias"), features, packing, tape)
            for head in self.columns(task)
        ]
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)
