"""An engine that pretends: it answers orders at once, by a formula instead of training."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from perdure.config import from_json
from perdure.engines.engine import Engine
from perdure.search.crew import Crew
from perdure.search.spaces import Range
from perdure.search.state import place
from perdure.search.study import Budget, Study
from perdure.search.tuning import designed
from perdure.storage.record import Record

SPACE = {"training.learning_rate": Range(1e-4, 1e-1), "penalties.si.strength": [0.01, 0.1, 1.0]}
TASKS = 3


class Lost(Exception):
    """The worker is gone."""


def quality(order: dict[str, Any]) -> float:
    """Best near a learning rate of 1e-2 and a strength of 0.1; seeds differ a little."""
    config = order["config"]
    rate, strength = config["training"]["learning_rate"], config["penalties"]["si"]["strength"]
    far = abs(math.log10(rate) + 2) + abs(math.log10(strength) + 1)
    return 90 - 10 * far - 0.1 * (config["seed"] % 7)


@dataclass
class Pretend(Engine):
    """`validation` gives the percentage of an order; `test` what the record says of test data."""

    validation: Callable[[dict[str, Any]], float] = quality
    test: Callable[[dict[str, Any]], float] = lambda order: 50.0
    upset: Callable[[dict[str, Any]], Any] = lambda order: None
    """May raise, or answer with a fault."""
    seconds: Callable[[dict[str, Any]], float] = lambda order: 1.0
    kept: Callable[[dict[str, Any]], int] = lambda order: 1000
    """Bytes kept after each task, times the number of tasks so far."""
    width: int = 4
    orders: list[dict[str, Any]] = field(default_factory=list)

    @property
    def slots(self):
        return self.width

    def lost(self, error):
        return isinstance(error, Lost)

    def submit(self, function, /, order):
        self.orders.append(order)
        future: Future[Any] = Future()
        try:
            future.set_result(self.upset(order) or self.answer(order))
        except Exception as error:
            future.set_exception(error)
        return future

    def answer(self, order):
        value = self.validation(order)
        rows = [[value] * TASKS] * TASKS
        if order["phases"] is not None:
            return {"validation": rows[: order["phases"]], "seconds": 1.0}
        tested = self.test(order)
        config = from_json(order["config"])
        record = Record(
            hash=config.hash,
            benchmark=config.benchmark.name,
            method=config.method,
            seed=config.seed,
            accuracy=[[tested] * TASKS] * TASKS,
            during=tested,
            final=tested,
            seconds=self.seconds(order),
            iterations=[1] * TASKS,
            tasks=["a", "b", "c"],
            parameters={},
            memory={},
            curves=[[]] * TASKS,
            timings=[{"train": self.seconds(order) / TASKS, "finish": 0.0, "test": 0.0}] * TASKS,
            kept=[{"weights": self.kept(order) * (task + 1)} for task in range(TASKS)],
            config=config.json,
            versions={},
            machine={},
            validation=rows,
        )
        return {"record": record.json, "folder": "", "found": False, "warnings": []}


def study(runs, engine, budget=None, space=SPACE, scale="smoke", tasks=TASKS, **rules):
    """A study of si through an engine."""
    given = {"benchmark.tasks": tasks}
    design = designed("permuted-copy", "si", space, scale, given, **rules)
    return Study(design, runs, Crew(engine, place(runs, design.id)), budget or Budget(trials=8, seeds=2))
