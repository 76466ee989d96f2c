"""The parts of a hypernetwork and what it generates: a pure function of (theta, embeddings)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional

from perdure.errors import PerdureError
from perdure.networks.arithmetic import linear, tanh
from perdure.networks.layout import Axis, Layout, Vectors, Weights
from perdure.networks.network import BODY, Network

if TYPE_CHECKING:
    from perdure.weights.hypernetwork import Hypernetwork

ACTIVATIONS = {"relu": torch.relu, "sigmoid": torch.sigmoid, "tanh": tanh}


@dataclass(frozen=True)
class Mlp:
    """An MLP that generates `pieces` pieces of `outputs` weights each, for a network with its first task."""

    pieces: int
    outputs: int


class MlpWeights(Layout):
    """Weights of MLPs as one flat vector."""

    def __init__(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Axes without meaning: nothing is ever masked here."""
        super().__init__(
            {name: tuple(Axis(((name, size),)) for size in shape) for name, shape in shapes.items()}
        )

    def start(self, source: torch.Generator, chunk_sd: float) -> Tensor:
        """U(+-1/sqrt(fan-in)) for layers, N(0, sd^2) for chunk embeddings."""
        values: Weights = {}
        fan = 1
        for name, shape in self.shapes.items():
            if name.endswith("chunks"):
                values[name] = torch.randn(shape, generator=source) * chunk_sd
                continue
            fan = shape[1] if "weight" in name else fan
            values[name] = (torch.rand(shape, generator=source) * 2 - 1) * fan**-0.5
        return self.join(values)


