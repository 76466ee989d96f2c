"""The theory of linear RNNs that learn several tasks, in numbers.

SM "A theoretical view on CL in linear RNNs". h_t = W_hh h_{t-1} starts at h_0 = sum_k U_k c^(k), where all
tasks see the same pattern x: c^(k) is the first p_k entries of x. Task k requires y_t^(k) = Q_kk^t c^(k) at
its own head. All Q_kk have different eigenvalues, so that no two tasks can share their processing. If the
subspaces are orthogonal, W_hh = U Q U^T with Q = diag(Q_11, ..., Q_KK) solves all tasks without interference.
That needs sum_k p_k <= n_h.

Beyond this, subspaces must overlap (by at least Welch's lower bound) and W_hh cannot satisfy all tasks.
This is not a flaw of the construction: the required sequences have a Hankel matrix of rank sum_k p_k, a
linear RNN with n_h units can only produce one of rank n_h, and by Eckart and Young its error has a floor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from perdure.errors import PerdureError
from perdure.networks.initialise import orthogonal

EXACT = torch.float64
RANK = 1e-9
"""Singular values below this fraction of the largest count as zero."""


@dataclass(frozen=True)
class LinearTasks:
    """K tasks: their subspaces U_k [n_h, p_k] and their dynamics within them, Q_kk [p_k, p_k]."""

    subspaces: list[Tensor]
    dynamics: list[Tensor]

    @property
    def dimensions(self) -> list[int]:
        """p_k of each task."""
        return [len(block) for block in self.dynamics]

    @property
    def content(self) -> list[Tensor]:
        """C_k [p_k, p] with c^(k) = C_k x: the part of the pattern that a task uses."""
        pattern = torch.eye(max(self.dimensions), dtype=EXACT)
        return [pattern[:size] for size in self.dimensions]

    def recurrent(self) -> Tensor:
        """W_hh [n_h, n_h] that retains all subspaces, W_hh U_k = U_k Q_kk; by least squares if none can.

        For orthogonal subspaces this is U diag(Q_11, ..., Q_KK) U^T.
        """
        moved = [basis @ block for basis, block in zip(self.subspaces, self.dynamics, strict=True)]
        inverse: Tensor = torch.linalg.pinv(torch.cat(self.subspaces, dim=1))
        return torch.cat(moved, dim=1) @ inverse

    def start(self) -> Tensor:
        """h_0 [n_h, p] as a linear map of the pattern: the content of all tasks at once."""
        return torch.cat(self.subspaces, dim=1) @ torch.cat(self.content)

    def asked(self, task: int, steps: int) -> Tensor:
        """Q_kk^t C_k for t = 0, ..., steps - 1: [steps, p_k, p]."""
        return _powers(self.dynamics[task], self.content[task], steps)

    def interference(self) -> float:
        """The largest ||W_hh U_k - U_k Q_kk||_F: how far one step is from what a task requires.

        It has a part that leaves the subspace (Q_lk for l != k) and a part due to other tasks within it.
        """
        weight = self.recurrent()
        wrong = [
            weight @ basis - basis @ block for basis, block in zip(self.subspaces, self.dynamics, strict=True)
        ]
        return max(float(torch.linalg.matrix_norm(part)) for part in wrong)

    def overlap(self) -> float:
        """sum_{k != l} ||U_k^T U_l||_F^2: 0 for orthogonal subspaces."""
        gram = torch.cat(self.subspaces, dim=1).t() @ torch.cat(self.subspaces, dim=1)
        return max(0.0, float(gram.square().sum()) - sum(self.dimensions))


@dataclass(frozen=True)
class Demonstration:
    """The results for K tasks in n_h units."""

    tasks: int
    units: int
    total: int
    """sum_k p_k."""
    needed: int
    """Units that any linear RNN needs for these tasks: the rank of their Hankel matrix."""
    interference: float
    """The largest ||W_hh U_k - U_k Q_kk||_F."""
    overlap: float
    """sum_{k != l} ||U_k^T U_l||_F^2."""
    least_overlap: float
    """Welch's bound: no subspaces of these dimensions overlap less."""
    error: float
    """Relative error over all tasks and steps, with the best heads; 0: solved, 1: no better than output 0."""
    errors: list[float]
    """The same for each task."""
    floor: float
    """No linear RNN with n_h units has a smaller error."""


def linear_tasks(
    units: int, dimensions: Sequence[int], generator: torch.Generator, *, shared: int = 0
) -> LinearTasks:
    """Random tasks: successive columns of a random orthogonal matrix, so orthogonal as long as they last.

    With `shared` dimensions, all tasks have the first columns and what happens there in common (SM "Transfer
    and task similarity"), so that K tasks need only shared + sum_k (p_k - shared) units.
    """
    if not dimensions or min(dimensions) < 1 or max(dimensions) > units:
        raise PerdureError(
            f"Each task's subspace must have 1 to n_h = {units} dimensions (given: {list(dimensions)})."
        )
    if not 0 <= shared < min(dimensions):
        raise PerdureError(
            f"Tasks can share 0 to {min(dimensions) - 1} of their dimensions, so that each has some of its "
            f"own (given: {shared})."
        )
    basis = orthogonal(units, generator, EXACT)
    own = [size - shared for size in dimensions]
    blocks = distinct_dynamics([shared, *own] if shared else own, generator)
    common = blocks.pop(0) if shared else torch.zeros(0, 0, dtype=EXACT)
    subspaces, dynamics, first = [], [], shared
    for size, block in zip(own, blocks, strict=True):
        columns = [shared + (first - shared + place) % (units - shared) for place in range(size)]
        subspaces.append(basis[:, [*range(shared), *columns]])
        dynamics.append(torch.block_diag(common, block))
        first += size
    return LinearTasks(subspaces, dynamics)


