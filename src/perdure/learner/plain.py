"""One task's network as a plain torch module, for use without Perdure: generated weights are written out.

It maps x [N, T, F] and lengths [N] to probabilities (classes, tags, bits) or values in their own units.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from perdure.config import Config
from perdure.learner.answers import Format
from perdure.learner.faults import wrong
from perdure.learner.knowledge import Knowledge
from perdure.learner.prediction import network_of
from perdure.networks.bodies.recurrent import Recurrent
from perdure.networks.layout import Weights
from perdure.registry import pieces


class Scale(nn.Module):
    """(x - offset) * factor."""

    def __init__(self, offset: Tensor, factor: Tensor) -> None:
        """Keep both as buffers, so that they are saved with the weights."""
        super().__init__()
        self.register_buffer("offset", offset)
        self.register_buffer("factor", factor)

    def forward(self, x: Tensor) -> Tensor:
        """Scaled inputs."""
        return (x - self.offset) * self.factor  # type: ignore[operator]


class Layer(nn.Module):
    """A recurrent layer over sequences of different lengths, and how it passes its states on."""

    def __init__(self, recurrent: nn.RNNBase, readout: nn.Module) -> None:
        """Both with weights filled in; `readout` treats each step separately."""
        super().__init__()
        self.recurrent, self.readout = recurrent, readout

    def forward(self, rows: Tensor, lengths: Tensor) -> Tensor:
        """Outputs [N, T, H] of inputs [N, T, F]; zero states beyond an end."""
        packed = pack_padded_sequence(rows, lengths, batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(
            self.recurrent(packed)[0], batch_first=True, total_length=rows.size(1)
        )
        return self.readout(states)  # type: ignore[no-any-return]


class Answer(nn.Module):
    """The head at the answered steps, and what its outputs mean."""

    def __init__(self, head: nn.Linear, steps: int, meaning: str, units: nn.Module) -> None:
        """`steps`: the last P, or 0 for all; `meaning`: softmax, sigmoid or none."""
        super().__init__()
        self.head, self.steps, self.meaning, self.units = head, steps, meaning, units

    def forward(self, rows: Tensor, lengths: Tensor) -> Tensor:
        """[N, C] for one answered step, otherwise [N, P, C] or [N, T, C]."""
        if self.steps > 0:
            index = (lengths - self.steps)[:, None] + torch.arange(self.steps, device=lengths.device)
            rows = rows.gather(1, index[:, :, None].expand(-1, -1, rows.size(2)))
        outputs = self.head(rows)
        if self.meaning == "softmax":
            outputs = outputs.softmax(-1)
        elif self.meaning == "sigmoid":
            outputs = outputs.sigmoid()
        outputs = self.units(outputs)
        return outputs[:, 0] if self.steps == 1 and self.meaning != "sigmoid" else outputs  # type: ignore[no-any-return]


class PlainNetwork(nn.Module):
    """Scaling, dense layers, recurrent layers, dense layers, answer."""

    def __init__(
        self, scale: nn.Module, before: nn.Module, layers: list[Layer], after: nn.Module, answer: Answer
    ):
        """Compose the parts."""
        super().__init__()
        self.scale, self.before, self.after, self.answer = scale, before, after, answer
        self.layers = nn.ModuleList(layers)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Probabilities or values of sequences x [N, T, F] with lengths [N]."""
        rows = self.before(self.scale(x))
        for layer in self.layers:
            rows = layer(rows, lengths)
        return self.answer(self.after(rows), lengths)  # type: ignore[no-any-return]


def plain_network(config: Config, knowledge: Knowledge, task: str) -> PlainNetwork:
    """The network with which a task runs now, as a module in evaluation mode."""
    network, weights = network_of(config, knowledge, task)
    body, form, number = network.architecture, knowledge.formats[task], knowledge.number(task)
    if not isinstance(body, Recurrent) or _layer_of(type(body.cell)) is None:
        name = body.cell.name if isinstance(body, Recurrent) else body.name
        can = ", ".join(name for name, kind in pieces("cells").items() if _layer_of(kind) is not None)
        raise wrong(
            "task", f"a network with {name} cannot be exported or run step by step; only {can} cells can."
        )
    given = {name: value.detach().clone() for name, value in weights.items()}
    _fold_identity(given, number)
    scaling = knowledge.scaling
    scale: nn.Module = nn.Identity()
    if scaling is not None:
        scale = Scale(*(torch.from_numpy(part.copy()) for part in scaling))
    layers = [_layer(body, given, index) for index in range(body.layers)]
    head = _linear(given, network.head(number))
    normed = [_normed(knowledge.inputs)] if body.input_norm else []
    module = PlainNetwork(
        scale,
        nn.Sequential(*normed, *_dense(body, given, "input_layers", len(body.input_layers))),
        layers,
        nn.Sequential(*_dense(body, given, "output_layers", len(body.output_layers))),
        _answer(form, head),
    )
    return module.eval().requires_grad_(False)


