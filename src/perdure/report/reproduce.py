"""The command that repeats a run: the nearest scale, and only the options that differ from it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from perdure.config import build
from perdure.errors import PerdureError
from perdure.identity import PLACE
from perdure.options import option_text
from perdure.presets import SCALES, USUAL_SCALE
from perdure.registry import Origin, plugin_words
from perdure.storage.record import Record

ROUNDS = 4
"""An option can select a variant of a preset, which changes further options."""


Values = dict[str, Any]


def command_of(record: Record) -> str:
    """A shell command."""
    settings = {name: value for name, value in record.config.items() if name != "seed"}
    words = _words(record.benchmark, record.method, json.dumps(settings, sort_keys=True))
    plugins = plugin_words(Origin(*pair) for pair in record.config.get("plugins", {}).items())
    named = ["perdure", "run", record.benchmark, record.method, *words, "--seed", str(record.seed), *plugins]
    return shlex.join(named)


def option_values(config: Mapping[str, Any]) -> Values:
    """All options of a config's JSON by dotted name, such as training.iterations."""
    flat: Values = {}
    for section in ("benchmark", "network", "weights", "rehearsal", "training"):
        flat |= _prefixed(config.get(section), section)
    penalties = config.get("penalties")
    for name, values in (penalties if isinstance(penalties, Mapping) else {}).items():
        flat |= _prefixed(values, f"penalties.{name}")
    return flat


def _prefixed(values: object, section: str) -> Values:
    flat: Values = {}
    for field, value in values.items() if isinstance(values, Mapping) else ():
        name = f"{section}.{field}"
        if isinstance(value, Mapping):  # a piece with options of its own, such as network.cell
            flat |= {name: value.get("name"), **_prefixed(value, name)}
        elif field != "name":
            flat[name] = value
    return flat


@lru_cache(maxsize=1024)
def _words(benchmark: str, method: str, settings: str) -> tuple[str, ...]:
    """Scale and options; the same for all seeds of a config."""
    wanted = option_values(json.loads(settings))
    best: tuple[str, Values] | None = None
    for scale in (USUAL_SCALE, *(name for name in SCALES if name != USUAL_SCALE)):
        given = _differences(benchmark, method, scale, wanted)
        if given is not None and (best is None or len(given) < len(best[1])):
            best = scale, given
    scale, given = (best[0], _needed(benchmark, method, *best)) if best else (USUAL_SCALE, wanted)
    words = [] if scale == USUAL_SCALE else ["--scale", scale]
    for name, value in given.items():
        words += [f"--{name}", option_text(value)]
    return tuple(words)


def _differences(benchmark: str, method: str, scale: str, wanted: Values) -> Values | None:
    """The options needed at a scale; None if the config cannot be obtained."""
    given: Values = {}
    try:
        for _ in range(ROUNDS):
            made = option_values(build(benchmark, method, scale=scale, **given).json)
            different = {name: value for name, value in wanted.items() if made.get(name, ...) != value}
            if not different:
                return given
            given |= different
    except PerdureError:
        pass
    return None


def _needed(benchmark: str, method: str, scale: str, given: Values) -> Values:
    """Without the options implied by others, such as those of a preset's variant.

    Where the data are stays: it does not count in the hash, but without it nothing can be run.
    """
    whole = build(benchmark, method, scale=scale, **given)
    for name in reversed([name for name in given if name != f"benchmark.{PLACE}"]):
        fewer = {other: value for other, value in given.items() if other != name}
        try:
            follows = build(benchmark, method, scale=scale, **fewer).hash == whole.hash
        except PerdureError:  # some options are valid only together
            follows = False
        given = fewer if follows else given
    return given
