"""perdure compare: which method should I use? Equal budgets for all, then reporting seeds, then one page."""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perdure.commands.arguments import (
    Arguments,
    check_names,
    device,
    on_off_options,
    parse,
    path_option,
    runs_folder,
    use_data_folder,
    whole_number,
)
from perdure.commands.searching import GENERAL as SEARCHING
from perdure.commands.searching import designs_of, hours_of, searched
from perdure.errors import PerdureError

if TYPE_CHECKING:
    from perdure.compare.question import Comparison, Constraints
    from perdure.search.state import Design
    from perdure.search.study import Budget

HELP = """\
perdure compare BENCHMARK: which method should I use?
perdure compare --benchmark.folder DIR: the same for your own data (docs/own-data.md)

  --methods A,B,...    methods to compare (default: fine-tuning, online-ewc, si, masking+si, hnet, coresets,
                       from-scratch); combinations such as masking+online-ewc work too
  --hours H            finish within H hours, reporting seeds included (default: no limit)
  --trials N           settings to try per method, at most; the same number for all (default: 12)
  --seeds N            reporting seeds 0 to N-1 for the chosen setting of each method (default: 5)
  --no-stored-data     only methods that store no samples of old tasks
  --memory SIZE        only methods and settings that keep at most SIZE beyond a task, such as 500kB or 1MB
  --task-unknown       only methods that need not be told the task at test time; one output head for all tasks
  --out FILE           the page (default: comparison.html in the folder of the comparison)
  --workers N          processes with one thread each (default: one per core); with slurm, jobs at a time
  --cluster ADDRESS    a Dask scheduler (tcp://HOST:PORT), or slurm
  --slurm SETTINGS     submitit settings for each job, such as timeout_min=60,mem_gb=4
  --scale SCALE        smoke (seconds), demo (where made), laptop (default, minutes) or paper
  --space FILE         a TOML file with search spaces (default: the paper's table for the benchmark, or ours)
  --sampler SAMPLER    random (default), grid or tpe
  --tuning-seeds N     seeds for each trial: 1000, 1001, ... (default: 1)
  --seed S             seed of the sampler (default: 0)
  --runs DIR           folder of records (default: runs)
  --data DIR           folder of raw data (default: PERDURE_DATA, or the user's cache)
  --device DEVICE      auto, cpu or cuda (default: auto)
  --json               print the result as JSON; progress goes to standard error
  --save-every SECONDS time between checkpoints (default: 20)
  --plugin FILE        a Python file with your own pieces; may be repeated

Options of the benchmark, the network, training and the methods are the same as for perdure search.

Every method gets the same number of trials, or all points of its space if that has fewer; the best setting by
validation accuracy is run with the reporting seeds. Methods are ranked by validation accuracy; the page shows
test accuracy with 95 % intervals, paired differences, memory, time, and what would change the answer. A
comparison that was stopped continues when the same command is given again. More: docs/compare.md.
"""

OWN = ("methods", "no-stored-data", "memory", "task-unknown", "out")
SWITCHES = ("json", "no-stored-data", "task-unknown")
GENERAL = (*OWN, *(name for name in SEARCHING if name not in ("halving", "plot")))
FOLDER = "benchmark.folder"
PAGE = "comparison.html"


def comparing(words: list[str]) -> int:
    """Parse, compare, print, write the page."""
    begun = time.monotonic()
    read = parse(words, switches=SWITCHES, on_off=on_off_options(words))
    if read.help:
        print(HELP, end="")
        return 0
    benchmark = _benchmark(read)
    use_data_folder(read.options)
    constraints = _constraints(read)
    runs, hours, out = runs_folder(read.options), hours_of(read), path_option(read.options, "out")
    if out is not None and out.suffix.lower() not in (".html", ".htm"):
        raise PerdureError(f"--out: the file name must end in .html or .htm (given: '{out.name}').")
    if out is not None:
        from perdure.files import check_target

        check_target(out)
    from perdure.search.clock import Clock

    clock = Clock(hours, begun=begun)
    designs, left_out = _allowed(read, benchmark, constraints)
    from perdure.compare.question import asked, resumed
    from perdure.search.study import Budget

    command = shlex.join(["perdure", "compare", *words])
    comparison = resumed(runs, asked(designs, constraints, left_out, command))
    clock.earlier = comparison.seconds
    budget = Budget(
        trials=whole_number(read.options, "trials", 12, 1),
        hours=hours,
        seeds=whole_number(read.options, "seeds", 5, 1),
    )
    _carry_out(comparison, designs, read, runs, budget, clock)
    return _tell(comparison, runs, out, as_json="json" in read.options)


