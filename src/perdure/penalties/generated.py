"""The hypernetwork's regulariser (paper Eq. 2; SM "Hypernetwork-protected models").

beta/(K-1) sum_{k<K} ||h(e_k, theta) - h(e_k*, theta*)||^2, where the star marks the state before task K: what
the hypernetwork makes for old tasks stays put. Of an old task only the weights that it uses count: heads
of other tasks are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from pydantic import PositiveInt
from torch import Tensor

from perdure.errors import PerdureError
from perdure.networks.layout import Vectors
from perdure.options import Strength
from perdure.penalties.penalty import Penalty, PlainTerm, Running, Situation, Watched
from perdure.weights.hypernetwork import Hypernetwork


class Generated(Penalty):
    """What a hypernetwork makes for old tasks is held fast."""

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
        self.move: Tensor | None = None
        stores = options.targets == "stored" and self.old
        self.stored = self._target(self.old) if stores else None

    def loss(self, active: Vectors, running: Running) -> Tensor | None:
        """Beta / |tasks| * sum over old tasks of the squared distance to the targets."""
        del running
        if not self.old:
            return None
        tasks = self.old
        if self.options.sample is not None and self.options.sample < len(tasks):
            tasks = sorted(torch.randperm(len(tasks), generator=self.chance)[: self.options.sample].tolist())
        targets = self._target(tasks) if self.stored is None else self.stored[tasks]
        now = {name: active.get(name, value) for name, value in self.situation.parameters.items()}
        if self.move is not None:
            now["theta"] = now["theta"] + self.move
        difference = self._generate(now, tasks) - targets
        total = difference[:, self.source.owned(self.situation.network, 0)[0]].square().sum()
        for row, task in enumerate(tasks):
            for own in self.source.owned(self.situation.network, task)[1:]:
                total = total + difference[row, own].square().sum()
        return self.options.strength / len(tasks) * total

    def observe(self, gradients: Vectors, step: Callable[[], Vectors]) -> None:
        """Remember where the task's gradient would take theta."""
        del gradients
        self.move = step()["theta"].clone()

    def state(self) -> Vectors:
        """The generator that draws old tasks."""
        return {"chance": self.chance.get_state()}

    def restore(self, state: Vectors) -> None:
        """Draw on as before."""
        self.chance.set_state(state["chance"].cpu())

    @torch.no_grad()
    def _target(self, tasks: list[int]) -> Tensor:
        """What was made for these tasks before the phase."""
        return self._generate(self.situation.parameters, tasks)

    def _generate(self, parameters: Vectors, tasks: list[int]) -> Tensor:
        """Flat psi of the given tasks [C, |psi|], all in one batch."""
        embeddings = torch.stack([parameters[f"embedding.{task}"] for task in tasks])
        situation = self.situation
        return self.source.generate(situation.network, situation.buffers, parameters["theta"], embeddings)
