"""The contract of everything that accompanies a phase: penalties, rehearsal, gradient projections.

A hook is a set of options. When a phase begins it makes a `Term` from its memory (named tensors that outlive
phases). In every step the term may add losses, observe gradients, transform the total gradient before it is
clipped, and change the step that the optimiser takes; at the end it returns the new memory. All methods of a
term have defaults.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import torch
from torch import Tensor

from perdure.errors import PerdureError
from perdure.networks.batch import Batch, Data
from perdure.networks.layout import Vectors, Weights
from perdure.networks.network import Network
from perdure.options import Composition, Piece
from perdure.weights.source import (
    Generated,
    GeneratorFactory,
    Positions,
    Stock,
    TaskNetwork,
    WeightSource,
    take,
)

Watched = Literal["task", "total"] | None
"""Which gradient a term observes: that of the task loss alone, the total one as applied, or none."""


@dataclass(frozen=True)
class PhaseContext:
    """What a hook may know about the phase that begins: one task, or several learnt together.

    Training data of other tasks are not accessible from here.
    """

    network: Network
    source: WeightSource
    buffers: Vectors
    parameters: Vectors
    """All parameter vectors before the phase."""
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
    """The data format (target, precision, word vectors) of all known tasks, without any samples."""
    generators: GeneratorFactory

    def data(self, task: int) -> Data:
        """Training data of a task of this phase."""
        if task not in self.training_data:
            raise PerdureError(
                f"The training data of task {task + 1} cannot be read while other tasks are being learnt; "
                f"a method must keep what it needs of them in its memory."
            )
        return self.training_data[task]

    @property
    def snapshot(self) -> int:
        """Bytes of all trained vectors as they were before the phase, which a teacher needs."""
        return sum(vector.nbytes for vector in self.parameters.values())

    def networks_before(self, tasks: Iterable[int]) -> dict[int, TaskNetwork]:
        """The networks with which tasks ran before the phase, used as teachers."""
        source, network, buffers = self.source, self.network, self.buffers
        return {
            task: source.weights(
                network, buffers, take(self.parameters, source.active(network, buffers, [task])), task
            )
            for task in tasks
        }

    @property
    def known_outputs(self) -> int | None:
        """Number of outputs that a growing head had before the phase; None if heads do not grow."""
        if not self.network.growing:
            return None
        return self.network.outputs[max(self.known)] if self.known else 0

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
    """For each task of the mini-batch, the indices of the training samples drawn [B]."""
    batches: Mapping[int, Batch]
    """The mini-batch of each task."""
    networks: Mapping[int, TaskNetwork]
    """For each task of the mini-batch, the network that ran and its psi."""
    logits: Mapping[int, Tensor]
    """Their outputs [M, outputs] at the required steps."""
    would_move: Callable[[], Vectors]
    """How far the optimiser would move the active vectors for their current gradients."""
    noise: torch.Generator | None = None
    """What drops units at random, for batches that a term trains on; None if nothing is dropped."""
    along: Mapping[int, Tensor] = field(default_factory=dict)
    """Outputs [M, outputs] for the batches of other tasks that terms sent along, by task."""

    def gradient(self, loss: Tensor) -> Vectors:
        """The gradient of a loss with respect to the active vectors; zero where there is none."""
        found = torch.autograd.grad(loss, list(self.active.values()), allow_unused=True, retain_graph=True)
        return {
            name: torch.zeros_like(vector) if grad is None else grad
            for (name, vector), grad in zip(self.active.items(), found, strict=True)
        }


@dataclass(frozen=True)
class PhaseEnd:
    """The result of a phase."""

    active: Vectors
    """The trained vectors, as they will be stored."""
    data: Mapping[int, Data]
    """Training data of the tasks of the phase, read through their trained word vectors."""


class Term:
    """A hook during one phase. Every method has a default."""

    watches: Watched = None
    """Whether `observe` is called, and with which gradient; the task's own costs a backward pass."""
    transforms: bool = False
    """Whether `transform` is called."""
    redirects: bool = False
    """Whether `redirect` is called."""

    def along(self, size: int) -> Mapping[int, Batch]:
        """Batches of known tasks that are to run along with the mini-batch of `size` sequences.

        They run in the same pass where tasks share their body. Called before each step; the outputs are in
        `step.along`. Only one term may send a task along.
        """
        del size
        return {}

    def losses(self, step: Step) -> Mapping[str, Tensor]:
        """Named losses to be added to the task's; empty if there is nothing to protect."""
        del step
        return {}

    def observe(self, step: Step, gradients: Vectors) -> None:
        """Receive the gradient that this term `watches`."""

    def transform(self, step: Step, gradients: Vectors) -> Vectors:
        """The total gradient, transformed; called before it is clipped. What is left out stays as it is."""
        del step
        return gradients

    def redirect(self, step: Step, moves: Vectors) -> Vectors:
        """How far each active vector moves, changed; called after the optimiser, which scales each entry.

        Only here can a term promise that the weights stay in a subspace: Adam leaves that of the gradient.
        What is left out stays as it is.
        """
        del step
        return moves

    def state(self) -> Vectors:
        """What a checkpoint within the phase must store.

        If the best weights are restored at the end, so is this, as it was when they were reached; `finish`
        comes after that.
        """
        return {}

    def restore(self, state: Vectors) -> None:
        """Continue from a result of `state`."""

    def finish(self, end: PhaseEnd) -> Vectors:
        """The hook's memory after the phase."""
        del end
        return {}


