"""Functions of each number of a tensor in the compiled library, in one pass each."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from perdure.networks.native.library import Function, function
from perdure.networks.native.sweeps import require

FUNCTIONS = ("tanh", "sigmoid", "exp", "softplus", "sqrt")
"""In the order of elementwise.h."""


class Elementwise(torch.autograd.Function):
    """One of FUNCTIONS; the caller has checked that the library runs."""

    @staticmethod
    def forward(ctx: Any, name: str, values: Tensor) -> Tensor:
        """f(x) of each x."""
        result = _mapped(name, values)
        ctx.name = name
        ctx.save_for_backward(values if name == "softplus" else result)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        """Delta f'(x), from f(x) where that is enough."""
        (kept,) = ctx.saved_tensors
        slopes = _mapped("sigmoid", kept) if ctx.name == "softplus" else kept
        given, out = require(grad, kept, *kept.shape), torch.empty_like(slopes)
        number = FUNCTIONS.index(ctx.name)
        addresses = (tensor.data_ptr() for tensor in (given, slopes, out))
        _run("elementwise_back", out)(number, out.numel(), *addresses)
        return None, out


def _mapped(name: str, values: Tensor) -> Tensor:
    given = require(values, values, *values.shape)
    out = torch.empty_like(given)
    _run("elementwise", given)(FUNCTIONS.index(name), given.numel(), given.data_ptr(), out.data_ptr())
    return out


def _run(name: str, like: Tensor) -> Function:
    run = function(name, like)
    assert run is not None  # the caller has checked that the library runs
    return run