def _fold_identity(weights: dict[str, Tensor], task: int) -> None:
    """A task's one-hot input is constant, so what it adds is part of the first biases."""
    prefix = f"identity.{task}."
    for name in [name for name in weights if name.startswith(prefix)]:
        place = name.removeprefix(prefix)
        bias = f"{place}.bias" if f"{place}.bias" in weights else f"{place}.bias_ih"
        weights[bias] = weights[bias] + weights[name]


def _linear(weights: Weights, name: str) -> nn.Linear:
    weight, bias = weights[f"{name}.weight"], weights[f"{name}.bias"]
    layer = nn.Linear(weight.shape[1], weight.shape[0])
    layer.weight.data, layer.bias.data = weight, bias
    return layer


def _dense(body: Recurrent, weights: Weights, name: str, count: int) -> list[nn.Module]:
    parts: list[nn.Module] = []
    for index in range(count):
        linear = _linear(weights, f"{name}.{index}")
        parts += [linear, nn.Tanh(), *_passing(body, linear.out_features)]
    return parts


def _passing(body: Recurrent, units: int) -> list[nn.Module]:
    """What happens to a layer's output before the next one reads it; nothing is dropped outside training."""
    return [_normed(units)] if body.norm == "layer" else []


def _normed(units: int) -> nn.LayerNorm:
    """Mean 0 and variance 1 over units, without weights."""
    return nn.LayerNorm(units, elementwise_affine=False)


def _layer(body: Recurrent, weights: Weights, index: int) -> Layer:
    """One recurrent layer with all that it does to its states."""
    prefixes = body.prefixes(index)
    first = weights[prefixes[0] + "weight_ih"]
    units = weights[prefixes[0] + "weight_hh"].shape[1]
    layer = _layer_of(type(body.cell))
    assert layer is not None  # the caller has checked it
    recurrent = layer(first.shape[1], units, batch_first=True, bidirectional=len(prefixes) == 2)
    for prefix, ending in zip(prefixes, ("l0", "l0_reverse"), strict=False):
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            value = weights[prefix + name]
            if name == "bias_ih":
                value = _shifted(body.cell, value)
            getattr(recurrent, f"{name}_{ending}").data = value
    zeroed: list[nn.Module] = []
    if body.zero_forward and body.bidirectional:
        halves = torch.tensor([0.0, 1.0]).repeat_interleave(units)
        zeroed = [Scale(torch.zeros(2 * units), halves)]
    readout = [*zeroed, *_readout(weights, prefixes, units), *_passing(body, units * len(prefixes))]
    return Layer(recurrent, nn.Sequential(*readout))


def _readout(weights: Weights, prefixes: tuple[str, ...], units: int) -> list[nn.Module]:
    """The cell's own readout, if it has one; of both directions it is block-diagonal."""
    if prefixes[0] + "weight_ho" not in weights:
        return []
    linear = nn.Linear(units * len(prefixes), units * len(prefixes))
    linear.weight.data = torch.block_diag(*(weights[prefix + "weight_ho"] for prefix in prefixes))
    linear.bias.data = torch.cat([weights[prefix + "bias_ho"] for prefix in prefixes])
    return [linear, nn.Tanh()]


def _shifted(cell: Any, bias: Tensor) -> Tensor:
    """The bias with the cell's constant."""
    shifted: Tensor = cell.shifted(bias)
    return shifted


def _answer(form: Format, head: nn.Linear) -> Answer:
    units: nn.Module = nn.Identity()
    meaning = "softmax" if form.target.categorical else "sigmoid"
    if form.offset:
        factor = torch.tensor(form.factor, dtype=torch.float64)
        offset = -torch.tensor(form.offset, dtype=torch.float64) * factor
        units, meaning = Scale(offset.float(), (1 / factor).float()), "none"
    return Answer(head, form.steps, meaning, units)


def _layer_of(cell: type) -> Callable[..., nn.RNNBase] | None:
    """Torch's layer with a cell's recurrence; see `Cell.torch_layer`."""
    found: Callable[..., nn.RNNBase] | None = vars(cell).get("torch_layer")
    return found
