"""Print accuracies and the ratio of an iteration's time: python -m performance.peers, or make peers."""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from perdure.networks.native.library import describe
from performance.clock import line
from performance.peers import ours
from performance.peers.setting import BATCH, TRAIN, make_tasks

PAIRS = {
    "fine-tuning": "naive",
    "online-ewc": "EWC",
    "si": "SI",
    "er": "replay",
    "coresets": "replay",
    "lwf": "LwF",
}
"""Our methods, and avalanche-lib's names of the same, or of what comes nearest."""
BOUND = 1.8


def main() -> int:
    """Run everything; returns the exit code."""
    options = _options()
    try:
        from performance.peers import theirs
    except (ImportError, RuntimeError) as error:  # missing, or compiled for another torch
        print(f"skipped: avalanche-lib cannot be imported ({error}); see the extra 'peers' in pyproject.toml")
        return 0
    warnings.filterwarnings("ignore", module="avalanche")  # no loggers, and functions it will rename
    torch.set_num_threads(1)
    print(f"avalanche-lib {version('avalanche-lib')}, torch {torch.__version__}, kernels: {describe()}")
    print(f"load of the machine: {_load()} on {os.cpu_count()} cores; one thread each; ", end="")
    print(f"{options.rounds} rounds of 5 tasks x {options.iterations} iterations, taking turns by the task")
    print(f"{'ours':<12} {'ms':>6} {'final':>7}   {'theirs':<7} {'ms':>6} {'final':>7}")
    kept = []
    for method, rival in PAIRS.items():
        if rival not in options.only:
            continue
        ratio = _compare(theirs, method, rival, options)
        what = f"{rival} of avalanche-lib / {method}, an iteration"
        kept.append(line(what, ratio, BOUND, at_least=True))
    print(f"{sum(kept)} of {len(kept)} bounds kept; load now: {_load()}")
    return 0 if all(kept) else 1


def _compare(theirs: Any, method: str, rival: str, options: argparse.Namespace) -> float:
    """Print times and accuracies of a pair; returns the median ratio of their times.

    They take turns: ours learns a task, theirs learns it, and so on. A ratio is of two neighbours, and the
    first task does not count, since a method has nothing to protect in it.
    """
    pace: list[tuple[float, float]] = []
    finals: list[tuple[float, float]] = []
    for seed in range(options.rounds):
        tasks = make_tasks(seed)
        other = theirs.Rival(rival, tasks, seed, options.iterations, fused=options.fused)
        with tempfile.TemporaryDirectory() as folder:
            data = ours.write_tasks(tasks, Path(folder) / "data")
            own, final = ours.learn(
                method, data, Path(folder) / "runs", seed, options.iterations, other.learn
            )
        pace += list(zip(own, other.pace, strict=True))[1:]
        finals.append((final, other.accuracy()))
    times = [statistics.median(side) for side in zip(*pace, strict=True)]
    means = [statistics.mean(side) for side in zip(*finals, strict=True)]
    print(f"{method:<12} {times[0]:6.2f} {means[0]:7.2f}   {rival:<7} {times[1]:6.2f} {means[1]:7.2f}")
    return statistics.median(b / a for a, b in pace)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m performance.peers", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="seeds; more are better on a busy machine")
    parser.add_argument("--iterations", type=int, default=200, help="of each task")
    parser.add_argument("--fused", action="store_true", help="fused Adam for avalanche-lib, too")
    rivals = list(dict.fromkeys(PAIRS.values()))
    parser.add_argument("--only", nargs="+", choices=rivals, default=rivals, help="of theirs; all by default")
    options = parser.parse_args()
    epoch = TRAIN // BATCH
    if options.iterations < epoch or options.iterations % epoch:
        parser.error(
            f"--iterations {options.iterations}: avalanche-lib needs a multiple of {epoch}, an epoch."
        )
    if options.rounds < 1:
        parser.error(f"--rounds {options.rounds}: at least one is needed.")
    return options


def _load() -> str:
    """The mean number of running processes over the last minute."""
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


if __name__ == "__main__":
    sys.exit(main())
