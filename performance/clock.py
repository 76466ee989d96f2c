"""Timing two ways of doing the same thing against each other on a noisy machine."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch

from perdure.networks.native.library import function

ROUNDS = 1_000_000
"""Multiply-adds of each chain while the peak is measured: some tens of milliseconds."""

Job = Callable[[], object]


def seconds(jobs: dict[str, Job], rounds: int = 15) -> dict[str, float]:
    """Median seconds of each job; jobs take turns, so that a slow moment hits all of them.

    Seconds are those that this thread spent on a processor: what others take on a shared machine is not
    counted, only that they slow caches down. Everything here runs in one thread.

    In its turn a job runs twice and the second run counts: in a training loop, too, an iteration follows the
    same iteration, not another method that emptied the cache.
    """
    torch.set_num_threads(1)
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for turn in range(rounds + 2):
        for name, job in jobs.items():
            job()
            begun = time.thread_time()
            job()
            if turn >= 2:  # the first two rounds warm caches up
                times[name].append(time.thread_time() - begun)
    return {name: statistics.median(values) for name, values in times.items()}


def line(what: str, ratio: float, bound: float, *, at_least: bool = False) -> bool:
    """Print a ratio and its bound; returns whether it is within the bound."""
    kept = ratio >= bound if at_least else ratio <= bound
    word = "at least" if at_least else "at most"
    print(f"{'ok ' if kept else 'NO '} {what:<68} {ratio:6.2f}  ({word} {bound})", flush=True)
    return kept


def peak() -> float:
    """Floating-point operations per second of one thread in single precision, as far as arithmetic allows.

    Multiply-adds on registers alone, with the widest instructions that the kernels use. Not a product in
    torch: on some processors that does not use all of them. Without native kernels there is nothing else.
    """
    result, operations = torch.zeros(1), torch.zeros(1, dtype=torch.float64)
    run = function("multiply_adds", result)
    if run is None:
        one, other = torch.rand(1024, 1024), torch.rand(1024, 1024)
        return 2 * 1024**3 / seconds({"product": lambda: one @ other})["product"]
    took = seconds({"sums": lambda: run(ROUNDS, result.data_ptr(), operations.data_ptr())})["sums"]
    return operations.item() / took
