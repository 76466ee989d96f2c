"""Losses of classes and bits in the compiled library: the sum and its gradient in one pass."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from perdure.networks.native.library import Function, available, function
from perdure.networks.native.sweeps import ran, require


def class_loss(logits: Tensor, targets: Tensor) -> Tensor | None:
    """Sum over rows of -log softmax(z)_y, from z [M, C] and y [M]; a negative y is not scored.

    None if the library is not available.
    """
    if not available(logits):
        return None
    loss: Tensor = ClassLoss.apply(logits, targets)
    return loss


def teacher_loss(logits: Tensor, teacher: Tensor, mask: Tensor | None, temperature: float) -> Tensor | None:
    """T^2 times the sum over the rows in the mask of -softmax(teacher / T) . log softmax(z / T).

    None if the library is not available.
    """
    if not available(logits):
        return None
    loss: Tensor = TeacherLoss.apply(logits, teacher, mask, temperature)
    return loss


def bit_loss(logits: Tensor, targets: Tensor, mask: Tensor | None, temperature: float = 1.0) -> Tensor | None:
    """T^2 times the sum over the mask of log(1 + e^(z / T)) - y z / T, from z [M, P] and y [M, P] in 0..1.

    None if the library is not available.
    """
    if not available(logits):
        return None
    loss: Tensor = BitLoss.apply(logits, targets, mask, temperature)
    return loss


def _run(name: str, like: Tensor) -> Function:
    run = function(name, like)
    assert run is not None  # the caller has checked that the library runs
    return run


class ClassLoss(torch.autograd.Function):
    """Cross-entropy with classes."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor) -> Tensor:
        """The sum; its gradient softmax(z) - e_y is computed along with it."""
        rows, classes = logits.shape
        given, classes_of = require(logits, logits, rows, classes), targets.contiguous()
        if classes_of.shape != (rows,) or classes_of.dtype != torch.int64:
            raise ValueError(f"class_loss: expected {rows} classes of torch.int64, got {targets.dtype}.")
        loss, delta = logits.new_empty(()), torch.empty_like(given)
        tensors = (given, classes_of, loss, delta)
        if not _run("class_loss", logits)(rows, classes, *(tensor.data_ptr() for tensor in tensors)):
            raise IndexError(f"class_loss: a target is not among the {classes} classes.")
        ctx.save_for_backward(delta)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        """The gradient, scaled."""
        (delta,) = ctx.saved_tensors
        return delta * grad, None


class TeacherLoss(torch.autograd.Function):
    """Cross-entropy with a teacher's outputs at a temperature."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, teacher: Tensor, mask: Tensor | None, temperature: float) -> Tensor:
        """The sum; its gradient T (softmax(z / T) - softmax(teacher / T)) is computed along with it."""
        rows, classes = logits.shape
        given, wanted = (require(each, logits, rows, classes) for each in (logits, teacher))
        loss, delta = logits.new_empty(()), torch.empty_like(given)
        addresses = _addresses(given, wanted, _mask("teacher_loss", mask, rows), loss, delta)
        ran(_run("teacher_loss", logits)(rows, classes, temperature, *addresses))
        ctx.save_for_backward(delta)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        """The gradient, scaled."""
        (delta,) = ctx.saved_tensors
        return delta * grad, None, None, None


class BitLoss(torch.autograd.Function):
    """Binary cross-entropy at a temperature."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor, mask: Tensor | None, temperature: float) -> Tensor:
        """The sum; its gradient T (s(z / T) - y) is computed along with it."""
        given, wanted = (require(each, logits, *logits.shape) for each in (logits, targets))
        loss, delta = logits.new_empty(()), torch.empty_like(given)
        addresses = _addresses(given, wanted, _mask("bit_loss", mask, *logits.shape), loss, delta)
        ran(_run("bit_loss", logits)(given.numel(), temperature, *addresses))
        ctx.save_for_backward(delta)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        """The gradient, scaled."""
        (delta,) = ctx.saved_tensors
        return delta * grad, None, None, None


def _mask(name: str, mask: Tensor | None, *shape: int) -> Tensor | None:
    if mask is not None and (mask.shape != shape or mask.dtype != torch.bool):
        raise ValueError(f"{name}: expected a mask {list(shape)}, got {list(mask.shape)} of {mask.dtype}.")
    return None if mask is None else mask.contiguous()


def _addresses(*tensors: Tensor | None) -> list[int | None]:
    return [None if tensor is None else tensor.data_ptr() for tensor in tensors]
