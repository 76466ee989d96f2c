"""A plain network as an ONNX graph, written node by node: recurrent operators with sequence lengths.

Needs the package onnx, which is in the extra `export`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from perdure.benchmarks.task import Array
from perdure.learner.plain import Layer, PlainNetwork, Scale

OPSET = 17
"""Version of the operators; old enough for every current runtime."""
VERSION = 8
"""Version of the file format that goes with it."""

GATES = {"RNN": (0,), "LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2)}
"""The order in which ONNX stacks torch's gates."""


class Graph:
    """Nodes and constants of a graph under construction."""

    def __init__(self) -> None:
        """Start empty."""
        import onnx

        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Tensor | Array) -> str:
        """A constant by its name."""
        array = value.detach().cpu().numpy() if isinstance(value, Tensor) else value
        name = f"constant_{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """The output of a new node."""
        name = f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def numbers(self, *values: int) -> str:
        """Integers as a constant."""
        return self.constant(np.array(values, dtype=np.int64))


def onnx_model(module: PlainNetwork, features: int, notes: dict[str, str]) -> Any:
    """The model: inputs x [N, T, F] and lengths [N], output y."""
    graph = Graph()
    onnx = graph.onnx
    rows = _through(graph, module.before, _through(graph, module.scale, "x"))
    counts = graph.add("Cast", "lengths", to=onnx.TensorProto.INT32)
    for layer in module.layers:
        assert isinstance(layer, Layer)
        rows = _recurrent(graph, layer, rows, counts)
    rows = _through(graph, module.after, rows)
    _answer(graph, module, rows)
    number, real = onnx.TensorProto.INT64, onnx.TensorProto.FLOAT
    made = onnx.helper.make_graph(
        graph.nodes,
        "perdure",
        [
            onnx.helper.make_tensor_value_info("x", real, ["N", "T", features]),
            onnx.helper.make_tensor_value_info("lengths", number, ["N"]),
        ],
        [onnx.helper.make_tensor_value_info("y", real, _shape(module))],
        graph.constants,
    )
    model = onnx.helper.make_model(
        made, opset_imports=[onnx.helper.make_opsetid("", OPSET)], ir_version=VERSION, producer_name="perdure"
    )
    onnx.helper.set_model_props(model, notes)
    onnx.checker.check_model(model)
    return model


def _shape(module: PlainNetwork) -> list[str | int]:
    """The output's shape."""
    answer = module.answer
    if answer.steps == 1 and answer.meaning != "sigmoid":
        return ["N", answer.head.out_features]
    return ["N", answer.steps or "T", answer.head.out_features]


def _through(graph: Graph, module: nn.Module, rows: str) -> str:
    """Dense layers, tanh, normalisation and scaling."""
    if isinstance(module, nn.Sequential):
        for part in module:
            rows = _through(graph, part, rows)
        return rows
    if isinstance(module, nn.Linear):
        product = graph.add("MatMul", rows, graph.constant(module.weight.t()))
        return graph.add("Add", product, graph.constant(module.bias))
    if isinstance(module, nn.Tanh):
        return graph.add("Tanh", rows)
    if isinstance(module, nn.LayerNorm):  # it has no weights, but the operator requires a factor
        factor = graph.constant(torch.ones(module.normalized_shape))
        return graph.add("LayerNormalization", rows, factor, axis=-1, epsilon=module.eps)
    if isinstance(module, Scale):
        offset, scale = dict(module.named_buffers()).values()
        return graph.add("Mul", graph.add("Sub", rows, graph.constant(offset)), graph.constant(scale))
    assert isinstance(module, nn.Identity)
    return rows


def _recurrent(graph: Graph, layer: Layer, rows: str, counts: str) -> str:
    """One recurrent operator, from [N, T, F] to [N, T, directions * H], and its readout."""
    recurrent = layer.recurrent
    operator = type(recurrent).__name__
    endings = ("l0", "l0_reverse")[: 2 if recurrent.bidirectional else 1]
    stacked = [
        graph.constant(torch.stack([_reordered(recurrent, name, ending, operator) for ending in endings]))
        for name in ("weight_ih", "weight_hh", "bias")
    ]
    attributes: dict[str, Any] = {
        "hidden_size": recurrent.hidden_size,
        "direction": "bidirectional" if recurrent.bidirectional else "forward",
    }
    if operator == "GRU":
        attributes["linear_before_reset"] = 1
    steps = graph.add("Transpose", rows, perm=[1, 0, 2])
    states = graph.add(operator, steps, *stacked, counts, **attributes)  # [T, directions, N, H]
    beside = graph.add("Transpose", states, perm=[2, 0, 1, 3])
    width = recurrent.hidden_size * len(endings)
    joined = graph.add("Reshape", beside, graph.numbers(0, 0, width))
    return _through(graph, layer.readout, joined)


def _reordered(recurrent: nn.RNNBase, name: str, ending: str, operator: str) -> Tensor:
    """A stack of gates in ONNX's order; both biases side by side."""
    if name == "bias":
        both = [_reordered(recurrent, f"bias_{part}", ending, operator) for part in ("ih", "hh")]
        return torch.cat(both)
    value: Tensor = getattr(recurrent, f"{name}_{ending}").detach()
    parts = value.split(recurrent.hidden_size)
    return torch.cat([parts[gate] for gate in GATES[operator]])


def _answer(graph: Graph, module: PlainNetwork, rows: str) -> None:
    """The head at the answered steps; the output is called y."""
    answer = module.answer
    if answer.steps > 0:
        column = graph.add("Unsqueeze", "lengths", graph.numbers(1))
        index = graph.add("Add", column, graph.numbers(*range(-answer.steps, 0)))
        places = graph.add("Unsqueeze", index, graph.numbers(2))
        rows = graph.add("GatherND", rows, places, batch_dims=1)
    outputs = _through(graph, answer.head, rows)
    if answer.meaning == "softmax":
        outputs = graph.add("Softmax", outputs, axis=-1)
    elif answer.meaning == "sigmoid":
        outputs = graph.add("Sigmoid", outputs)
    outputs = _through(graph, answer.units, outputs)
    if answer.steps == 1 and answer.meaning != "sigmoid":
        outputs = graph.add("Squeeze", outputs, graph.numbers(1))
    graph.nodes.append(graph.onnx.helper.make_node("Identity", [outputs], ["y"]))
