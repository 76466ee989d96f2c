"""Supervised dimensionality reduction (SM "Determining task-relevant intrinsic dimensionality").

How many dimensions of the hidden space do the outputs need? A matrix U [H, n] is found column by column: a
new column starts at random, orthogonal to the previous ones, and is trained so that the network, given
U U^T h_t in place of h_t, still solves its tasks; the previous columns stay fixed. The curve shows what n
columns achieve. (The original starts the first column at the first unit, which a sub-network may not have.)
The search is greedy: where heads are very confident a column can get stuck in a direction that no head
reads, so the curve is a lower bound of what n dimensions can achieve.

`all`: every h_t is projected, and only the readout follows. `stop`: h is projected once, at the stop bit, and
the recurrence continues from there; this is for unidirectional networks whose state is h alone (Elman).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from perdure.analysis.states import chosen, traced
from perdure.errors import PerdureError
from perdure.learning.evaluate import Score, scored
from perdure.networks.batch import FORWARD_BATCH, Batch, Data, pack_batch
from perdure.networks.bodies.recurrent import Recurrent
from perdure.networks.cells.cell import Cell
from perdure.networks.layout import Weights
from perdure.networks.network import Network
from perdure.networks.tape import Tape
from perdure.networks.targets import negative_log_likelihood
from perdure.targets.target import Target

Place = Literal["all", "stop"]


@dataclass(frozen=True)
class ServedTask:
    """A task that the reduced states must serve: its network and psi, and data to fit and to test on."""

    network: Network
    weights: Weights
    task: int
    train: Data
    test: Data
    units: Tensor | None = None
    """Which of the H units of the whole network a sub-network (masking) has; None: all."""


@dataclass(frozen=True)
class Fitting:
    """How columns are trained; the defaults are the original's."""

    columns: int | None = None
    """Maximum number of columns; None: the number of units."""
    iterations: int = 100
    """Adam steps per column."""
    learning_rate: float = 0.01
    orthogonality: float = 1000.0
    """Factor of ||U^T U - I||_F^2 in addition to the summed task losses (the paper's 1 / gamma)."""
    batch_size: int = 64
    """Training samples per task in one step."""
    samples: int = 5000
    """Random training samples per task, whose states are computed once and drawn from."""
    place: Place = "all"


class Reduction(NamedTuple):
    """The columns, and the results with the first 1, 2, ... of them, as means over the tasks."""

    basis: Tensor
    """U [H, n]."""
    accuracy: list[float]
    """Test accuracy in percent."""
    loss: list[float]
    """Test loss per sample."""
    whole: float
    """Test accuracy with the states as they are."""

    def needed(self, fraction: float = 0.99) -> int | None:
        """The fewest columns that reach this fraction of the full accuracy; None if none do."""
        reached = [n for n, value in enumerate(self.accuracy, 1) if value >= fraction * self.whole]
        return reached[0] if reached else None


class _Frozen(NamedTuple):
    """The part of a task's data that does not depend on U, as a data set of its own."""

    part: ServedTask
    place: Place
    target: Target
    rows: Tensor
    """`all`: h at the output steps [N, A, H]. `stop`: h at the stop bit, then W_ih x + b: [N, 1 + A, H]."""
    y: Tensor

    def batch(self, index: Tensor | slice) -> Batch:
        return pack_batch(self.target, self.rows[index], self.y[index])

    def batches(self) -> Iterator[Batch]:
        for start in range(0, len(self.rows), FORWARD_BATCH):
            yield self.batch(slice(start, start + FORWARD_BATCH))

    def answers(self, batch: Batch, basis: Tensor | None) -> Tensor:
        """Logits from states projected onto the columns of a basis (None: not projected)."""
        network, weights, task = self.part.network, self.part.weights, self.part.task
        if basis is not None and self.part.units is not None:
            basis = basis[self.part.units]
        if self.place == "all":
            states = _projected(batch.rows, basis)
            numbers = network.architecture.numbers_per_unit
            widths = [numbers * units for _, units in network.architecture.state_groups(-1)]
            return network.read_out(weights, states.split(widths, dim=1), task)
        cell, prefix = _last_cell(network)
        stop, given = batch.rows[: len(batch)], batch.rows[len(batch) :]
        # What the projected state contributes to the next step; the recurrence then continues on its own.
        added = cell.carried(weights, prefix, _projected(stop, basis))
        inputs = torch.cat([given[: len(batch)] + added, given[len(batch) :]])
        return network.read_out(weights, [cell.continued(weights, prefix, inputs, batch.answers)], task)


