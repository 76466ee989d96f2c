"""Perdure: continual learning for recurrent networks and sequential data.

The public names, imported at first use (torch takes a second to load):

- `ContinualLearner` learns your own sequences task by task: learn, predict, save, load, go on;
- `build(benchmark, method, scale=..., seed=...)` makes a config; `run(config)` runs it, `run_many` several;
- `records(folder)` are the records of all finished runs, `.to_frame()` makes a pandas.DataFrame of them;
- `tune(benchmark, method, space)` searches settings by validation; `Range`, `Space` and `Budget` say what
  and how much;
- `Recurrent`, `Network`, `initialise` and `fisher` work on any sequences;
- `Sequences`, `Task` and the targets `Bits`, `Label`, `Tags` and `Value` describe data; `tasks_from` and
  `save_tasks` make tasks of your own data;
- `Penalty`, `Rehearsal`, `Term`, `Step`, `WeightSource`, `Cell`, `Architecture`, `Benchmark` and `Method` are
  the base classes of your own pieces; `register` and `load_plugin` make them known.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from perdure.benchmarks.arrays import save_tasks as save_tasks
    from perdure.benchmarks.arrays import tasks_from as tasks_from
    from perdure.benchmarks.task import Benchmark as Benchmark
    from perdure.benchmarks.task import Sequences as Sequences
    from perdure.benchmarks.task import Task as Task
    from perdure.config import build as build
    from perdure.errors import PerdureError as PerdureError
    from perdure.executors import run_many as run_many
    from perdure.experiment import run as run
    from perdure.hooks import Hook as Hook
    from perdure.hooks import PhaseContext as PhaseContext
    from perdure.hooks import PhaseEnd as PhaseEnd
    from perdure.hooks import Step as Step
    from perdure.hooks import Term as Term
    from perdure.learner.continual import ContinualLearner as ContinualLearner
    from perdure.methods import Method as Method
    from perdure.networks.bodies.body import Architecture as Architecture
    from perdure.networks.bodies.recurrent import Recurrent as Recurrent
    from perdure.networks.cells.cell import Cell as Cell
    from perdure.networks.fisher import fisher as fisher
    from perdure.networks.initialise import initialise as initialise
    from perdure.networks.network import Network as Network
    from perdure.penalties.penalty import Penalty as Penalty
    from perdure.randomness import generator as generator
    from perdure.registry import load_plugin as load_plugin
    from perdure.registry import register as register
    from perdure.rehearsal.rehearsal import Rehearsal as Rehearsal
    from perdure.search.spaces import Range as Range
    from perdure.search.spaces import Space as Space
    from perdure.search.study import Budget as Budget
    from perdure.search.tuning import tune as tune
    from perdure.storage.collection import records as records
    from perdure.targets.bits import Bits as Bits
    from perdure.targets.label import Label as Label
    from perdure.targets.tags import Tags as Tags
    from perdure.targets.value import Value as Value
    from perdure.weights.source import WeightSource as WeightSource

_HOMES = {
    "Architecture": "perdure.networks.bodies.body",
    "Benchmark": "perdure.benchmarks.task",
    "Bits": "perdure.targets.bits",
    "Budget": "perdure.search.study",
    "Cell": "perdure.networks.cells.cell",
    "ContinualLearner": "perdure.learner.continual",
    "Hook": "perdure.hooks",
    "Label": "perdure.targets.label",
    "Method": "perdure.methods",
    "Network": "perdure.networks.network",
    "Penalty": "perdure.penalties.penalty",
    "PerdureError": "perdure.errors",
    "PhaseContext": "perdure.hooks",
    "PhaseEnd": "perdure.hooks",
    "Range": "perdure.search.spaces",
    "Recurrent": "perdure.networks.bodies.recurrent",
    "Rehearsal": "perdure.rehearsal.rehearsal",
    "Sequences": "perdure.benchmarks.task",
    "Space": "perdure.search.spaces",
    "Step": "perdure.hooks",
    "Tags": "perdure.targets.tags",
    "Task": "perdure.benchmarks.task",
    "Term": "perdure.hooks",
    "Value": "perdure.targets.value",
    "WeightSource": "perdure.weights.source",
    "build": "perdure.config",
    "fisher": "perdure.networks.fisher",
    "generator": "perdure.randomness",
    "initialise": "perdure.networks.initialise",
    "load_plugin": "perdure.registry",
    "records": "perdure.storage.collection",
    "register": "perdure.registry",
    "run": "perdure.experiment",
    "run_many": "perdure.executors",
    "save_tasks": "perdure.benchmarks.arrays",
    "tasks_from": "perdure.benchmarks.arrays",
    "tune": "perdure.search.tuning",
}

__all__ = sorted(_HOMES)


def __dir__() -> list[str]:
    """The public names, for completion."""
    return __all__


def __getattr__(name: str) -> Any:
    """Import a public name at its first use."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'perdure' has no attribute '{name}'")
