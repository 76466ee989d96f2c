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
from perdure.compare.question import Comparison
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


def entries(comparison: Comparison, runs: Path) -> list[Entry]:
    """The methods that took part and met all constraints, best first by validation accuracy."""
    found = [_entry(find_search(runs, name), runs) for name in comparison.taking_part.values()]
    limit = comparison.constraints.memory
    met = [each for each in found if each is not None and (limit is None or each.kept[-1] <= limit)]
    ranked = sorted(met, key=lambda each: (-each.validation, each.method))
    return [_against(ranked[0], each) for each in ranked]


def over_the_limit(comparison: Comparison, runs: Path) -> dict[str, int]:
    """Methods whose chosen setting keeps more than is allowed, and how many bytes."""
    limit = comparison.constraints.memory
    found = [_entry(find_search(runs, name), runs) for name in comparison.taking_part.values()]
    return {
        each.method: each.kept[-1] for each in found if each and limit is not None and each.kept[-1] > limit
    }


def _entry(search: Search, runs: Path) -> Entry | None:
    """A finished search as an entry; None if no reporting seed has finished."""
    hashes = [name for each in search.candidates if each.trial == search.chosen for name in each.hashes]
    found = [RunFolder(runs, name).record() for name in hashes]
    records = [record for record in found if record is not None and record.kept]
    reached = score([validation_of(record.json) for record in records])
    if not records or reached is None:
        return None
    problem = search.design.problem
    config = problem.config(search.values, 0)
    times = [sum(each["train"] + each["finish"] for each in record.timings) for record in records]
    return Entry(
        method=search.design.method,
        search=search,
        records=sorted(records, key=lambda record: record.seed),
        demands=demands(config, problem.shape),
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