def reduce_states(
    parts: Sequence[ServedTask], width: int, generator: torch.Generator, fitting: Fitting | None = None
) -> Reduction:
    """Find U for states of `width` units that serve all parts at once."""
    fitting = fitting or Fitting()
    train, test = [], []
    for part in parts:
        fit = chosen(part.train, fitting.samples, generator)
        train.append(_frozen(part, fit, fitting.place))
        test.append(_frozen(part, part.test, fitting.place))
    basis = parts[0].weights[f"{parts[0].network.head(parts[0].task)}.weight"].new_zeros(width, 0)
    accuracy, loss = [], []
    for _ in range(min(fitting.columns or width, width)):
        column = _new_column(basis, generator)
        basis = torch.cat([basis, _trained(column, basis, train, fitting, generator)], dim=1)
        scores = [_score(task, basis) for task in test]
        accuracy.append(sum(score.accuracy for score in scores) / len(scores))
        loss.append(sum(score.loss for score in scores) / len(scores))
    whole = sum(_score(task, None).accuracy for task in test) / len(test)
    return Reduction(basis, accuracy, loss, whole)


def _projected(states: Tensor, basis: Tensor | None) -> Tensor:
    """H U U^T."""
    return states if basis is None else (states @ basis) @ basis.t()


def _new_column(basis: Tensor, generator: torch.Generator) -> Tensor:
    """A random direction [H, 1] of length 1, orthogonal to the columns so far."""
    drawn = torch.randn(len(basis), 1, generator=generator).to(basis)
    frame = torch.linalg.qr(basis)[0]  # trained columns are only nearly orthonormal
    return functional.normalize(drawn - frame @ (frame.t() @ drawn), dim=0)


def _trained(
    column: Tensor, before: Tensor, tasks: Sequence[_Frozen], fitting: Fitting, generator: torch.Generator
) -> Tensor:
    """The column after Adam on the tasks' losses, summed over the batch, and on its orthonormality."""
    column = column.clone().requires_grad_()
    optimiser = torch.optim.Adam([column], fitting.learning_rate)
    for _ in range(fitting.iterations):
        basis = torch.cat([before, column], dim=1)
        # The entries of ||U^T U - I||^2 that involve the new column.
        skew = 2 * (before.t() @ column).square().sum() + (column.square().sum() - 1).square()
        loss = fitting.orthogonality * skew
        for task in tasks:
            index = torch.randint(len(task.rows), (fitting.batch_size,), generator=generator)
            batch = task.batch(index.to(task.rows.device))
            loss = loss + negative_log_likelihood(task.answers(batch, basis), batch)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return column.detach()


def _score(task: _Frozen, basis: Tensor | None) -> Score:
    return scored(task.batches(), lambda batch: task.answers(batch, basis))


@torch.no_grad()
def _frozen(part: ServedTask, data: Data, place: Place) -> _Frozen:
    """Run the network up to the point at which U is applied."""
    if place == "stop":
        _check_stop(part.network, data)
    layer = part.network.architecture.layers - 1
    weights = {name: weight.detach() for name, weight in part.weights.items()}
    part = ServedTask(part.network, weights, part.task, part.train, part.test, part.units)
    rows = []
    for batch in data.batches():
        if place == "stop":
            rows.append(_from_stop(part, batch, layer))
            continue
        states = batch.answers.unpack(
            _at(traced(part.network, weights, batch, part.task, layer)[0], batch.asked)
        )
        missing = data.x.shape[1] - states.shape[1] if data.target.everywhere else 0
        rows.append(functional.pad(states, (0, 0, 0, missing)))
    return _Frozen(part, place, data.target, torch.cat(rows), data.y)


def _at(rows: Tensor, asked: slice | Tensor | None) -> Tensor:
    return rows if asked is None else rows[asked]


def _from_stop(part: ServedTask, batch: Batch, layer: int) -> Tensor:
    """States at the stop bit and then the projected inputs W_ih x + b of the output steps [B, 1 + A, H]."""
    tape = Tape()
    part.network.features(part.weights, batch, part.task, None, tape)
    hidden, given = tape.layers[layer].hidden, tape.projections[_last_cell(part.network)[1]]
    stop = hidden[batch.packing.last(batch.answers.steps + 1, hidden.device)][: len(batch)]
    return torch.cat([stop[:, None], batch.answers.unpack(_at(given, batch.asked))], dim=1)


def _check_stop(network: Network, data: Data) -> None:
    """Raise a helpful error if a projection at the stop bit makes no sense."""
    if not data.target.recalled or int(data.all_lengths.min()) <= data.y.shape[1]:
        raise PerdureError(
            "A projection at the stop bit needs a pattern to recall and a step before it; use place 'all'."
        )
    architecture = network.architecture
    one_way = isinstance(architecture, Recurrent) and not architecture.bidirectional
    if not one_way or not _last_cell(network)[0].continues:
        raise PerdureError(
            "A projection at the stop bit is for unidirectional networks whose state is h alone, such as "
            "Elman networks; use place 'all'."
        )


def _last_cell(network: Network) -> tuple[Cell, str]:
    """The cell of the last recurrent layer, and the prefix of its weights' names."""
    architecture = network.architecture
    assert isinstance(architecture, Recurrent)  # ensured by `_check_stop`
    return architecture.cell, architecture.prefixes(architecture.layers - 1)[0]
