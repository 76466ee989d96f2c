"""Samplers: all points of a grid, random points without replacement, or points proposed by TPE.

A sampler returns generations, lists of points that are tried together; each generation knows the scores of
all earlier ones. Points depend on seed, space and scores only, never on which run ended first.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from perdure.config import CHOOSING, Sections, option_names
from perdure.errors import PerdureError, with_extra
from perdure.search.problem import Problem, first_answer, rounded, whole_numbers
from perdure.search.spaces import LARGEST, Domain, Range, Space, Values

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import Trial

Scores = Sequence[float | None]
"""For each point so far, in order: higher is better; None if it failed."""

GENERATION = 4
"""Points that TPE proposes together; they can run in parallel."""
PATIENCE = 200
"""Draws without a new point after which the space counts as exhausted."""


class Sampler(ABC):
    """Proposes points, each once."""

    def __init__(self, space: Space, problem: Problem, accept: Callable[[Values], bool], seed: int) -> None:
        """`accept` says, once per point, whether it is new and valid."""
        self.space, self.problem, self.accept, self.seed = space, problem, accept, seed
        self._whole: dict[str, bool] = {}

    @abstractmethod
    def generation(self, scores: Scores, most: int) -> list[Values]:
        """The next points, at most `most`; empty if there are no more."""

    def draw(self, point: Values, name: str, domain: Domain, source: random.Random) -> Any:
        """Draw a value of an option, given those that were drawn before it."""
        if not isinstance(domain, Range):
            return source.choice(domain)
        return rounded(domain.at(source.random()), domain, self.whole(point, name, domain))

    def whole(self, point: Values, name: str, domain: Range) -> bool:
        """Whether an option takes integers only, with the body and cells that a point has so far."""
        chosen = {each: value for each, value in point.items() if each in CHOOSING}
        key = f"{name} {domain} {chosen}"
        if key not in self._whole:
            there = self.problem.kinds(chosen)
            # An option that these do not have is that of another cell; the point will be refused for it.
            elsewhere = self._known.get(name, [])
            several = [there, *elsewhere] if name in option_names(there) else elsewhere or [there]
            self._whole[key] = first_answer(several, partial(whole_numbers, name=name, domain=domain))
        return self._whole[key]

    @cached_property
    def _known(self) -> dict[str, list[Sections]]:
        return self.problem.knowing(self.space)


class Grid(Sampler):
    """All points, in order."""

    def generation(self, scores: Scores, most: int) -> list[Values]:
        """All at once."""
        if scores:
            return []
        return list(islice(filter(self.accept, self.space.every(self.problem.holds)), most))


class Random(Sampler):
    """Random points without replacement; a longer list begins with the same points."""

    def generation(self, scores: Scores, most: int) -> list[Values]:
        """All at once."""
        return [] if scores else list(islice(filter(self.accept, self._points()), most))

    def _points(self) -> Iterator[Values]:
        source = random.Random(self.seed)
        if self.space.size <= LARGEST:
            points = list(self.space.every(self.problem.holds))
            source.shuffle(points)
            yield from points
            return
        seen: set[str] = set()
        stale = 0
        while stale < PATIENCE:
            point = self.space.decide(partial(self.draw, source=source), self.problem.holds)
            stale = stale + 1 if repr(point) in seen else 0
            if not stale:
                seen.add(repr(point))
                yield point


class Tpe(Sampler):
    """Optuna's tree-structured Parzen estimator, through ask and tell."""

    def __init__(self, space: Space, problem: Problem, accept: Callable[[Values], bool], seed: int) -> None:
        """Optuna's study is in memory; a resumed search tells it all scores again."""
        super().__init__(space, problem, accept, seed)
        self.study = _optuna_study(seed)
        self.asked: list[Trial] = []
        self.told = 0

    def generation(self, scores: Scores, most: int) -> list[Values]:
        """Tell new scores, then ask for the next points."""
        for trial, score in zip(self.asked[self.told :], scores[self.told :], strict=True):
            self._tell(trial, score)
        self.told = len(scores)
        found: list[Values] = []
        stale = 0
        while len(found) < min(most, GENERATION) and stale < PATIENCE:
            trial = self.study.ask()
            point = self.space.decide(partial(self._suggest, trial), self.problem.holds)
            if self.accept(point):
                found.append(point)
                self.asked.append(trial)
            else:
                stale += 1
                self._tell(trial, None)
        return found

    def _suggest(self, trial: Trial, point: Values, name: str, domain: Domain) -> Any:
        if not isinstance(domain, Range):  # by index: alternatives may be lists
            return domain[trial.suggest_categorical(f"{name} of {len(domain)}", list(range(len(domain))))]
        whole = self.whole(point, name, domain)
        log = domain.scale == "log"
        return rounded(trial.suggest_float(name, domain.low, domain.high, log=log), domain, whole)

    def _tell(self, trial: Trial, score: float | None) -> None:
        from optuna.trial import TrialState

        if score is None:
            self.study.tell(trial, state=TrialState.FAIL)
        else:
            self.study.tell(trial, score)


def _optuna_study(seed: int) -> Study:
    try:
        import optuna
    except ImportError:
        raise PerdureError(f"--sampler tpe needs Optuna: {with_extra('search')}.") from None
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)  # it would announce each study on standard error
    try:
        return optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    finally:
        optuna.logging.set_verbosity(before)


SAMPLERS: dict[str, type[Sampler]] = {"grid": Grid, "random": Random, "tpe": Tpe}
"""Samplers by name."""
