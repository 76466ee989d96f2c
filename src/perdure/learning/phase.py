"""The optimisation loop: one task, or several learnt together.

The only such loop. It asks the weight source for psi, the penalties for their terms, and knows neither
by name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from perdure.errors import PerdureError
from perdure.learning.evaluate import Score, evaluate, mean_score
from perdure.learning.learner import Knowledge, Learner
from perdure.learning.optimiser import Optimiser
from perdure.learning.sampling import Mixture
from perdure.learning.splits import Splits
from perdure.learning.tables import PREFIX, reading
from perdure.learning.training import Training
from perdure.networks.batch import Batch
from perdure.networks.layout import Vectors, Weights
from perdure.networks.network import Network
from perdure.networks.targets import negative_log_likelihood
from perdure.networks.together import logits_of
from perdure.penalties.penalty import Situation, Term, Watched
from perdure.rehearsal.rehearsal import Replay
from perdure.weights.source import Chance, put, take

Facts = dict[str, Any]
"""What a checkpoint keeps beside tensors; plain JSON."""

Running = dict[int, tuple[Network, Weights]]
"""For each task of a mini-batch the network that runs and its psi."""


def situate(
    learner: Learner,
    knowledge: Knowledge,
    tasks: Sequence[int],
    data: Sequence[Splits],
    chance: Chance,
) -> Situation:
    """What penalties and rehearsal may know when these tasks are about to be learnt."""
    # While old tasks are rehearsed, what is theirs alone (their heads) goes on learning too.
    old = range(min(tasks)) if learner.rehearsal is not None else ()
    positions = learner.source.active(learner.network, knowledge.buffers, tasks, old)
    return Situation(
        network=learner.network,
        source=learner.source,
        buffers=knowledge.buffers,
        parameters=knowledge.parameters,
        positions=positions,
        start=take(knowledge.parameters, positions),
        tasks=tasks,
        data=lambda task: data[task].train,
        chance=chance,
    )


class Phase:
    """Training of the given tasks, from the knowledge before it to the knowledge after it."""

    def __init__(
        self,
        learner: Learner,
        knowledge: Knowledge,
        tasks: Sequence[int],
        data: Sequence[Splits],
        training: Training,
        chance: Chance,
    ) -> None:
        """Set everything to the start of the phase."""
        begun = learner.source.begin(learner.network, knowledge.buffers, knowledge.parameters, tasks, chance)
        knowledge = replace(knowledge, parameters=begun)
        self.learner, self.knowledge, self.tasks = learner, knowledge, tasks
        self.data, self.training = reading(data, begun), training
        situation = situate(learner, knowledge, tasks, self.data, chance)
        self.replay = self._rehearse(situation)
        own = () if learner.rehearsal is None else learner.rehearsal.prefixes
        # In one order, whether the knowledge is fresh or from a file: sums of floats depend on it.
        extra = sorted(name for name in knowledge.parameters if name.startswith(own))
        extra += [name for task in tasks if (name := f"{PREFIX}{task}") in knowledge.parameters]
        self.positions = situation.positions | dict.fromkeys(extra)
        start = take(knowledge.parameters, self.positions)
        self.active = {name: vector.clone().requires_grad_() for name, vector in start.items()}
        self.terms = {
            name: penalty.begin(knowledge.memories[name], situation)
            for name, penalty in learner.penalties.items()
        }
        self.optimiser = Optimiser(
            training.optimiser, self.active, training.learning_rate, training.weight_decay
        )
        self.mixture = Mixture(
            {task: len(data[task].train) for task in tasks},
            {task: chance("batches", task) for task in tasks},
            chance("mixture", *tasks),
        )
        self.iterations = training.iterations * len(tasks)
        self.iteration = 0
        self.stopped = False
        self.best: tuple[Score, Vectors] | None = None
        self.stale = 0
        self.sums: dict[str, float] = {}
        self.curve: list[dict[str, float]] = []

    def _rehearse(self, situation: Situation) -> Replay | None:
        rehearsal = self.learner.rehearsal
        if rehearsal is None:
            return None
        return rehearsal.begin(self.knowledge.memories["rehearsal"], situation)

    @property
    def done(self) -> bool:
        """Whether training is over."""
        return self.stopped or self.iteration >= self.iterations

    def step(self) -> dict[str, float]:
        """One iteration: batch, loss terms, gradients, clipping, the optimiser's step."""
        training = self.training
        self.optimiser.go_at(training.pace(self.iteration, self.iterations))
        losses = self._gradients()
        values = {name: float(loss.detach()) for name, loss in losses.items()}
        self._check({f"loss term '{name}'": value for name, value in values.items()})
        if training.clip is not None:
            norm = torch.nn.utils.clip_grad_norm_(list(self.active.values()), training.clip)
            self._check({"norm of the gradient": float(norm)})
        self._observe("total")
        self.optimiser.step()
        self.iteration += 1
        for name, value in values.items():
            self.sums[name] = self.sums.get(name, 0.0) + value
        if self.iteration % training.validate_every == 0 or self.iteration == self.iterations:
            self._validate()
        return values

    def _gradients(self) -> dict[str, Tensor]:
        """Draw a batch; leave the gradient of all loss terms in the active vectors; return the terms."""
        for vector in self.active.values():
            vector.grad = None
        shares = self.mixture.take(self.training.batch_size)
        running: Running = {
            task: self.learner.source.weights(self.learner.network, self.knowledge.buffers, self.active, task)
            for task in shares
        }
        data = reading(self.data, self.active)
        batches = {task: data[task].train.batch(index) for task, index in shares.items()}
        losses = {"task": self._task_loss(batches, running)}
        alone = any(term.watches == "task" for term in self.terms.values())
        if alone:  # some penalty wants to see the task's gradient by itself
            losses["task"].backward(retain_graph=True)
            self._observe("task")
        for name, term in self.terms.items():
            loss = term.loss(self.active, list(running.values()))
            if loss is not None:
                losses[name] = loss
        if self.replay is not None:
            losses |= self.replay.losses(self.active, batches)
        to_go = [loss for name, loss in losses.items() if not (alone and name == "task")]
        if to_go:
            sum(to_go[1:], to_go[0]).backward()
        return losses

    def _task_loss(self, batches: Mapping[int, Batch], running: Running) -> Tensor:
        """Summed negative log-likelihood over the batch, divided by its size."""
        logits = logits_of(running, batches)
        losses = [negative_log_likelihood(logits[task], batch) for task, batch in batches.items()]
        return sum(losses[1:], losses[0]) / self.training.batch_size

    def _observe(self, moment: Watched) -> None:
        """Show the gradients of this moment to the penalties that watch it."""
        watchers = [term for term in self.terms.values() if term.watches == moment]
        if watchers:
            gradients = {
                name: torch.zeros_like(vector) if vector.grad is None else vector.grad
                for name, vector in self.active.items()
            }
            for term in watchers:
                term.observe(gradients, self.optimiser.would_move)

    def _check(self, values: Mapping[str, float]) -> None:
        """Stop before a step that would spoil the weights; checkpoints so far are good."""
        for name, value in values.items():
            if not math.isfinite(value):
                raise PerdureError(
                    f"The {name} became {value} at iteration {self.iteration + 1} of "
                    f"{self.data[self.tasks[0]].name}; a lower --training.learning_rate, "
                    f"--training.clip 1 or a weaker penalty may help. The last checkpoint is intact."
                )

    def _validate(self) -> None:
        """Note the curve; keep the best weights and stop early if asked to."""
        data = reading(self.data, self.trained())
        scores = [
            evaluate(
                *self.learner.source.weights(
                    self.learner.network, self.knowledge.buffers, self.trained(), task
                ),
                data[task].val,
                task,
            )
            for task in self.tasks
        ]
        score = mean_score(scores)
        self._check({"validation loss": score.loss})
        since = self.iteration - (int(self.curve[-1]["iteration"]) if self.curve else 0)
        means = {f"loss {name}": total / since for name, total in self.sums.items()}
        self.sums = {}
        point = {"iteration": self.iteration, "val accuracy": score.accuracy, "val loss": score.loss}
        self.curve.append(point | means)
        if self.training.patience is None:
            return
        if self.best is None or score.improves(self.best[0]):
            self.stale = 0
        else:
            self.stale += 1
        rank = (score.accuracy, -score.loss)
        if self.best is None or rank > (self.best[0].accuracy, -self.best[0].loss):
            self.best = score, {name: vector.clone() for name, vector in self.trained().items()}
        self.stopped = self.stale >= self.training.patience

    def trained(self) -> Vectors:
        """The active vectors as they are, without gradients."""
        return {name: vector.detach() for name, vector in self.active.items()}

    def finish(self) -> Knowledge:
        """The knowledge after the phase: trained weights put back, memories renewed."""
        active = self.trained() if self.best is None else self.best[1]
        # In place: penalties and rehearsal look at the same list, and now through the trained tables.
        self.data[:] = reading(self.data, active)
        return Knowledge(
            parameters=put(self.knowledge.parameters, active, self.positions),
            buffers=self.knowledge.buffers,
            memories={name: term.finish(active) for name, term in self._remembering.items()},
        )

    @property
    def _remembering(self) -> dict[str, Term | Replay]:
        """All that have running state and a memory."""
        return {**self.terms, **({} if self.replay is None else {"rehearsal": self.replay})}

    def state(self) -> tuple[Vectors, Facts]:
        """Tensors and facts from which `restore` continues bit for bit."""
        optimiser, numbers = self.optimiser.state()
        parts: dict[str, Vectors] = {
            "active": self.trained(),
            "optimiser": optimiser,
            "batches": self.mixture.state(),
            "best": {} if self.best is None else self.best[1],
        }
        parts |= {f"term {name}": term.state() for name, term in self._remembering.items()}
        facts: Facts = {
            "iteration": self.iteration,
            "stopped": self.stopped,
            "stale": self.stale,
            "best": None if self.best is None else list(self.best[0]),
            "sums": self.sums,
            "curve": self.curve,
            "optimiser": numbers,
        }
        return {f"{part}|{n}": v for part, vectors in parts.items() for n, v in vectors.items()}, facts

    def restore(self, tensors: Vectors, facts: Facts) -> None:
        """Continue from what `state` gave."""
        parts: dict[str, Vectors] = {}
        for place, value in tensors.items():
            part, _, name = place.partition("|")
            parts.setdefault(part, {})[name] = value
        with torch.no_grad():
            for name, vector in self.active.items():
                vector.copy_(parts["active"][name])
        self.optimiser.restore(parts.get("optimiser", {}), facts["optimiser"])
        self.mixture.restore(parts["batches"])
        for name, term in self._remembering.items():
            term.restore(parts.get(f"term {name}", {}))
        self.iteration, self.stale = facts["iteration"], facts["stale"]
        self.stopped = facts["stopped"]
        if facts["best"] is not None:
            self.best = Score(*facts["best"]), parts["best"]
        self.sums, self.curve = facts["sums"], facts["curve"]
