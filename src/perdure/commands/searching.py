"""perdure search: settings of one or several methods, with equal budgets, chosen by validation."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
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
perdure search BENCHMARK METHOD ...: choose settings by validation accuracy, with equal budgets

  BENCHMARK            such as permuted-copy; perdure list shows all
  METHOD ...           one or more; each is searched separately

  --trials N           settings to try per method (default: 24)
  --hours H            time limit for all methods together, in equal shares (default: none)
  --sampler SAMPLER    random (default, without replacement), grid (all, in order) or tpe (Optuna)
  --space FILE         a TOML file with the search space (default: the benchmark's in search/grids)
  --halving            end hopeless trials early: the worse half after a quarter, then half of the tasks
  --seeds N            reporting seeds 0 to N-1 for the best setting (default: 5; 0 for none)
  --tuning-seeds N     seeds for each trial: 1000, 1001, ... (default: 1)
  --seed S             seed of the sampler (default: 0)
  --workers N          processes with one thread each (default: one per core); with slurm, jobs at a time
  --cluster ADDRESS    a Dask scheduler (tcp://HOST:PORT), or slurm
  --slurm SETTINGS     submitit settings for each job, such as timeout_min=60,mem_gb=4,slurm_partition=short
  --scale SCALE        smoke (seconds), demo (where made), laptop (default, minutes) or paper
  --runs DIR           folder of records (default: runs)
  --data DIR           folder of raw data (default: PERDURE_DATA, or the user's cache)
  --device DEVICE      auto, cpu or cuda (default: auto)
  --plot FILE          plot validation accuracy against each searched value (.png, .pdf or .svg)
  --json               print one JSON object per search; progress goes to standard error
  --save-every SECONDS time between checkpoints (default: 20)
  --plugin FILE        a Python file with your own pieces; may be repeated

Options of the benchmark, the network and the methods are the same as for perdure run. A value holds an option
fixed; these search it: --training.learning_rate 1e-4..1e-2 (log-uniform), --weights.fraction 0.2..0.8:linear,
--penalties.si.strength 0.1,1,10 (alternatives), --network.hidden "64,32|128" (where a comma belongs to the
value). perdure search BENCHMARK METHOD --help shows the space; perdure search alone lists all searches.

Settings are ranked by validation accuracy after the last task. The best is run with the reporting seeds; if
it is not robust, so are the second and third, and the best of the three is chosen. No test number is used.
A search that was stopped continues when the same command is given again.
perdure run BENCHMARK METHOD --from-search ID uses the chosen settings. More: docs/searching.md.
"""

SWITCHES = ("json", "halving")
GENERAL = (
    *SWITCHES,
    *("trials", "hours", "sampler", "space", "seeds", "tuning-seeds", "seed", "workers", "cluster", "slurm"),
    *("scale", "runs", "data", "device", "plot", "save-every"),
)


def searching(words: list[str], *, bare: bool = False) -> int:
    """Parse, search, print. `bare`: search only the ranges given in words (perdure run)."""
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
    designs = designs_of(read, bare=bare)
    if read.help:
        print(HELP)
        _print_spaces(designs)
        return 0
    figure = path_option(read.options, "plot")
    if figure is not None:
        from perdure.report.figures import check_format

        check_format(figure)
    searches, faults = _carry_out(designs, read)
    if len(searches) > 1 and "json" not in read.options:
        from perdure.report.searches import overview_table
        from perdure.report.terminal import show

        show(overview_table(searches, runs_folder(read.options)))
    if figure is not None:
        from perdure.report.sensitivity import draw_sensitivity

        draw_sensitivity(searches, figure)
    return 2 if faults else 0


