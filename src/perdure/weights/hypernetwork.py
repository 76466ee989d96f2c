"""Hypernetwork-protected weights (paper Sec. 3; SM "Hypernetwork-protected models").

psi^(k) = h(e_k, theta): a small MLP makes the weights of task k from the task's embedding. Three ways to
make them: `full`, all weights at once; `chunked`, equal pieces of the flat psi, each with an embedding c_i
of its own that all tasks share; `structured`, pieces of whole rows of a layer, W_ih, W_hh and biases
together, each layer by an MLP of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor
from torch.nn import functional

from perdure.errors import PerdureError
from perdure.networks.initialise import initialise
from perdure.networks.layout import Axis, Layout, Vectors, Weights
from perdure.networks.network import Network
from perdure.networks.orthogonality import Deviation
from perdure.options import SomeSizes
from perdure.weights.source import Chance, Positions, WeightSource

ACTIVATIONS = {"relu": torch.relu, "sigmoid": torch.sigmoid, "tanh": torch.tanh}
DRAWS = 31
"""Further draws among which a new embedding may be chosen."""
POWER_STEPS = 8
"""Steps of the power iteration that estimates the largest singular value of W_hh."""


class Hypernetwork(WeightSource):
    """A hypernetwork makes the weights of each task from the task's embedding."""

    generates: ClassVar[bool] = True

    kind: Literal["chunked", "full", "structured"] = "chunked"
    """Make psi in equal chunks, all at once, or in rows of layers."""
    hidden: SomeSizes = (50, 50)
    """Hidden layers of the MLP."""
    chunk: PositiveInt = 2500
    """chunked: weights in a chunk; structured: rows in a piece (the whole layer if that does not divide)."""
    ratio: PositiveFloat | None = None
    """Wanted |theta and embeddings| / |psi|; chunk, and if need be hidden, are then chosen to stay below."""
    task_embedding: PositiveInt = 32
    """Size of a task embedding e_k."""
    chunk_embedding: PositiveInt = 32
    """Size of a chunk embedding c_i."""
    task_embedding_sd: Annotated[float, Field(ge=0)] = 1.0
    """Standard deviation of task embeddings at the start."""
    chunk_embedding_sd: Annotated[float, Field(ge=0)] = 0.1
    """Standard deviation of chunk embeddings at the start."""
    activation: Literal["relu", "sigmoid", "tanh"] = "relu"
    """Activation of the MLP's hidden layers."""
    initialisation: Literal["scaled", "original"] = "scaled"
    """scaled: each generated tensor starts with the spread of a well-initialised RNN; original: as it is."""
    heads: Literal["generated", "separate"] = "generated"
    """Whether output heads are generated, or plain weights of each task."""
    embeddings: Literal["trained", "frozen"] = "trained"
    """Whether the embeddings of old tasks go on learning (the paper) or stay."""
    new_embedding: Literal["drawn", "chosen"] = "drawn"
    """A new task's embedding is drawn (the paper), or the best of 32 draws: W_hh nearest to orthogonal."""
    spectral: bool = False
    """Divide generated W_hh by its largest singular value."""

    def start(self, network: Network, chance: Chance) -> tuple[Vectors, Vectors]:
        """Vectors `theta` and `embedding.k` (and heads, if separate); buffer `scale` [|psi|]."""
        if self.heads == "separate" and network.architecture.heads == "single" and network.tasks > 1:
            raise PerdureError(
                "weights.heads: separate heads are one for each task; use them with --network.heads multi."
            )
        generator = self.generator(network)
        source = chance("weights")
        theta = generator.initial(source, self.chunk_embedding_sd)
        parameters: Vectors = {"theta": theta}
        for task in range(network.tasks):
            drawn = torch.randn(self.task_embedding, generator=chance("embedding", task))
            parameters[f"embedding.{task}"] = drawn * self.task_embedding_sd
        if self.heads == "separate":
            plain = initialise(network.layout, network.architecture, source)
            parameters |= {name: layout.join(plain) for name, layout in network.heads.items()}
        scale = torch.ones(generator.target.size)
        if self.initialisation == "scaled":
            everything = torch.stack([parameters[f"embedding.{task}"] for task in range(network.tasks)])
            made = generator.arranged(generator.raw(theta, everything))
            scale = _spread_of_a_plain_network(generator.target, made)
        return parameters, {"scale": scale}

    def begin(
        self, network: Network, buffers: Vectors, parameters: Vectors, tasks: Sequence[int], chance: Chance
    ) -> Vectors:
        """With `new_embedding` chosen: the draw whose recurrent matrices have the least ||W W^T - I||^2.

        What h makes of an embedding far from all that it was trained on can be far from orthogonal, so far
        that the first gradients explode.
        """
        new = min(tasks)
        if self.new_embedding == "drawn" or new == 0:
            return parameters
        name = f"embedding.{new}"
        source, like = chance("new embedding", new), parameters[name]
        draws = torch.randn(DRAWS, self.task_embedding, generator=source) * self.task_embedding_sd
        draws = torch.cat([like[None], draws.to(like)])
        made = self.generate(network, buffers, parameters["theta"], draws)
        split = self.generator(network).target.split
        far = [
            sum((float(Deviation.apply(w)) for w in network.recurrent_matrices(split(psi))), start=0.0)
            for psi in made
        ]
        return parameters | {name: draws[far.index(min(far))].clone()}

    def active(
        self, network: Network, buffers: Vectors, tasks: Sequence[int], rehearsed: Sequence[int] = ()
    ) -> Positions:
        """theta, and the embeddings up to the newest task (or of the tasks alone, if old ones are frozen)."""
        known = range(max(tasks) + 1) if self.embeddings == "trained" else tasks
        names = ["theta", *(f"embedding.{task}" for task in known)]
        if self.heads == "separate":
            names += [network.head(task) for task in [*rehearsed, *tasks]]
        return dict.fromkeys(names)

    def weights(
        self, network: Network, buffers: Vectors, active: Vectors, task: int
    ) -> tuple[Network, Weights]:
        """psi^(k) = h(e_k, theta)."""
        psi = self.generate(network, buffers, active["theta"], active[f"embedding.{task}"][None])[0]
        weights = self.generator(network).target.split(psi)
        if self.heads == "separate":
            head = network.head(task)
            weights |= network.heads[head].split(active[head])
        if self.spectral:
            for name in [name for name in weights if name.endswith("weight_hh")]:
                weights[name] = _spectrally_normalised(weights[name])
        return network, weights

    def generate(self, network: Network, buffers: Vectors, theta: Tensor, embeddings: Tensor) -> Tensor:
        """Flat generated weights [C, |psi|] for C embeddings [C, E] in one batch."""
        generator = self.generator(network)
        return generator.arranged(generator.raw(theta, embeddings)) * buffers["scale"]

    def owned(self, network: Network, task: int) -> Tensor:
        """1 for each weight of the flat psi that a task uses (the body and its own head), 0 elsewhere."""
        target = self.generator(network).target
        used = network.body.axes | network.heads[network.head(task)].axes
        return target.join(
            {name: torch.full(shape, float(name in used)) for name, shape in target.shapes.items()}
        )

    def generator(self, network: Network) -> Generator:
        """The hypernetwork's shape for a main network."""
        return _generator(self, network)

    def count(self, network: Network) -> int:
        """|theta and all embeddings|, separate heads included."""
        heads = sum(h.size for h in network.heads.values()) if self.heads == "separate" else 0
        return self.generator(network).theta.size + network.tasks * self.task_embedding + heads

    def resolved(self, network: Network) -> Hypernetwork:
        """The same with `chunk` and `hidden` chosen so that the wanted ratio is met."""
        if self.ratio is None:
            return self
        bare = self.model_copy(update={"ratio": None})
        hidden, limit = self.hidden, self.ratio * network.layout.size
        while True:
            fitting = bare.model_copy(update={"hidden": hidden})._largest_chunk(network, limit)
            if fitting is not None:
                return fitting
            if max(hidden) == 1:
                raise PerdureError(
                    f"weights.ratio: no hypernetwork of at most {self.ratio} times the network's "
                    f"{network.layout.size} weights was found; smaller embeddings may help."
                )
            hidden = tuple(max(1, units * 3 // 4) for units in hidden)

    def _largest_chunk(self, network: Network, limit: float) -> Hypernetwork | None:
        """The largest chunk that stays below the limit, or None."""
        if self.kind == "full":
            return self if self.count(network) <= limit else None
        if self.kind == "structured":
            rows = network.cell.gates * max(network.architecture.hidden)
            sizes = [c for c in range(rows, 0, -1) if rows % c == 0]
        else:
            sizes = [*range(network.layout.size, 0, -max(1, network.layout.size // 4000))]
        for chunk in sizes:
            candidate = self.model_copy(update={"chunk": chunk})
            if candidate._estimate(network) <= limit and candidate.count(network) <= limit:
                return candidate
        return None

    def _estimate(self, network: Network) -> float:
        """A lower bound of `count` that needs no generator; it spares most of the search."""
        return (self.hidden[-1] + 1) * self.chunk if self.kind == "chunked" else 0


@dataclass(frozen=True)
class Part:
    """An MLP that makes `pieces` pieces of `outputs` weights each."""

    pieces: int
    outputs: int


class Generator:
    """h as a pure function of (theta, embeddings), for one target layout."""

    def __init__(self, options: Hypernetwork, target: Layout, parts: list[Part], order: Tensor | None):
        """Note the parts; `order` says where each weight of psi lies among what they make."""
        self.options, self.target, self.parts, self.order = options, target, parts, order

    @cached_property
    def theta(self) -> Layout:
        """Layout of theta: for each part its chunk embeddings and layers."""
        options = self.options
        shapes: dict[str, tuple[int, ...]] = {}
        for number, part in enumerate(self.parts):
            inputs = options.task_embedding
            if options.kind != "full":
                shapes[f"{number}.chunks"] = (part.pieces, options.chunk_embedding)
                inputs += options.chunk_embedding
            for layer, units in enumerate([*options.hidden, part.outputs]):
                shapes[f"{number}.weight.{layer}"] = (units, inputs)
                shapes[f"{number}.bias.{layer}"] = (units,)
                inputs = units
        return Layout(
            {name: tuple(Axis(((name, size),)) for size in shape) for name, shape in shapes.items()}
        )

    def initial(self, source: torch.Generator, chunk_sd: float) -> Tensor:
        """Start values: U(+-1/sqrt(fan-in)) for layers, N(0, sd^2) for chunk embeddings."""
        values: Weights = {}
        fan = 1
        for name, shape in self.theta.shapes.items():
            if name.endswith("chunks"):
                values[name] = torch.randn(shape, generator=source) * chunk_sd
                continue
            fan = shape[1] if "weight" in name else fan
            values[name] = (torch.rand(shape, generator=source) * 2 - 1) * fan**-0.5
        return self.theta.join(values)

    def raw(self, theta: Tensor, embeddings: Tensor) -> Tensor:
        """All that the MLPs make for embeddings [C, E], unscaled and in their own order: [C, made]."""
        weights = self.theta.split(theta)
        made = [self._part(weights, number, embeddings) for number in range(len(self.parts))]
        return made[0] if len(made) == 1 else torch.cat(made, dim=1)

    def arranged(self, raw: Tensor) -> Tensor:
        """Flat psi [C, |psi|] from what was made; the surplus of the last chunk is dropped."""
        if self.order is not None:
            return raw.index_select(1, self.order.to(raw.device))
        return raw[:, : self.target.size]

    def disarranged(self, values: Tensor) -> Tensor:
        """Values per weight [|psi|] at the places where the weights are made [made]; 0 for surplus."""
        result = values.new_zeros(sum(part.pieces * part.outputs for part in self.parts))
        where = slice(self.target.size) if self.order is None else self.order
        result[where] = values
        return result

    def _part(self, weights: Weights, number: int, embeddings: Tensor) -> Tensor:
        """What one MLP makes for all embeddings, flat: [C, pieces * outputs]."""
        activate = ACTIVATIONS[self.options.activation]
        first, bias = weights[f"{number}.weight.0"], weights[f"{number}.bias.0"]
        if self.options.kind == "full":
            hidden = functional.linear(embeddings, first, bias)[:, None]
        else:
            # The first layer of [chunk embedding, task embedding], without writing the pairs down.
            chunks = weights[f"{number}.chunks"]
            of_chunk, of_task = first.split([chunks.shape[1], first.shape[1] - chunks.shape[1]], dim=1)
            hidden = (
                functional.linear(chunks, of_chunk, bias) + functional.linear(embeddings, of_task)[:, None]
            )
        for layer in range(1, len(self.options.hidden) + 1):
            hidden = functional.linear(
                activate(hidden), weights[f"{number}.weight.{layer}"], weights[f"{number}.bias.{layer}"]
            )
        return hidden.flatten(1)


@lru_cache(maxsize=64)
def _generator(options: Hypernetwork, network: Network) -> Generator:
    options = options.resolved(network)
    target = network.body if options.heads == "separate" else network.layout
    if options.kind == "full":
        return Generator(options, target, [Part(1, target.size)], None)
    if options.kind == "chunked":
        pieces = -(-target.size // options.chunk)
        return Generator(options, target, [Part(pieces, options.chunk)], None)
    return _structured(options, target)


def _structured(options: Hypernetwork, target: Layout) -> Generator:
    """Cut each layer into pieces of whole rows; all heads together count as one layer."""
    layers: dict[str, list[str]] = {}
    for name in target.axes:
        head = name.startswith("head.")
        layers.setdefault("head" if head else name.rpartition(".")[0], []).append(name)
    positions = target.split(torch.arange(target.size))
    parts, order = [], []
    for names in layers.values():
        # Tensors of a layer side by side: [rows, all that belongs to a row].
        matrices = [n for n in names if "weight" in n]
        if names[0].startswith("head."):
            table = torch.cat([_row_table(positions, [n, n.replace("weight", "bias")]) for n in matrices])
            rows = len(positions[matrices[0]])
        else:
            table = _row_table(positions, names)
            rows = options.chunk if len(table) % options.chunk == 0 else len(table)
        rows = rows if len(table) % rows == 0 else len(table)
        parts.append(Part(len(table) // rows, rows * table.shape[1]))
        order.append(table.reshape(-1))
    inverse = torch.empty(target.size, dtype=torch.long)
    inverse[torch.cat(order)] = torch.arange(target.size)
    return Generator(options, target, parts, inverse)


def _row_table(positions: Weights, names: list[str]) -> Tensor:
    return torch.cat([positions[name].reshape(len(positions[name]), -1) for name in names], dim=1)


def _spread_of_a_plain_network(target: Layout, made: Tensor) -> Tensor:
    """Factors [|psi|] that give each generated tensor the standard deviation of a plain RNN's.

    1/sqrt(H) for W_hh, which is that of an orthogonal matrix, and 1/sqrt(3 fan-in) for the rest, so that
    the orthogonal penalty does not start far too high.
    """
    parts = []
    for name, values in target.split(made.mean(0)).items():
        fan = target.axes[name.replace("bias", "weight")][1].size
        wanted = fan**-0.5 if name.endswith("weight_hh") else (3 * fan) ** -0.5
        spread = torch.stack([w[name].std(correction=0) for w in map(target.split, made)]).mean()
        factor = wanted / spread if spread > 0 else torch.ones(())
        parts.append(factor.expand(values.numel()))
    return torch.cat(parts)


def _spectrally_normalised(matrix: Tensor) -> Tensor:
    """W divided by its largest singular value, each gate's block for itself."""
    blocks = []
    for block in matrix.split(matrix.shape[1]):
        with torch.no_grad():
            vector = torch.ones(block.shape[1], dtype=block.dtype, device=block.device)
            for _ in range(POWER_STEPS):
                vector = functional.normalize(block.t() @ (block @ vector), dim=0)
            other = functional.normalize(block @ vector, dim=0)
        blocks.append(block / torch.dot(other, block @ vector))  # u^T W v, differentiable in W
    return torch.cat(blocks)
