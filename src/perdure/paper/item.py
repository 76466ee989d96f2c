"""What an item of the paper is: its runs, its published numbers, and what is made of the records.

One module of this folder per table or figure, each with a constant ITEM; the folder is the registry.
"""

from __future__ import annotations

import importlib
import pkgutil
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from perdure.analysis.statistics import Number, number
from perdure.benchmarks.task import Benchmark
from perdure.config import DATA_SEED, OWN_SEED, Config, build, option_names, sections_at
from perdure.errors import unknown
from perdure.options import option_text
from perdure.paper.conclusions import Claim
from perdure.paper.findings import Pair, TableCell, in_paper
from perdure.presets import BORROWED, preset_sources, sourced_options
from perdure.registry import OUTSIDE
from perdure.storage.record import Record
from perdure.storage.store import RunFolder

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DIFFERENCES = {
    "smoke": "Sizes that run in seconds: they show that everything works; the accuracies are meaningless.",
    "demo": (
        "A first impression: patterns of three steps instead of five, networks of 128 instead of 256 units, "
        "batches of 64 instead of 128, and a few hundred to a few thousand iterations. It is no result: "
        "settings were tried on seed 1001, which is not shown, some by test accuracy and towards the paper's "
        "order."
    ),
    "laptop": (
        "Far fewer iterations than in the paper, with adapted learning rates, strengths and initialisations "
        "(perdure run ... --help shows them)."
    ),
    "paper": "The published settings; docs/deviations.md lists what differs in the numerics.",
}
"""What each scale changes."""
ELSEWHERE = {
    "smoke": DIFFERENCES["smoke"],
    "laptop": "Sizes and iterations are for runs of minutes (perdure run ... --help shows them).",
    "paper": "The paper's settings where it has such an experiment.",
}
"""The scales of what the paper does not have."""


@dataclass(frozen=True)
class Setting:
    """One configuration of an item, to be run with several seeds."""

    label: str
    benchmark: str
    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options by dotted name, beyond the preset of the scale."""

    def given(self, options: Mapping[str, Any], scale: str) -> Setting:
        """The same with further options, as far as its benchmark and method have them at a scale."""
        if not options:
            return self
        kinds = sections_at(self.benchmark, self.method, scale, {**self.options, **options})
        known = option_names(kinds)
        return replace(self, options={**self.options, **{n: v for n, v in options.items() if n in known}})

    def config(self, scale: str, seed: int) -> Config:
        """The config of one seed."""
        return build(self.benchmark, self.method, scale=scale, seed=seed, **self.options)

    def configs(self, scale: str, seeds: int) -> Sequence[Config]:
        """The configs of the seeds 0 to seeds - 1."""
        options = tuple((name, _hashable(value)) for name, value in self.options.items())
        return _configs(self.benchmark, self.method, options, scale, seeds, OUTSIDE.changes)

    def problem(self, scale: str) -> Benchmark:
        """The benchmark to be learnt."""
        return self.configs(scale, 1)[0].benchmark

    def command(self, scale: str, seeds: int) -> str:
        """The command that runs it on its own."""
        options = "".join(f" --{name} {option_text(value)}" for name, value in self.options.items())
        return f"perdure run {self.benchmark} {self.method} --scale {scale} --seeds {seeds}{options}"


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@lru_cache(maxsize=4096)
def _configs(
    benchmark: str, method: str, options: tuple[tuple[str, Any], ...], scale: str, seeds: int, changes: int
) -> tuple[Config, ...]:
    """The configs of several seeds; `changes` invalidates the cache when something is registered later."""
    del changes
    given = dict(options)
    if given.get(DATA_SEED) == OWN_SEED:
        return tuple(build(benchmark, method, scale=scale, seed=seed, **given) for seed in range(seeds))
    first = build(benchmark, method, scale=scale, **given)
    return tuple(first.with_seed(seed) for seed in range(seeds))


@dataclass(frozen=True)
class FinishedRuns:
    """The finished runs of an item."""

    scale: str
    seeds: int
    runs: Path
    records: Mapping[str, Record]
    """By the config's hash."""
    given: Mapping[str, Any] = field(default_factory=dict)
    """Options that all runs were given, beyond those of their settings."""
    partial: bool = False
    """Whether seeds may be missing: then a setting has those from 0 up to the first that is not there."""

    def command(self, name: str) -> str:
        """The command that reproduces the whole item."""
        given = "".join(f" --set {option}={option_text(value)}" for option, value in self.given.items())
        return f"perdure reproduce {name} --scale {self.scale} --seeds {self.seeds}{given}"

    def of(self, setting: Setting) -> list[Record]:
        """The records of a setting, in the order of seeds."""
        configs = self._configs(setting)
        if self.partial:
            configs = list(takewhile(lambda config: config.hash in self.records, configs))
        return [self.records[config.hash] for config in configs]

    def with_own_data(self, setting: Setting) -> list[Record] | None:
        """The records of a setting with data that vary with the seed, if they exist for all seeds.

        If seeds may be missing, those from 0 up to the first that is.
        """
        configs = self._configs(setting.given({DATA_SEED: OWN_SEED}, self.scale))
        found = (RunFolder(self.runs, config.hash).record() for config in configs)
        whole = list(takewhile(lambda record: record is not None, found))
        records = [record for record in whole if record is not None]
        return records if len(records) == len(configs) or (self.partial and records) else None

    def _configs(self, setting: Setting) -> list[Config]:
        chosen = setting.given(self.given, self.scale)
        return list(chosen.configs(self.scale, self.seeds))

    def problem(self, setting: Setting) -> Benchmark:
        """The benchmark that a setting's runs have learnt."""
        return setting.given(self.given, self.scale).problem(self.scale)

    def folder(self, record: Record) -> RunFolder:
        """The folder of a record's run."""
        return RunFolder(self.runs, record.hash)

    def comparable(self, setting: Setting) -> bool:
        """Whether it can be compared with published numbers: not at smoke scale, nor on other data."""
        return self.scale != "smoke" and self.problem(setting).comparable

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
    """Which table or figure of the paper it is; begins with OUTSIDE if it is none."""
    about: str
    """What it shows, in one or two sentences."""
    scales: Sequence[str] = ("smoke", "laptop", "paper")
    """The scales at which it can be reproduced."""
    note: str = ""
    """What differs from the paper at every scale, apart from the data; empty if nothing does."""
    page: ClassVar[str] = ""
    """The name of a page of its own in docs, for what asks more than the paper; empty: it has none."""
    from_records: ClassVar[bool] = False
    """Whether its numbers can be computed from records alone, and of those that are finished so far."""

    @abstractmethod
    def settings(self, scale: str) -> list[Setting]:
        """All settings it needs, each run with every seed."""

    @abstractmethod
    def evaluate(self, results: FinishedRuns) -> tuple[list[TableCell], list[Drawn]]:
        """The cells of its table and its figures, from finished runs."""

    @abstractmethod
    def findings_of_the_paper(self, scale: str) -> Sequence[Claim]:
        """What the paper concludes from it, as contrasts of its cells."""

    def pairs(self, results: FinishedRuns) -> list[Pair]:
        """Pairs of methods, for items that compare methods."""
        del results
        return []

    def differs(self, scale: str, given: Mapping[str, Any] | None = None) -> str:
        """What is smaller than or otherwise different from the paper at a scale: data, item, settings."""
        chosen = [setting.given(given or {}, scale) for setting in self.settings(scale)]
        data = [setting.problem(scale).differs for setting in chosen]
        said = [f"{name} = {option_text(value)}" for name, value in (given or {}).items()]
        also = f"Given in addition: {', '.join(said)}." if said else ""
        size = DIFFERENCES[scale] if in_paper(self.source) else ELSEWHERE[scale]
        parts = [*data, self.note, size, _tuned(chosen, scale), also]
        return " ".join(part for part in dict.fromkeys(parts) if part)

    def seeds(self, scale: str) -> int:
        """The default number of seeds."""
        return {"smoke": 1, "demo": 1, "laptop": 5}.get(scale, 10)

    def configs(self, scale: str, seeds: int, given: Mapping[str, Any] | None = None) -> list[Config]:
        """All runs; settings take those of the given options that they have."""
        chosen = [setting.given(given or {}, scale) for setting in self.settings(scale)]
        return [config for setting in chosen for config in setting.configs(scale, seeds)]


