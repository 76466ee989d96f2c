"""The one contract of everything that accompanies a phase: penalties, rehearsal, gradient projections.

A hook is options. When a phase begins it makes a `Term` from its memory (named tensors that outlive phases).
In every step the term may add losses, look at gradients, and change the total gradient before it is clipped;
at the end it returns the new memory. All methods of a term have a default: a term defines only what it does.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from perdure.errors import PerdureError
from perdure.networks.batch import Batch, Data
from perdure.networks.layout import Vectors
from perdure.networks.network import Network
from perdure.options import Composition, Piece
from perdure.weights.source import (
    GeneratorFactory,
    Positions,
    Stock,
    TaskNetwork,
    WeightSource,
    take,
)

Watched = Literal["task", "total"] | None
"""Which gradient a term looks at: that of the task loss alone, the total one as it is applied, or none."""


@dataclass(frozen=True)
class PhaseContext:
    """What a hook may know of the phase that begins: one task, or several learnt together.

    Training data of other tasks cannot be reached from here.
    """

    network: Network
    source: WeightSource
    buffers: Vectors
    parameters: Vectors
    """All parameter vectors as they are before the phase."""
    positions: Positions
    """The entries that are trained in this phase."""
    start: Vectors
    """The active entries of `parameters`."""
    tasks: Sequence[int]
    """The tasks that are being learnt."""
    known: Sequence[int]
    """The tasks that were learnt before."""
    training_data: Mapping[int, Data]
    """Training data of the tasks of this phase."""
    formats: Mapping[int, Data]
    """For all known tasks how their data look (targets, precision, word vectors), without any sample."""
    generators: GeneratorFactory

    def data(self, task: int) -> Data:
        """Training data of a task of this phase."""
        if task not in self.training_data:
            raise PerdureError(
                f"The training data of task {task + 1} cannot be read while other tasks are being learnt; "
                f"what a method needs of them it must keep in its memory."
            )
        return self.training_data[task]

    def networks_before(self, tasks: Iterable[int]) -> dict[int, TaskNetwork]:
        """The networks with which tasks ran before the phase: teachers."""
        source, network, buffers = self.source, self.network, self.buffers
        return {
            task: source.weights(
                network, buffers, take(self.parameters, source.active(network, buffers, [task])), task
            )
            for task in tasks
        }

    def networks_now(self, active: Vectors, tasks: Iterable[int]) -> dict[int, TaskNetwork]:
        """The networks with which tasks, old or new, run now; what is not trained is as before the phase."""
        return self.source.running(self.network, self.buffers, self.parameters | active, tasks)


@dataclass(frozen=True)
class Step:
    """One iteration, as a term sees it."""

    number: int
    """Iterations of this phase before this one."""
    active: Vectors
    """The trained vectors, differentiable."""
    indices: Mapping[int, Tensor]
    """For each task of the mini-batch which of its training samples were drawn [B]."""
    batches: Mapping[int, Batch]
    """The mini-batch, task by task."""
    networks: Mapping[int, TaskNetwork]
    """For each task of the mini-batch the network that ran and its psi."""
    logits: Mapping[int, Tensor]
    """Their answers [M, outputs] at the asked steps."""
    would_move: Callable[[], Vectors]
    """By how much the optimiser would move the active vectors for their gradients as they are now."""

    def gradient(self, loss: Tensor) -> Vectors:
        """The gradient of a loss with respect to the active vectors; zero where there is none."""
        found = torch.autograd.grad(loss, list(self.active.values()), allow_unused=True, retain_graph=True)
        return {
            name: torch.zeros_like(vector) if grad is None else grad
            for (name, vector), grad in zip(self.active.items(), found, strict=True)
        }


@dataclass(frozen=True)
class PhaseEnd:
    """What a phase has led to."""

    active: Vectors
    """The trained vectors, as they will be kept."""
    data: Mapping[int, Data]
    """Training data of the tasks of the phase, read through their trained word vectors."""


class Term:
    """A hook during one phase. Every method may be left as it is."""

    watches: Watched = None
    """Whether `observe` is called, and with which gradient; watching the task's costs a backward pass."""
    transforms: bool = False
    """Whether `transform` is called."""

    def losses(self, step: Step) -> Mapping[str, Tensor]:
        """Named losses to be added to the task's; none where there is nothing to protect."""
        del step
        return {}

    def observe(self, step: Step, gradients: Vectors) -> None:
        """See the gradient that this term `watches`."""

    def transform(self, step: Step, gradients: Vectors) -> Vectors:
        """The total gradient, changed; called before it is clipped."""
        del step
        return gradients

    def state(self) -> Vectors:
        """What a checkpoint within the phase must keep."""
        return {}

    def restore(self, state: Vectors) -> None:
        """Continue from what `state` gave."""

    def finish(self, end: PhaseEnd) -> Vectors:
        """The hook's memory after the phase."""
        del end
        return {}


class Hook(Piece):
    """Options of what accompanies phases, and `begin` for each of them."""

    protects: ClassVar[bool] = True
    """Whether it is there for the sake of old tasks."""
    rehearses: ClassVar[bool] = False
    """Whether old tasks are trained on again, so that what is theirs alone (their heads) goes on learning."""
    prefixes: ClassVar[tuple[str, ...]] = ()
    """How the names of parameter vectors and buffers of its own begin, if it has any."""

    @classmethod
    def refusal(cls, method: Composition) -> str | None:
        """Where all tasks are learnt together there is no old task."""
        if cls.protects and method.together:
            return "it learns all tasks in one phase, so there is no old task to protect"
        return None

    def grow(self, network: Network, known: int, stock: Stock, generators: GeneratorFactory) -> Stock:
        """Parameters (and buffers) of its own for the tasks of the network from number `known` on."""
        del network, known, stock, generators
        return Stock({}, {})

    @abstractmethod
    def begin(self, memory: Vectors, context: PhaseContext) -> Term:
        """The hook's term for a phase; the memory is empty before the first."""

    def stored(self, memory: Vectors) -> int:
        """How many samples a memory holds."""
        del memory
        return 0
