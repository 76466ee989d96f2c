"""What a benchmark promises."""

from __future__ import annotations

from perdure.benchmarks.task import Benchmark, check_tasks


def check_benchmark(benchmark: Benchmark) -> None:
    """A benchmark's tasks keep the contract of tasks, and are the same each time."""
    first, second = benchmark.build(), benchmark.build()
    check_tasks(first)
    assert len({task.name for task in first}) == len(first), "two tasks have the same name"
    for one, two in zip(first, second, strict=True):
        for split in ("train", "val", "test"):
            ours, again = getattr(one, split), getattr(two, split)
            assert ours.x.tobytes() == again.x.tobytes(), f"{one.name}: x differs from build to build"
            assert ours.y.tobytes() == again.y.tobytes(), f"{one.name}: y differs from build to build"
