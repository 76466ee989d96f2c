"""Products and functions with the same digits on every processor that has fused multiply-adds.

torch leaves products and some functions to MKL, whose digits differ between kinds of processors, and its own
functions compute the last few numbers of a tensor in another way than the others; which these are depends on
the width of the registers. Two machines would train two different networks. The compiled library has one way
of its own. torch's functions are used where it does not run.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from perdure.networks.native import products
from perdure.networks.native.elementwise import Elementwise
from perdure.networks.native.library import available

DIGITS = 2
"""Raised when only the last digits of numbers change. Records name it; older ones have none."""


def linear(rows: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Rows W^T + b [..., G] of rows [..., F], with W [G, F]: a row's result does not depend on other rows."""
    if not available(rows):
        return functional.linear(rows, weight, bias)
    flat: Tensor = _Linear.apply(rows.reshape(-1, rows.shape[-1]), weight, bias)
    return flat if rows.ndim == 2 else flat.reshape(*rows.shape[:-1], len(weight))


def product(left: Tensor, right: Tensor) -> Tensor:
    """The product [N, M] of matrices [N, K] and [K, M]; not differentiable."""
    found = products.linear_back(left, right)
    return left @ right if found is None else found


def transposed_product(left: Tensor, right: Tensor) -> Tensor:
    """The product L^T R [N, M] of matrices [S, N] and [S, M]; not differentiable."""
    found = products.gradient(left, right)
    return left.t() @ right if found is None else found[0]


def tanh(values: Tensor) -> Tensor:
    """(e^x - e^-x) / (e^x + e^-x)."""
    return _applied("tanh", values) if available(values) else values.tanh()


def sigmoid(values: Tensor) -> Tensor:
    """1 / (1 + e^-x)."""
    return _applied("sigmoid", values) if available(values) else values.sigmoid()


def softplus(values: Tensor) -> Tensor:
    """log(1 + e^x)."""
    return _applied("softplus", values) if available(values) else functional.softplus(values)


def exp(values: Tensor) -> Tensor:
    """e^x."""
    return _applied("exp", values) if available(values) else values.exp()


def sqrt(values: Tensor) -> Tensor:
    """The square root."""
    return _applied("sqrt", values) if available(values) else values.sqrt()


def _applied(name: str, values: Tensor) -> Tensor:
    result: Tensor = Elementwise.apply(name, values)
    return result


def inner(left: Tensor, right: Tensor) -> Tensor:
    """The inner product of two flat vectors, summed in double precision, so that the order hardly matters."""
    return torch.dot(left.double(), right.double()).to(left.dtype)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(rows, weight)
        ctx.biased = bias is not None
        outputs = products.linear(rows, weight, bias)
        assert outputs is not None  # the caller has checked that the library runs
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        """Delta W, delta^T rows, and the sum of delta."""
        rows, weight = ctx.saved_tensors
        needs = ctx.needs_input_grad
        found = products.gradient(grad, rows) if needs[1] or needs[2] else None
        of_weight, of_bias = found or (None, None)
        return (
            products.linear_back(grad, weight) if needs[0] else None,
            of_weight,
            of_bias if ctx.biased else None,
        )
