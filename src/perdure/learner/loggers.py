"""Callbacks that write a learner's progress for others: TensorBoard, or any logger like Weights & Biases.

`ContinualLearner(callbacks=[TensorBoard("logs")])`; the packages are in the extra `loggers`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol


class Run(Protocol):
    """What a logger like Weights & Biases offers: `wandb.init(...)`, and anything with the same method."""

    def log(self, values: dict[str, Any]) -> Any:
        """Take down numbers by name."""


class WandbLogger:
    """Writes every number to `run.log`, with the task's name before it."""

    def __init__(self, run: Run) -> None:
        """`run` is the result of wandb.init(), or anything with such a `log`."""
        self.run, self.steps = run, 0

    def on_progress(self, task: str, iteration: int, values: Mapping[str, float]) -> None:
        """Losses and validation score of the lesson; iterations are counted over all lessons."""
        self.run.log(
            {f"{task}/{name}": value for name, value in values.items()}
            | {"iteration": self.steps + iteration, "task": task}
        )

    def on_end(self, task: str, result: Mapping[str, float]) -> None:
        """What the lesson ended with."""
        self.steps += int(result["iterations"])
        self.run.log({f"{task}/end/{name}": value for name, value in result.items()})


class TensorBoard:
    """Writes event files for TensorBoard, with a curve for each task."""

    def __init__(self, folder: Path | str) -> None:
        """Begin a new event file; needs the package tensorboard."""
        from torch.utils.tensorboard import SummaryWriter

        self.writer: Any = SummaryWriter(str(folder))

    def on_progress(self, task: str, iteration: int, values: Mapping[str, float]) -> None:
        """Losses and validation score of the lesson."""
        for name, value in values.items():
            self.writer.add_scalar(f"{task}/{name}", value, iteration)

    def on_end(self, task: str, result: Mapping[str, float]) -> None:
        """What the lesson ended with."""
        for name, value in result.items():
            self.writer.add_scalar(f"{task}/end/{name}", value, int(result["iterations"]))
        self.writer.flush()
