"""The parameters of a learner: which there are, and the config that they describe."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from perdure.config import Config, build
from perdure.errors import PerdureError
from perdure.learner.answers import unknown_kind
from perdure.learner.faults import in_python, wrong, wrong_type

PARAMETERS = (
    "method",
    "network",
    "training",
    "options",
    "target",
    "validation",
    "standardise",
    "seed",
    "verbose",
    "callbacks",
)
"""Names of the constructor's parameters."""
CALLS = ("on_start", "on_progress", "on_end")
"""What a callback may have; see `telling`."""


def configured(given: Mapping[str, Any]) -> Config:
    """The config of parameters; errors name the parameter."""
    method, validation = given["method"], given["validation"]
    if not isinstance(method, str):
        raise wrong_type("method", f"it is a {type(method).__name__}; give a name, such as 'hnet'.")
    if error := unknown_kind(given["target"]):
        raise error
    _check_manner(given)
    if not isinstance(validation, float) or not 0 < validation < 0.5:
        raise wrong("validation", f"{validation!r} is not a fraction between 0 and 0.5.")
    values = _values(given)
    seed = given["seed"]
    try:
        config = build("arrays", method, seed=int(seed) if isinstance(seed, np.integer) else seed, **values)
    except PerdureError as error:
        argument, said = _whose(str(error), given["options"] or {})
        raise wrong(argument, in_python(said)) from None
    if config.network.heads == "growing":  # a learner counts the classes of each task from 0
        raise wrong(
            "network",
            "a learner has no growing head; use {'heads': 'multi'}, where the task is given or inferred, or "
            "{'heads': 'single'}, if all tasks have the same classes.",
        )
    return config


def _values(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of all three arguments by dotted name, each of them given once."""
    values: dict[str, Any] = {}
    for section in ("network", "training", "options"):
        options = given[section] or {}
        if not isinstance(options, Mapping):
            raise wrong_type(section, "give a mapping from option to value, such as {'hidden': 64}.")
        prefix = "" if section == "options" else f"{section}."
        for name, value in options.items():
            dotted = f"{prefix}{name}"
            if error := _misplaced(section, dotted, dotted in values):
                raise error
            values[dotted] = value
    return values


def _misplaced(section: str, name: str, twice: bool) -> PerdureError | None:
    """The error for an option that has no meaning here."""
    if name == "seed":
        return wrong(section, "'seed' is an argument of its own: ContinualLearner(seed=...).")
    if twice:
        return wrong(section, f"'{name}' is given twice; leave one of the two out.")
    if name.startswith("benchmark."):
        return wrong(
            section,
            f"'{name}' is for data from files; a learner is given its data by learn(), and how it reads "
            f"them by its own arguments, such as validation, standardise and target.",
        )
    return None


def _whose(said: str, options: Mapping[str, Any]) -> tuple[str, str]:
    """The argument of which an error of the config speaks, and what it says of it."""
    if said.startswith("seed: "):
        return "seed", said.removeprefix("seed: ")
    if any(said.startswith(name) or f"'{name}'" in said for name in options):
        return "options", said
    found = re.match(r"(?:Unknown option ')?(network|training)\.", said)
    return (found[1], said.removeprefix(f"{found[1]}.")) if found else ("method", said)


def _check_manner(given: Mapping[str, Any]) -> None:
    """Raise if a parameter that is not part of the config has the wrong type."""
    for name, kind, right in (("verbose", int, "0 or 1"), ("standardise", bool, "True or False")):
        if not isinstance(given[name], kind):
            raise wrong_type(name, f"it is {given[name]!r}; give {right}.")
    callbacks = given["callbacks"]
    if not isinstance(callbacks, (list, tuple)):
        raise wrong_type("callbacks", f"it is a {type(callbacks).__name__}; give a list of callbacks.")
    for each in callbacks:
        if not any(hasattr(each, method) for method in CALLS):
            raise wrong_type("callbacks", f"a {type(each).__name__} has none of {', '.join(CALLS)}.")


def written(given: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as JSON; callbacks are code and are not saved."""
    return {name: _plain(value) for name, value in given.items() if name != "callbacks"}


def _plain(value: Any) -> Any:
    """A value as JSON can hold it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if hasattr(value, "plain"):
        return {"name": value.name, **value.plain()}
    return value.item() if hasattr(value, "item") else value
