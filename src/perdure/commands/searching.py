"""perdure search: settings of one or several methods, with equal budgets, chosen by validation."""

from __future__ import annotations

import json
import os
import time
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
    use_data_folder,
    whole_number,
)
from perdure.errors import PerdureError

if TYPE_CHECKING:
    from perdure.engines.engine import Engine
    from perdure.search.state import Design, Search
    from perdure.search.study import Budget

HELP = """\
perdure search BENCHMARK METHOD ...: search settings, each method with the same budget

  BENCHMARK            such as permuted-copy; perdure list names all
  METHOD ...           one or several; each is searched by itself

  --trials N           settings to try for each method (default: 24)
  --hours H            time for all methods together; each has the same share (default: no limit)
  --sampler SAMPLER    random (default, without replacement), grid (all, in order) or tpe (Optuna)
  --space FILE         a TOML file of what is searched (default: the paper's table for the benchmark)
  --halving            all settings learn the first tasks, the better half more, the best of them all
  --seeds N            reporting seeds 0 to N-1 with which the best is run (default: 5; 0: not at all)
  --tuning-seeds N     seeds with which each setting is tried: 1000, 1001, ... (default: 1)
  --seed S             seed of the sampler (default: 0)
  --workers N          processes, of one thread each (default: one a core); with slurm, jobs at a time
  --cluster ADDRESS    a Dask scheduler (tcp://HOST:PORT), or slurm
  --slurm SETTINGS     of submitit for each job, as in timeout_min=60,mem_gb=4,slurm_partition=short
  --scale SCALE        smoke (seconds), laptop (default, minutes) or paper (the paper's settings)
  --runs DIR           folder of records (default: runs)
  --data DIR           folder of raw data (default: PERDURE_DATA, or the user's cache)
  --device DEVICE      auto, cpu or cuda (default: auto)
  --plot FILE          draw how the score depends on each value (.png, .pdf or .svg)
  --json               one JSON object a search on standard output, progress on standard error
  --save-every SECONDS time between checkpoints (default: 20)
  --plugin FILE        a Python file with pieces of your own; may be given several times

Options of the benchmark, the network and the methods, as for perdure run, are held at the value given, or
searched: --training.learning_rate 1e-4..1e-2 (evenly by ratio), --weights.fraction 0.2..0.8:linear,
--penalties.si.strength 0.1,1,10 (alternatives), --network.hidden "64,32|128" (| where a comma belongs to
the value). perdure search without a name lists the searches that are there.

Settings are ranked by validation accuracy at the end; the best is run with the reporting seeds; if it is not
robust, the second and third are too, and the best of the three is chosen. No test number is looked at.
A search that was stopped, or whose processes died, continues when the same command is given again.
perdure run BENCHMARK METHOD --from-search ID uses what was chosen.
"""

SWITCHES = ("json", "halving")
GENERAL = (
    *SWITCHES,
    *("trials", "hours", "sampler", "space", "seeds", "tuning-seeds", "seed", "workers", "cluster", "slurm"),
    *("scale", "runs", "data", "device", "plot", "save-every"),
)


def searching(words: list[str], *, bare: bool = False) -> int:
    """Parse, search, print. `bare`: nothing is searched but what the words say (perdure run)."""
    read = parse(words, switches=SWITCHES, on_off=on_off_options(words))
    if read.help and len(read.positional) < 2:
        print(HELP, end="")
        return 0
    if not read.positional:
        check_names(read, ("runs",))
        return _list(runs_folder(read.options))
    if len(read.positional) < 2:
        raise PerdureError("perdure search needs a BENCHMARK and a METHOD; perdure list names them.")
    use_data_folder(read.options)
    designs = _designs(read, bare=bare)
    if read.help:
        print(HELP)
        _print_spaces(designs)
        return 0
    figure = path_option(read.options, "plot")
    if figure is not None:
        from perdure.report.figures import check_format

        check_format(figure)
    searches = _carry_out(designs, read)
    if figure is not None:
        from perdure.report.sensitivity import draw_sensitivity

        draw_sensitivity(searches, figure)
    return 0


