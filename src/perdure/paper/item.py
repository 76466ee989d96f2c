"""What an item of the paper is: its runs, its published numbers, and what is made of the records.

One module of this folder per table or figure, each with a constant ITEM; the folder is the registry.
"""

from __future__ import annotations

import importlib
import pkgutil
import zlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from perdure.analysis.statistics import Number, number
from perdure.benchmarks.task import Benchmark
from perdure.config import Config, build
from perdure.errors import unknown
from perdure.options import option_text
from perdure.paper.findings import Pair, TableCell
from perdure.storage.record import Record
from perdure.storage.store import RunFolder

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DIFFERENCES = {
    "smoke": "Sizes that run in seconds: they show that everything works; the accuracies are meaningless.",
    "laptop": (
        "Far fewer iterations than in the paper, with adapted learning rates, strengths and initialisations, "
        "chosen on seed 0 (perdure run ... --help shows them)."
    ),
    "paper": "The published settings; docs/deviations.md lists what differs in the numerics.",
}
"""What each scale changes."""


@dataclass(frozen=True)
class Setting:
    """One configuration of an item, to be run with several seeds."""

    label: str
    benchmark: str
    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options by dotted name, beyond the preset of the scale."""

    def config(self, scale: str, seed: int) -> Config:
        """The config of one seed."""
        return build(self.benchmark, self.method, scale=scale, seed=seed, **self.options)

    def problem(self, scale: str) -> Benchmark:
        """The benchmark to be learnt."""
        return self.config(scale, 0).benchmark

    def command(self, scale: str, seeds: int) -> str:
        """The command that runs it on its own."""
        options = "".join(f" --{name} {option_text(value)}" for name, value in self.options.items())
        return f"perdure run {self.benchmark} {self.method} --scale {scale} --seeds {seeds}{options}"


@dataclass(frozen=True)
class FinishedRuns:
    """The finished runs of an item."""

    scale: str
    seeds: int
    runs: Path
    records: Mapping[str, Record]
    """By the config's hash."""

    def command(self, name: str) -> str:
        """The command that reproduces the whole item."""
        return f"perdure reproduce {name} --scale {self.scale} --seeds {self.seeds}"

    def of(self, setting: Setting) -> list[Record]:
        """The records of a setting, in the order of seeds."""
        return [self.records[setting.config(self.scale, seed).hash] for seed in range(self.seeds)]

    def folder(self, record: Record) -> RunFolder:
        """The folder of a record's run."""
        return RunFolder(self.runs, record.hash)

    def comparable(self, setting: Setting) -> bool:
        """Whether it can be compared with published numbers: not at smoke scale, nor on other data."""
        return self.scale != "smoke" and setting.problem(self.scale).comparable

    def number(self, setting: Setting, column: str) -> Number:
        """A column of the records, `during` or `final`, as a number over seeds."""
        return number(self.values(setting, column))

    def values(self, setting: Setting, column: str) -> list[float]:
        """A column of the records, in the order of seeds."""
        return [getattr(record, column) for record in self.of(setting)]


def draws(*role: str) -> np.random.Generator:
    """A generator for the statistics of a role, such as a row and a column."""
    return np.random.default_rng(zlib.crc32("/".join(role).encode()))


@dataclass(frozen=True)
class Drawn:
    """A finished figure with its title and caption."""

    name: str
    title: str
    caption: str
    figure: Figure


class Item(ABC):
    """A table or figure of the paper."""

    title: str
    source: str
    """Which table or figure of the paper it is."""
    about: str
    """What it shows, in one or two sentences."""
    note: str = ""
    """What differs from the paper at every scale, apart from the data; empty if nothing does."""

    @abstractmethod
    def settings(self, scale: str) -> list[Setting]:
        """All settings it needs, each run with every seed."""

    @abstractmethod
    def evaluate(self, results: FinishedRuns) -> tuple[list[TableCell], list[Drawn]]:
        """The cells of its table and its figures, from finished runs."""

    def pairs(self, results: FinishedRuns) -> list[Pair]:
        """Pairs of methods, for items that compare methods."""
        del results
        return []

    def differs(self, scale: str) -> str:
        """What is smaller than or otherwise different from the paper at a scale: data, item, settings."""
        data = [setting.problem(scale).differs for setting in self.settings(scale)]
        return " ".join(part for part in dict.fromkeys([*data, self.note, DIFFERENCES[scale]]) if part)

    def seeds(self, scale: str) -> int:
        """The default number of seeds."""
        return {"smoke": 1, "laptop": 3}.get(scale, 10)

    def configs(self, scale: str, seeds: int) -> list[Config]:
        """All runs."""
        return [setting.config(scale, seed) for setting in self.settings(scale) for seed in range(seeds)]


ORDER = (
    "table-1",
    "table-2",
    "smnist",
    "smnist-rehearsal",
    "upsampling",
    "audioset",
    "audioset-classes",
    "ewc-sweep",
    "pos",
    "task-identity",
    "single-head",
    "transfer",
    "flatness",
    "intuition",
    "supervised",
    "theory",
    "sampled-regulariser",
)
"""Items in the order of the paper; others follow by name."""


def items() -> dict[str, Item]:
    """All items by name."""
    found: dict[str, Item] = {}
    package = importlib.import_module("perdure.paper.items")
    for module in pkgutil.iter_modules(package.__path__, "perdure.paper.items."):
        item = getattr(importlib.import_module(module.name), "ITEM", None)
        if isinstance(item, Item):
            found[module.name.rpartition(".")[2].replace("_", "-")] = item
    places = {name: place for place, name in enumerate(ORDER)}
    return dict(sorted(found.items(), key=lambda pair: (places.get(pair[0], len(places)), pair[0])))


def find_item(name: str) -> Item:
    """The item of that name; raises a helpful error if there is none."""
    known = items()
    if name not in known:
        raise unknown("item of the paper", name, known)
    return known[name]