def named_losses(parts: Iterable[tuple[str, Mapping[str, Tensor]]]) -> dict[str, Tensor]:
    """All losses by name, from those of each owner; two of one name would be added up as one, an error."""
    losses: dict[str, Tensor] = {}
    owners: dict[str, str] = {}
    for owner, own in parts:
        for name, loss in own.items():
            if name in losses:
                raise PerdureError(
                    f"'{owners[name]}' and '{owner}' both have a loss '{name}', and only one of them would "
                    f"count; give one another name, where its term returns `losses`."
                )
            losses[name], owners[name] = loss, owner
    return losses


class Hook(Piece):
    """Options of what accompanies phases, and `begin` for each phase."""

    protects: ClassVar[bool] = True
    """Whether its purpose is to protect old tasks."""
    rehearses: ClassVar[bool] = False
    """Whether old tasks are trained on again, so that their own parts (their heads) keep learning."""
    summarises: ClassVar[bool] = False
    """Whether its memory sums up each finished task once.

    If a `ContinualLearner` goes on with the task that it learnt last, the phase of such a hook begins with
    the memory from before that task, and `joined` makes one memory of the earlier and the latest."""
    prefixes: ClassVar[tuple[str, ...]] = ()
    """Prefix of the names of its own parameter vectors and buffers, if it has any."""

    @classmethod
    def refusal(cls, method: Composition) -> str | None:
        """If all tasks are learnt together there is no old task."""
        if cls.protects and method.together:
            return "it learns all tasks in one phase, so there is no old task to protect"
        return None

    def grow(self, network: Network, known: int, stock: Stock, generators: GeneratorFactory) -> Stock:
        """Its own parameters (and buffers) for the network's tasks with index `known` and above."""
        del network, known, stock, generators
        return Stock({}, {})

    @abstractmethod
    def begin(self, memory: Vectors, context: PhaseContext) -> Term:
        """The hook's term for a phase; the memory is empty before the first."""

    def joined(self, earlier: Vectors, latest: Vectors, share: float) -> Vectors:
        """One memory after a further visit of the same task, for hooks that sum up tasks: here the latest.

        Both have begun with the memory from before the task; `share` of its samples are the latest visit's.
        """
        del earlier, share
        return latest

    def generated(self, network: Network) -> Generated | None:
        """How large a generated network of its own is, and what generates it; None if it has none."""
        del network
        return None

    def held(self, memory: Vectors, context: PhaseContext) -> int:
        """Bytes that it holds for the known tasks while others are learnt, beyond its memory.

        Targets and teachers are made when a phase begins, from weights that are then trained further, so
        they must be kept until it ends. `context` is that of a phase in which all tasks so far are known.
        """
        del memory, context
        return 0

    def stored(self, memory: Vectors) -> int:
        """Number of samples in a memory."""
        del memory
        return 0

    def answering(self, memory: Vectors, network: Network, weights: Weights, task: int) -> Weights:
        """The weights with which a learnt task is tested; a hook may replace those of the head."""
        del memory, network, task
        return weights
