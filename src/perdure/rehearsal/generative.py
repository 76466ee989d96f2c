"""Generative replay with a sequential VAE (SM "Generative replay using a sequential VAE").

The decoder from before the current task replays sequences of old tasks, the network from before it provides
their targets, and both are distilled into the current network. `Generative` is RtF: one decoder, given the
task as a one-hot input, trained on data and on its own replay (Eq. rtf:loss). `GenerativeHypernetwork` is
HNET+R: a hypernetwork generates each task's decoder and is protected by its own penalty, so that only the
current task's decoder is trained, on data alone (Eq. hnet:replay:loss).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import ClassVar, Literal

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor

from perdure.hooks import PhaseContext, PhaseEnd, Step, Term, named_losses
from perdure.networks.arithmetic import linear
from perdure.networks.batch import Batch, asking, unlabelled
from perdure.networks.bodies.recurrent import Recurrent
from perdure.networks.cells.cell import CellChoice
from perdure.networks.initialise import initialise
from perdure.networks.layout import Axis, Layout, Vectors
from perdure.networks.network import Network
from perdure.networks.packing import Packing, pack_lengths
from perdure.networks.targets import distillation, units
from perdure.networks.together import features_of, logits_of
from perdure.networks.variational import (
    Likelihood,
    emitted,
    prior_matching,
    reconstruction,
    sample_latent,
)
from perdure.options import Moderate, Sizes, SomeSizes, Strength
from perdure.penalties.hnet_regulariser import HnetRegulariser
from perdure.penalties.orthogonal import Orthogonal
from perdure.penalties.penalty import Penalty
from perdure.rehearsal.rehearsal import Rehearsal, sequences_of, shares
from perdure.weights.hypernetwork import Hypernetwork
from perdure.weights.shared import Shared
from perdure.weights.source import Generated, GeneratorFactory, Stock, TaskNetwork, WeightSource, take

LENGTHS = 10_000
"""Lengths stored of a task that was learnt several times, but no fewer than its newest visit has."""
DECODER = "decoder."
"""Prefix of the decoder's parameter vectors."""


