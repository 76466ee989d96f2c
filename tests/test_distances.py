"""The distance of the hypernetwork's regulariser: one pass in the library, the same bits as in Python."""

from __future__ import annotations

import os

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.networks.native import library
from perdure.networks.native.distances import Apart, difference, distance
from perdure.networks.native.library import LEVELS, VARIABLE, describe
from perdure.penalties.hnet_regulariser import Distance

native = pytest.mark.skipif(describe().startswith("python"), reason=f"no native kernels: {describe()}")
many = settings(max_examples=60, deadline=None)
counts, widths = st.integers(1, 5), st.integers(1, 300)
precisions = st.sampled_from([torch.float32, torch.float64])


def sample(count, width, precision, seed=0, shift=0):
    """Vectors of old tasks; each has some places of its own, at which the common weight is zero."""
    source = torch.Generator().manual_seed(seed)

    def draw(*shape):
        room = torch.empty(shift + torch.Size(shape).numel(), dtype=precision)
        return room[shift:].view(shape).copy_(torch.randn(shape, generator=source, dtype=torch.float64))

    owner = torch.randint(-1, count, (width,), generator=source)  # -1: used by all
    every = draw(width).square()
    common = torch.where(owner < 0, every, torch.zeros_like(every))
    own = [(owner == row).nonzero()[:, 0] for row in range(count)]
    return Apart(draw(count, width), draw(count, width), common, every, own), owner


def by_python(apart, factor, monkeypatch):
    """Distance and gradient without the library."""
    monkeypatch.setenv(VARIABLE, "python")
    library.forget()
    try:
        return loss_and_gradient(apart, factor)
    finally:
        monkeypatch.undo()
        library.forget()


def loss_and_gradient(apart, factor):
    made = apart.made.clone().requires_grad_()
    loss = Distance.apply(made, *apart[1:])
    (factor * loss).backward()
    return loss.detach(), made.grad


@many
@given(counts, widths, precisions, st.floats(0.1, 10), st.integers(0, 99))
def test_it_is_the_weighted_squared_distance(count, width, precision, factor, seed):
    """Of every vector only what all use and what is its own counts."""
    apart, owner = sample(count, width, precision, seed)
    counts_here = (owner[None] < 0) | (owner[None] == torch.arange(count)[:, None])
    weight = apart.every.double() * counts_here
    gap = apart.made.double() - apart.target.double()
    loss, gradient = loss_and_gradient(apart, factor)
    tolerance = 1e-5 if precision == torch.float32 else 1e-12
    torch.testing.assert_close(loss.double(), (weight * gap.square()).sum(), rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(
        gradient.double(), 2 * factor * weight * gap, rtol=tolerance, atol=tolerance * factor
    )


@native
@many
@given(counts, widths, precisions, st.floats(0.1, 10), st.integers(1, 15))
def test_gradients_have_the_bits_of_those_in_python(count, width, precision, factor, shift):
    """Wherever the vectors lie in memory."""
    apart, _ = sample(count, width, precision)
    moved, _ = sample(count, width, precision, shift=shift)
    loss, gradient = loss_and_gradient(moved, factor)
    with pytest.MonkeyPatch.context() as patch:
        expected, theirs = by_python(apart, factor, patch)
    assert torch.equal(gradient, theirs)
    torch.testing.assert_close(loss, expected, rtol=1e-5, atol=1e-6)


@native
@pytest.mark.parametrize("precision", [torch.float32, torch.float64])
def test_instruction_sets_agree_bit_for_bit(precision, monkeypatch):
    apart, _ = sample(3, 1001, precision)
    found = []
    highest = list(LEVELS).index(describe().split()[-1])
    for level in list(LEVELS)[: highest + 1]:
        monkeypatch.setenv(VARIABLE, level)
        library.forget()
        found.append((distance(apart), difference(apart, 0.7)))
    monkeypatch.undo()
    library.forget()
    assert len({total for total, _ in found}) == 1
    assert all(torch.equal(gradient, found[0][1]) for _, gradient in found)


@native
@pytest.mark.parametrize("place", [-1, 8])
def test_a_place_outside_is_an_error(place):
    apart, _ = sample(1, 8, torch.float32)
    with pytest.raises(IndexError, match="not within its vector"):
        distance(apart._replace(own=[torch.tensor([place])]))


@native
def test_wrong_shapes_are_errors():
    apart, _ = sample(2, 8, torch.float32)
    with pytest.raises(ValueError, match="2 vectors, but places of 1"):
        distance(apart._replace(own=apart.own[:1]))
    with pytest.raises(ValueError, match=r"expected \[2, 8\]"):
        difference(apart._replace(target=apart.target[:1]), 1.0)
    with pytest.raises(ValueError, match=r"torch\.int64"):
        distance(apart._replace(own=[own.int() for own in apart.own]))


def test_the_library_is_used_unless_the_environment_says_otherwise():
    """Otherwise the tests above would compare Python with itself."""
    apart, _ = sample(1, 8, torch.float32)
    off = os.environ.get(VARIABLE) == "python" or describe().startswith("python")
    assert (distance(apart) is None) == off
