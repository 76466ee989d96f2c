"""Generative replay with a sequential VAE (SM "Generative replay using a sequential VAE").

The decoder as it was before the current task replays sequences of old tasks; the network as it was then
says what they mean; both are distilled into the current network. `Generative` is RtF: one decoder, told the
task by a one-hot input, trained on data and on its own replay (Eq. rtf:loss). `GenerativeHypernetwork` is
HNET+R: a hypernetwork makes each task's decoder and is protected by its own penalty, so that only the
current task's decoder is trained, on data alone (Eq. hnet:replay:loss).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Literal

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor
from torch.nn import functional

from perdure.networks.batch import Batch, asking, unlabelled
from perdure.networks.initialise import initialise
from perdure.networks.layout import Axis, Layout, Vectors, Weights
from perdure.networks.network import Architecture, Network
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
from perdure.options import Sizes, Strength
from perdure.penalties.generated import Generated
from perdure.penalties.orthogonal import Orthogonal
from perdure.penalties.penalty import Situation, Term
from perdure.rehearsal.rehearsal import Rehearsal, sequences_of, shares, student, teacher
from perdure.weights.hypernetwork import Hypernetwork
from perdure.weights.shared import Shared
from perdure.weights.source import Chance, WeightSource, take

DECODER = "decoder."
"""Prefix of the decoder's parameter vectors."""


class Generative(Rehearsal):
    """A sequential VAE replays old tasks (RtF)."""

    prefixes: ClassVar[tuple[str, ...]] = ("latent", DECODER)
    revision: ClassVar[int] = 1
    one_hot: ClassVar[bool] = True
    """Whether the decoder is told the task by a one-hot input."""
    trains_on_replay: ClassVar[bool] = True
    """Whether the VAE is trained on replayed sequences too."""

    distillation: Strength = 1.0
    """lambda_distill: the factor of the distillation loss on replayed sequences."""
    reconstruction: Strength = 10.0
    """lambda_rec: the factor of the reconstruction loss."""
    prior: Strength = 1.0
    """lambda_pm: the factor of the prior-matching loss."""
    temperature: PositiveFloat = 2.0
    """Temperature T of the distillation; the loss is multiplied by T^2."""
    likelihood: Likelihood = "bernoulli"
    """Distribution of inputs given z: bernoulli for bits, gaussian for other numbers."""
    latent: PositiveInt = 8
    """Latent dimensions at each step."""
    prior_sd: PositiveFloat = 1.0
    """Standard deviation of the prior of z."""
    cell: Literal["elman", "lstm", "gru"] = "elman"
    """Kind of the decoder's recurrent cell."""
    hidden: Sizes = (256,)
    """Units of the decoder's recurrent layers."""
    before: Sizes = ()
    """Units of dense layers before them."""
    after: Sizes = ()
    """Units of dense layers after them."""
    orthogonal: bool = False
    """Start the decoder with orthogonal hidden-to-hidden matrices."""
    orthogonal_strength: Strength = 0.0
    """Factor of the orthogonal penalty on the decoder."""

    @property
    def source(self) -> WeightSource:
        """Where the decoder's weights come from."""
        return Shared()

    @property
    def protection(self) -> Generated | None:
        """What protects the decoder's weights."""
        return None

    def decoder(self, network: Network) -> Network:
        """The decoder for the sequences that a main network reads."""
        architecture = Architecture(
            cell=self.cell,
            hidden=self.hidden,
            before=self.before,
            after=self.after,
            heads="single",
            task_identity=self.one_hot,
            initialisation="torch",
            orthogonal=self.orthogonal,
        )
        return Network(architecture, self.latent, [network.inputs] * network.tasks)

    def start(self, network: Network, chance: Chance) -> Vectors:
        """The map to the latents, and the decoder's parameters."""
        layout = latent_layout(self, network)
        drawn = initialise(layout, network.architecture, chance("latent"))
        parameters, _ = self.source.start(self.decoder(network), _decoders(chance))
        return {"latent": layout.join(drawn)} | {DECODER + n: v for n, v in parameters.items()}

    def begin(self, memory: Vectors, situation: Situation) -> GenerativeReplay:
        """Replay the tasks that the memory knows."""
        return GenerativeReplay(self, memory, situation)

    def examples(
        self, memory: Vectors, situation: Situation, task: int, real: Batch
    ) -> dict[str, list[Tensor]]:
        """Reconstructions of real sequences, and sequences decoded from the prior."""
        replay = self.begin(memory, situation)
        decoders = {task: replay.decoder_of(task)}
        decoded, _ = replay.autoencoded(situation.parameters, {task: real}, decoders)
        imagined = replay.imagine({task: len(real)})[task]
        return {
            "reconstructed": sequences_of(real, emitted(decoded[task], self.likelihood)),
            "replayed": sequences_of(imagined, imagined.rows),
        }