class WithoutRuns(Item):
    """An item that is computed without training runs."""

    def settings(self, scale: str) -> list[Setting]:
        """None."""
        del scale
        return []


def _tuned(settings: Sequence[Setting], scale: str) -> str:
    """How the settings of a scale were chosen, as their presets say."""
    if scale != "laptop" or not settings:
        return ""
    kinds = Counter(_origin(setting, scale) for setting in settings)
    said = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    return f"Settings: {said}."


def _origin(setting: Setting, scale: str) -> str:
    """Where a setting's preset comes from: nowhere, a search, another's protocol, or trials by hand."""
    sources = preset_sources(setting.benchmark, setting.method, scale, setting.options)
    source = " ".join(sources)
    kinds = {
        "not tuned": "not tuned",
        "best of the three best": "from a search on seeds that are not reported, up to a last choice of "
        "three by validation accuracy on those reported",
        "search": "from a search on seeds that are not reported",
        "seed 1000": "tuned by hand on a seed that is not reported",
        "TSCIL": "from the protocol and grid of TSCIL, not tuned",
    }
    found = [said for word, said in kinds.items() if word in source]
    origin = found[0] if found else "tuned by hand on seed 0, which is among those reported"
    if "from a search" in origin and any(each.startswith(BORROWED) for each in sources):
        origin = "from a search for another method or benchmark"
    chosen_for = sourced_options(setting.benchmark, setting.method, scale, setting.options)
    others = [name for name in setting.options if not name.startswith("benchmark.")]
    changed = "search" in origin and not chosen_for.issuperset(others)
    return f"{origin}, but for values that the item sets" if changed else origin


ORDER = (
    "table-1",
    "table-2",
    "smnist",
    "smnist-rehearsal",
    "replay-samples",
    "upsampling",
    "audioset",
    "audioset-classes",
    "audioset-widths",
    "ewc-sweep",
    "pos",
    "task-identity",
    "single-head",
    "transfer",
    "flatness",
    "intuition",
    "thresholds",
    "supervised",
    "trade-off",
    "theory",
    "sampled-regulariser",
    "costs",
    "si-total-loss",
    "orthogonal",
    "permuted-difficulty",
    "copy-examples",
    "data-sets",
    "dsa",
    "newer-methods",
    "recurrences",
    "plasticity",
)
"""Items in the order of the paper, then those that it does not have; others follow by name."""


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
