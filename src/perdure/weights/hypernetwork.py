"""Hypernetwork-protected weights (paper Sec. 3; SM "Hypernetwork-protected models").

psi^(k) = h(e_k, theta): a small MLP generates the weights of task k from the task's embedding. There are
three ways to do so: `full`, all weights at once; `chunked`, equal pieces of the flat psi, each with its own
embedding c_i that all tasks share; `structured`, pieces of whole rows of a layer, W_ih, W_hh and biases
together, each layer by its own MLP.

A new task adds its embedding, and whatever is needed to generate its head (`extension.k`: further chunk
embeddings, or further rows of the last layer).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor
from torch.nn import functional

from perdure.errors import PerdureError
from perdure.networks.arithmetic import inner, linear, product
from perdure.networks.initialise import initialise
from perdure.networks.layout import Layout, Vectors
from perdure.networks.network import BODY, Network
from perdure.networks.orthogonality import Deviation
from perdure.options import SomeSizes
from perdure.weights.hypernetwork_shape import HypernetworkShape, shape_of
from perdure.weights.source import (
    Generated,
    GeneratorFactory,
    Positions,
    Stock,
    TaskNetwork,
    WeightSource,
)

DRAWS = 31
"""Additional draws from which a new embedding may be chosen."""
REFERENCES = 32
"""Random embeddings over which the initial spread of generated weights is measured."""
POWER_STEPS = 8
"""Steps of the power iteration that estimates the largest singular value of W_hh.

