"""A search from the first trial to the choice, with the same steps and the same rule for every method.

1. Points of the space are run with tuning seeds. With halving, all trials learn the first tasks, the better
   half learns more of them, and the better half of those all of them.
2. Finished trials are ranked by validation `final`.
3. The best is run with reporting seeds, which are never tuning seeds. If it is not robust, so are the second
   and third, and the best of the three by validation is chosen (the paper's rule).

Everything can be recovered from records, so finished work is never repeated, whichever process died. What the
stored state has, it keeps (`keeping.py`): neither a smaller budget nor an interruption takes anything away.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from numbers import Integral, Real
from pathlib import Path
from statistics import fmean

from filelock import FileLock, Timeout

from perdure.config import Config
from perdure.errors import Busy, PerdureError, counted
from perdure.search.clock import Clock, needed
from perdure.search.crew import MAILBOX, Crew, Failure, Job
from perdure.search.halving import Rung, rungs
from perdure.search.keeping import begun, reported, together
from perdure.search.ledger import Ledger, bytes_kept
from perdure.search.provenance import note_choice, note_comparison
from perdure.search.samplers import SAMPLERS
from perdure.search.selection import (
    CANDIDATES,
    Runs,
    best_of,
    ranking,
    robust,
    score,
    survivors,
)
from perdure.search.spaces import Values
from perdure.search.state import FILE, TRIALS, Candidate, Design, Search, Trial, load, place
from perdure.storage.store import RunFolder, writable

LOCK = ".lock"
SAVE_EVERY = 1.0
"""Seconds between writes of the state; anything not yet written is recovered from records."""
OUT_OF_TIME = "not finished within the time limit"


@dataclass(frozen=True)
class Budget:
    """Limits of a search."""

    trials: int = 24
    hours: float | None = None
    seeds: int = 5
    """Number of reporting seeds: 0, 1, ..."""
    exact: bool = False
    """Whether a search with more trials or seeds is seen as if it had only these: for equal budgets."""
    memory: int | None = None
    """With an exact budget: bytes that a setting may keep beyond the last task to be chosen."""

    def __post_init__(self) -> None:
        """Refuse limits that no search can keep."""
        for name, given, least in (("trials", self.trials, 1), ("seeds", self.seeds, 0)):
            if not isinstance(given, Integral) or given < least:
                raise PerdureError(f"{name}: must be an integer of at least {least} (given: {given!r}).")
        if self.hours is not None and not (isinstance(self.hours, Real) and self.hours >= 0):
            raise PerdureError(f"hours: must be a number of at least 0, or None (given: {self.hours!r}).")


class Study:
    """Carries out a search."""

    def __init__(
        self,
        design: Design,
        runs: Path,
        crew: Crew,
        budget: Budget,
        changed: Callable[[Search], None] = lambda search: None,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        """`changed` is called whenever the state has changed, `say` with remarks for the user."""
        self.design, self.runs, self.crew, self.budget, self.changed = design, runs, crew, budget, changed
        self.say, self.asked = say, budget.trials
        self.problem = design.problem
        self.trials_folder = runs / TRIALS
        self.search, self.before = Search(design), Search(design)
        self.ledger = Ledger(self.search)
        self.hashes: set[str] = set()
        self.limited = False
        """Whether the memory allowed keeps out a setting that would be chosen from otherwise."""
        self.clock = Clock(budget.hours)
        self.saved = time.monotonic()
        both = set(design.tuning_seeds) & set(range(budget.seeds))
        if both:
            raise PerdureError(
                f"Seed {min(both)} is both a tuning seed and a reporting seed, so results would be reported "
                f"on a seed used for tuning; choose fewer --seeds or other tuning seeds."
            )
        if budget.memory is not None and not budget.exact:
            raise PerdureError("A budget that limits memory must be exact: a search itself has no limit.")

    def run(self) -> Search:
        """Run, or resume, to the end; returns all that is known, with an exact budget what is asked for."""
        folder = place(self.runs, self.design.id)
        writable(folder)
        lock = FileLock(folder / LOCK)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            raise Busy(f"Search {self.design.id} is being carried out by another process.") from None
        try:
            for left in folder.glob(f"{MAILBOX}*"):  # left by a killed driver; removing it stops its jobs
                _remove(left)
            self._start()
            try:
                self._tune()
                self._choose()
                self.search.complete = True
            finally:
                self._save(now=True)
                if not (folder / FILE).exists():
                    _discard(folder)
        finally:
            lock.release()
        return self.search if self.budget.exact else self._whole

    def _start(self) -> None:
        """Load the state; the same trials are proposed again and known results reused."""
        self.before = before = load(self.runs, self.design, self.say)
        self.clock = Clock(self.budget.hours, before.seconds)
        if not self.budget.exact:
            self._stretch()
        seen, failures, seeds = dict(before.seen), dict(before.failures), list(range(self.budget.seeds))
        self.search = Search(self.design, seen=seen, failures=failures, seeds=seeds)
        self.ledger = Ledger(self.search)

    def _stretch(self) -> None:
        """Raise the budget to what there is: a search that is asked for less still has all it had."""
        trials = max((trial.number for trial in begun(self.before)), default=0)
        seeds = reported(self.before)
        if trials > self.budget.trials or seeds > self.budget.seeds:
            trials, seeds = max(trials, self.budget.trials), max(seeds, self.budget.seeds)
            self.budget = replace(self.budget, trials=trials, seeds=seeds)
            there = f"{counted(trials, 'trial')} and {counted(seeds, 'reporting seed')}"
            self.say(f"{self.design.method}: more was done before than is asked for, and it counts: {there}")

    @property
    def _whole(self) -> Search:
        """The state with all that the stored one had; a choice under a limit is not that of the search."""
        if not self.limited:
            return together(self.search, self.before)
        whole = together(replace(self.search, chosen=None), self.before)
        return whole if whole.chosen is not None else replace(whole, chosen=whole.ranked[0].number)

    # -- tuning ------------------------------------------------------------------------------------------

    def _tune(self) -> None:
        """Try one generation of points after the other."""
        design, trials = self.design, self.search.trials
        sampler = SAMPLERS[design.sampler](design.space, self.problem, self._accept, design.seed)
        while len(trials) < self.budget.trials:
            points = sampler.generation([trial.final for trial in trials], self.budget.trials - len(trials))
            proposed = [self._trial(len(trials) + number, point) for number, point in enumerate(points, 1)]
            new = self._wanted(proposed)
            if not new:
                break
            trials += new
            self._try(new)
            self._rank()
            if len(new) < len(proposed) or any(trial.status == "waiting" for trial in new):
                break  # there are enough, or the time is up
        if not self.budget.exact:
            self.search.trials = self._whole.trials
        if not self.search.trials:
            reasons = "; ".join(self.search.refused[:3]) or "the space is empty"
            raise PerdureError(f"No point of the space of {design.method} can be tried: {reasons}.")

    def _wanted(self, proposed: Sequence[Trial]) -> list[Trial]:
        """The trials that are asked for, and more of them only as far as they were begun before."""
        known = {tuple(trial.hashes) for trial in begun(self.before)}
        last = max((trial.number for trial in proposed if tuple(trial.hashes) in known), default=0)
        return [trial for trial in proposed if trial.number <= max(self.asked, last)]

    def _accept(self, point: Values) -> bool:
        """Whether a point gives a valid config that was not proposed before."""
        try:
            config = self.problem.config(point, self.design.tuning_seeds[0])
            reason = self.problem.refusal(self.design.space, config)
        except PerdureError as error:
            config, reason = None, str(error).rstrip(".")
        if reason is not None and reason not in self.search.refused:
            self.search.refused.append(reason)
        if config is None or reason is not None or config.hash in self.hashes:
            return False
        self.hashes.add(config.hash)
        return True

    def _trial(self, number: int, point: Values) -> Trial:
        return Trial(
            number, point, [config.hash for config in self._configs(point, self.design.tuning_seeds)]
        )

    def _configs(self, point: Values, seeds: Sequence[int]) -> list[Config]:
        return [self.problem.config(point, seed) for seed in seeds]

    def _try(self, trials: list[Trial]) -> None:
        """Run trials with all tuning seeds; with halving some of them end early."""
        steps = rungs(self.problem.phases) if self.design.halving else [Rung(None)]
        for phases, share in steps:
            self.clock.share = share
            self._carry_out(trials, phases)
            for trial in trials:
                self._describe(trial, phases)
            if phases is None:
                break
            kept = survivors([self.ledger.runs(trial.hashes, phases) for trial in trials], phases)
            for number, trial in enumerate(trials):
                if trial.status == "going on" and number not in kept:
                    self._end_early(trial, phases)
            trials = [trials[number] for number in kept]
            self._save()

    def _end_early(self, trial: Trial, phases: int) -> None:
        """Stop a trial, unless it reached the end before, when there were fewer trials."""
        if None not in self.ledger.runs(trial.hashes, None):
            self._describe(trial, None)
            return
        trial.status, trial.reason = "stopped", f"not among the better half after {phases} tasks"

    def _carry_out(self, trials: Sequence[Trial], phases: int | None) -> None:
        """Run trials up to `phases`, or to the end."""
        owners: dict[str, Trial] = {}
        jobs = []
        for trial in trials:
            label = f"{self.design.method} trial {trial.number}"
            for config in self._configs(trial.values, self.design.tuning_seeds):
                if not self.ledger.settled(config.hash, self.trials_folder, phases):
                    owners[config.hash] = trial
                    jobs.append(Job(config, self.trials_folder, phases, keep=False, label=label))
        for job, outcome in self.crew.carry_out(jobs, self._late):
            trial = owners[job.config.hash]
            self.ledger.take(job, outcome)
            if isinstance(outcome, Failure):
                trial.reason = outcome.reason
            if trial.reason or None not in self.ledger.runs(trial.hashes, phases):
                self._describe(trial, phases)
            self._save()

    def _describe(self, trial: Trial, phases: int | None) -> None:
        """Update a trial with its scores after `phases`."""
        runs = self.ledger.runs(trial.hashes, phases)
        trial.final, trial.seconds = score(runs, phases), self.ledger.seconds(trial.hashes)
        good = [run for run in runs if run is not None]
        if trial.final is not None:
            trial.during = fmean(run.during(phases) for run in good)
            trial.phases = phases or good[0].phases
            trial.status, trial.reason = "finished" if phases is None else "going on", ""
            return
        trial.reason = self.ledger.failure(trial.hashes) or trial.reason or OUT_OF_TIME
        trial.status = "waiting" if trial.reason == OUT_OF_TIME else "failed"

    def _rank(self) -> None:
        """Rank the finished trials."""
        finished = [trial for trial in self.search.trials if trial.status == "finished"]
        for trial in self.search.trials:
            trial.rank = None
        for rank, number in enumerate(ranking([self.ledger.runs(t.hashes, None) for t in finished]), 1):
            finished[number].rank = rank
        self._save()

    def _needed(self) -> float:
        """Seconds that the reporting seeds of one setting will need."""
        return needed(self.search, self.budget.seeds, self.crew.engine.workers)

    def _late(self) -> bool:
        """Whether the time is up, except for what the reporting seeds will need."""
        return self.clock.late(self._needed())

    # -- choosing ----------------------------------------------------------------------------------------

    def _choose(self) -> None:
        """Apply the paper's rule, on validation accuracy."""
        search = self.search
        if not search.ranked:
            reasons = [trial.reason for trial in search.trials if trial.reason]
            raise PerdureError(
                f"No trial of {self.design.method} was finished, so nothing can be chosen; the first "
                f"reason: {reasons[0].rstrip('.')}."
            )
        ranked = self._allowed()
        self.limited = ranked[:CANDIDATES] != search.ranked[:CANDIDATES]
        if not search.seeds:
            search.chosen = ranked[0].number
            return
        confirmed: dict[int, Runs] = {}
        for trial in ranked[:CANDIDATES]:
            if confirmed and not (self._known(trial) or self.clock.room(self._needed())):
                break
            confirmed[trial.number] = self._confirm(trial)
            first = search.candidates[0]
            if first.robust:
                break
        search.chosen = best_of(confirmed) or ranked[0].number
        self._note()

    def _allowed(self) -> list[Trial]:
        """Ranked trials whose settings keep no more than is allowed, as far as their records tell."""
        ranked, limit = self.search.ranked, self.budget.memory
        if limit is None:
            return ranked
        found = [t for t in ranked if (bytes_kept(self.trials_folder, t.hashes) or 0) <= limit]
        if not found:
            raise PerdureError(
                f"No setting of {self.design.method} that was tried keeps at most {limit} bytes."
            )
        return found

    def _known(self, trial: Trial) -> bool:
        """Whether a trial's setting was run with all reporting seeds before."""
        configs = self._configs(trial.values, self.search.seeds)
        return all(self.ledger.settled(config.hash, self.runs, None) for config in configs)

    def _confirm(self, trial: Trial) -> Runs:
        """Run a trial's setting with the reporting seeds."""
        search = self.search
        configs = self._configs(trial.values, search.seeds)
        hashes = [config.hash for config in configs]
        jobs = [
            Job(
                config, self.runs, label=f"{self.design.method} seed {config.seed}", again=self._older(config)
            )
            for config in configs
            if not self.ledger.settled(config.hash, self.runs, None)
        ]
        reasons = [self.ledger.failure(hashes)]
        for job, outcome in self.crew.carry_out(jobs, self.clock.over):
            self.ledger.take(job, outcome)
            if isinstance(outcome, Failure):
                reasons.append(f"seed {job.config.seed}: {outcome.reason}")
            self._save()
        runs = self.ledger.runs(hashes, None)
        if None in runs and not any(reasons):
            reasons.append(OUT_OF_TIME)
        assert trial.final is not None
        kept = robust(trial.final, runs, self.design.margin)
        search.candidates.append(
            Candidate(trial.number, hashes, score(runs), kept, "; ".join(filter(None, reasons)))
        )
        self._save()
        return runs

    def _older(self, config: Config) -> bool:
        """Whether there is a record of an earlier version, without a validation matrix."""
        record = RunFolder(self.runs, config.hash).record()
        return record is not None and not record.validation

    def _note(self) -> None:
        """Store the provenance of the choice in records; a part of a search may choose something else."""
        whole, budget = self._whole, self.budget
        if budget.exact and self.search.chosen != whole.chosen:
            limit = {} if budget.memory is None else {"memory": budget.memory}
            note_comparison(self.runs, self.search, {"trials": budget.trials} | limit)
        note_choice(self.runs, whole)

    def _save(self, *, now: bool = False) -> None:
        self.search.seconds = self.clock.spent
        if now or time.monotonic() - self.saved > SAVE_EVERY:
            whole = self._whole
            if whole.trials:  # otherwise nothing could be tried
                whole.save(self.runs)
            self.saved = time.monotonic()
        self.changed(self.search)


def _discard(folder: Path) -> None:
    """Remove the folder of a search in which nothing could be tried; requires the lock, which is in there."""
    (folder / LOCK).unlink(missing_ok=True)
    with suppress(OSError):  # something else is in there
        folder.rmdir()


def _remove(mailbox: Path) -> None:
    """Remove a mailbox at one stroke: a job that still puts news there would keep its folder alive."""
    gone = mailbox.with_name(f".removed-{mailbox.name.lstrip('.')}")
    with suppress(OSError):
        mailbox.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)