def distinct_dynamics(dimensions: Sequence[int], generator: torch.Generator) -> list[Tensor]:
    """Q_kk [p_k, p_k] of norm 1 that have no eigenvalue in common, in random bases.

    Each rotates p_k // 2 planes, by angles that are spread over all tasks; an odd dimension is scaled by a
    number between -1 and 1.
    """
    planes, odd = sum(size // 2 for size in dimensions), sum(size % 2 for size in dimensions)
    order = torch.randperm(planes, generator=generator)
    angles = iter(((order + 0.5) * torch.pi / max(planes, 1)).tolist())
    scales = iter(torch.linspace(1, -1, odd, dtype=EXACT)[torch.randperm(odd, generator=generator)].tolist())
    result = []
    for size in dimensions:
        turns = [_rotation(next(angles)) for _ in range(size // 2)]
        turns += [torch.full((1, 1), next(scales), dtype=EXACT) for _ in range(size % 2)]
        basis = orthogonal(size, generator, EXACT)
        result.append(basis @ torch.block_diag(*turns) @ basis.t())
    return result


def _rotation(angle: float) -> Tensor:
    """A plane rotated by an angle."""
    c, s = math.cos(angle), math.sin(angle)
    return torch.tensor([[c, -s], [s, c]], dtype=EXACT)


def demonstrate(tasks: LinearTasks) -> Demonstration:
    """Run the linear RNN of some tasks and compare it with what they require."""
    dimensions, units = tasks.dimensions, len(tasks.subspaces[0])
    total, rows = sum(dimensions), _enough_rows(dimensions)
    steps = 2 * rows - 1
    times = _multiplicity(rows).sqrt()[:, None, None]  # how often a step occurs in the Hankel matrix
    wanted = [times * tasks.asked(task, steps) for task in range(len(dimensions))]
    states = times * _powers(tasks.recurrent(), tasks.start(), steps)
    squares = [float(_unfit(states, target)) for target in wanted]
    sizes = [float(target.square().sum()) for target in wanted]
    spectrum = torch.linalg.svdvals(_hankel(tasks, rows)).square()
    return Demonstration(
        tasks=len(dimensions),
        units=units,
        total=total,
        needed=int((spectrum.sqrt() > RANK * spectrum[0].sqrt()).sum()),
        interference=tasks.interference(),
        overlap=tasks.overlap(),
        least_overlap=max(0.0, total * (total - units) / units),
        error=math.sqrt(sum(squares) / sum(sizes)),
        errors=[math.sqrt(square / size) for square, size in zip(squares, sizes, strict=True)],
        floor=math.sqrt(float(spectrum[units:].sum() / spectrum.sum())) if total > units else 0.0,
    )


def capacity(
    units: int, dimension: int, most: int, generator: torch.Generator, *, shared: int = 0
) -> list[Demonstration]:
    """Add one task of the given dimension at a time, from 1 to `most`, to a linear RNN of n_h units."""
    everything = linear_tasks(units, [dimension] * most, generator, shared=shared)
    return [
        demonstrate(LinearTasks(everything.subspaces[:count], everything.dynamics[:count]))
        for count in range(1, most + 1)
    ]


def _powers(matrix: Tensor, start: Tensor, steps: int) -> Tensor:
    """M^t S for t = 0, ..., steps - 1."""
    result = [start]
    for _ in range(steps - 1):
        result.append(matrix @ result[-1])
    return torch.stack(result)


def _unfit(states: Tensor, target: Tensor) -> Tensor:
    """Squared error left by the best head D: min_D sum_t ||D states_t - target_t||_F^2."""
    given, wanted = (part.transpose(1, 2).flatten(0, 1) for part in (states, target))
    left, values, _ = torch.linalg.svd(given, full_matrices=False)
    left = left[:, values > RANK * values[0]]
    square: Tensor = (wanted - left @ (left.t() @ wanted)).square().sum()
    return square


def _hankel(tasks: LinearTasks, rows: int) -> Tensor:
    """Block (i, j) is what all tasks require at step i + j."""
    asked = torch.cat([tasks.asked(task, 2 * rows - 1) for task in range(len(tasks.dynamics))], dim=1)
    return torch.cat([torch.cat(list(asked[row : row + rows]), dim=1) for row in range(rows)])


def _enough_rows(dimensions: Sequence[int]) -> int:
    """Number of blocks with which the Hankel matrix has its full rank.

    Tasks of at most d dimensions see d entries of the pattern, so r steps tell r d of their dimensions apart.
    """
    sizes = {d: sum(size for size in dimensions if size <= d) for d in dimensions}
    return max(math.ceil(size / d) for d, size in sizes.items()) + 1


def _multiplicity(rows: int) -> Tensor:
    """How many blocks of a square Hankel matrix belong to each step: 1, 2, ..., rows, ..., 2, 1."""
    step = torch.arange(2 * rows - 1, dtype=EXACT)
    return rows - (step - (rows - 1)).abs()
