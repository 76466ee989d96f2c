"""perdure reproduce: tables and figures of the paper, each by its name."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from perdure.commands.arguments import (
    check_names,
    choice,
    device,
    parse,
    runs_folder,
    use_data_folder,
    whole_number,
)
from perdure.commands.showing import warn
from perdure.errors import PerdureError, unknown

if TYPE_CHECKING:
    from perdure.benchmarks.task import Benchmark
    from perdure.engines.engine import Engine
    from perdure.paper.item import FinishedRuns, Item
    from perdure.paper.plan import Plan
    from perdure.storage.record import Record

HELP = """\
perdure reproduce NAME ... | all: run what an item of the paper needs, print its table, draw its figures

  NAME                 such as table-1; without a name, list all items
  --scale SCALE        smoke (seconds), demo (table-1 in minutes), laptop (default) or paper (its settings)
  --seeds N            seeds of each setting (default: smoke and demo 1, laptop 5, paper 10; some fewer)
  --set NAME=VALUE     an option for all runs that have it, as in benchmark.unknown=drop-sentence;
                       may be repeated; benchmark.data_seed=seed varies the data with the seed
  --workers N          processes, of one thread each (default: one for each core)
  --cluster ADDRESS    a Dask scheduler (tcp://HOST:PORT), or slurm; --slurm has its settings
  --slurm SETTINGS     of submitit for each job, as in timeout_min=60,mem_gb=4,slurm_partition=short
  --runs DIR           folder of records, findings and figures (default: runs)
  --data DIR           folder of raw data (default: PERDURE_DATA, or the user's cache)
  --device DEVICE      auto, cpu or cuda (default: auto)
  --plan               only show how many runs are needed and how long they take

Finished runs are not repeated; an interrupted command continues where it stopped.
"""

NEXT = """
Try next:
  perdure run permuted-copy masking+si --scale demo --seeds 3    # any method, or a combination of your own
  perdure reproduce table-1 --scale laptop --seeds 1             # the paper's size (13 minutes on 2 cores)
  perdure data check FOLDER                                      # your own sequences: docs/own-data.md"""

OPTIONS = ("scale", "seeds", "workers", "cluster", "slurm", "runs", "data", "device", "plan", "set")


def reproducing(words: list[str]) -> int:
    """Plan, run, evaluate, print, report."""
    read = parse(words, switches=("plan",), repeated=("set",))
    check_names(read, OPTIONS)
    if read.help:
        print(HELP, end="")
        return 0
    use_data_folder(read.options)
    from perdure.paper.item import DIFFERENCES, FinishedRuns, find_item, items
    from perdure.presets import SCALES, USUAL_SCALE

    if not read.positional:
        _list(items())
        return 0
    scale = choice(read.options, "scale", SCALES, USUAL_SCALE)
    every = "all" in read.positional
    named = {name: find_item(name) for name in read.positional if name != "all"}
    if every and named:
        raise PerdureError(f"'all' means every item; leave out either it or '{next(iter(named))}'.")
    chosen = _offered(items() if every else named, scale, refuse=not every)
    given = _given(read.repeated.get("set", []), chosen, scale)
    chosen = _possible(chosen, scale, given, refuse=not every)
    seeds = {name: whole_number(read.options, "seeds", item.seeds(scale), 1) for name, item in chosen.items()}
    runs = runs_folder(read.options)
    workers = whole_number(read.options, "workers", os.cpu_count() or 1, 1)
    from perdure.paper.plan import plan

    work = plan(chosen, scale, seeds, runs, given)
    where = device(read.options)
    if scale == "demo":
        print(DIFFERENCES[scale], file=sys.stderr)
    costs = _announce(work, workers, scale, where)
    if "plan" in read.options:
        return 0
    from perdure.commands.executing import cluster_of

    with cluster_of(read.options, runs) as engine:
        records = _run(work, costs, runs, workers, where, engine)
    results = {name: FinishedRuns(scale, count, runs, records, given) for name, count in seeds.items()}
    code = _evaluate(chosen, results, runs)
    if scale == "demo":
        print(NEXT)
    return code


def _offered(items: Mapping[str, Item], scale: str, *, refuse: bool) -> dict[str, Item]:
    """The items that have a scale; the others are left out, or raise an error."""
    for name, item in items.items():
        if scale not in item.scales and refuse:
            raise PerdureError(f"{name} has no scale {scale}; it has {', '.join(item.scales)}.")
    return {name: item for name, item in items.items() if scale in item.scales}


def _list(items: Mapping[str, Item]) -> None:
    from perdure.report.terminal import show_names

    show_names((name, item.title) for name, item in items.items())


def _given(words: Sequence[str], items: Mapping[str, Item], scale: str) -> dict[str, str | None]:
    """The options given with --set; each must be one that some run has."""
    from perdure.config import option_names, sections_at

    given: dict[str, str | None] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise PerdureError(f"--set takes NAME=VALUE, as in benchmark.data_seed=7 (given: '{word}').")
        given[name] = None if value.lower() == "none" else value
    settings = [setting for item in items.values() for setting in item.settings(scale)]
    known = {
        option
        for setting in settings
        for option in option_names(
            sections_at(setting.benchmark, setting.method, scale, {**setting.options, **given})
        )
    }
    for name in given:
        if name not in known:
            raise unknown("option of these items", name, known)
    return given


def _possible(
    items: Mapping[str, Item], scale: str, given: Mapping[str, str | None], *, refuse: bool
) -> dict[str, Item]:
    """The items whose data are available; the others are reported, or raise an error."""
    checked: dict[Benchmark, PerdureError | None] = {}
    possible = {}
    for name, item in items.items():
        faults = []
        for benchmark in {each.given(given, scale).problem(scale) for each in item.settings(scale)}:
            if benchmark not in checked:
                checked[benchmark] = _fault(benchmark)
            if (fault := checked[benchmark]) is not None:
                faults.append(fault)
        if not faults:
            possible[name] = item
        elif refuse:
            raise faults[0]
        else:
            print(f"{name} is left out: {faults[0]}", file=sys.stderr)
    return possible


def _fault(benchmark: Benchmark) -> PerdureError | None:
    """The error about a benchmark's missing raw files, if any; nothing is built."""
    try:
        benchmark.find_files()
    except PerdureError as fault:
        return fault
    return None


def _announce(work: Plan, workers: int, scale: str, where: str) -> Mapping[str, float]:
    """Show how much there is to do and for how long; returns the seconds of each missing run, if known."""
    from perdure.report.terminal import tell

    warn(work.warnings)
    if work.configs:
        runs = "1 run" if len(work.configs) == 1 else f"{len(work.configs)} runs"
        tell(f"{runs}, {len(work.found)} of them finished already.")
    costs: Mapping[str, float] = {}
    if work.missing and scale != "smoke":
        from perdure.paper.plan import estimate
        from perdure.report.numbers import duration

        costs = estimate(work, where)
        seconds = sum(costs.values())
        tell(
            f"The other {len(work.missing)} take about {duration(seconds)} on one core, so "
            f"{duration(seconds / workers)} with {workers} at once "
            "(from finished seeds, from a few iterations, or from similar settings: later tasks can take "
            "longer, early stopping makes them shorter)."
        )
    return costs


def _run(
    work: Plan,
    costs: Mapping[str, float],
    runs: Path,
    workers: int,
    where: str,
    engine: Engine | None,
) -> dict[str, Record]:
    """Run what is missing, the longest first, so that no long one is left over; all records by hash."""
    from perdure.commands.executing import execute
    from perdure.report.board import Board

    missing = sorted(work.missing, key=lambda config: -costs.get(config.hash, 0.0))
    records = dict(work.found)
    if missing:
        labels = [f"{config.benchmark.name} {config.method} seed {config.seed}" for config in missing]
        with Board(labels) as board:
            done = execute(missing, runs, workers=workers, device=where, board=board, engine=engine)
        records |= {each.record.hash: each.record for each in done}
    return records


def _evaluate(items: Mapping[str, Item], results: Mapping[str, FinishedRuns], runs: Path) -> int:
    """Print tables, write figures, findings and the report; returns an exit code.

    An item that cannot be evaluated, because files of a run are missing, does not affect the others.
    """
    from perdure.commands.reporting import make_report
    from perdure.paper.results import evaluate, keep
    from perdure.report.tables import findings_table
    from perdure.report.terminal import show

    code = 0
    for name, item in items.items():
        try:
            findings, drawn = evaluate(name, item, results[name])
        except PerdureError as fault:
            print(f"{name} is left out: {fault}", file=sys.stderr)
            code = 2
            continue
        figures = keep(findings, drawn, runs)
        show(findings_table(findings))
        for path in figures:
            if path.suffix == ".png":
                print(f"Figure: {path} (also .pdf, .svg)")
    print(f"Report: {make_report(runs)}")
    return code