def _designs(read: Arguments, *, bare: bool) -> list[Design]:
    """One design a method; every option must be known to one of them at least."""
    from perdure.commands.ranges import divided, first_choices
    from perdure.config import option_names, sections
    from perdure.presets import SCALES
    from perdure.search.spaces import Space, file_space, grid_space
    from perdure.search.tuning import designed

    benchmark, *names = read.positional
    scale = choice(read.options, "scale", SCALES, "laptop")
    kinds = {name: sections(benchmark, name, first_choices(read.options)) for name in names}
    known = {name: set(option_names(each)) for name, each in kinds.items()}
    check_names(read, [*GENERAL, *dict.fromkeys(option for each in known.values() for option in each)])
    rules: dict[str, Any] = {
        "sampler": read.options.get("sampler", "random"),
        "seed": whole_number(read.options, "seed", 0, 0),
        "halving": "halving" in read.options,
        "tuning_seeds": _tuning_seeds(read),
    }
    found = []
    for name in names:
        mine = read.values(option for option in read.options if option in known[name])
        held, free = divided(kinds[name], mine)
        file = path_option(read.options, "space")
        if file is not None:
            space = file_space(file, name, scale)
        else:
            space = Space((), "the command line") if bare else grid_space(benchmark, name, scale)
        found.append(designed(benchmark, name, space.replaced(free), scale, held, **rules))
    return found


def _tuning_seeds(read: Arguments) -> tuple[int, ...]:
    from perdure.search.state import TUNING

    return tuple(range(TUNING, TUNING + whole_number(read.options, "tuning-seeds", 1, 1)))


def _budget(read: Arguments, hours: float | None) -> Budget:
    from perdure.search.study import Budget

    return Budget(
        trials=whole_number(read.options, "trials", 24, 1),
        hours=hours,
        seeds=whole_number(read.options, "seeds", 5, 0),
    )


def _hours(read: Arguments) -> float | None:
    text = read.options.get("hours")
    try:
        hours = None if text is None else float(text)
    except ValueError:
        hours = 0.0
    if hours is not None and not hours > 0:
        raise PerdureError(f"--hours must be a number above 0 (given: {text!r}).")
    return hours


def _carry_out(designs: list[Design], read: Arguments) -> list[Search]:
    """Search one method after the other; what is left of the time is shared by those that are left."""
    from perdure.commands.executing import Signals, engine_of
    from perdure.errors import Interrupted
    from perdure.learning.engine import RunOptions

    runs, hours, begun = runs_folder(read.options), _hours(read), time.monotonic()
    _budget(read, hours)  # mistakes are told before anything is started
    signals = Signals()
    options = RunOptions(
        stop=signals.asked,
        device=device(read.options),
        save_every=whole_number(read.options, "save-every", 20, 0),
    )
    searches = []
    try:
        with engine_of(read.options, runs, os.cpu_count() or 1) as engine:
            for number, design in enumerate(designs):
                spent = (time.monotonic() - begun) / 3600
                share = None if hours is None else max(hours - spent, 0.0) / (len(designs) - number)
                searches.append(_one(design, runs, engine, options, _budget(read, share)))
                _print(searches[-1], runs, as_json="json" in read.options)
    except Interrupted as stop:
        stop.code = signals.code
        raise
    return searches


def _one(design: Design, runs: Path, engine: Engine, options: Any, budget: Budget) -> Search:
    """One search, with its progress on standard error."""
    from perdure.report.search_board import SearchBoard
    from perdure.search.crew import Crew
    from perdure.search.state import place
    from perdure.search.study import Study

    with SearchBoard(design, budget.trials) as board:
        crew = Crew(engine, place(runs, design.id), options, board.moved)
        return Study(design, runs, crew, budget, board.changed).run()


def _print(search: Search, runs: Path, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(search.json), flush=True)
        return
    from perdure.report.searches import chosen_lines, failed_lines, search_table
    from perdure.report.terminal import show

    show(search_table(search), *failed_lines(search), *chosen_lines(search, runs))


def _print_spaces(designs: list[Design]) -> None:
    from perdure.report.searches import space_lines

    for design in designs:
        print(f"\n{design.benchmark} {design.method} at scale {design.scale}: {design.space.source}")
        for line in space_lines(design.space):
            print(f"  {line}")


def _list(runs: Path) -> int:
    """All searches of a folder."""
    from perdure.report.searches import searches_table
    from perdure.report.terminal import show
    from perdure.search.state import all_searches

    searches = all_searches(runs)
    if not searches:
        raise PerdureError(f"No searches in '{runs}'; perdure search BENCHMARK METHOD begins one.")
    show(searches_table(searches))
    return 0