(torch.svd_lowrank would do, but draws from the global generator.)"""


class Hypernetwork(WeightSource):
    """A hypernetwork generates the weights of each task from the task's embedding."""

    generates: ClassVar[bool] = True
    revision: ClassVar[int] = 2

    kind: Literal["chunked", "full", "structured"] = "chunked"
    """Generate psi in equal chunks, all at once, or in rows of layers."""
    hidden: SomeSizes = (50, 50)
    """Hidden layers of the MLP."""
    chunk: PositiveInt = 2500
    """chunked: weights per chunk; structured: rows per piece (the whole layer if that does not divide)."""
    ratio: PositiveFloat | None = None
    """Desired |theta and embeddings| / |psi| at the first task; chunk and hidden are chosen to fit."""
    task_embedding: PositiveInt = 32
    """Size of a task embedding e_k."""
    chunk_embedding: PositiveInt = 32
    """Size of a chunk embedding c_i."""
    task_embedding_sd: Annotated[float, Field(ge=0)] = 1.0
    """Initial standard deviation of task embeddings."""
    chunk_embedding_sd: Annotated[float, Field(ge=0)] = 0.1
    """Initial standard deviation of chunk embeddings."""
    activation: Literal["relu", "sigmoid", "tanh"] = "relu"
    """Activation of the MLP's hidden layers."""
    initialisation: Literal["scaled", "original"] = "scaled"
    """scaled: each generated tensor starts with the spread of a well-initialised RNN; original: unscaled."""
    heads: Literal["generated", "separate"] = "generated"
    """Whether output heads are generated, or plain weights of each task."""
    embeddings: Literal["trained", "frozen"] = "trained"
    """Whether the embeddings of old tasks keep learning (the paper) or stay fixed."""
    new_embedding: Literal["drawn", "chosen"] = "drawn"
    """A new task's embedding is drawn (the paper), or the best of 32 draws: W_hh nearest to orthogonal."""
    spectral: bool = False
    """Divide generated W_hh by its largest singular value."""

    def grow(self, network: Network, known: int, stock: Stock, generators: GeneratorFactory) -> Stock:
        """Initially `theta` and the buffer `scale`; for each task `embedding.k`, and what its head needs."""
        if self.heads == "separate" and network.architecture.heads == "single" and network.tasks > 1:
            raise PerdureError(
                "weights.heads: separate heads need one head per task; use them with --network.heads multi."
            )
        parameters, buffers = dict(stock.parameters), dict(stock.buffers)
        for task in range(known, network.tasks):
            so_far = _first_tasks(network, task + 1)
            parameters |= self._new_parameters(so_far, task, Stock(parameters, buffers), generators)
            name, scale = self._new_scale(so_far, task, Stock(parameters, buffers), generators)
            if len(scale):
                buffers[name] = scale.to(parameters["theta"].device)
        return Stock(
            {name: vector for name, vector in parameters.items() if name not in stock.parameters},
            {name: vector for name, vector in buffers.items() if name not in stock.buffers},
        )

    def _new_parameters(
        self, network: Network, task: int, stock: Stock, generators: GeneratorFactory
    ) -> Vectors:
        """Theta or its extension, the embedding, and a separate head, for the network's last task."""
        shape = self.shape(network)
        source = generators("weights") if task == 0 else generators("extension", task)
        drawn = torch.randn(self.task_embedding, generator=generators("embedding", task))
        embedding = drawn * self.task_embedding_sd
        if task == 0:
            parameters = {"theta": shape.theta.start(source, self.chunk_embedding_sd)}
        else:
            if self.new_embedding == "chosen":
                embedding = self._best_embedding(network, embedding, stock, generators)
            extension = shape.extension(task)
            parameters = {}
            if extension.size:
                parameters[f"extension.{task}"] = extension.start(source, self.chunk_embedding_sd)
        parameters[f"embedding.{task}"] = embedding
        if self.heads == "separate":
            plain = initialise(network.layout, generators("heads"))
            own = [part for part in network.parts(task) if part != BODY]
            parameters |= {part: network.layouts[part].join(plain) for part in own}
        device = stock.parameters["theta"].device if task else "cpu"
        return {name: vector.to(device) for name, vector in parameters.items()}

    def _best_embedding(
        self, network: Network, drawn: Tensor, stock: Stock, generators: GeneratorFactory
    ) -> Tensor:
        """Of several draws, the one whose recurrent matrices have the smallest ||W W^T - I||^2.

        For an embedding far from all those it was trained on, h can generate matrices so far from orthogonal
        that the first gradients explode.
        """
        task = network.tasks - 1
        network = _first_tasks(network, task)  # everything that can be generated so far
        more = torch.randn(DRAWS, self.task_embedding, generator=generators("new embedding", task))
        draws = torch.cat([drawn[None], more * self.task_embedding_sd]).to(stock.parameters["theta"])
        made = self.generate(network, stock.buffers, stock.parameters, draws)
        split = self.shape(network).target.split
        far = [
            sum((float(Deviation.apply(w)) for w in network.recurrent_matrices(split(psi))), start=0.0)
            for psi in made
        ]
        return draws[far.index(min(far))].clone()

    def _new_scale(
        self, network: Network, task: int, stock: Stock, generators: GeneratorFactory
    ) -> tuple[str, Tensor]:
        """Factors that give psi the spread of a plain network's initial values, for average embeddings.

        What a later task adds gets the factors of the first task's own weights. Measured when the task
        arrives they could be very small, since a trained h makes large weights too, and a head with a small
        factor hardly learns.
        """
        shape = self.shape(network)
        if task == 0:
            if self.initialisation == "original":
                return "scale", torch.ones(shape.target.size)
            drawn = torch.randn(REFERENCES, self.task_embedding, generator=generators("scale"))
            with torch.no_grad():
                made = shape.arranged(shape.raw(stock.parameters, drawn * self.task_embedding_sd))
            return "scale", _spread_of_a_plain_network(shape.target, made)
        if self.heads == "separate":
            return f"scale.{task}", torch.ones(0)
        first = self.shape(_first_tasks(network, 1)).target.split(stock.buffers["scale"])
        factors = [stock.buffers["scale"][:0]]
        for alike, part in zip(network.parts(0), network.parts(task), strict=True):
            if part != alike:
                pairs = zip(network.layouts[alike].shapes, network.layouts[part].shapes.values(), strict=True)
                factors += [first[name].flatten()[0].expand(math.prod(shape)) for name, shape in pairs]
        return f"scale.{task}", torch.cat(factors)

    def active(
        self, network: Network, buffers: Vectors, tasks: Sequence[int], rehearsed: Sequence[int] = ()
    ) -> Positions:
        """theta, and the embeddings of all known tasks (or of these tasks only, if old ones are frozen)."""
        del buffers
        known = range(network.tasks) if self.embeddings == "trained" else tasks
        names = [*self.shape(network).names, *(f"embedding.{task}" for task in known)]
        if self.heads == "separate":
            names += [part for task in [*rehearsed, *tasks] for part in network.parts(task) if part != BODY]
        return dict.fromkeys(names)

    def weights(self, network: Network, buffers: Vectors, active: Vectors, task: int) -> TaskNetwork:
        """psi^(k) = h(e_k, theta)."""
        psi = self.generate(network, buffers, active, active[f"embedding.{task}"][None])[0]
        weights = self.shape(network).target.split(psi)
        if self.heads == "separate":
            for part in network.parts(task):
                if part != BODY:
                    weights |= network.layouts[part].split(active[part])
        if self.spectral:
            for name in [name for name in weights if name.endswith("weight_hh")]:
                weights[name] = _spectrally_normalised(weights[name])
        return network, weights

    def generate(self, network: Network, buffers: Vectors, parameters: Vectors, embeddings: Tensor) -> Tensor:
        """Flat generated weights [C, |psi|] for C embeddings [C, E] in one batch."""
        shape = self.shape(network)
        return shape.arranged(shape.raw(parameters, embeddings)) * self.scale(network, buffers)

    def scale(self, network: Network, buffers: Vectors) -> Tensor:
        """The factor of each generated weight [|psi|]."""
        names = ["scale", *(f"scale.{task}" for task in range(1, network.tasks))]
        found = [buffers[name] for name in names if name in buffers]
        return found[0] if len(found) == 1 else torch.cat(found)

    def owned(self, network: Network, task: int) -> Tensor:
        """1 for each weight of the flat psi that a task uses (the body and its own head), 0 elsewhere."""
        target, used = self.shape(network).target, network.layout_of(task).axes
        return target.join(
            {name: torch.full(shape, float(name in used)) for name, shape in target.shapes.items()}
        )

    def shape(self, network: Network) -> HypernetworkShape:
        """The hypernetwork's weights and what they generate, for a main network."""
        return shape_of(self.resolved(network), network)

    def count(self, network: Network) -> int:
        """|theta and all embeddings|, separate heads included."""
        own = sum(layout.size for name, layout in network.layouts.items() if name != BODY)
        heads = own if self.heads == "separate" else 0
        return self.shape(network).size + network.tasks * self.task_embedding + heads

    def generated(self, network: Network) -> Generated:
        """|psi| and |theta and all embeddings|."""
        return Generated("network", network.layout.size, self.count(network))

    def resolved(self, network: Network) -> Hypernetwork:
        """The same with `chunk` and `hidden` chosen so that the desired ratio is met at the first task."""
        return self if self.ratio is None else _resolved(self, _first_tasks(network, 1))


