"""What a search keeps when it is carried out again: trials that were begun, candidates, and its choice.

The state that a study builds is not yet what the stored one is, as long as the study is going on, and perhaps
never, if it is interrupted or looks at the first trials only. So what is written is the new state together
with whatever only the old one has.
"""

from __future__ import annotations

from dataclasses import replace

from perdure.search.state import ENDED, Candidate, Search, Trial


def begun(search: Search) -> list[Trial]:
    """Trials of which something is known; the others were proposed only."""
    return [
        trial
        for trial in search.trials
        if trial.status in ENDED or any(name in search.seen for name in trial.hashes)
    ]


def reported(search: Search) -> int:
    """The number of reporting seeds with which a candidate was run to the end."""
    ended = {name for name, seen in search.seen.items() if seen.whole} | set(search.failures)
    return max((len(each.hashes) for each in search.candidates if ended.issuperset(each.hashes)), default=0)


def together(new: Search, old: Search) -> Search:
    """The new state with all that only the old one has."""
    trials = _trials(new, old)
    numbers = {tuple(trial.hashes): trial.number for trial in trials}
    moved = {
        trial.number: numbers[tuple(trial.hashes)] for trial in old.trials if tuple(trial.hashes) in numbers
    }
    old_candidates = [replace(each, trial=moved[each.trial]) for each in old.candidates]
    if _decides(new, old):
        chosen, seeds, candidates = new.chosen, new.seeds, _candidates(new.candidates, old_candidates)
    else:
        chosen = None if old.chosen is None else moved[old.chosen]
        seeds, candidates = old.seeds or new.seeds, _candidates(old_candidates, new.candidates)
    counts = [len(each.hashes) for each in candidates if each.trial == chosen]
    return Search(
        new.design,
        trials,
        list(dict.fromkeys([*new.refused, *old.refused])),
        old.seen | new.seen,
        old.failures | new.failures,
        list(range(*counts)) if counts else seeds,
        candidates,
        chosen,
        max(new.seconds, old.seconds),
        any(each.complete and len(each.trials) == len(trials) for each in (new, old)),
    )


def _trials(new: Search, old: Search) -> list[Trial]:
    """All trials, those of the new state first; of each the state that tells more."""
    earlier = {tuple(trial.hashes): trial for trial in begun(old)}
    found = [_further(trial, earlier.pop(tuple(trial.hashes), None)) for trial in new.trials]
    numbered = [replace(trial, number=number) for number, trial in enumerate([*found, *earlier.values()], 1)]
    finished = [trial for trial in numbered if trial.status == "finished"]
    for trial in numbered:
        trial.rank = None
    for rank, trial in enumerate(sorted(finished, key=_order), 1):
        trial.rank = rank
    return numbered


def _order(trial: Trial) -> tuple[float, float, int]:
    """As `ranking` orders settings."""
    return -(trial.final or 0.0), -(trial.during or 0.0), trial.number


def _further(new: Trial, old: Trial | None) -> Trial:
    """The state of a trial that tells more."""
    if old is None or new.status == "finished" or (new.status in ENDED and old.status != "finished"):
        return new
    return old if old.status in ENDED else new


def _decides(new: Search, old: Search) -> bool:
    """Whether the new state's choice replaces the old one: it knows as much, and was tried with seeds too."""
    if new.chosen is None or old.chosen is None:
        return new.chosen is not None
    if _confirmed(old) and not _confirmed(new):
        return False
    tried = [sum(trial.status in ENDED for trial in search.trials) for search in (new, old)]
    return tried[0] > tried[1] or (tried[0] == tried[1] and reported(new) >= reported(old))


def _confirmed(search: Search) -> bool:
    """Whether the chosen setting was run with all reporting seeds."""
    return any(each.trial == search.chosen and each.final is not None for each in search.candidates)


def _candidates(first: list[Candidate], others: list[Candidate]) -> list[Candidate]:
    """The candidates of both, one for each trial: the one with more seeds, if these are finished."""
    found = {each.trial: each for each in first}
    for each in others:
        there = found.setdefault(each.trial, each)
        if each.final is not None and (there.final is None or len(each.hashes) > len(there.hashes)):
            found[each.trial] = each
    return list(found.values())
