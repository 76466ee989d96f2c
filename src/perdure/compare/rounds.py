"""Equal effort within a time limit: all methods are given the same number of trials, in rounds.

A round adds the same trials to the search of every method; one whose space has fewer points is given all of
these, and the others go on. How many, and whether there is another round, follows from the times of those
before, less what the reporting seeds of all methods will need. So the number of trials is the same for all
whenever the time is up, however slow a method is. Of a search that has more trials than the others, only the
first ones count here; the search itself keeps them all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import fmean

from perdure.compare.answer import conclude
from perdure.compare.question import Comparison, stored
from perdure.errors import Interrupted, PerdureError, Refused, counted
from perdure.search.clock import CAUTION, Clock, needed
from perdure.search.keeping import reported
from perdure.search.ledger import bytes_kept
from perdure.search.state import TRIALS, Design, Search, load
from perdure.search.study import Budget

GROWTH = 3
"""A round makes at most this many times as many trials as there were: early times are rough."""

Searching = Callable[[Design, Budget], Search]
"""Carries out, or extends, a search within a budget."""


@dataclass
class Rounds:
    """A comparison being carried out; `workers` runs are made at the same time."""

    comparison: Comparison
    designs: Sequence[Design]
    runs: Path
    search: Searching
    budget: Budget
    workers: int
    clock: Clock = field(default_factory=lambda: Clock(None))
    say: Callable[[str], None] = lambda text: None
    """Given remarks for the user."""
    there: int = 0
    """Trials that all searches have before the first round."""
    earlier: Comparison | None = None
    """What was stored before."""

    def run(self) -> dict[str, Search]:
        """The finished searches by method, with the same number of trials or all points of their spaces."""
        comparison = self.comparison
        self.earlier = stored(self.runs, comparison.id)
        self._stretch()
        comparison.seeds, comparison.hours = self.budget.seeds, self.budget.hours
        try:
            self._tune()
            found = self._report()
            comparison.concluded = {method: conclude(search) for method, search in found.items()}
            comparison.complete = True
        finally:
            comparison.seconds = self.clock.spent
            self._save()
        if not found:
            reasons = "; ".join(f"{name}: {why.rstrip('.')}" for name, why in comparison.left_out.items())
            hint = "" if self.clock.hours is None else "; more --hours, or fewer --methods, may help"
            raise PerdureError(f"No method has a result ({reasons}){hint}.")
        return found

    def _save(self) -> None:
        """Write the state; a finished comparison's answer stays until there is one for as many methods."""
        now, earlier = self.comparison, self.earlier
        if earlier is not None and earlier.complete:
            answered = now.complete and now.concluded and now.concluded.keys() >= earlier.concluded.keys()
            now = now if answered else replace(earlier, seconds=now.seconds)
        now.save(self.runs)

    def _stretch(self) -> None:
        """Raise the budget to what every method has already, so that a smaller one takes nothing away."""
        present = [load(self.runs, design) for design in self._taking_part()]
        self.there = _reached(present, self._was_exhausted)
        asked, seeds = self.budget.trials, min(map(reported, present), default=0)
        if self.there > asked or seeds > self.budget.seeds:
            trials, seeds = max(self.there, asked), max(seeds, self.budget.seeds)
            self.budget = replace(self.budget, trials=trials, seeds=seeds)
            if self.earlier is not None:  # which was asked for as much
                self.comparison.command = self.earlier.command
            there = f"{counted(trials, 'trial')} and {counted(seeds, 'reporting seed')}"
            self.say(f"All methods have more than is asked for now, and it counts: {there} of each")

    def _was_exhausted(self, search: Search) -> bool:
        """Whether the comparison that was stored before found all points of a search's space."""
        earlier = self.earlier
        found = None if earlier is None else earlier.concluded.get(search.design.method)
        return earlier is not None and found is not None and found.search.exhausted(earlier.trials)

    def _taking_part(self) -> list[Design]:
        return [design for design in self.designs if design.method not in self.comparison.left_out]

    def _tune(self) -> None:
        """Rounds of trials until there are enough, or no time for another."""
        count, most = 0, self.budget.trials
        searches: dict[str, Search] = {}
        while count < most:
            more = most if self.clock.hours is None else self._next(count, searches)
            if more <= count:
                break
            designs = self._taking_part()
            reserve = self._reserve(searches)
            for place, design in enumerate(designs):
                share = None if searches else (place, len(designs))
                found = self._searched(design, replace(self.budget, trials=more, seeds=0), reserve, share)
                if found is not None:
                    searches[design.method] = found
                    self._check_memory(found)
            searches = {design.method: searches[design.method] for design in self._taking_part()}
            reached = _reached(searches.values(), partial(Search.exhausted, asked=more))
            count, stuck = max(reached, count), reached < more
            self.comparison.trials = count
            self._save()
            if stuck or not searches:
                break

    def _next(self, count: int, searches: dict[str, Search]) -> int:
        """How many trials every method should have after the next round."""
        step = max(self.workers, 1)
        if not count:
            return max(min(step, self.budget.trials), self.there)
        going_on = [each for each in searches.values() if not each.exhausted(count)]
        seconds = sum(map(_trial_seconds, going_on)) * CAUTION
        room = self.clock.left - self._reserve(searches)
        rounds = math.floor(room / seconds) if seconds > 0 else GROWTH * count
        return min(count + rounds * step, GROWTH * count, self.budget.trials)

    def _reserve(self, searches: dict[str, Search]) -> float:
        """Seconds that the reporting seeds of all methods will need."""
        return sum(needed(each, self.budget.seeds, self.workers) for each in searches.values())

    def _report(self) -> dict[str, Search]:
        """The reporting seeds of each method; what is left of the time is shared by those that are left."""
        found = {}
        designs, trials = self._taking_part(), max(self.comparison.trials, 1)
        budget = replace(self.budget, trials=trials, memory=self.comparison.constraints.memory)
        for place, design in enumerate(designs):
            search = self._searched(design, budget, 0.0, (place, len(designs)))
            if search is not None and any(
                name in search.seen for c in search.candidates for name in c.hashes
            ):
                found[design.method] = search
            elif search is not None:
                reason = next((c.reason for c in search.candidates if c.reason), "")
                self.comparison.left_out[design.method] = f"no reporting seed was finished ({reason})"
            self._save()
        return found

    def _searched(
        self, design: Design, budget: Budget, reserve: float, share: tuple[int, int] | None
    ) -> Search | None:
        """A search within an exact budget, or None, with the reason noted, if it has no result.

        It may take all of the time but the reserve; with a share, what is left divided by methods left.
        """
        hours = None
        if self.clock.hours is not None:
            left = max(self.clock.left - reserve, 0.0)
            left = left if share is None else left / (share[1] - share[0])
            hours = (load(self.runs, design).seconds + left) / 3600
        try:
            return self.search(design, replace(budget, hours=hours, exact=True))
        except (Interrupted, Refused):
            raise
        except PerdureError as error:
            self.comparison.left_out[design.method] = str(error)
            return None

    def _check_memory(self, search: Search) -> None:
        """Leave a method out once every setting that was tried keeps more than is allowed."""
        limit = self.comparison.constraints.memory
        if limit is None or not search.ranked:
            return
        kept = [bytes_kept(self.runs / TRIALS, trial.hashes) for trial in search.ranked]
        least = min(each or 0 for each in kept)  # what older records do not tell is allowed
        if least > limit:
            self.comparison.left_out[search.design.method] = (
                f"it keeps {least} bytes or more, but at most {limit} are allowed"
            )


def _reached(searches: Collection[Search], exhausted: Callable[[Search], bool]) -> int:
    """How many trials all searches have; those that can have no more count only if there are no others."""
    going_on = [_ended(each) for each in searches if not exhausted(each)]
    return min(going_on, default=max(map(_ended, searches), default=0))


def _ended(search: Search) -> int:
    """How many trials, from the first, need no more work."""
    waiting = [trial.number for trial in search.trials if trial.status == "waiting"]
    return min(waiting) - 1 if waiting else len(search.trials)


def _trial_seconds(search: Search) -> float:
    times = [trial.seconds for trial in search.trials if trial.seconds]
    return fmean(times) if times else 0.0
