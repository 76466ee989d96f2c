"""Targets by name; the folder is the registry."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from functools import cache

from perdure.errors import unknown
from perdure.targets.target import Target


@cache
def all_targets() -> dict[str, Target]:
    """Each target defined by a file in this folder, by name."""
    package = __name__.rpartition(".")[0]
    found: dict[str, Target] = {}
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__, package + "."):
        for item in vars(importlib.import_module(module.name)).values():
            if isinstance(item, type) and issubclass(item, Target) and not inspect.isabstract(item):
                found[item.name] = item()
    return found


def find_target(target: Target | str) -> Target:
    """The target of that name; a target is returned as it is."""
    if isinstance(target, Target):
        return target
    known = all_targets()
    if target not in known:
        raise unknown("target", str(target), sorted(known))
    return known[target]