class GenerativeHypernetwork(Generative):
    """A sequential VAE replays old tasks; a hypernetwork makes its decoders (HNET+R)."""

    one_hot: ClassVar[bool] = False
    trains_on_replay: ClassVar[bool] = False

    beta: Strength = 10.0
    """Factor of the hypernetwork's penalty."""
    hyper_hidden: Sizes = (50, 50)
    """Hidden layers of the hypernetwork."""
    hyper_chunk: PositiveInt = 2500
    """Weights in a chunk."""
    task_embedding: PositiveInt = 32
    """Size of a task embedding."""
    chunk_embedding: PositiveInt = 32
    """Size of a chunk embedding."""
    hyper_initialisation: Literal["scaled", "original"] = "scaled"
    """How generated decoder weights start; see hnet."""

    @property
    def source(self) -> WeightSource:
        """The hypernetwork."""
        return Hypernetwork(
            hidden=self.hyper_hidden,
            chunk=self.hyper_chunk,
            task_embedding=self.task_embedding,
            chunk_embedding=self.chunk_embedding,
            initialisation=self.hyper_initialisation,
        )

    @property
    def protection(self) -> Generated:
        """The hypernetwork's own penalty."""
        return Generated(strength=self.beta)


def latent_layout(options: Generative, network: Network) -> Layout:
    """Weights of the map from features to xi = [mean | logvar]."""
    rows, columns = Axis((("latent", 2 * options.latent),)), Axis((("features", network.width),))
    return Layout({"latent.weight": (rows, columns), "latent.bias": (rows,)})


def _decoders(chance: Chance) -> Chance:
    """The run's chance, in roles of the decoder's own."""

    def decoder_chance(*role: object) -> torch.Generator:
        return chance("decoder", *role)

    return decoder_chance


