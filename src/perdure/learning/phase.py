"""The optimisation loop: one task, or several learnt together.

There is no other such loop. It gets psi from the weight source and loss terms from the hooks, and refers to
none of them by name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from perdure.errors import Diverged, PerdureError
from perdure.hooks import PhaseContext, PhaseEnd, Step, Term, Watched, named_losses
from perdure.learning.adam import clipping, make_optimiser
from perdure.learning.contract import begun, returned
from perdure.learning.embedding_tables import PREFIX, read_through
from perdure.learning.evaluate import Score, evaluate, mean_score
from perdure.learning.learner import Learner, LearnerState
from perdure.learning.optimiser import scale_gradients
from perdure.learning.sampling import Mixture
from perdure.learning.splits import Splits
from perdure.learning.training import Training
from perdure.networks.batch import Batch, Data
from perdure.networks.layout import Vectors
from perdure.networks.targets import negative_log_likelihood
from perdure.networks.together import logits_of
from perdure.weights.source import GeneratorFactory, put, take

Facts = dict[str, Any]
"""What a checkpoint stores in addition to tensors; plain JSON."""


def context_of(
    learner: Learner,
    state: LearnerState,
    data: Mapping[int, Splits],
    formats: Mapping[int, Data],
    generators: GeneratorFactory,
) -> PhaseContext:
    """What hooks may know when the tasks with the given data are about to be learnt."""
    tasks = list(data)
    known = [task for task in formats if task not in data]
    # While old tasks are rehearsed, their own parts (their heads) keep learning too.
    rehearsed = known if any(hook.rehearses for hook in learner.hooks.values()) else []
    positions = learner.source.active(state.network, state.buffers, tasks, rehearsed)
    return PhaseContext(
        network=state.network,
        source=learner.source,
        buffers=state.buffers,
        parameters=state.parameters,
        positions=positions,
        start=take(state.parameters, positions),
        tasks=tasks,
        known=known,
        training_data={task: read_through(s.train, task, state.parameters) for task, s in data.items()},
        formats={task: read_through(each, task, state.parameters) for task, each in formats.items()},
        generators=generators,
    )


class Best(NamedTuple):
    """The best validation so far, and what to go back to at the end of the phase."""

    score: Score
    weights: Vectors
    """The trained vectors at that time."""
    terms: Mapping[str, Vectors]
    """The running state of each term at that time, so that what it has accumulated ends there too."""


class Phase:
    """Training on some tasks, from the state before it to the state after it."""

    def __init__(
        self,
        learner: Learner,
        state: LearnerState,
        data: Mapping[int, Splits],
        formats: Mapping[int, Data],
        training: Training,
        generators: GeneratorFactory,
    ) -> None:
        """Set up the start of the phase.

        `data` holds the tasks to be learnt, `formats` the data format of all known tasks, without samples.
        """
        self.learner, self.before, self.training = learner, state, training
        self.tasks, self.data = list(data), data
        context = context_of(learner, state, data, formats, generators)
        self.positions = context.positions | dict.fromkeys(self._extra_vectors())
        start = take(state.parameters, self.positions)
        self.active = {name: vector.clone().requires_grad_() for name, vector in start.items()}
        self.terms: dict[str, Term] = {
            name: begun(hook, state.memories[name], context) for name, hook in learner.hooks.items()
        }
        self.owners = {name: hook.name for name, hook in learner.hooks.items()}
        self.optimiser = make_optimiser(
            training.optimiser, self.active, training.learning_rate, training.weight_decay
        )
        self.mixture = Mixture(
            {task: len(splits.train) for task, splits in data.items()},
            {task: generators("batches", task) for task in data},
            generators("mixture", *data),
        )
        drops = learner.architecture.drops
        self.noise = generators("noise", *data) if drops else None
        self.iterations = training.iterations * len(data)
        self.iteration = 0
        self.stopped = False
        self.best: Best | None = None
        self.stale = 0
        self.sums: dict[str, float] = {}
        self.curve: list[dict[str, float]] = []

    def _extra_vectors(self) -> list[str]:
        """Names of the vectors trained in addition to the source's: the hooks' own, and word vectors."""
        prefixes = tuple(prefix for hook in self.learner.hooks.values() for prefix in hook.prefixes)
        # In the same order whether the state is new or from a file, since sums of floats depend on it.
        extra = sorted(name for name in self.before.parameters if name.startswith(prefixes))
        return extra + [name for task in self.tasks if (name := f"{PREFIX}{task}") in self.before.parameters]

    @property
    def name(self) -> str:
        """A human-readable name of what is being learnt."""
        names = [splits.name for splits in self.data.values()]
        return names[0] if len(names) == 1 else f"{len(names)} tasks together"

    @property
    def done(self) -> bool:
        """Whether training is over."""
        return self.stopped or self.iteration >= self.iterations

    def step(self) -> dict[str, float]:
        """One iteration: batch, loss terms, gradients, clipping, the optimiser's step."""
        training = self.training
        self.optimiser.go_at(training.pace(self.iteration, self.iterations))
        step, losses = self._gradients()
        values = {name: float(loss.detach()) for name, loss in losses.items()}
        self._check({f"loss term '{name}'": value for name, value in values.items()})
        self._transform(step)
        factor = self._clipped()
        self._observe("total", step)
        self._move(step, factor)
        self.iteration += 1
        for name, value in values.items():
            self.sums[name] = self.sums.get(name, 0.0) + value
        if self.iteration % training.validate_every == 0 or self.iteration == self.iterations:
            self._validate()
        return values

    def _returned(self, owner: str, method: str, *given: Any) -> Any:
        """What a method of a term returns, checked: pieces from outside may return anything."""
        like = self.active if method in ("transform", "redirect") else None
        return returned(self.owners[owner], method, getattr(self.terms[owner], method)(*given), like)

    def _gradients(self) -> tuple[Step, dict[str, Tensor]]:
        """Draw a batch; leave the gradient of all loss terms in the active vectors; return the terms."""
        for vector in self.active.values():
            vector.grad = None
        step = self._forward(self.mixture.take(self.training.batch_size))
        of_task = self._task_loss(step.logits, step.batches)
        alone = any(term.watches == "task" for term in self.terms.values())
        if alone:  # some term needs the task's gradient separately
            of_task.backward(retain_graph=True)
            self._observe("task", step)
        of_terms = ((name, self._returned(name, "losses", step)) for name in self.terms)
        losses = named_losses([("the task", {"task": of_task}), *of_terms])
        to_go = [loss for name, loss in losses.items() if not (alone and name == "task")]
        if to_go:
            sum(to_go[1:], to_go[0]).backward()
        return step, losses

    def _forward(self, indices: Mapping[int, Tensor]) -> Step:
        """The mini-batch of the given samples, and the network's outputs for it."""
        learner, before = self.learner, self.before
        batches = {
            task: read_through(self.data[task].train, task, self.active).batch(index)
            for task, index in indices.items()
        }
        along = self._along(sum(len(batch) for batch in batches.values()))
        if self.noise is not None:
            batches, along = (
                {task: replace(batch, noise=self.noise) for task, batch in each.items()}
                for each in (batches, along)
            )
        vectors = before.parameters | self.active if along else self.active
        networks = learner.source.running(before.network, before.buffers, vectors, [*batches, *along])
        logits = logits_of(networks, batches | along)
        return Step(
            number=self.iteration,
            active=self.active,
            indices=indices,
            batches=batches,
            networks={task: networks[task] for task in batches},
            logits={task: logits[task] for task in batches},
            would_move=self.optimiser.would_move,
            noise=self.noise,
            along={task: logits[task] for task in along},
        )

    def _along(self, size: int) -> dict[int, Batch]:
        """What terms send through the network together with the mini-batch."""
        along: dict[int, Batch] = {}
        for name in self.terms:
            sent = self._returned(name, "along", size)
            if both := sent.keys() & (along.keys() | set(self.tasks)):
                raise PerdureError(f"Task {min(both) + 1} was sent along with the mini-batch twice.")
            along |= sent
        return along

    def _task_loss(self, logits: Mapping[int, Tensor], batches: Mapping[int, Batch]) -> Tensor:
        """Summed negative log-likelihood over the batch, divided by its size."""
        losses = [negative_log_likelihood(logits[task], batch) for task, batch in batches.items()]
        return sum(losses[1:], losses[0]) / self.training.batch_size

    def _current_gradients(self) -> Vectors:
        return {
            name: torch.zeros_like(vector) if vector.grad is None else vector.grad
            for name, vector in self.active.items()
        }

    def _observe(self, moment: Watched, step: Step) -> None:
        """Show the gradients at this point to the terms that watch it."""
        watchers = [term for term in self.terms.values() if term.watches == moment]
        if watchers:
            gradients = self._current_gradients()
            for term in watchers:
                term.observe(step, gradients)

    def _transform(self, step: Step) -> None:
        """Let terms that transform the total gradient do so, in order."""
        for owner, term in self.terms.items():
            if term.transforms:
                given = self._returned(owner, "transform", step, self._current_gradients())
                for name, gradient in given.items():
                    self.active[name].grad = gradient

    def _clipped(self) -> float:
        """The factor that the optimiser is to apply to the gradients; they are scaled now if a term looks."""
        if self.training.clip is None:
            return 1.0
        length, factor = clipping(self.active, self.training.clip)
        self._check({"norm of the gradient": length})
        if any(term.watches == "total" for term in self.terms.values()):
            scale_gradients(self.active, factor)
            return 1.0
        return factor

    def _move(self, step: Step, factor: float) -> None:
        """The optimiser's step, as changed by the terms that redirect it."""
        redirecting = [owner for owner, term in self.terms.items() if term.redirects]
        if not redirecting:
            self.optimiser.step(factor)
            return
        before = {name: vector.detach().clone() for name, vector in self.active.items()}
        self.optimiser.step(factor)
        with torch.no_grad():
            moves = {name: vector - before[name] for name, vector in self.active.items()}
            for owner in redirecting:
                moves = {**moves, **self._returned(owner, "redirect", step, moves)}
            for name, vector in self.active.items():
                vector.copy_(before[name] + moves[name])

    def _check(self, values: Mapping[str, float]) -> None:
        """Stop before a step that would ruin the weights; a checkpoint, if there is one, is good."""
        for name, value in values.items():
            if not math.isfinite(value):
                raise Diverged(
                    f"The {name} became {value} at iteration {self.iteration + 1} of "
                    f"{self.data[self.tasks[0]].name}; try a lower --training.learning_rate, "
                    f"--training.clip 1 or a weaker penalty."
                )

    def _validate(self) -> None:
        """Record the curve; keep the best weights and stop early if so configured."""
        source, before, trained = self.learner.source, self.before, self.trained()
        scores = [
            evaluate(
                *source.weights(before.network, before.buffers, trained, task),
                read_through(splits.val, task, trained),
                task,
            )
            for task, splits in self.data.items()
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
        by_loss, best = self.training.criterion == "loss", None if self.best is None else self.best.score
        better = best is None or (score.loss < best.loss if by_loss else score.improves(best))
        self.stale = 0 if better else self.stale + 1
        if best is None or (better if by_loss else score.rank > best.rank):
            terms = {name: _copied(self._returned(name, "state")) for name in self.terms}
            self.best = Best(score, _copied(trained), terms)
        self.stopped = self.stale >= self.training.patience

    def trained(self) -> Vectors:
        """The active vectors as they are, without gradients."""
        return {name: vector.detach() for name, vector in self.active.items()}

    def finish(self) -> LearnerState:
        """The state after the phase: trained weights put back, memories updated."""
        active = self.trained() if self.best is None else self.best.weights
        for name, state in ({} if self.best is None else self.best.terms).items():
            if state:  # a checkpoint of an earlier version has none
                self.terms[name].restore(state)
        data = {task: read_through(splits.train, task, active) for task, splits in self.data.items()}
        end = PhaseEnd(active, data)
        return LearnerState(
            network=self.before.network,
            parameters=put(self.before.parameters, active, self.positions),
            buffers=self.before.buffers,
            memories={name: dict(self._returned(name, "finish", end)) for name in self.terms},
        )

    def state(self) -> tuple[Vectors, Facts]:
        """Tensors and facts from which `restore` continues bit for bit."""
        optimiser, numbers = self.optimiser.state()
        parts: dict[str, Vectors] = {
            "active": self.trained(),
            "optimiser": optimiser,
            "batches": self.mixture.state(),
            "noise": {} if self.noise is None else {"generator": self.noise.get_state()},
        }
        parts |= {f"term {name}": self._returned(name, "state") for name in self.terms}
        if self.best is not None:
            parts["best"] = self.best.weights
            parts |= {f"best term {name}": state for name, state in self.best.terms.items()}
        facts: Facts = {
            "iteration": self.iteration,
            "stopped": self.stopped,
            "stale": self.stale,
            "best": None if self.best is None else list(self.best.score),
            "sums": self.sums,
            "curve": self.curve,
            "optimiser": numbers,
        }
        return {f"{part}|{n}": v for part, vectors in parts.items() for n, v in vectors.items()}, facts

    def restore(self, tensors: Vectors, facts: Facts) -> None:
        """Continue from a result of `state`."""
        parts: dict[str, Vectors] = {}
        for place, value in tensors.items():
            part, _, name = place.partition("|")
            parts.setdefault(part, {})[name] = value
        with torch.no_grad():
            for name, vector in self.active.items():
                vector.copy_(parts["active"][name])
        self.optimiser.restore(parts.get("optimiser", {}), facts["optimiser"])
        self.mixture.restore(parts["batches"])
        if self.noise is not None:
            self.noise.set_state(parts["noise"]["generator"].cpu())
        for name, term in self.terms.items():
            term.restore(parts.get(f"term {name}", {}))
        self.iteration, self.stale = facts["iteration"], facts["stale"]
        self.stopped = facts["stopped"]
        if facts["best"] is not None:
            terms = {name: parts.get(f"best term {name}", {}) for name in self.terms}
            self.best = Best(Score(*facts["best"]), parts["best"], terms)
        self.sums, self.curve = facts["sums"], facts["curve"]


def _copied(vectors: Vectors) -> Vectors:
    return {name: vector.clone() for name, vector in vectors.items()}
