"""Perdure: continual learning for recurrent networks and sequential data.

The public names, imported when they are first used (torch takes a second to load):

- `build(benchmark, method, scale=..., seed=...)` makes a config; `run(config)` runs it, `run_many` several;
- `records(folder)` are the records of all finished runs, `.to_frame()` makes a pandas.DataFrame of them;
- `Architecture`, `Network`, `initialise` and `fisher` work on any sequences;
- `Kind`, `Sequences`, `Task` describe data; `tasks_from` and `save_tasks` bring one's own.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from perdure.benchmarks.arrays import save_tasks as save_tasks
    from perdure.benchmarks.arrays import tasks_from as tasks_from
    from perdure.benchmarks.task import Kind as Kind
    from perdure.benchmarks.task import Sequences as Sequences
    from perdure.benchmarks.task import Task as Task
    from perdure.config import build as build
    from perdure.errors import PerdureError as PerdureError
    from perdure.executors import run_many as run_many
    from perdure.experiment import run as run
    from perdure.networks.fisher import fisher as fisher
    from perdure.networks.initialise import initialise as initialise
    from perdure.networks.network import Architecture as Architecture
    from perdure.networks.network import Network as Network
    from perdure.randomness import generator as generator
    from perdure.storage.collection import records as records

_HOMES = {
    "Architecture": "perdure.networks.network",
    "Kind": "perdure.benchmarks.task",
    "Network": "perdure.networks.network",
    "PerdureError": "perdure.errors",
    "Sequences": "perdure.benchmarks.task",
    "Task": "perdure.benchmarks.task",
    "build": "perdure.config",
    "fisher": "perdure.networks.fisher",
    "generator": "perdure.randomness",
    "initialise": "perdure.networks.initialise",
    "records": "perdure.storage.collection",
    "run": "perdure.experiment",
    "run_many": "perdure.executors",
    "save_tasks": "perdure.benchmarks.arrays",
    "tasks_from": "perdure.benchmarks.arrays",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """Import a public name at its first use."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'perdure' has no attribute '{name}'")