class GenerativeReplay:
    """The rehearsal during one phase."""

    def __init__(self, options: Generative, memory: Vectors, situation: Situation) -> None:
        """Freeze the old decoder, and begin the decoder's own penalties."""
        self.options, self.memory, self.situation = options, memory, situation
        self.old = list(range(min(situation.tasks)))
        self.chance = situation.chance("rehearsal", *situation.tasks)
        self.decoder, self.source = options.decoder(situation.network), options.source
        own = _decoders(situation.chance)
        # Buffers of the decoder's source, such as scales, follow from the run's seed.
        _, buffers = self.source.start(self.decoder, own)
        self.buffers = {n: b.to(situation.parameters["latent"].device) for n, b in buffers.items()}
        self.before = _decoder_part(situation.parameters)
        positions = self.source.active(self.decoder, self.buffers, situation.tasks, self.old)
        around = replace(
            situation,
            network=self.decoder,
            source=self.source,
            buffers=self.buffers,
            parameters=self.before,
            positions=positions,
            start=take(self.before, positions),
            chance=own,
        )
        self.terms: dict[str, Term] = {
            "decoder orthogonal": Orthogonal(strength=options.orthogonal_strength).begin({}, around)
        }
        if options.protection is not None:
            self.terms["decoder generated"] = options.protection.begin({}, around)
        self.teachers = {task: teacher(situation, task) for task in self.old}
        self.frozen = {task: self.decoder_of(task) for task in self.old}

    def decoder_of(self, task: int, active: Vectors | None = None) -> tuple[Network, Weights]:
        """A task's decoder and its weights: before the phase, or with the vectors trained so far."""
        vectors = self.before | _decoder_part(active or {})
        return self.source.weights(self.decoder, self.buffers, vectors, task)

    def losses(self, active: Vectors, batches: Mapping[int, Batch]) -> dict[str, Tensor]:
        """Distillation on replayed sequences; VAE losses on current and, for RtF, replayed ones."""
        options = self.options
        replayed = self._replayed(sum(len(batch) for batch in batches.values()))
        losses: dict[str, Tensor] = {}
        if replayed:
            losses["distillation"] = options.distillation * self._distilled(active, replayed)
        seen = {**batches, **(replayed if options.trains_on_replay else {})}
        decoders = {task: self.decoder_of(task, active) for task in seen}
        count = sum(len(batch) for batch in seen.values())
        decoded, xi = self.autoencoded(active, seen, decoders)
        rebuilt = [reconstruction(decoded[task], seen[task].rows, options.likelihood) for task in seen]
        matched = [prior_matching(xi[task], options.prior_sd) for task in seen]
        losses["reconstruction"] = options.reconstruction / count * torch.stack(rebuilt).sum()
        losses["prior"] = options.prior / count * torch.stack(matched).sum()
        for name, term in self.terms.items():
            loss = term.loss(_decoder_part(active), [decoders[task] for task in batches])
            if loss is not None:
                losses[name] = loss
        return losses

    def _replayed(self, samples: int) -> dict[int, Batch]:
        """Replayed batches of old tasks, `samples` in all."""
        return self.imagine(shares(samples, self.old, self.chance)) if self.old else {}

    @torch.no_grad()
    def imagine(self, counts: Mapping[int, int]) -> dict[int, Batch]:
        """So many sequences of each task, decoded from the prior by the decoder before the phase."""
        latents: dict[int, Batch] = {}
        for task, count in counts.items():
            lengths = self.memory[f"lengths.{task}"].long().cpu()
            packing = pack_lengths(lengths[torch.randint(len(lengths), (count,), generator=self.chance)])
            latents[task] = unlabelled(self._noise(packing.offsets[-1]) * self.options.prior_sd, packing)
        decoders = {task: self.frozen.get(task) or self.decoder_of(task) for task in counts}
        return {
            task: self._asking(task, emitted(decoded, self.options.likelihood), latents[task].packing)
            for task, decoded in logits_of(decoders, latents).items()
        }

    def _asking(self, task: int, rows: Tensor, packing: Packing) -> Batch:
        """Sequences as a batch without targets, to be answered where the task's own are."""
        target = self.situation.data(self.situation.tasks[0]).target
        return asking(target, rows, packing, int(self.memory[f"answered.{task}"]))

    def _noise(self, rows: int) -> Tensor:
        drawn = torch.randn(rows, self.options.latent, generator=self.chance)
        latent = self.situation.parameters["latent"]
        return drawn.to(latent.device, latent.dtype)

    def _distilled(self, active: Vectors, replayed: Mapping[int, Batch]) -> Tensor:
        """Sum over old tasks of the mean loss of the task's share (over its tokens, for tags)."""
        with torch.no_grad():
            wanted = logits_of(self.teachers, replayed)
        logits = logits_of({task: student(self.situation, active, task) for task in replayed}, replayed)
        losses = [
            distillation(logits[task], wanted[task], batch, self.options.temperature) / units(batch)
            for task, batch in replayed.items()
        ]
        return torch.stack(losses).sum()

    def autoencoded(
        self,
        active: Vectors,
        batches: Mapping[int, Batch],
        decoders: Mapping[int, tuple[Network, Weights]],
    ) -> tuple[dict[int, Tensor], dict[int, Tensor]]:
        """Batches through encoder, sampled latents and decoder: raw outputs [S, F] and xi [S, 2L] of each."""
        latent = latent_layout(self.options, self.situation.network).split(active["latent"])
        encoders = {task: student(self.situation, active, task) for task in batches}
        features = features_of(encoders, batches, everywhere=True)
        xi = {
            task: functional.linear(rows, latent["latent.weight"], latent["latent.bias"])
            for task, rows in features.items()
        }
        latents = {
            task: unlabelled(sample_latent(xi[task], self._noise(len(xi[task]))), batch.packing)
            for task, batch in batches.items()
        }
        return logits_of(decoders, latents), xi

    def state(self) -> Vectors:
        """The generator of noise and of the decoder's penalties."""
        kept = {"chance": self.chance.get_state()}
        for name, term in self.terms.items():
            kept |= {f"{name}/{key}": value for key, value in term.state().items()}
        return kept

    def restore(self, state: Vectors) -> None:
        """Go on as before."""
        self.chance.set_state(state["chance"].cpu())
        for name, term in self.terms.items():
            prefix = f"{name}/"
            term.restore({k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)})

    def finish(self, active: Vectors) -> Vectors:
        """Remember how long the sequences of the tasks are, and how many steps they answer (0: all)."""
        del active
        memory = dict(self.memory)
        for task in self.situation.tasks:
            data = self.situation.data(task)
            lengths = torch.tensor([data.x.shape[1]]) if data.lengths is None else data.lengths
            memory[f"lengths.{task}"] = lengths.to(torch.int32)
            memory[f"answered.{task}"] = torch.tensor(data.target.answered(data.y))
        return memory


def _decoder_part(vectors: Vectors) -> Vectors:
    return {n.removeprefix(DECODER): v for n, v in vectors.items() if n.startswith(DECODER)}