def _benchmark(read: Arguments) -> str:
    """The benchmark that is named, or arrays for a folder."""
    if len(read.positional) > 1:
        raise PerdureError(
            f"perdure compare takes one benchmark; methods are named by --methods {read.positional[1]},..."
        )
    if not read.positional and FOLDER not in read.options:
        check_names(read, GENERAL)
        raise PerdureError(
            "perdure compare needs a BENCHMARK (perdure list names them) or --benchmark.folder DIR."
        )
    return read.positional[0] if read.positional else "arrays"


def _constraints(read: Arguments) -> Constraints:
    from perdure.compare.question import Constraints, bytes_of

    memory = read.options.get("memory")
    return Constraints(
        "no-stored-data" in read.options,
        None if memory is None else bytes_of(memory),
        "task-unknown" in read.options,
    )


def _allowed(
    read: Arguments, benchmark: str, constraints: Constraints
) -> tuple[list[Design], dict[str, str]]:
    """Designs of the methods that meet what can be checked before training, and why others do not."""
    from perdure.compare.demands import demands
    from perdure.compare.question import METHODS
    from perdure.methods import canonical
    from perdure.registry import methods

    given = read.options.get("methods")
    named = METHODS if given is None else [word.strip() for word in given.split(",") if word.strip()]
    if not named:
        raise PerdureError("--methods names no method; write them with commas, as in --methods si,hnet.")
    names = list(dict.fromkeys(canonical(name, methods()) for name in named))
    options = dict(read.options)
    if constraints.task_unknown:
        options |= {"network.heads": "single"}
        options |= {"benchmark.labels": "shared"} if benchmark == "arrays" else {}
    asked, left_out = replace(read, positional=[benchmark, *names], options=options), {}
    designs = []
    for design in designs_of(asked, general=GENERAL):
        found = demands(design.problem.plain, design.problem.shape)
        if constraints.no_stored_data and found.stored_data:
            left_out[design.method] = "it stores samples of old tasks"
        elif constraints.task_unknown and found.task:
            left_out[design.method] = "it must be told the task at test time"
        else:
            designs.append(design)
    if not designs:
        reasons = "; ".join(f"{name}: {why}" for name, why in left_out.items())
        raise PerdureError(f"No method meets the constraints ({reasons}).")
    return designs, left_out


def _carry_out(
    comparison: Comparison, designs: list[Design], read: Arguments, runs: Path, budget: Budget, clock: Any
) -> None:
    from perdure.commands.executing import Signals, engine_of
    from perdure.compare.rounds import Rounds
    from perdure.errors import Interrupted
    from perdure.learning.engine import RunOptions

    signals = Signals()
    told: dict[str, dict[int, str]] = {design.id: {} for design in designs}
    options = RunOptions(
        stop=signals.asked,
        device=device(read.options),
        save_every=whole_number(read.options, "save-every", 20, 0),
    )
    try:
        with engine_of(read.options, runs, os.cpu_count() or 1) as engine:
            Rounds(
                comparison,
                designs,
                runs,
                lambda design, share: searched(design, runs, engine, options, share, told[design.id]),
                budget,
                engine.workers,
                clock,
                lambda text: print(text, file=sys.stderr),
            ).run()
    except Interrupted as stop:
        stop.code = signals.code
        raise


def _tell(comparison: Comparison, runs: Path, out: Path | None, *, as_json: bool) -> int:
    """Print the table and write the page."""
    from perdure.compare.answer import entries
    from perdure.compare.question import place
    from perdure.report.compared import (
        comparison_json,
        comparison_lines,
        comparison_table,
        no_result,
        write_comparison,
    )
    from perdure.report.terminal import show

    if not entries(comparison, runs):
        raise PerdureError(no_result(comparison, runs))
    path = out or place(runs, comparison.id) / PAGE
    write_comparison(path, comparison, runs)
    if as_json:
        print(json.dumps(comparison_json(comparison, runs)), flush=True)
    else:
        show(comparison_table(comparison, runs), *comparison_lines(comparison, runs))
    print(f"Page: {path}", file=sys.stderr)
    return 0
