"""The compiled sweeps equal the ones in Python, and their bits depend on nothing but their numbers."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from perdure.errors import PerdureError
from perdure.networks.cells import lru
from perdure.networks.cells.diagonal import products
from perdure.networks.cells.elman import Elman
from perdure.networks.cells.gru import GRU
from perdure.networks.cells.lstm import LSTM
from perdure.networks.native import build, library
from perdure.networks.native.library import LEVELS, VARIABLE, describe, function
from perdure.networks.native.losses import class_loss, teacher_loss
from perdure.networks.native.products import (
    MeasuredMap,
    add_measures,
    gradient,
    layer_gradients,
    linear,
    linear_back,
    recurrent_gradient,
)
from perdure.networks.native.sweeps import sweeps_for
from perdure.networks.packing import BACKWARDS, FORWARDS, ITSELF, pack_lengths
from perdure.registry import find

if describe().startswith("python") and os.environ.get(VARIABLE) != "python":
    pytest.skip(f"there are no native kernels here: {describe()}", allow_module_level=True)

CELLS = {"elman": Elman, "lstm": LSTM, "gru": GRU}
GATES = {"elman": 1, "lstm": 4, "gru": 3}
CHAINS = 12
"""Independent sums in peak.h."""
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5}
widths = st.one_of(st.integers(1, 40), st.sampled_from([48, 52, 63, 64, 65, 100, 128, 255, 256, 257, 300]))
lengths = st.lists(st.integers(1, 9), min_size=1, max_size=30)
precisions = st.sampled_from([torch.float32, torch.float64])
many = settings(max_examples=60, deadline=None)
few = settings(max_examples=15, deadline=None)


@pytest.fixture(autouse=True)
def _native(monkeypatch):
    """Whatever the environment says, these tests are about the library."""
    if os.environ.get(VARIABLE) == "python":
        choose(monkeypatch, None)
    yield
    library.forget()


def choose(monkeypatch, kernels):
    """Set the variable, or unset it; it is read again."""
    if kernels is None:
        monkeypatch.delenv(VARIABLE, raising=False)
    else:
        monkeypatch.setenv(VARIABLE, kernels)
    library.forget()


class Sample:
    """Random inputs of a cell: weights in the usual range, a gradient, a packing."""

    def __init__(self, cell, units, sequences, precision, seed=0):
        source = torch.Generator().manual_seed(seed)
        self.packing = pack_lengths(torch.tensor(sequences))
        rows, wide = self.packing.offsets[-1], GATES.get(cell, 1) * units

        def draw(*shape):
            return torch.randn(*shape, generator=source, dtype=torch.float64).to(precision)

        self.projection, self.grad = draw(rows, wide), draw(rows, units)
        self.bias = draw(wide) if cell == "gru" else None
        self.weight = draw(wide, units) / units**0.5
        self.cell = cell

    def run(self, sweeps, sweep):
        """What is saved, and the deltas."""
        saved = sweeps.forward(self.projection, self.bias, self.weight, sweep)
        return [*saved, *sweeps.backward(self.grad, saved, self.weight, sweep)]

    def native(self, sweep):
        sweeps = sweeps_for(find("cells", self.cell), self.projection)
        assert sweeps is not None
        return self.run(sweeps, sweep)


def close(ours, theirs):
    """Equal up to rounding, measured by the largest entry."""
    worst = float((ours - theirs).abs().max()) / max(float(theirs.abs().max()), 1e-30)
    assert worst <= TOLERANCE[theirs.dtype], worst


def same(ours, theirs):
    """Equal bit for bit."""
    assert all(torch.equal(one, other) for one, other in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("cell", GATES)
@many
@given(widths, lengths, precisions, st.booleans(), st.integers(0, 99))
def test_sweeps_equal_the_ones_in_python(cell, units, sequences, precision, reverse, seed):
    sample = Sample(cell, units, sequences, precision, seed)
    sweep = sample.packing.backward if reverse else sample.packing.forward
    for ours, theirs in zip(sample.native(sweep), sample.run(CELLS[cell], sweep), strict=True):
        close(ours, theirs)


@few
@given(widths, lengths, precisions, st.booleans())
def test_a_bias_for_each_row(units, sequences, precision, reverse):
    sample = Sample("gru", units, sequences, precision)
    sweep = sample.packing.backward if reverse else sample.packing.forward
    once = sample.native(sweep)
    sample.bias = sample.bias.expand(len(sample.projection), -1)
    same(sample.native(sweep), once)


@many
@given(widths, lengths, precisions, st.booleans(), st.booleans())
def test_the_diagonal_recurrence_equals_autograd(units, sequences, precision, reverse, each):
    sample = Sample("diagonal", units, sequences, precision)
    packing = sample.packing
    sweep = packing.backward if reverse else packing.forward
    shape = (len(sample.projection), units) if each else (units,)
    factor = torch.rand(shape, generator=torch.Generator().manual_seed(1)).to(precision)
    sweeps = sweeps_for(find("cells", "diagonal"), factor)
    (states,) = sweeps.forward(sample.projection, None, factor, sweep)
    delta, _ = sweeps.backward(sample.grad, (states,), factor, sweep)
    entering = sample.projection.clone().requires_grad_()
    rows, factors = entering.split(packing.sizes), factor.expand_as(entering).split(packing.sizes)
    h = {}
    for step, previous, carried in sweep.moves:
        went_on = rows[step][:carried]
        if carried:
            went_on = went_on + factors[step][:carried] * h[previous][:carried]
        h[step] = torch.cat([went_on, rows[step][carried:]])
    oracle = torch.cat([h[step] for step in range(packing.steps)])
    close(states, oracle.detach())
    close(delta, torch.autograd.grad(oracle, entering, sample.grad)[0])


@many
@given(widths, lengths, precisions, st.booleans(), st.booleans(), st.integers(0, 99))
def test_the_complex_recurrence_equals_the_one_in_python(units, sequences, precision, reverse, each, seed):
    sample = Sample("lru", 2 * units, sequences, precision, seed)
    sweep = sample.packing.backward if reverse else sample.packing.forward
    source = torch.Generator().manual_seed(seed + 1)
    shape = (len(sample.projection), 2 * units) if each else (2 * units,)
    sample.weight = (torch.rand(shape, generator=source, dtype=torch.float64) * 1.4 - 0.7).to(precision)
    for ours, theirs in zip(sample.native(sweep), sample.run(lru.PythonSweeps, sweep), strict=True):
        close(ours, theirs)


@few
@given(widths, lengths, precisions, st.booleans(), st.booleans())
def test_the_complex_recurrence_equals_autograd(units, sequences, precision, reverse, each):
    """Of real numbers, by torch: neither sweep is involved."""
    sample = Sample("lru", 2 * units, sequences, precision)
    packing = sample.packing
    sweep = packing.backward if reverse else packing.forward
    shape = (len(sample.projection), 2 * units) if each else (2 * units,)
    factor = torch.rand(shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64) - 0.5
    factor = factor.to(precision).requires_grad_()
    entering = sample.projection.clone().requires_grad_()
    rows, factors = entering.split(packing.sizes), factor.expand_as(entering).split(packing.sizes)
    c = {}
    for step, previous, carried in sweep.moves:
        (a, b), (x, y) = (
            factors[step][:carried].chunk(2, 1),
            c.get(previous, rows[step])[:carried].chunk(2, 1),
        )
        went_on = rows[step][:carried] + torch.cat([a * x - b * y, a * y + b * x], dim=1)
        c[step] = torch.cat([went_on, rows[step][carried:]])
    oracle = torch.cat([c[step] for step in range(packing.steps)])
    expected = torch.autograd.grad(oracle, (entering, factor), sample.grad, materialize_grads=True)
    sample.weight = factor.detach()
    for ours, theirs in zip(sample.native(sweep), (oracle.detach(), *expected), strict=True):
        close(ours, theirs)


@few
@given(widths, lengths, precisions, st.booleans())
def test_products_of_deltas_and_states_are_those_of_torch(units, sequences, precision, reverse):
    sample = Sample("diagonal", units, sequences, precision)
    ours = products(sample.grad, sample.projection, sample.packing, reverse=reverse)
    same([ours], [sample.grad * sample.packing.before(sample.projection, backward=reverse)])


@few
@given(widths, widths, st.integers(1, 700), precisions)
def test_products_equal_torch(units, inputs, count, precision):
    source = torch.Generator().manual_seed(0)
    rows = torch.randn(count, inputs, generator=source).to(precision)
    weight, bias = torch.randn(units, inputs, generator=source).to(precision), torch.ones(units).to(precision)
    delta = torch.randn(count, units, generator=source).to(precision)
    close(linear(rows, weight, bias), rows @ weight.t() + bias)
    close(linear(rows, weight, None), rows @ weight.t())
    close(linear_back(delta, weight), delta @ weight)
    of_weight, of_bias = gradient(delta, rows)
    close(of_weight, delta.t() @ rows)
    close(of_bias, delta.sum(0))


@many
@given(widths, widths, lengths, precisions, st.booleans())
def test_the_recurrent_gradient_equals_the_product(units, wide, sequences, precision, reverse):
    packing = pack_lengths(torch.tensor(sequences))
    source = torch.Generator().manual_seed(0)
    rows = packing.offsets[-1]
    delta, states = (torch.randn(rows, n, generator=source).to(precision) for n in (wide, units))
    sweep = packing.backward if reverse else packing.forward
    expected = delta.t() @ packing.before(states, backward=reverse)
    ours = recurrent_gradient(delta, states, sweep)
    if packing.steps == 1:  # no row goes on from another
        assert not ours.any()
    else:
        close(ours, expected)


@many
@given(widths, st.integers(1, 70), st.integers(1, 40), lengths, precisions, st.booleans())
def test_the_gradients_of_a_layer_equal_those_of_its_parts(
    wide, inputs, units, sequences, precision, reverse
):
    packing = pack_lengths(torch.tensor(sequences))
    sweep = packing.backward if reverse else packing.forward
    source, rows = torch.Generator().manual_seed(0), packing.offsets[-1]
    delta, x, h = (torch.randn(rows, n, generator=source, dtype=precision) for n in (wide, inputs, units))
    found = layer_gradients(delta, x, h, sweep)
    tolerance = TOLERANCE[precision] * rows
    expected = delta.t() @ x, delta.sum(0), delta.t() @ packing.before(h, backward=reverse)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)
    assert torch.equal(found.of_state, recurrent_gradient(delta, h, sweep))  # the same sums in the same order


@many
@given(st.integers(1, 60), st.integers(1, 40), precisions, st.floats(0.5, 4), st.booleans())
def test_losses_and_their_gradients_equal_torch(rows, classes, precision, temperature, masked):
    source, tolerance = torch.Generator().manual_seed(rows), TOLERANCE[precision]
    logits = (5 * torch.randn(rows, classes, generator=source, dtype=precision)).requires_grad_()
    teacher = 5 * torch.randn(rows, classes, generator=source, dtype=precision)
    targets = torch.randint(-1 if masked else 0, classes, (rows,), generator=source)
    mask = targets >= 0 if masked else None
    soft = -((teacher / temperature).softmax(1) * (logits / temperature).log_softmax(1)).sum(1)
    pairs = (
        (
            class_loss(logits, targets),
            functional.cross_entropy(logits, targets, ignore_index=-1, reduction="sum"),
        ),
        (
            teacher_loss(logits, teacher, mask, temperature),
            (soft if mask is None else soft[mask]).sum() * temperature**2,
        ),
    )
    for ours, theirs in pairs:
        torch.testing.assert_close(ours, theirs, rtol=10 * tolerance, atol=rows * tolerance)
        slopes = (torch.autograd.grad(0.3 * loss, logits, retain_graph=True)[0] for loss in (ours, theirs))
        torch.testing.assert_close(*slopes, rtol=10 * tolerance, atol=10 * tolerance)


def test_a_class_that_does_not_exist_is_an_error():
    with pytest.raises(IndexError, match="not among the 3 classes"):
        class_loss(torch.zeros(2, 3), torch.tensor([0, 3]))


@many
@given(widths, widths, widths, lengths, st.booleans(), st.booleans(), precisions)
def test_measures_equal_a_loop_over_samples(wide, inputs, units, sequences, reverse, magnitudes, precision):
    """Of two maps to the same outputs, one of which reads the states of the preceding step."""
    packing = pack_lengths(torch.tensor(sequences))
    source = torch.Generator().manual_seed(0)
    delta, x, h = (
        torch.randn(packing.offsets[-1], n, generator=source).to(precision) for n in (wide, inputs, units)
    )
    totals = [torch.ones(wide, n, dtype=torch.float64) for n in (inputs, units)]
    bias_total = torch.ones(wide, dtype=torch.float64)
    ways = (ITSELF, BACKWARDS if reverse else FORWARDS)
    maps = [MeasuredMap(*each) for each in zip((x, h), ways, totals, strict=True)]
    assert add_measures(maps, bias_total, delta, packing, magnitudes=magnitudes)
    measure = torch.abs if magnitudes else torch.square
    deltas = packing.unpack(delta).double()
    for total, rows in zip(totals, (x, packing.before(h, backward=reverse)), strict=True):
        one_by_one = torch.einsum("ntg,ntf->ngf", deltas, packing.unpack(rows).double())
        close(total.to(precision), (1 + measure(one_by_one).sum(0)).to(precision))
    close(bias_total.to(precision), (1 + measure(deltas.sum(1)).sum(0)).to(precision))


@few
@given(lengths, st.integers(0, 3), st.sampled_from([torch.float32, torch.int64, torch.uint8]), st.booleans())
def test_packing_equals_a_loop(sequences, width, kind, choosing):
    packing = pack_lengths(torch.tensor(sequences))
    source = torch.Generator().manual_seed(0)
    count, longest = len(sequences) + 3, max(sequences) + 2
    padded = torch.randint(0, 200, (count, longest, *[width + 1] * (width > 0)), generator=source).to(kind)
    chosen = torch.randperm(count, generator=source)[: len(sequences)]
    picked = padded[chosen] if choosing else padded[: len(sequences)]
    order = range(len(sequences)) if packing.order is None else packing.order.tolist()
    expected = [picked[n, step] for step in range(packing.steps) for n in order[: packing.sizes[step]]]
    rows = packing.pack(padded, chosen) if choosing else packing.pack(picked)
    assert torch.equal(rows, torch.stack(expected))


@few
@given(lengths, st.data())
def test_plans_equal_the_ones_in_python(sequences, data):
    packing = pack_lengths(torch.tensor(sequences))
    count = data.draw(st.integers(1, min(sequences)))
    last = packing.last(count)
    with pytest.MonkeyPatch.context() as patch:
        choose(patch, "python")
        other = pack_lengths(torch.tensor(sequences))
        theirs = other.last(count)
        library.forget()
    assert packing.sizes == other.sizes
    if packing.order is None:
        assert (other.order, last) == (None, theirs)
    else:
        assert torch.equal(packing.order, other.order)
        assert torch.equal(last, theirs)


def test_packing_names_a_sequence_that_is_not_there():
    packing = pack_lengths(torch.tensor([2, 1]))
    with pytest.raises(IndexError, match="not among 4"):
        packing.pack(torch.zeros(4, 2), torch.tensor([0, 4]))


def shifted(tensor, by):
    """A copy that begins `by` numbers after the start of a cache line."""
    if tensor is None:
        return None
    room = torch.empty(tensor.numel() + 64, dtype=tensor.dtype)
    start = (-room.data_ptr() // tensor.element_size()) % (64 // tensor.element_size()) + by
    return room[start : start + tensor.numel()].view(tensor.shape).copy_(tensor)


@pytest.mark.parametrize("cell", GATES)
@few
@given(widths, lengths, precisions, st.integers(1, 15))
def test_bits_do_not_depend_on_alignment_or_repetition(cell, units, sequences, precision, by):
    sample = Sample(cell, units, sequences, precision)
    sweep = sample.packing.forward
    once = sample.native(sweep)
    same(sample.native(sweep), once)
    for name in ("projection", "grad", "weight", "bias"):
        setattr(sample, name, shifted(getattr(sample, name), by))
    same(sample.native(sweep), once)


@pytest.mark.parametrize("cell", GATES)
@few
@given(widths, lengths, precisions, st.booleans(), st.data())
def test_bits_do_not_depend_on_the_batch_around_a_sequence(cell, units, sequences, precision, reverse, data):
    sample = Sample(cell, units, sequences, precision)
    packing = sample.packing
    together = sample.native(packing.backward if reverse else packing.forward)
    number = data.draw(st.integers(0, len(sequences) - 1))
    rank = number if packing.order is None else packing.order.tolist().index(number)
    rows = torch.tensor([packing.offsets[step] + rank for step in range(sequences[number])])
    sample.projection, sample.grad = sample.projection[rows], sample.grad[rows]
    alone = pack_lengths(torch.tensor(sequences[number : number + 1]))
    same(sample.native(alone.backward if reverse else alone.forward), [part[rows] for part in together])


@few
@given(widths, widths, precisions, st.integers(1, 15))
def test_bits_of_products_do_not_depend_on_alignment_or_batch(units, inputs, precision, by):
    source = torch.Generator().manual_seed(0)
    rows = torch.randn(200, inputs, generator=source).to(precision)
    weight, delta = (torch.randn(n, units, generator=source).to(precision) for n in (inputs, 200))
    out, back, outer = linear_back(rows, weight), linear(delta, weight, None), gradient(delta, rows)
    moved = [shifted(tensor, by) for tensor in (rows, weight, delta)]
    same([linear_back(moved[0], moved[1]), linear(moved[2], moved[1], None)], [out, back])
    same(gradient(moved[2], moved[0]), outer)
    same([linear_back(rows[77:78], weight), linear(delta[77:78], weight, None)], [out[77:78], back[77:78]])


def test_levels_agree(monkeypatch):
    """AVX2 and AVX-512 bit for bit, since they differ only in how many columns they treat at once."""
    here = library._chosen()[0]
    available = list(LEVELS)[: list(LEVELS).index(here) + 1]
    for cell in GATES:
        sample = Sample(cell, 37, [5, 3, 3, 1, 7, 7, 2], torch.float32)
        results = {}
        for level in available:
            choose(monkeypatch, level)
            assert describe() == f"native {level}"
            results[level] = sample.native(sample.packing.forward)
        for level in available[1:]:
            same(results[level], results[available[1]])
        for one, other in zip(results["baseline"], results[here], strict=True):
            close(one, other)


def test_what_is_not_finite_stays_so():
    sample = Sample("lstm", 9, [4, 3], torch.float32)
    sample.projection[0, 2] = torch.nan
    states, *_ = sample.native(sample.packing.forward)
    assert states[0].isnan().any()
    sample.projection[0] = torch.tensor([torch.inf, -torch.inf, 1e30]).repeat(12)
    states, gates, memory, _ = sample.native(sample.packing.forward)[:4]
    assert all(bool(part.isfinite().all()) for part in (gates[0], states, memory))
    assert (gates[0, 0], gates[0, 18]) == (1, 1)


def test_activations_are_precise():
    """Within a few units in the last place over the whole range, in both precisions."""
    for precision, bound in ((torch.float32, 3e-7), (torch.float64, 6e-16)):
        x = torch.cat([torch.linspace(-30, 30, 40001), torch.logspace(-30, 0, 4001)]).to(precision)[:, None]
        packing = pack_lengths(torch.ones(len(x), dtype=torch.int64))
        zero = torch.zeros(1, 1, dtype=precision)
        (ours,) = sweeps_for(find("cells", "elman"), x).forward(x, None, zero, packing.forward)
        exact = x.double().tanh()
        error = ((ours.double() - exact) / exact.where(exact != 0, 1)).abs().max()
        assert error < bound
        gates = sweeps_for(find("cells", "lstm"), x).forward(
            x.repeat(1, 4), None, zero.repeat(4, 1), packing.forward
        )[1]
        exact = x.double().sigmoid()
        assert ((gates[:, :1].double() - exact) / exact).abs().max() < bound


def work(seed):
    """One sweep, for another thread or process."""
    sample = Sample("lstm", 33, [9, 5, 5, 2], torch.float32, seed)
    return [part.numpy() for part in sample.native(sample.packing.forward)]


def test_threads_and_processes_give_the_same_bits():
    here = [work(seed) for seed in range(8)]
    with ThreadPoolExecutor(4) as pool:
        threads = list(pool.map(work, range(8)))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        spawned = pool.map(work, range(2))
    for mine, others in ((here, threads), (here[:2], spawned)):
        for ours, theirs in zip(mine, others, strict=True):
            same([torch.from_numpy(part) for part in ours], [torch.from_numpy(part) for part in theirs])


def test_the_environment_chooses(monkeypatch):
    tensor = torch.zeros(1)
    assert sweeps_for(find("cells", "lstm"), tensor) is not None
    assert sweeps_for(find("cells", "min-gru"), tensor) is None
    assert sweeps_for(find("cells", "lstm"), tensor.half()) is None
    assert sweeps_for(find("cells", "lstm"), torch.zeros(1, device="meta")) is None
    choose(monkeypatch, "python")
    assert sweeps_for(find("cells", "lstm"), tensor) is None
    assert linear(torch.ones(1, 1), torch.ones(1, 1), None) is None
    assert describe() == f"python (requested by {VARIABLE})"
    choose(monkeypatch, "avx")
    with pytest.raises(PerdureError, match="did you mean 'avx2'"):
        describe()


def test_without_a_library_the_reason_is_given(monkeypatch, tmp_path):
    monkeypatch.setattr(library, "LIBRARY", tmp_path / "none.so")
    choose(monkeypatch, None)
    assert describe() == "python (no compiler was found when perdure was installed)"
    assert sweeps_for(find("cells", "lstm"), torch.zeros(1)) is None
    choose(monkeypatch, "native")
    with pytest.raises(PerdureError, match="no native kernels"):
        describe()
    library.LIBRARY.write_bytes(b"not a library")
    choose(monkeypatch, None)
    assert "cannot be loaded" in describe()


def test_a_library_of_other_sources_is_not_used(monkeypatch):
    monkeypatch.setattr(library, "fingerprint", lambda: "another")
    choose(monkeypatch, None)
    assert "older than its sources" in describe()


def test_a_level_that_the_processor_lacks_is_refused(monkeypatch):
    class Old:
        def perdure_highest_level(self):
            return 0

    choose(monkeypatch, None)
    with monkeypatch.context() as patch:
        patch.setattr(library, "_opened", lambda: (Old(), ""))
        assert describe() == "native baseline"
        library._chosen.cache_clear()
        patch.setenv(VARIABLE, "avx2")
        with pytest.raises(PerdureError, match="this processor does not support avx2; its best is baseline"):
            describe()


def test_wrong_shapes_are_errors_not_crashes():
    sample = Sample("lstm", 8, [3, 2], torch.float32)
    sweeps, sweep = sweeps_for(find("cells", "lstm"), sample.projection), sample.packing.forward
    with pytest.raises(ValueError, match=r"expected \[5, 32\]"):
        sweeps.forward(sample.projection[1:], None, sample.weight, sweep)
    with pytest.raises(ValueError, match="float32"):
        sweeps.forward(sample.projection, None, sample.weight.double(), sweep)
    with pytest.raises(ValueError, match="rows of delta"):
        recurrent_gradient(sample.grad[1:], sample.grad[1:], sweep)
    maps = [MeasuredMap(sample.grad, ITSELF, torch.zeros(8, 8))]
    with pytest.raises(ValueError, match="total"):
        add_measures(maps, torch.zeros(8), sample.grad, sample.packing, magnitudes=False)


def test_building_imports_nothing_but_the_standard_library():
    """The build hook runs it where neither torch nor perdure is installed."""
    code = f"import runpy, sys; runpy.run_path({build.__file__!r}); assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-I", "-c", code]).returncode == 0


def test_without_any_compiler_nothing_is_compiled(monkeypatch, capsys):
    monkeypatch.setattr(build.shutil, "which", lambda name: None)
    monkeypatch.setattr(build.importlib.util, "find_spec", lambda name: None)
    assert build.compiler() is None
    assert build.main() == 1
    assert "no C compiler" in capsys.readouterr().out
    monkeypatch.setattr(build.importlib.util, "find_spec", lambda name: object())
    assert build.compiler()[1:4] == ["-m", "ziglang", "cc"]


@pytest.mark.parametrize("precision", [torch.float32, torch.float64])
def test_the_peak_counts_the_sums_it_makes(precision):
    """Of s <- s / 2 + 1 every chain ends at 2; operations are two for each lane, chain and round."""
    result, operations = torch.zeros(1, dtype=precision), torch.zeros(1, dtype=torch.float64)
    run = function("multiply_adds", result)
    counted = []
    for rounds in (100, 200):
        assert run(rounds, result.data_ptr(), operations.data_ptr())
        assert result.item() == 2 * CHAINS
        counted.append(operations.item())
    widest = {"avx512": 64, "avx2": 32, "baseline": 16}[library._chosen()[0]]
    assert counted == [2 * rounds * CHAINS * widest // result.element_size() for rounds in (100, 200)]
