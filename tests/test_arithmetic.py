"""Functions of single numbers equal torch's, and a run's digits do not depend on the kind of processor."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from perdure.networks import arithmetic
from perdure.networks.arithmetic import inner, linear, product, transposed_product
from perdure.networks.native.library import VARIABLE, available, describe
from perdure.networks.native.losses import bit_loss

FUNCTIONS = {
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "exp": torch.exp,
    "softplus": functional.softplus,
    "sqrt": torch.sqrt,
}
some = settings(max_examples=30, deadline=None)
precisions = st.sampled_from([torch.float32, torch.float64])
native = pytest.mark.skipif(not available(torch.zeros(1)), reason=f"no native kernels here: {describe()}")


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("precision", [torch.float32, torch.float64])
@pytest.mark.parametrize("count", [0, 1, 7, 16, 1000, 100_003])
def test_a_function_is_exact_to_a_few_units_in_the_last_place(name, precision, count):
    source = torch.Generator().manual_seed(count)
    values = torch.randn(count, generator=source, dtype=torch.float64) * 4
    values = (values.abs() if name == "sqrt" else values).to(precision)
    found, expected = getattr(arithmetic, name)(values), FUNCTIONS[name](values.double())
    units = torch.finfo(precision).eps * expected.abs()
    assert found.dtype == precision
    assert ((found.double() - expected).abs() <= 4 * units).all()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_lies_far_out_is_as_in_torch(name):
    values = torch.tensor([0.0, 1e-30, 60.0, 87.0, 100.0, 1e30, math.inf, math.nan])
    values = values if name == "sqrt" else torch.cat([values, -values])
    found, expected = getattr(arithmetic, name)(values), FUNCTIONS[name](values)
    torch.testing.assert_close(found, expected, equal_nan=True, rtol=1e-6, atol=1e-37)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_equal_finite_differences(name):
    values = torch.linspace(0.1, 3, 21, dtype=torch.float64).reshape(3, 7).requires_grad_()
    assert torch.autograd.gradcheck(getattr(arithmetic, name), (values,))
    strided = values.t()[1:, ::2]  # not contiguous
    torch.testing.assert_close(getattr(arithmetic, name)(strided), FUNCTIONS[name](strided))


@some
@given(st.integers(0, 5), st.integers(1, 40), st.integers(1, 30), st.booleans(), precisions)
def test_products_equal_torch(batch, depth, units, biased, precision):
    source = torch.Generator().manual_seed(depth)

    def draw(*shape):
        return torch.randn(shape, generator=source, dtype=precision).requires_grad_()

    rows, weight, bias = draw(batch, 3, depth), draw(units, depth), draw(units) if biased else None
    pairs = [(linear(rows, weight, bias), functional.linear(rows, weight, bias))]
    tolerance = 1e-4 if precision is torch.float32 else 1e-12
    for wanted in (rows, weight, *([bias] if biased else [])):
        both = (torch.autograd.grad(each.square().sum(), wanted, retain_graph=True)[0] for each in pairs[0])
        pairs.append(tuple(both))
    with torch.no_grad():
        left, right = rows.flatten(0, 1), weight.t()
        pairs.append((product(left, right), left @ right))
        pairs.append((transposed_product(left, left), left.t() @ left))
        pairs.append((inner(weight.flatten(), weight.flatten()), weight.square().sum()))
    for ours, theirs in pairs:
        torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)


@native
@some
@given(st.integers(1, 50), st.integers(1, 9), precisions, st.floats(0.5, 4), st.booleans())
def test_the_loss_of_bits_and_its_gradient_equal_torch(rows, outputs, precision, temperature, masked):
    source = torch.Generator().manual_seed(rows)
    logits = (10 * torch.randn(rows, outputs, generator=source, dtype=precision)).requires_grad_()
    targets = torch.rand(rows, outputs, generator=source, dtype=precision)
    mask = torch.rand(rows, outputs, generator=source) < 0.5 if masked else None
    losses = functional.binary_cross_entropy_with_logits(logits / temperature, targets, reduction="none")
    expected = (losses if mask is None else losses[mask]).sum() * temperature**2
    found = bit_loss(logits, targets, mask, temperature)
    tolerance = 1e-4 if precision is torch.float32 else 1e-12
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)
    slopes = [torch.autograd.grad(0.3 * loss, logits)[0] for loss in (found, expected)]
    torch.testing.assert_close(*slopes, rtol=tolerance, atol=tolerance)


@native
def test_a_mask_of_another_shape_is_an_error():
    with pytest.raises(ValueError, match=r"bit_loss: expected a mask \[2, 3\], got \[2\]"):
        bit_loss(torch.zeros(2, 3), torch.zeros(2, 3), torch.ones(2, dtype=torch.bool))


RUNS = """
import hashlib, json, sys, tempfile
from pathlib import Path
import perdure
from safetensors.torch import load_file

digests = {}
for benchmark, method, *options in json.loads(sys.argv[1]):
    config = perdure.build(benchmark, method, scale="smoke", training__iterations=12, **dict(options))
    with tempfile.TemporaryDirectory() as folder:
        perdure.run(config, runs=folder)
        digest = hashlib.sha256()
        for path in sorted(Path(folder).rglob("*.safetensors")):
            for name, values in sorted(load_file(path).items()):
                digest.update(name.encode() + values.float().contiguous().numpy().tobytes())
    digests[f"{benchmark} {method} {options}"] = digest.hexdigest()
print(json.dumps(digests))
"""
CONFIGS = [
    ["permuted-copy", "online-ewc", ["penalties__online_ewc__samples", 40]],
    ["permuted-copy", "hnet"],
    ["permuted-copy", "er", ["network__cell", "lru"]],
    ["permuted-copy", "masking+si"],
    ["permuted-copy", "rtf"],
    ["smnist", "mas", ["network__cell", "selective-diagonal"]],
    ["smnist", "hnet+r"],
    ["smnist", "duncker", ["network__cell", "min-gru"]],
    ["smnist", "lwf", ["network__norm", "layer"]],
]
"""Cells, losses, penalties and rehearsals of all kinds."""
PROCESSORS = {
    "this one": {},
    "one that MKL does not know": {"MKL_CBWR": "COMPATIBLE"},
    "one without AVX-512": {"MKL_CBWR": "AVX2", "ATEN_CPU_CAPABILITY": "avx2", VARIABLE: "avx2"},
}
"""Environment variables with which libraries compute as on another processor."""


@pytest.mark.skipif(
    describe() not in ("native avx2", "native avx512"), reason=f"other kernels run here: {describe()}"
)
def test_digits_do_not_depend_on_the_processor():
    """The weights of whole runs, bit for bit: what an Intel, an AMD and an older processor would train."""
    found = [
        subprocess.Popen(
            [sys.executable, "-c", RUNS, json.dumps(CONFIGS)],
            env=os.environ | {"OMP_NUM_THREADS": "1"} | variables,
            stdout=subprocess.PIPE,
            text=True,
        )
        for variables in PROCESSORS.values()
    ]
    outputs = [each.communicate()[0] for each in found]
    assert [each.returncode for each in found] == [0] * len(PROCESSORS)
    here, *elsewhere = (json.loads(output) for output in outputs)
    assert len(here) == len(CONFIGS)
    for name, there in zip(list(PROCESSORS)[1:], elsewhere, strict=True):
        assert there == here, name