def designs_of(read: Arguments, *, bare: bool = False, general: Sequence[str] = GENERAL) -> list[Design]:
    """One design per method; every option must be known to at least one of them."""
    from perdure.commands.ranges import divided, first_choices
    from perdure.config import option_names, sections_at
    from perdure.presets import SCALES, USUAL_SCALE
    from perdure.search.spaces import Space, file_space, grid_space
    from perdure.search.tuning import designed

    benchmark, *names = read.positional
    scale = choice(read.options, "scale", SCALES, USUAL_SCALE)
    kinds = {name: sections_at(benchmark, name, scale, first_choices(read.options)) for name in names}
    known = {name: set(option_names(each)) for name, each in kinds.items()}
    check_names(read, [*general, *dict.fromkeys(option for each in known.values() for option in each)])
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


def hours_of(read: Arguments) -> float | None:
    """The time limit that --hours gives, or None."""
    text = read.options.get("hours")
    try:
        hours = None if text is None else float(text)
    except ValueError:
        hours = 0.0
    if hours is not None and not hours > 0:
        raise PerdureError(f"--hours must be a number above 0 (given: {text!r}).")
    return hours


def _carry_out(designs: list[Design], read: Arguments) -> tuple[list[Search], list[PerdureError]]:
    """Search one method after the other; the remaining time is shared by the remaining methods.

    Also returns why methods have no result.
    """
    from perdure.commands.executing import Signals, engine_of
    from perdure.errors import Interrupted, Refused
    from perdure.learning.engine import RunOptions

    runs, hours, begun = runs_folder(read.options), hours_of(read), time.monotonic()
    _budget(read, hours)  # report mistakes before anything starts
    signals = Signals()
    options = RunOptions(
        stop=signals.asked,
        device=device(read.options),
        save_every=whole_number(read.options, "save-every", 20, 0),
    )
    searches: list[Search] = []
    faults: list[PerdureError] = []
    try:
        with engine_of(read.options, runs, os.cpu_count() or 1) as engine:
            for number, design in enumerate(designs):
                spent = (time.monotonic() - begun) / 3600
                share = None if hours is None else max(hours - spent, 0.0) / (len(designs) - number)
                try:
                    searches.append(searched(design, runs, engine, options, _budget(read, share)))
                except (Interrupted, Refused):
                    raise
                except PerdureError as fault:  # the other methods are searched all the same
                    faults.append(fault)
                    print(f"{design.method}: {fault}", file=sys.stderr)
                    continue
                _print(searches[-1], runs, as_json="json" in read.options)
    except Interrupted as stop:
        stop.code = signals.code
        raise
    if faults and not searches:
        raise faults[0]
    return searches, faults


def searched(
    design: Design,
    runs: Path,
    engine: Engine,
    options: Any,
    budget: Budget,
    told: dict[int, str] | None = None,
) -> Search:
    """One search, with its progress on standard error; of trials in `told` nothing is said again."""
    from perdure.report.search_board import SearchBoard
    from perdure.search.crew import Crew
    from perdure.search.state import place
    from perdure.search.study import Study

    with SearchBoard(design, budget.trials, told) as board:
        crew = Crew(engine, place(runs, design.id), options, board.moved)
        return Study(design, runs, crew, budget, board.changed, board.remark).run()


def _print(search: Search, runs: Path, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(search.json), flush=True)
        return
    from perdure.report.searches import chosen_lines, failed_lines, search_table
    from perdure.report.terminal import show

    show(search_table(search), *failed_lines(search), *chosen_lines(search, runs))


def _print_spaces(designs: list[Design]) -> None:
    from perdure.options import option_text
    from perdure.report.searches import space_lines

    for design in designs:
        print(f"\n{design.benchmark} {design.method} at scale {design.scale}: {design.space.source}")
        for line in space_lines(design.space):
            print(f"  {line}")
        for name, value in design.given.items():
            print(f"  --{name} {option_text(value)}   (held)")


def _list(runs: Path) -> int:
    """All searches of a folder."""
    from perdure.commands.showing import warn
    from perdure.report.searches import searches_table
    from perdure.report.terminal import show
    from perdure.search.state import all_searches

    searches, warnings = all_searches(runs)
    warn(warnings)
    if not searches:
        raise PerdureError(f"No searches in '{runs}'; perdure search BENCHMARK METHOD begins one.")
    show(searches_table(searches))
    return 0
