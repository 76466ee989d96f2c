"""perdure run: learn the tasks of a benchmark with a method, for one or several seeds."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perdure.commands.arguments import (
    Arguments,
    check_names,
    choice,
    device,
    on_off_options,
    parse,
    path_option,
    runs_folder,
    texts_of,
    use_data_folder,
    whole_number,
)
from perdure.commands.showing import plot
from perdure.errors import PerdureError

if TYPE_CHECKING:
    from perdure.config import Config
    from perdure.experiment import RunResult
    from perdure.search.state import Search

HELP = """\
perdure run BENCHMARK METHOD: learn a benchmark's tasks one after the other

  BENCHMARK            such as permuted-copy; perdure list shows all
  METHOD               such as fine-tuning, or methods joined by +, such as masking+si

  --seed S             seed of the run (default: 0)
  --seeds N            run the seeds 0 to N-1 instead
  --from-search ID     use the settings that a search chose (perdure search), at its scale
  --scale SCALE        smoke (seconds), demo (where made), laptop (default, minutes) or paper
  --scenario NAME      task, class or domain: what is known at test time (--benchmark.scenario)
  --workers N          processes, of one thread each (default: 1)
  --cluster ADDRESS    a Dask scheduler (tcp://HOST:PORT), or slurm; --slurm has its settings
  --slurm SETTINGS     of submitit for each job, as in timeout_min=60,mem_gb=4,slurm_partition=short
  --runs DIR           folder of records (default: runs)
  --data DIR           folder of raw data (default: PERDURE_DATA, or the user's cache)
  --device DEVICE      auto, cpu or cuda (default: auto)
  --plot FILE          draw the accuracy matrix (.png, .pdf or .svg; one seed only)
  --json               one JSON object per run on standard output, progress on standard error
  --force              run again even if a finished record exists
  --save-every SECONDS time between checkpoints (default: 20)
  --plugin FILE        a Python file with your own pieces; may be given several times

A range in place of a value, as in --training.learning_rate 1e-4..1e-2 or --penalties.si.strength 0.1,1,10,
turns the run into a search; it then takes the options of perdure search.

perdure run BENCHMARK METHOD --help lists every option of the benchmark, the network and the method.
An interrupted run continues where it stopped when the same command is given again.
"""

SCENARIO = "benchmark.scenario"
"""The option for which --scenario is short."""
SWITCHES = ("json", "force")
GENERAL = (
    *SWITCHES,
    *("seed", "seeds", "from-search", "scale", "workers", "cluster", "slurm"),
    *("runs", "data", "device", "plot", "save-every"),
)


def running(words: list[str]) -> int:
    """Parse, then help, search or run."""
    words = [re.sub(r"^--scenario(?==|$)", f"--{SCENARIO}", word) for word in words]
    read = parse(words, switches=SWITCHES, on_off=on_off_options(words))
    if read.help and len(read.positional) < 2:
        print(HELP, end="")
        return 0
    _check_positional(read)
    if not read.help and _is_search(read):
        from perdure.commands.searching import searching

        return searching(words, bare=True)
    from perdure.config import option_names, sections_at
    from perdure.presets import SCALES, USUAL_SCALE

    benchmark, method = read.positional
    scale = read.options.get("scale", USUAL_SCALE)
    kinds = sections_at(benchmark, method, scale if scale in SCALES else USUAL_SCALE, read.options)
    if not read.help:
        _check_options(read, benchmark, option_names(kinds))
    scale = choice(read.options, "scale", SCALES, USUAL_SCALE)
    if read.help:
        from perdure.commands.options import print_options

        print(HELP)
        print_options(benchmark, method, scale, read.values(option_names(kinds), texts_of(kinds)))
        return 0
    _print(_run(read, scale), read)
    return 0


def _run(read: Arguments, scale: str) -> list[RunResult]:
    """Run every seed; the records of a search's settings name the search."""
    use_data_folder(read.options)
    runs = runs_folder(read.options)
    _check_figure(read)
    found = _search(read, runs)
    configs = _configs(read, scale, found)
    from perdure.commands.executing import cluster_of, execute

    with cluster_of(read.options, runs) as engine:
        done = execute(
            configs,
            runs,
            workers=whole_number(read.options, "workers", 1, 1),
            device=device(read.options),
            force="force" in read.options,
            save_every=whole_number(read.options, "save-every", 20, 0),
            engine=engine,
        )
    return done if found is None else [_noted(one, found) for one in done]


def _check_positional(read: Arguments) -> None:
    """Raise a helpful error unless there are two names."""
    if len(read.positional) < 2:
        raise PerdureError("perdure run needs a BENCHMARK and a METHOD; perdure list shows them.")
    if len(read.positional) > 2:
        raise PerdureError(
            f"perdure run takes two names, but a third, '{read.positional[2]}', is given; "
            f"options start with two dashes."
        )


def _check_figure(read: Arguments) -> None:
    """Raise before anything is learnt if the figure that is asked for cannot be drawn."""
    figure = path_option(read.options, "plot")
    if figure is None:
        return
    from perdure.report.figures import check_writable

    check_writable(figure)
    if whole_number(read.options, "seeds", 1, 1) > 1:
        raise PerdureError("--plot draws one run; give --seed instead of --seeds.")


def _check_options(read: Arguments, benchmark: str, known: list[str]) -> None:
    """Raise a helpful error for the first option that this run does not have."""
    if SCENARIO in read.options and SCENARIO not in known:
        raise PerdureError(
            f"{benchmark} has no scenarios: the task is always known at test time; leave --scenario out."
        )
    check_names(read, [*GENERAL, *known])


def _is_search(read: Arguments) -> bool:
    """Whether a value is no value, but a range or alternatives."""
    from perdure.commands.ranges import divided, first_choices, looks_free

    free = {name: text for name, text in read.options.items() if looks_free(name, text)}
    if not free:
        return False
    from perdure.config import sections_at
    from perdure.presets import USUAL_SCALE

    (benchmark, method), scale = read.positional, read.options.get("scale", USUAL_SCALE)
    kinds = sections_at(benchmark, method, scale, first_choices(read.options))
    return bool(divided(kinds, free)[1])


def _search(read: Arguments, runs: Path) -> Search | None:
    """The search that --from-search names, if it is one of this benchmark and method."""
    if "from-search" not in read.options:
        return None
    from perdure.methods import canonical
    from perdure.registry import methods
    from perdure.search.state import find_search

    found = find_search(runs, read.options["from-search"])
    benchmark, method = found.design.benchmark, found.design.method
    if [benchmark, method] != [read.positional[0], canonical(read.positional[1], methods())]:
        raise PerdureError(f"Search {found.id} is about {benchmark} {method}; its settings are for these.")
    for name in read.options:
        if name in found.values:
            raise PerdureError(
                f"--{name} is among the values that search {found.id} chose; leave it out, or do without "
                f"--from-search."
            )
    return found


def _noted(one: RunResult, found: Search) -> RunResult:
    """The result, with the search written into its record."""
    from perdure.storage.store import RunFolder

    folder = RunFolder(one.folder.parent, one.folder.name)
    return replace(one, record=folder.note_search(one.record, found.id, found.note))


def _configs(read: Arguments, scale: str, found: Search | None) -> list[Config]:
    """One config for each seed."""
    from perdure.config import build, sections_at

    if "seed" in read.options and "seeds" in read.options:
        raise PerdureError("Use --seed S for one run or --seeds N for several, not both.")
    seeds = [whole_number(read.options, "seed", 0, 0)]
    if "seeds" in read.options:
        seeds = list(range(whole_number(read.options, "seeds", 1, 1)))
    benchmark, method = read.positional
    texts = texts_of(sections_at(benchmark, method, scale, read.options))
    values: dict[str, Any] = read.values((name for name in read.options if name not in GENERAL), texts)
    if found is not None:
        values = found.design.given | found.values | values
        scale = read.options.get("scale", found.design.scale)
    return [build(benchmark, method, scale=scale, seed=seed, **values) for seed in seeds]


def _print(done: list[RunResult], read: Arguments) -> None:
    from perdure.report.tables import accuracy_tables, summary
    from perdure.report.terminal import show

    if "json" in read.options:
        for one in done:
            print(json.dumps(one.record.json), flush=True)
    elif len(done) == 1:
        show(*accuracy_tables(done[0].record))
    if "json" not in read.options:
        show(summary([one.record for one in done]))
        for one in done:
            show(f"Record: {os.path.relpath(one.folder)}" + (" (finished before)" if one.found else ""))
    if "plot" in read.options:
        plot(done[0].record, Path(read.options["plot"]))
