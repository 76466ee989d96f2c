"""Online prediction: hidden states of a batch of streams, one step at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from perdure.benchmarks.sources.own.given import plain
from perdure.config import Config
from perdure.experiment import threads
from perdure.learner.faults import wrong, wrong_type
from perdure.learner.knowledge import Knowledge
from perdure.learner.plain import Layer, plain_network
from perdure.learner.sequences import Inputs


class Streams:
    """The states of N streams in the network of one task."""

    def __init__(self, config: Config, knowledge: Knowledge, task: str, count: int) -> None:
        """All streams at their start."""
        self.module = plain_network(config, knowledge, task)
        layers = [layer for layer in self.module.layers if isinstance(layer, Layer)]
        if any(layer.recurrent.bidirectional for layer in layers):
            raise wrong("task", "a network that reads in both directions needs whole sequences; use predict.")
        self.knowledge, self.task, self.count, self.layers = knowledge, task, count, layers
        self.states: list[tuple[Tensor, ...]] = []
        self.reset(None)

    def reset(self, streams: Any) -> None:
        """Put some streams, by number, or all of them, back to their start."""
        if streams is None:
            self.states = [self._start(layer) for layer in self.layers]
            return
        try:
            chosen = np.atleast_1d(np.asarray(plain(streams)))
            chosen = chosen.astype(np.int64) if not chosen.size else chosen
            self.states[0][0].numpy()[0, chosen]
        except (IndexError, ValueError, TypeError):
            raise wrong("streams", f"{streams!r} are not numbers of the {self.count} streams.") from None
        for states in self.states:
            for state in states:
                state[:, torch.from_numpy(chosen)] = 0

    def _start(self, layer: Layer) -> tuple[Tensor, ...]:
        zero = torch.zeros(1, self.count, layer.recurrent.hidden_size)
        return (zero, zero.clone()) if isinstance(layer.recurrent, torch.nn.LSTM) else (zero,)

    @torch.no_grad()
    def step(self, x: Tensor) -> Tensor:
        """Logits [N, outputs] after one more step x [N, F] of each stream."""
        module = self.module
        with threads(1):
            rows = module.before(module.scale(x[:, None]))
            for number, layer in enumerate(self.layers):
                before = self.states[number]
                rows, after = layer.recurrent(rows, before if len(before) == 2 else before[0])
                self.states[number] = after if isinstance(after, tuple) else (after,)
                rows = layer.readout(rows)
            logits: Tensor = module.answer.head(module.after(rows))
        return logits[:, 0]

    def answers(self, logits: Tensor) -> Any:
        """Predictions [N], or [N, outputs] for bits and several values."""
        form = self.knowledge.formats[self.task]
        one = Inputs(np.zeros((self.count, 1, 1)), np.ones(self.count, np.int64), listed=False)
        answers = form.predicted(logits[:, None], one)
        return answers[:, 0] if answers.ndim > 1 and answers.shape[1] == 1 and not form.offset else answers


def begun(streams: Mapping[str, Streams], task: str | None) -> Streams:
    """The streams of a task, which need not be named if only one has any."""
    if not streams:
        raise wrong("streams", "no stream has begun; call step first.")
    if task is None and len(streams) > 1:
        raise wrong("task", f"streams of {', '.join(streams)} have begun; name the task of those to reset.")
    task = next(iter(streams)) if task is None else task
    if task not in streams:
        raise wrong("streams", f"no stream of '{task}' has begun; call step first.")
    return streams[task]


def read_step(x: Any, features: int, count: int | None) -> Tensor:
    """One step of each stream: [N, F], or [F] for a single one."""
    try:
        array = np.asarray(plain(x))
    except ValueError:
        raise wrong("x", "its rows have different sizes; give [N, F], one step of each stream.") from None
    if array.dtype.kind not in "biuf":
        raise wrong_type("x", f"it holds {array.dtype}; a step is made of real numbers.")
    array = array[None] if array.ndim == 1 else array
    if array.ndim != 2 or array.shape[1] != features or not len(array):
        raise wrong("x", f"it has shape {array.shape}, but must be [N, {features}], one step of each stream.")
    if count is not None and len(array) != count:
        raise wrong("x", f"there are {count} streams, but these are {len(array)}; call reset to begin again.")
    values = array.astype(np.float32)
    if not np.isfinite(values).all():
        raise wrong("x", "it holds NaN or infinite numbers.")
    return torch.from_numpy(values)
