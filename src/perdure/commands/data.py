"""perdure data: what data sets need, what is available, building caches, and checking your own data."""

from __future__ import annotations

import json
import os
from typing import Any

from perdure.commands.arguments import (
    Arguments,
    check_count,
    check_names,
    choice,
    on_off_options,
    parse,
    use_data_folder,
)
from perdure.errors import PerdureError, unknown

HELP = """\
perdure data list                 what each benchmark needs, whether it is there and intact, what is built
perdure data where                the folders of raw data and of built data, and how they were chosen
perdure data build BENCHMARK      read a benchmark's raw files and cache the result
perdure data check FOLDER         check your own data: what was found, and all faults (see docs/own-data.md)

  --data DIR           folder of raw data (default: PERDURE_DATA, or the user's cache)
  --json               list, where and check: print JSON
  --scale SCALE        build: as in perdure run (default: laptop); also takes --benchmark.NAME VALUE
  --benchmark.NAME VALUE   check: options of the benchmark arrays, such as --benchmark.kind tags
"""


def data(words: list[str]) -> int:
    """Dispatch to one of the four commands."""
    read = parse(words, switches=("json",), on_off=on_off_options(words))
    if read.help or not read.positional:
        print(HELP, end="")
        return 0 if read.help else _nothing()
    name, *read.positional = read.positional
    if name not in COMMANDS:
        raise unknown("command", f"data {name}", [f"data {known}" for known in COMMANDS])
    use_data_folder(read.options)
    return COMMANDS[name](read)


def _nothing() -> int:
    raise PerdureError(f"perdure data needs one of {', '.join(COMMANDS)}.")


def _list(read: Arguments) -> int:
    from perdure.commands.data_listing import listed, needs_text
    from perdure.report.terminal import show

    _takes(read, 0, ("json", "data"))
    found = listed()
    if "json" in read.options:
        print(json.dumps(found))
    else:
        show(needs_text(found))
    return 0


def _where(read: Arguments) -> int:
    from perdure.benchmarks.sources.folder import VARIABLE, cache_folder, data_folder

    _takes(read, 0, ("json", "data"))
    if "data" in read.options:
        chosen = "--data"
    else:
        chosen = (
            VARIABLE if os.environ.get(VARIABLE) else f"the default; change it with --data DIR or {VARIABLE}"
        )
    base = (
        "XDG_CACHE_HOME" if os.environ.get("XDG_CACHE_HOME") else "the default; change it with XDG_CACHE_HOME"
    )
    folders = {"data": (data_folder(), chosen), "built": (cache_folder() / "built", base)}
    if "json" in read.options:
        print(json.dumps({name: str(path) for name, (path, _) in folders.items()}))
        return 0
    for name, (path, reason) in folders.items():
        there = "" if path.is_dir() else ", does not exist yet"
        print(f"{name:<6} {path}  ({reason}{there})")
    return 0


def _build(read: Arguments) -> int:
    from perdure.config import build, option_names, sections
    from perdure.presets import SCALES, USUAL_SCALE

    general = ("data", "scale")
    if not read.positional:
        raise PerdureError("perdure data build needs a BENCHMARK; perdure data list shows them.")
    name = read.positional[0]
    known = [one for one in option_names(sections(name, METHOD)) if one.startswith("benchmark.")]
    _takes(read, 1, (*general, *known))
    from perdure.commands.data_listing import task_table
    from perdure.report.progress import Display
    from perdure.report.terminal import show

    scale = choice(read.options, "scale", SCALES, USUAL_SCALE)
    given: dict[str, Any] = read.values(known)
    benchmark = build(name, METHOD, scale=scale, **given).benchmark
    from perdure.benchmarks.task import check_tasks

    with Display() as display:
        tasks = benchmark.build(display.built)
    check_tasks(tasks)
    show(task_table(tasks))
    return 0


METHOD = "fine-tuning"
"""A build uses a method's presets only for the options of the benchmark; any method will do."""


def _check(read: Arguments) -> int:
    from perdure.benchmarks.arrays import Arrays
    from perdure.commands.data_check import check

    if not read.positional:
        raise PerdureError("perdure data check needs a FOLDER with one file or sub-folder per task.")
    known = [f"benchmark.{name}" for name in Arrays.model_fields if name != "folder"]
    _takes(read, 1, ("json", "data", *known))
    given = {name.removeprefix("benchmark."): value for name, value in read.values(known).items()}
    return check(read.positional[0], given, as_json="json" in read.options)


def _takes(read: Arguments, count: int, known: tuple[str, ...]) -> None:
    """Reject words and options that a command does not know."""
    check_count(read, count, "perdure data")
    check_names(read, known)


COMMANDS = {"list": _list, "check": _check, "build": _build, "where": _where}
"""The sub-commands of perdure data."""