class HypernetworkShape:
    """h for one main network: theta's layout, its extensions, and where each weight of psi is generated."""

    def __init__(self, options: Hypernetwork, network: Network) -> None:
        """The options must be resolved: without a ratio."""
        self.options, self.network = options, network

    @cached_property
    def target(self) -> Layout:
        """What is generated: all weights, or those of the body."""
        return self.network.body if self.options.heads == "separate" else self.network.layout

    def _own_size(self, task: int) -> int:
        """Number of generated weights that a task has added."""
        if self.options.heads == "separate":
            return 0
        known = {part for before in range(task) for part in self.network.parts(before)} | {BODY}
        return sum(self.network.layouts[p].size for p in self.network.parts(task) if p not in known)

    @cached_property
    def _sizes(self) -> list[int]:
        """|psi| that is generated after each task has arrived."""
        sizes, total = [], self.network.body.size
        for task in range(self.network.tasks):
            total += self._own_size(task)
            sizes.append(total)
        return sizes

    @cached_property
    def mlps(self) -> list[Mlp]:
        """The MLPs as they are at the first task."""
        if self.options.kind == "full":
            return [Mlp(1, self._sizes[0])]
        if self.options.kind == "chunked":
            return [Mlp(self._pieces(0), self.options.chunk)]
        mlps = []
        for table in self._layers:
            rows = self.options.chunk if len(table) % self.options.chunk == 0 else len(table)
            mlps.append(Mlp(len(table) // rows, rows * table.shape[1]))
        return [*mlps, *(Mlp(1, size) for size in self._own_pieces)]

    @cached_property
    def _own_pieces(self) -> list[int]:
        """structured: sizes of what came with the first task; the last is what every task brings.

        All that is a task's own is one piece, but a head for all tasks comes only once, before what tells
        them the task.
        """
        sizes = [self.network.layouts[part].size for part in self.network.parts(0) if part != BODY]
        once = self.network.architecture.heads == "single"
        return [] if self.options.heads == "separate" else sizes if once else [sum(sizes)]

    def _pieces(self, task: int) -> int:
        """Number of chunks needed once a task has arrived."""
        return -(-self._sizes[task] // self.options.chunk)

    @cached_property
    def _layers(self) -> list[Tensor]:
        """For each layer of the body, the positions in psi of all that belongs to each row [rows, ...]."""
        body = self.network.body
        positions = body.split(torch.arange(body.size))
        layers: dict[str, list[Tensor]] = {}
        for name, where in positions.items():
            layers.setdefault(name.rpartition(".")[0], []).append(where.reshape(len(where), -1))
        return [torch.cat(tensors, dim=1) for tensors in layers.values()]

    @cached_property
    def _order(self) -> Tensor | None:
        """The position of each weight of psi in the generated output; None if it is in psi's own order."""
        if self.options.kind != "structured":
            return None
        own = torch.arange(self.network.body.size, self.target.size)
        made = torch.cat([*(table.reshape(-1) for table in self._layers), own])
        inverse = torch.empty_like(made)
        inverse[made] = torch.arange(len(made))
        return inverse

    @cached_property
    def theta(self) -> MlpWeights:
        """Layout of theta: the chunk embeddings and layers of each MLP."""
        options = self.options
        shapes: dict[str, tuple[int, ...]] = {}
        for number, mlp in enumerate(self.mlps):
            inputs = options.task_embedding
            if options.kind != "full":
                shapes[f"{number}.chunks"] = (mlp.pieces, options.chunk_embedding)
                inputs += options.chunk_embedding
            for layer, units in enumerate([*options.hidden, mlp.outputs]):
                shapes[f"{number}.weight.{layer}"] = (units, inputs)
                shapes[f"{number}.bias.{layer}"] = (units,)
                inputs = units
        return MlpWeights(shapes)

    def extension(self, task: int) -> MlpWeights:
        """Layout of what a later task adds: chunk embeddings, or rows of the last layer; may be empty."""
        options, new = self.options, self._own_size(task)
        if options.kind == "full":
            last = len(options.hidden)
            rows = {f"0.weight.{last}": (new, options.hidden[-1]), f"0.bias.{last}": (new,)}
            return MlpWeights(rows if new else {})
        if options.kind == "structured" and new and new != self._own_pieces[-1]:
            raise PerdureError(
                "weights.kind: structured only generates heads of equal size, but these tasks have "
                "different numbers of outputs; use --weights.kind chunked or --weights.heads separate."
            )
        number = len(self.mlps) - 1
        pieces = self._pieces(task) - self._pieces(task - 1) if options.kind == "chunked" else int(new > 0)
        return MlpWeights({f"{number}.chunks": (pieces, options.chunk_embedding)} if pieces else {})

    @cached_property
    def names(self) -> list[str]:
        """Names of the vectors that all tasks share: theta and its extensions."""
        later = [task for task in range(1, self.network.tasks) if self.extension(task).size]
        return ["theta", *(f"extension.{task}" for task in later)]

    @cached_property
    def size(self) -> int:
        """|theta| with its extensions."""
        return self.theta.size + sum(self.extension(task).size for task in range(1, self.network.tasks))

    def weights(self, parameters: Mapping[str, Tensor]) -> Weights:
        """The MLPs' weights by name, with extensions appended."""
        weights = self.theta.split(parameters["theta"])
        more: dict[str, list[Tensor]] = {}
        for name in self.names[1:]:
            extension = self.extension(int(name.rpartition(".")[2]))
            for place, values in extension.split(parameters[name]).items():
                more.setdefault(place, []).append(values)
        return weights | {place: torch.cat([weights[place], *values]) for place, values in more.items()}

    def raw(self, parameters: Vectors, embeddings: Tensor) -> Tensor:
        """Everything the MLPs generate for embeddings [C, E], unscaled and in their own order: [C, made]."""
        weights = self.weights(parameters)
        made = [self._made_by(weights, number, embeddings) for number in range(len(self.mlps))]
        return made[0] if len(made) == 1 else torch.cat(made, dim=1)

    def arranged(self, raw: Tensor) -> Tensor:
        """Flat psi [C, |psi|] from the generated output; the surplus of the last chunk is dropped."""
        if self._order is not None:
            return raw.index_select(1, self._order.to(raw.device))
        return raw[:, : self.target.size]

    def disarranged(self, values: Tensor) -> Tensor:
        """Values per weight [|psi|] at the positions where weights are generated [made]; 0 for surplus."""
        if self._order is not None:
            return torch.empty_like(values).index_copy(0, self._order.to(values.device), values)
        if self.options.kind == "full":
            return values
        return functional.pad(
            values, (0, self._pieces(self.network.tasks - 1) * self.options.chunk - len(values))
        )

    def _made_by(self, weights: Weights, number: int, embeddings: Tensor) -> Tensor:
        """What one MLP generates for all embeddings, flat: [C, pieces * outputs]."""
        activate = ACTIVATIONS[self.options.activation]
        first, bias = weights[f"{number}.weight.0"], weights[f"{number}.bias.0"]
        if self.options.kind == "full":
            hidden = linear(embeddings, first, bias)[:, None]
        else:
            # The first layer of [chunk embedding, task embedding], without materialising the pairs.
            chunks = weights[f"{number}.chunks"]
            of_chunk, of_task = first.split([chunks.shape[1], first.shape[1] - chunks.shape[1]], dim=1)
            hidden = linear(chunks, of_chunk, bias) + linear(embeddings, of_task)[:, None]
        for layer in range(1, len(self.options.hidden) + 1):
            hidden = linear(
                activate(hidden), weights[f"{number}.weight.{layer}"], weights[f"{number}.bias.{layer}"]
            )
        return hidden.flatten(1)


@lru_cache(maxsize=64)
def shape_of(options: Hypernetwork, network: Network) -> HypernetworkShape:
    """The shape for resolved options and a network; each is computed once."""
    return HypernetworkShape(options, network)
