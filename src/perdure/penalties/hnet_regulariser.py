"""The hypernetwork's regulariser (paper Eq. 2; SM "Hypernetwork-protected models").

beta/(K-1) sum_{k<K} ||h(e_k, theta) - h(e_k*, theta*)||^2, where the star marks the state before task K: the
weights generated for old tasks stay fixed. For an old task, only the weights it uses count: heads of other
tasks are left out.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from pydantic import PositiveInt
from torch import Tensor
from torch.autograd.function import once_differentiable

from perdure.hooks import PhaseContext, Step, Term, Watched
from perdure.networks.layout import Vectors
from perdure.networks.native.distances import Apart, difference, distance
from perdure.options import Composition, Strength
from perdure.penalties.annealing import Annealed
from perdure.penalties.penalty import Penalty
from perdure.weights.hypernetwork import Hypernetwork


class HnetRegulariser(Annealed, Penalty):
    """Keeps the weights that a hypernetwork generates for old tasks fixed.

    With a low `first`, a task can be learnt freely, and old ones are restored while beta grows.
    """

    strength: Strength = 10.0
    """beta of the penalty."""
    sample: PositiveInt | None = None
    """Number of old tasks drawn for each step (C in the paper); none: all."""
    targets: Literal["stored", "recomputed"] = "stored"
    """Store the targets of all old tasks, or compute them at each step from a snapshot of theta."""
    lookahead: bool = False
    """Evaluate theta after the step that the task's gradient would cause (von Oswald et al. 2020)."""

    @classmethod
    def refusal(cls, method: Composition) -> str | None:
        """Requires a hypernetwork."""
        if not issubclass(method.weights, Hypernetwork):
            return "the hnet-regulariser protects what a hypernetwork generates, but here there is none"
        return super().refusal(method)

    def begin(self, memory: Vectors, context: PhaseContext) -> HnetRegulariserTerm:
        """The distance to what was generated before this phase."""
        del memory  # it only needs the state before the phase
        assert isinstance(context.source, Hypernetwork)  # ensured by `refusal`
        return HnetRegulariserTerm(self, context.source, context)

    def held(self, memory: Vectors, context: PhaseContext) -> int:
        """The targets of all known tasks, or the snapshot of theta and embeddings that makes them."""
        del memory
        assert isinstance(context.source, Hypernetwork)
        shape = context.source.shape(context.network)
        names = [*shape.names, *(f"embedding.{task}" for task in context.known)]
        if self.targets == "recomputed":
            return sum(context.parameters[name].nbytes for name in names)
        scale = context.source.scale(context.network, context.buffers)
        return len(context.known) * shape.disarranged(scale).nbytes


class HnetRegulariserTerm(Term):
    """The penalty during one phase."""

    def __init__(self, options: HnetRegulariser, source: Hypernetwork, context: PhaseContext) -> None:
        """Store the targets, or prepare to compute them."""
        self.options, self.source, self.context = options, source, context
        self.watches: Watched = "task" if options.lookahead else None
        self.shape = source.shape(context.network)
        self.generator = context.generators("regulariser", *context.tasks)
        self.moves: Vectors = {}
        stores = options.targets == "stored" and context.known
        self.stored = self._targets(list(context.known)) if stores else None
        self._weigh()

    def _weigh(self) -> None:
        """Squared scales at the positions of generated weights: of those all old tasks use, and of all."""
        network = self.context.network
        squares = self.source.scale(network, self.context.buffers).square()
        owned = [self.source.owned(network, task).to(squares.device) for task in self.context.known]
        common = torch.stack(owned).amin(0) if owned else torch.ones_like(squares)
        self.every = self.shape.disarranged(squares)
        self.common = self.shape.disarranged(squares * common)
        self.own = [self.shape.disarranged(own - common).nonzero()[:, 0] for own in owned]

    def losses(self, step: Step) -> dict[str, Tensor]:
        """Beta / |tasks| * sum over old tasks of the squared distance to the targets."""
        known = self.context.known
        if not known:
            return {}
        places = list(range(len(known)))
        if self.options.sample is not None and self.options.sample < len(known):
            places = torch.randperm(len(known), generator=self.generator)[: self.options.sample].tolist()
        tasks = [known[place] for place in places]
        if self.stored is None:
            targets = self._targets(tasks)
        else:
            targets = self.stored if len(places) == len(known) else self.stored[places]
        now = {name: step.active.get(name, value) for name, value in self.context.parameters.items()}
        now |= {name: now[name] + move for name, move in self.moves.items()}
        own = [self.own[place] for place in places]
        distance: Tensor = Distance.apply(self._made(now, tasks), targets, self.common, self.every, own)
        return {self.options.name: self.options.at(step.number) / len(tasks) * distance}

    def observe(self, step: Step, gradients: Vectors) -> None:
        """Store where the task's gradient would take theta."""
        del gradients
        moves = step.would_move()
        self.moves = {name: moves[name].clone() for name in self.shape.names}

    def state(self) -> Vectors:
        """The generator that draws old tasks."""
        return {"generator": self.generator.get_state()}

    def restore(self, state: Vectors) -> None:
        """Continue drawing as before."""
        self.generator.set_state(state["generator"].cpu())

    @torch.no_grad()
    def _targets(self, tasks: list[int]) -> Tensor:
        """What was generated for these tasks before the phase."""
        return self._made(self.context.parameters, tasks)

    def _made(self, parameters: Vectors, tasks: list[int]) -> Tensor:
        """What the hypernetwork generates for the given tasks, unscaled, in one batch [C, made]."""
        embeddings = torch.stack([parameters[f"embedding.{task}"] for task in tasks])
        return self.shape.raw(parameters, embeddings)


class Distance(torch.autograd.Function):
    """sum_c sum_i w_ci (made_ci - target_ci)^2, in a few passes over memory instead of autograd's ten.

    w is `common` for all tasks, but `every` at the positions `own[c]`, where `common` is zero.
    """

    @staticmethod
    def forward(
        ctx: Any, made: Tensor, target: Tensor, common: Tensor, every: Tensor, own: list[Tensor]
    ) -> Tensor:
        """The weighted squared distance."""
        apart = Apart(made, target, common, every, own)
        ctx.save_for_backward(made, target, common, every)
        ctx.own = own
        total = distance(apart)
        if total is not None:
            return made.new_tensor(total)
        return torch.dot(_weighted(apart).view(-1), (made - target).view(-1))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        """2 w (made - target)."""
        made, target, common, every = ctx.saved_tensors
        apart = Apart(made, target, common, every, ctx.own)
        gradient = difference(apart, 2 * float(grad)) if grad.is_cpu else None
        return _weighted(apart) * (2 * grad) if gradient is None else gradient, None, None, None, None


def _weighted(apart: Apart) -> Tensor:
    """W (made - target) [C, M]."""
    difference = apart.made - apart.target
    weighted = difference * apart.common
    for row, places in enumerate(apart.own):
        weighted[row, places] = difference[row, places] * apart.every[places]
    return weighted
