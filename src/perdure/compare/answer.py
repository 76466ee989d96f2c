"""The answer: methods ranked by validation accuracy, with test numbers, costs, and what would change it.

The order, and every choice under a constraint, looks at validation accuracy on reporting seeds. Test numbers
are shown beside it, with intervals, and tell how sure the order is; they choose nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from perdure.analysis.statistics import Number, number, paired_verdict
from perdure.compare.demands import Demands, demands
from perdure.compare.question import Comparison, Conclusion
from perdure.errors import PerdureError, counted
from perdure.search.selection import score, validation_of
from perdure.search.state import Search, find_search
from perdure.storage.record import Record
from perdure.storage.store import RunFolder


@dataclass(frozen=True)
class Entry:
    """One method with its chosen setting: means over reporting seeds."""

    method: str
    search: Search
    records: list[Record]
    """Of the reporting seeds, by seed."""
    demands: Demands
    validation: float
    """Mean validation `final`, by which methods are ranked."""
    final: Number
    """On test data, in percent."""
    during: Number
    forgetting: Number
    kept: list[int]
    """Bytes that must outlive each task."""
    seconds: float
    """Training time of a task."""
    difference: Number | None = None
    """Test `final` minus that of the first in rank, paired by seed."""
    verdict: str = ""
    """Whether it is worse than the first, too close to call, or not decided."""


@dataclass(frozen=True)
class Answer:
    """Which method, if one more thing is demanded."""

    condition: str
    entry: Entry | None
    """None if no method meets the condition."""
    changes: bool
    """Whether it is another method than without the condition."""


def forgetting(record: Record) -> float:
    """Mean over all tasks but the last of the accuracy right after learning minus that at the end."""
    last = record.accuracy[-1]
    lost = [record.accuracy[task][task] - last[task] for task in range(len(last) - 1)]
    return sum(lost) / len(lost) if lost else 0.0


def conclude(search: Search) -> Conclusion:
    """What is kept of a finished search: not what its runs were like, which is in their records."""
    problem = search.design.problem
    return Conclusion(
        replace(search, seen={}, failures={}), demands(problem.config(search.values, 0), problem.shape)
    )


def entries(comparison: Comparison, runs: Path) -> list[Entry]:
    """The methods that took part and met all constraints, best first by validation accuracy."""
    limit = comparison.constraints.memory
    met = [each for each in _every(comparison, runs) if limit is None or each.kept[-1] <= limit]
    # Of methods that are equally good the one that keeps less comes first.
    ranked = sorted(met, key=lambda each: (-each.validation, each.kept[-1], each.method))
    return [_against(ranked[0], each) for each in ranked]


def over_the_limit(comparison: Comparison, runs: Path) -> dict[str, int]:
    """Methods whose chosen setting keeps more than is allowed, and how many bytes."""
    limit = comparison.constraints.memory
    return {
        each.method: each.kept[-1]
        for each in _every(comparison, runs)
        if limit is not None and each.kept[-1] > limit
    }


def missing(comparison: Comparison, runs: Path) -> dict[str, str]:
    """What is not there, or not all, of methods that took part."""
    found = {method: _missing(comparison, method, runs) for method in comparison.taking_part}
    return {method: words for method, words in found.items() if words}


def _missing(comparison: Comparison, method: str, runs: Path) -> str:
    search = _search(comparison, method, runs)
    if search is None:
        return "its search is missing"
    hashes = search.reported
    if not hashes:
        return "its search has no runs with reporting seeds"
    lost = len(hashes) - len(_records(search, runs))
    verb = "is" if lost == 1 else "are"
    return f"{lost} of its {counted(len(hashes), 'run')} with reporting seeds {verb} missing" if lost else ""


def _every(comparison: Comparison, runs: Path) -> list[Entry]:
    """All methods that took part and of which there are records."""
    found = [_entry(comparison, method, runs) for method in comparison.taking_part]
    return [each for each in found if each is not None]


def _search(comparison: Comparison, method: str, runs: Path) -> Search | None:
    """A method's search as it was when the comparison ended, in older ones as it is; None if it is lost."""
    if comparison.concluded:
        kept = comparison.concluded.get(method)
        return None if kept is None else kept.search
    try:
        return find_search(runs, comparison.searches[method])
    except PerdureError:
        return None


def _records(search: Search, runs: Path) -> list[Record]:
    found = [RunFolder(runs, name).record() for name in search.reported]
    records = [record for record in found if record is not None and record.kept]
    return sorted(records, key=lambda record: record.seed)


def _entry(comparison: Comparison, method: str, runs: Path) -> Entry | None:
    """A method with its chosen setting; None if no reporting seed has finished."""
    search = _search(comparison, method, runs)
    records = [] if search is None else _records(search, runs)
    reached = score([validation_of(record.json) for record in records])
    if search is None or not records or reached is None:
        return None
    kept = comparison.concluded.get(method) or conclude(search)
    times = [sum(each["train"] + each["finish"] for each in record.timings) for record in records]
    return Entry(
        method=method,
        search=search,
        records=records,
        demands=kept.demands,
        validation=reached,
        final=number([record.final for record in records]),
        during=number([record.during for record in records]),
        forgetting=number([forgetting(record) for record in records]),
        kept=[max(counts) for counts in zip(*(record.kept_bytes for record in records), strict=True)],
        seconds=sum(times) / len(times) / len(records[0].tasks),
    )


def _against(best: Entry, other: Entry) -> Entry:
    """With the difference from the best, over the seeds that both have."""
    mine = {record.seed: record.final for record in other.records}
    both = [record for record in best.records if record.seed in mine]
    if other is best or not both:
        return other
    difference = number([mine[record.seed] - record.final for record in both])
    return replace(other, difference=difference, verdict=paired_verdict(difference))


def front(found: Sequence[Entry], cost: Callable[[Entry], float]) -> list[Entry]:
    """Entries that no other beats in test accuracy without costing more, by rising cost."""
    kept: list[Entry] = []
    for each in sorted(found, key=lambda entry: (cost(entry), -entry.final.mean)):
        if not kept or each.final.mean > kept[-1].final.mean:
            kept.append(each)
    return kept


def memory(entry: Entry) -> float:
    """Bytes that must outlive the last task."""
    return entry.kept[-1]


def seconds(entry: Entry) -> float:
    """Training time of a task."""
    return entry.seconds


def answers(found: Sequence[Entry], size: Callable[[float], str]) -> list[Answer]:
    """What would change the answer; `size` writes a number of bytes."""
    best = found[0]

    def answer(condition: str, meeting: Iterable[Entry]) -> Answer:
        chosen = next(iter(meeting), None)  # entries are in the order of validation accuracy
        return Answer(condition, chosen, chosen is not best)

    made = [answer("no sample of an old task may be stored", (e for e in found if not e.demands.stored_data))]
    made.append(answer("the task is not known at test time", (e for e in found if not e.demands.task)))
    for limit in sorted({memory(each) for each in found if memory(each) < memory(best)}, reverse=True):
        chosen = answer(f"at most {size(limit)} may outlive a task", (e for e in found if memory(e) <= limit))
        if not any(chosen.entry is before.entry for before in made[2:]):
            made.append(chosen)
    return made
