"""perdure run: learn the tasks of a benchmark with a method, for one or several seeds."""

from __future__ import annotations

import json
import os
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
from perdure.commands.showing import plot
from perdure.errors import PerdureError

if TYPE_CHECKING:
    from perdure.config import Config
    from perdure.experiment import RunResult

HELP = """\
perdure run BENCHMARK METHOD: learn a benchmark's tasks one after the other

  BENCHMARK            such as permuted-copy; perdure list shows all
  METHOD               such as fine-tuning, or methods joined by +, such as masking+si

  --seed S             seed of the run (default: 0)
  --seeds N            run seeds 0 to N-1 instead
  --scale SCALE        smoke (seconds), laptop (default, minutes) or paper (the paper's settings)
  --workers N          processes, each with one thread (default: 1)
  --runs DIR           folder of records (default: runs)
  --data DIR           folder of raw data (default: PERDURE_DATA, or the user's cache)
  --device DEVICE      auto, cpu or cuda (default: auto)
  --plot FILE          draw the accuracy matrix (.png, .pdf or .svg; one seed only)
  --json               one JSON object per run on standard output, progress on standard error
  --force              run again even if a finished record exists
  --save-every SECONDS time between checkpoints (default: 20)
  --plugin FILE        a Python file with your own pieces; may be given several times

perdure run BENCHMARK METHOD --help lists every option of the benchmark, the network and the method.
An interrupted run continues where it stopped when the same command is given again.
"""

SWITCHES = ("json", "force")
GENERAL = (*SWITCHES, "seed", "seeds", "scale", "workers", "runs", "data", "device", "plot", "save-every")


def running(words: list[str]) -> int:
    """Parse, run, print."""
    read = parse(words, switches=SWITCHES, on_off=on_off_options(words))
    if len(read.positional) < 2:
        if read.help:
            print(HELP, end="")
            return 0
        raise PerdureError("perdure run needs a BENCHMARK and a METHOD; perdure list shows them.")
    if len(read.positional) > 2:
        raise PerdureError(
            f"perdure run takes two names, but a third, '{read.positional[2]}', is given; "
            f"options start with two dashes."
        )
    from perdure.config import option_names, sections
    from perdure.presets import SCALES

    known = option_names(sections(read.positional[0], read.positional[1], read.options))
    scale = choice(read.options, "scale", SCALES, "laptop")
    if read.help:
        from perdure.commands.options import print_options

        print(HELP)
        print_options(read.positional[0], read.positional[1], scale)
        return 0
    check_names(read, [*GENERAL, *known])
    use_data_folder(read.options)
    configs = _configs(read, scale)
    from perdure.report.figures import check_format

    figure = path_option(read.options, "plot")
    if figure is not None:
        check_format(figure)
        if len(configs) > 1:
            raise PerdureError("--plot draws one run; use --seed instead of --seeds.")
    from perdure.commands.executing import execute

    done = execute(
        configs,
        runs_folder(read.options),
        workers=whole_number(read.options, "workers", 1, 1),
        device=device(read.options),
        force="force" in read.options,
        save_every=whole_number(read.options, "save-every", 20, 0),
    )
    _print(done, read)
    return 0


def _configs(read: Arguments, scale: str) -> list[Config]:
    """One config per seed."""
    from perdure.config import build

    if "seed" in read.options and "seeds" in read.options:
        raise PerdureError("Use --seed S for one run or --seeds N for several, not both.")
    seeds = [whole_number(read.options, "seed", 0, 0)]
    if "seeds" in read.options:
        seeds = list(range(whole_number(read.options, "seeds", 1, 1)))
    values: dict[str, Any] = read.values(name for name in read.options if name not in GENERAL)
    return [build(*read.positional, scale=scale, seed=seed, **values) for seed in seeds]


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
