"""Adam by the compiled library: torch's numbers, whole vectors and their lengths, and resuming."""

from __future__ import annotations

import pytest
import torch

from perdure.learning.adam import NativeAdam, clipping, make_optimiser
from perdure.learning.optimiser import Optimiser, scale_gradients
from perdure.networks.native.library import describe
from perdure.networks.native.vectors import norm

pytestmark = pytest.mark.skipif(describe().startswith("python"), reason=f"kernels: {describe()}")

CASES = [("Adam", 0.0), ("Adam", 0.1), ("AdamW", 0.0), ("AdamW", 0.1)]


def vectors(precision, seed=0):
    source = torch.Generator().manual_seed(seed)
    sizes = {"a": 1, "b": 7, "c": 1003}
    return {
        name: torch.randn(size, generator=source, dtype=torch.float64).to(precision).requires_grad_()
        for name, size in sizes.items()
    }


def set_gradients(active, seed):
    for name, vector in vectors(next(iter(active.values())).dtype, seed).items():
        active[name].grad = vector.detach().clone()


@pytest.mark.parametrize(("name", "decay"), CASES)
@pytest.mark.parametrize(("precision", "tolerance"), [(torch.float64, 1e-13), (torch.float32, 1e-5)])
def test_it_moves_as_torch_does(name, decay, precision, tolerance):
    ours, theirs = vectors(precision), vectors(precision)
    native, reference = NativeAdam(name, ours, 0.01, decay), Optimiser(name, theirs, 0.01, decay)
    for step in range(30):
        for optimiser, active in ((native, ours), (reference, theirs)):
            set_gradients(active, step)
            optimiser.go_at(1 / (1 + step % 3))
        moves, before = native.would_move(), {n: v.detach().clone() for n, v in ours.items()}
        native.step()
        reference.step()
        for key, vector in ours.items():
            torch.testing.assert_close(vector, theirs[key], rtol=tolerance, atol=tolerance)
            assert torch.equal(vector.detach() - before[key], moves[key])


def test_a_vector_without_a_gradient_stays():
    active = vectors(torch.float32)
    optimiser = make_optimiser("Adam", active, 0.1, 0.0)
    assert isinstance(optimiser, NativeAdam)
    set_gradients(active, 1)
    active["b"].grad = None
    before = active["b"].detach().clone()
    assert not optimiser.would_move()["b"].any()
    optimiser.step()
    assert torch.equal(active["b"].detach(), before)


def test_steps_without_a_gradient_do_not_count():
    """However late its first gradient comes, it moves a vector by the learning rate (bias correction)."""
    ours, theirs = vectors(torch.float64), vectors(torch.float64)
    native, reference = NativeAdam("Adam", ours, 0.01, 0.0), Optimiser("Adam", theirs, 0.01, 0.0)
    for step in range(40):
        for optimiser, active in ((native, ours), (reference, theirs)):
            set_gradients(active, step)
            if step < 20 or step % 3:
                active["b"].grad = None
            before = active["b"].detach().clone()
            predicted = optimiser.would_move()["b"]
            optimiser.step()
            assert torch.allclose(active["b"].detach() - before, predicted, rtol=0, atol=1e-12)
            if step == 21:
                assert torch.allclose((active["b"].detach() - before).abs(), torch.tensor(0.01).double())
    for key, vector in ours.items():
        torch.testing.assert_close(vector, theirs[key], rtol=1e-13, atol=1e-13)


def test_it_continues_from_its_state():
    one, other = vectors(torch.float32), vectors(torch.float32)
    first = NativeAdam("Adam", one, 0.01, 0.0)
    for step in range(3):
        set_gradients(one, step)
        first.step()
    tensors, numbers = first.state()
    second = NativeAdam("Adam", other, 0.01, 0.0)
    second.restore({name: tensor.clone() for name, tensor in tensors.items()}, numbers)
    with torch.no_grad():
        for name, vector in other.items():
            vector.copy_(one[name])
    for optimiser, active in ((first, one), (second, other)):
        set_gradients(active, 9)
        optimiser.step()
    assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("precision", [torch.float32, torch.float64])
def test_the_norm_is_that_of_all_vectors_together(precision):
    parts = [vector.detach() for vector in vectors(precision).values()]
    expected = float(torch.cat(parts).double().norm())
    assert norm(parts) == pytest.approx(expected, rel=1e-14)
    shifted = torch.empty(1004, dtype=precision)[1:].copy_(parts[2])  # not aligned
    assert norm([shifted]) == norm([parts[2]])


@pytest.mark.parametrize("longest", [0.5, 1e3])
def test_clipping_shortens_what_is_too_long(longest):
    active = vectors(torch.float32)
    set_gradients(active, 4)
    gradients = [vector.grad.clone() for vector in active.values()]
    length, factor = clipping(active, longest)
    assert torch.equal(torch.cat([vector.grad for vector in active.values()]), torch.cat(gradients))
    scale_gradients(active, factor)
    assert length == pytest.approx(float(torch.cat(gradients).norm()), rel=1e-6)
    after = torch.cat([vector.grad for vector in active.values()])
    assert float(after.norm()) == pytest.approx(min(length, longest), rel=1e-6)
    if length < longest:
        assert torch.equal(after, torch.cat(gradients))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_not_finite_is_told(value):
    active = vectors(torch.float32)
    set_gradients(active, 4)
    active["c"].grad[5] = value
    assert not torch.isfinite(torch.tensor(clipping(active, 1.0)[0]))


@pytest.mark.parametrize("name", ["Adam", "AdamW", "SGD"])
def test_a_step_with_a_factor_is_one_with_scaled_gradients(name):
    one, other = vectors(torch.float32), vectors(torch.float32)
    first, second = (make_optimiser(name, active, 0.01, 0.1) for active in (one, other))
    for step in range(3):
        set_gradients(one, step)
        set_gradients(other, step)
        scale_gradients(other, 0.3)
        first.step(0.3)
        second.step()
    assert all(torch.equal(one[key], other[key]) for key in one)


def test_a_step_that_the_library_did_not_take_is_noticed():
    """It takes none for a vector whose numbers do not lie side by side."""
    apart = torch.zeros(6)[::2].requires_grad_()
    optimiser = NativeAdam("Adam", {"a": apart}, 0.1, 0.0)
    apart.grad = torch.ones(3)
    with pytest.raises(AssertionError, match="'a'"):
        optimiser.step()