class Generative(Rehearsal):
    """A sequential VAE replays old tasks (RtF)."""

    prefixes: ClassVar[tuple[str, ...]] = ("latent", DECODER)
    revision: ClassVar[int] = 2
    one_hot: ClassVar[bool] = True
    """Whether the decoder receives the task as a one-hot input."""
    trains_on_replay: ClassVar[bool] = True
    """Whether the VAE is also trained on replayed sequences."""

    distillation: Strength = 1.0
    """lambda_distill: the factor of the distillation loss on replayed sequences."""
    reconstruction: Strength = 10.0
    """lambda_rec: the factor of the reconstruction loss."""
    prior: Strength = 1.0
    """lambda_pm: the factor of the prior-matching loss."""
    temperature: Moderate = 2.0
    """Temperature T of the distillation; the loss is multiplied by T^2."""
    likelihood: Likelihood = "bernoulli"
    """Distribution of inputs given z: bernoulli for bits, gaussian for other numbers."""
    latent: PositiveInt = 8
    """Latent dimensions at each step."""
    prior_sd: Moderate = 1.0
    """Standard deviation of the prior of z."""
    cell: CellChoice
    """Kind of the decoder's recurrent cell."""
    hidden: SomeSizes = (256,)
    """Units of the decoder's recurrent layers."""
    input_layers: Sizes = ()
    """Units of dense layers before them."""
    output_layers: Sizes = ()
    """Units of dense layers after them."""
    orthogonal: bool = False
    """Initialise the decoder's hidden-to-hidden matrices orthogonally."""
    orthogonal_strength: Strength = 0.0
    """Factor of the orthogonal penalty on the decoder."""

    @property
    def source(self) -> WeightSource:
        """Where the decoder's weights come from."""
        return Shared()

    @property
    def decoder_penalties(self) -> dict[str, Penalty]:
        """Penalties on the decoder's weights, by name of the loss."""
        return {"decoder orthogonal": Orthogonal(strength=self.orthogonal_strength)}

    def decoder(self, network: Network) -> Network:
        """The decoder for the sequences that a main network reads."""
        architecture = Recurrent(
            cell=self.cell,
            hidden=self.hidden,
            input_layers=self.input_layers,
            output_layers=self.output_layers,
            heads="single",
            task_identity=self.one_hot,
            initialisation="torch",
            orthogonal=self.orthogonal,
        )
        return Network(architecture, self.latent, [network.inputs] * network.tasks)

    def grow(self, network: Network, known: int, stock: Stock, generators: GeneratorFactory) -> Stock:
        """Initially the map to the latents; and the decoder's parameters."""
        parameters: Vectors = {}
        if known == 0:
            layout = latent_layout(self, network)
            parameters["latent"] = layout.join(initialise(layout, generators("latent")))
        so_far = Stock(decoder_part(stock.parameters), decoder_part(stock.buffers))
        new = self.source.grow(self.decoder(network), known, so_far, _decoders(generators))
        parameters |= {DECODER + name: vector for name, vector in new.parameters.items()}
        return Stock(parameters, {DECODER + name: vector for name, vector in new.buffers.items()})

    def begin(self, memory: Vectors, context: PhaseContext) -> GenerativeTerm:
        """Replay the tasks in the memory."""
        return GenerativeTerm(self, memory, context)

    def held(self, memory: Vectors, context: PhaseContext) -> int:
        """The old network and decoder, as teachers, and what the decoder's penalties hold."""
        del memory
        around = self.around(context)
        return context.snapshot + sum(each.held({}, around) for each in self.decoder_penalties.values())

    def around(self, context: PhaseContext) -> PhaseContext:
        """The same phase, as the decoder sees it."""
        network, source = self.decoder(context.network), self.source
        buffers, parameters = decoder_part(context.buffers), decoder_part(context.parameters)
        positions = source.active(network, buffers, context.tasks, context.known)
        return replace(
            context,
            network=network,
            source=source,
            buffers=buffers,
            parameters=parameters,
            positions=positions,
            start=take(parameters, positions),
            generators=_decoders(context.generators),
        )

    def examples(
        self, memory: Vectors, context: PhaseContext, task: int, real: Batch
    ) -> dict[str, list[Tensor]]:
        """Reconstructions of real sequences, and sequences decoded from the prior."""
        replay = self.begin(memory, context)
        decoders = replay.decoders([task])
        decoded, _ = replay.autoencoded(context.parameters, {task: real}, decoders)
        imagined = replay.imagine({task: len(real)})[task]
        return {
            "reconstructed": sequences_of(real, emitted(decoded[task], self.likelihood)),
            "replayed": sequences_of(imagined, imagined.rows),
        }


class GenerativeHypernetwork(Generative):
    """A sequential VAE replays old tasks; a hypernetwork generates its decoders (HNET+R)."""

    later: ClassVar[tuple[str, ...]] = ("hyper_ratio",)
    one_hot: ClassVar[bool] = False
    trains_on_replay: ClassVar[bool] = False

    beta: Strength = 10.0
    """Factor of the hypernetwork's penalty."""
    hyper_hidden: SomeSizes = (50, 50)
    """Hidden layers of the hypernetwork."""
    hyper_chunk: PositiveInt = 2500
    """Weights per chunk."""
    task_embedding: PositiveInt = 32
    """Size of a task embedding."""
    chunk_embedding: PositiveInt = 32
    """Size of a chunk embedding."""
    hyper_ratio: PositiveFloat | None = None
    """Desired |theta and embeddings| / |decoder| at the first task; chunk and hidden are chosen to fit."""
    hyper_initialisation: Literal["scaled", "original"] = "scaled"
    """Initialisation of generated decoder weights; see hnet."""

    @property
    def source(self) -> WeightSource:
        """The hypernetwork."""
        return Hypernetwork(
            hidden=self.hyper_hidden,
            chunk=self.hyper_chunk,
            ratio=self.hyper_ratio,
            task_embedding=self.task_embedding,
            chunk_embedding=self.chunk_embedding,
            initialisation=self.hyper_initialisation,
        )

    def generated(self, network: Network) -> Generated | None:
        """The decoder, and the hypernetwork."""
        made = self.source.generated(self.decoder(network))
        return None if made is None else made._replace(what="decoder")

    @property
    def decoder_penalties(self) -> dict[str, Penalty]:
        """In addition, the hypernetwork's own penalty."""
        return super().decoder_penalties | {"decoder regulariser": HnetRegulariser(strength=self.beta)}


