"""tune(benchmark, method): a search from Python, in one call."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from perdure.config import check_texts
from perdure.engines.engine import Engine
from perdure.engines.opening import opened
from perdure.errors import PerdureError, unknown
from perdure.methods import canonical
from perdure.presets import USUAL_SCALE
from perdure.registry import methods
from perdure.search.crew import Crew
from perdure.search.problem import Problem
from perdure.search.samplers import SAMPLERS
from perdure.search.spaces import Space, Values, file_space, grid_space
from perdure.search.state import Design, Search, place
from perdure.search.study import Budget, Study

AnySpace = Space | Mapping[str, object] | str | Path | None
RULES = ("sampler", "seed", "tuning_seeds", "halving", "margin")
"""Fields of a design that say how to search, not what."""


def tune(
    benchmark: str,
    method: str,
    space: AnySpace = None,
    *,
    scale: str = USUAL_SCALE,
    runs: Path | str = "runs",
    budget: Budget | None = None,
    workers: int = 1,
    engine: Engine | None = None,
    **more: Any,
) -> Search:
    """Search the settings of a method, or resume a search, and return its final state.

    The space is a mapping from option names to `Range`, lists of alternatives or single values, a `Space`, a
    TOML file, or not given: the paper's table for the benchmark. Further keywords are fixed options,
    as in `build`, and `sampler`, `seed`, `tuning_seeds` (a tuple), `halving` and `margin` of the design.
    `workers` are processes of this machine; any other `engine` may be given instead, and stays open.
    """
    check_texts(benchmark=benchmark, method=method, scale=scale)
    if budget is not None and not isinstance(budget, Budget):
        raise PerdureError(f"budget: must be a Budget, such as perdure.Budget(trials=5) (given: {budget!r}).")
    rules = {name: value for name, value in more.items() if name in RULES}
    given = {name.replace("__", "."): value for name, value in more.items() if name not in RULES}
    design = designed(benchmark, method, space, scale, given, **rules)
    folder = Path(runs)
    with nullcontext(engine) if engine is not None else opened(workers) as chosen:
        return Study(design, folder, Crew(chosen, place(folder, design.id)), budget or Budget()).run()


def designed(benchmark: str, method: str, space: AnySpace, scale: str, given: Values, **rules: Any) -> Design:
    """The design of a search, validated."""
    name = canonical(method, methods())
    problem = Problem(benchmark, name, scale, given)
    design = Design(
        benchmark, name, scale, given, problem.plain.hash, problem.checked(_space(problem, space)), **rules
    )
    if design.sampler not in SAMPLERS:
        raise unknown("sampler", design.sampler, SAMPLERS)
    if design.halving and design.sampler == "tpe":
        raise PerdureError("Halving compares many trials at once; use it with --sampler grid or random.")
    if not design.tuning_seeds:
        raise PerdureError("A search needs at least one tuning seed.")
    if design.sampler == "grid":
        next(iter(design.space.every(problem.holds)))  # a range is refused before anything runs
    return design


def _space(problem: Problem, space: AnySpace) -> Space:
    """The space as a `Space`, without fixed options."""
    if isinstance(space, Space):
        found = space
    elif isinstance(space, Mapping):
        found = Space.of(space, "given")
    elif space is None:
        found = grid_space(problem.benchmark, problem.method, problem.scale)
    else:
        found = file_space(Path(space), problem.method, problem.scale)
    free = tuple(each for each in found.dimensions if each.name not in problem.given)
    return Space(free, found.source, found.limits)
