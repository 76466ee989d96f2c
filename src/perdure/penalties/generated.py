"""The hypernetwork's regulariser (paper Eq. 2; SM "Hypernetwork-protected models").

beta/(K-1) sum_{k<K} ||h(e_k, theta) - h(e_k*, theta*)||^2, where the star marks the state before task K: what
the hypernetwork makes for old tasks stays put. Of an old task only the weights that it uses count: heads
of other tasks are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal

import torch
from pydantic import PositiveInt
from torch import Tensor
from torch.autograd.function import once_differentiable

from perdure.errors import PerdureError
from perdure.networks.layout import Vectors
from perdure.options import Strength
from perdure.penalties.annealing import Annealed
from perdure.penalties.penalty import Penalty, PlainTerm, Running, Situation, Watched
from perdure.weights.hypernetwork import Hypernetwork


class Generated(Annealed, Penalty):
    """What a hypernetwork makes for old tasks is held fast.

    With a low `first` a task may be found freely, and old ones are brought back while beta grows.
    """

    later: ClassVar[tuple[str, ...]] = ("first", "anneal")

    strength: Strength = 10.0
    """beta of the penalty."""
    sample: PositiveInt | None = None
    """Old tasks that are drawn for each step (C in the paper); all if not given."""
    targets: Literal["stored", "recomputed"] = "stored"
    """Keep the targets of all old tasks, or make them anew at each step from a snapshot of theta."""
    lookahead: bool = False
    """Judge theta after the step that the task's gradient would cause (von Oswald et al. 2020)."""

    def begin(self, memory: Vectors, situation: Situation) -> GeneratedTerm:
        """The distance to what was generated before this phase."""
        del memory  # all it needs is the state before the phase
        if not isinstance(situation.source, Hypernetwork):
            raise PerdureError(
                "The penalty 'generated' protects what a hypernetwork makes; use it with hnet."
            )
        return GeneratedTerm(self, situation.source, situation)


class GeneratedTerm(PlainTerm):
    """The penalty during one phase."""

    def __init__(self, options: Generated, source: Hypernetwork, situation: Situation) -> None:
        """Note, or prepare to make, the targets."""
        self.options, self.source, self.situation = options, source, situation
        self.watches: Watched = "task" if options.lookahead else None
        self.old = list(range(min(situation.tasks)))
        self.chance = situation.chance("regulariser", *situation.tasks)
        self.iteration = 0
        self.move: Tensor | None = None
        stores = options.targets == "stored" and self.old
        self.stored = self._target(self.old) if stores else None
        self._weigh()

    def _weigh(self) -> None:
        """Squared scales at the places where weights are made: of those that all old tasks use, of all."""
        network, generator = self.situation.network, self.source.generator(self.situation.network)
        squares = self.situation.buffers["scale"].square()
        owned = [self.source.owned(network, task).to(squares.device) for task in self.old]
        common = torch.stack(owned).amin(0) if owned else torch.ones_like(squares)
        self.every = generator.disarranged(squares)
        self.common = generator.disarranged(squares * common)
        self.own = [generator.disarranged(own - common).nonzero()[:, 0] for own in owned]

    def loss(self, active: Vectors, running: Running) -> Tensor | None:
        """Beta / |tasks| * sum over old tasks of the squared distance to the targets."""
        del running
        strength = self.options.at(self.iteration)
        self.iteration += 1
        if not self.old:
            return None
        tasks = self.old
        if self.options.sample is not None and self.options.sample < len(tasks):
            tasks = torch.randperm(len(tasks), generator=self.chance)[: self.options.sample].tolist()
        targets = self._target(tasks) if self.stored is None else self.stored[tasks]
        now = {name: active.get(name, value) for name, value in self.situation.parameters.items()}
        if self.move is not None:
            now["theta"] = now["theta"] + self.move
        own = [self.own[task] for task in tasks]
        distance: Tensor = Distance.apply(self._made(now, tasks), targets, self.common, self.every, own)
        return strength / len(tasks) * distance

    def observe(self, gradients: Vectors, step: Callable[[], Vectors]) -> None:
        """Remember where the task's gradient would take theta."""
        del gradients
        self.move = step()["theta"].clone()

    def state(self) -> Vectors:
        """The generator that draws old tasks, and how far the annealing is."""
        return {"chance": self.chance.get_state(), "iteration": torch.tensor(self.iteration)}

    def restore(self, state: Vectors) -> None:
        """Draw on as before."""
        self.chance.set_state(state["chance"].cpu())
        self.iteration = int(state["iteration"])

    @torch.no_grad()
    def _target(self, tasks: list[int]) -> Tensor:
        """What was made for these tasks before the phase."""
        return self._made(self.situation.parameters, tasks)

    def _made(self, parameters: Vectors, tasks: list[int]) -> Tensor:
        """What the hypernetwork makes for the given tasks, unscaled, in one batch [C, made]."""
        embeddings = torch.stack([parameters[f"embedding.{task}"] for task in tasks])
        return self.source.generator(self.situation.network).raw(parameters["theta"], embeddings)


class Distance(torch.autograd.Function):
    """sum_c sum_i w_ci (made_ci - target_ci)^2, in four passes over memory where autograd takes ten.

    w is `common` for all tasks, except at the places `own[c]`, where it is `every`.
    """

    @staticmethod
    def forward(
        ctx: Any, made: Tensor, target: Tensor, common: Tensor, every: Tensor, own: list[Tensor]
    ) -> Tensor:
        """The weighted squared distance."""
        difference = made - target
        weighted = difference * common
        for row, places in enumerate(own):
            weighted[row, places] = difference[row, places] * every[places]
        ctx.save_for_backward(weighted)
        return torch.dot(weighted.view(-1), difference.view(-1))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        """2 w (made - target)."""
        (weighted,) = ctx.saved_tensors
        return weighted * (2 * grad), None, None, None, None