@lru_cache(maxsize=64)
def _resolved(options: Hypernetwork, network: Network) -> Hypernetwork:
    assert options.ratio is not None
    bare = options.model_copy(update={"ratio": None})
    hidden, limit = options.hidden, options.ratio * network.layout.size
    while True:
        fitting = _largest_chunk(bare.model_copy(update={"hidden": hidden}), network, limit)
        if fitting is not None:
            return fitting
        if max(hidden) == 1:
            raise PerdureError(
                f"weights.ratio: no hypernetwork of at most {options.ratio} times the network's "
                f"{network.layout.size} weights was found; try smaller embeddings."
            )
        hidden = tuple(max(1, units * 3 // 4) for units in hidden)


def _largest_chunk(options: Hypernetwork, network: Network, limit: float) -> Hypernetwork | None:
    """The options with the largest chunk that stays below the limit, or None."""
    if options.kind == "full":
        return options if options.count(network) <= limit else None
    if options.kind == "structured":
        rows = max(axes[0].size for axes in network.body.axes.values())
        sizes: Iterable[int] = [size for size in range(rows, 0, -1) if rows % size == 0]
    else:
        most = int(limit // (options.hidden[-1] + 1))  # the last layer alone must stay below it
        step = max(1, network.layout.size // 4000)
        sizes = [size for size in range(network.layout.size, 0, -step) if size <= most]
    for chunk in sizes:
        candidate = options.model_copy(update={"chunk": chunk})
        if candidate.count(network) <= limit:
            return candidate
    return None


def _first_tasks(network: Network, tasks: int) -> Network:
    """The network as it was when only the first tasks had arrived."""
    return network if network.tasks == tasks else _known_networks(network, tasks)


@lru_cache(maxsize=64)
def _known_networks(network: Network, tasks: int) -> Network:
    return Network(network.architecture, network.inputs, network.outputs[:tasks])


def _spread_of_a_plain_network(target: Layout, made: Tensor) -> Tensor:
    """Factors [|psi|] that give each generated tensor the standard deviation specified by its layout.

    1/sqrt(H) for W_hh, which is that of an orthogonal matrix, and 1/sqrt(3 fan-in) for the rest, so that
    the orthogonal penalty does not start far too high.
    """
    parts = []
    each = [target.split(psi) for psi in made]
    for name, shape in target.shapes.items():
        spread = torch.stack([weights[name].std(correction=0) for weights in each]).mean()
        factor = target.starts[name].spread / spread if spread > 0 else torch.ones((), device=made.device)
        parts.append(factor.expand(shape).reshape(-1))
    return torch.cat(parts)


def _spectrally_normalised(matrix: Tensor) -> Tensor:
    """W divided by its largest singular value, each gate's block separately."""
    blocks = []
    for block in matrix.split(matrix.shape[1]):
        with torch.no_grad():
            vector = torch.ones(1, block.shape[1], dtype=block.dtype, device=block.device)
            for _ in range(POWER_STEPS):
                vector = functional.normalize(product(linear(vector, block), block), dim=1)
            other = functional.normalize(linear(vector, block), dim=1)
        blocks.append(block / inner(other[0], linear(vector, block)[0]))  # u^T W v, differentiable in W
    return torch.cat(blocks)