def latent_layout(options: Generative, network: Network) -> Layout:
    """Weights of the map from features to xi = [mean | logvar]."""
    rows, columns = Axis((("latent", 2 * options.latent),)), Axis((("features", network.width),))
    start = network.architecture.rule.affine(network.width)
    return Layout.of({"latent.weight": ((rows, columns), start), "latent.bias": ((rows,), start)})


def _sum_of(name: str, losses: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """All losses of a decoder's penalty as one, if there are any."""
    found = list(losses.values())
    return {name: sum(found[1:], found[0])} if found else {}


def _decoders(generators: GeneratorFactory) -> GeneratorFactory:
    """The run's generators, in separate roles for the decoder."""

    def decoder_generators(*role: object) -> torch.Generator:
        return generators("decoder", *role)

    return decoder_generators


class GenerativeTerm(Term):
    """The rehearsal during one phase."""

    def __init__(self, options: Generative, memory: Vectors, context: PhaseContext) -> None:
        """Freeze the old decoder, and start the decoder's own penalties."""
        self.options, self.memory, self.context = options, memory, context
        self.generator = context.generators("rehearsal", *context.tasks)
        around = options.around(context)
        self.decoder, self.source = around.network, around.source
        self.buffers, self.before = around.buffers, around.parameters
        self.terms = {name: penalty.begin({}, around) for name, penalty in options.decoder_penalties.items()}
        self.teachers = context.networks_before(context.known)
        self.frozen = self.decoders(context.known)

    def decoders(self, tasks: Iterable[int], active: Vectors | None = None) -> dict[int, TaskNetwork]:
        """Decoders of tasks and their weights: before the phase, or with the vectors trained so far."""
        vectors = self.before | decoder_part(active or {})
        return self.source.running(self.decoder, self.buffers, vectors, tasks)

    def losses(self, step: Step) -> dict[str, Tensor]:
        """Distillation on replayed sequences; VAE losses on current and, for RtF, replayed ones."""
        options, active = self.options, step.active
        replayed = self._replayed(sum(len(batch) for batch in step.batches.values()))
        losses: dict[str, Tensor] = {}
        if replayed:
            losses["distillation"] = options.distillation * self._distilled(step, replayed)
        seen = {**step.batches, **(replayed if options.trains_on_replay else {})}
        decoders = self.decoders(seen, active)
        count = sum(len(batch) for batch in seen.values())
        decoded, xi = self.autoencoded(active, seen, decoders)
        rebuilt = [reconstruction(decoded[task], seen[task].rows, options.likelihood) for task in seen]
        matched = [prior_matching(xi[task], options.prior_sd) for task in seen]
        losses["reconstruction"] = options.reconstruction / count * torch.stack(rebuilt).sum()
        losses["prior"] = options.prior / count * torch.stack(matched).sum()
        of_decoder = replace(
            step, active=decoder_part(active), networks={task: decoders[task] for task in step.batches}
        )
        of_terms = ((name, _sum_of(name, term.losses(of_decoder))) for name, term in self.terms.items())
        return named_losses([(options.name, losses), *of_terms])

    def _replayed(self, samples: int) -> dict[int, Batch]:
        """Replayed batches of old tasks, `samples` in all."""
        known = list(self.context.known)
        return self.imagine(shares(samples, known, self.generator)) if known else {}

    @torch.no_grad()
    def imagine(self, counts: Mapping[int, int]) -> dict[int, Batch]:
        """The given number of sequences per task, decoded from the prior as before the phase."""
        latents: dict[int, Batch] = {}
        for task, count in counts.items():
            lengths = self.memory[f"lengths.{task}"].long().cpu()
            packing = pack_lengths(lengths[torch.randint(len(lengths), (count,), generator=self.generator)])
            latents[task] = unlabelled(self._noise(packing.offsets[-1]) * self.options.prior_sd, packing)
        decoders = self.frozen if set(counts) <= set(self.frozen) else self.decoders(counts)
        return {
            task: self._asking(task, emitted(decoded, self.options.likelihood), latents[task].packing)
            for task, decoded in logits_of(decoders, latents).items()
        }

    def _asking(self, task: int, rows: Tensor, packing: Packing) -> Batch:
        """Sequences as a batch without targets, with outputs required where the task's own are."""
        target = self.context.formats[task].target
        return asking(target, rows, packing, int(self.memory[f"answered.{task}"]))

    def _noise(self, rows: int) -> Tensor:
        drawn = torch.randn(rows, self.options.latent, generator=self.generator)
        latent = self.context.parameters["latent"]
        return drawn.to(latent.device, latent.dtype)

    def _distilled(self, step: Step, replayed: Mapping[int, Batch]) -> Tensor:
        """Sum over old tasks of the mean loss of the task's share (over its tokens, for tags)."""
        with torch.no_grad():
            wanted = logits_of(self.teachers, replayed)
        trained_on = {task: replace(batch, noise=step.noise) for task, batch in replayed.items()}
        logits = logits_of(self.context.networks_now(step.active, replayed), trained_on)
        width = self.context.known_outputs  # the teacher knew no others, if the head has grown
        losses = [
            distillation(logits[task][:, :width], wanted[task][:, :width], batch, self.options.temperature)
            / units(batch)
            for task, batch in replayed.items()
        ]
        return torch.stack(losses).sum()

    def autoencoded(
        self,
        active: Vectors,
        batches: Mapping[int, Batch],
        decoders: Mapping[int, TaskNetwork],
    ) -> tuple[dict[int, Tensor], dict[int, Tensor]]:
        """Batches through encoder, sampled latents and decoder: raw outputs [S, F] and xi [S, 2L] of each."""
        latent = latent_layout(self.options, self.context.network).split(active["latent"])
        encoders = self.context.networks_now(active, batches)
        features = features_of(encoders, batches, everywhere=True)
        xi = {
            task: linear(rows, latent["latent.weight"], latent["latent.bias"])
            for task, rows in features.items()
        }
        latents = {
            task: unlabelled(sample_latent(xi[task], self._noise(len(xi[task]))), batch.packing)
            for task, batch in batches.items()
        }
        return logits_of(decoders, latents), xi

    def state(self) -> Vectors:
        """The generators of noise and of the decoder's penalties."""
        kept = {"generator": self.generator.get_state()}
        for name, term in self.terms.items():
            kept |= {f"{name}/{key}": value for key, value in term.state().items()}
        return kept

    def restore(self, state: Vectors) -> None:
        """Continue as before."""
        self.generator.set_state(state["generator"].cpu())
        for name, term in self.terms.items():
            prefix = f"{name}/"
            term.restore({k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)})

    def finish(self, end: PhaseEnd) -> Vectors:
        """Store the lengths of the tasks' sequences, and their numbers of output steps (0: all)."""
        memory = dict(self.memory)
        for task, data in end.data.items():
            lengths = torch.tensor([data.x.shape[1]]) if data.lengths is None else data.lengths
            before = self.memory.get(f"lengths.{task}")  # of earlier visits
            if before is not None:
                lengths = _lengths_of_both(before.cpu(), lengths, len(data))
            memory[f"lengths.{task}"] = lengths.to(torch.int32)
            memory[f"answered.{task}"] = torch.tensor(data.target.answered(data.y))
        return memory


def _lengths_of_both(before: Tensor, now: Tensor, sequences: int) -> Tensor:
    """Lengths of all visits, from which replay draws; the older ones are thinned where there are too many.

    A visit whose sequences are equally long is stored as one number, which counts like a visit of this size.
    """
    before, now = (each.expand(sequences) if len(each) == 1 else each for each in (before, now))
    room = max(LENGTHS - len(now), len(now))
    kept = before[torch.linspace(0, len(before) - 1, min(room, len(before))).long()]
    return torch.cat([kept.to(now.dtype), now])


def decoder_part(vectors: Vectors) -> Vectors:
    """The decoder's vectors among all, by the names that they have in the decoder itself."""
    return {n.removeprefix(DECODER): v for n, v in vectors.items() if n.startswith(DECODER)}
